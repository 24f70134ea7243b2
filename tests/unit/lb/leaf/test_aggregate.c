// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/leaf_picker.h"
#include "lb/policy/node_ops.h"
#include "tests/support/check.h"
#include "tests/unit/lb/fake_node.h"
#include "tests/unit/lb/leaves.h"

static int configure(void *ctx, struct lb_leaf *leaf, const char *name)
{
	struct leaves *f = ctx;
	int i = name[4] - '0';
	return leaf_update(
		leaf, &f->parts[i].config, f->parts[i].priorities, f->parts[i].n_priorities);
}

static uint32_t leaf_id(void *ctx, const char *name)
{
	return (uint32_t)(name[4] - '0');
}

static void init_aggregate(struct leaves *f, struct leaves_plan *plans)
{
	leaves_init_world(f, 1);
	for (uint32_t i = 0; i < 3; i++) {
		leaves_plan_init(&plans[i], 16 * i);
		f->parts[i].config = f->config;
		f->parts[i].priorities = plans[i].priorities;
		f->parts[i].n_priorities = 2;
	}
	const struct lb_aggregate_env env = {
		leaves_env(f, lb_node_ops_of), leaves_parent(f), configure, leaf_id};
	f->aggregate = lb_aggregate_new(&env, "all");
	assert_non_null(f->aggregate);
}

static void use_leaves(struct leaves *f, const char *const *names, uint32_t n)
{
	assert_int_equal(lb_aggregate_update(f->aggregate, names, n, ""), 0);
}

static void all_down(struct leaves *f, uint32_t first, uint32_t n, bool is_down)
{
	for (uint32_t i = 0; i < n; i++)
		leaves_set_down(f, first + i, is_down);
}

// A75-G09
static void next_leaf_serves_while_the_first_fails(void **state)
{
	static const char *const names[] = {"leaf0", "leaf1"}, *const turned[] = {"leaf1", "leaf0"};
	static struct leaves f;
	struct leaves_plan plans[3];
	init_aggregate(&f, plans);
	use_leaves(&f, names, 2);
	leaves_pass(&f, WORLD_S);
	assert_in_range(leaves_picked(&f), 0, 7);
	assert_null(lb_aggregate_leaf(f.aggregate, "leaf1"));
	all_down(&f, 0, 16, true);
	leaves_pass(&f, 30 * WORLD_S);
	assert_in_range(leaves_picked(&f), 16, 23);
	assert_string_equal(lb_leaf_layer(f.picker)->name, "leaf1");
	struct lb_leaf *second = lb_aggregate_leaf(f.aggregate, "leaf1");
	use_leaves(&f, turned, 2);
	assert_ptr_equal(lb_aggregate_leaf(f.aggregate, "leaf1"), second);
	assert_in_range(leaves_picked(&f), 16, 23);
	use_leaves(&f, names, 2);
	all_down(&f, 0, 16, false);
	leaves_pass(&f, 200 * WORLD_S);
	assert_in_range(leaves_picked(&f), 0, 7);
	leaves_fini(&f);
}

// A37-G10
static void aggregate_without_leaves_fails(void **state)
{
	static struct leaves f;
	struct leaves_plan plans[3];
	init_aggregate(&f, plans);
	use_leaves(&f, NULL, 0);
	assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
	assert_string_equal(leaves_pick(&f).text, "cluster all: no leaf clusters");
	assert_null(lb_leaf_layer(f.picker));
	leaves_fini(&f);
}

// A75-G11
static void hanging_priority_starts_the_next_one_and_the_next_leaf_together(void **state)
{
	static const char *const names[] = {"leaf0", "leaf1"};
	static struct leaves f;
	struct leaves_plan plans[3];
	init_aggregate(&f, plans);
	for (uint32_t i = 0; i < 16; i++)
		f.is_hung[i] = true;
	use_leaves(&f, names, 2);
	leaves_pass(&f, 10 * WORLD_S - 50 * WORLD_MS);
	assert_null(lb_aggregate_leaf(f.aggregate, "leaf1"));
	assert_int_equal(f.state, LB_CONNECTING);
	leaves_pass(&f, WORLD_S);
	assert_in_range(leaves_picked(&f), 16, 23);
	for (uint32_t i = 8; i < 16; i++)
		f.is_hung[i] = false; // the second priority of the first leaf pulls it back
	leaves_pass(&f, WORLD_S);
	assert_in_range(leaves_picked(&f), 8, 15);
	leaves_fini(&f);
}

