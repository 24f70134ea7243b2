// SPDX-License-Identifier: Apache-2.0
// The dependency manager (DM-*): what is watched, when a configuration is delivered,
// and what is in it.
#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "lb/base/twheel.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/deps/deps_fixture.h"
#include "tests/unit/ctrl/res/json.h"

#include <stdio.h>
#include <string.h>

static void a_refused_version_of_its_own_resources_is_told(void **state)
{
	struct deps_fixture f;
	deps_init(&f, "", NULL);
	hold_listener(&f, "rc");
	hold_routes(&f, "rc", "blue", NULL);
	hold_cluster(&f, "blue", "e");
	hold_endpoint(&f, "e", 7);
	say_all(&f);
	expect_updates(&f, 1, 0);
	assert_string_equal(depmgr_refused(f.dm), "");
	hold(&f, &res_type_route_config, "rc",
		"{'name':'rc','virtualHosts':[{'name':'v','domains':['*'],'routes':[{}]}]}");
	say(&f, &res_type_route_config);
	assert_non_null(strstr(depmgr_refused(f.dm), "no match"));
	assert_string_equal(look(&f), "rc: blue=e/10.0.0.7");
	hold_routes(&f, "rc", "blue", NULL);
	say(&f, &res_type_route_config);
	assert_string_equal(depmgr_refused(f.dm), "");
	hold(&f, &res_type_cluster, "blue", "{'name':'blue','type':'STATIC'}"); // not its own
	say(&f, &res_type_cluster);
	assert_string_equal(depmgr_refused(f.dm), "");
	deps_fini(&f);
}

// CL-01, DM-01, DM-02, DM-04, DM-05, DM-27
static void watches_go_from_listener_to_endpoints(void **state)
{
	struct deps_fixture f;
	deps_init(&f, "", NULL);
	assert_int_equal(f.server.n_sent, 1); // DM-01
	assert_true(asked_for(&f, &res_type_listener, "web"));
	assert_string_equal(depmgr_waiting(f.dm), "listener web");
	hold_listener(&f, "rc");
	say(&f, &res_type_listener);
	assert_true(asked_for(&f, &res_type_route_config, "rc")); // DM-02
	hold_routes(&f, "rc", "blue", "green", NULL);
	say(&f, &res_type_route_config);
	assert_true(asked_for(&f, &res_type_cluster, "blue"));
	assert_true(asked_for(&f, &res_type_cluster, "green"));
	hold_cluster(&f, "blue", "e");
	hold_cluster(&f, "green", "e");
	say(&f, &res_type_cluster);
	assert_string_equal(f.asked[1], " e "); // DM-04: one watch a name, even if shared
	assert_string_equal(depmgr_waiting(f.dm), "endpoints e");
	expect_updates(&f, 0, 0); // DM-05
	hold_endpoint(&f, "e", 7);
	say(&f, &res_type_endpoints);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: blue=e/10.0.0.7 green=e/10.0.0.7");
	assert_string_equal(depmgr_waiting(f.dm), "");
	const struct xds_config *c = f.config;
	assert_int_equal(c->vhost, -1);
	assert_non_null(strstr(c->clusters[0].resolution_note, "node id \"me\"")); // DM-27
	assert_false(c->clusters[0].has_trouble);
	assert_null(xds_config_find_cluster(c, "red"));
	deps_fini(&f);
}

static struct res_listener *chain_of(void)
{
	struct xds_res *r = xds_res_new(
		&res_type_listener, sizeof(struct res_listener), "web", (const uint8_t *)"c", 1);
	struct res_listener *l = res_listener_from(r);
	l->is_api = true;
	l->rds_name = "rc";
	return l;
}

// A36-30: what a filter chain is served with.
static void a_listener_that_is_given_is_not_watched(void **state)
{
	struct deps_fixture f, chain = {.config = NULL};
	struct res_listener *l = chain_of();
	deps_init_blue(&f, "");
	hold_listener(&f, "other"); // the name stands for something else
	chain.dm = deps_start_with(&f, &chain, l);
	xds_res_put(&l->base);
	deps_pass_time(&f, 1);
	assert_string_equal(look(&chain), "rc: blue=e-blue/10.0.0.1");
	assert_ptr_equal(chain.config->listener, l);
	hold_endpoint(&f, "e-blue", 2);
	say(&f, &res_type_endpoints);
	assert_string_equal(look(&chain), "rc: blue=e-blue/10.0.0.2");
	depmgr_free(chain.dm);
	deps_fini(&f);
}

