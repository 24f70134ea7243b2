// SPDX-License-Identifier: Apache-2.0
#include "lb/base/rand.h"
#include "lb/pick/breaker.h"
#include "lb/pick/quota_cache.h"
#include "tests/support/check.h"
#include "tests/unit/lb/pick/limit_race.h"

#include <stdio.h>
#include <string.h>

static void enter_many(struct lb_quota_cache *l, struct lb_breaker *b, uint32_t n, uint32_t limit)
{
	for (uint32_t i = 0; i < n; i++)
		assert_true(lb_quota_cache_enter(l, b, limit));
}

static void leave_many(struct lb_quota_cache *l, struct lb_breaker *b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		lb_quota_cache_leave(l, b);
}

static void requests_that_come_and_go_leave_the_line_alone(void **state)
{
	struct lb_breakers *t = lb_breakers_new();
	struct lb_breaker *b = lb_breakers_get(t, "orders", "");
	struct lb_quota_cache l = {.n_workers = 2};
	for (int i = 0; i < 8; i++) {
		enter_many(&l, b, 32, 1024);
		leave_many(&l, b, 32);
		lb_quota_cache_tidy(&l);
	}
	uint32_t before = lb_breaker_in_flight(b);
	for (int i = 0; i < 1000; i++) {
		for (uint32_t k = 0; k < 32; k++) {
			assert_true(lb_quota_cache_enter(&l, b, 1024));
			assert_int_equal(lb_breaker_in_flight(b), before);
		}
		for (uint32_t k = 0; k < 32; k++) {
			lb_quota_cache_leave(&l, b);
			assert_int_equal(lb_breaker_in_flight(b), before);
		}
		lb_quota_cache_tidy(&l);
		assert_int_equal(lb_breaker_in_flight(b), before);
	}
	assert_in_range(before, 32, 64);
	lb_quota_cache_return(&l);
	assert_int_equal(lb_breaker_in_flight(b), 0);
	lb_breaker_put(b);
	lb_breakers_free(t);
}

static void all_is_given_back_in_the_second_quiet_turn(void **state)
{
	struct lb_breakers *t = lb_breakers_new();
	struct lb_breaker *b = lb_breakers_get(t, "orders", "");
	struct lb_quota_cache l = {.n_workers = 2};
	enter_many(&l, b, 40, 1024);
	leave_many(&l, b, 30);
	lb_quota_cache_tidy(&l);
	assert_true(l.n_spare > 0);
	assert_int_equal(lb_breaker_in_flight(b), 10 + l.n_spare);
	lb_quota_cache_tidy(&l);
	assert_true(l.n_spare > 0);
	lb_quota_cache_tidy(&l);
	assert_int_equal(l.n_spare, 0);
	assert_int_equal(lb_breaker_in_flight(b), 10);
	leave_many(&l, b, 10);
	lb_quota_cache_tidy(&l);
	lb_quota_cache_tidy(&l);
	lb_quota_cache_tidy(&l);
	assert_int_equal(lb_breaker_in_flight(b), 0);
	lb_breaker_put(b);
	assert_int_equal(lb_breakers_count(t), 0);
	lb_breakers_free(t);
}

// MC-14: for one worker alone; and for two of which one has kept places, at its next turn.
static void all_of_the_limit_can_be_used_and_no_more(void **state)
{
	static const uint32_t limits[] = {0, 1, 2, 10, 31, 32, 33, 100, 1024, 5000};
	struct lb_breakers *t = lb_breakers_new();
	struct lb_breaker *b = lb_breakers_get(t, "orders", "");
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct lb_quota_cache one = {.n_workers = 2}, other = {.n_workers = 2};
		uint32_t limit = limits[i], n = limit / 4;
		enter_many(&other, b, n, limit);
		leave_many(&other, b, n);
		assert_true(limit >= 32 ? other.n_spare > 0 || n < 3 : !other.n_spare);
		assert_true(other.n_spare <= limit / 16);
		enter_many(&one, b, limit - other.n_spare, limit);
		if (other.n_spare)
			assert_false(lb_quota_cache_enter(&one, b, limit));
		lb_quota_cache_tidy(&other);
		enter_many(&one, b, limit - (lb_breaker_in_flight(b) - one.n_spare), limit);
		assert_int_equal(lb_breaker_in_flight(b), limit);
		assert_true(lb_quota_cache_is_full(&one, b, limit));
		assert_false(lb_quota_cache_enter(&one, b, limit));
		assert_false(lb_quota_cache_enter(&other, b, limit));
		assert_int_equal(one.n_spare + other.n_spare, 0);
		leave_many(&one, b, limit / 4);
		assert_int_equal(lb_breaker_in_flight(b), limit - limit / 4);
		leave_many(&one, b, limit - limit / 4);
		lb_quota_cache_return(&one);
		assert_int_equal(lb_breaker_in_flight(b), 0);
	}
	lb_breaker_put(b);
	lb_breakers_free(t);
}

