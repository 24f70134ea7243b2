// SPDX-License-Identifier: Apache-2.0
// LOGICAL_DNS clusters through the dependency manager (A37-D*, A61-D*, DM-04, DM-11,
// DM-13, DM-23).
#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "lb/base/twheel.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/deps/deps_fixture.h"

#include <stdio.h>
#include <string.h>

static void init(struct deps_fixture *f, const char *cluster)
{
	deps_init(f, "", NULL);
	hold_listener(f, "rc");
	hold_routes(f, "rc", cluster, NULL);
}

// DM-04, A61-D02
static void all_addresses_of_a_name_are_one_endpoint(void **state)
{
	struct deps_fixture f;
	init(&f, "d");
	hold_name(&f, "d", "db.example");
	say_all(&f);
	expect_updates(&f, 0, 0); // DM-05
	assert_string_equal(depmgr_waiting(f.dm), "addresses of db.example");
	fake_lookups_answer(&f.name_servers, "db.example", "10.0.0.2 10.0.0.1 fd00::1", 60);
	expect_updates(&f, 0, 0); // not inside the call
	deps_pass_time(&f, 0);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: d=db.example/fd00::1+10.0.0.2+10.0.0.1");
	assert_string_equal(depmgr_waiting(f.dm), "");
	const struct res_endpoints *e = f.config->clusters[0].endpoints;
	assert_string_equal(e->base.name, "db.example:80");
	assert_int_equal(e->list->n_priorities, 1);
	assert_int_equal(e->list->n_spans, 1);
	assert_true(str_eq(e->list->spans[0].name, STR("//")));
	assert_int_equal(e->list->n, 1);
	assert_int_equal(e->list->addresses[0].port, 80);
	assert_non_null(strstr(note_of(&f, "d"), "xDS node id"));
	deps_fini(&f);
}

static void an_unchanged_answer_is_the_same_object_and_no_news(void **state)
{
	struct deps_fixture f;
	init(&f, "d");
	hold_name(&f, "d", "db.example");
	say_all(&f);
	fake_lookups_answer(&f.name_servers, "db.example", "10.0.0.1 10.0.0.2", 60);
	deps_pass_time(&f, 61 * S);
	const struct res_endpoints *e = f.config->clusters[0].endpoints;
	fake_lookups_fail(&f.name_servers, "db.example", "SERVFAIL");
	deps_pass_time(&f, 2 * S);
	expect_updates(&f, 2, 0);
	assert_string_equal(look(&f), "rc: d=db.example/10.0.0.1+10.0.0.2"); // DM-13, A37-D03
	assert_ptr_equal(f.config->clusters[0].endpoints, e);
	assert_non_null(strstr(note_of(&f, "d"), "SERVFAIL"));
	fake_lookups_answer(&f.name_servers, "db.example", "10.0.0.2 10.0.0.1", 60);
	deps_pass_time(&f, 0);
	expect_updates(&f, 1, 0); // the note is gone
	assert_ptr_equal(f.config->clusters[0].endpoints, e);
	deps_pass_time(&f, 61 * S);
	fake_lookups_answer(&f.name_servers, "db.example", "10.0.0.1 10.0.0.2", 60);
	deps_pass_time(&f, 61 * S);
	expect_updates(&f, 0, 0); // DM-29
	fake_lookups_answer(&f.name_servers, "db.example", "10.0.0.3", 60);
	deps_pass_time(&f, 0);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: d=db.example/10.0.0.3");
	deps_fini(&f);
}

// A37-D03, DM-11, A74-C07
static void a_name_that_does_not_resolve_leaves_the_cluster_in_order(void **state)
{
	struct deps_fixture f;
	init(&f, "d");
	hold_name(&f, "d", "db.example");
	say_all(&f);
	fake_lookups_fail(&f.name_servers, "db.example", "NXDOMAIN");
	deps_pass_time(&f, 0);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: d=db.example?");
	assert_string_equal(note_of(&f, "d"), "DNS resolution of \"db.example\" failed: NXDOMAIN");
	deps_pass_time(&f, 2 * S);
	fake_lookups_answer(&f.name_servers, "db.example", "10.0.0.1", 60);
	deps_pass_time(&f, 0);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: d=db.example/10.0.0.1");
	deps_fini(&f);
}