static void a_pass_that_adds_clusters_costs_one_request(void **state)
{
	struct deps_fixture f;
	deps_init(&f, "", NULL);
	hold_listener(&f, "rc");
	say(&f, &res_type_listener);
	hold_routes(&f, "rc", "a", "b", "c", "d", NULL);
	unsigned n = f.server.n_sent;
	say(&f, &res_type_route_config);
	assert_int_equal(f.server.n_sent, n + 2); // the ACK, and the clusters
	deps_fini(&f);
}

// DM-02
static void inline_routes_need_no_route_watch(void **state)
{
	struct deps_fixture f;
	deps_init(&f, "", NULL);
	static const char WEB[] =
		"{'name':'web','apiListener':{'apiListener':{'@type':'type.googleapis.com/"
		"envoy.extensions.filters.network.http_connection_manager.v3."
		"HttpConnectionManager',%s'routeConfig':{'name':'in','virtualHosts':["
		"{'name':'v','domains':['*'],'routes':[{'match':{'prefix':''},'route':"
		"{'cluster':'blue'}}]}]},'httpFilters':[{'name':'router','typedConfig':{'@type':"
		"'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router'}}]}}}";
	char json[1024];
	snprintf(json, sizeof(json), WEB, "");
	hold(&f, &res_type_listener, "web", json);
	hold_cluster(&f, "blue", "e");
	hold_endpoint(&f, "e", 1);
	say(&f, &res_type_listener);
	say(&f, &res_type_cluster);
	say(&f, &res_type_endpoints);
	assert_string_equal(look(&f), "in: blue=e/10.0.0.1"); // DM-02
	assert_string_equal(f.asked[3], "");
	const struct res_route_config *routes = f.config->routes;
	const struct res_listener *listener = f.config->listener;
	snprintf(json, sizeof(json), WEB, "'statPrefix':'x',"); // another listener, the same routes
	hold(&f, &res_type_listener, "web", json);
	say(&f, &res_type_listener);
	assert_ptr_not_equal(f.config->listener, listener);
	assert_ptr_equal(f.config->routes, routes); // equal routes are shared
	expect_updates(&f, 2, 0);
	hold_listener(&f, "rc"); // and over to RDS
	hold_routes(&f, "rc", "blue", NULL);
	say(&f, &res_type_listener);
	expect_updates(&f, 0, 0);
	say(&f, &res_type_route_config);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: blue=e/10.0.0.1");
	deps_fini(&f);
}

// DM-03, DM-24
static void pinned_authority_watches_one_virtual_host(void **state)
{
	struct deps_fixture f;
	deps_init(&f, "", "b.example");
	hold_listener(&f, "rc");
	hold(&f, &res_type_route_config, "rc",
		"{'name':'rc','virtualHosts':["
		"{'name':'v','domains':['a.example'],'routes':[{'match':{'prefix':''},"
		"'route':{'cluster':'red'}}]},"
		"{'name':'w','domains':['*.example'],'routes':[{'match':{'prefix':''},"
		"'route':{'cluster':'blue'}}]}]}");
	hold_cluster(&f, "blue", "e");
	hold_endpoint(&f, "e", 1);
	say_all(&f);
	assert_string_equal(look(&f), "rc: blue=e/10.0.0.1"); // DM-03
	assert_int_equal(f.config->vhost, 1);
	assert_false(asked_for(&f, &res_type_cluster, "red"));

	hold(&f, &res_type_route_config, "rc",
		"{'name':'rc','virtualHosts':[{'name':'v','domains':['a.example']}]}");
	say(&f, &res_type_route_config);
	expect_updates(&f, 1, 1); // DM-08
	assert_non_null(strstr(f.error, "no virtual host for \"b.example\""));
	assert_string_equal(look(&f), "!");
	assert_string_equal(f.asked[0], " "); // DM-24
	deps_fini(&f);
}

