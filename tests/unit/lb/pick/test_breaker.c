// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/breaker.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/lb/pick/limit_race.h"

#include <stdio.h>

// A32-I05, A32-I06
static void limit_is_reached_and_not_passed(void **state)
{
	struct lb_breakers *t = lb_breakers_new();
	struct lb_breaker *b = lb_breakers_get(t, "orders", "");
	assert_false(lb_breaker_enter(b, 0));
	for (int i = 0; i < 1024; i++)
		assert_true(lb_breaker_enter(b, 1024));
	assert_false(lb_breaker_enter(b, 1024));
	assert_int_equal(lb_breaker_in_flight(b), 1024);
	lb_breaker_leave(b);
	assert_true(lb_breaker_enter(b, 1024));
	for (int i = 0; i < 1024; i++)
		lb_breaker_leave(b);
	lb_breaker_put(b);
	lb_breakers_free(t);
}

// A32-I08
static void lower_limit_refuses_until_enough_have_left(void **state)
{
	struct lb_breakers *t = lb_breakers_new();
	struct lb_breaker *b = lb_breakers_get(t, "orders", "");
	for (int i = 0; i < 10; i++)
		assert_true(lb_breaker_enter(b, 10));
	for (int i = 0; i < 6; i++) {
		assert_false(lb_breaker_enter(b, 5));
		lb_breaker_leave(b);
	}
	assert_true(lb_breaker_enter(b, 5));
	for (int i = 0; i < 5; i++)
		lb_breaker_leave(b);
	lb_breaker_put(b);
	lb_breakers_free(t);
}

// CB-07: a tenth of what is in flight, though one at least.
static void a_budget_of_retries_grows_with_the_requests_in_flight(void **state)
{
	const struct lb_retry_budget budget = {true, 100000, 1};
	struct lb_breakers *t = lb_breakers_new();
	struct lb_breaker *b = lb_breakers_get(t, "orders", "");
	assert_true(lb_breaker_enter_retry(b, &budget, 0));
	assert_false(lb_breaker_enter_retry(b, &budget, 0));
	for (int i = 0; i < 30; i++)
		assert_true(lb_breaker_enter(b, 1024));
	assert_true(lb_breaker_enter_retry(b, &budget, 0));
	assert_false(lb_breaker_enter_retry(b, &budget, 10)); // a tenth of 20
	assert_true(lb_breaker_enter_retry(b, &budget, 0));
	assert_false(lb_breaker_enter_retry(b, &budget, 0));
	assert_int_equal(lb_breaker_retrying(b), 3);
	for (int i = 0; i < 30; i++)
		lb_breaker_leave(b);
	assert_false(lb_breaker_enter_retry(b, &budget, 0)); // those that there are go on
	lb_breaker_put(b);
	assert_int_equal(lb_breakers_count(t), 1); // requests refer to it
	for (int i = 0; i < 3; i++)
		lb_breaker_leave_retry(b);
	lb_breaker_put(lb_breakers_get(t, "other", ""));
	assert_int_equal(lb_breakers_count(t), 0);
	lb_breakers_free(t);
}

// A32-I07
static void pair_of_cluster_and_service_has_one_counter(void **state)
{
	struct lb_breakers *t = lb_breakers_new();
	struct lb_breaker *a = lb_breakers_get(t, "orders", "eds"), *b;
	assert_ptr_equal(lb_breakers_get(t, "orders", "eds"), a);
	b = lb_breakers_get(t, "orders", "other");
	assert_ptr_not_equal(a, b);
	struct lb_breaker *c = lb_breakers_get(t, "orderse", "ds"); // no joining of the two texts
	assert_ptr_not_equal(a, c);
	assert_true(lb_breaker_enter(a, 1));
	assert_true(lb_breaker_enter(b, 1)); // a new service starts at 0
	lb_breaker_leave(a);
	lb_breaker_leave(b);
	assert_int_equal(lb_breakers_count(t), 3);
	lb_breaker_put(a);
	lb_breaker_put(a);
	lb_breaker_put(b);
	lb_breaker_put(c);
	assert_int_equal(lb_breakers_count(t), 0);
	lb_breaker_put(NULL);
	lb_breakers_free(t);
}

