// SPDX-License-Identifier: Apache-2.0
#include "lb/base/rand.h"
#include "lb/pick/stride.h"
#include "tests/support/check.h"

#include <math.h>
#include <stdlib.h>

#define MAX 64

// As a picker walks it: the index whose turn is next.
static uint32_t walk(const uint16_t *weights, uint32_t n, uint64_t *sequence)
{
	for (uint32_t i = 0; i < n; i++) {
		uint64_t at = (*sequence)++;
		if (lb_stride_has_turn(at, n, weights[at % n]))
			return (uint32_t)(at % n);
	}
	fail_msg("nobody takes a turn within a generation");
	return n;
}

// Shares of n_picks picks, in parts of 1.
static void shares(const double *weights, uint32_t n, uint32_t n_picks, double *ret)
{
	uint16_t scaled[MAX];
	assert_true(lb_stride_scale(weights, n, scaled));
	uint32_t counts[MAX] = {0};
	uint64_t sequence = 12345;
	for (uint32_t i = 0; i < n_picks; i++) {
		counts[walk(scaled, n, &sequence)]++;
	}
	for (uint32_t i = 0; i < n; i++)
		ret[i] = (double)counts[i] / n_picks;
}

static void assert_near(double a, double b, double tolerance)
{
	if (fabs(a - b) > tolerance)
		fail_msg("%f is not %f", a, b);
}

// A58-05, with the one unknown at the mean of the others.
static void weights_200_100_100_and_none_share_as_gRFC_A58_says(void **state)
{
	double got[4];
	shares((double[]){200, 100, 100, 0}, 4, 1600000, got);
	assert_near(got[0], 200 / 533.333, 0.0005);
	assert_near(got[1], 100 / 533.333, 0.0005);
	assert_near(got[2], 100 / 533.333, 0.0005);
	assert_near(got[3], 133.333 / 533.333, 0.0005);
}

static void fewer_than_two_usable_weights_make_no_scheduler(void **state) // A58-04
{
	uint16_t scaled[4] = {7, 7, 7, 7};
	assert_false(lb_stride_scale((double[]){0, 5, -1, 0}, 4, scaled));
	assert_false(lb_stride_scale((double[]){NAN, NAN}, 2, scaled));
	assert_false(lb_stride_scale(NULL, 0, scaled));
	for (int i = 0; i < 4; i++)
		assert_int_equal(scaled[i], 7);
}

static void weights_stay_within_a_hundredth_and_ten_times_the_mean(void **state) // A58-07
{
	double weights[MAX], got[MAX];
	for (uint32_t i = 0; i < MAX; i++)
		weights[i] = 1;
	weights[0] = 1e9;
	weights[1] = 1e-9;
	shares(weights, MAX, 1000000, got);
	// The mean is that of the weights as they came, so that the others sit at a hundredth.
	assert_near(got[0] / got[1], 1000, 20);
	assert_near(got[1] / got[2], 1, 0.05);
}

static void random_weights_are_kept_within_a_thousandth(void **state)
{
	struct rand rand;
	rand_init(&rand, 7);
	for (int round = 0; round < 50; round++) {
		double weights[MAX], got[MAX], sum = 0;
		uint32_t n = 2 + (uint32_t)rand_below(&rand, MAX - 2);
		for (uint32_t i = 0; i < n; i++) {
			weights[i] = 100 + (double)rand_below(&rand, 900);
			sum += weights[i];
		}
		shares(weights, n, 200000, got);
		for (uint32_t i = 0; i < n; i++)
			assert_near(got[i], weights[i] / sum, 0.001);
	}
}

// Turns are spread: no run of a light index, no drought of a heavy one.
static void turns_of_an_index_are_evenly_spaced(void **state)
{
	uint16_t scaled[4];
	assert_true(lb_stride_scale((double[]){3, 1, 1, 1}, 4, scaled));
	uint64_t sequence = 0;
	uint32_t since = 0;
	for (uint32_t i = 0; i < 100000; i++) {
		since = walk(scaled, 4, &sequence) == 0 ? 0 : since + 1;
		assert_in_range(since, 0, 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights_200_100_100_and_none_share_as_gRFC_A58_says),
		cmocka_unit_test(fewer_than_two_usable_weights_make_no_scheduler),
		cmocka_unit_test(weights_stay_within_a_hundredth_and_ten_times_the_mean),
		cmocka_unit_test(random_weights_are_kept_within_a_thousandth),
		cmocka_unit_test(turns_of_an_index_are_evenly_spaced),
	};
	return cmocka_run_group_tests_name("lb/stride", tests, NULL, NULL);
}