static void without_pinned_authority_all_virtual_hosts_are_watched(void **state)
{
	struct deps_fixture f;
	deps_init(&f, "", NULL);
	hold_listener(&f, "rc");
	hold(&f, &res_type_route_config, "rc",
		"{'name':'rc','virtualHosts':["
		"{'name':'v','domains':['a'],'routes':[{'match':{'prefix':''},"
		"'route':{'weightedClusters':{'clusters':[{'name':'red','weight':1},"
		"{'name':'blue','weight':0}]}}}]},"
		"{'name':'w','domains':['b'],'routes':[{'match':{'prefix':''},"
		"'route':{'cluster':'blue'}}]}]}");
	hold_cluster(&f, "blue", "e");
	hold_cluster(&f, "red", "e");
	hold_endpoint(&f, "e", 1);
	say_all(&f);
	assert_string_equal(look(&f), "rc: blue=e/10.0.0.1 red=e/10.0.0.1"); // DM-14
	expect_updates(&f, 1, 0);
	deps_fini(&f);
}

// A28-R09: until then the old routes serve.
static void new_cluster_waits_for_all_of_it_and_then_swaps_at_once(void **state)
{
	struct deps_fixture f;
	deps_init_blue(&f, "");
	hold_routes(&f, "rc", "blue", "green", NULL);
	say(&f, &res_type_route_config);
	expect_updates(&f, 0, 0); // DM-06
	assert_string_equal(look(&f), "rc: blue=e-blue/10.0.0.1");
	hold_endpoint(&f, "e-blue", 2); // something else changes meanwhile
	say(&f, &res_type_endpoints);
	hold_cluster(&f, "green", "e-green");
	say(&f, &res_type_cluster);
	expect_updates(&f, 0, 0);
	hold_endpoint(&f, "e-green", 3);
	const struct res_cluster *blue = f.config->clusters[0].cluster;
	say(&f, &res_type_endpoints);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: blue=e-blue/10.0.0.2 green=e-green/10.0.0.3");
	assert_ptr_equal(f.config->clusters[0].cluster, blue); // unchanged = same object
	deps_fini(&f);
}

// A28-R06, A28-R09: found faulty is as good as obtained.
static void failing_new_cluster_is_one_entry_in_error(void **state)
{
	struct deps_fixture f;
	deps_init_blue(&f, "");
	hold_routes(&f, "rc", "blue", "green", "red", NULL);
	say(&f, &res_type_route_config);
	hold(&f, &res_type_cluster, "red", "{'name':'red','type':'STATIC'}"); // NACKed
	say(&f, &res_type_cluster);
	expect_updates(&f, 0, 0); // green may still come
	deps_pass_time(&f, 16 * S);
	expect_updates(&f, 1, 0); // DM-07
	assert_string_equal(look(&f), "rc: blue=e-blue/10.0.0.1 green! red!");
	const struct xds_config *c = f.config;
	assert_non_null(strstr(xds_config_find_cluster(c, "green")->error, "no answer"));
	assert_non_null(strstr(xds_config_find_cluster(c, "red")->error, "STATIC"));
	hold_cluster(&f, "green", "e-blue"); // and heals
	say(&f, &res_type_cluster);
	assert_string_equal(look(&f), "rc: blue=e-blue/10.0.0.1 green=e-blue/10.0.0.1 red!");
	deps_fini(&f);
}

// SW-09: not all that the server has.
static void a_star_instead_of_a_name_is_an_entry_in_error(void **state)
{
	struct deps_fixture f;
	deps_init(&f, "", NULL);
	hold_listener(&f, "rc");
	hold_routes(&f, "rc", "blue", "*", "odd", NULL);
	hold_cluster(&f, "blue", "e-blue");
	hold_cluster(&f, "odd", "*");
	hold_endpoint(&f, "e-blue", 1);
	say_all(&f);
	assert_false(asked_for(&f, &res_type_cluster, "*"));
	assert_false(asked_for(&f, &res_type_endpoints, "*"));
	assert_string_equal(look(&f), "rc: *! blue=e-blue/10.0.0.1 odd=*?");
	assert_non_null(strstr(error_of(&f, "*"), "stands for all resources"));
	assert_non_null(strstr(note_of(&f, "odd"), "stands for all resources"));
	deps_fini(&f);
}

