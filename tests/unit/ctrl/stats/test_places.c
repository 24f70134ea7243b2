// SPDX-License-Identifier: Apache-2.0
// OPS-235: whose place goes. A uid stands for who it is: 0 is root.
#include "ctrl/base/stats_proto.h"
#include "ctrl/stats/places.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

#define KIND_MAX (STATS_PLACES - STATS_PLACES_KEPT)

static struct stats_place taken[STATS_PLACES];
static unsigned n;

// So many more, each a step after the one before.
static void take(unsigned count, enum stats_level level, uid_t uid)
{
	for (unsigned i = 0; i < count; i++, n++)
		taken[n] = (struct stats_place){level, uid, .waits = true, .since = n + 1};
}

static int victim(enum stats_level level, uid_t uid)
{
	const struct stats_caller newcomer = {.level = level, .uid = uid};
	return stats_places_victim(taken, n, &newcomer);
}

static int set_up(void **state)
{
	n = 0;
	return 0;
}

static void nobody_goes_while_there_is_a_place(void **state)
{
	assert_int_equal(victim(STATS_USER, 7), -1);
	take(KIND_MAX - 1, STATS_USER, 7);
	assert_int_equal(victim(STATS_USER, 8), -1);
	take(1, STATS_USER, 7);
	assert_int_equal(victim(STATS_ADMIN, 0), -1);
}

static void users_never_have_the_places_of_operators(void **state)
{
	take(KIND_MAX, STATS_USER, 7);
	assert_int_equal(victim(STATS_USER, 8), 0);
	assert_int_equal(victim(STATS_OPERATOR, 9), -1);
}

static void who_may_more_gets_in_and_users_have_places_of_their_own(void **state)
{
	take(STATS_PLACES_KEPT, STATS_USER, 7);
	take(KIND_MAX - 1, STATS_ADMIN, 0);
	take(1, STATS_OPERATOR, 9);
	assert_int_equal(victim(STATS_USER, 8), 0);
	assert_int_equal(victim(STATS_ADMIN, 0), STATS_PLACES - 1); // the lower level first
	n = 0;
	take(KIND_MAX, STATS_USER, 7);
	take(STATS_PLACES_KEPT, STATS_ADMIN, 0);
	assert_int_equal(victim(STATS_OPERATOR, 9), 0);
}

static void who_holds_most_gives_way(void **state)
{
	take(4, STATS_USER, 7);
	take(KIND_MAX - 4, STATS_USER, 8);
	assert_int_equal(victim(STATS_USER, 7), 4);
	n = 0;
	take(KIND_MAX / 2, STATS_USER, 8);
	take(KIND_MAX / 2, STATS_USER, 7);
	assert_int_equal(victim(STATS_USER, 7), KIND_MAX / 2); // the newcomer's count, too
}

static void who_is_being_answered_goes_last(void **state)
{
	take(KIND_MAX, STATS_USER, 7);
	taken[0].waits = taken[1].waits = false;
	assert_int_equal(victim(STATS_USER, 7), 2);
	for (unsigned i = 0; i < n; i++)
		taken[i].waits = false;
	assert_int_equal(victim(STATS_USER, 7), 0);
}

static void what_is_told_names_the_number_of_places(void **state)
{
	char text[32];
	snprintf(text, sizeof(text), "all %d places are taken", STATS_PLACES);
	assert_int_equal(strncmp(STATS_CUT, text, strlen(text)), 0);
}

RUN_SUITE("ctrl/stats/places", cmocka_unit_test_setup(nobody_goes_while_there_is_a_place, set_up),
	cmocka_unit_test_setup(users_never_have_the_places_of_operators, set_up),
	cmocka_unit_test_setup(who_may_more_gets_in_and_users_have_places_of_their_own, set_up),
	cmocka_unit_test_setup(who_holds_most_gives_way, set_up),
	cmocka_unit_test_setup(who_is_being_answered_goes_last, set_up),
	cmocka_unit_test(what_is_told_names_the_number_of_places))
