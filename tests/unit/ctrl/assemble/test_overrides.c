// SPDX-License-Identifier: Apache-2.0
// What operators say of endpoints, laid over what a resource says.
#include "ctrl/assemble/overrides.h"
#include "lb/base/rand.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t n_compared; // addresses

// The linker's --wrap.
int __real_ip_port_cmp(const struct ip_port *, const struct ip_port *);
int __wrap_ip_port_cmp(const struct ip_port *, const struct ip_port *);
int __wrap_ip_port_cmp(const struct ip_port *a, const struct ip_port *b)
{
	n_compared++;
	return __real_ip_port_cmp(a, b);
}

#define ADDRESS(last)                                                                              \
	{                                                                                          \
		{{[10] = 255, [11] = 255, [12] = 10, [15] = (last)}}, 80                           \
	}
static const struct ip_port addresses[] = {
	ADDRESS(1), ADDRESS(2), ADDRESS(3), ADDRESS(4), ADDRESS(5)};
// The last but one has two addresses.
static const struct lb_leaf_endpoint near[] = {{addresses, 1, 10, LB_LEAF_HEALTHY, STR("a"),
						       STR("")},
	{addresses + 1, 1, 20, LB_LEAF_DRAINING, STR(""), STR("")}},
				     far[] = {{addresses + 2, 2, 30, LB_LEAF_HEALTHY, STR(""),
						      STR("key")},
					     {addresses + 4, 1, UINT32_MAX - 100, LB_LEAF_UNHEALTHY,
						     STR(""), STR("")}};
static const struct lb_leaf_locality here = {STR("here"), 3, near, 2},
				     there = {STR("there"), 4, far, 2};
static const struct lb_leaf_priority priorities[] = {{&here, 1}, {&there, 1}};

static const struct override drain = {.has_health = true, .health = LB_LEAF_DRAINING},
			     down = {.has_health = true, .health = LB_LEAF_UNHEALTHY},
			     up = {.has_health = true, .health = LB_LEAF_HEALTHY}, none;

static struct lb_leaf_endpoints *told(void)
{
	const struct ip_port *second;
	return lb_leaf_endpoints_new(priorities, 2, &second);
}

static void set(struct overrides *o, unsigned last, struct override what)
{
	assert_int_equal(overrides_set(o, "blue", &addresses[last - 1], what, NULL), 0);
}

static struct lb_leaf_endpoint at(const struct lb_leaf_endpoints *l, unsigned last)
{
	uint32_t i = lb_leaf_endpoints_find(l, &addresses[last - 1]);
	assert_int_not_equal(i, UINT32_MAX);
	return lb_leaf_endpoints_at(l, i);
}

// OPS-77
static void health_and_weight_are_said_apart_and_all_else_stays(void **state)
{
	struct overrides *o = overrides_new();
	struct lb_leaf_endpoints *from = told();
	set(o, 1, down);
	set(o, 2, up);
	set(o, 4, (struct override){.has_health = true, .health = LB_LEAF_DRAINING, .weight = 7});
	struct lb_leaf_endpoints *l = overrides_apply(o, "blue", from);
	assert_int_equal(l->n_priorities, 2);
	assert_int_equal(l->n_all, 4);
	assert_int_equal(l->n, 2);
	assert_true(str_eq(l->spans[0].name, STR("here")) && l->spans[0].weight == 3);
	assert_int_equal(l->spans[0].n_serving, 1);
	assert_int_equal(l->spans[0].n_unused, 1);
	assert_int_equal(l->spans[1].n_draining, 1);
	assert_int_equal(at(l, 1).health, LB_LEAF_UNHEALTHY);
	assert_int_equal(at(l, 1).weight, 10);
	assert_true(str_eq(at(l, 1).hostname, STR("a")));
	assert_int_equal(at(l, 2).health, LB_LEAF_HEALTHY);
	assert_int_equal(at(l, 3).health, LB_LEAF_DRAINING); // by its other address
	assert_int_equal(at(l, 3).weight, 7);
	assert_int_equal(at(l, 3).n_addresses, 2);
	assert_true(str_eq(at(l, 3).hash_key, STR("key")));
	assert_int_equal(at(from, 1).health, LB_LEAF_HEALTHY); // the resource is as it was
	lb_leaf_endpoints_put(l);
	lb_leaf_endpoints_put(from);
	overrides_free(o);
}