static void endpoint_trouble_leaves_the_cluster_in_order(void **state)
{
	struct deps_fixture f;
	deps_init(&f, "", NULL);
	hold_listener(&f, "rc");
	hold_routes(&f, "rc", "blue", "green", NULL);
	hold_cluster(&f, "blue", "e-blue");
	hold_cluster(&f, "green", "e-green");
	hold(&f, &res_type_endpoints, "e-green", "{'clusterName':'e-green'}");
	say_all(&f);
	expect_updates(&f, 0, 0);
	deps_pass_time(&f, 16 * S);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: blue=e-blue? green=e-green/none"); // DM-11
	const struct xds_config *c = f.config;
	assert_non_null(strstr(c->clusters[0].resolution_note, "no answer"));
	assert_non_null(strstr(c->clusters[1].resolution_note,
		"no locality; xDS node id \"me\"")); // A27-V09, ERR-01
	hold_endpoint(&f, "e-blue", 4);
	say(&f, &res_type_endpoints);
	assert_string_equal(look(&f), "rc: blue=e-blue/10.0.0.4 green=e-green/none");
	// DM-12: an error after data keeps it, and is noted
	hold(&f, &res_type_endpoints, "e-blue",
		"{'clusterName':'e-blue','endpoints':[{'loadBalancingWeight':1}]}");
	say(&f, &res_type_endpoints);
	assert_string_equal(look(&f), "rc: blue=e-blue/10.0.0.4 green=e-green/none");
	assert_non_null(strstr(f.config->clusters[0].resolution_note, "no locality"));
	deps_fini(&f);
}

// DE-05
static void deleted_or_refused_cluster_keeps_its_value(void **state)
{
	struct deps_fixture f;
	deps_init_blue(&f, "");
	hold(&f, &res_type_cluster, "blue", "{'name':'blue','type':'STATIC'}");
	say(&f, &res_type_cluster); // DM-10: error with a value
	assert_string_equal(look(&f), "rc: blue=e-blue/10.0.0.1");
	assert_non_null(strstr(f.config->clusters[0].resolution_note, "STATIC"));
	assert_true(f.config->clusters[0].has_trouble);
	drop(&f, &res_type_cluster, "blue");
	say(&f, &res_type_cluster); // DE-05
	assert_string_equal(look(&f), "rc: blue=e-blue/10.0.0.1");
	assert_non_null(strstr(f.config->clusters[0].resolution_note, "deleted"));
	hold_cluster(&f, "blue", "e-blue");
	say(&f, &res_type_cluster);
	assert_null(strstr(f.config->clusters[0].resolution_note, "deleted"));
	deps_fini(&f);
}

static void data_errors_reach_the_config_where_the_server_wants_them(void **state)
{
	struct deps_fixture f;
	deps_init_blue(&f, "\"fail_on_data_errors\"");
	drop(&f, &res_type_cluster, "blue");
	say(&f, &res_type_cluster); // DM-10: absent, even with a value
	assert_string_equal(look(&f), "rc: blue!");
	assert_string_equal(f.asked[1], " "); // its endpoints are not needed now
	hold_cluster(&f, "blue", "e-blue");
	say(&f, &res_type_cluster);
	say(&f, &res_type_endpoints);
	assert_string_equal(look(&f), "rc: blue=e-blue/10.0.0.1");
	expect_updates(&f, 2, 0);
	drop(&f, &res_type_listener, "web");
	say(&f, &res_type_listener); // DM-08
	expect_updates(&f, 0, 1);
	assert_string_equal(look(&f), "!");
	hold_listener(&f, "rc"); // DM-29: the same content comes back whole
	say_all(&f);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: blue=e-blue/10.0.0.1");
	deps_fini(&f);
}