// A74-T05
static void a_name_server_that_is_silent_holds_nothing_back_for_ever(void **state)
{
	struct deps_fixture f;
	init(&f, "top");
	hold_aggregate(&f, "top", "d a");
	hold_name(&f, "d", "db.example");
	hold_leaf(&f, "a", 1);
	say_all(&f);
	deps_pass_time(&f, 14 * S);
	expect_updates(&f, 0, 0);
	deps_pass_time(&f, 2 * S);
	deps_pass_time(&f, 0);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: ~a=a/10.0.0.1 ~d=db.example? top[d a]");
	assert_non_null(strstr(note_of(&f, "d"), "no answer"));
	fake_lookups_answer(&f.name_servers, "db.example", "10.0.0.9", 60);
	deps_pass_time(&f, 0);
	assert_string_equal(look(&f), "rc: ~a=a/10.0.0.1 ~d=db.example/10.0.0.9 top[d a]");
	deps_fini(&f);
}

static void an_address_in_place_of_a_name_needs_no_name_server(void **state)
{
	struct deps_fixture f;
	init(&f, "d");
	hold_name(&f, "d", "fd00::7");
	say_all(&f);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: d=fd00::7/fd00::7");
	assert_string_equal(f.config->clusters[0].endpoints->base.name, "[fd00::7]:80");
	assert_int_equal(f.name_servers.n_started, 0);
	deps_fini(&f);
}

static void clusters_of_one_name_share_a_lookup_and_nothing_else(void **state)
{
	struct deps_fixture f;
	init(&f, "top");
	hold_aggregate(&f, "top", "d e");
	hold_name(&f, "d", "db.example");
	hold(&f, &res_type_cluster, "e",
		"{'name':'e','type':'LOGICAL_DNS','loadAssignment':{'endpoints':[{'lbEndpoints':["
		"{'endpoint':{'hostname':'h.example','address':{'socketAddress':"
		"{'address':'db.example','portValue':81}}}}]}]}}");
	say_all(&f);
	assert_int_equal(f.name_servers.n_started, 1);
	fake_lookups_answer(&f.name_servers, "db.example", "10.0.0.1", 60);
	deps_pass_time(&f, 0);
	expect_updates(&f, 1, 0); // both in one
	assert_string_equal(look(&f), "rc: ~d=db.example/10.0.0.1 ~e=db.example/10.0.0.1 top[d e]");
	const struct lb_leaf_endpoint d =
		lb_leaf_endpoints_at(f.config->clusters[0].endpoints->list, 0);
	assert_true(str_eq(d.hostname, STR("db.example:80"))); // AR-01
	const struct lb_leaf_endpoint e =
		lb_leaf_endpoints_at(f.config->clusters[1].endpoints->list, 0);
	assert_int_equal(e.addresses[0].port, 81);
	assert_true(str_eq(e.hostname, STR("h.example"))); // AR-01
	deps_fini(&f);
}

// A74-C09
static void another_name_takes_over_when_it_is_resolved(void **state)
{
	struct deps_fixture f;
	init(&f, "d");
	hold_name(&f, "d", "db.example");
	say_all(&f);
	fake_lookups_answer(&f.name_servers, "db.example", "10.0.0.1", 6000);
	deps_pass_time(&f, 0);
	const struct res_endpoints *e = f.config->clusters[0].endpoints;
	hold(&f, &res_type_cluster, "d",
		"{'name':'d','type':'LOGICAL_DNS','loadAssignment':{'endpoints':[{'lbEndpoints':["
		"{'endpoint':{'address':{'socketAddress':{'address':'db.example','portValue':80}}}}"
		"]}]},'circuitBreakers':{'thresholds':[{'maxRequests':7}]}}");
	say(&f, &res_type_cluster); // the place is the same
	expect_updates(&f, 2, 0);
	assert_ptr_equal(f.config->clusters[0].endpoints, e);
	assert_int_equal(f.config->clusters[0].cluster->max_requests, 7);

	hold_name(&f, "d", "new.example");
	say(&f, &res_type_cluster);
	expect_updates(&f, 0, 0);
	assert_string_equal(look(&f), "rc: d=db.example/10.0.0.1");
	fake_lookups_answer(&f.name_servers, "new.example", "10.0.0.2", 6000);
	deps_pass_time(&f, 0);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: d=new.example/10.0.0.2");

	hold_leaf(&f, "d", 3); // to EDS and back
	say(&f, &res_type_cluster);
	say(&f, &res_type_endpoints);
	assert_string_equal(look(&f), "rc: d=d/10.0.0.3");
	assert_true(f.config->clusters[0].cluster->kind == RES_CLUSTER_EDS);
	hold_name(&f, "d", "db.example");
	say(&f, &res_type_cluster);
	fake_lookups_answer(&f.name_servers, "db.example", "10.0.0.4", 6000);
	deps_pass_time(&f, 0);
	assert_string_equal(look(&f), "rc: d=db.example/10.0.0.4");
	deps_fini(&f);
}

