// SPDX-License-Identifier: Apache-2.0
// Which endpoints policies are given (gRFC A68), and what becomes of the others.
#include "lb/base/rand.h"
#include "lb/index/hash.h"
#include "lb/leaf/subset.h"
#include "lb/member/probes.h"
#include "lb/pick/affinity_map.h"
#include "lb/pick/check.h"
#include "lb/pick/leaf_endpoints.h"
#include "lb/pick/leaf_picker.h"
#include "lb/policy/node_ops.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/lb/fake_node.h"
#include "tests/unit/lb/leaves.h"

#include <errno.h>
#include <stdlib.h>

#define MOST 400
#define N_LOCALITIES 4 // two by two in priorities

struct input {
	struct ip_port addresses[MOST];
	struct lb_leaf_endpoint endpoints[MOST];
	struct lb_leaf_locality localities[N_LOCALITIES];
	struct lb_leaf_priority priorities[N_LOCALITIES / 2];
	struct lb_leaf_endpoints *made; // counted
};

// Endpoints `first` and after, as many as n says in each locality.
static void input_make(struct input *in, uint32_t first, const uint32_t n[N_LOCALITIES])
{
	static const char *const names[N_LOCALITIES] = {"a", "b", "c", "d"};
	const struct ip_port *second;
	uint32_t at = 0;
	for (uint32_t i = 0; i < N_LOCALITIES; i++) {
		in->localities[i] =
			(struct lb_leaf_locality){str_from(names[i]), 1, &in->endpoints[at], n[i]};
		for (uint32_t k = 0; k < n[i]; k++, at++) {
			in->addresses[at] = world_addr(first + at);
			in->endpoints[at] = (struct lb_leaf_endpoint){
				&in->addresses[at], 1, 1, LB_LEAF_HEALTHY, STR(""), STR("")};
		}
	}
	for (uint32_t i = 0; i < N_LOCALITIES / 2; i++)
		in->priorities[i] = (struct lb_leaf_priority){&in->localities[2 * i], 2};
	in->made = lb_leaf_endpoints_new(in->priorities, N_LOCALITIES / 2, &second);
	assert_non_null(in->made);
}

static struct lb_policy_spec child_of(uint32_t size)
{
	return (struct lb_policy_spec){.kind = LB_POLICY_ROUND_ROBIN, .subset_size = size};
}

static struct lb_policy_spec spec_of(uint32_t size, const struct lb_policy_spec *child)
{
	return (struct lb_policy_spec){
		.kind = LB_POLICY_WRR_LOCALITY, .subset_size = size, .child = child};
}

static uint8_t *chosen(const struct input *in, const struct lb_policy_spec *spec, uint64_t seed)
{
	uint8_t *is_out;
	assert_int_equal(lb_subset_choose(in->made, spec, seed, &is_out), 0);
	return is_out;
}

// The twin: for each endpoint, how many of its group go before it.
static void twin_choose(const struct input *in, uint32_t first, uint32_t n, uint32_t size,
	uint64_t seed, uint8_t *is_out)
{
	uint8_t was_out[MOST];
	memcpy(was_out, is_out, sizeof(was_out));
	for (uint32_t i = first; i < first + n && size; i++) {
		uint32_t n_before = 0;
		uint64_t own = lb_xxh64_seeded(seed, &in->addresses[i], sizeof(struct ip_port));
		for (uint32_t k = first; k < first + n; k++)
			n_before += !was_out[k] && lb_xxh64_seeded(seed, &in->addresses[k],
							   sizeof(struct ip_port)) < own;
		is_out[i] |= n_before >= size;
	}
}