// A28-R08, DM-09, DM-27
static void listener_and_route_errors_count_only_before_a_value(void **state)
{
	struct deps_fixture f;
	deps_init(&f, "", NULL);
	hold(&f, &res_type_listener, "web", "{'name':'web'}");
	say(&f, &res_type_listener);
	expect_updates(&f, 0, 1); // DM-08
	say(&f, &res_type_listener);
	expect_updates(&f, 0, 0); // the same words are not said again
	hold_listener(&f, "rc");
	say(&f, &res_type_listener);
	deps_pass_time(&f, 16 * S);
	expect_updates(&f, 0, 1); // DM-08: routes absent
	assert_non_null(strstr(f.error, "route configuration \"rc\""));
	hold_routes(&f, "rc", "blue", NULL);
	hold_cluster(&f, "blue", "e");
	hold_endpoint(&f, "e", 1);
	say(&f, &res_type_route_config);
	say(&f, &res_type_cluster);
	say(&f, &res_type_endpoints);
	expect_updates(&f, 1, 0);
	hold(&f, &res_type_route_config, "rc", "{'name':'rc','virtualHosts':[{}]}");
	say(&f, &res_type_route_config);
	assert_int_equal(f.n_errors, 0); // DM-09
	assert_string_equal(look(&f), "rc: blue=e/10.0.0.1");
	assert_non_null(strstr(f.config->clusters[0].resolution_note, "no domains")); // DM-27
	deps_fini(&f);
}

// A28-R08
static void socket_listener_serves_nothing(void **state)
{
	struct deps_fixture f;
	deps_init(&f, "", NULL);
	hold(&f, &res_type_listener, "web",
		"{'name':'web','address':{'socketAddress':{'address':'::','portValue':1}},"
		"'filterChains':[{" CHAIN_FILTERS "}]}");
	say(&f, &res_type_listener);
	expect_updates(&f, 0, 1); // DM-08
	assert_non_null(strstr(f.error, "socket listener"));
	deps_fini(&f);
}

// DM-24
static void new_listener_never_serves_old_routes(void **state)
{
	struct deps_fixture f;
	deps_init_blue(&f, "");
	const struct res_listener *old = f.config->listener;
	hold_listener(&f, "rc2");
	say(&f, &res_type_listener);
	assert_true(asked_for(&f, &res_type_route_config, "rc2"));
	assert_false(asked_for(&f, &res_type_route_config, "rc")); // DM-25, DM-24
	hold_endpoint(&f, "e-blue", 9); // another resource changes meanwhile
	say(&f, &res_type_endpoints);
	expect_updates(&f, 0, 0);
	assert_ptr_equal(f.config->listener, old);
	hold_routes(&f, "rc2", "blue", NULL);
	say(&f, &res_type_route_config);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc2: blue=e-blue/10.0.0.9");
	deps_fini(&f);
}

// DM-24
static void what_is_not_reachable_any_more_is_not_watched(void **state)
{
	struct deps_fixture f;
	deps_init_blue(&f, "");
	hold_routes(&f, "rc", "green", NULL);
	say(&f, &res_type_route_config);
	assert_string_equal(f.asked[0], " blue green "); // the old one serves
	assert_string_equal(f.asked[1], " e-blue ");
	assert_string_equal(look(&f), "rc: blue=e-blue/10.0.0.1");
	hold_cluster(&f, "green", "e-green");
	hold_endpoint(&f, "e-green", 5);
	say(&f, &res_type_cluster);
	say(&f, &res_type_endpoints);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: green=e-green/10.0.0.5");
	deps_pass_time(&f, 0);
	assert_string_equal(f.asked[0], " green "); // DM-24
	assert_string_equal(f.asked[1], " e-green ");
	expect_updates(&f, 0, 0);
	deps_fini(&f);
}

