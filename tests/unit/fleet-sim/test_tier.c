// SPDX-License-Identifier: Apache-2.0
// What stands in front of hosts, each kind with what it is known for.
#include "tests/support/check.h"
#include "tools/fleet-sim/maglev.h"
#include "tools/fleet-sim/tier.h"

#include <stdlib.h>

#define N 20
#define HASHES 100000
#define HASH(i) ((uint32_t)((uint64_t)(i) * (UINT32_MAX / HASHES)))

// Of evenly spaced hashes, where each goes.
static void find_all(const struct tier *t, uint32_t *ret)
{
	for (uint32_t i = 0; i < HASHES; i++)
		ret[i] = tier_find(t, HASH(i));
}

// Counts hashes that were at a host that is still there, and are elsewhere now.
static uint32_t n_moved(const uint32_t *before, const uint32_t *after, const bool *is_up)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < HASHES; i++)
		n += before[i] != after[i] && is_up[before[i]];
	return n;
}

static struct tier *tier_of(enum tier_kind kind, bool is_up[N])
{
	struct tier *t = tier_new(kind, N);
	assert_non_null(t);
	for (uint32_t i = 0; i < N; i++)
		is_up[i] = true;
	assert_true(tier_update(t, is_up));
	return t;
}

static void each_host_has_its_share_and_who_is_down_none(void **state)
{
	(void)state;
	for (int kind = 0; kind < TIER_N; kind++) {
		bool is_up[N];
		uint32_t counts[N] = {0};
		static uint32_t found[HASHES];
		struct tier *t = tier_of((enum tier_kind)kind, is_up);
		is_up[0] = is_up[7] = is_up[N - 1] = false;
		assert_true(tier_update(t, is_up));
		find_all(t, found);
		for (uint32_t i = 0; i < HASHES; i++)
			counts[found[i]]++;
		for (uint32_t i = 0; i < N; i++) {
			uint32_t share = is_up[i] ? HASHES / (N - 3) : 0;
			assert_in_range(counts[i], share * 97 / 100, share * 103 / 100);
		}
		tier_free(t);
	}
}

// RFC 2992: in the middle a quarter to a half of all flows is moved, at the end about a half of it;
// modulo moves nearly all; the others hardly any.
static void a_host_that_leaves_moves_what_its_kind_says(void **state)
{
	(void)state;
	static const uint32_t least[TIER_N] = {88, 20, 0, 0, 0}, most[TIER_N] = {97, 27, 0, 3, 3};
	for (int kind = 0; kind < TIER_N; kind++) {
		bool is_up[N];
		static uint32_t before[HASHES], after[HASHES];
		struct tier *t = tier_of((enum tier_kind)kind, is_up);
		find_all(t, before);
		is_up[N / 2] = false;
		assert_true(tier_update(t, is_up));
		find_all(t, after);
		uint32_t percent = n_moved(before, after, is_up) * 100 / HASHES;
		assert_in_range(percent, least[kind], most[kind]);
		tier_free(t);
	}
}

static void a_host_that_comes_takes_its_share_of_resilient_buckets_alone(void **state)
{
	(void)state;
	bool is_up[N];
	static uint32_t before[HASHES], after[HASHES];
	struct tier *t = tier_of(TIER_RESILIENT, is_up);
	is_up[3] = false;
	assert_true(tier_update(t, is_up));
	find_all(t, before);
	is_up[3] = true;
	assert_true(tier_update(t, is_up));
	find_all(t, after);
	for (uint32_t i = 0; i < HASHES; i++)
		assert_true(after[i] == before[i] || after[i] == 3);
	assert_in_range(n_moved(before, after, is_up), HASHES / N - 100, HASHES / N + 100);
	tier_free(t);
}

static void only_a_tier_that_tracks_leaves_open_connections_where_they_are(void **state)
{
	(void)state;
	for (int kind = 0; kind < TIER_N; kind++) {
		bool is_up[N];
		uint32_t n_left = 0;
		struct tier *t = tier_of((enum tier_kind)kind, is_up);
		for (uint32_t i = 0; i < 1000; i++) {
			uint32_t other = (tier_find(t, HASH(i)) + 1) % N;
			n_left += tier_find_open(t, HASH(i), other) == other;
		}
		assert_int_equal(n_left, kind == TIER_TRACKED ? 1000 : 0);
		is_up[5] = false;
		assert_true(tier_update(t, is_up));
		assert_int_not_equal(tier_find_open(t, 77, 5), 5);
		tier_free(t);
	}
}

// Maglev's table does not depend on the order of changes, only on who is there.
static void maglevs_table_is_of_the_hosts_alone(void **state)
{
	(void)state;
	static const uint32_t hosts[] = {2, 5, 11, 17};
	static uint32_t table[MAGLEV_SIZE], again[MAGLEV_SIZE];
	uint32_t counts[18] = {0};
	assert_true(maglev_fill(table, hosts, 4));
	assert_true(maglev_fill(again, hosts, 3));
	assert_true(maglev_fill(again, hosts, 4));
	assert_memory_equal(table, again, sizeof(table));
	for (uint32_t i = 0; i < MAGLEV_SIZE; i++)
		counts[table[i]]++;
	for (uint32_t i = 0; i < 4; i++) // they take turns
		assert_in_range(counts[hosts[i]], MAGLEV_SIZE / 4, MAGLEV_SIZE / 4 + 1);
}

RUN_SUITE("fleet-sim/tier", cmocka_unit_test(each_host_has_its_share_and_who_is_down_none),
	cmocka_unit_test(a_host_that_leaves_moves_what_its_kind_says),
	cmocka_unit_test(a_host_that_comes_takes_its_share_of_resilient_buckets_alone),
	cmocka_unit_test(only_a_tier_that_tracks_leaves_open_connections_where_they_are),
	cmocka_unit_test(maglevs_table_is_of_the_hosts_alone))