// A32-I07, A32-I09: the pair comes back while requests of its former life are in.
static void counter_stays_while_requests_are_in(void **state)
{
	struct lb_breakers *t = lb_breakers_new();
	struct lb_breaker *a = lb_breakers_get(t, "orders", "eds");
	assert_true(lb_breaker_enter(a, 2));
	lb_breaker_put(a);
	assert_int_equal(lb_breakers_count(t), 1);
	assert_ptr_equal(lb_breakers_get(t, "orders", "eds"), a);
	assert_true(lb_breaker_enter(a, 2));
	assert_false(lb_breaker_enter(a, 2));
	lb_breaker_put(a);
	lb_breaker_leave(a);
	lb_breaker_leave(a);
	struct lb_breaker *b = lb_breakers_get(t, "another", ""); // others' comings clean up
	assert_int_equal(lb_breakers_count(t), 1);
	lb_breaker_put(b);
	lb_breakers_free(t);
}

static void many_pairs_are_kept_apart(void **state)
{
	struct lb_breakers *t = lb_breakers_new();
	struct lb_breaker *all[1000];
	for (int i = 0; i < 1000; i++) {
		char name[16];
		snprintf(name, sizeof(name), "c%d", i);
		all[i] = lb_breakers_get(t, name, "");
		assert_true(((uintptr_t)all[i] & 63) == 0);
		assert_true(lb_breaker_enter(all[i], 1));
	}
	assert_int_equal(lb_breakers_count(t), 1000);
	for (int i = 0; i < 1000; i++) {
		lb_breaker_leave(all[i]);
		lb_breaker_put(all[i]);
	}
	assert_int_equal(lb_breakers_count(t), 0);
	lb_breakers_free(t);
}

#define LIMIT 3
#define N_TRIES 200000

static void *worker(void *ctx)
{
	struct limit_race *race = ctx;
	uint32_t mine = 0;
	for (int i = 0; i < N_TRIES; i++) {
		if (mine < 2 && lb_breaker_enter(race->breaker, LIMIT)) {
			limit_race_entered(race);
			mine++;
		} else if (mine) {
			limit_race_leaves(race);
			lb_breaker_leave(race->breaker);
			mine--;
		}
	}
	for (; mine; mine--) {
		limit_race_leaves(race);
		lb_breaker_leave(race->breaker);
	}
	return NULL;
}

// MC-14
static void workers_together_never_pass_the_limit(void **state)
{
	struct limit_race race;
	limit_race_run(&race, worker);
	assert_in_range(race.most, 1, LIMIT);
	assert_true(race.n_entered > N_TRIES / 4);
	// One worker alone may use all of it.
	for (int i = 0; i < LIMIT; i++)
		assert_true(lb_breaker_enter(race.breaker, LIMIT));
	for (int i = 0; i < LIMIT; i++)
		lb_breaker_leave(race.breaker);
	limit_race_free(&race);
}

static void each_allocation_that_fails_gives_nothing(void **state)
{
	struct lb_breakers *t = NULL;
	struct lb_breaker *b = NULL;
	ALLOC_FAIL_EACH(t = lb_breakers_new(), !t, lb_breakers_free(t));
	t = lb_breakers_new();
	ALLOC_FAIL_EACH(b = lb_breakers_get(t, "a", "b"), !b, lb_breaker_put(b));
	lb_breakers_free(t);
}

RUN_SUITE("lb/breaker", cmocka_unit_test(limit_is_reached_and_not_passed),
	cmocka_unit_test(lower_limit_refuses_until_enough_have_left),
	cmocka_unit_test(a_budget_of_retries_grows_with_the_requests_in_flight),
	cmocka_unit_test(pair_of_cluster_and_service_has_one_counter),
	cmocka_unit_test(counter_stays_while_requests_are_in),
	cmocka_unit_test(many_pairs_are_kept_apart),
	cmocka_unit_test(workers_together_never_pass_the_limit),
	cmocka_unit_test(each_allocation_that_fails_gives_nothing))
