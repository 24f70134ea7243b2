// SPDX-License-Identifier: Apache-2.0
#include "lb/base/rand.h"
#include "lb/pick/leaf_endpoints.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <stdlib.h>

#define N_ENDPOINTS 60
#define N_LOCALITIES 6

// A random resource, as it is given.
struct given {
	struct ip_port addresses[N_ENDPOINTS][3];
	struct lb_leaf_endpoint endpoints[N_ENDPOINTS];
	struct lb_leaf_locality localities[N_LOCALITIES];
	struct lb_leaf_priority priorities[N_LOCALITIES];
	uint32_t n_priorities;
};

// Some worlds have what others lack altogether.
static void make(struct given *g, struct rand *rand)
{
	bool has_more = rand_below(rand, 2), has_names = rand_below(rand, 2);
	uint32_t n = 0, n_localities = (uint32_t)rand_below(rand, N_LOCALITIES + 1);
	*g = (struct given){0};
	for (uint32_t i = 0; i < n_localities; i++) {
		struct lb_leaf_locality *l = &g->localities[i];
		*l = (struct lb_leaf_locality){
			(struct str){&"abcdef"[i], 1}, i + 1, &g->endpoints[n], 0};
		l->n_endpoints = (uint32_t)rand_below(rand, N_ENDPOINTS / N_LOCALITIES + 1);
		for (uint32_t k = 0; k < l->n_endpoints; k++, n++) {
			g->endpoints[n] = (struct lb_leaf_endpoint){.addresses = g->addresses[n],
				.n_addresses = has_more ? 1 + (uint32_t)rand_below(rand, 3) : 1,
				.weight = 1 + (uint32_t)rand_below(rand, 1000),
				.health = (enum lb_leaf_health)rand_below(rand, 7),
				.hostname = has_names && rand_below(rand, 2) ? STR("h.example")
			                                                     : STR(""),
				.hash_key =
					!has_names && rand_below(rand, 2) ? STR("key") : STR("")};
			for (uint32_t m = 0; m < 3; m++)
				g->addresses[n][m] = (struct ip_port){
					ip_from_v4(0x0a000000 + n), (uint16_t)(80 + m)};
		}
		if (i == 0 || rand_below(rand, 2))
			g->priorities[g->n_priorities++] =
				(struct lb_leaf_priority){&g->localities[i], 0};
		g->priorities[g->n_priorities - 1].n_localities++;
	}
}

static void check_endpoint(
	const struct lb_leaf_endpoints *l, uint32_t i, const struct lb_leaf_endpoint *wanted)
{
	const struct lb_leaf_endpoint e = lb_leaf_endpoints_at(l, i);
	assert_int_equal(e.weight, wanted->weight);
	assert_int_equal(e.health, wanted->health);
	assert_true(str_eq(e.hostname, wanted->hostname));
	assert_true(str_eq(e.hash_key, wanted->hash_key));
	assert_int_equal(e.n_addresses, wanted->n_addresses);
	for (uint32_t k = 0; k < e.n_addresses; k++) {
		assert_true(ip_port_eq(&e.addresses[k], &wanted->addresses[k]));
		assert_int_equal(lb_leaf_endpoints_find(l, &e.addresses[k]), i);
	}
}

// 0 = serves, 1 = drains, 2 = takes no part (A55-V07).
static int rank_of(enum lb_leaf_health h)
{
	return h == LB_LEAF_DRAINING ? 1 : h == LB_LEAF_UNKNOWN || h == LB_LEAF_HEALTHY ? 0 : 2;
}

static uint32_t check_rank(const struct lb_leaf_endpoints *l, uint32_t at,
	const struct lb_leaf_locality *given, int rank)
{
	for (uint32_t i = 0; i < given->n_endpoints; i++)
		if (rank_of(given->endpoints[i].health) == rank)
			check_endpoint(l, at++, &given->endpoints[i]);
	return at;
}

// A55-O03, A55-V07
static void endpoints_stand_in_the_order_that_balancing_wants(void **state)
{
	struct rand rand;
	rand_init(&rand, 1);
	for (uint32_t round = 0; round < 1000; round++) {
		struct given g;
		const struct ip_port *second;
		make(&g, &rand);
		struct lb_leaf_endpoints *l =
			lb_leaf_endpoints_new(g.priorities, g.n_priorities, &second);
		assert_non_null(l);
		assert_null(second);
		assert_int_equal(l->n_priorities, g.n_priorities);
		uint32_t at = 0, unused = l->n, n_spans = 0;
		for (uint32_t i = 0; i < g.n_priorities; i++) {
			for (uint32_t k = 0; k < g.priorities[i].n_localities; k++) {
				const struct lb_leaf_locality *from =
					&g.priorities[i].localities[k];
				const struct lb_leaf_span *span = &l->spans[n_spans++];
				assert_true(str_eq(span->name, from->name));
				assert_int_equal(span->weight, from->weight);
				assert_int_equal(span->first, at);
				assert_int_equal(span->first_unused, unused);
				at = check_rank(l, at, from, 0);
				assert_int_equal(at - span->first, span->n_serving);
				at = check_rank(l, at, from, 1);
				assert_int_equal(
					at - span->first - span->n_serving, span->n_draining);
				unused = check_rank(l, unused, from, 2);
				assert_int_equal(unused - span->first_unused, span->n_unused);
			}
			assert_int_equal(lb_leaf_endpoints_ends(l)[i], n_spans);
		}
		assert_int_equal(at, l->n);
		assert_int_equal(unused, l->n_all);
		lb_leaf_endpoints_put(l);
	}
}