// OPS-77
static void what_none_is_about_is_the_same_object(void **state)
{
	struct overrides *o = overrides_new();
	struct lb_leaf_endpoints *from = told();
	const struct ip_port other = ADDRESS(9);
	assert_int_equal(overrides_set(o, "blue", &other, drain, NULL), 0);
	assert_int_equal(overrides_set(o, "green", &addresses[0], drain, NULL), 0);
	struct lb_leaf_endpoints *l = overrides_apply(o, "blue", from);
	assert_ptr_equal(l, from);
	lb_leaf_endpoints_put(l);
	l = overrides_apply(NULL, "blue", from);
	assert_ptr_equal(l, from);
	lb_leaf_endpoints_put(l);
	lb_leaf_endpoints_put(from);
	overrides_free(o);
}

// A27-V06: weights of a locality add up to what 32 bits hold, whatever operators say.
static void a_weight_is_no_more_than_fits(void **state)
{
	struct overrides *o = overrides_new();
	struct lb_leaf_endpoints *from = told();
	set(o, 3, (struct override){.weight = OVERRIDE_MAX_WEIGHT});
	struct lb_leaf_endpoints *l = overrides_apply(o, "blue", from);
	assert_int_equal(at(l, 3).weight, 100);
	lb_leaf_endpoints_put(l);
	lb_leaf_endpoints_put(from);
	overrides_free(o);
}

static void a_revision_is_another_for_each_change(void **state)
{
	struct overrides *o = overrides_new();
	uint64_t seen[4];
	assert_int_equal(overrides_revision(NULL, "blue"), 0);
	assert_int_equal(overrides_revision(o, "blue"), 0);
	set(o, 1, drain);
	seen[0] = overrides_revision(o, "blue");
	set(o, 1, up);
	seen[1] = overrides_revision(o, "blue");
	set(o, 2, up);
	seen[2] = overrides_revision(o, "blue");
	set(o, 2, none);
	seen[3] = overrides_revision(o, "blue");
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < i; k++)
			assert_int_not_equal(seen[i], seen[k]);
	assert_int_equal(overrides_revision(o, "green"), 0);
	set(o, 1, none);
	set(o, 1, none); // there is none
	assert_int_equal(overrides_revision(o, "blue"), 0);
	set(o, 1, drain);
	for (int i = 0; i < 4; i++)
		assert_int_not_equal(overrides_revision(o, "blue"), seen[i]);
	overrides_free(o);
}

// OPS-78
static void there_are_only_so_many(void **state)
{
	struct overrides *o = overrides_new();
	struct lb_err err = {.text = ""};
	for (uint16_t i = 0; i < OVERRIDES_MAX; i++) {
		struct ip_port a = {addresses[0].ip, (uint16_t)(i + 1)};
		char name[16];
		snprintf(name, sizeof(name), "c%u", i % 7);
		assert_int_equal(overrides_set(o, name, &a, drain, &err), 0);
	}
	assert_int_equal(overrides_set(o, "blue", &addresses[1], drain, &err), -EINVAL);
	assert_string_equal(err.text, "there are 1024 overrides, the maximum");
	struct ip_port first = {addresses[0].ip, 1};
	assert_int_equal(overrides_set(o, "c0", &first, up, &err), 0); // there already
	assert_int_equal(overrides_set(o, "c0", &first, none, &err), 0);
	assert_int_equal(overrides_set(o, "blue", &addresses[1], drain, &err), 0);
	overrides_free(o);
}

static struct ip_port address_of(uint32_t i)
{
	return (struct ip_port){ip_from_v4(0x0a000000 + i / 3), (uint16_t)(1 + i % 3)};
}

