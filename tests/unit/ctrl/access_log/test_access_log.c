// SPDX-License-Identifier: Apache-2.0
// The access log's thread: rings that fill, files that are renamed or cut, readers that are slow or
// gone.
#include "ctrl/access_log/access_log.h"
#include "ctrl/access_log/line.h"
#include "ctrl/access_log/output.h"
#include "ctrl/access_log/place.h"
#include "ctrl/access_log/recent.h"
#include "ctrl/loop.h"
#include "lb/base/log.h"
#include "lb/pick/access.h"
#include "tests/support/check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

struct world {
	char folder[64], path[96], other[96];
	struct lb_access *rings[2];
	struct access_log *log;
};

static int set_up(void **state)
{
	static struct world w;
	const struct lb_access_filter all = {.sample = LB_ACCESS_SAMPLE_ALL};
	memset(&w, 0, sizeof(w));
	log_set_level(LOG_LEVEL_ERROR);
	signal(SIGPIPE, SIG_IGN);
	strcpy(w.folder, "/tmp/shunt-access-XXXXXX");
	assert_non_null(mkdtemp(w.folder));
	snprintf(w.path, sizeof(w.path), "%s/log", w.folder);
	snprintf(w.other, sizeof(w.other), "%s/log.1", w.folder);
	for (int i = 0; i < 2; i++)
		assert_non_null(w.rings[i] = lb_access_new(&all));
	*state = &w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;
	access_log_free(w->log);
	lb_access_free(w->rings[0]);
	lb_access_free(w->rings[1]);
	unlink(w->path);
	unlink(w->other);
	rmdir(w->folder);
	return 0;
}

#define PATH "%REQ(:PATH)%"

static void start_at(struct world *w, const char *path, const char *format)
{
	static const struct access_log_frontend front = {.name = "front"};
	struct lb_err err = {.text = ""};
	const struct access_place own = {.kind = ACCESS_FILE, .path = path};
	struct access_log_conf conf = {.logs = {.own = &own, .text_format = format},
		.frontends = &front,
		.n_frontends = 1,
		.workers = w->rings,
		.n_workers = 2,
		.clock_ns = loop_clock_ns,
		.wall_ns = loop_wall_ns};
	if (access_log_new(&conf, &w->log, &err))
		fail_msg("%s", err.text);
}

static void start(struct world *w)
{
	start_at(w, w->path, PATH);
}

// Its lines are long, and take far longer to be made than records.
static void start_long(struct world *w, const char *path)
{
	enum { TIMES = 200 };
	char format[TIMES * sizeof(PATH)] = "";
	for (int i = 0; i < TIMES; i++)
		strcat(format, PATH);
	start_at(w, path, format);
}

// A request with that number.
static void tell(struct world *w, unsigned number)
{
	struct lb_access_record a;
	char path[16];
	int len = snprintf(path, sizeof(path), "/%07u", number);
	lb_access_begin(&a);
	a.logs = LB_ACCESS_OWN;
	lb_access_put(&a, LB_ACCESS_PATH, (struct str){path, (size_t)len});
	lb_access_tell(w->rings[number % 2], &a);
}

static void wait_lines(const struct world *w, uint64_t n)
{
	for (int i = 0; i < 3000 && access_log_numbers(w->log).n_lines < n; i++)
		usleep(10000);
	assert_int_equal(access_log_numbers(w->log).n_lines, n);
}

// Marks the numbers of the file's lines; none may be there twice.
static unsigned read_lines(const char *path, bool *seen)
{
	unsigned n = 0, number;
	char line[64];
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	for (; fgets(line, sizeof(line), f); n++) {
		assert_int_equal(sscanf(line, "/%7u", &number), 1);
		assert_int_equal(strlen(line), 9);
		assert_false(seen[number]);
		seen[number] = true;
	}
	fclose(f);
	return n;
}

#define MANY 20000
static bool seen[MANY];

// OPS-38
static void renamed_files_lose_and_double_nothing(void **state)
{
	struct world *w = *state;
	memset(seen, 0, sizeof(seen));
	start(w);
	unsigned n = 0;
	for (unsigned i = 0; i < MANY; i++) {
		tell(w, i);
		if (i % 1000 == 0)
			wait_lines(w, i + 1); // the rings hold no more than 8192
		if (i % 5000 != 2500)
			continue;
		assert_int_equal(rename(w->path, w->other), 0);
		access_log_reopen(w->log);
		while (access(w->path, F_OK) != 0) // bounded by the test's timeout
			usleep(1000);
		n += read_lines(w->other, seen);
	}
	access_log_free(w->log);
	w->log = NULL;
	assert_int_equal(n + read_lines(w->path, seen), MANY);
}

