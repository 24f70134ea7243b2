// SPDX-License-Identifier: Apache-2.0
#include "tests/support/check.h"
#include "tools/fleet-sim/spread.h"

static void percentiles_are_those_of_the_sorted_counts(void **state)
{
	(void)state;
	uint32_t counts[200];
	for (uint32_t i = 0; i < 200; i++)
		counts[i] = 200 - i; // 1 to 200
	struct spread s = spread_of(counts, 200);
	assert_int_equal((int)(s.mean * 10), 1005);
	assert_int_equal(s.least, 1);
	assert_int_equal(s.p1, 2);
	assert_int_equal(s.median, 100);
	assert_int_equal(s.p99, 198);
	assert_int_equal(s.most, 200);
	uint32_t one = 7;
	s = spread_of(&one, 1);
	assert_int_equal(s.p1 + s.median + s.p99, 21);
}

RUN_SUITE("fleet-sim/spread", cmocka_unit_test(percentiles_are_those_of_the_sorted_counts))