static void another_port_of_the_same_name_costs_no_lookup(void **state)
{
	struct deps_fixture f;
	init(&f, "d");
	hold_name(&f, "d", "db.example");
	say_all(&f);
	fake_lookups_answer(&f.name_servers, "db.example", "10.0.0.1", 6000);
	deps_pass_time(&f, 0);
	hold(&f, &res_type_cluster, "d",
		"{'name':'d','type':'LOGICAL_DNS','loadAssignment':{'endpoints':[{'lbEndpoints':["
		"{'endpoint':{'address':{'socketAddress':{'address':'db.example','portValue':99}}}}"
		"]}]}}");
	say(&f, &res_type_cluster);
	expect_updates(&f, 2, 0);
	assert_int_equal(f.name_servers.n_started, 1);
	assert_string_equal(f.config->clusters[0].endpoints->base.name, "db.example:99");
	deps_fini(&f);
}

// DM-24
static void names_that_nobody_needs_any_more_are_not_resolved(void **state)
{
	struct deps_fixture f;
	init(&f, "d");
	hold_name(&f, "d", "db.example");
	hold_leaf(&f, "a", 1);
	say_all(&f);
	hold_routes(&f, "rc", "a", NULL);
	say(&f, &res_type_route_config);
	assert_false(fake_lookups_asks(&f.name_servers, "db.example")); // DM-24
	assert_string_equal(depmgr_waiting(f.dm), "cluster a");
	say_all(&f);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: a=a/10.0.0.1");
	deps_fini(&f);
}

// DM-23, A74-C06
static void a_request_resolves_all_names_again(void **state)
{
	struct deps_fixture f;
	init(&f, "top");
	hold_aggregate(&f, "top", "d e a");
	hold_name(&f, "d", "d.example");
	hold_name(&f, "e", "e.example");
	hold_leaf(&f, "a", 1);
	say_all(&f);
	fake_lookups_answer(&f.name_servers, "d.example", "10.0.0.1", 6000);
	fake_lookups_answer(&f.name_servers, "e.example", "10.0.0.2", 6000);
	deps_pass_time(&f, 40 * S);
	expect_updates(&f, 1, 0);
	unsigned n = f.server.n_sent;
	for (int i = 0; i < 1000; i++)
		depmgr_reresolve(f.dm);
	assert_int_equal(f.name_servers.n_started, 2); // not inside
	deps_pass_time(&f, 0);
	assert_int_equal(f.name_servers.n_started, 4); // once each
	assert_int_equal(f.server.n_sent, n); // never EDS
	fake_lookups_answer(&f.name_servers, "d.example", "10.0.0.3", 6000);
	fake_lookups_answer(&f.name_servers, "e.example", "10.0.0.2", 6000);
	deps_pass_time(&f, 0);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: ~a=a/10.0.0.1 ~d=d.example/10.0.0.3 "
				      "~e=e.example/10.0.0.2 top[d e a]");
	depmgr_reresolve(f.dm); // too soon for the servers, but not forgotten
	deps_pass_time(&f, 5 * S);
	assert_int_equal(f.name_servers.n_started, 4);
	deps_pass_time(&f, 26 * S);
	assert_int_equal(f.name_servers.n_started, 6);
	deps_fini(&f);
}

static void without_a_resolver_such_clusters_are_in_error(void **state)
{
	struct deps_fixture f;
	init(&f, "top");
	hold_aggregate(&f, "top", "d a");
	hold_name(&f, "d", "d.example");
	hold_leaf(&f, "a", 1);
	say_all(&f);
	struct deps_fixture second = {.config = NULL};
	second.dm = deps_start(&f, &second, NULL, false);
	deps_pass_time(&f, 0);
	assert_string_equal(look(&second), "rc: ~a=a/10.0.0.1 ~d! top[a]");
	assert_non_null(strstr(error_of(&second, "d"), "resolver"));
	assert_non_null(strstr(note_of(&second, "top"), "resolver"));
	depmgr_reresolve(second.dm);
	depmgr_free(second.dm);
	deps_fini(&f);
}

