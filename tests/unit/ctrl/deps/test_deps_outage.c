// SPDX-License-Identifier: Apache-2.0
// The dependency manager while servers can't be reached (FM-09, DM-06): what serves stays, and what
// others say is held up by what is missing for a while only.
#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "lb/base/twheel.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/deps/deps_fixture.h"

#include <stdlib.h>
#include <string.h>

// Features of the server, and a second authority, which another server has.
#define WITH_FAR_AND(features)                                                                     \
	features "]}],\"authorities\":{\"far\":{\"xds_servers\":[{\"server_uri\":\"ads:2\","       \
		 "\"channel_creds\":[{\"type\":\"insecure\"}]}]}},\"more\":[{\"x\":["
#define WITH_FAR WITH_FAR_AND("")
#define FAR "xdstp://far/envoy.config.cluster.v3.Cluster/green"
#define FAR_ROUTES "xdstp://far/envoy.config.route.v3.RouteConfiguration/rc"

// The stream ends, and so does each that is opened within this time, before it says anything.
static void lose_server(struct deps_fixture *f, unsigned for_s)
{
	if (f->server.stream)
		fake_ads_close(&f->server, "bye");
	for (unsigned i = 0; i < for_s; i++) {
		deps_pass_time(f, S);
		if (f->server.stream)
			fake_ads_close(&f->server, "refused");
	}
}

// FM-09: a server that can't be reached says nothing of what is asked for.
static void routes_that_need_a_lost_server_wait_for_it(void **state)
{
	struct deps_fixture f;
	deps_init_blue(&f, "");
	hold_routes(&f, "rc", "green", NULL);
	say(&f, &res_type_route_config);
	fake_ads_close(&f.server, "bye");
	deps_pass_time(&f, 2 * S);
	fake_ads_close(&f.server, "refused");
	deps_pass_time(&f, 1000 * S);
	fake_ads_close(&f.server, "refused");
	expect_updates(&f, 0, 0);
	assert_string_equal(look(&f), "rc: blue=e-blue/10.0.0.1");
	assert_string_equal(depmgr_waiting(f.dm), "cluster green");
	deps_pass_time(&f, 200 * S);
	hold_leaf(&f, "green", 2);
	say_all(&f);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: green=green/10.0.0.2");
	deps_fini(&f);
}

// DM-07, FM-07: once it can be asked, and does not answer.
static void a_server_that_is_back_and_silent_has_failed_the_cluster(void **state)
{
	struct deps_fixture f;
	deps_init_blue(&f, "");
	hold_routes(&f, "rc", "blue", "green", NULL);
	say(&f, &res_type_route_config);
	fake_ads_close(&f.server, "bye");
	deps_pass_time(&f, 2 * S);
	fake_ads_close(&f.server, "refused");
	deps_pass_time(&f, 3 * S);
	say_all(&f);
	expect_updates(&f, 0, 0);
	deps_pass_time(&f, 16 * S);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: blue=e-blue/10.0.0.1 green!");
	deps_fini(&f);
}

// DM-08, DM-25: the routes that serve are better than none.
static void a_listener_whose_routes_a_lost_server_has_takes_nothing_away(void **state)
{
	struct deps_fixture f;
	deps_init_blue(&f, "");
	hold_listener(&f, "rc-2");
	say(&f, &res_type_listener);
	fake_ads_close(&f.server, "bye");
	deps_pass_time(&f, 2 * S);
	fake_ads_close(&f.server, "refused");
	expect_updates(&f, 0, 0);
	assert_string_equal(look(&f), "rc: blue=e-blue/10.0.0.1");
	deps_pass_time(&f, 3 * S);
	hold_routes(&f, "rc-2", "blue", NULL);
	say_all(&f);
	assert_string_equal(look(&f), "rc-2: blue=e-blue/10.0.0.1");
	deps_fini(&f);
}

// The second authority's server never answers; that of the first one goes on.
static void a_lost_authority_does_not_hold_up_the_others_for_long(void **state)
{
	struct deps_fixture f;
	deps_init_blue(&f, WITH_FAR);
	f.server.refuse = true;
	hold_routes(&f, "rc", "blue", FAR, NULL);
	say(&f, &res_type_route_config);
	deps_pass_time(&f, 100 * S);
	expect_updates(&f, 0, 0); // nothing came that it could hold up
	hold_endpoint(&f, "e-blue", 2);
	say(&f, &res_type_endpoints);
	deps_pass_time(&f, 14 * S);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: blue=e-blue/10.0.0.2"); // which needs no routes
	assert_string_equal(depmgr_waiting(f.dm), "cluster " FAR);
	deps_pass_time(&f, 2 * S);
	assert_string_equal(look(&f), "rc: blue=e-blue/10.0.0.2 " FAR "!");
	deps_fini(&f);
}

