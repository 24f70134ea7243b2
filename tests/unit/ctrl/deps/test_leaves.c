// SPDX-License-Identifier: Apache-2.0
// Aggregate clusters through the dependency manager: which clusters are watched, and which leaves
// an aggregate has (A75-G*, A37-G*, DM-14 to DM-19).
#include "ctrl/deps/config.h"
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

static void init(struct deps_fixture *f)
{
	deps_init(f, "", NULL);
	hold_listener(f, "rc");
}

// A75-G01, DM-15, DM-14
static void leaves_are_flat_depth_first_and_once_at_their_earliest_place(void **state)
{
	struct deps_fixture f;
	init(&f);
	hold_routes(&f, "rc", "top", NULL);
	hold_aggregate(&f, "top", "d left right a");
	hold_aggregate(&f, "left", "a b a");
	hold_aggregate(&f, "right", "c left b d e"); // left is reached twice: a diamond
	for (const char *c = "abcde"; *c; c++)
		hold_leaf(&f, (char[]){*c, '\0'}, *c - 'a' + 1);
	say_all(&f);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f),
		"rc: ~a=a/10.0.0.1 ~b=b/10.0.0.2 ~c=c/10.0.0.3 ~d=d/10.0.0.4 ~e=e/10.0.0.5 "
		"~left[a b] ~right[c a b d e] top[d a b c e]");
	deps_fini(&f);
}

// A74-T05, DM-05, DM-06
static void an_aggregate_waits_for_all_that_it_reaches(void **state)
{
	struct deps_fixture f;
	init(&f);
	hold_routes(&f, "rc", "blue", NULL);
	hold_leaf(&f, "blue", 1);
	say_all(&f);
	expect_updates(&f, 1, 0);
	hold_routes(&f, "rc", "blue", "top", NULL);
	hold_aggregate(&f, "top", "inner green");
	hold_leaf(&f, "green", 2);
	say(&f, &res_type_route_config);
	assert_string_equal(depmgr_waiting(f.dm), "cluster top");
	say(&f, &res_type_cluster);
	say(&f, &res_type_cluster);
	assert_string_equal(depmgr_waiting(f.dm), "endpoints green, cluster inner");
	say(&f, &res_type_endpoints);
	expect_updates(&f, 0, 0);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.1");
	hold_aggregate(&f, "inner", "red");
	hold_leaf(&f, "red", 3);
	say(&f, &res_type_cluster);
	say(&f, &res_type_cluster);
	expect_updates(&f, 0, 0);
	say(&f, &res_type_endpoints);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f),
		"rc: blue=blue/10.0.0.1 ~green=green/10.0.0.2 ~inner[red] ~red=red/10.0.0.3 "
		"top[red green]");
	deps_fini(&f);
}

// WA-14, A37-G05, DM-18, DM-24
static void a_leaf_of_two_aggregates_and_a_route_is_one_entry_and_one_watch(void **state)
{
	struct deps_fixture f;
	init(&f);
	// Names in both orders: no aggregate loses what another one has seen (A37-G05, DM-18).
	hold_routes(&f, "rc", "one", "m", "zwo", NULL);
	hold_aggregate(&f, "one", "a m");
	hold_aggregate(&f, "zwo", "m a one");
	hold_leaf(&f, "a", 1);
	hold_leaf(&f, "m", 2);
	say_all(&f);
	assert_string_equal(look(&f), "rc: ~a=a/10.0.0.1 m=m/10.0.0.2 one[a m] zwo[m a]");
	const char *asked = f.asked[0];
	assert_string_equal(strstr(strstr(asked, " m ") + 1, " m ") ? "twice" : "once", "once");
	hold_routes(&f, "rc", "one", "zwo", NULL); // it is a leaf alone now
	say(&f, &res_type_route_config);
	expect_updates(&f, 2, 0);
	assert_string_equal(look(&f), "rc: ~a=a/10.0.0.1 ~m=m/10.0.0.2 one[a m] zwo[m a]");
	hold_routes(&f, "rc", "m", NULL); // and a route's alone
	say(&f, &res_type_route_config);
	assert_string_equal(look(&f), "rc: m=m/10.0.0.2");
	assert_string_equal(f.asked[0], " m "); // DM-24
	deps_fini(&f);
}