// A31-R11, DM-22, DM-24
static void a_cluster_in_use_stays_although_no_route_names_it(void **state)
{
	struct deps_fixture f;
	deps_init(&f, "", NULL);
	hold_listener(&f, "rc");
	hold_routes(&f, "rc", "blue", "green", NULL);
	hold_leaf(&f, "blue", 1);
	hold_aggregate(&f, "green", "red");
	hold_leaf(&f, "red", 2);
	say_all(&f);
	f.in_use = " green ";
	hold_routes(&f, "rc", "blue", NULL);
	say(&f, &res_type_route_config);
	expect_updates(&f, 2, 0);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.1 ~green[red] ~red=red/10.0.0.2");
	deps_pass_time(&f, 5 * S);
	hold_endpoint(&f, "red", 3);
	say(&f, &res_type_endpoints);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.1 ~green[red] ~red=red/10.0.0.3");
	hold_routes(&f, "rc", "blue", "green", NULL); // named again: the same objects
	const struct res_cluster *green = f.config->clusters[1].cluster;
	say(&f, &res_type_route_config);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.1 green[red] ~red=red/10.0.0.3");
	assert_ptr_equal(f.config->clusters[1].cluster, green);
	hold_routes(&f, "rc", "blue", NULL);
	say(&f, &res_type_route_config);
	expect_updates(&f, 2, 0);
	f.in_use = NULL; // the last request is gone
	deps_pass_time(&f, S + S / 2);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.1");
	assert_string_equal(f.asked[0], " blue "); // DM-24
	assert_string_equal(f.asked[1], " blue ");
	f.in_use = " green "; // too late
	hold_endpoint(&f, "blue", 4);
	say(&f, &res_type_endpoints);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.4");
	deps_fini(&f);
}

// DM-21
static void what_a_cluster_in_use_waits_for_holds_nothing_back(void **state)
{
	struct deps_fixture f;
	deps_init(&f, "", NULL);
	hold_listener(&f, "rc");
	hold_routes(&f, "rc", "blue", "green", NULL);
	hold_leaf(&f, "blue", 1);
	hold_leaf(&f, "green", 2);
	say_all(&f);
	f.in_use = " green ";
	hold_routes(&f, "rc", "blue", NULL);
	say(&f, &res_type_route_config);
	hold_aggregate(&f, "green", "red db");
	hold_name(&f, "db", "db.example");
	say(&f, &res_type_cluster);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.1");
	assert_string_equal(depmgr_waiting(f.dm), "");
	assert_true(asked_for(&f, &res_type_cluster, "red"));
	hold_endpoint(&f, "blue", 3);
	say(&f, &res_type_endpoints);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.3");
	hold_leaf(&f, "red", 4);
	say(&f, &res_type_cluster);
	say(&f, &res_type_endpoints);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.3");
	fake_lookups_answer(&f.name_servers, "db.example", "10.0.0.9", 60);
	deps_pass_time(&f, 0);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.3 ~db=db.example/10.0.0.9 "
				      "~green[red db] ~red=red/10.0.0.4");
	hold_aggregate(&f, "green", "red x"); // a route now needs what was only waited for idly
	say(&f, &res_type_cluster);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.3");
	hold_routes(&f, "rc", "green", NULL);
	f.in_use = NULL;
	say(&f, &res_type_route_config);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.3");
	assert_string_equal(depmgr_waiting(f.dm), "cluster x");
	hold_leaf(&f, "x", 5);
	say(&f, &res_type_cluster);
	say(&f, &res_type_endpoints);
	assert_string_equal(look(&f), "rc: green[red x] ~red=red/10.0.0.4 ~x=x/10.0.0.5");
	deps_fini(&f);
}

static void dm_20_a_subscription_watches_its_cluster_from_first_to_last(void **state)
{
	struct deps_fixture f;
	deps_init_blue(&f, "");
	struct depmgr_sub *a = depmgr_subscribe(f.dm, "green"), *b = NULL;
	assert_false(asked_for(&f, &res_type_cluster, "green"));
	deps_pass_time(&f, 0);
	assert_true(asked_for(&f, &res_type_cluster, "green"));
	unsigned n_sent = f.server.n_sent;
	b = depmgr_subscribe(f.dm, "green");
	deps_pass_time(&f, S);
	assert_int_equal(f.server.n_sent, n_sent);
	hold_leaf(&f, "green", 2);
	say(&f, &res_type_cluster);
	assert_string_equal(depmgr_waiting(f.dm), "");
	expect_updates(&f, 0, 0);
	say(&f, &res_type_endpoints);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: blue=e-blue/10.0.0.1 ~green=green/10.0.0.2"); // DM-14
	depmgr_unsubscribe(&a);
	depmgr_unsubscribe(&a); // nothing is left to end
	deps_pass_time(&f, S);
	expect_updates(&f, 0, 0);
	assert_true(asked_for(&f, &res_type_cluster, "green"));
	depmgr_unsubscribe(&b);
	deps_pass_time(&f, 0);
	expect_updates(&f, 1, 0);
	assert_string_equal(look(&f), "rc: blue=e-blue/10.0.0.1");
	assert_string_equal(f.asked[0], " blue ");
	assert_string_equal(f.asked[1], " e-blue ");
	deps_fini(&f);
}

