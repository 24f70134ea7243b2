// SPDX-License-Identifier: Apache-2.0
// Logs that listeners ask for: where they may be, who gets which line, and how they go.
#include "ctrl/access_log/access_log.h"
#include "ctrl/access_log/line.h"
#include "ctrl/access_log/logs.h"
#include "ctrl/access_log/place.h"
#include "ctrl/access_log/want.h"
#include "ctrl/loop.h"
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "lb/pick/access_set.h"
#include "tests/support/check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct world {
	char folder[64], xds[96], outside[96], own[96];
	struct lb_access *ring;
	struct access_log *log;
	char told[1024]; // of what can't be
	bool passes; // the last of it
};

static int set_up(void **state)
{
	static struct world w;
	memset(&w, 0, sizeof(w));
	log_set_level(LOG_LEVEL_ERROR);
	signal(SIGPIPE, SIG_IGN);
	strcpy(w.folder, "/tmp/shunt-logs-XXXXXX");
	assert_non_null(mkdtemp(w.folder));
	snprintf(w.xds, sizeof(w.xds), "%s/xds", w.folder);
	snprintf(w.outside, sizeof(w.outside), "%s/outside", w.folder);
	snprintf(w.own, sizeof(w.own), "%s/own.log", w.folder);
	assert_int_equal(mkdir(w.xds, 0700), 0);
	assert_int_equal(mkdir(w.outside, 0700), 0);
	assert_non_null(w.ring = lb_access_new(NULL));
	*state = &w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;
	char command[128];
	access_log_free(w->log);
	lb_access_free(w->ring);
	snprintf(command, sizeof(command), "rm -r %s", w->folder);
	return system(command);
}

static void start_with(
	struct world *w, const struct access_place *own, const char *directory, bool has_streams)
{
	static const struct access_log_frontend front = {.name = "front"};
	struct lb_err err = {.text = ""};
	static const struct access_cluster cluster = {"als", "127.0.0.1:1"};
	struct access_log_conf conf = {.logs = {.own = own,
					       .text_format = own ? "own %REQ(:PATH)%" : NULL,
					       .xds_directory = directory,
					       .xds_stdout = has_streams,
					       .xds_collectors = &cluster,
					       .n_xds_collectors = 1},
		.frontends = &front,
		.n_frontends = 1,
		.workers = &w->ring,
		.n_workers = 1,
		.clock_ns = loop_clock_ns,
		.wall_ns = loop_wall_ns};
	if (access_log_new(&conf, &w->log, &err))
		fail_msg("%s", err.text);
}

static void start(struct world *w)
{
	start_with(w, NULL, w->xds, false);
}

static void on_told(void *ctx, uint32_t index, const char *reason, bool passes)
{
	struct world *w = ctx;
	w->passes = passes;
	size_t len = strlen(w->told);
	snprintf(w->told + len, sizeof(w->told) - len, "%u: %s\n", index, reason);
}

static struct lb_access_set *want(struct world *w, const struct access_want *wants, uint32_t n)
{
	w->told[0] = 0;
	return access_log_want(w->log, wants, n, on_told, w);
}

static struct access_want file(const char *path, const char *format)
{
	return (struct access_want){
		.name = "log", .place = {.kind = ACCESS_FILE, .path = path}, .format = format};
}

static void tell(struct world *w, uint64_t logs, const char *path)
{
	struct lb_access_record a;
	lb_access_begin(&a);
	a.logs = logs;
	lb_access_put(&a, LB_ACCESS_PATH, str_from(path));
	lb_access_tell(w->ring, &a);
}

static void wait_lines(const struct world *w, uint64_t n)
{
	for (int i = 0; i < 3000 && access_log_numbers(w->log).n_lines < n; i++)
		usleep(10000);
	assert_int_equal(access_log_numbers(w->log).n_lines, n);
}

static char *read_whole(const char *folder, const char *name)
{
	static char text[1 << 16];
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = 0;
	fclose(f);
	return text;
}

static char *below(const struct world *w, const char *name)
{
	static char paths[8][256];
	static unsigned n;
	char *path = paths[n++ % 8];
	snprintf(path, sizeof(paths[0]), "%s/%s", w->xds, name);
	return path;
}

