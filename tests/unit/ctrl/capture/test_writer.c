// SPDX-License-Identifier: Apache-2.0
#include "ctrl/access_log/place.h"
#include "ctrl/capture/pcapng.h"
#include "ctrl/capture/writer.h"
#include "lb/base/time.h"
#include "tests/support/check.h"
#include "tlshs/keylog.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define PACKET 6
#define STATISTICS 5
#define SECRETS 10

static char folder[64], file[96];
static struct lb_capture *workers[2];
static uint64_t now_ns; // w: the test (relaxed), r: the writer's thread

static uint64_t clock_ns(void)
{
	return __atomic_load_n(&now_ns, __ATOMIC_RELAXED);
}

static uint64_t wall_ns(void)
{
	return clock_ns() + 1000 * NS_PER_SECOND;
}

static int set_up(void **state)
{
	strcpy(folder, "/tmp/shunt-capture-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/a.pcapng", folder);
	__atomic_store_n(&now_ns, NS_PER_SECOND, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++) {
		workers[i] = lb_capture_new(1 << 19);
		workers[i]->ask.snaplen = LB_CAPTURE_SNAPLEN;
	}
	return 0;
}

static int tear_down(void **state)
{
	unlink(file);
	rmdir(folder);
	for (int i = 0; i < 2; i++)
		lb_capture_free(workers[i]);
	return 0;
}

static struct tlshs_keylog *keys; // NULL = none are wanted

static struct capture_writer *start(struct capture_bounds bounds)
{
	static const char *const names[] = {"rx_frames", "ip_not_ours"};
	const struct capture_port ports[] = {{"port0", "a", {2}}, {"port1", "b", {3}}};
	const struct access_place place = {
		.kind = ACCESS_FILE, .path = file, .below = folder, .is_new = true};
	const struct capture_writer_conf conf = {
		.place = &place,
		.application = "test",
		.comment = "",
		.workers = workers,
		.n_workers = 2,
		.ports = ports,
		.n_ports = 2,
		.net = {.names = names, .n = 2},
		.bounds = bounds,
		.keys = keys,
		.snaplen = LB_CAPTURE_SNAPLEN,
		.clock_ns = clock_ns,
		.wall_ns = wall_ns,
	};
	struct capture_writer *w = NULL;
	assert_int_equal(capture_writer_new(&conf, &w), 0);
	return w;
}

static const struct capture_bounds wide = {UINT64_MAX, 1 << 24, 60 * NS_PER_SECOND};

static void wait_for(const struct capture_writer *w, enum capture_phase phase)
{
	for (int i = 0; i < 10000 && capture_writer_phase(w) < phase; i++)
		nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
	assert_int_equal(capture_writer_phase(w), phase);
}

static struct capture_writer *start_open(struct capture_bounds bounds)
{
	struct capture_writer *w = start(bounds);
	wait_for(w, CAPTURE_RUNS);
	return w;
}

// In a turn of its own.
static struct lb_capture_record *put(int worker, uint64_t at_ns, uint32_t len)
{
	lb_capture_turn(workers[worker], at_ns);
	struct lb_capture_record *r = lb_capture_place(workers[worker], 1, LB_CAPTURE_RX, len);
	assert_non_null(r);
	memset(r->bytes, worker, r->kept);
	return r;
}

static struct capture_numbers finish(struct capture_writer *w)
{
	for (int i = 0; i < 2; i++)
		lb_capture_turn(workers[i], workers[i]->now_ns);
	capture_writer_finish(w);
	wait_for(w, CAPTURE_DONE);
	struct capture_numbers n = capture_writer_numbers(w);
	capture_writer_free(w);
	return n;
}

struct seen {
	size_t size; // of the file
	uint32_t n_packets, n_statistics;
	uint32_t queues[64]; // lengths of the packets, to tell them apart
	bool has_cause;
	uint32_t n_secrets, n_packets_before; // blocks of keys; packets in front of the last one
	uint64_t n_received; // of all interfaces, as their statistics say
};

// isb_ifrecv of a block of statistics
static uint64_t received(const uint8_t *block, uint32_t len)
{
	for (uint32_t at = 20; at + 4 <= len - 4;) {
		uint16_t option[2];
		uint64_t n;
		memcpy(option, block + at, sizeof(option));
		memcpy(&n, block + at + 4, sizeof(n));
		if (option[0] == 4)
			return n;
		at += 4 + ((option[1] + 3u) & ~3u);
	}
	fail_msg("statistics without what was received");
	return 0;
}