// Neither what routes need nor what requests and other subscribers have waits for it.
static void dm_21_a_pending_subscription_holds_nothing_back(void **state)
{
	struct deps_fixture f;
	deps_init(&f, "", NULL);
	hold_listener(&f, "rc");
	hold_routes(&f, "rc", "blue", "used", NULL);
	hold_leaf(&f, "blue", 1);
	hold_leaf(&f, "used", 2);
	hold_leaf(&f, "there", 3);
	say_all(&f);
	struct depmgr_sub *there = depmgr_subscribe(f.dm, "there");
	deps_pass_time(&f, 0);
	say_all(&f);
	f.in_use = " used ";
	hold_routes(&f, "rc", "blue", NULL);
	say(&f, &res_type_route_config);
	struct depmgr_sub *pending = depmgr_subscribe(f.dm, "pending");
	deps_pass_time(&f, 0);
	hold_endpoint(&f, "blue", 4);
	say(&f, &res_type_endpoints);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.4 ~there=there/10.0.0.3 "
				      "~used=used/10.0.0.2");
	hold_aggregate(&f, "pending", "there x"); // x is missing
	say(&f, &res_type_cluster);
	hold_endpoint(&f, "blue", 5);
	say(&f, &res_type_endpoints);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.5 ~there=there/10.0.0.3 "
				      "~used=used/10.0.0.2");
	deps_pass_time(&f, 16 * S); // there is none
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.5 ~pending[there] "
				      "~there=there/10.0.0.3 ~used=used/10.0.0.2 ~x!");
	depmgr_unsubscribe(&there); // a member of the other
	deps_pass_time(&f, 0);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.5 ~pending[there] "
				      "~there=there/10.0.0.3 ~used=used/10.0.0.2 ~x!");
	depmgr_unsubscribe(&pending);
	deps_pass_time(&f, 0);
	assert_string_equal(look(&f), "rc: blue=blue/10.0.0.5 ~used=used/10.0.0.2");
	deps_fini(&f);
}

static void dm_26_another_listener_with_the_same_routes_is_delivered_at_once(void **state)
{
	struct deps_fixture f;
	char json[1024];
	deps_init_blue(&f, "");
	const struct res_listener *old = f.config->listener;
	snprintf(json, sizeof(json), "%s",
		"{'name':'web','apiListener':{'apiListener':{'@type':'type.googleapis.com/"
		"envoy.extensions.filters.network.http_connection_manager.v3."
		"HttpConnectionManager','statPrefix':'x','rds':{'configSource':{'ads':{}},"
		"'routeConfigName':'rc'},'httpFilters':[{'name':'router','typedConfig':{'@type':"
		"'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router'}}]}}}");
	hold(&f, &res_type_listener, "web", json);
	say(&f, &res_type_listener); // and nothing else
	expect_updates(&f, 1, 0);
	assert_ptr_not_equal(f.config->listener, old);
	assert_string_equal(look(&f), "rc: blue=e-blue/10.0.0.1");
	deps_fini(&f);
}

static void equal_content_is_not_delivered_again(void **state)
{
	struct deps_fixture f;
	deps_init_blue(&f, "");
	say_all(&f);
	say_all(&f);
	expect_updates(&f, 0, 0); // DM-29
	deps_fini(&f);
}

// DM-28
static void delivered_config_outlives_the_manager(void **state)
{
	struct deps_fixture f;
	deps_init_blue(&f, "");
	struct xds_config *kept = xds_config_get(f.config);
	hold_endpoint(&f, "e-blue", 2);
	say(&f, &res_type_endpoints);
	assert_ptr_not_equal(f.config, kept); // DM-28
	depmgr_free(f.dm);
	f.dm = NULL;
	assert_string_equal(kept->clusters[0].name, "blue");
	assert_int_equal(kept->clusters[0].endpoints->list->n_spans, 1);
	xds_config_put(kept);
	deps_fini(&f);
}

