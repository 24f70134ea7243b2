// SPDX-License-Identifier: Apache-2.0
// What is made of a ClusterLoadAssignment, and of the addresses of a LOGICAL_DNS cluster.
#include "ctrl/res/endpoints.h"
#include "tests/support/check.h"
#include "tests/unit/res/decode.h"

#include <stdio.h>
#include <string.h>

#define ONE(rest)                                                                                  \
	"{'clusterName':'e','endpoints':[{'locality':{},'loadBalancingWeight':1,'lbEndpoints':["   \
	"{'endpoint':{'address':{'socketAddress':{'address':'10.0.0.7','portValue':82}}" rest      \
	"}]}]}"

static const struct res_endpoint *first(const struct res_endpoints *e)
{
	return &e->priorities[0].localities[0].endpoints[0];
}

// RH-01, gRFC A76.
static void the_hash_key_is_a_string_in_envoy_lb(void **state)
{
#define METADATA(rest) ONE("},'metadata':{'filterMetadata':{" rest "}}")
	static const char *const CASES[][2] = {
		{ONE("}"), ""},
		{METADATA("'envoy.lb':{'hash_key':'seven'}"), "seven"},
		{METADATA("'envoy.lb':{'other':1,'hash_key':'seven'},'x':{'hash_key':'eight'}"),
			"seven"},
		{METADATA("'envoy.lb':{'hash_key':''}"), ""},
		{METADATA("'envoy.lb':{'hash_key':7}"), ""},
		{METADATA("'envoy.lb':{'hash_key':null}"), ""},
		{METADATA("'envoy.lb':{'hash_key':['seven']}"), ""},
		{METADATA("'envoy.lb':{}"), ""},
		{METADATA("'envoy.lc':{'hash_key':'seven'}"), ""},
	};
	for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
		struct xds_res *r = res_decode(&res_type_endpoints, CASES[i][0]);
		const struct res_endpoint *e = first(res_endpoints_from(r));
		assert_string_equal(res_endpoint_more(e)->hash_key, CASES[i][1]);
		assert_int_equal(!e->more, !*CASES[i][1]);
		xds_res_put(r);
	}
}

static void what_few_endpoints_have_stands_aside(void **state)
{
	struct xds_res *r = res_decode(&res_type_endpoints,
		ONE(",'hostname':'h','additionalAddresses':[{'address':{'socketAddress':"
		    "{'address':'fd00::7','portValue':83}}}]}"));
	const struct res_endpoint_more *more = first(res_endpoints_from(r))->more;
	char text[IP_PORT_TEXT_MAX];
	assert_string_equal(more->hostname, "h");
	assert_string_equal(more->hash_key, "");
	assert_int_equal(more->n_additional, 1);
	assert_string_equal(ip_port_print(&more->additional[0], text), "[fd00::7]:83");
	xds_res_put(r);
}

// A55-V07.
static void a_health_that_nobody_knows_is_none_of_those_known(void **state)
{
	static const struct {
		const char *number;
		int health;
	} cases[] = {{"5", RES_HEALTH_DEGRADED}, {"6", RES_HEALTH_OTHER}, {"256", RES_HEALTH_OTHER},
		{"257", RES_HEALTH_OTHER}, {"-1", RES_HEALTH_OTHER}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char json[256];
		snprintf(json, sizeof(json), ONE("},'healthStatus':%s"), cases[i].number);
		struct xds_res *r = res_decode(&res_type_endpoints, json);
		assert_int_equal(first(res_endpoints_from(r))->health, cases[i].health);
		xds_res_put(r);
	}
}

static struct ip_port v4(uint8_t last)
{
	return (struct ip_port){ip_from_v4(0x0a000000 + last), 80};
}

// A61-D02.
static void all_addresses_of_a_name_are_one_endpoint(void **state)
{
	const struct ip_port list[] = {v4(1), v4(2), v4(1), v4(3)};
	struct res_endpoints *e = res_endpoints_of_addresses("c", list, 4, "h");
	assert_non_null(e);
	assert_string_equal(e->base.name, "c");
	assert_int_equal(e->n_priorities, 1);
	assert_int_equal(e->n_drops, 0);
	assert_int_equal(e->priorities[0].n_localities, 1);
	const struct res_locality *l = &e->priorities[0].localities[0];
	assert_true(!*l->region && !*l->zone && !*l->sub_zone);
	assert_int_equal(l->weight, 1);
	assert_int_equal(l->n_endpoints, 1);
	const struct res_endpoint *only = &l->endpoints[0];
	assert_true(ip_port_eq(&only->addr, &list[0]));
	assert_int_equal(only->weight, 1);
	assert_int_equal(only->health, RES_HEALTH_UNKNOWN);
	assert_int_equal(only->more->n_additional, 2);
	assert_true(ip_port_eq(&only->more->additional[0], &list[1]));
	assert_true(ip_port_eq(&only->more->additional[1], &list[3]));
	assert_string_equal(only->more->hostname, "h");
	assert_string_equal(only->more->hash_key, "");
	xds_res_put(&e->base);
}

static void one_address_without_a_host_name_needs_nothing_more(void **state)
{
	const struct ip_port a = v4(1);
	struct res_endpoints *e = res_endpoints_of_addresses("c", &a, 1, "");
	assert_non_null(e);
	assert_null(first(e)->more);
	xds_res_put(&e->base);
}

// A27-V09, A37-D03.
static void no_address_is_no_priority(void **state)
{
	struct res_endpoints *e = res_endpoints_of_addresses("c", NULL, 0, "h");
	assert_non_null(e);
	assert_int_equal(e->n_priorities, 0);
	xds_res_put(&e->base);
}

static bool made_equal(const struct ip_port *a, uint32_t n_a, const char *hostname_a,
	const struct ip_port *b, uint32_t n_b, const char *hostname_b)
{
	struct res_endpoints *x = res_endpoints_of_addresses("c", a, n_a, hostname_a);
	struct res_endpoints *y = res_endpoints_of_addresses("c", b, n_b, hostname_b);
	assert_true(x && y);
	bool equal = xds_res_eq(&x->base, &y->base);
	xds_res_put(&x->base);
	xds_res_put(&y->base);
	return equal;
}

static void equal_answers_are_equal_resources(void **state)
{
	const struct ip_port a[] = {v4(1), v4(2)}, b[] = {v4(1), v4(2), v4(1)},
			     c[] = {v4(2), v4(1)};
	assert_true(made_equal(a, 2, "h", a, 2, "h"));
	assert_true(made_equal(a, 2, "h", b, 3, "h"));
	assert_false(made_equal(a, 2, "h", c, 2, "h"));
	assert_false(made_equal(a, 2, "h", a, 1, "h"));
	assert_false(made_equal(a, 2, "h", a, 2, ""));
	assert_false(made_equal(a, 2, "h", a, 0, "h"));
	assert_true(made_equal(a, 0, "h", NULL, 0, "h"));
}

RUN_SUITE("res/endpoints", cmocka_unit_test(the_hash_key_is_a_string_in_envoy_lb),
	cmocka_unit_test(what_few_endpoints_have_stands_aside),
	cmocka_unit_test(a_health_that_nobody_knows_is_none_of_those_known),
	cmocka_unit_test(all_addresses_of_a_name_are_one_endpoint),
	cmocka_unit_test(one_address_without_a_host_name_needs_nothing_more),
	cmocka_unit_test(no_address_is_no_priority),
	cmocka_unit_test(equal_answers_are_equal_resources))