// A37-G03, DM-17, FM-11
static void a_loop_adds_nothing(void **state)
{
	struct deps_fixture f;
	init(&f);
	hold_routes(&f, "rc", "self", "ring1", "lone", "pair1", NULL);
	hold_aggregate(&f, "self", "self a");
	hold_aggregate(&f, "ring1", "ring2 a");
	hold_aggregate(&f, "ring2", "b ring1");
	hold_aggregate(&f, "lone", "lone");
	hold_aggregate(&f, "pair1", "pair2");
	hold_aggregate(&f, "pair2", "pair1");
	hold_leaf(&f, "a", 1);
	hold_leaf(&f, "b", 2);
	say_all(&f);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f),
		"rc: ~a=a/10.0.0.1 ~b=b/10.0.0.2 lone! pair1! ~pair2! ring1[b a] ~ring2[b a] "
		"self[a]");
	assert_non_null(strstr(error_of(&f, "lone"), "\"lone\" has no leaf clusters"));
	assert_non_null(
		strstr(error_of(&f, "lone"), "they form a loop; xDS node id \"me\"")); // FM-11
	assert_non_null(strstr(error_of(&f, "pair1"), "no leaf clusters"));
	deps_fini(&f);
}

// c0 → c1 → … → c<n>, which is a leaf.
static void hold_chain(struct deps_fixture *f, int n)
{
	char name[16], child[16];
	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "c%d", i);
		snprintf(child, sizeof(child), "c%d", i + 1);
		hold_aggregate(f, name, child);
	}
	snprintf(name, sizeof(name), "c%d", n);
	hold_leaf(f, name, 1);
}

// A37-G02, DM-16
static void a_leaf_at_depth_15_works(void **state)
{
	struct deps_fixture f;
	init(&f);
	hold_routes(&f, "rc", "c0", NULL);
	hold_chain(&f, 15);
	say_all(&f);
	expect_updates(&f, 1, 0);
	assert_non_null(strstr(look(&f), " c0[c15] "));
	assert_non_null(strstr(look(&f), " ~c14[c15] "));
	deps_fini(&f);
}

// A37-G02, DM-16, TH-59
static void depth_16_on_any_branch_fails_that_root_alone(void **state)
{
	struct deps_fixture f;
	init(&f);
	hold_routes(&f, "rc", "other", "c0", NULL);
	hold_chain(&f, 16);
	hold_aggregate(&f, "c0", "near c1"); // another branch would do
	hold_aggregate(&f, "other", "near");
	hold_leaf(&f, "near", 2);
	say_all(&f);
	expect_updates(&f, 1, 0); // nobody asks for c16, nor waits for it
	assert_false(asked_for(&f, &res_type_cluster, "c16"));
	assert_non_null(strstr(look(&f), " c0! "));
	assert_non_null(strstr(look(&f), " ~c1! ~c10! ")); // DM-16: the chain walked from it
	assert_non_null(strstr(look(&f), " other[near]"));
	assert_non_null(strstr(error_of(&f, "c0"), "\"c0\" exceeds max depth 16 (at \"c16\")"));
	assert_non_null(strstr(error_of(&f, "c0"), "node id \"me\""));

	hold_routes(&f, "rc", "other", "c1", "c0", NULL); // an entry that is a root of its own
	say(&f, &res_type_route_config);
	say_all(&f);
	assert_non_null(strstr(look(&f), " c0! c1[c16] "));
	assert_non_null(strstr(look(&f), " ~c2[c16] "));

	hold_aggregate(&f, "c0", "near c2"); // and a repair is seen
	say(&f, &res_type_cluster);
	assert_non_null(strstr(look(&f), " c0[near c16] "));
	deps_fini(&f);
}