// A75-G12
static void leaf_that_drops_everything_keeps_the_traffic(void **state)
{
	static const char *const names[] = {"leaf0", "leaf1"};
	static const struct lb_drop_category all = {"maintenance", LB_DROP_ALL};
	static struct leaves f;
	struct leaves_plan plans[3];
	init_aggregate(&f, plans);
	f.parts[0].config.drops = &all;
	f.parts[0].config.n_drops = 1;
	f.parts[0].n_priorities = 0;
	use_leaves(&f, names, 2);
	leaves_pass(&f, 60 * WORLD_S);
	assert_int_equal(f.state, LB_READY);
	assert_string_equal(lb_leaf_layer(f.picker)->name, "leaf0");
	assert_null(lb_aggregate_leaf(f.aggregate, "leaf1"));
	leaves_fini(&f);
}

// A75-T02
static void dump_of_an_aggregate_has_a_whole_tree_for_each_leaf(void **state)
{
	static const char *const names[] = {"leaf0", "leaf1"};
	static struct leaves f;
	struct leaves_plan plans[3];
	struct fake_dump d;
	init_aggregate(&f, plans);
	f.parts[0].n_priorities = 0;
	use_leaves(&f, names, 2);
	leaves_pass(&f, WORLD_S);
	fake_dump_init(&d);
	lb_aggregate_dump(f.aggregate, &d.base);
	const char *at = d.text;
	static const char *const order[] = {"cds READY cluster=all\n  priority READY\n    leaf0 ",
		"cds TRANSIENT_FAILURE cluster=leaf0", "outlier_detection", "xds_cluster_impl",
		"xds_override_host", "priority", "leaf1 READY current=yes",
		"cds READY cluster=leaf1", "outlier_detection", "xds_cluster_impl",
		"xds_override_host", "priority"};
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		at = strstr(at, order[i]);
		assert_non_null(at);
		at++;
	}
	leaves_fini(&f);
}

// Weeks of failures and updates: once things are left alone, requests go to the first leaf and
// priority that has somebody up; nothing leaks and no member is made twice.
static void weeks_of_outages_end_where_they_should(void **state)
{
	static const char *const names[] = {"leaf0", "leaf1"};
	static struct leaves f;
	struct leaves_plan plans[3];
	struct rand rand;
	init_aggregate(&f, plans);
	rand_init(&rand, 2024);
	use_leaves(&f, names, 2);
	for (int round = 0; round < 400; round++) {
		for (uint64_t n = rand_below(&rand, 6); n; n--) {
			uint32_t first = 8 * (uint32_t)rand_below(&rand, 4);
			bool is_down = rand_below(&rand, 2);
			if (rand_below(&rand, 2))
				all_down(&f, first, 8, is_down);
			else
				leaves_set_down(
					&f, first + (uint32_t)rand_below(&rand, 8), is_down);
			leaves_pass(&f, rand_below(&rand, 20) * WORLD_S);
		}
		if (rand_below(&rand, 4) == 0) {
			plans[0].localities[0].weight = 1 + (uint32_t)rand_below(&rand, 9);
			plans[1].localities[2].n_endpoints = (uint32_t)rand_below(&rand, 5);
			use_leaves(&f, names, 2);
		}
		leaves_pass(&f, 150 * WORLD_S); // longer than any backoff (BO-01)
		uint32_t group = 0; // of eight: a priority of a leaf
		for (; group < 4; group++) {
			uint32_t n_up = 0;
			for (uint32_t i = 0; i < 8; i++) {
				const struct lb_leaf_locality *l =
					&plans[group / 2].localities[group % 2 * 2 + i / 4];
				n_up += i % 4 < l->n_endpoints && !f.is_down[8 * group + i];
			}
			if (n_up)
				break;
		}
		for (int i = 0; i < 20; i++) {
			uint32_t who = leaves_picked(&f);
			assert_int_equal(who == NOTHING, group == 4);
			if (who != NOTHING) {
				assert_int_equal(who / 8, group);
				assert_false(f.is_down[who]);
			}
		}
		assert_int_equal(f.state, group < 4 ? LB_READY : f.state);
		assert_true(f.n_taken <= 32);
	}
	assert_true(world_now(&f.world) - WORLD_START > 1000 * 60 * WORLD_S);
	leaves_fini(&f);
}

