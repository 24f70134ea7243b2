// SPDX-License-Identifier: Apache-2.0
#include "tests/support/check.h"
#include "tests/unit/lb/policy/node_world.h"

#include <string.h>

static void init(struct node_world *w, uint32_t choice_count, uint32_t n)
{
	node_world_init(w, &lb_node_least_request, 5);
	w->spec.least_request.choice_count = choice_count;
	assert_int_equal(node_world_update(w, 0, n, ""), 0);
	node_world_connected(w, 0, n);
	assert_int_equal(w->state, LB_READY);
}

// Chi squared of n draws against shares of them.
static double chi2_of(const uint32_t *count, const double *share, uint32_t n, double draws)
{
	double sum = 0;
	for (uint32_t i = 0; i < n; i++) {
		double expected = share[i] * draws;
		sum += (count[i] - expected) * (count[i] - expected) / expected;
	}
	return sum;
}

// A48-01, MC-08: of 4 with 0, 1, 2 and 3 requests, drawn k times with replacement, number i wins
// when all draws are at or after i and one is i: ((4 - i)^k - (3 - i)^k) / 4^k. Chi squared of 3
// degrees of freedom: 16.27 is exceeded once in a thousand seeds.
static void fewest_of_the_drawn_wins_with_its_chance(void **state)
{
	(void)state;
	for (uint32_t k = 2; k <= 10; k += 4) {
		struct node_world w;
		init(&w, k, 4);
		uint32_t count[4] = {0};
		double share[4];
		for (uint32_t i = 0; i < 4; i++) {
			double at_or_after = 1, after = 1;
			for (uint32_t draw = 0; draw < k; draw++) {
				at_or_after *= (4.0 - i) / 4;
				after *= (3.0 - i) / 4;
			}
			share[i] = at_or_after - after;
			w.active[i] = i;
		}
		for (int i = 0; i < 200000; i++)
			count[node_world_number(&w)]++;
		// Shares below one in 20,000 are counted with their neighbor.
		uint32_t n = k == 2 ? 4 : k == 6 ? 3 : 2;
		for (uint32_t i = n; i < 4; i++) {
			count[n - 1] += count[i];
			share[n - 1] += share[i];
		}
		assert_true(chi2_of(count, share, n, 200000) < 16.27);
		node_world_fini(&w);
	}
}

// A48-01: ties go to the first drawn, so equal ones share equally.
static void equal_ones_share_equally(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 2, 5);
	const double share[5] = {0.2, 0.2, 0.2, 0.2, 0.2};
	uint32_t count[5] = {0};
	for (int i = 0; i < 100000; i++)
		count[node_world_number(&w)]++;
	assert_true(chi2_of(count, share, 5, 100000) < 18.47);
	node_world_fini(&w);
}

// A48-02, MC-12: who keeps the counts as the pick says spreads the load, and all are zero when
// nothing is under way.
static void counts_kept_as_told_level_the_load(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 10, 8);
	uint32_t under_way[400];
	for (int i = 0; i < 400; i++) {
		struct lb_pick p = node_world_pick(&w);
		assert_true(p.cell->counts_active);
		under_way[i] = p.cell->member;
		w.active[p.cell->member]++;
	}
	for (int i = 0; i < 8; i++)
		assert_in_range(w.active[i], 48, 52);
	for (int i = 0; i < 400; i++)
		w.active[under_way[i]]--;
	for (int i = 0; i < 8; i++)
		assert_int_equal(w.active[i], 0);
	node_world_fini(&w);
}

// MC-04
static void unconnected_winner_is_wanted_and_another_serves(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 2, 3);
	w.active[1] = w.active[2] = 9;
	uint32_t id = node_world_id(&w, 0);
	w.ready[id / 64] &= ~((uint64_t)1 << (id % 64));
	uint32_t wanted = 0;
	for (int i = 0; i < 9000; i++) {
		struct lb_pick p = node_world_pick(&w);
		assert_int_equal(p.kind, LB_PICK_ENDPOINT);
		assert_int_not_equal(p.cell->member, 0);
		wanted += p.want && p.want->id == id;
	}
	assert_in_range(wanted, 4800, 5200); // 5 of 9 draws have it
	memset(w.ready, 0, sizeof(w.ready));
	struct lb_pick p = node_world_pick(&w);
	assert_int_equal(p.kind, LB_PICK_QUEUE);
	assert_null(p.cell);
	node_world_fini(&w);
}

RUN_SUITE("lb/node_least_request", cmocka_unit_test(fewest_of_the_drawn_wins_with_its_chance),
	cmocka_unit_test(equal_ones_share_equally),
	cmocka_unit_test(counts_kept_as_told_level_the_load),
	cmocka_unit_test(unconnected_winner_is_wanted_and_another_serves))
