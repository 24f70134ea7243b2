// SPDX-License-Identifier: Apache-2.0
#include "lb/base/rand.h"
#include "tests/support/check.h"

static void a_number_of_64_bits_is_drawn_in_halves_the_low_one_first(void **state)
{
	struct rand whole, halves;
	rand_init(&whole, 7);
	rand_init(&halves, 7);
	for (int i = 0; i < 1000; i++) {
		uint64_t x = rand_u64(&whole);
		assert_int_equal(rand_u32(&halves), (uint32_t)x);
		assert_int_equal(rand_u32(&halves), (uint32_t)(x >> 32));
	}
}

static void a_half_that_is_left_outlives_draws_of_whole_numbers(void **state)
{
	struct rand r, twin;
	rand_init(&r, 7);
	rand_init(&twin, 7);
	uint64_t first = rand_u64(&twin), second = rand_u64(&twin);
	assert_int_equal(rand_u32(&r), (uint32_t)first);
	assert_int_equal(rand_u64(&r), second);
	assert_int_equal(rand_u32(&r), (uint32_t)(first >> 32));
}

static void draws_below_a_bound_reach_all_that_is_below_it(void **state)
{
	struct rand r;
	unsigned seen = 0;
	rand_init(&r, 7);
	for (int i = 0; i < 1000; i++)
		seen |= 1u << rand_below(&r, 10);
	assert_int_equal(seen, (1u << 10) - 1);
	assert_int_equal(rand_below(&r, 0), 0);
	assert_int_equal(rand_below(&r, 1), 0);
}

int main(void)
{
	const struct CMUnitTest suite[] = {
		cmocka_unit_test(a_number_of_64_bits_is_drawn_in_halves_the_low_one_first),
		cmocka_unit_test(a_half_that_is_left_outlives_draws_of_whole_numbers),
		cmocka_unit_test(draws_below_a_bound_reach_all_that_is_below_it),
	};
	return cmocka_run_group_tests_name("base/rand", suite, NULL, NULL);
}
