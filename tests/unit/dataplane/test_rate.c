// SPDX-License-Identifier: Apache-2.0
// How many frames the kernel gets.
#include "dataplane/rate.h"
#include "lb/base/time.h"
#include "tests/support/check.h"

// Of one each step_ns, for a second.
static uint32_t count(struct rate *r, uint64_t from_ns, uint64_t step_ns)
{
	uint32_t n = 0;
	for (uint64_t t = 0; t < NS_PER_SECOND; t += step_ns)
		n += rate_take(r, from_ns + t);
	return n;
}

// FL-26
static void a_second_has_the_rate_and_what_came_together_before(void **state)
{
	(void)state;
	struct rate r;
	rate_init(&r, 1000);
	assert_in_range(count(&r, 3600 * NS_PER_SECOND, 10 * NS_PER_US), 1099, 1101);
	assert_in_range(count(&r, 3601 * NS_PER_SECOND, 10 * NS_PER_US), 999, 1001);
	assert_int_equal(count(&r, 3602 * NS_PER_SECOND, 2 * NS_PER_MS), 500); // below it
}

// FL-26
static void a_low_rate_still_lets_one_pass(void **state)
{
	(void)state;
	struct rate r;
	rate_init(&r, 2);
	assert_true(rate_take(&r, NS_PER_SECOND));
	assert_false(rate_take(&r, NS_PER_SECOND + 400 * NS_PER_MS));
	assert_true(rate_take(&r, NS_PER_SECOND + 500 * NS_PER_MS));
}

RUN_SUITE("dataplane/rate", cmocka_unit_test(a_second_has_the_rate_and_what_came_together_before),
	cmocka_unit_test(a_low_rate_still_lets_one_pass))