// The file's blocks are whole, and nothing is behind them.
static struct seen read_file(void)
{
	static uint8_t bytes[1 << 22];
	struct seen s = {0};
	FILE *f = fopen(file, "r");
	assert_non_null(f);
	s.size = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	size_t at = 0;
	while (at < s.size) {
		uint32_t head[8], last;
		assert_true(at + 12 <= s.size);
		memcpy(head, bytes + at, sizeof(head));
		assert_true(head[1] >= 12 && at + head[1] <= s.size);
		memcpy(&last, bytes + at + head[1] - 4, sizeof(last));
		assert_int_equal(last, head[1]);
		if (head[0] == PACKET && s.n_packets < 64)
			s.queues[s.n_packets] = head[6];
		s.n_secrets += head[0] == SECRETS;
		if (head[0] == SECRETS)
			s.n_packets_before = s.n_packets;
		s.n_packets += head[0] == PACKET;
		s.n_statistics += head[0] == STATISTICS;
		if (head[0] == STATISTICS)
			s.n_received += received(bytes + at, head[1]);
		s.has_cause |= memmem(bytes + at, head[1], "dropped: net.ip_not_ours", 24) != NULL;
		at += head[1];
	}
	return s;
}

static void frames_of_all_workers_are_in_the_file_by_time(void **state)
{
	struct capture_writer *w = start_open(wide);
	put(0, NS_PER_SECOND + 10, 100);
	put(0, NS_PER_SECOND + 30, 102);
	put(1, NS_PER_SECOND + 20, 101);
	put(1, NS_PER_SECOND + 40, 103)->cause = (struct lb_capture_cause){LB_CAPTURE_NET, 1};
	struct capture_numbers n = finish(w);
	struct seen s = read_file();
	assert_int_equal(n.n_frames, 4);
	assert_int_equal(n.n_bytes, s.size);
	assert_int_equal(s.n_received, 4);
	assert_int_equal(n.end, CAPTURE_STOPPED);
	assert_int_equal(s.n_packets, 4);
	assert_int_equal(s.n_statistics, 2);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(s.queues[i], 100 + i);
	assert_true(s.has_cause);
}

// OPS-104
static void it_ends_with_the_last_frame_of_the_count(void **state)
{
	struct capture_writer *w = start_open((struct capture_bounds){3, 1 << 24, UINT64_MAX / 2});
	for (int i = 0; i < 5; i++)
		put(0, NS_PER_SECOND, 100);
	lb_capture_turn(workers[0], workers[0]->now_ns);
	wait_for(w, CAPTURE_OVER);
	put(1, NS_PER_SECOND, 100); // comes too late
	struct capture_numbers n = finish(w);
	struct seen s = read_file();
	assert_int_equal(n.n_frames, 3);
	assert_int_equal(n.end, CAPTURE_COUNT);
	assert_int_equal(s.n_packets, 3);
	assert_int_equal(s.n_received, 6); // that were wanted
}

// OPS-104
static void a_file_is_no_larger_than_its_bound(void **state)
{
	struct capture_writer *w =
		start_open((struct capture_bounds){UINT64_MAX, 20000, UINT64_MAX / 2});
	for (int i = 0; i < 20; i++)
		put(0, NS_PER_SECOND, 1500);
	lb_capture_turn(workers[0], workers[0]->now_ns);
	wait_for(w, CAPTURE_OVER);
	struct capture_numbers n = finish(w);
	struct seen s = read_file();
	assert_int_equal(n.end, CAPTURE_SIZE);
	assert_true(s.n_packets > 5 && s.n_packets < 14);
	assert_int_equal(s.n_statistics, 2);
	assert_true(s.size <= 20000 && s.size == n.n_bytes);
}

// OPS-104
static void it_ends_after_its_time_with_and_without_frames(void **state)
{
	struct capture_bounds bounds = {UINT64_MAX, 1 << 24, 2 * NS_PER_SECOND};
	struct capture_writer *w = start_open(bounds);
	put(0, NS_PER_SECOND, 100);
	put(0, 3 * NS_PER_SECOND, 100);
	lb_capture_turn(workers[0], workers[0]->now_ns);
	wait_for(w, CAPTURE_OVER);
	struct capture_numbers n = finish(w);
	assert_int_equal(n.end, CAPTURE_SECONDS);
	assert_int_equal(n.n_frames, 1);
	unlink(file);
	w = start_open(bounds);
	__atomic_store_n(&now_ns, 3 * NS_PER_SECOND, __ATOMIC_RELAXED);
	wait_for(w, CAPTURE_OVER);
	assert_int_equal(finish(w).end, CAPTURE_SECONDS);
}