// A37-G10, DM-19
static void a_faulty_leaf_is_skipped_until_it_heals(void **state)
{
	struct deps_fixture f;
	init(&f);
	hold_routes(&f, "rc", "top", NULL);
	hold_aggregate(&f, "top", "bad absent good");
	hold_leaf(&f, "good", 1);
	hold(&f, &res_type_cluster, "bad", "{'name':'bad','type':'STATIC'}");
	say_all(&f);
	expect_updates(&f, 0, 0); // absent may still come
	deps_pass_time(&f, 16 * S);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: ~absent! ~bad! ~good=good/10.0.0.1 top[good]");
	assert_non_null(strstr(note_of(&f, "top"), "left out: ")); // ERR-01
	assert_non_null(strstr(note_of(&f, "top"), "STATIC"));
	assert_non_null(strstr(note_of(&f, "top"), "absent"));
	assert_null(strstr(note_of(&f, "good"), "left out"));
	hold_leaf(&f, "absent", 2);
	hold_leaf(&f, "bad", 3);
	say(&f, &res_type_cluster);
	expect_updates(&f, 0, 0);
	say(&f, &res_type_endpoints);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: ~absent=absent/10.0.0.2 ~bad=bad/10.0.0.3 "
				      "~good=good/10.0.0.1 top[bad absent good]");
	assert_null(strstr(note_of(&f, "top"), "left out"));
	deps_fini(&f);
}

// A37-G10
static void an_aggregate_without_any_good_leaf_is_in_error(void **state)
{
	struct deps_fixture f;
	init(&f);
	hold_routes(&f, "rc", "top", "blue", NULL);
	hold_aggregate(&f, "top", "x1 x2 x3 x4 inner");
	hold_aggregate(&f, "inner", "x5");
	hold_leaf(&f, "blue", 1);
	for (int i = 1; i <= 5; i++) {
		char name[8], json[64];
		snprintf(name, sizeof(name), "x%d", i);
		snprintf(json, sizeof(json), "{'name':'%s','type':'STATIC'}", name);
		hold(&f, &res_type_cluster, name, json);
	}
	say_all(&f);
	expect_updates(&f, 1, 0); // A74-T07: blue is all right
	assert_string_equal(
		look(&f), "rc: blue=blue/10.0.0.1 ~inner! top! ~x1! ~x2! ~x3! ~x4! ~x5!");
	assert_non_null(strstr(error_of(&f, "top"), "\"top\" has no leaf clusters: "));
	assert_non_null(strstr(error_of(&f, "top"), "\"x1\""));
	assert_null(strstr(error_of(&f, "top"), "\"x4\""));
	assert_non_null(strstr(error_of(&f, "top"), "; and 2 more"));
	deps_fini(&f);
}

// A88-C10
static void a_leaf_that_is_deleted_serves_on_unless_the_server_wants_errors(void **state)
{
	for (int drops = 0; drops <= 1; drops++) {
		struct deps_fixture f;
		deps_init(&f, drops ? "\"fail_on_data_errors\"" : "", NULL);
		hold_listener(&f, "rc");
		hold_routes(&f, "rc", "top", NULL);
		hold_aggregate(&f, "top", "a b");
		hold_leaf(&f, "a", 1);
		hold_leaf(&f, "b", 2);
		say_all(&f);
		drop(&f, &res_type_cluster, "a");
		say(&f, &res_type_cluster);
		expect_updates(&f, 2, 0);
		if (drops) {
			assert_string_equal(look(&f), "rc: ~a! ~b=b/10.0.0.2 top[b]");
		} else {
			assert_string_equal(look(&f), "rc: ~a=a/10.0.0.1 ~b=b/10.0.0.2 top[a b]");
			assert_non_null(strstr(note_of(&f, "a"), "deleted")); // A74-C07
		}
		deps_fini(&f);
	}
}

#define MAX_TOO_DEEP 30