static void second_manager_starts_from_the_cache_but_not_inside_new(void **state)
{
	struct deps_fixture f;
	deps_init_blue(&f, "");
	struct depmgr_conf conf = {
		.client = f.client,
		.wheel = f.wheel,
		.listener_name = "web",
		.node_id = "me",
	};
	// A callback inside depmgr_new() would jump through NULL.
	struct depmgr *dm = depmgr_new(&conf);
	assert_non_null(dm);
	depmgr_free(dm);
	expect_updates(&f, 0, 0);
	deps_fini(&f);
}

static void server_outage_changes_notes_only(void **state)
{
	struct deps_fixture f;
	deps_init_blue(&f, "");
	const struct res_cluster *blue = f.config->clusters[0].cluster;
	fake_ads_close(&f.server, "bye");
	deps_pass_time(&f, 2 * S);
	expect_updates(&f, 0, 0);
	fake_ads_close(&f.server, "refused");
	expect_updates(&f, 1, 0);
	assert_ptr_equal(f.config->clusters[0].cluster, blue);
	assert_non_null(strstr(f.config->clusters[0].resolution_note, "refused"));
	deps_pass_time(&f, 3 * S);
	say_all(&f);
	assert_null(strstr(f.config->clusters[0].resolution_note, "refused"));
	deps_fini(&f);
}

// Everything is cached: the config must come all the same, whichever allocation of the pass fails.
static void pass_without_memory_is_made_again(void **state)
{
	struct deps_fixture f;
	if (!alloc_fail_works())
		skip();
	deps_init_blue(&f, "");
	assert_true(deps_starve_each(&f, "a.example") > 8);
	deps_fini(&f);
}

RUN_SUITE("deps/depmgr", cmocka_unit_test(watches_go_from_listener_to_endpoints),
	cmocka_unit_test(a_refused_version_of_its_own_resources_is_told),
	cmocka_unit_test(a_listener_that_is_given_is_not_watched),
	cmocka_unit_test(a_pass_that_adds_clusters_costs_one_request),
	cmocka_unit_test(inline_routes_need_no_route_watch),
	cmocka_unit_test(pinned_authority_watches_one_virtual_host),
	cmocka_unit_test(without_pinned_authority_all_virtual_hosts_are_watched),
	cmocka_unit_test(new_cluster_waits_for_all_of_it_and_then_swaps_at_once),
	cmocka_unit_test(failing_new_cluster_is_one_entry_in_error),
	cmocka_unit_test(a_star_instead_of_a_name_is_an_entry_in_error),
	cmocka_unit_test(endpoint_trouble_leaves_the_cluster_in_order),
	cmocka_unit_test(deleted_or_refused_cluster_keeps_its_value),
	cmocka_unit_test(data_errors_reach_the_config_where_the_server_wants_them),
	cmocka_unit_test(listener_and_route_errors_count_only_before_a_value),
	cmocka_unit_test(socket_listener_serves_nothing),
	cmocka_unit_test(new_listener_never_serves_old_routes),
	cmocka_unit_test(what_is_not_reachable_any_more_is_not_watched),
	cmocka_unit_test(a_cluster_in_use_stays_although_no_route_names_it),
	cmocka_unit_test(what_a_cluster_in_use_waits_for_holds_nothing_back),
	cmocka_unit_test(dm_20_a_subscription_watches_its_cluster_from_first_to_last),
	cmocka_unit_test(dm_21_a_pending_subscription_holds_nothing_back),
	cmocka_unit_test(dm_26_another_listener_with_the_same_routes_is_delivered_at_once),
	cmocka_unit_test(equal_content_is_not_delivered_again),
	cmocka_unit_test(delivered_config_outlives_the_manager),
	cmocka_unit_test(second_manager_starts_from_the_cache_but_not_inside_new),
	cmocka_unit_test(server_outage_changes_notes_only),
	cmocka_unit_test(pass_without_memory_is_made_again))
