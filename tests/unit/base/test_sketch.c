// SPDX-License-Identifier: Apache-2.0
#include "lb/base/rand.h"
#include "lb/base/sketch.h"
#include "tests/support/check.h"

static struct sketch sketch;

static int setup(void **state)
{
	sketch = (struct sketch){0};
	return 0;
}

static void a_holder_has_what_was_added_and_not_removed(void **state)
{
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(sketch_add(&sketch, 77), i);
	sketch_remove(&sketch, 77);
	assert_int_equal(sketch_count(&sketch, 77), 4);
}

static void who_meets_another_in_all_rows_but_one_has_his_own(void **state)
{
	const uint64_t other = 0x0001000200030004;
	for (uint32_t i = 0; i < 9; i++)
		sketch_add(&sketch, other);
	for (uint32_t row = 0; row < SKETCH_ROWS; row++) {
		uint64_t hash = other ^ UINT64_C(1) << (64 / SKETCH_ROWS * row);
		assert_int_equal(sketch_count(&sketch, hash), 0);
	}
	assert_int_equal(sketch_count(&sketch, other), 9);
}

#define N_NEWCOMERS 20000

// Of many that hold nothing, those who seem to, beside so many who do.
static unsigned taken_for_others(unsigned n_holders)
{
	struct rand r;
	unsigned n = 0;
	rand_init(&r, n_holders);
	for (unsigned i = 0; i < n_holders; i++)
		sketch_add(&sketch, rand_u64(&r));
	for (unsigned i = 0; i < N_NEWCOMERS; i++)
		n += sketch_count(&sketch, rand_u64(&r)) > 0;
	return n;
}

static void hardly_anybody_is_taken_for_another(void **state)
{
	assert_in_range(taken_for_others(250), 0, N_NEWCOMERS / 5000);
	setup(state);
	assert_in_range(taken_for_others(2000), 1, N_NEWCOMERS / 25);
}

RUN_SUITE("base/sketch", cmocka_unit_test_setup(a_holder_has_what_was_added_and_not_removed, setup),
	cmocka_unit_test_setup(who_meets_another_in_all_rows_but_one_has_his_own, setup),
	cmocka_unit_test_setup(hardly_anybody_is_taken_for_another, setup))
