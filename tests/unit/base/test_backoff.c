// SPDX-License-Identifier: Apache-2.0
#include "lb/base/backoff.h"
#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "tests/support/check.h"

#include <stddef.h>

#define N 13
static const double seconds[N] = {1, 1.6, 2.56, 4.096, 6.5536, 10.48576, 16.777216, 26.8435456,
	42.94967296, 68.719476736, 109.9511627776, 120, 120};

// BO-01, FM-03
static void waits_grow_as_the_document_says(void **state)
{
	double lowest = 9, highest = 0;
	for (uint64_t seed = 0; seed < 500; seed++) {
		struct backoff b = {0};
		struct rand r;
		rand_init(&r, seed);
		for (size_t i = 0; i < N; i++) {
			double share = (double)backoff_next_ns(&b, &r) / (double)NS_PER_SECOND /
			               seconds[i];
			assert_true(share >= 0.8 - 1e-8 && share <= 1.2 + 1e-8);
			lowest = share < lowest ? share : lowest;
			highest = share > highest ? share : highest;
		}
	}
	assert_true(lowest < 0.801 && highest > 1.199); // the whole range is used
}

// BO-01: attempts of many must not fall together.
static void jitter_is_even(void **state)
{
	enum { N_DRAWS = 20000, N_BINS = 10 };
	unsigned bins[N_BINS] = {0};
	struct rand r;
	rand_init(&r, 7);
	for (int i = 0; i < N_DRAWS; i++) {
		struct backoff b = {0};
		uint64_t over = backoff_next_ns(&b, &r) - 800000000;
		bins[over * N_BINS / 400000001]++;
	}
	for (int i = 0; i < N_BINS; i++) // 2000 each, five deviations
		assert_in_range(bins[i], 1788, 2212);
}

// BO-03
static void success_starts_over(void **state)
{
	struct backoff b = {0};
	struct rand r;
	rand_init(&r, 1);
	for (int i = 0; i < 20; i++)
		(void)backoff_next_ns(&b, &r);
	backoff_reset(&b);
	assert_true(backoff_next_ns(&b, &r) <= 1200000000);
}

RUN_SUITE("base/backoff", cmocka_unit_test(waits_grow_as_the_document_says),
	cmocka_unit_test(jitter_is_even), cmocka_unit_test(success_starts_over))