// A32-I08
static void lower_limit_counts_requests_and_not_what_the_worker_keeps(void **state)
{
	struct lb_breakers *t = lb_breakers_new();
	struct lb_breaker *b = lb_breakers_get(t, "orders", "");
	struct lb_quota_cache l = {.n_workers = 2};
	enter_many(&l, b, 60, 1024);
	leave_many(&l, b, 55);
	assert_true(l.n_spare > 10);
	assert_true(lb_quota_cache_is_full(&l, b, 5));
	assert_false(lb_quota_cache_is_full(&l, b, 6));
	assert_true(lb_quota_cache_enter(&l, b, 6));
	assert_false(lb_quota_cache_enter(&l, b, 6));
	leave_many(&l, b, 6);
	lb_quota_cache_return(&l);
	assert_int_equal(lb_breaker_in_flight(b), 0);
	lb_breaker_put(b);
	lb_breakers_free(t);
}

// Turns of a worker after which it keeps nothing of a cluster that no request has asked for.
#define N_TURNS 64

static void turn_with(struct lb_quota_cache *l, struct lb_breaker *b)
{
	assert_true(lb_quota_cache_enter(l, b, 1024));
	lb_quota_cache_leave(l, b);
	lb_quota_cache_tidy(l);
}

// MC-14: one worker serves another cluster by now, the other has heard of a limit below what the
// first one keeps.
static void busy_worker_gives_back_what_it_does_not_use(void **state)
{
	struct lb_breakers *t = lb_breakers_new();
	struct lb_breaker *orders = lb_breakers_get(t, "orders", "");
	struct lb_breaker *users = lb_breakers_get(t, "users", "");
	struct lb_quota_cache one = {.n_workers = 2}, other = {.n_workers = 2};
	for (uint32_t limit = 32; limit <= 1024; limit *= 32) {
		enter_many(&one, orders, 40, 1024);
		leave_many(&one, orders, 40);
		uint32_t kept = lb_breaker_in_flight(orders);
		assert_true(kept >= 32);
		for (uint32_t i = 0; i + 1 < N_TURNS; i++) {
			turn_with(&one, users);
			assert_int_equal(lb_breaker_in_flight(orders), kept);
		}
		assert_int_equal(lb_quota_cache_is_full(&other, orders, limit), limit == 32);
		turn_with(&one, users);
		assert_int_equal(lb_breaker_in_flight(orders), 0);
		assert_false(lb_quota_cache_is_full(&other, orders, limit));
		enter_many(&other, orders, limit, limit);
		assert_false(lb_quota_cache_enter(&other, orders, limit));
		leave_many(&other, orders, limit);
		lb_quota_cache_return(&other);
	}
	lb_quota_cache_return(&one);
	lb_breaker_put(orders);
	lb_breaker_put(users);
	assert_int_equal(lb_breakers_count(t), 0);
	lb_breakers_free(t);
}

