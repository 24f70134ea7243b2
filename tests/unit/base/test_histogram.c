// SPDX-License-Identifier: Apache-2.0
#include "lb/base/histogram.h"
#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "tests/support/check.h"

// By the bounds alone.
static uint32_t naive_index(uint64_t ns)
{
	uint32_t i = 0;
	while (i < HISTOGRAM_N - 1 && ns > histogram_bound_ns(i))
		i++;
	return i;
}

// OPS-04
static void ops_04_bounds_grow_by_half_an_octave_from_1_us_to_a_minute(void **state)
{
	assert_int_equal(histogram_bound_ns(0), 1024);
	for (uint32_t i = 1; i < HISTOGRAM_N - 1; i++) {
		uint64_t below = histogram_bound_ns(i - 1), bound = histogram_bound_ns(i);
		assert_true(i % 2 ? 2 * bound == 3 * below : 3 * bound == 4 * below);
	}
	assert_true(histogram_bound_ns(HISTOGRAM_N - 2) > 60 * NS_PER_SECOND);
}

static void a_time_is_in_the_bucket_with_the_next_bound(void **state)
{
	for (uint32_t i = 0; i < HISTOGRAM_N - 1; i++) {
		assert_int_equal(histogram_index(histogram_bound_ns(i)), i);
		assert_int_equal(histogram_index(histogram_bound_ns(i) + 1), i + 1);
	}
	assert_int_equal(histogram_index(0), 0);
	assert_int_equal(histogram_index(INT64_MAX / 2), HISTOGRAM_N - 1);
	assert_true(histogram_index(UINT64_MAX) < HISTOGRAM_N); // no time, but in bounds
}

static void index_and_bounds_agree_on_any_time(void **state)
{
	struct rand r;
	rand_init(&r, 7);
	for (int i = 0; i < 100000; i++) {
		uint64_t ns = rand_u64(&r) >> (2 + rand_u64(&r) % 62);
		assert_int_equal(histogram_index(ns), naive_index(ns));
	}
}

static void a_reader_gathers_and_takes_back(void **state)
{
	struct histogram a = {0}, b = {0}, sum = {0};
	histogram_add(&a, histogram_place(5000), 5000);
	histogram_add(&b, histogram_place(5000), 5000);
	histogram_add(&b, histogram_place(90), 90);
	histogram_gather(&sum, &a);
	histogram_gather(&sum, &b);
	assert_int_equal(sum.sum_ns, 10090);
	assert_int_equal(sum.counts[histogram_index(5000)], 2);
	histogram_since(&sum, &a);
	assert_int_equal(sum.sum_ns, 5090);
	assert_int_equal(sum.counts[histogram_index(5000)], 1);
	assert_int_equal(sum.counts[0], 1);
}

#define CASE(f) cmocka_unit_test(f)
RUN_SUITE("base/histogram", CASE(ops_04_bounds_grow_by_half_an_octave_from_1_us_to_a_minute),
	CASE(a_time_is_in_the_bucket_with_the_next_bound), CASE(index_and_bounds_agree_on_any_time),
	CASE(a_reader_gathers_and_takes_back))