// A68-01, A68-02, A68-05
static void those_with_the_least_hashes_are_chosen(void **state)
{
	(void)state;
	struct rand r;
	rand_init(&r, 68);
	for (int round = 0; round < 200; round++) {
		static struct input in;
		uint32_t n[N_LOCALITIES];
		for (int i = 0; i < N_LOCALITIES; i++)
			n[i] = (uint32_t)rand_below(&r, round < 100 ? 6 : 101);
		uint32_t size = (uint32_t)rand_below(&r, 60);
		struct lb_policy_spec child = child_of((uint32_t)rand_below(&r, 40));
		struct lb_policy_spec spec = spec_of(size, &child);
		uint64_t seed = rand_u64(&r);
		uint8_t expected[MOST] = {0};
		input_make(&in, round, n);
		twin_choose(&in, 0, n[0] + n[1], size, seed, expected);
		twin_choose(&in, n[0] + n[1], n[2] + n[3], size, seed, expected);
		for (uint32_t i = 0, at = 0; i < N_LOCALITIES; at += n[i++])
			twin_choose(&in, at, n[i], child.subset_size, seed, expected);
		uint8_t *is_out = chosen(&in, &spec, seed);
		if (is_out)
			assert_memory_equal(is_out, expected, in.made->n);
		else
			assert_int_equal(size + child.subset_size, 0);
		free(is_out);
		lb_leaf_endpoints_put(in.made);
	}
}

// A68-03
static void a_size_that_all_fit_in_leaves_nobody_out(void **state)
{
	(void)state;
	static struct input in;
	static const uint32_t n[N_LOCALITIES] = {3, 4, 0, 7};
	input_make(&in, 0, n);
	struct lb_policy_spec all = child_of(0), seven = child_of(7), most = child_of(UINT32_MAX);
	assert_null(chosen(&in, &all, 1));
	const struct lb_policy_spec *const enough[] = {&seven, &most};
	for (int i = 0; i < 2; i++) {
		uint8_t *is_out = chosen(&in, enough[i], 1);
		for (uint32_t k = 0; k < in.made->n; k++)
			assert_false(is_out[k]);
		free(is_out);
	}
	lb_leaf_endpoints_put(in.made);
}

static uint32_t n_chosen(const struct input *in, const uint8_t *is_out)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < in->made->n; i++)
		n += !is_out[i];
	return n;
}

// A68-02: one that comes takes the place of one at most, and one that goes leaves its place to one.
static void one_endpoint_moves_one_at_most(void **state)
{
	(void)state;
	static struct input few, many; // many has one more, the last of all
	static const uint32_t n_few[N_LOCALITIES] = {99}, n_many[N_LOCALITIES] = {100};
	struct lb_policy_spec spec = child_of(20);
	uint32_t n_moved = 0;
	input_make(&few, 0, n_few);
	input_make(&many, 0, n_many);
	for (uint64_t seed = 0; seed < 500; seed++) {
		uint8_t *before = chosen(&few, &spec, seed), *after = chosen(&many, &spec, seed);
		uint32_t n_left = 0, n_came = 0;
		assert_int_equal(n_chosen(&few, before), 20);
		assert_int_equal(n_chosen(&many, after), 20);
		for (uint32_t i = 0; i < few.made->n; i++) {
			n_left += !before[i] && after[i];
			n_came += before[i] && !after[i];
		}
		assert_int_equal(n_came, 0);
		assert_int_equal(n_left, !after[99]);
		n_moved += n_left;
		free(before);
		free(after);
	}
	assert_in_range(n_moved, 70, 130); // 500 times 20 of 100
	lb_leaf_endpoints_put(few.made);
	lb_leaf_endpoints_put(many.made);
}

// A68-04: chi-squared of 100 endpoints over 5000 processes; 148 is p = 0.001 of 99.
static void processes_spread_over_all_endpoints(void **state)
{
	(void)state;
	static struct input in;
	static const uint32_t n[N_LOCALITIES] = {100};
	struct lb_policy_spec spec = child_of(10);
	uint32_t counts[100] = {0};
	double chi = 0;
	input_make(&in, 0, n);
	for (uint64_t seed = 0; seed < 5000; seed++) {
		uint8_t *is_out = chosen(&in, &spec, seed);
		for (int i = 0; i < 100; i++)
			counts[i] += !is_out[i];
		free(is_out);
	}
	for (int i = 0; i < 100; i++)
		chi += (counts[i] - 500.0) * (counts[i] - 500.0) / 500.0;
	assert_true(chi < 148);
	lb_leaf_endpoints_put(in.made);
}