// A32-I08: requests of the old limit that end do not put off the new one.
static void places_of_requests_that_end_are_not_kept_for_an_old_limit(void **state)
{
	struct lb_breakers *t = lb_breakers_new();
	struct lb_breaker *b = lb_breakers_get(t, "orders", "");
	struct lb_quota_cache one = {.n_workers = 2}, other = {.n_workers = 2};
	enter_many(&one, b, 200, 1024);
	for (uint32_t i = 0; i < 200; i++) {
		lb_quota_cache_leave(&one, b);
		lb_quota_cache_tidy(&one);
		if (i >= N_TURNS)
			assert_int_equal(lb_breaker_in_flight(b), 199 - i);
		bool full = lb_quota_cache_is_full(&other, b, 32);
		assert_int_equal(lb_quota_cache_enter(&other, b, 32), !full);
		if (!full)
			lb_quota_cache_leave(&other, b);
		lb_quota_cache_return(&other);
		assert_int_equal(full, lb_breaker_in_flight(b) >= 32);
	}
	assert_int_equal(lb_breaker_in_flight(b), 0);
	lb_breaker_put(b);
	lb_breakers_free(t);
}

static void places_of_a_cluster_in_use_stay(void **state)
{
	struct lb_breakers *t = lb_breakers_new();
	struct lb_breaker *orders = lb_breakers_get(t, "orders", "");
	struct lb_breaker *users = lb_breakers_get(t, "users", "");
	struct lb_quota_cache l = {.n_workers = 2};
	enter_many(&l, orders, 40, 1024);
	leave_many(&l, orders, 40);
	uint32_t kept = l.n_spare;
	for (uint32_t i = 0; i < 10 * N_TURNS; i++) {
		turn_with(&l, i % (N_TURNS - 1) == 0 ? orders : users);
		assert_int_equal(lb_breaker_in_flight(orders), kept);
	}
	lb_quota_cache_return(&l);
	lb_breaker_put(orders);
	lb_breaker_put(users);
	lb_breakers_free(t);
}

#define N_BREAKERS (3 * LB_QUOTA_CACHE_SLOTS)

// More than there are slots: some meet in one, where only the first has places kept.
static void each_breaker_counts_its_own(void **state)
{
	struct lb_breakers *t = lb_breakers_new();
	struct lb_breaker *all[N_BREAKERS];
	uint32_t held[N_BREAKERS] = {0}, n_kept = 0;
	struct lb_quota_cache l = {.n_workers = 2};
	struct rand rand;
	rand_init(&rand, 7);
	for (uint32_t i = 0; i < N_BREAKERS; i++) {
		char name[16];
		snprintf(name, sizeof(name), "c%u", i);
		all[i] = lb_breakers_get(t, name, "");
	}
	for (int i = 0; i < 200000; i++) {
		uint32_t k = rand_below(&rand, N_BREAKERS);
		if (held[k] && rand_below(&rand, 2)) {
			lb_quota_cache_leave(&l, all[k]);
			held[k]--;
		} else {
			assert_true(lb_quota_cache_enter(&l, all[k], 4096));
			held[k]++;
		}
		if (rand_below(&rand, 100) == 0)
			lb_quota_cache_tidy(&l);
		n_kept += l.n_spare > 0;
	}
	assert_true(n_kept > 100000);
	lb_quota_cache_return(&l);
	for (uint32_t i = 0; i < N_BREAKERS; i++) {
		assert_int_equal(lb_breaker_in_flight(all[i]), held[i]);
		leave_many(&l, all[i], held[i]);
	}
	lb_quota_cache_return(&l);
	for (uint32_t i = 0; i < N_BREAKERS; i++)
		lb_breaker_put(all[i]);
	assert_int_equal(lb_breakers_count(t), 0);
	lb_breakers_free(t);
}

#define N_WORKERS 3