// OPS-103
static void drops_are_those_of_this_capture(void **state)
{
	workers[0]->n_dropped[1] = 7; // of one before
	struct capture_writer *w = start_open(wide);
	workers[0]->n_dropped[1] += 2;
	workers[1]->n_dropped[0] += 1;
	put(0, NS_PER_SECOND, 100);
	assert_int_equal(capture_writer_numbers(w).n_dropped, 3);
	assert_int_equal(finish(w).n_dropped, 3);
	assert_int_equal(read_file().n_received, 4);
}

// OPS-105
static void a_file_that_is_there_is_refused_and_kept(void **state)
{
	FILE *f = fopen(file, "w");
	fputs("mine", f);
	fclose(f);
	struct capture_writer *w = start(wide);
	wait_for(w, CAPTURE_DONE);
	struct capture_numbers n = capture_writer_numbers(w);
	capture_writer_free(w);
	assert_int_equal(n.end, CAPTURE_FAILED);
	assert_int_equal(n.error, EEXIST);
	char text[8] = "";
	f = fopen(file, "r");
	assert_int_equal(fread(text, 1, sizeof(text), f), 4);
	fclose(f);
	assert_memory_equal(text, "mine", 4);
}

// OPS-199: though its worker had it before the thread that made the keys.
static void keys_stand_before_the_frames_that_they_are_for(void **state)
{
	struct tlshs_keylog log;
	tlshs_keylog_init(&log);
	assert_true(tlshs_keylog_begin(&log));
	keys = &log;
	struct capture_writer *w = start_open(wide);
	keys = NULL;
	put(0, NS_PER_SECOND, 100);
	lb_capture_turn(workers[0], workers[0]->now_ns);
	nanosleep(&(struct timespec){.tv_nsec = 30 * NS_PER_MS}, NULL); // of no clock of the writer
	assert_int_equal(capture_writer_numbers(w).n_frames, 0);
	tlshs_keylog_add(&log, "CLIENT_RANDOM 00 11");
	for (int i = 0; i < 5000 && capture_writer_numbers(w).n_frames == 0; i++) {
		__atomic_fetch_add(&now_ns, NS_PER_MS, __ATOMIC_RELAXED);
		nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
	}
	put(0, clock_ns(), 101);
	tlshs_keylog_add(&log, "CLIENT_RANDOM 22 33");
	struct capture_numbers n = finish(w);
	struct seen s = read_file();
	assert_int_equal(n.n_frames, 2);
	assert_int_equal(n.n_bytes, s.size);
	assert_int_equal(s.n_secrets, 2);
	assert_int_equal(s.n_packets_before, 1);
	tlshs_keylog_fini(&log);
}

// A disk that is full in the middle of a block: the file ends before it.
static void a_write_that_fails_leaves_whole_blocks(void **state)
{
	struct rlimit was, small = {.rlim_cur = 200000}; // less than the buffer of the writer
	getrlimit(RLIMIT_FSIZE, &was);
	small.rlim_max = was.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	struct capture_writer *w = start_open(wide);
	setrlimit(RLIMIT_FSIZE, &small);
	for (int i = 0; i < 500; i++)
		put(i % 2, NS_PER_SECOND, 1000);
	for (int i = 0; i < 2; i++)
		lb_capture_turn(workers[i], workers[i]->now_ns);
	wait_for(w, CAPTURE_OVER);
	struct capture_numbers n = finish(w);
	setrlimit(RLIMIT_FSIZE, &was);
	struct seen s = read_file();
	assert_int_equal(n.end, CAPTURE_FAILED);
	assert_int_equal(n.error, EFBIG);
	assert_true(s.n_packets > 100 && s.n_packets < 200);
	assert_int_equal(n.n_frames, s.n_packets);
	assert_int_equal(n.n_bytes, s.size);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_SUITE("ctrl/capture/writer", TEST(keys_stand_before_the_frames_that_they_are_for),
	TEST(frames_of_all_workers_are_in_the_file_by_time),
	TEST(it_ends_with_the_last_frame_of_the_count), TEST(a_file_is_no_larger_than_its_bound),
	TEST(it_ends_after_its_time_with_and_without_frames), TEST(drops_are_those_of_this_capture),
	TEST(a_file_that_is_there_is_refused_and_kept),
	TEST(a_write_that_fails_leaves_whole_blocks))
