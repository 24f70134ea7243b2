// SPDX-License-Identifier: Apache-2.0
// The control side of a capture, with two workers that the test plays.
#include "ctrl/assemble/workers.h"
#include "ctrl/base/show_port.h"
#include "ctrl/capture/capture.h"
#include "ctrl/conf/config.h"
#include "ctrl/loop.h"
#include "lb/base/log.h"
#include "tests/support/check.h"
#include "tlshs/keylog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char folder[64], file[96];
static struct config_capture where = {folder};
static struct config_port port = {.device = folder};
static struct config config = {.capture = &where, .ports = &port, .n_ports = 1};
static const struct show_port shown = {.mac = "02:00:00:00:00:09"};
static struct lb_shared *shared;
static struct lb_link *links[2];
static struct workers *workers;
static struct capture *capture;
static struct tlshs_keylog keys;

static const struct capture_ask ask = {.path = "a.pcapng",
	.words = "",
	.frames = {.ways = 3, .interfaces = 1, .snaplen = 100},
	.bounds = {UINT64_MAX, 1 << 20, 60 * NS_PER_SECOND}};

static int set_up(void **state)
{
	log_set_level(LOG_LEVEL_ERROR);
	strcpy(folder, "/tmp/shunt-capture-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/a.pcapng", folder);
	shared = lb_shared_new();
	for (uint32_t i = 0; i < 2; i++) {
		links[i] = lb_link_new(i, (int)i, shared);
		links[i]->capture = lb_capture_new(1 << 16);
	}
	workers = workers_new(links, 2, NULL, NULL);
	tlshs_keylog_init(&keys);
	const struct capture_conf conf = {
		&config, workers, &shown, loop_clock_ns, loop_wall_ns, &keys};
	capture = capture_new(&conf);
	return 0;
}

static int tear_down(void **state)
{
	capture_free(capture);
	tlshs_keylog_fini(&keys);
	workers_free(workers);
	for (int i = 0; i < 2; i++)
		lb_link_free(links[i]);
	lb_shared_free(shared);
	unlink(file);
	rmdir(folder);
	return 0;
}

static void wait_for_state(const char *state)
{
	for (int i = 0; i < 10000 && strcmp(capture_report(capture).state, state) != 0; i++) {
		capture_tick(capture);
		nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
	}
	assert_string_equal(capture_report(capture).state, state);
}

// The worker finds this command, and carries it out.
static void hears(uint32_t worker, enum lb_command_kind kind)
{
	struct lb_command c = {.kind = LB_COMMAND_DRAIN};
	for (int i = 0; i < 10000 && !spsc_read(&links[worker]->commands, &c); i++) {
		capture_tick(capture);
		nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
	}
	assert_int_equal(c.kind, kind);
	lb_capture_heard(links[worker]->capture);
}

static void hears_nothing(uint32_t worker)
{
	struct lb_command c;
	capture_tick(capture);
	assert_false(spsc_read(&links[worker]->commands, &c));
}

static void begin(const struct capture_ask *a)
{
	struct lb_err err;
	assert_int_equal(capture_start(capture, a, &err), 0);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(links[i]->capture->ask.snaplen, 100);
		assert_string_equal(capture_report(capture).state, "opening");
		hears(i, LB_COMMAND_CAPTURE);
	}
	assert_string_equal(capture_report(capture).state, "on");
}

static void copies_one(uint32_t worker)
{
	struct lb_capture *c = links[worker]->capture;
	c->now_ns = loop_clock_ns();
	struct lb_capture_record *r = lb_capture_place(c, 0, LB_CAPTURE_RX, 60);
	memset(r->bytes, 1, r->kept);
	lb_capture_turn(c, c->now_ns);
}

static void the_file_is_whole_once_all_workers_have_ended(void **state)
{
	struct lb_err err;
	begin(&ask);
	copies_one(0);
	assert_int_equal(capture_stop(capture, &err), 0);
	hears(0, LB_COMMAND_CAPTURE_END);
	copies_one(1); // has not heard it yet
	for (int i = 0; i < 30; i++) {
		capture_tick(capture);
		nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
	}
	assert_string_equal(capture_report(capture).state, "ending");
	hears(1, LB_COMMAND_CAPTURE_END);
	wait_for_state("off");
	const struct capture_report r = capture_report(capture);
	assert_int_equal(r.numbers.n_frames, 2);
	assert_string_equal(r.ended, "stopped");
	assert_string_equal(r.file, file);
	hears_nothing(0);
}

