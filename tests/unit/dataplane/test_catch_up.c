// SPDX-License-Identifier: Apache-2.0
#include "dataplane/catch_up.h"
#include "tests/support/check.h"

#define MS NS_PER_MS

// TCP-210
static void timers_wait_for_what_came_in_a_pause(void **state)
{
	struct catch_up c = {0};
	assert_true(catch_up(&c, 1000 * MS, false));
	assert_true(catch_up(&c, 1001 * MS, true));
	assert_true(catch_up(&c, 1100 * MS, true));
	assert_false(catch_up(&c, 9000 * MS, true));
	assert_false(catch_up(&c, 9001 * MS, true));
	assert_true(catch_up(&c, 9002 * MS, false)); // all is read
	assert_true(catch_up(&c, 9003 * MS, true));
}

// TCP-210: a flood holds up no timer for ever, nor does a pause in which nothing came.
static void timers_do_not_wait_for_ever(void **state)
{
	struct catch_up c = {0};
	assert_true(catch_up(&c, 5000 * MS, false));
	assert_true(catch_up(&c, 9000 * MS, false));
	uint64_t now = 20000 * MS, paused = now;
	while (!catch_up(&c, now, true))
		now += MS;
	assert_int_equal(now - paused, CATCH_UP_NS);
	for (uint32_t i = 0; i < 10; i++) { // whose turns are pauses all
		assert_false(catch_up(&c, now += 200 * MS, true));
		assert_true(catch_up(&c, now += 200 * MS, true));
	}
}

RUN_SUITE("dataplane/catch_up", cmocka_unit_test(timers_wait_for_what_came_in_a_pause),
	cmocka_unit_test(timers_do_not_wait_for_ever))