// OPS-43
static void paths_outside_of_the_directory_are_refused(void **state)
{
	static const struct {
		const char *path, *says; // NULL = permitted
	} rows[] = {
		{"/logs/xds/a", NULL},
		{"/logs/xds/a.b/c..d/...", NULL},
		{"/logs/xds", "is not below /logs/xds"},
		{"/logs/xds/", "a part that is empty"},
		{"/logs/xdsx/a", "is not below /logs/xds"},
		{"/logs/xd", "is not below"},
		{"/etc/passwd", "is not below"},
		{"a", "is not below"},
		{"logs/xds/a", "is not below"},
		{"", "is not below"},
		{"/logs/xds/..", "a part that is empty, \".\", \"..\""},
		{"/logs/xds/../a", "\"..\""},
		{"/logs/xds/a/../../../etc/passwd", "\"..\""},
		{"/logs/xds/./a", "\".\""},
		{"/logs/xds//a", "empty"},
		{"/logs/xds/a/", "empty"},
		{"/logs/xds/a\nb", "not text"},
		{"/logs/xds/a\x7f", "not text"},
		{"/logs/../logs/xds/a", "is not below"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct access_place p = {
			.kind = ACCESS_FILE, .path = rows[i].path, .below = "/logs/xds"};
		struct lb_err err = {.text = ""};
		int rc = access_place_check(&p, &err);
		if ((rc == 0) != !rows[i].says || (rc && !strstr(err.text, rows[i].says)))
			fail_msg("%s: %d \"%s\"", rows[i].path, rc, err.text);
	}
	char longer[ACCESS_PATH_MAX + 2];
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	memcpy(longer, "/logs/xds/", 10);
	const struct access_place p = {.kind = ACCESS_FILE, .path = longer, .below = "/logs/xds"};
	struct lb_err err;
	assert_int_equal(access_place_check(&p, &err), -EINVAL);
}

// What opening says of it; 0 = it is opened.
static int open_error(const struct world *w, const char *name, int own_fd)
{
	const struct access_place p = {
		.kind = ACCESS_FILE, .path = below(w, name), .below = w->xds};
	int fd = access_place_open(&p, own_fd), error = fd < 0 ? errno : 0;
	if (fd >= 0)
		close(fd);
	return error;
}

// OPS-43
static void links_and_what_is_no_file_are_not_written_to(void **state)
{
	struct world *w = *state;
	assert_int_equal(symlink(w->outside, below(w, "folder")), 0);
	assert_int_equal(symlink("../outside/file", below(w, "link")), 0);
	assert_int_equal(mkfifo(below(w, "fifo"), 0600), 0);
	int reader = open(below(w, "fifo"), O_RDONLY | O_NONBLOCK);
	assert_int_equal(mkdir(below(w, "real"), 0700), 0);
	assert_int_equal(open_error(w, "folder/log", -1), ELOOP);
	assert_int_equal(open_error(w, "link", -1), ELOOP);
	assert_int_equal(open_error(w, "fifo", -1), EPERM);
	assert_int_equal(open_error(w, "missing/log", -1), ENOENT);
	assert_int_equal(open_error(w, "real", -1), EISDIR);
	assert_int_equal(open_error(w, "real/log", -1), 0);
	assert_int_equal(rmdir(w->outside), 0); // nothing is in it
	close(reader);
}

// OPS-43: neither by another name nor by another way to its folder.
static void files_with_other_names_and_our_own_are_not_written_to(void **state)
{
	struct world *w = *state;
	char other[128];
	snprintf(other, sizeof(other), "%s/file", w->outside);
	int fd = open(other, O_WRONLY | O_CREAT, 0600), std_err = dup(STDERR_FILENO);
	assert_int_equal(link(other, below(w, "hard")), 0);
	assert_int_equal(open_error(w, "hard", -1), EMLINK);
	assert_non_null(strstr(access_place_error(EMLINK), "hard links"));
	assert_int_equal(open_error(w, "hard", fd), EEXIST);
	assert_int_equal(unlink(other), 0);
	assert_int_equal(open_error(w, "hard", -1), 0); // its only name
	assert_int_equal(open_error(w, "hard", fd), EEXIST);
	assert_non_null(strstr(access_place_error(EEXIST), "of its own"));
	assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	int error = open_error(w, "hard", -1);
	dup2(std_err, STDERR_FILENO);
	assert_int_equal(error, EEXIST);
	assert_int_equal(open_error(w, "hard", -1), 0);
	close(std_err);
	close(fd);
}

// OPS-43: the same folder by another name, which shunt.yaml's check cannot see.
static void the_log_of_shunt_yaml_is_not_a_listeners(void **state)
{
	struct world *w = *state;
	char link[128], path[160];
	snprintf(link, sizeof(link), "%s/link", w->folder);
	snprintf(path, sizeof(path), "%s/own.log", link);
	assert_int_equal(symlink(w->xds, link), 0);
	const struct access_place own = {.kind = ACCESS_FILE, .path = path};
	start_with(w, &own, w->xds, false);
	const struct access_want one = file(below(w, "own.log"), "other");
	struct lb_access_set *s = want(w, &one, 1);
	tell(w, LB_ACCESS_OWN | s->logs[0].bit, "/1");
	for (int i = 0; i < 3000 && access_log_numbers(w->log).error != EEXIST; i++)
		usleep(10000);
	wait_lines(w, 1);
	assert_int_equal(access_log_numbers(w->log).error, EEXIST);
	assert_string_equal(read_whole(w->xds, "own.log"), "own /1\n");
	lb_access_set_put(s);
}

// OPS-42
static void what_is_not_permitted_is_named(void **state)
{
	struct world *w = *state;
	const struct access_want wants[] = {file("/tmp/x", "x"),
		{.name = "o", .place = {.kind = ACCESS_STDOUT}, .format = "x"},
		{.name = "e", .place = {.kind = ACCESS_STDERR}, .format = "x"}};
	assert_null(want(w, wants, 3)); // without any log in shunt.yaml
	assert_string_equal(w->told,
		"0: shunt.yaml permits listeners no access log (access_log)\n"
		"1: shunt.yaml permits listeners no access log (access_log)\n"
		"2: shunt.yaml permits listeners no access log (access_log)\n");
	const struct access_place own = {.kind = ACCESS_FILE, .path = w->own};
	start_with(w, &own, NULL, false);
	assert_null(want(w, wants, 3));
	assert_string_equal(w->told,
		"0: /tmp/x: shunt.yaml names no directory for it (access_log.xds_directory)\n"
		"1: stdout: shunt.yaml does not permit it (access_log.xds_stdout)\n"
		"2: stderr: shunt.yaml does not permit it (access_log.xds_stdout)\n");
	assert_null(want(w, NULL, 0));
	assert_string_equal(w->told, "");
}

// OPS-217
static void a_collector_is_one_that_shunt_yaml_knows(void **state)
{
	struct world *w = *state;
	struct access_want wants[] = {
		{.place = {.kind = ACCESS_COLLECTOR, .path = "als", .log_name = "a"},
			.form = ACCESS_ENTRY,
			.format = ""},
		{.place = {.kind = ACCESS_COLLECTOR, .path = "127.0.0.1:1", .log_name = "a"},
			.form = ACCESS_ENTRY,
			.format = ""},
	};
	start(w);
	struct lb_access_set *s = want(w, wants, 2);
	assert_int_equal(s->n, 1);
	assert_string_equal(w->told, "1: 127.0.0.1:1: shunt.yaml names no address of this cluster "
				     "(access_log.xds_collectors)\n");
	lb_access_set_put(s);
}

// OPS-217
static void there_are_so_many_collectors_at_a_time(void **state)
{
	struct world *w = *state;
	struct access_want wants[ACCESS_XDS_COLLECTORS + 1];
	char names[ACCESS_XDS_COLLECTORS + 1][8];
	for (unsigned i = 0; i <= ACCESS_XDS_COLLECTORS; i++) {
		snprintf(names[i], sizeof(names[i]), "%u", i);
		wants[i] = (struct access_want){
			.place = {.kind = ACCESS_COLLECTOR, .path = "als", .log_name = names[i]},
			.form = ACCESS_ENTRY,
			.format = ""};
	}
	start(w);
	struct lb_access_set *s = want(w, wants, ACCESS_XDS_COLLECTORS + 1);
	assert_int_equal(s->n, ACCESS_XDS_COLLECTORS);
	assert_string_equal(w->told, "16: 127.0.0.1:1: there are 16 collectors already\n");
	assert_true(w->passes);
	lb_access_set_put(s);
}

// OPS-42
static void a_format_that_is_wrong_leaves_the_others(void **state)
{
	struct world *w = *state;
	start(w);
	const struct access_want wants[] = {
		file(below(w, "a"), "%COOKIE%"), file(below(w, "a"), "%PROTOCOL%")};
	struct lb_access_set *s = want(w, wants, 2);
	assert_string_equal(w->told, "0: format: %COOKIE% is not a known operator\n");
	assert_false(w->passes);
	assert_int_equal(s->n, 1);
	lb_access_set_put(s);
}

// OPS-40
static void each_log_has_its_own_lines_in_its_own_form(void **state)
{
	struct world *w = *state;
	const struct access_place own = {.kind = ACCESS_FILE, .path = w->own};
	start_with(w, &own, w->xds, false);
	struct access_want wants[] = {file(below(w, "a"), "a %REQ(:PATH)%"),
		file(below(w, "b"), "{\"p\":\"%REQ(:PATH)%\"}"),
		file(below(w, "a"), "again %REQ(:PATH)%")};
	wants[1].form = ACCESS_JSON_TYPED;
	struct lb_access_set *s = want(w, wants, 3);
	assert_int_equal(s->n, 3);
	tell(w, LB_ACCESS_OWN | s->logs[0].bit, "/1");
	tell(w, s->logs[1].bit, "/2");
	tell(w, LB_ACCESS_OWN | s->logs[0].bit | s->logs[1].bit | s->logs[2].bit, "/3");
	wait_lines(w, 7);
	assert_string_equal(read_whole(w->folder, "own.log"), "own /1\nown /3\n");
	assert_string_equal(read_whole(w->xds, "a"), "a /1\na /3\nagain /3\n");
	assert_string_equal(read_whole(w->xds, "b"), "{\"p\":\"/2\"}\n{\"p\":\"/3\"}\n");
	lb_access_set_put(s);
}

// OPS-40: what is the same for several listeners is one, and those of one file never mix lines.
static void logs_that_are_the_same_are_one(void **state)
{
	struct world *w = *state;
	start(w);
	const struct access_want one = file(below(w, "a"), "x"), other = file(below(w, "a"), "y");
	struct lb_access_set *a = want(w, &one, 1), *b = want(w, &one, 1);
	struct lb_access_set *c = want(w, &other, 1);
	assert_int_equal(a->logs[0].bit, b->logs[0].bit);
	assert_int_not_equal(a->logs[0].bit, c->logs[0].bit);
	lb_access_set_put(a);
	lb_access_set_put(b);
	lb_access_set_put(c);
}

static unsigned n_descriptors(void)
{
	unsigned n = 0;
	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static struct access_logs *logs_alone(const struct world *w)
{
	const struct access_logs_conf conf = {.xds_directory = w->xds, .xds_stdout = true};
	struct access_logs *l = NULL;
	struct lb_err err = {.text = ""};
	if (access_logs_new(&conf, &l, &err))
		fail_msg("%s", err.text);
	return l;
}

// OPS-36: with a disk that hangs it is the writer who waits.
static void files_are_opened_and_closed_by_the_writer(void **state)
{
	struct world *w = *state;
	static struct access_logs_now now;
	struct access_logs *l = logs_alone(w);
	const struct access_want one = file(below(w, "a"), "x");
	unsigned n = n_descriptors();
	struct lb_access_set *s = access_logs_want(l, &one, 1, on_told, w);
	assert_non_null(s);
	assert_int_equal(access(one.place.path, F_OK), -1);
	access_logs_look(l, &now); // the writer
	assert_int_equal(now.n, 1);
	access_output_open(now.outputs[0], NS_PER_SECOND);
	assert_int_equal(access(one.place.path, F_OK), 0);
	assert_int_equal(n_descriptors(), n + 1);
	lb_access_set_put(s);
	access_logs_sweep(l);
	access_logs_sweep(l);
	assert_int_equal(n_descriptors(), n + 1);
	access_logs_look(l, &now); // the writer
	access_logs_let_go(l, &now, NS_PER_SECOND);
	assert_int_equal(n_descriptors(), n);
	access_logs_sweep(l);
	access_logs_free(l);
}

// Its output has another user, or gets one before ctrl has seen that it is closed.
static void a_file_that_is_wanted_again_is_opened_again(void **state)
{
	struct world *w = *state;
	static struct access_logs_now now;
	struct access_logs *l = logs_alone(w);
	const char *path = below(w, "a");
	const struct access_want one = file(path, "x"), other = file(path, "y");
	unsigned n = n_descriptors();
	struct lb_access_set *a = access_logs_want(l, &one, 1, on_told, w);
	struct lb_access_set *b = access_logs_want(l, &other, 1, on_told, w);
	access_logs_look(l, &now);
	assert_int_equal(now.n, 1);
	access_output_open(now.outputs[0], NS_PER_SECOND);
	for (int i = 0; i < 2; i++) {
		lb_access_set_put(i ? b : a);
		access_logs_sweep(l);
		access_logs_look(l, &now);
		access_logs_let_go(l, &now, NS_PER_SECOND);
		assert_int_equal(n_descriptors(), i ? n : n + 1);
	}
	a = access_logs_want(l, &one, 1, on_told, w);
	access_logs_sweep(l); // takes the other two away
	access_logs_look(l, &now);
	assert_int_equal(now.n, 1);
	access_output_open(now.outputs[0], NS_PER_SECOND); // at once
	assert_int_equal(n_descriptors(), n + 1);
	lb_access_set_put(a);
	access_logs_free(l);
	assert_int_equal(n_descriptors(), n);
}

static void what_cannot_be_opened_is_tried_once_a_second(void **state)
{
	struct world *w = *state;
	static struct access_logs_now now;
	struct access_logs *l = logs_alone(w);
	const struct access_want one = file(below(w, "missing/a"), "x");
	struct lb_access_set *s = access_logs_want(l, &one, 1, on_told, w);
	assert_non_null(s);
	access_logs_look(l, &now);
	struct access_output *o = now.outputs[0];
	access_output_open(o, NS_PER_SECOND);
	assert_int_equal(o->error, ENOENT);
	assert_int_equal(access_logs_totals(l).error, ENOENT);
	assert_int_equal(mkdir(below(w, "missing"), 0700), 0);
	access_output_open(o, 2 * NS_PER_SECOND - 1);
	assert_int_equal(o->fd, -1);
	access_output_open(o, 2 * NS_PER_SECOND);
	assert_true(o->fd >= 0);
	assert_int_equal(o->error, 0);
	lb_access_set_put(s);
	access_logs_free(l);
}

static unsigned n_said; // of a file that cannot be opened

static void on_line(
	void *ctx, uint64_t wall_ns, enum log_level level, const char *msg, const char *rest)
{
	n_said += strstr(rest, "missing/a") && strstr(rest, "No such file");
}

// OPS-42: what was told while it could not be opened is written then.
static void a_file_whose_folder_comes_later_has_all_lines(void **state)
{
	struct world *w = *state;
	start(w);
	n_said = 0;
	log_set_sink(on_line, NULL);
	const struct access_want one = file(below(w, "missing/a"), "%REQ(:PATH)%");
	struct lb_access_set *s = want(w, &one, 1);
	assert_string_equal(w->told, "");
	tell(w, s->logs[0].bit, "/1");
	for (int i = 0; i < 3000 && access_log_numbers(w->log).error != ENOENT; i++)
		usleep(10000);
	for (uint64_t i = 1; i < 100; i++)
		access_log_look(w->log, i * NS_PER_SECOND);
	log_set_sink(NULL, NULL);
	assert_int_equal(n_said, 1);
	assert_int_equal(mkdir(below(w, "missing"), 0700), 0);
	wait_lines(w, 1);
	assert_string_equal(read_whole(w->xds, "missing/a"), "/1\n");
	assert_int_equal(access_log_numbers(w->log).error, 0);
	lb_access_set_put(s);
}

static void write_line(struct access_logs *l, uint64_t logs)
{
	struct lb_access_record a;
	lb_access_begin(&a);
	a.logs = logs;
	access_logs_write(l, &(struct access_view){.record = &a, .frontend = "front"});
}

// OPS-45: of an output that nobody takes lines from, one that leaves is not waited for while
// another log has the output, and the last one only so long.
static void those_that_leave_do_not_wait_for_a_stuck_reader(void **state)
{
	struct world *w = *state;
	static struct access_logs_now now;
	struct access_logs *l = logs_alone(w);
	const struct access_want a = {.name = "a", .place = {.kind = ACCESS_STDOUT}, .format = "a"},
				 b = {.name = "b", .place = {.kind = ACCESS_STDOUT}, .format = "b"};
	struct lb_access_set *first = access_logs_want(l, &a, 1, on_told, w);
	struct lb_access_set *second = access_logs_want(l, &b, 1, on_told, w);
	write_line(l, first->logs[0].bit);
	write_line(l, second->logs[0].bit);
	lb_access_set_put(first);
	access_logs_sweep(l);
	access_logs_look(l, &now);
	assert_int_equal(now.leaving, 2);
	access_logs_let_go(l, &now, NS_PER_SECOND);
	assert_int_equal(now.leaving, 0);
	assert_int_equal(access_output_n_waiting(now.outputs[0]), 2); // the other one's to write
	lb_access_set_put(second);
	access_logs_sweep(l);
	access_logs_look(l, &now);
	access_logs_let_go(l, &now, 2 * NS_PER_SECOND);
	assert_int_equal(now.leaving, 4);
	access_logs_let_go(l, &now, 2 * NS_PER_SECOND + ACCESS_LAST_NS - 1);
	assert_int_equal(now.leaving, 4);
	access_logs_let_go(l, &now, 2 * NS_PER_SECOND + ACCESS_LAST_NS);
	assert_int_equal(now.n, 0);
	access_logs_sweep(l);
	assert_int_equal(access_logs_totals(l).n_cut, 2);
	access_logs_free(l);
}

// OPS-45: records that are in the rings when the listener changes are still written.
static void a_log_that_goes_has_all_its_lines(void **state)
{
	struct world *w = *state;
	char line[32];
	start(w);
	unsigned n_before = n_descriptors();
	const struct access_want one = file(below(w, "a"), "%REQ(:PATH)%");
	for (unsigned round = 0; round < 20; round++) {
		struct lb_access_set *s = want(w, &one, 1);
		assert_non_null(s);
		for (unsigned i = 0; i < 100; i++) {
			snprintf(line, sizeof(line), "/%u", round * 100 + i);
			tell(w, s->logs[0].bit, line);
		}
		lb_access_set_put(s); // no snapshot has it any more
		access_log_look(w->log, 1);
	}
	wait_lines(w, 2000);
	for (int i = 0; i < 3000 && n_descriptors() > n_before; i++) {
		usleep(10000);
		access_log_look(w->log, 1);
	}
	assert_int_equal(n_descriptors(), n_before);
	const char *at = read_whole(w->xds, "a");
	for (unsigned i = 0; i < 2000; i++) {
		int len = snprintf(line, sizeof(line), "/%u\n", i);
		assert_memory_equal(at, line, (size_t)len);
		at += len;
	}
	assert_int_equal(*at, 0);
}

// OPS-43
static void there_are_so_many_files_at_a_time(void **state)
{
	struct world *w = *state;
	struct access_want wants[ACCESS_XDS_FILES + 1];
	char paths[ACCESS_XDS_FILES + 1][128];
	start(w);
	for (unsigned i = 0; i <= ACCESS_XDS_FILES; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s/%u", w->xds, i);
		wants[i] = file(paths[i], "x");
	}
	struct lb_access_set *s = want(w, wants, ACCESS_XDS_FILES + 1);
	assert_int_equal(s->n, ACCESS_XDS_FILES);
	assert_non_null(strstr(w->told, "there are 32 files already"));
	assert_true(w->passes);
	assert_int_equal(access(paths[ACCESS_XDS_FILES], F_OK), -1);
	lb_access_set_put(s);
	for (int i = 0; i < 3000; i++) { // until they have gone
		access_log_look(w->log, 1);
		s = want(w, &wants[ACCESS_XDS_FILES], 1);
		if (s)
			break;
		usleep(10000);
	}
	assert_non_null(s);
	lb_access_set_put(s);
}

// OPS-43
static void there_are_so_many_logs_at_a_time(void **state)
{
	struct world *w = *state;
	struct access_want wants[ACCESS_WANTS_MAX + 1];
	char formats[ACCESS_WANTS_MAX + 1][8];
	start(w);
	for (unsigned i = 0; i <= ACCESS_WANTS_MAX; i++) {
		snprintf(formats[i], sizeof(formats[i]), "%u", i);
		wants[i] = file(below(w, "a"), formats[i]);
		wants[i].place.path = wants[0].place.path;
	}
	struct lb_access_set *s = want(w, wants, ACCESS_WANTS_MAX + 1);
	assert_int_equal(s->n, ACCESS_WANTS_MAX);
	assert_string_equal(w->told, "62: there are 62 logs of listeners already\n");
	assert_true(w->passes);
	lb_access_set_put(s);
}

// OPS-46
static void one_that_is_stuck_does_not_stop_the_others(void **state)
{
	struct world *w = *state;
	assert_int_equal(mkfifo(w->own, 0600), 0);
	const struct access_place own = {.kind = ACCESS_FILE, .path = w->own};
	start_with(w, &own, w->xds, false); // nobody reads it
	const struct access_want one = file(below(w, "a"), "%REQ(:PATH):1%");
	struct lb_access_set *s = want(w, &one, 1);
	char path[384];
	memset(path, '/', sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	uint64_t n = 0;
	for (int i = 0; i < 10; i++) {
		for (unsigned k = 0; k < 1000; k++) // more than waits for the other
			tell(w, LB_ACCESS_OWN | s->logs[0].bit, path);
		wait_lines(w, n += 1000);
	}
	struct access_log_numbers numbers = access_log_numbers(w->log);
	assert_int_equal(numbers.n_ring, 0);
	assert_true(numbers.n_cut > 0);
	assert_int_equal(numbers.error, ENXIO);
	lb_access_set_put(s);
}

// OPS-45
static void renamed_files_of_all_logs_are_made_anew(void **state)
{
	struct world *w = *state;
	const struct access_place own = {.kind = ACCESS_FILE, .path = w->own};
	start_with(w, &own, w->xds, false);
	const struct access_want one = file(below(w, "a"), "%REQ(:PATH)%");
	struct lb_access_set *s = want(w, &one, 1);
	tell(w, LB_ACCESS_OWN | s->logs[0].bit, "/1");
	wait_lines(w, 2);
	assert_int_equal(rename(below(w, "a"), below(w, "a.1")), 0);
	access_log_reopen(w->log);
	for (int i = 0; i < 3000 && access(below(w, "a"), F_OK); i++)
		usleep(10000);
	tell(w, LB_ACCESS_OWN | s->logs[0].bit, "/2");
	wait_lines(w, 4);
	assert_string_equal(read_whole(w->xds, "a.1"), "/1\n");
	assert_string_equal(read_whole(w->xds, "a"), "/2\n");
	assert_string_equal(read_whole(w->folder, "own.log"), "own /1\nown /2\n");
	lb_access_set_put(s);
}

// OPS-43: a link that somebody put there meanwhile is not followed either.
static void a_link_in_place_of_a_file_is_not_followed_by_rotation(void **state)
{
	struct world *w = *state;
	start(w);
	const struct access_want one = file(below(w, "a"), "%REQ(:PATH)%");
	struct lb_access_set *s = want(w, &one, 1);
	tell(w, s->logs[0].bit, "/1");
	wait_lines(w, 1);
	assert_int_equal(rename(below(w, "a"), below(w, "a.1")), 0);
	assert_int_equal(symlink("../outside/file", below(w, "a")), 0);
	access_log_reopen(w->log);
	tell(w, s->logs[0].bit, "/2");
	wait_lines(w, 2);
	assert_string_equal(read_whole(w->xds, "a.1"), "/1\n/2\n");
	assert_int_equal(rmdir(w->outside), 0);
	lb_access_set_put(s);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

RUN_SUITE("ctrl/access_log/logs", CASE(paths_outside_of_the_directory_are_refused),
	CASE(links_and_what_is_no_file_are_not_written_to),
	CASE(files_with_other_names_and_our_own_are_not_written_to),
	CASE(the_log_of_shunt_yaml_is_not_a_listeners), CASE(what_is_not_permitted_is_named),
	CASE(a_collector_is_one_that_shunt_yaml_knows),
	CASE(there_are_so_many_collectors_at_a_time),
	CASE(a_format_that_is_wrong_leaves_the_others),
	CASE(each_log_has_its_own_lines_in_its_own_form), CASE(logs_that_are_the_same_are_one),
	CASE(files_are_opened_and_closed_by_the_writer),
	CASE(a_file_that_is_wanted_again_is_opened_again),
	CASE(what_cannot_be_opened_is_tried_once_a_second),
	CASE(a_file_whose_folder_comes_later_has_all_lines),
	CASE(those_that_leave_do_not_wait_for_a_stuck_reader),
	CASE(a_log_that_goes_has_all_its_lines), CASE(there_are_so_many_files_at_a_time),
	CASE(there_are_so_many_logs_at_a_time), CASE(one_that_is_stuck_does_not_stop_the_others),
	CASE(renamed_files_of_all_logs_are_made_anew),
	CASE(a_link_in_place_of_a_file_is_not_followed_by_rotation))
