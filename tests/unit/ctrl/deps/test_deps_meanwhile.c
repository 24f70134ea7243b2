// SPDX-License-Identifier: Apache-2.0
// What goes live while a configuration waits: newer endpoints of clusters that are what they were,
// and nothing else (A74).
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

// web → rc → blue, delivered; then a route to green, of which the server says nothing.
static void with_green_missing(struct deps_fixture *f, const char *features)
{
	deps_init(f, features, NULL);
	hold_listener(f, "rc");
	hold_routes(f, "rc", "blue", NULL);
	hold_leaf(f, "blue", 1);
	say_all(f);
	expect_updates(f, 1, 0);
	hold_routes(f, "rc", "blue", "green", NULL);
	say(f, &res_type_route_config);
}

static void move_blue(struct deps_fixture *f, int n)
{
	hold_endpoint(f, "blue", n);
	say(f, &res_type_endpoints);
}

static void endpoints_go_live_though_routes_wait_for_a_cluster(void **state)
{
	struct deps_fixture f;
	with_green_missing(&f, "");
	struct xds_config *before = xds_config_get(f.config);
	move_blue(&f, 2);
	expect_updates(&f, 0, 0); // most often all is there in no time
	deps_pass_time(&f, S);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.2");
	assert_ptr_equal(f.config->listener, before->listener);
	assert_ptr_equal(f.config->routes, before->routes);
	assert_ptr_equal(f.config->clusters[0].cluster, before->clusters[0].cluster);
	assert_string_equal(note_of(&f, "blue"), "xDS node id \"me\"");
	assert_string_equal(depmgr_waiting(f.dm), "cluster green");
	xds_config_put(before);
	deps_pass_time(&f, 5 * S);
	expect_updates(&f, 0, 0); // once
	move_blue(&f, 3);
	deps_pass_time(&f, S);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.3");
	deps_pass_time(&f, 10 * S); // FM-07: green is absent
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.3 green!");
	expect_updates(&f, 2, 0);
	deps_fini(&f);
}

// The routes of each moment need a cluster that the server was not asked for before.
static void endpoints_go_live_though_routes_change_faster_than_the_server_answers(void **state)
{
	struct deps_fixture f;
	with_green_missing(&f, "");
	for (int i = 2; i < 50; i++) {
		char next[16], expected[64];
		snprintf(next, sizeof(next), "next-%d", i);
		hold_routes(&f, "rc", "blue", next, NULL);
		say(&f, &res_type_route_config);
		move_blue(&f, i);
		deps_pass_time(&f, S);
		snprintf(expected, sizeof(expected), "rc: blue=blue/10.0.0.%d", i);
		assert_string_equal(look(&f), expected);
		expect_updates(&f, 1, 0);
	}
	snprintf(f.error, sizeof(f.error), " blue next-49 "); // the others are forgotten
	assert_string_equal(f.asked[0], f.error);
	deps_fini(&f);
}

static void cluster_that_new_routes_do_not_name_is_followed_as_long_as_it_serves(void **state)
{
	struct deps_fixture f;
	with_green_missing(&f, "");
	hold_routes(&f, "rc", "green", NULL);
	say(&f, &res_type_route_config);
	move_blue(&f, 2);
	deps_pass_time(&f, S);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.2");
	expect_updates(&f, 1, 0);
	hold_leaf(&f, "green", 5);
	say_all(&f);
	assert_string_equal(look(&f), "rc: green=green/10.0.0.5");
	deps_pass_time(&f, 2 * S);
	assert_string_equal(f.asked[0], " green ");
	assert_string_equal(f.asked[1], " green ");
	expect_updates(&f, 1, 0);
	deps_fini(&f);
}

// DM-22: as long as the routes that name it serve, requests choose it.
static void cluster_that_new_routes_do_not_name_stays_for_requests_of_meanwhile(void **state)
{
	struct deps_fixture f;
	with_green_missing(&f, "");
	hold_routes(&f, "rc", "green", NULL);
	say(&f, &res_type_route_config);
	f.in_use = " blue ";
	hold_leaf(&f, "green", 5);
	say_all(&f);
	assert_string_equal(look(&f), "rc: ~blue=blue/10.0.0.1 green=green/10.0.0.5");
	f.in_use = NULL;
	deps_pass_time(&f, 2 * S);
	assert_string_equal(look(&f), "rc: green=green/10.0.0.5");
	deps_fini(&f);
}

// DM-27
static void notes_tell_of_trouble_with_the_routes(void **state)
{
	struct deps_fixture f;
	with_green_missing(&f, "");
	hold(&f, &res_type_route_config, "rc", "{'name':'rc','virtual_hosts':[{'name':'v'}]}");
	say(&f, &res_type_route_config);
	move_blue(&f, 2);
	deps_pass_time(&f, S);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.2");
	assert_non_null(strstr(note_of(&f, "blue"), "\"rc\" from xDS server"));
	deps_fini(&f);
}

