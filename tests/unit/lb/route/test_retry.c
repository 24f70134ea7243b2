// SPDX-License-Identifier: Apache-2.0
#include "lb/base/time.h"
#include "lb/route/retry.h"
#include "tests/support/check.h"

#define MS NS_PER_MS

// RT-07
static void only_listed_statuses_are_covered(void **state)
{
	struct lb_retry r = {.statuses = 1u << 14 | 1u << 1, .max_attempts = 3};
	for (int status = -2; status < 70; status++)
		assert_int_equal(lb_retry_covers(&r, status), status == 14 || status == 1);
	r.statuses = 0;
	for (int status = -2; status < 70; status++)
		assert_false(lb_retry_covers(&r, status));
}

// RT-05: doubles up to the maximum, ±20 %, both ends of the jitter seen.
static void waits_double_up_to_the_maximum_with_jitter(void **state)
{
	static const uint64_t expected[] = {25, 50, 100, 200, 250, 250};
	struct lb_retry r = {.base_ns = 25 * MS, .max_ns = 250 * MS};
	struct rand rand;
	rand_init(&rand, 1);
	for (uint32_t n = 1; n <= 6; n++) {
		uint64_t least = UINT64_MAX, most = 0, sum = 0, mid = expected[n - 1] * MS;
		for (int i = 0; i < 10000; i++) {
			uint64_t ns = lb_retry_delay_ns(&r, n, &rand);
			least = ns < least ? ns : least;
			most = ns > most ? ns : most;
			sum += ns;
		}
		assert_in_range(least, mid * 80 / 100, mid * 81 / 100);
		assert_in_range(most, mid * 119 / 100, mid * 120 / 100);
		assert_in_range(sum / 10000, mid * 99 / 100, mid * 101 / 100);
	}
}

// RT-03 allows five attempts, but nothing breaks beyond them or at absurd intervals.
static void waits_never_exceed_the_maximum(void **state)
{
	struct lb_retry r = {.base_ns = MS, .max_ns = UINT64_MAX / 6 * 5};
	struct rand rand;
	rand_init(&rand, 2);
	for (uint32_t n = 1; n < 200; n++)
		assert_true(lb_retry_delay_ns(&r, n, &rand) >= MS / 5 * 4);
	rand_init(&rand, 2);
	for (uint32_t n = 64; n < 200; n++)
		assert_true(lb_retry_delay_ns(&r, n, &rand) >= r.max_ns / 5 * 4);
	r.base_ns = r.max_ns = MS;
	for (uint32_t n = 1; n < 200; n++)
		assert_in_range(lb_retry_delay_ns(&r, n, &rand), MS * 8 / 10, MS * 12 / 10);
}

RUN_SUITE("lb/retry", cmocka_unit_test(only_listed_statuses_are_covered),
	cmocka_unit_test(waits_double_up_to_the_maximum_with_jitter),
	cmocka_unit_test(waits_never_exceed_the_maximum))