static void without_memory_a_pass_over_names_is_made_again(void **state)
{
	struct deps_fixture f;
	if (!alloc_fail_works())
		skip();
	init(&f, "top");
	hold_aggregate(&f, "top", "d a e");
	hold_name(&f, "d", "d.example");
	hold_name(&f, "e", "10.0.0.9");
	hold_leaf(&f, "a", 1);
	say_all(&f);
	fake_lookups_answer(&f.name_servers, "d.example", "10.0.0.1", 6000);
	deps_pass_time(&f, 0);
	assert_non_null(strstr(look(&f), " top[d a e]"));
	assert_true(deps_starve_each(&f, NULL) > 30);
	deps_fini(&f);
}

// The answer comes once; what there is no memory for is asked of the resolver again.
static void an_answer_without_memory_is_taken_later(void **state)
{
	struct deps_fixture f;
	if (!alloc_fail_works())
		skip();
	init(&f, "d");
	hold_name(&f, "d", "d.example");
	say_all(&f);
	fake_lookups_answer(&f.name_servers, "d.example", "10.0.0.1", 6000);
	deps_pass_time(&f, 0);
	size_t nth = 0;
	for (bool hit = true; hit; nth++) {
		char expected[64], addresses[32];
		depmgr_reresolve(f.dm);
		deps_pass_time(&f, 31 * S);
		snprintf(addresses, sizeof(addresses), "10.0.1.%zu 10.0.2.1", nth);
		snprintf(expected, sizeof(expected), "rc: d=d.example/10.0.1.%zu+10.0.2.1", nth);
		alloc_fail_arm(nth);
		fake_lookups_answer(&f.name_servers, "d.example", addresses, 6000);
		f.now_ns += 2000000;
		twheel_advance(f.wheel, f.now_ns);
		hit = alloc_fail_disarm();
		deps_pass_time(&f, 2 * S);
		assert_string_equal(look(&f), expected);
	}
	assert_true(nth > 4);
	deps_fini(&f);
}

// What had memory before stays the same object, though the watch is begun anew.
static void trouble_without_memory_leaves_the_addresses_alone(void **state)
{
	struct deps_fixture f;
	if (!alloc_fail_works())
		skip();
	init(&f, "d");
	hold_name(&f, "d", "d.example");
	say_all(&f);
	fake_lookups_answer(&f.name_servers, "d.example", "10.0.0.1 10.0.0.2", 40);
	deps_pass_time(&f, 0);
	const struct res_endpoints *e = f.config->clusters[0].endpoints;
	size_t nth = 0;
	for (bool hit = true; hit; nth++) {
		deps_pass_time(&f, 41 * S);
		alloc_fail_arm(nth);
		fake_lookups_fail(&f.name_servers, "d.example", "SERVFAIL");
		f.now_ns += 2000000;
		twheel_advance(f.wheel, f.now_ns);
		hit = alloc_fail_disarm();
		deps_pass_time(&f, 2 * S);
		assert_ptr_equal(f.config->clusters[0].endpoints, e);
		fake_lookups_answer(&f.name_servers, "d.example", "10.0.0.2 10.0.0.1", 40);
		deps_pass_time(&f, 2 * S);
		assert_ptr_equal(f.config->clusters[0].endpoints, e);
		assert_non_null(strstr(note_of(&f, "d"), "node id"));
	}
	assert_true(nth > 3);
	deps_fini(&f);
}

RUN_SUITE("deps/dns_source", cmocka_unit_test(all_addresses_of_a_name_are_one_endpoint),
	cmocka_unit_test(an_unchanged_answer_is_the_same_object_and_no_news),
	cmocka_unit_test(a_name_that_does_not_resolve_leaves_the_cluster_in_order),
	cmocka_unit_test(a_name_server_that_is_silent_holds_nothing_back_for_ever),
	cmocka_unit_test(an_address_in_place_of_a_name_needs_no_name_server),
	cmocka_unit_test(clusters_of_one_name_share_a_lookup_and_nothing_else),
	cmocka_unit_test(another_name_takes_over_when_it_is_resolved),
	cmocka_unit_test(another_port_of_the_same_name_costs_no_lookup),
	cmocka_unit_test(names_that_nobody_needs_any_more_are_not_resolved),
	cmocka_unit_test(a_request_resolves_all_names_again),
	cmocka_unit_test(without_a_resolver_such_clusters_are_in_error),
	cmocka_unit_test(without_memory_a_pass_over_names_is_made_again),
	cmocka_unit_test(an_answer_without_memory_is_taken_later),
	cmocka_unit_test(trouble_without_memory_leaves_the_addresses_alone))
