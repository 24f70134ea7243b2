// SPDX-License-Identifier: Apache-2.0
// What is kept of the log for `show events`.
#include "ctrl/base/events.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

static int set_up(void **state)
{
	*state = events_new();
	log_set_level(LOG_LEVEL_ERROR); // of what stderr gets
	log_set_sink(events_add, *state);
	return *state ? 0 : -1;
}

static int tear_down(void **state)
{
	log_set_sink(NULL, NULL);
	events_free(*state);
	return 0;
}

// OPS-54
static void what_is_logged_is_kept_whatever_the_level_of_the_log(void **state)
{
	struct events *e = *state;
	struct event_entry got;
	uint64_t number = 0, n_lost = 0;
	assert_false(events_read(e, &number, &got, &n_lost));
	log_info("endpoint connected", "endpoint=%s", "10.0.0.1:80");
	log_debug("detail", "i=1");
	log_warn("drained", "%s", "");
	assert_int_equal(events_count(e), 2);
	assert_true(events_read(e, &number, &got, &n_lost));
	assert_string_equal(got.text, "endpoint connected");
	assert_string_equal(event_rest(&got), "endpoint=10.0.0.1:80");
	assert_int_equal(got.level, LOG_LEVEL_INFO);
	assert_true(got.wall_ns > 0);
	assert_true(events_read(e, &number, &got, &n_lost));
	assert_string_equal(got.text, "drained");
	assert_string_equal(event_rest(&got), "");
	assert_false(events_read(e, &number, &got, &n_lost));
	assert_int_equal(n_lost, 0);
}

// OPS-54
static void the_oldest_go_and_are_counted(void **state)
{
	struct events *e = *state;
	struct event_entry got;
	uint64_t number = 3, n_lost = 0;
	for (int i = 0; i < EVENTS + 10; i++)
		log_info("n", "i=%d", i);
	assert_true(events_read(e, &number, &got, &n_lost));
	assert_int_equal(n_lost, 7);
	assert_string_equal(event_rest(&got), "i=10");
	assert_int_equal(number, 11);
}

static void long_lines_are_cut(void **state)
{
	struct events *e = *state;
	static char many[4000];
	struct event_entry got;
	uint64_t number = 0, n_lost = 0;
	memset(many, 'x', sizeof(many) - 1);
	log_info(many, "%s", many);
	log_info("n", "%s", many);
	assert_true(events_read(e, &number, &got, &n_lost));
	assert_int_equal(strlen(got.text), EVENT_MAX / 2 - 1);
	assert_true(events_read(e, &number, &got, &n_lost));
	assert_int_equal(strlen(event_rest(&got)), EVENT_MAX - 3);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

RUN_SUITE("ctrl/events", CASE(what_is_logged_is_kept_whatever_the_level_of_the_log),
	CASE(the_oldest_go_and_are_counted), CASE(long_lines_are_cut))