static void without_memory_nothing_is_chosen(void **state)
{
	(void)state;
	static struct input in;
	static const uint32_t n[N_LOCALITIES] = {9, 9};
	struct lb_policy_spec spec = child_of(3);
	uint8_t *is_out = NULL;
	int err = 0;
	input_make(&in, 0, n);
	ALLOC_FAIL_EACH(
		err = lb_subset_choose(in.made, &spec, 1, &is_out), err == -ENOMEM, free(is_out));
	lb_leaf_endpoints_put(in.made);
}

// In a leaf.

static uint32_t n_connected(struct leaves *f, const struct leaves_plan *p)
{
	uint32_t n = 0;
	for (int i = 0; i < 16; i++)
		n += world_id(&f->world, &p->addresses[i]) != UINT32_MAX;
	return n;
}

static bool is_in(const struct lb_member *const *list, uint32_t n, const struct lb_member *m)
{
	for (uint32_t i = 0; i < n; i++)
		if (list[i] == m)
			return true;
	return false;
}

// A68-01, A68-08
static void policies_are_given_the_subset_and_a_dump_says_so(void **state)
{
	(void)state;
	static struct leaves f;
	struct leaves_plan p;
	struct fake_dump d;
	struct lb_policy_spec spec = {.kind = LB_POLICY_RING_HASH, .subset_size = 3};
	leaves_init(&f, fake_ops_of);
	leaves_plan_init(&p, 0);
	f.config.spec = &spec;
	fake_first_state = LB_READY;
	leaves_update(&f, &p, 2);
	assert_int_equal(fake_nodes->n_members, 3);
	assert_int_equal(fake_nodes->n_localities, 2); // one of them without members, perhaps
	fake_dump_init(&d);
	lb_leaf_dump(f.leaf, &d.base);
	assert_non_null(
		strstr(d.text, "          child0 READY current=yes\n"
			       "            random_subsetting subset_size=3 chosen=3 endpoints=8\n"
			       "              ring_hash READY\n"));
	leaves_fini(&f);
}

// A68-01, A42-T09, RH-01: each that is given keeps its own weight and key.
static void what_is_given_keeps_its_weight(void **state)
{
	(void)state;
	static struct leaves f;
	struct leaves_plan p;
	struct lb_policy_spec child = child_of(2), spec = spec_of(0, &child);
	leaves_init(&f, fake_ops_of);
	leaves_plan_init(&p, 0);
	for (uint32_t i = 0; i < 16; i++)
		p.endpoints[i].weight = 10 + i;
	f.config.spec = &spec;
	leaves_update(&f, &p, 1);
	for (struct fake_node *n = fake_nodes; n; n = n->next) {
		for (uint32_t i = 0; n->kind == LB_POLICY_WRR_LOCALITY && i < n->n_members; i++) {
			const struct ip_port *a = lb_member_address(n->members[i], 0);
			assert_int_equal(n->weights[i], 10 + ip_to_v4(&a->ip) - 0x0a520000);
		}
	}
	leaves_fini(&f);
}

// A68-01, A68-07: only the subset is connected to, and what leaves it is let go as soon as no
// policy picks it any more.
static void what_leaves_the_subset_is_disconnected(void **state)
{
	(void)state;
	static struct leaves f;
	struct leaves_plan p;
	struct lb_policy_spec five = spec_of(5, &leaves_child), two = spec_of(2, &leaves_child);
	leaves_init(&f, lb_node_ops_of);
	leaves_plan_init(&p, 0);
	f.config.spec = &five;
	leaves_update(&f, &p, 1);
	leaves_pass(&f, WORLD_S);
	assert_int_equal(f.state, LB_READY);
	assert_int_equal(n_connected(&f, &p), 5);
	f.config.spec = &two;
	leaves_update(&f, &p, 1);
	// A locality that none is left of is kept for a quarter of an hour (WT-02).
	leaves_pass(&f, 16 * 60 * WORLD_S);
	assert_int_equal(f.state, LB_READY);
	assert_int_equal(n_connected(&f, &p), 2);
	f.config.spec = &leaves_split;
	leaves_update(&f, &p, 1);
	leaves_pass(&f, WORLD_S);
	assert_int_equal(n_connected(&f, &p), 8);
	leaves_fini(&f);
}