// What is wrong with routes that are to come is their own.
static void notes_tell_of_no_trouble_with_other_routes(void **state)
{
	struct deps_fixture f;
	with_green_missing(&f, "");
	hold_listener(&f, "rc-2");
	say(&f, &res_type_listener);
	hold_routes(&f, "rc-2", "green", NULL);
	say(&f, &res_type_route_config);
	hold(&f, &res_type_route_config, "rc-2", "{'name':'rc-2','virtual_hosts':[{'name':'v'}]}");
	say(&f, &res_type_route_config);
	move_blue(&f, 2);
	deps_pass_time(&f, S);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.2");
	assert_string_equal(note_of(&f, "blue"), "xDS node id \"me\"");
	deps_fini(&f);
}

static void endpoints_of_a_cluster_that_is_another_wait_with_it(void **state)
{
	struct deps_fixture f;
	with_green_missing(&f, "");
	hold_cluster(&f, "blue", "other");
	hold_endpoint(&f, "other", 2);
	say(&f, &res_type_cluster);
	say(&f, &res_type_endpoints);
	move_blue(&f, 3);
	deps_pass_time(&f, 5 * S);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.1");
	expect_updates(&f, 0, 0);
	hold_leaf(&f, "green", 5);
	say_all(&f);
	assert_string_equal(look(&f), "rc: blue=other/10.0.0.2 green=green/10.0.0.5");
	deps_fini(&f);
}

// DM-05
static void deletion_waits(void **state)
{
	struct deps_fixture f;
	with_green_missing(&f, "\"fail_on_data_errors\"");
	drop(&f, &res_type_cluster, "blue");
	say(&f, &res_type_cluster);
	move_blue(&f, 2);
	deps_pass_time(&f, 5 * S);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.1");
	expect_updates(&f, 0, 0);
	deps_fini(&f);
}

static void listener_that_waits_for_its_routes_holds_no_endpoints_up(void **state)
{
	struct deps_fixture f;
	with_green_missing(&f, "");
	hold_listener(&f, "rc-2");
	say(&f, &res_type_listener);
	move_blue(&f, 2);
	deps_pass_time(&f, S);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.2");
	expect_updates(&f, 1, 0);
	deps_fini(&f);
}

// Leaves of aggregates, and names.
static void leaves_of_aggregates_go_live(void **state)
{
	struct deps_fixture f;
	deps_init(&f, "", NULL);
	hold_listener(&f, "rc");
	hold_routes(&f, "rc", "top", NULL);
	hold_aggregate(&f, "top", "d gone blue");
	hold_leaf(&f, "blue", 1);
	hold_name(&f, "d", "db.example");
	say_all(&f);
	fake_lookups_answer(&f.name_servers, "db.example", "10.0.0.8", 60);
	deps_pass_time(&f, 16 * S);
	static const char all[] =
		"rc: ~blue=blue/10.0.0.1 ~d=db.example/10.0.0.8 ~gone! top[d blue]";
	assert_string_equal(look(&f), all);
	const char *note = note_of(&f, "top");
	assert_non_null(strstr(note, "left out"));
	expect_updates(&f, 1, 0);
	for (unsigned i = 0; i < 100 && !fake_lookups_asks(&f.name_servers, "db.example"); i++)
		deps_pass_time(&f, S);
	hold_routes(&f, "rc", "top", "green", NULL);
	say(&f, &res_type_route_config);
	move_blue(&f, 2);
	deps_pass_time(&f, 2 * S);
	fake_lookups_answer(&f.name_servers, "db.example", "10.0.0.9", 60);
	deps_pass_time(&f, 0);
	deps_pass_time(&f, S);
	assert_string_equal(
		look(&f), "rc: ~blue=blue/10.0.0.2 ~d=db.example/10.0.0.9 ~gone! top[d blue]");
	assert_non_null(strstr(note_of(&f, "top"), "left out"));
	expect_updates(&f, 2, 0);
	deps_fini(&f);
}

// False = the allocation is one that there is not.
static bool go_live_without_memory(size_t nth)
{
	struct deps_fixture f;
	with_green_missing(&f, "");
	move_blue(&f, 2);
	alloc_fail_arm(nth);
	deps_pass_time(&f, S);
	bool hit = alloc_fail_disarm();
	deps_pass_time(&f, 2 * S);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.2");
	expect_updates(&f, 1, 0);
	deps_fini(&f);
	return hit;
}

static void want_of_memory_is_got_over(void **state)
{
	size_t nth = 0;
	if (!alloc_fail_works())
		skip();
	while (go_live_without_memory(nth))
		nth++;
	assert_true(nth > 2);
}

RUN_SUITE("deps/deps_meanwhile",
	cmocka_unit_test(endpoints_go_live_though_routes_wait_for_a_cluster),
	cmocka_unit_test(endpoints_go_live_though_routes_change_faster_than_the_server_answers),
	cmocka_unit_test(cluster_that_new_routes_do_not_name_is_followed_as_long_as_it_serves),
	cmocka_unit_test(cluster_that_new_routes_do_not_name_stays_for_requests_of_meanwhile),
	cmocka_unit_test(notes_tell_of_trouble_with_the_routes),
	cmocka_unit_test(notes_tell_of_no_trouble_with_other_routes),
	cmocka_unit_test(endpoints_of_a_cluster_that_is_another_wait_with_it),
	cmocka_unit_test(deletion_waits),
	cmocka_unit_test(listener_that_waits_for_its_routes_holds_no_endpoints_up),
	cmocka_unit_test(leaves_of_aggregates_go_live),
	cmocka_unit_test(want_of_memory_is_got_over))