static struct lb_leaf_endpoints *list_of(const struct lb_leaf_endpoint *list, uint32_t n)
{
	const struct lb_leaf_locality locality = {STR("z"), 1, list, n};
	const struct lb_leaf_priority priority = {&locality, 1};
	const struct ip_port *second;
	struct lb_leaf_endpoints *l = lb_leaf_endpoints_new(&priority, 1, &second);
	assert_non_null(l);
	return l;
}

static bool same(const struct lb_leaf_endpoint *a, uint32_t n_a, const struct lb_leaf_endpoint *b,
	uint32_t n_b)
{
	struct lb_leaf_endpoints *x = list_of(a, n_a), *y = list_of(b, n_b);
	bool is_same = lb_leaf_endpoints_same_addresses(x, y);
	assert_int_equal(lb_leaf_endpoints_same_addresses(y, x), is_same);
	lb_leaf_endpoints_put(x);
	lb_leaf_endpoints_put(y);
	return is_same;
}

static void lists_of_the_same_addresses_are_told_from_others(void **state)
{
	const struct ip_port a[] = {{ip_from_v4(1), 80}, {ip_from_v4(2), 80}, {ip_from_v4(3), 80},
		{ip_from_v4(2), 80}, {ip_from_v4(1), 80}};
	const struct lb_leaf_endpoint one_by_one[] = {
		{&a[0], 1, 1, LB_LEAF_HEALTHY, STR(""), STR("")},
		{&a[1], 1, 1, LB_LEAF_HEALTHY, STR(""), STR("")},
		{&a[2], 1, 1, LB_LEAF_TIMEOUT, STR(""), STR("")}};
	const struct lb_leaf_endpoint heavier[] = {
		{&a[0], 1, 9, LB_LEAF_DRAINING, STR("h"), STR("")},
		{&a[1], 1, 1, LB_LEAF_DRAINING, STR(""), STR("k")}};
	const struct lb_leaf_endpoint pair[] = {{&a[0], 2, 1, LB_LEAF_HEALTHY, STR(""), STR("")}};
	const struct lb_leaf_endpoint turned[] = {{&a[3], 2, 1, LB_LEAF_HEALTHY, STR(""), STR("")}};
	const struct lb_leaf_endpoint late[] = {{&a[0], 1, 1, LB_LEAF_HEALTHY, STR(""), STR("")},
		{&a[1], 2, 1, LB_LEAF_HEALTHY, STR(""), STR("")}};
	const struct lb_leaf_endpoint early[] = {{&a[0], 2, 1, LB_LEAF_HEALTHY, STR(""), STR("")},
		{&a[2], 1, 1, LB_LEAF_HEALTHY, STR(""), STR("")}};
	assert_true(same(one_by_one, 3, heavier, 2)); // who takes no part does not matter
	assert_false(same(one_by_one, 3, heavier, 1));
	assert_false(same(one_by_one, 2, pair, 1));
	assert_false(same(pair, 1, turned, 1));
	assert_false(same(late, 2, early, 2));
	assert_true(same(late, 2, late, 2));
	assert_true(same(NULL, 0, NULL, 0));
}

static void of_equal_addresses_the_first_is_found(void **state)
{
	const struct ip_port a[] = {{ip_from_v4(1), 80}, {ip_from_v4(2), 80}, {ip_from_v4(1), 80}};
	const struct lb_leaf_endpoint list[] = {{&a[0], 1, 1, LB_LEAF_HEALTHY, STR(""), STR("")},
		{&a[1], 2, 1, LB_LEAF_HEALTHY, STR(""), STR("")}};
	const struct lb_leaf_locality locality = {STR("z"), 1, list, 2};
	const struct lb_leaf_priority priority = {&locality, 1};
	const struct ip_port *second;
	struct lb_leaf_endpoints *l = lb_leaf_endpoints_new(&priority, 1, &second);
	assert_ptr_equal(second, &l->addresses[2]);
	assert_int_equal(lb_leaf_endpoints_find(l, &a[2]), 0);
	assert_ptr_equal(lb_leaf_endpoints_get(l), l);
	lb_leaf_endpoints_put(l);
	lb_leaf_endpoints_put(l);
}

static void each_allocation_may_fail(void **state)
{
	struct given g;
	struct rand rand;
	const struct ip_port *second;
	struct lb_leaf_endpoints *l;
	rand_init(&rand, 7);
	for (uint32_t i = 0; i < 8; i++) {
		make(&g, &rand);
		ALLOC_FAIL_EACH(l = lb_leaf_endpoints_new(g.priorities, g.n_priorities, &second),
			!l, lb_leaf_endpoints_put(l));
	}
}

RUN_SUITE("lb/leaf_endpoints", cmocka_unit_test(endpoints_stand_in_the_order_that_balancing_wants),
	cmocka_unit_test(lists_of_the_same_addresses_are_told_from_others),
	cmocka_unit_test(of_equal_addresses_the_first_is_found),
	cmocka_unit_test(each_allocation_may_fail))
