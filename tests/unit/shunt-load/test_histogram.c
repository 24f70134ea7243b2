// SPDX-License-Identifier: Apache-2.0
// A histogram beside its naive twin: all values, sorted.
#include "lb/base/rand.h"
#include "tests/support/check.h"
#include "tools/shunt-load/histogram.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N 20000

static struct histogram h;

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static uint64_t naive_quantile(const uint64_t *sorted, size_t n, double q)
{
	double rank = ceil(q * (double)n);
	return sorted[rank < 1 ? 0 : (size_t)rank - 1];
}

static void quantiles_are_right_to_one_part_in_128(void **state)
{
	static const double qs[] = {0, .001, .1, .25, .5, .75, .9, .99, .999, .9999, 1};
	static uint64_t values[N];
	struct rand rand;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		memset(&h, 0, sizeof(h));
		rand_init(&rand, seed);
		// Of any magnitude, as times are: 1 ns to 18 minutes.
		for (size_t i = 0; i < N; i++) {
			values[i] = rand_u64(&rand) >> (24 + rand_below(&rand, 40));
			histogram_add(&h, values[i]);
		}
		qsort(values, N, sizeof(values[0]), compare);
		for (size_t i = 0; i < sizeof(qs) / sizeof(qs[0]); i++) {
			uint64_t wanted = naive_quantile(values, N, qs[i]);
			uint64_t got = histogram_quantile(&h, qs[i]);
			assert_true(got >= wanted);
			assert_true(got - wanted <= wanted / HISTOGRAM_STEPS);
			assert_true(got <= values[N - 1]);
		}
		assert_int_equal(h.max, values[N - 1]);
		assert_int_equal(h.min, values[0]);
		assert_int_equal(histogram_quantile(&h, 1), values[N - 1]);
	}
}

static void small_values_are_exact(void **state)
{
	memset(&h, 0, sizeof(h));
	for (uint64_t v = 0; v < 2 * HISTOGRAM_STEPS; v++)
		histogram_add(&h, v);
	for (uint64_t v = 0; v < 2 * HISTOGRAM_STEPS; v++)
		assert_int_equal(
			histogram_quantile(&h, (double)(v + 1) / (2 * HISTOGRAM_STEPS)), v);
	assert_true(histogram_mean(&h) == HISTOGRAM_STEPS - .5);
}

static void every_bucket_is_reached_in_order(void **state)
{
	uint64_t before = 0;
	for (uint64_t v = 1; v <= HISTOGRAM_MAX; v += v / 200 + 1) {
		memset(&h, 0, sizeof(h));
		histogram_add(&h, v);
		histogram_add(&h, UINT64_MAX);
		uint64_t got = histogram_quantile(&h, .5);
		assert_true(got >= v && got >= before);
		before = got;
	}
}

static void what_is_too_large_counts_and_stays_the_maximum(void **state)
{
	memset(&h, 0, sizeof(h));
	histogram_add(&h, UINT64_MAX - 1);
	assert_int_equal(h.n, 1);
	assert_true(histogram_quantile(&h, .5) == UINT64_MAX - 1);
	assert_true(histogram_quantile(&h, 1) == UINT64_MAX - 1);
}

static void an_empty_one_says_zero(void **state)
{
	memset(&h, 0, sizeof(h));
	assert_int_equal(histogram_quantile(&h, .5), 0);
	assert_int_equal(histogram_quantile(&h, 1), 0);
	assert_true(histogram_mean(&h) == 0);
}

RUN_SUITE("shunt-load/histogram", cmocka_unit_test(quantiles_are_right_to_one_part_in_128),
	cmocka_unit_test(small_values_are_exact),
	cmocka_unit_test(every_bucket_is_reached_in_order),
	cmocka_unit_test(what_is_too_large_counts_and_stays_the_maximum),
	cmocka_unit_test(an_empty_one_says_zero))