// OPS-200: not before, nor behind, nor for a capture that does not.
static void keys_are_kept_for_captures_that_ask_for_them(void **state)
{
	struct capture_ask with = ask;
	struct lb_err err;
	struct stat s;
	with.with_keys = true;
	for (int wanted = 0; wanted < 2; wanted++) {
		tlshs_keylog_add(&keys, "before");
		begin(wanted ? &with : &ask);
		tlshs_keylog_add(&keys, "meanwhile");
		assert_int_equal(capture_report(capture).n_keys, wanted);
		assert_int_equal(capture_stop(capture, &err), 0);
		for (uint32_t i = 0; i < 2; i++)
			hears(i, LB_COMMAND_CAPTURE_END);
		wait_for_state("off");
		assert_int_equal(capture_report(capture).n_keys, wanted);
		assert_int_equal(capture_report(capture).with_keys, wanted);
		assert_null(keys.lines);
		assert_int_equal(stat(file, &s), 0);
		assert_int_equal(s.st_mode & 0777 & ~(mode_t)(wanted ? 0 : 040), 0600);
		unlink(file);
	}
}

// OPS-104
static void a_bound_ends_it_without_anybody(void **state)
{
	struct capture_ask one = ask;
	one.bounds.n_frames = 1;
	begin(&one);
	copies_one(1);
	wait_for_state("ending");
	hears(0, LB_COMMAND_CAPTURE_END);
	hears(1, LB_COMMAND_CAPTURE_END);
	wait_for_state("off");
	assert_string_equal(capture_report(capture).ended, "count");
}

static void there_is_one_at_a_time_and_another_one_behind_it(void **state)
{
	struct lb_err err;
	assert_true(capture_stop(capture, &err) < 0);
	begin(&ask);
	assert_true(capture_start(capture, &ask, &err) < 0);
	assert_non_null(strstr(err.text, "already"));
	assert_int_equal(capture_stop(capture, &err), 0);
	assert_int_equal(capture_stop(capture, &err), 0); // a second time
	for (uint32_t i = 0; i < 2; i++)
		hears(i, LB_COMMAND_CAPTURE_END);
	wait_for_state("off");
	unlink(file);
	begin(&ask);
}

// OPS-105
static void paths_that_lead_elsewhere_are_refused(void **state)
{
	static const char *const paths[] = {"/etc/a.pcapng", "../a.pcapng", "b/../../a.pcapng", "",
		"a/", "/tmp/shunt-capture-", "a\nb", "./a.pcapng"};
	struct lb_err err;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct capture_ask bad = ask;
		bad.path = paths[i];
		if (capture_start(capture, &bad, &err) == 0)
			fail_msg("%s", paths[i]);
		assert_string_equal(capture_report(capture).state, "off");
	}
}

// OPS-294
static void a_start_that_is_refused_leaves_what_is_told_of_the_last_capture(void **state)
{
	struct capture_ask bad = ask;
	struct lb_err err;
	bad.path = "../a.pcapng";
	begin(&ask);
	copies_one(0);
	assert_int_equal(capture_stop(capture, &err), 0);
	for (uint32_t i = 0; i < 2; i++)
		hears(i, LB_COMMAND_CAPTURE_END);
	wait_for_state("off");
	assert_true(capture_start(capture, &bad, &err) < 0);
	const struct capture_report r = capture_report(capture);
	assert_string_equal(r.file, file);
	assert_string_equal(r.ended, "stopped");
	assert_int_equal(r.numbers.n_frames, 1);
}

// OPS-297
static void a_start_without_descriptors_says_so(void **state)
{
	struct lb_err err;
	struct rlimit before, none;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	int rc = capture_start(capture, &ask, &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(rc < 0);
	assert_string_equal(err.text, "cannot begin: Too many open files");
	assert_string_equal(capture_report(capture).state, "off");
	begin(&ask); // it can, once there are some
}

// OPS-105
static void a_link_is_not_followed(void **state)
{
	struct lb_err err;
	assert_int_equal(symlink("/tmp/shunt-capture-elsewhere", file), 0);
	assert_int_equal(capture_start(capture, &ask, &err), 0);
	wait_for_state("off");
	assert_int_equal(capture_report(capture).numbers.end, CAPTURE_FAILED);
	assert_true(access("/tmp/shunt-capture-elsewhere", F_OK) != 0);
	hears_nothing(0);
}

static void the_end_of_the_process_closes_the_file(void **state)
{
	begin(&ask);
	copies_one(0);
	capture_free(capture);
	capture = NULL;
	FILE *f = fopen(file, "r");
	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	assert_true(ftell(f) > 200);
	fclose(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_SUITE("ctrl/capture/capture", TEST(the_file_is_whole_once_all_workers_have_ended),
	TEST(keys_are_kept_for_captures_that_ask_for_them), TEST(a_bound_ends_it_without_anybody),
	TEST(there_is_one_at_a_time_and_another_one_behind_it),
	TEST(paths_that_lead_elsewhere_are_refused),
	TEST(a_start_that_is_refused_leaves_what_is_told_of_the_last_capture),
	TEST(a_start_without_descriptors_says_so), TEST(a_link_is_not_followed),
	TEST(the_end_of_the_process_closes_the_file))