// A configuration by chance: each locality in some priority, endpoints draining or not, any policy.
static uint32_t draw_config(struct leaves *f, struct leaves_plan *p, struct rand *rand)
{
	static const struct lb_policy_spec specs[] = {
		{.kind = LB_POLICY_ROUND_ROBIN},
		{.kind = LB_POLICY_WRR_LOCALITY, .child = &leaves_child},
		{.kind = LB_POLICY_LEAST_REQUEST, .least_request = {2}},
		{.kind = LB_POLICY_RING_HASH, .ring_hash = {64, 1024}},
		{.kind = LB_POLICY_PICK_FIRST},
	};
	static struct lb_leaf_locality in_order[4];
	uint32_t n_priorities = 1 + (uint32_t)rand_below(rand, 3), n = 0;
	uint32_t rank_of[4];
	f->config.spec = &specs[rand_below(rand, 5)];
	for (uint32_t i = 0; i < 4; i++) {
		rank_of[i] = i < n_priorities ? i : (uint32_t)rand_below(rand, n_priorities);
		p->localities[i].weight = 1 + (uint32_t)rand_below(rand, 3);
	}
	uint32_t turn = (uint32_t)rand_below(rand, 4);
	for (uint32_t rank = 0; rank < n_priorities; rank++) {
		p->priorities[rank] = (struct lb_leaf_priority){&in_order[n], 0};
		for (uint32_t i = 0; i < 4; i++) {
			if (rank_of[i] != rank)
				continue;
			in_order[n++] = p->localities[(i + turn) % 4];
			p->priorities[rank].n_localities++;
		}
	}
	for (uint32_t i = 0; i < 16; i++)
		p->endpoints[i].health = rand_below(rand, 4) ? LB_LEAF_HEALTHY : LB_LEAF_DRAINING;
	return n_priorities;
}

static bool serves(const struct leaves *f, const struct lb_leaf_priority *p, uint32_t who)
{
	for (uint32_t i = 0; i < p->n_localities; i++) {
		for (uint32_t j = 0; j < p->localities[i].n_endpoints; j++) {
			const struct lb_leaf_endpoint *e = &p->localities[i].endpoints[j];
			uint32_t address = ip_to_v4(&e->addresses[0].ip) - 0x0a520000;
			if (e->health == LB_LEAF_HEALTHY && !f->is_down[address] &&
				(who == NOTHING || who == address))
				return true;
		}
	}
	return false;
}

// A74-C03, A56-P08 to A56-P11, A52-T12, A55-O03: whatever moves where under whatever policy,
// requests end up with somebody who is up in the first priority that has anybody.
static void random_updates_send_requests_where_they_should_go(void **state)
{
	static struct leaves f;
	struct leaves_plan p;
	struct rand rand;
	leaves_init(&f, lb_node_ops_of);
	leaves_plan_init(&p, 0);
	rand_init(&rand, 77);
	for (int round = 0; round < 300; round++) {
		uint32_t n = draw_config(&f, &p, &rand), rank = 0;
		leaves_update(&f, &p, n);
		for (uint64_t k = rand_below(&rand, 8); k; k--)
			leaves_set_down(&f, (uint32_t)rand_below(&rand, 16), rand_below(&rand, 2));
		// A ring connects when requests come.
		for (int i = 0; i < 200; i++) {
			leaves_picked(&f);
			leaves_pass(&f, WORLD_S);
		}
		while (rank < n && !serves(&f, &p.priorities[rank], NOTHING))
			rank++;
		for (int i = 0; i < 20; i++) {
			uint32_t who = leaves_picked(&f);
			for (int k = 0; k < 30 && who == NOTHING && rank < n; k++) {
				leaves_pass(&f, WORLD_S);
				who = leaves_picked(&f);
			}
			assert_int_equal(who == NOTHING, rank == n);
			assert_true(rank == n || serves(&f, &p.priorities[rank], who));
		}
	}
	leaves_fini(&f);
}

RUN_SUITE("lb/aggregate", cmocka_unit_test(next_leaf_serves_while_the_first_fails),
	cmocka_unit_test(aggregate_without_leaves_fails),
	cmocka_unit_test(hanging_priority_starts_the_next_one_and_the_next_leaf_together),
	cmocka_unit_test(leaf_that_drops_everything_keeps_the_traffic),
	cmocka_unit_test(dump_of_an_aggregate_has_a_whole_tree_for_each_leaf),
	cmocka_unit_test(weeks_of_outages_end_where_they_should),
	cmocka_unit_test(random_updates_send_requests_where_they_should_go))