// Beside the count of what is really in flight. The limit changes now and then; the old one is of
// no more account when each worker has had its turns.
static void random_workers_hold_the_limit_and_refuse_early_by_the_bound(void **state)
{
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct lb_breakers *t = lb_breakers_new();
		struct lb_breaker *b = lb_breakers_get(t, "orders", "");
		struct lb_quota_cache l[N_WORKERS] = {{.n_workers = N_WORKERS},
			{.n_workers = N_WORKERS}, {.n_workers = N_WORKERS}};
		uint32_t held[N_WORKERS] = {0}, in = 0, limit = 0, lately = 0;
		uint32_t n_turns[N_WORKERS] = {0}; // since the limit has changed
		int period = seed % 2 ? 1000 : 10000;
		struct rand rand;
		rand_init(&rand, seed);
		for (int i = 0; i < 40000; i++) {
			uint32_t w = rand_below(&rand, N_WORKERS);
			uint32_t rises = 3 + (uint32_t)(i / 500 % 2) * 4; // of ten
			if (i % period == 0) {
				limit = rand_below(&rand, 600);
				lately = lately > limit ? lately : limit;
				memset(n_turns, 0, sizeof(n_turns));
			}
			if (n_turns[0] >= N_TURNS && n_turns[1] >= N_TURNS && n_turns[2] >= N_TURNS)
				lately = limit;
			if (rand_below(&rand, 20) == 0) {
				lb_quota_cache_tidy(&l[w]);
				n_turns[w]++;
			} else if (rand_below(&rand, 10) < rises) {
				bool full = lb_quota_cache_is_full(&l[w], b, limit);
				bool entered = lb_quota_cache_enter(&l[w], b, limit);
				assert_int_equal(entered, !full);
				assert_true(!entered || in < limit);
				assert_true(entered || in + lately / 8 >= limit);
				held[w] += entered;
				in += entered;
			} else if (held[w]) {
				lb_quota_cache_leave(&l[w], b);
				held[w]--;
				in--;
			}
			uint32_t spare = l[0].n_spare + l[1].n_spare + l[2].n_spare;
			assert_int_equal(lb_breaker_in_flight(b), in + spare);
		}
		for (uint32_t w = 0; w < N_WORKERS; w++) {
			leave_many(&l[w], b, held[w]);
			lb_quota_cache_return(&l[w]);
		}
		assert_int_equal(lb_breaker_in_flight(b), 0);
		lb_breaker_put(b);
		lb_breakers_free(t);
	}
}

#define LIMIT 256
#define N_TRIES 100000

static void leave(struct limit_race *race, struct lb_quota_cache *l)
{
	limit_race_leaves(race);
	lb_quota_cache_leave(l, race->breaker);
}

static void *worker(void *ctx)
{
	struct limit_race *race = ctx;
	struct lb_quota_cache l = {.n_workers = LIMIT_RACE_WORKERS};
	struct rand rand;
	uint32_t mine = 0;
	rand_init(&rand, (uintptr_t)&l);
	for (int i = 0; i < N_TRIES; i++) {
		bool rises = i / 1000 % 2;
		if (i % 16 == 0)
			lb_quota_cache_tidy(&l);
		if (rand_below(&rand, 4) < (rises ? 3 : 1)) {
			if (!lb_quota_cache_enter(&l, race->breaker, LIMIT))
				continue;
			limit_race_entered(race);
			mine++;
		} else if (mine) {
			leave(race, &l);
			mine--;
		}
	}
	for (; mine; mine--)
		leave(race, &l);
	lb_quota_cache_return(&l);
	return NULL;
}

// MC-14
static void workers_at_once_never_pass_the_limit(void **state)
{
	struct limit_race race;
	limit_race_run(&race, worker);
	assert_in_range(race.most, LIMIT / 2, LIMIT);
	assert_true(race.n_entered > N_TRIES / 4);
	limit_race_free(&race);
}

RUN_SUITE("lb/quota_cache", cmocka_unit_test(requests_that_come_and_go_leave_the_line_alone),
	cmocka_unit_test(all_is_given_back_in_the_second_quiet_turn),
	cmocka_unit_test(all_of_the_limit_can_be_used_and_no_more),
	cmocka_unit_test(lower_limit_counts_requests_and_not_what_the_worker_keeps),
	cmocka_unit_test(busy_worker_gives_back_what_it_does_not_use),
	cmocka_unit_test(places_of_requests_that_end_are_not_kept_for_an_old_limit),
	cmocka_unit_test(places_of_a_cluster_in_use_stay),
	cmocka_unit_test(each_breaker_counts_its_own),
	cmocka_unit_test(random_workers_hold_the_limit_and_refuse_early_by_the_bound),
	cmocka_unit_test(workers_at_once_never_pass_the_limit))
