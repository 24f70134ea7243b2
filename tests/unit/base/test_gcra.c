// SPDX-License-Identifier: Apache-2.0
#include "lb/base/gcra.h"
#include "tests/support/check.h"

static const struct gcra_limit limit = GCRA_LIMIT(10, 2);

static uint32_t charge_until_over(struct gcra *g, uint64_t now_ns)
{
	uint32_t n = 0;
	while (!gcra_is_over(g, &limit, now_ns)) {
		gcra_charge(g, &limit, now_ns);
		n++;
	}
	return n;
}

static void a_burst_is_within_the_budget_and_one_more_is_not(void **state)
{
	struct gcra g = {0};
	assert_int_equal(charge_until_over(&g, 5 * NS_PER_SECOND), 11);
}

static void a_second_refills_what_it_is_said_to(void **state)
{
	struct gcra g = {0};
	charge_until_over(&g, 0);
	assert_int_equal(charge_until_over(&g, NS_PER_SECOND), 2);
	assert_int_equal(charge_until_over(&g, 3600 * NS_PER_SECOND), 11);
}

static void what_is_beyond_counts_up_to_as_much_again(void **state)
{
	struct gcra g = {0};
	for (int i = 0; i < 1000; i++)
		gcra_charge(&g, &limit, 0);
	assert_true(gcra_is_over(&g, &limit, 5 * NS_PER_SECOND));
	assert_false(gcra_is_over(&g, &limit, 6 * NS_PER_SECOND));
}

static void many_at_once_are_as_many_one_by_one(void **state)
{
	struct gcra g = {0};
	assert_true(gcra_charge_many(&g, &limit, 9, 0));
	assert_false(gcra_is_spent(&g, &limit, 0));
	assert_true(gcra_charge(&g, &limit, 0));
	assert_true(gcra_is_spent(&g, &limit, 0));
	assert_false(gcra_is_over(&g, &limit, 0));
	assert_false(gcra_charge(&g, &limit, 0));
	assert_true(gcra_is_over(&g, &limit, 0));
	assert_false(gcra_is_spent(&g, &limit, NS_PER_SECOND));
}

static void a_refund_gives_one_back_and_never_more_than_all(void **state)
{
	struct gcra g = {0};
	gcra_refund(&g, &limit);
	assert_int_equal(charge_until_over(&g, NS_PER_SECOND), 11);
	gcra_refund(&g, &limit);
	assert_int_equal(charge_until_over(&g, NS_PER_SECOND), 1);
}

RUN_SUITE("base/gcra", cmocka_unit_test(a_burst_is_within_the_budget_and_one_more_is_not),
	cmocka_unit_test(a_second_refills_what_it_is_said_to),
	cmocka_unit_test(what_is_beyond_counts_up_to_as_much_again),
	cmocka_unit_test(many_at_once_are_as_many_one_by_one),
	cmocka_unit_test(a_refund_gives_one_back_and_never_more_than_all))