// DM-08: routes that nobody can be asked for take nothing away, however long and whatever comes.
static void a_server_that_is_back_for_one_update_takes_no_routes_away(void **state)
{
	struct deps_fixture f;
	deps_init_blue(&f, "");
	hold_listener(&f, "rc-2");
	say(&f, &res_type_listener);
	lose_server(&f, 2);
	deps_pass_time(&f, 3 * S);
	assert_non_null(f.server.stream);
	assert_string_equal(depmgr_waiting(f.dm), "route configuration rc-2");
	hold_endpoint(&f, "e-blue", 2);
	say(&f, &res_type_endpoints);
	lose_server(&f, 100);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: blue=e-blue/10.0.0.2");
	assert_string_equal(depmgr_waiting(f.dm), "route configuration rc-2");
	deps_fini(&f);
}

static void routes_of_a_lost_authority_take_nothing_away(void **state)
{
	struct deps_fixture f;
	deps_init_blue(&f, WITH_FAR);
	f.server.refuse = true;
	hold_listener(&f, FAR_ROUTES);
	say(&f, &res_type_listener);
	hold_endpoint(&f, "e-blue", 2);
	say(&f, &res_type_endpoints);
	deps_pass_time(&f, 100 * S);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: blue=e-blue/10.0.0.2");
	hold_listener(&f, "rc");
	say_all(&f);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: blue=e-blue/10.0.0.2");
	deps_fini(&f);
}

// The server stays lost until the name is asked for, which is known for a minute at most.
static void lose_server_until_asked(struct deps_fixture *f)
{
	lose_server(f, 2);
	for (unsigned i = 0; i < 100 && !fake_lookups_asks(&f->name_servers, "db.example"); i++)
		lose_server(f, 1);
}

// web → rc → blue and the name d, delivered.
static void with_name(struct deps_fixture *f)
{
	deps_init(f, "", NULL);
	hold_listener(f, "rc");
	hold_routes(f, "rc", "blue", "d", NULL);
	hold_leaf(f, "blue", 1);
	hold_name(f, "d", "db.example");
	say_all(f);
	fake_lookups_answer(&f->name_servers, "db.example", "10.0.0.8", 60);
	deps_pass_time(f, 0);
	expect_updates(f, 1, 0);
}

static void add_route_to_green(struct deps_fixture *f)
{
	hold_routes(f, "rc", "blue", "d", "green", NULL);
	say(f, &res_type_route_config);
}

// DM-23: a new address is worth more than routes that may take long.
static void a_name_that_moves_is_not_held_up_by_a_lost_server(void **state)
{
	struct deps_fixture f;
	with_name(&f);
	add_route_to_green(&f);
	lose_server_until_asked(&f);
	fake_lookups_answer(&f.name_servers, "db.example", "10.0.0.8", 60);
	lose_server_until_asked(&f); // the answer was the same
	expect_updates(&f, 0, 0);
	fake_lookups_answer(&f.name_servers, "db.example", "10.0.0.9", 60);
	lose_server(&f, 14);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.1 d=db.example/10.0.0.9");
	assert_string_equal(depmgr_waiting(f.dm), "cluster green");
	lose_server(&f, 2);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.1 d=db.example/10.0.0.9 green!");
	expect_updates(&f, 1, 0);
	deps_fini(&f);
}

static void a_name_that_moved_just_before_the_loss_is_not_forgotten(void **state)
{
	struct deps_fixture f;
	with_name(&f);
	for (unsigned i = 0; i < 100 && !fake_lookups_asks(&f.name_servers, "db.example"); i++)
		deps_pass_time(&f, S);
	add_route_to_green(&f);
	fake_lookups_answer(&f.name_servers, "db.example", "10.0.0.9", 3600);
	deps_pass_time(&f, 5 * S);
	expect_updates(&f, 1, 0);
	lose_server(&f, 12);
	expect_updates(&f, 0, 0);
	lose_server(&f, 6);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.1 d=db.example/10.0.0.9 green!");
	deps_fini(&f);
}

static void a_name_that_fails_moves_nothing(void **state)
{
	struct deps_fixture f;
	with_name(&f);
	add_route_to_green(&f);
	lose_server_until_asked(&f);
	fake_lookups_fail(&f.name_servers, "db.example", "SERVFAIL");
	lose_server(&f, 100);
	expect_updates(&f, 0, 0);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.1 d=db.example/10.0.0.8");
	deps_fini(&f);
}

// DE-04
static void a_deletion_is_held_up_by_a_lost_authority_for_a_while_only(void **state)
{
	struct deps_fixture f;
	deps_init_blue(&f, WITH_FAR_AND("\"fail_on_data_errors\""));
	hold_routes(&f, "rc", "blue", "two", NULL);
	hold_leaf(&f, "two", 2);
	say_all(&f);
	expect_updates(&f, 1, 0);
	f.server.refuse = true;
	hold_routes(&f, "rc", "blue", "two", FAR, NULL);
	say(&f, &res_type_route_config);
	deps_pass_time(&f, 100 * S);
	drop(&f, &res_type_cluster, "two");
	say(&f, &res_type_cluster);
	deps_pass_time(&f, 14 * S);
	expect_updates(&f, 0, 0);
	deps_pass_time(&f, 2 * S);
	assert_string_equal(look(&f), "rc: blue=e-blue/10.0.0.1 two! " FAR "!");
	deps_fini(&f);
}