static void wait_unopened(const struct world *w, uint64_t n)
{
	for (int i = 0; i < 3000 && access_log_numbers(w->log).n_unopened < n; i++)
		usleep(10000);
	assert_true(access_log_numbers(w->log).n_unopened >= n);
}

// OPS-243
static void a_path_that_cannot_be_opened_again_is_tried_until_it_can(void **state)
{
	struct world *w = *state;
	memset(seen, 0, sizeof(seen));
	start(w);
	tell(w, 0);
	wait_lines(w, 1);
	assert_int_equal(rename(w->path, w->other), 0);
	assert_int_equal(mkdir(w->path, 0700), 0);
	access_log_reopen(w->log);
	wait_unopened(w, 1);
	tell(w, 1);
	wait_lines(w, 2);
	assert_int_equal(access_log_numbers(w->log).error, 0); // nothing is lost
	assert_int_equal(access_log_numbers(w->log).reopen_error, EISDIR);
	wait_unopened(w, 2); // nobody asks again
	assert_int_equal(rmdir(w->path), 0);
	for (int i = 0; i < 3000 && access_log_numbers(w->log).reopen_error; i++)
		usleep(10000);
	assert_int_equal(access_log_numbers(w->log).reopen_error, 0);
	tell(w, 2);
	wait_lines(w, 3);
	assert_int_equal(read_lines(w->other, seen), 2);
	assert_int_equal(read_lines(w->path, seen), 1);
}

// OPS-38
static void a_file_that_was_cut_is_written_from_its_beginning(void **state)
{
	struct world *w = *state;
	struct stat s;
	start(w);
	for (unsigned i = 0; i < 100; i++)
		tell(w, i);
	wait_lines(w, 100);
	assert_int_equal(truncate(w->path, 0), 0);
	tell(w, 100);
	wait_lines(w, 101);
	assert_int_equal(stat(w->path, &s), 0);
	assert_int_equal(s.st_size, 9);
}

// OPS-36
static void a_fifo_without_a_reader_stops_nobody(void **state)
{
	struct world *w = *state;
	assert_int_equal(mkfifo(w->path, 0600), 0);
	start(w);
	for (int i = 0; i < 3000 && !access_log_numbers(w->log).n_ring; i++)
		for (unsigned k = 0; k < 10000; k++)
			tell(w, k);
	struct access_log_numbers n = access_log_numbers(w->log);
	assert_true(n.n_ring > 0);
	assert_int_equal(n.n_lines, 0);
	assert_int_equal(n.error, ENXIO);
}

static unsigned read_some(int fd, char *line, size_t size)
{
	for (int i = 0; i < 3000; i++) {
		ssize_t n = read(fd, line, size);
		if (n > 0)
			return (unsigned)n;
		usleep(10000);
	}
	fail_msg("nothing came");
	return 0;
}

// Until a pipe that nobody reads has not grown for a while.
static void wait_full(int fd)
{
	int before = 0, now = 0;
	for (int still = 0, i = 0; still < 10; still = now && now == before ? still + 1 : 0, i++) {
		assert_true(i < 3000);
		before = now;
		usleep(10000);
		assert_int_equal(ioctl(fd, FIONREAD, &now), 0);
	}
	assert_true(now > PIPE_BUF);
}

// OPS-36
static void a_reader_that_goes_and_comes_gets_whole_lines(void **state)
{
	struct world *w = *state;
	char text[100];
	assert_int_equal(mkfifo(w->path, 0600), 0);
	int fd = open(w->path, O_RDONLY | O_NONBLOCK);
	start(w);
	for (unsigned i = 0; i < 16000; i++) // more than a pipe holds
		tell(w, i);
	assert_int_equal(read_some(fd, text, 13), 13);
	assert_memory_equal(text, "/0000000\n/000", 13);
	wait_full(fd); // most often in the middle of a line: PIPE_BUF is no multiple of 9
	close(fd);
	for (int i = 0; i < 3000 && access_log_numbers(w->log).error != ENXIO; i++)
		usleep(10000);
	assert_int_equal(access_log_numbers(w->log).error, ENXIO);
	fd = open(w->path, O_RDONLY | O_NONBLOCK);
	unsigned n = read_some(fd, text, 18);
	assert_true(n >= 9 && text[0] == '/' && text[8] == '\n');
	assert_true(access_log_numbers(w->log).n_cut <= 1);
	close(fd);
}

