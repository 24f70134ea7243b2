// SPDX-License-Identifier: Apache-2.0
#include "tests/support/check.h"
#include "tools/fleet-sim/fleet.h"

#define N_HOSTS 10
#define N_CONNECTIONS 20000

static struct fleet *fleet_of(enum tier_kind kind, uint64_t seed)
{
	const struct fleet_conf conf = {seed, N_HOSTS, N_CONNECTIONS, kind};
	struct fleet *f = fleet_new(&conf, NULL);
	assert_non_null(f);
	return f;
}

static uint32_t sum_of(const struct fleet *f, uint32_t counts[N_HOSTS])
{
	uint32_t sum = 0;
	fleet_count(f, counts);
	for (uint32_t i = 0; i < N_HOSTS; i++)
		sum += counts[i];
	return sum;
}

// No connection is forgotten, none is at a host that is down, and its own are lost.
static void a_host_that_leaves_loses_its_own(void **state)
{
	(void)state;
	for (int kind = 0; kind < TIER_N; kind++) {
		uint32_t before[N_HOSTS], after[N_HOSTS];
		struct fleet_cut cut;
		struct fleet *f = fleet_of((enum tier_kind)kind, 1);
		assert_int_equal(sum_of(f, before), N_CONNECTIONS);
		f->is_up[4] = false;
		assert_true(fleet_change(f, &cut));
		assert_int_equal(sum_of(f, after), N_CONNECTIONS);
		assert_int_equal(after[4], 0);
		assert_int_equal(cut.n_lost, before[4]);
		assert_true(cut.n_cut > 0 || kind == TIER_RESILIENT || kind == TIER_TRACKED);
		assert_true(cut.n_cut == 0 || (kind != TIER_RESILIENT && kind != TIER_TRACKED));
		// All are where the tier has them now.
		assert_true(fleet_change(f, &cut));
		assert_int_equal(cut.n_lost + cut.n_cut, 0);
		fleet_free(f);
	}
}

static void the_seed_decides(void **state)
{
	(void)state;
	uint32_t first[N_HOSTS], again[N_HOSTS], other[N_HOSTS];
	struct fleet *f = fleet_of(TIER_MAGLEV, 1), *g = fleet_of(TIER_MAGLEV, 1);
	struct fleet *h = fleet_of(TIER_MAGLEV, 2);
	fleet_count(f, first);
	fleet_count(g, again);
	fleet_count(h, other);
	assert_memory_equal(first, again, sizeof(first));
	assert_memory_not_equal(first, other, sizeof(first));
	fleet_free(f);
	fleet_free(g);
	fleet_free(h);
}

// As who is cut by each of a thousand waves: one port after the other, and none twice.
static void who_connects_again_and_again_is_another_flow_each_time(void **state)
{
	(void)state;
	const uint32_t n = 1000;
	struct fleet *f = fleet_of(TIER_MODULO, 1);
	uint32_t hashes[1000];
	for (uint32_t i = 0; i < n; i++) {
		hashes[i] = f->hashes[0];
		for (uint32_t k = 0; k < i; k++)
			assert_int_not_equal(hashes[i], hashes[k]);
		fleet_reconnect(f, 0);
	}
	assert_int_equal(f->attempts[0], n);
	fleet_free(f);
}

RUN_SUITE("fleet-sim/fleet", cmocka_unit_test(a_host_that_leaves_loses_its_own),
	cmocka_unit_test(the_seed_decides),
	cmocka_unit_test(who_connects_again_and_again_is_another_flow_each_time))