// DM-16, DM-22: what requests hold is watched and may yet be in no configuration.
static void members_too_deep_that_requests_hold_are_left_out(void **state)
{
	struct deps_fixture f;
	char names[MAX_TOO_DEEP * 4] = "", in_use[sizeof(names) + 2];
	char json[8192];
	init(&f);
	int len = snprintf(json, sizeof(json),
		"{'name':'rc','virtualHosts':[{'name':'v','domains':['*'],'routes':["
		"{'match':{'prefix':'/'},'route':{'cluster':'a0'}}");
	for (int i = 0; i < MAX_TOO_DEEP; i++) {
		char x[8];
		snprintf(x, sizeof(x), "x%d", i);
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i ? " " : "",
			x);
		hold_cluster(&f, x, "e");
		len += snprintf(json + len, sizeof(json) - (size_t)len,
			",{'match':{'prefix':'/%s'},'route':{'cluster':'%s'}}", x, x);
	}
	snprintf(json + len, sizeof(json) - (size_t)len, "]}]}");
	snprintf(in_use, sizeof(in_use), " %s ", names);
	hold_endpoint(&f, "e", 1);
	for (int i = 0; i < 16; i++) {
		char name[8], child[8];
		snprintf(name, sizeof(name), "a%d", i);
		snprintf(child, sizeof(child), "a%d", i + 1);
		hold_aggregate(&f, name, i < 15 ? child : names);
	}
	hold(&f, &res_type_route_config, "rc", json);
	say_all(&f);
	assert_int_equal(f.config->n_clusters, 16 + MAX_TOO_DEEP);
	f.in_use = in_use;
	hold_routes(&f, "rc", "a0", NULL);
	for (int i = 0; i < MAX_TOO_DEEP; i++) {
		char x[8];
		snprintf(x, sizeof(x), "x%d", i);
		hold_cluster(&f, x, "not-there-yet");
	}
	say(&f, &res_type_route_config);
	say(&f, &res_type_cluster);
	assert_int_equal(f.config->n_clusters, 16);
	assert_non_null(strstr(error_of(&f, "a0"), "exceeds max depth"));
	assert_non_null(strstr(error_of(&f, "a15"), "exceeds max depth"));
	deps_fini(&f);
}

// A74-C09
static void a_cluster_turns_from_leaf_to_aggregate_and_back_at_once(void **state)
{
	struct deps_fixture f;
	init(&f);
	hold_routes(&f, "rc", "top", NULL);
	hold_leaf(&f, "top", 1);
	say_all(&f);
	assert_string_equal(look(&f), "rc: top=top/10.0.0.1");
	hold_aggregate(&f, "top", "a");
	hold_leaf(&f, "a", 2);
	say(&f, &res_type_cluster);
	assert_string_equal(f.asked[1], " top "); // they serve
	assert_string_equal(look(&f), "rc: top=top/10.0.0.1");
	say(&f, &res_type_cluster);
	expect_updates(&f, 1, 0);
	say(&f, &res_type_endpoints);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: ~a=a/10.0.0.2 top[a]");
	deps_pass_time(&f, 0);
	assert_string_equal(f.asked[1], " a "); // the endpoints of "top" are none now
	hold_leaf(&f, "top", 3);
	say(&f, &res_type_cluster);
	assert_string_equal(look(&f), "rc: ~a=a/10.0.0.2 top[a]");
	say(&f, &res_type_endpoints);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: top=top/10.0.0.3");
	deps_fini(&f);
}