// OPS-36
static void a_reader_that_does_not_read_ends_nothing_and_costs_no_time(void **state)
{
	struct world *w = *state;
	assert_int_equal(mkfifo(w->path, 0600), 0);
	int fd = open(w->path, O_RDONLY | O_NONBLOCK);
	start(w);
	for (int i = 0; i < 3000 && !access_log_numbers(w->log).n_ring; i++)
		for (unsigned k = 0; k < 10000; k++)
			tell(w, k);
	assert_true(access_log_numbers(w->log).n_ring > 0);
	access_log_look(w->log, 1);
	access_log_free(w->log); // within two seconds
	w->log = NULL;
	close(fd);
}

static bool is_taken(const struct world *w, unsigned ring)
{
	return spsc_room(&w->rings[ring]->ring) == LB_ACCESS_RECORDS;
}

static void fill(struct world *w, unsigned ring)
{
	while (spsc_room(&w->rings[ring]->ring))
		tell(w, ring);
}

// OPS-36: by whatever takes no more lines than one worker makes, as a slow disk does.
static void a_worker_that_is_faster_than_the_log_does_not_keep_it(void **state)
{
	struct world *w = *state;
	start_long(w, "/dev/null");
	fill(w, 0);
	tell(w, 1);
	for (int i = 0; i < 3000 && !is_taken(w, 1); i++)
		for (unsigned k = 0; k < 10000; k++)
			tell(w, 0);
	assert_true(is_taken(w, 1));
	while (!is_taken(w, 0)) // its end waits two seconds at most
		usleep(1000);
}

// OPS-36
static void room_for_lines_goes_round_among_workers(void **state)
{
	struct world *w = *state;
	static char text[1 << 16];
	assert_int_equal(mkfifo(w->path, 0600), 0);
	int fd = open(w->path, O_RDONLY | O_NONBLOCK);
	start_long(w, w->path);
	fill(w, 0);
	wait_full(fd);
	tell(w, 1);
	for (size_t n = 0; !is_taken(w, 1); n += read_some(fd, text, sizeof(text))) {
		assert_true(n < (size_t)8 * ACCESS_BUFFER);
		fill(w, 0);
	}
	close(fd);
}

static void what_rings_hold_at_the_end_is_written(void **state)
{
	struct world *w = *state;
	memset(seen, 0, sizeof(seen));
	start(w);
	for (unsigned i = 0; i < 10000; i++)
		tell(w, i);
	access_log_free(w->log);
	w->log = NULL;
	assert_int_equal(read_lines(w->path, seen), 10000);
}

static void a_folder_that_is_not_there_is_an_error(void **state)
{
	struct world *w = *state;
	struct lb_err err = {.text = ""};
	const struct access_place own = {.kind = ACCESS_FILE, .path = "/proc/nonexistent/log"};
	struct access_log_conf conf = {.logs.own = &own};
	assert_int_not_equal(access_log_new(&conf, &w->log, &err), 0);
	assert_non_null(strstr(err.text, "/proc/nonexistent/log: No such file"));
}

// OPS-30, OPS-31
static void the_filter_tells_of_failures_statuses_long_ones_and_samples(void **state)
{
	const struct lb_access_filter f = {.sample = 1,
					      .min_ns = 1000,
					      .min_status = 500,
					      .causes = 1 << LB_CAUSE_TIMEOUT},
				      by_flag = {.sample = 1,
					      .min_status = 500,
					      .causes = LB_ACCESS_DELAYED};
	struct {
		struct lb_access_brief brief;
		bool is_told, is_sampled;
	} cases[] = {
		{{.status = 200, .grpc_status = LB_ACCESS_NO_GRPC}, false},
		{{.status = 200, .grpc_status = 0}, false},
		{{.status = 200, .grpc_status = 5}, true},
		{{.status = 499, .grpc_status = LB_ACCESS_NO_GRPC}, false},
		{{.status = 500, .grpc_status = LB_ACCESS_NO_GRPC}, true},
		{{.status = 200, .ended_ns = 999}, false},
		{{.status = 200, .ended_ns = 1000}, true},
		{{.status = 200}, true, true},
		{{.status = 504, .cause = LB_CAUSE_TIMEOUT}, true},
		{{.status = 404, .cause = LB_CAUSE_NO_ROUTE}, false},
		{{.status = 404, .cause = LB_CAUSE_NO_ROUTE}, true, true},
		{{.status = 503, .cause = LB_CAUSE_NO_ROUTE, .ended_ns = 999}, false},
		{{.status = 503, .cause = LB_CAUSE_NO_ROUTE, .ended_ns = 1000}, true},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cases[i].brief.draw = !cases[i].is_sampled;
		assert_int_equal(lb_access_wants(&f, &cases[i].brief), cases[i].is_told);
		cases[i].brief.delayed = true; // OPS-301: whatever became of it
		assert_int_equal(lb_access_wants(&f, &cases[i].brief), cases[i].is_told);
		assert_true(lb_access_wants(&by_flag, &cases[i].brief));
	}
}

