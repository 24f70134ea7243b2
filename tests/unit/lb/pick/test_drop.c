// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/drop.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <math.h>

static uint32_t draw_new(const struct lb_drops *d, struct rand *rand)
{
	struct lb_drop_once once = {0};
	return lb_drops_draw(d, &once, 0, rand);
}

// A27-I01: each category draws for itself, the first that hits has it.
static void categories_are_drawn_independently_in_order(void **state)
{
	const struct lb_drop_category list[] = {{"load", 200000}, {"maintenance", 500000}};
	struct lb_drops *d = lb_drops_new(list, 2);
	struct rand rand;
	uint32_t n[2] = {0}, n_passed = 0;
	rand_init(&rand, 3);
	for (int i = 0; i < 1000000; i++) {
		uint32_t category = draw_new(d, &rand);
		if (category == LB_DROP_NONE)
			n_passed++;
		else
			n[category]++;
	}
	assert_in_range(n[0], 198000, 202000);
	assert_in_range(n[1], 398000, 402000);
	assert_in_range(n_passed, 398000, 402000);
	assert_string_equal(lb_drops_name(d, 1), "maintenance");
	assert_int_equal(lb_drops_count(d), 2);
	assert_int_equal(lb_drops_per_million(d, 1), 500000);
	assert_true(fabs(lb_drops_chance(d, 0) - 0.2) < 1e-9);
	assert_true(fabs(lb_drops_chance(d, 1) - 0.4) < 1e-9); // as drawn above
	lb_drops_put(d);
}

// MC-08
static void ten_percent_of_a_million_is_within_a_thousandth(void **state)
{
	struct lb_drops *d = lb_drops_new((struct lb_drop_category[]){{"x", 100000}}, 1);
	for (uint64_t core = 0; core < 4; core++) {
		struct rand rand;
		uint32_t n = 0;
		rand_init(&rand, core);
		for (int i = 0; i < 1000000; i++)
			n += draw_new(d, &rand) == 0;
		assert_in_range(n, 99000, 101000);
	}
	lb_drops_put(d);
}

// A27-I02
static void more_than_everything_is_everything_and_nothing_is_nothing(void **state)
{
	struct lb_drops *all =
		lb_drops_new((struct lb_drop_category[]){{"a", 0}, {"b", 2000000}}, 2);
	struct lb_drops *none = lb_drops_new((struct lb_drop_category[]){{"a", 0}}, 1);
	struct rand rand;
	rand_init(&rand, 1);
	assert_true(lb_drops_everything(all));
	assert_false(lb_drops_everything(none));
	assert_false(lb_drops_everything(NULL));
	for (int i = 0; i < 10000; i++) {
		assert_int_equal(draw_new(all, &rand), 1);
		assert_int_equal(draw_new(none, &rand), LB_DROP_NONE);
		assert_int_equal(draw_new(NULL, &rand), LB_DROP_NONE);
	}
	lb_drops_put(all);
	lb_drops_put(none);
}

// A27-I04
static void request_that_waits_is_drawn_once(void **state)
{
	struct lb_drops *d = lb_drops_new((struct lb_drop_category[]){{"x", 300000}}, 1);
	struct rand rand;
	uint32_t n = 0;
	rand_init(&rand, 5);
	for (int i = 0; i < 100000; i++) {
		struct lb_drop_once once = {0};
		bool dropped = false;
		for (int look = 0; look < 20 && !dropped; look++)
			dropped = lb_drops_draw(d, &once, 7, &rand) != LB_DROP_NONE;
		n += dropped;
	}
	assert_in_range(n, 29400, 30600);
	lb_drops_put(d);
}

// A75-G12: another leaf of an aggregate has drops of its own.
static void request_that_moves_to_another_leaf_is_drawn_there(void **state)
{
	struct lb_drops *all = lb_drops_new((struct lb_drop_category[]){{"x", LB_DROP_ALL}}, 1);
	struct lb_drops *none = lb_drops_new(&(struct lb_drop_category){"none", 0}, 1);
	struct lb_drop_once once = {0};
	struct rand rand;
	rand_init(&rand, 5);
	assert_int_equal(lb_drops_draw(NULL, &once, 0, &rand), LB_DROP_NONE); // nothing to draw
	assert_int_equal(once.drawn_for, 0);
	assert_int_equal(lb_drops_draw(none, &once, 0, &rand), LB_DROP_NONE);
	assert_int_equal(lb_drops_draw(all, &once, 0, &rand), LB_DROP_NONE);
	assert_int_equal(lb_drops_draw(all, &once, 1, &rand), 0);
	lb_drops_put(none);
	lb_drops_put(all);
}

static void same_content_is_recognized(void **state)
{
	const struct lb_drop_category list[] = {{"a", 1}, {"b", 3000000}};
	const struct lb_drop_category other[] = {{"a", 2}, {"b", 3000000}};
	struct lb_drops *d = lb_drops_new(list, 2);
	assert_true(lb_drops_same(d, list, 2));
	assert_false(lb_drops_same(d, list, 1));
	assert_false(lb_drops_same(d, other, 2));
	assert_ptr_equal(lb_drops_get(d), d);
	lb_drops_put(d);
	lb_drops_put(d);
	lb_drops_put(NULL);
}

static void each_allocation_that_fails_gives_nothing(void **state)
{
	const struct lb_drop_category list[] = {{"a", 1}, {"b", 2}};
	struct lb_drops *d;
	ALLOC_FAIL_EACH(d = lb_drops_new(list, 2), !d, lb_drops_put(d));
}

RUN_SUITE("lb/drop", cmocka_unit_test(categories_are_drawn_independently_in_order),
	cmocka_unit_test(ten_percent_of_a_million_is_within_a_thousandth),
	cmocka_unit_test(more_than_everything_is_everything_and_nothing_is_nothing),
	cmocka_unit_test(request_that_waits_is_drawn_once),
	cmocka_unit_test(request_that_moves_to_another_leaf_is_drawn_there),
	cmocka_unit_test(same_content_is_recognized),
	cmocka_unit_test(each_allocation_that_fails_gives_nothing))