// What is there is found, and nothing else, in whatever order they come and go.
static void each_is_found_among_many_that_come_and_go(void **state)
{
	struct overrides *o = overrides_new();
	static uint32_t weights[2000]; // 0 = there is none
	uint32_t n = 0;
	struct rand rand;
	rand_init(&rand, 3);
	for (int i = 0; i < 10000; i++) {
		uint32_t at = rand_u32(&rand) % 2000, was = weights[at];
		uint32_t weight = was || n == OVERRIDES_MAX ? 0 : 1 + rand_u32(&rand) % 1000;
		const struct ip_port a = address_of(at);
		const struct override what = {.weight = weight};
		assert_int_equal(overrides_set(o, "blue", &a, what, NULL), 0);
		weights[at] = weight;
		n += (weight != 0) - (was != 0);
		const struct ip_port b = address_of(rand_u32(&rand) % 2000), both[] = {b, a};
		at = (ip_to_v4(&b.ip) - 0x0a000000) * 3 + b.port - 1;
		assert_int_equal(overrides_find(o, "blue", &b, 1).weight, weights[at]);
		assert_int_equal(overrides_find(o, "blue", both, 2).weight,
			weights[at] ? weights[at] : weight);
	}
	assert_true(n > 500);
	overrides_free(o);
}

// Endpoints of a large cluster are looked up one by one: each is cheap.
static void to_find_one_of_many_takes_few_comparisons(void **state)
{
	struct overrides *o = overrides_new();
	for (uint32_t i = 0; i < OVERRIDES_MAX; i++) {
		const struct ip_port a = address_of(i * 397 % OVERRIDES_MAX);
		assert_int_equal(overrides_set(o, "blue", &a, drain, NULL), 0);
	}
	for (uint32_t i = 0; i < 2 * OVERRIDES_MAX; i++) {
		const struct ip_port a = address_of(i);
		n_compared = 0;
		bool found = overrides_find(o, "blue", &a, 1).has_health;
		assert_int_equal(found, i < OVERRIDES_MAX);
		assert_in_range(n_compared, 1, 11);
	}
	overrides_free(o);
}

static void texts_say_what_is_set(void **state)
{
	const struct override both = {
		.has_health = true, .health = LB_LEAF_DRAINING, .weight = 1000000};
	const struct override weight = {.weight = 5};
	char text[OVERRIDE_TEXT_MAX];
	assert_string_equal(override_print(&none, text), "");
	assert_string_equal(override_print(&up, text), "up");
	assert_string_equal(override_print(&down, text), "down");
	assert_string_equal(override_print(&weight, text), "weight 5");
	assert_string_equal(override_print(&both, text), "drain weight 1000000");
}

static void without_memory_nothing_changes(void **state)
{
	struct lb_leaf_endpoints *from = told(), *l;
	struct overrides *o = overrides_new();
	int err;
	set(o, 1, drain);
	ALLOC_FAIL_EACH(err = overrides_set(o, "green", &addresses[0], drain, NULL),
		err && !overrides_revision(o, "green"),
		err = overrides_set(o, "green", &addresses[0], none, NULL));
	ALLOC_FAIL_EACH(l = overrides_apply(o, "blue", from), !l, lb_leaf_endpoints_put(l));
	lb_leaf_endpoints_put(from);
	overrides_free(o);
}

RUN_SUITE("ctrl/overrides", cmocka_unit_test(health_and_weight_are_said_apart_and_all_else_stays),
	cmocka_unit_test(what_none_is_about_is_the_same_object),
	cmocka_unit_test(a_weight_is_no_more_than_fits),
	cmocka_unit_test(a_revision_is_another_for_each_change),
	cmocka_unit_test(there_are_only_so_many),
	cmocka_unit_test(each_is_found_among_many_that_come_and_go),
	cmocka_unit_test(to_find_one_of_many_takes_few_comparisons),
	cmocka_unit_test(texts_say_what_is_set), cmocka_unit_test(without_memory_nothing_changes))