// OPS-32
static void a_full_ring_drops_and_counts(void **state)
{
	struct world *w = *state;
	for (unsigned i = 0; i < 2 * (LB_ACCESS_RECORDS + 7); i++)
		tell(w, i);
	assert_int_equal(w->rings[0]->n_dropped, 7);
	assert_int_equal(w->rings[1]->n_dropped, 7);
	struct lb_access_record a;
	assert_true(spsc_read(&w->rings[1]->ring, &a)); // the oldest are kept
	assert_memory_equal(lb_access_get(&a, LB_ACCESS_PATH).p, "/0000001", 8);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

// OPS-56
static void what_was_told_can_be_read_again(void **state)
{
	struct world *w = *state;
	static struct access_recent_entry e;
	char room[ACCESS_LINE_MAX];
	struct access_line line = {.p = room, .size = sizeof(room)};
	uint64_t number = 5, n_lost = 0;
	start(w);
	for (unsigned i = 0; i < ACCESS_RECENT + 9; i++)
		tell(w, 2 * i); // of the first worker
	wait_lines(w, ACCESS_RECENT + 9);
	struct access_recent *recent = access_log_recent(w->log);
	assert_int_equal(access_recent_count(recent), ACCESS_RECENT + 9);
	assert_true(access_recent_read(recent, &number, &e, &n_lost));
	assert_int_equal(n_lost, 4);
	assert_int_equal(number, 10);
	access_log_print(w->log, &e, false, &line);
	assert_int_equal(line.len, strlen("/0000018\n"));
	assert_memory_equal(room, "/0000018\n", line.len);
	line.len = 0;
	access_log_print(w->log, &e, true, &line);
	room[line.len] = 0;
	assert_non_null(strstr(room, "\"path\":\"/0000018\""));
	number = ACCESS_RECENT + 9;
	assert_false(access_recent_read(recent, &number, &e, &n_lost));
}

// OPS-323: whose place is another's, or that has another address.
static void ops_323_a_frontend_goes_by_what_it_is_called_now(void **state)
{
	struct world *w = *state;
	static struct access_recent_entry e;
	char room[ACCESS_LINE_MAX];
	struct access_line line = {.p = room, .size = sizeof(room)};
	uint64_t number = 0, n_lost = 0;
	const struct access_log_frontend other = {.name = "other"};
	start(w);
	access_log_rename(w->log, 0, &other);
	access_log_rename(w->log, 0, &(struct access_log_frontend){.name = "newest"});
	access_log_rename(NULL, 0, &other);
	tell(w, 0);
	wait_lines(w, 1);
	assert_true(access_recent_read(access_log_recent(w->log), &number, &e, &n_lost));
	access_log_print(w->log, &e, true, &line);
	room[line.len] = 0;
	assert_non_null(strstr(room, "\"frontend\":\"newest\""));
	// What was told before keeps its name.
	access_log_rename(w->log, 0, &other);
	tell(w, 2);
	wait_lines(w, 2);
	static const char *const names[] = {"\"frontend\":\"newest\"", "\"frontend\":\"other\""};
	for (number = 0; number < 2;) {
		const char *name = names[number];
		line.len = 0;
		assert_true(access_recent_read(access_log_recent(w->log), &number, &e, &n_lost));
		access_log_print(w->log, &e, true, &line);
		room[line.len] = 0;
		assert_non_null(strstr(room, name));
	}
}

RUN_SUITE("ctrl/access_log", CASE(what_was_told_can_be_read_again),
	CASE(ops_323_a_frontend_goes_by_what_it_is_called_now),
	CASE(renamed_files_lose_and_double_nothing),
	CASE(a_path_that_cannot_be_opened_again_is_tried_until_it_can),
	CASE(a_file_that_was_cut_is_written_from_its_beginning),
	CASE(a_fifo_without_a_reader_stops_nobody),
	CASE(a_reader_that_goes_and_comes_gets_whole_lines),
	CASE(a_reader_that_does_not_read_ends_nothing_and_costs_no_time),
	CASE(a_worker_that_is_faster_than_the_log_does_not_keep_it),
	CASE(room_for_lines_goes_round_among_workers), CASE(what_rings_hold_at_the_end_is_written),
	CASE(a_folder_that_is_not_there_is_an_error),
	CASE(the_filter_tells_of_failures_statuses_long_ones_and_samples),
	CASE(a_full_ring_drops_and_counts))