// DM-29
static void only_a_change_of_leaves_or_roots_is_a_change(void **state)
{
	struct deps_fixture f;
	init(&f);
	hold_routes(&f, "rc", "top", NULL);
	hold_aggregate(&f, "top", "a inner");
	hold_aggregate(&f, "inner", "b");
	hold_leaf(&f, "a", 1);
	hold_leaf(&f, "b", 2);
	say_all(&f);
	expect_updates(&f, 1, 0);
	say_all(&f);
	expect_updates(&f, 0, 0);
	const struct res_cluster *top = f.config->clusters[3].cluster;
	hold_aggregate(&f, "inner", "a b");
	hold_aggregate(&f, "top", "b inner"); // the order alone
	say(&f, &res_type_cluster);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: ~a=a/10.0.0.1 ~b=b/10.0.0.2 ~inner[a b] top[b a]");
	assert_ptr_not_equal(f.config->clusters[3].cluster, top);
	hold_routes(&f, "rc", "top", "a", NULL);
	say(&f, &res_type_route_config);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: a=a/10.0.0.1 ~b=b/10.0.0.2 ~inner[a b] top[b a]");
	deps_fini(&f);
}

// Each part of an entry counts, whether or not a resource changes with it.
static void configurations_that_differ_in_leaves_or_roots_are_not_equal(void **state)
{
	struct deps_fixture f;
	init(&f);
	hold_routes(&f, "rc", "top", NULL);
	hold_aggregate(&f, "top", "a b");
	hold_leaf(&f, "a", 1);
	hold_leaf(&f, "b", 2);
	say_all(&f);
	struct xds_cluster_config entries[3];
	struct xds_config other = *f.config;
	memcpy(entries, other.clusters, sizeof(entries));
	other.clusters = entries;
	assert_true(xds_config_eq(f.config, &other));
	entries[0].is_root = true;
	assert_false(xds_config_eq(f.config, &other));
	entries[0].is_root = false;
	entries[2].n_leaves = 1;
	assert_false(xds_config_eq(f.config, &other));
	const char *const turned[] = {"b", "a"}, *const same[] = {"a", "b"};
	entries[2].n_leaves = 2;
	entries[2].leaves = turned;
	assert_false(xds_config_eq(f.config, &other));
	entries[2].leaves = same;
	assert_true(xds_config_eq(f.config, &other));
	deps_fini(&f);
}

static void without_memory_a_pass_over_aggregates_is_made_again(void **state)
{
	struct deps_fixture f;
	if (!alloc_fail_works())
		skip();
	init(&f);
	hold_routes(&f, "rc", "top", "lone", NULL);
	hold_aggregate(&f, "top", "a bad inner");
	hold_aggregate(&f, "inner", "b top");
	hold_aggregate(&f, "lone", "bad");
	hold(&f, &res_type_cluster, "bad", "{'name':'bad','type':'STATIC'}");
	hold_leaf(&f, "a", 1);
	hold_leaf(&f, "b", 2);
	say_all(&f);
	assert_non_null(strstr(look(&f), " top[a b]"));
	assert_true(deps_starve_each(&f, NULL) > 25);
	deps_fini(&f);
}

RUN_SUITE("deps/leaves",
	cmocka_unit_test(leaves_are_flat_depth_first_and_once_at_their_earliest_place),
	cmocka_unit_test(an_aggregate_waits_for_all_that_it_reaches),
	cmocka_unit_test(a_leaf_of_two_aggregates_and_a_route_is_one_entry_and_one_watch),
	cmocka_unit_test(a_loop_adds_nothing), cmocka_unit_test(a_leaf_at_depth_15_works),
	cmocka_unit_test(depth_16_on_any_branch_fails_that_root_alone),
	cmocka_unit_test(a_faulty_leaf_is_skipped_until_it_heals),
	cmocka_unit_test(an_aggregate_without_any_good_leaf_is_in_error),
	cmocka_unit_test(a_leaf_that_is_deleted_serves_on_unless_the_server_wants_errors),
	cmocka_unit_test(members_too_deep_that_requests_hold_are_left_out),
	cmocka_unit_test(a_cluster_turns_from_leaf_to_aggregate_and_back_at_once),
	cmocka_unit_test(only_a_change_of_leaves_or_roots_is_a_change),
	cmocka_unit_test(configurations_that_differ_in_leaves_or_roots_are_not_equal),
	cmocka_unit_test(without_memory_a_pass_over_aggregates_is_made_again))