// A68-07: a session stays with an endpoint that the subset lost, or never had.
static void sessions_reach_what_is_left_out(void **state)
{
	(void)state;
	static struct leaves f;
	struct leaves_plan p;
	struct lb_policy_spec spec = {.kind = LB_POLICY_RING_HASH, .subset_size = 1};
	struct lb_affinity_host h;
	leaves_init(&f, fake_ops_of);
	leaves_plan_init(&p, 0);
	f.config.spec = &spec;
	fake_first_state = LB_READY;
	leaves_update(&f, &p, 1);
	uint32_t at = 0; // somebody else than the one that is given
	while (is_in((const struct lb_member *const *)fake_nodes->members, fake_nodes->n_members,
		lb_leaf_member(f.leaf, &p.addresses[at], 1)))
		at++;
	const struct ip_port *a = &p.addresses[at];
	const struct lb_affinity_map *map = lb_leaf_layer(f.picker)->sessions;
	assert_int_equal(lb_affinity_map_pick(map, a, 1, &h), LB_AFFINITY_CONNECT);
	lb_leaf_want(f.leaf, lb_member_id(lb_leaf_member(f.leaf, a, 1)));
	leaves_pass(&f, WORLD_S);
	map = lb_leaf_layer(f.picker)->sessions;
	assert_int_equal(lb_affinity_map_pick(map, a, 1, &h), LB_AFFINITY_USE);
	leaves_fini(&f);
}

static bool begins_no_check(void *ctx, const struct lb_probe *p)
{
	(void)ctx;
	(void)p;
	return false;
}

static bool is_checked(const struct leaves *f, const struct leaves_plan *p, uint32_t i)
{
	const struct lb_member *m = lb_leaf_member(f->leaf, &p->addresses[i], 1);
	return lb_member_health(m) == LB_MEMBER_UNCHECKED;
}

// A68-06: with the subset come its checks, and they go with it.
static void only_the_subset_is_checked(void **state)
{
	(void)state;
	static struct leaves f;
	struct leaves_plan p;
	struct lb_policy_spec three = {.kind = LB_POLICY_RING_HASH, .subset_size = 3};
	struct lb_policy_spec one = {.kind = LB_POLICY_RING_HASH, .subset_size = 1};
	uint32_t n_three = 0, n_one = 0;
	leaves_init(&f, fake_ops_of);
	leaves_plan_init(&p, 0);
	const struct lb_probes_env probes = {
		.wheel = f.world.wheel, .max_under_way = 16, .may_begin = begins_no_check};
	f.env.probes = lb_probes_new(&probes);
	f.config.check = lb_check_new();
	f.config.check->interval_ns = f.config.check->timeout_ns = WORLD_S;
	f.config.spec = &three;
	leaves_update(&f, &p, 1);
	bool was[8];
	for (uint32_t i = 0; i < 8; i++)
		n_three += was[i] = is_checked(&f, &p, i);
	assert_int_equal(n_three, 3);
	f.config.spec = &one;
	leaves_update(&f, &p, 1);
	for (uint32_t i = 0; i < 8; i++) {
		assert_true(was[i] || !is_checked(&f, &p, i));
		n_one += is_checked(&f, &p, i);
	}
	assert_int_equal(n_one, 1);
	lb_check_put(f.config.check);
	struct lb_probes *made = f.env.probes;
	lb_leaf_free(f.leaf);
	f.leaf = NULL;
	lb_probes_free(made);
	leaves_fini(&f);
}

RUN_SUITE("lb/subset", cmocka_unit_test(those_with_the_least_hashes_are_chosen),
	cmocka_unit_test(a_size_that_all_fit_in_leaves_nobody_out),
	cmocka_unit_test(one_endpoint_moves_one_at_most),
	cmocka_unit_test(processes_spread_over_all_endpoints),
	cmocka_unit_test(without_memory_nothing_is_chosen),
	cmocka_unit_test(policies_are_given_the_subset_and_a_dump_says_so),
	cmocka_unit_test(what_is_given_keeps_its_weight),
	cmocka_unit_test(what_leaves_the_subset_is_disconnected),
	cmocka_unit_test(only_the_subset_is_checked),
	cmocka_unit_test(sessions_reach_what_is_left_out))