// FM-01: the reason is told again, and what is in error already is held up by nothing.
static void another_reason_of_a_lost_server_holds_nothing_up(void **state)
{
	struct deps_fixture f;
	deps_init(&f, WITH_FAR, NULL);
	hold_listener(&f, "rc");
	hold_routes(&f, "rc", "blue", FAR, NULL);
	hold_leaf(&f, "blue", 1);
	say(&f, &res_type_listener);
	f.server.refuse = true;
	say(&f, &res_type_route_config);
	say(&f, &res_type_cluster);
	say(&f, &res_type_endpoints);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.1 " FAR "!");
	assert_non_null(strstr(error_of(&f, FAR), "no credentials"));
	f.server.refuse_why = "no route to host";
	deps_pass_time(&f, 300 * S);
	assert_non_null(strstr(error_of(&f, FAR), "no route to host"));
	hold_endpoint(&f, "blue", 2);
	say(&f, &res_type_endpoints);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.2 " FAR "!");
	deps_fini(&f);
}

// What was absent before is told to be so again, which is no sign that somebody can be asked.
static void old_errors_are_no_news_when_the_server_is_lost(void **state)
{
	struct deps_fixture f;
	deps_init_blue(&f, "");
	hold_routes(&f, "rc", "blue", "gone", "gone-too", NULL);
	say_all(&f);
	deps_pass_time(&f, 16 * S);
	assert_string_equal(look(&f), "rc: blue=e-blue/10.0.0.1 gone! gone-too!");
	hold_routes(&f, "rc", "gone", "green", "gone-too", NULL);
	say(&f, &res_type_route_config);
	f.n_updates = 0;
	lose_server(&f, 2);
	deps_pass_time(&f, 3 * S);
	assert_non_null(f.server.stream);
	fake_ads_close(&f.server, "timed out"); // another reason: all are told again
	lose_server(&f, 100);
	expect_updates(&f, 0, 0);
	assert_string_equal(look(&f), "rc: blue=e-blue/10.0.0.1 gone! gone-too!");
	deps_fini(&f);
}

// A server that says that the listener is gone can be reached, whatever there is no memory for.
static bool lose_listener_without_memory(size_t nth)
{
	struct deps_fixture f;
	deps_init_blue(&f, "\"fail_on_data_errors\"");
	size_t len;
	uint8_t *bytes = fake_ads_encode(res_type_listener.url, "none", "none", NULL, 0, &len);
	alloc_fail_arm(nth);
	fake_ads_say(&f.server, bytes, len);
	bool hit = alloc_fail_disarm();
	free(bytes);
	assert_string_equal(depmgr_waiting(f.dm), "");
	assert_string_equal(depmgr_refused(f.dm), "");
	deps_pass_time(&f, 2 * S);
	say_all(&f);
	assert_string_equal(look(&f), "rc: blue=e-blue/10.0.0.1");
	deps_fini(&f);
	return hit;
}

static void a_listener_that_goes_without_memory_is_not_taken_for_a_lost_server(void **state)
{
	size_t nth = 0;
	if (!alloc_fail_works())
		skip();
	while (lose_listener_without_memory(nth))
		nth++;
	assert_true(nth > 8);
}

RUN_SUITE("deps/deps_outage", cmocka_unit_test(routes_that_need_a_lost_server_wait_for_it),
	cmocka_unit_test(a_server_that_is_back_and_silent_has_failed_the_cluster),
	cmocka_unit_test(a_listener_whose_routes_a_lost_server_has_takes_nothing_away),
	cmocka_unit_test(a_lost_authority_does_not_hold_up_the_others_for_long),
	cmocka_unit_test(a_server_that_is_back_for_one_update_takes_no_routes_away),
	cmocka_unit_test(routes_of_a_lost_authority_take_nothing_away),
	cmocka_unit_test(a_name_that_moves_is_not_held_up_by_a_lost_server),
	cmocka_unit_test(a_name_that_moved_just_before_the_loss_is_not_forgotten),
	cmocka_unit_test(a_name_that_fails_moves_nothing),
	cmocka_unit_test(a_deletion_is_held_up_by_a_lost_authority_for_a_while_only),
	cmocka_unit_test(another_reason_of_a_lost_server_holds_nothing_up),
	cmocka_unit_test(old_errors_are_no_news_when_the_server_is_lost),
	cmocka_unit_test(a_listener_that_goes_without_memory_is_not_taken_for_a_lost_server))
