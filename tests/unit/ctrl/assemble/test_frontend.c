// SPDX-License-Identifier: Apache-2.0
// What one configuration becomes and what the next one keeps of it: virtual hosts, filters, hosts
// of clusters; and that nothing waits for patterns but the configuration that needs them.
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "lb/base/twheel.h"
#include "lb/cluster.h"
#include "lb/pick/affinity_map.h"
#include "lb/pick/leaf_picker.h"
#include "lb/pick/link.h"
#include "lb/route/filter.h"
#include "lb/route/req.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/assembler_world.h"
#include "tests/unit/ctrl/routes_by_hand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define IP(last)                                                                                   \
	{                                                                                          \
		.b = { [10] = 255, [11] = 255, [12] = 10, [15] = (last) }                          \
	}
static const struct told_endpoint one_backend[] = {{{IP(1), 80}, LB_LEAF_HEALTHY, 1}};
static const struct told_locality one_locality = {"", "", "", 1, one_backend, 1};
static const struct told_priority one_priority = {&one_locality, 1};

// Gives a frontend these virtual hosts and every cluster that the tests name.
static void give(struct world *w, uint32_t frontend, const char *listener_version,
	const struct res_vhost *vhosts, uint32_t n)
{
	static const char *const names[] = {"blue", "green"};
	struct res_endpoints *e = endpoints_of(&one_priority, 1);
	struct res_listener *l = listener_of(listener_version, NULL, 0);
	struct res_route_config *r = routes_of(vhosts, n);
	update(w, frontend, config_of(l, r, names, (struct res_endpoints *[]){e, e}, 2));
	xds_res_put(&e->base);
	xds_res_put(&l->base);
	xds_res_put(&r->base);
}

static const struct lb_frontend *published(const struct world *w, uint32_t frontend)
{
	return lb_snapshot_frontend(lb_slot_current(w->slot), frontend);
}

static const struct lb_vhost *vhost_at(const struct world *w, uint32_t frontend, uint32_t index)
{
	assert_non_null(published(w, frontend)->routes);
	return lb_route_table_vhost(published(w, frontend)->routes, index);
}

#define TO_BLUE ROUTES({PREFIX("/"), CLUSTERS({"blue", 1})})
#define TO_GREEN ROUTES({PREFIX("/"), CLUSTERS({"green", 1})})

static void a_virtual_host_that_did_not_change_is_the_same_object(void **state)
{
	struct world *w = *state;
	const struct res_vhost first[] = {
		{"a", DOMAINS("a"), TO_BLUE, .hash = {1, 1}},
		{"b", DOMAINS("b"), TO_GREEN, .hash = {2, 2}},
	};
	const struct res_vhost second[] = {
		{"new", DOMAINS("n"), TO_BLUE, .hash = {3, 3}},
		{"b", DOMAINS("b"), TO_GREEN, .hash = {2, 2}},
		{"a", DOMAINS("a"), TO_GREEN, .hash = {1, 9}},
	};
	give(w, 0, "1", first, 2);
	turns(w, 1);
	const struct lb_vhost *a = vhost_at(w, 0, 0), *b = vhost_at(w, 0, 1);
	give(w, 0, "1", second, 3);
	settle(w);
	assert_ptr_equal(vhost_at(w, 0, 1), b);
	assert_ptr_not_equal(vhost_at(w, 0, 2), a);
	// Another frontend's is none other.
	give(w, 1, "1", first, 2);
	settle(w);
	assert_ptr_equal(vhost_at(w, 1, 1), b);
	assert_ptr_not_equal(published(w, 0)->routes, published(w, 1)->routes);
}

static void twins_in_one_configuration_are_one_object(void **state)
{
	struct world *w = *state;
	const struct res_vhost twins[] = {
		{"a", DOMAINS("a"), TO_BLUE, .hash = {1, 1}},
		{"a", DOMAINS("a"), TO_BLUE, .hash = {1, 1}},
	};
	give(w, 0, "1", twins, 2);
	turns(w, 1);
	assert_ptr_equal(vhost_at(w, 0, 0), vhost_at(w, 0, 1));
}

// The bytes are the same, but the names stand for other clusters meanwhile.
static void a_virtual_host_whose_clusters_got_other_ids_is_another_one(void **state)
{
	struct world *w = *state;
	const struct res_vhost blue = {"a", DOMAINS("*"), TO_BLUE, .hash = {1, 1}};
	struct res_endpoints *e = endpoints_of(&one_priority, 1);
	apply(w, &blue, (const char *[]){"blue"}, &e, 1);
	settle(w);
	uint32_t id = route(w, "/");
	apply(w, &(struct res_vhost){"b", DOMAINS("*"), TO_GREEN, .hash = {2, 2}},
		(const char *[]){"green"}, &e, 1);
	settle(w);
	turns(w, 2);
	settle(w);
	assert_null(lb_snapshot_cluster(lb_slot_current(w->slot), id)); // blue is gone
	apply(w, &blue, (const char *[]){"blue"}, &e, 1);
	settle(w);
	const struct lb_cluster *now = lb_snapshot_cluster(lb_slot_current(w->slot), route(w, "/"));
	assert_string_equal(now->name, "blue");
	xds_res_put(&e->base);
}

// RX: compiling takes its time, on a thread of its own; `show info` says so.
static void patterns_hold_up_nothing_but_the_configuration_that_needs_them(void **state)
{
	struct world *w = *state;
	const struct res_vhost plain = {"a", DOMAINS("*"), TO_BLUE, .hash = {1, 1}};
	const struct res_vhost with_regex = {"a", DOMAINS("*"),
		ROUTES({REGEX("/(foo|ba[rz])+/[0-9]{1,40}"), CLUSTERS({"green", 1})},
			{PREFIX("/"), CLUSTERS({"blue", 1})}),
		.hash = {2, 2}};
	give(w, 0, "1", &with_regex, 1);
	assert_string_equal(
		assembler_frontend_waiting(w->assembler, 0), "compiling regular expressions");
	assert_null(published(w, 0)->routes);
	assert_false(assembler_ready(w->assembler));
	await_patterns(w, 0);
	settle(w);
	assert_string_equal(assembler_frontend_error(w->assembler, 0), "");
	uint32_t green = route(w, "/foobaz/7");
	assert_int_not_equal(route(w, "/foobaz/x"), green);
	// The known pattern costs no wait; new ones leave the old routes serving.
	give(w, 0, "1", &plain, 1);
	settle(w);
	give(w, 0, "1", &with_regex, 1);
	assert_string_equal(assembler_frontend_waiting(w->assembler, 0), "");
	const struct res_vhost other = {"a", DOMAINS("*"),
		ROUTES({REGEX("/other/.*x{1,50}"), CLUSTERS({"blue", 1})}), .hash = {3, 3}};
	settle(w);
	const struct lb_route_table *serves = published(w, 0)->routes;
	give(w, 0, "1", &other, 1);
	assert_string_equal(assembler_frontend_error(w->assembler, 0), "");
	assert_string_equal(
		assembler_frontend_waiting(w->assembler, 0), "compiling regular expressions");
	assert_ptr_equal(published(w, 0)->routes, serves);
	// The next one needs no pattern: it does not wait for those of the one before.
	give(w, 0, "1", &plain, 1);
	assert_string_equal(assembler_frontend_waiting(w->assembler, 0), "");
	settle(w);
	assert_int_not_equal(route(w, "/foobaz/7"), green);
}

#define N_STORM 60

// Patterns that change faster than they compile: each configuration that was begun is finished, of
// those that came meanwhile the last one follows.
static void a_storm_of_new_patterns_is_heard(void **state)
{
	struct world *w = *state;
	static char texts[N_STORM][32];
	static struct res_route routes[N_STORM][2];
	static struct res_vhost vhosts[N_STORM];
	static const char *const all = "*";
	static const struct res_weighted_cluster green = {"green", 1, {0}}, blue = {"blue", 1, {0}};
	for (uint32_t i = 0; i < N_STORM; i++) {
		int len = snprintf(texts[i], sizeof(texts[i]), "/(a|bc){1,20}%u/(x|yz)*", i);
		routes[i][0] = (struct res_route){.policy = &no_policy,
			.name = "",
			.path_kind = LB_PATH_REGEX,
			.path = texts[i],
			.path_len = (size_t)len,
			.ppm = LB_PPM_ALWAYS,
			.clusters = &green,
			.n_clusters = 1};
		routes[i][1] = (struct res_route){PREFIX("/"), .clusters = &blue, .n_clusters = 1};
		vhosts[i] = (struct res_vhost){.name = "a",
			.domains = &all,
			.n_domains = 1,
			.routes = routes[i],
			.n_routes = 2,
			.hash = {100 + i, 1}};
		give(w, 0, "1", &vhosts[i], 1);
	}
	for (int i = 0; i < 20000 && !published(w, 0)->routes; i++) {
		nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
		turns(w, 1);
	}
	assert_int_not_equal(route(w, "/a0/x"), route(w, "/"));
	await_patterns(w, 0);
	settle(w);
	assert_int_not_equal(route(w, "/a59/x"), route(w, "/"));
	assert_int_equal(route(w, "/a58/x"), route(w, "/"));
}

static void a_frontend_that_waits_holds_up_no_other(void **state)
{
	struct world *w = *state;
	const struct res_vhost plain = {"a", DOMAINS("*"), TO_BLUE, .hash = {1, 1}};
	const struct res_vhost with_regex = {"a", DOMAINS("*"),
		ROUTES({PREFIX("/"), CLUSTERS({"green", 1}),
			.headers = &(struct lb_header_match_conf){.name = STR("k"),
				.kind = LB_HEADER_REGEX,
				.text = STR("[a-c]{3}(x|y)*")},
			.n_headers = 1}),
		.hash = {2, 2}};
	give(w, 1, "1", &with_regex, 1);
	give(w, 0, "1", &plain, 1);
	turns(w, 1);
	assert_non_null(published(w, 0)->routes);
	await_patterns(w, 1);
	settle(w);
	assert_true(assembler_ready(w->assembler));
	assert_non_null(published(w, 1)->routes);
}

// OPS-323: nor may it keep a daemon that has not been ready yet from being it.
static void ops_323_one_that_a_reload_brought_is_not_asked_for_readiness(void **state)
{
	struct world *w = *state;
	const struct res_vhost a = {"a", DOMAINS("*"), TO_BLUE, .hash = {1, 1}};
	w->frontends[1].is_new = true;
	settle(w);
	assert_false(assembler_ready(w->assembler));
	give(w, 0, "1", &a, 1);
	settle(w);
	assert_true(assembler_ready(w->assembler));
	w->frontends[1].is_new = false; // it is one of the start
	assert_false(assembler_ready(w->assembler));
	w->frontends[1].is_new = true;
	w->frontends[0].row = CONFIG_ROW_LEAVES; // nobody is served any more
	assert_false(assembler_ready(w->assembler));
}

// FLT-11: LDS drains, RDS does not; the first listener drains nobody.
static void another_listener_means_another_generation(void **state)
{
	struct world *w = *state;
	const struct res_vhost a = {"a", DOMAINS("*"), TO_BLUE, .hash = {1, 1}};
	const struct res_vhost b = {"a", DOMAINS("*"), TO_GREEN, .hash = {2, 2}};
	assert_int_equal(published(w, 0)->generation, 0);
	give(w, 0, "1", &a, 1);
	settle(w);
	assert_int_equal(published(w, 0)->generation, 1);
	give(w, 0, "1", &b, 1); // routes alone, and the listener once more
	settle(w);
	assert_int_equal(published(w, 0)->generation, 1);
	give(w, 0, "2", &b, 1);
	settle(w);
	assert_int_equal(published(w, 0)->generation, 2);
	// It may have been away in between.
	assembler_fail(w->assembler, 0, "listener web does not exist");
	settle(w);
	assert_int_equal(published(w, 0)->generation, 2);
	give(w, 0, "2", &b, 1);
	settle(w);
	assert_int_equal(published(w, 0)->generation, 2);
	give(w, 0, "3", &b, 1);
	settle(w);
	assert_int_equal(published(w, 0)->generation, 3);
}

// OPS-320: and a snapshot that is made for anything else has them, too.
static void ops_320_terms_come_with_every_snapshot(void **state)
{
	struct world *w = *state;
	const struct res_vhost a = {"a", DOMAINS("*"), TO_BLUE, .hash = {1, 1}};
	struct lb_terms terms = {.idle_timeout_ns = 7};
	assert_int_equal(lb_slot_current(w->slot)->terms.number, 0);
	assembler_set_terms(w->assembler, &terms);
	settle(w);
	assert_int_equal(lb_slot_current(w->slot)->terms.number, 1);
	assert_int_equal(lb_slot_current(w->slot)->terms.idle_timeout_ns, 7);
	give(w, 0, "1", &a, 1);
	settle(w);
	assert_int_equal(lb_slot_current(w->slot)->terms.number, 1);
	assert_int_equal(lb_slot_current(w->slot)->terms.idle_timeout_ns, 7);
	terms.idle_timeout_ns = 0;
	assembler_set_terms(w->assembler, &terms);
	settle(w);
	assert_int_equal(lb_slot_current(w->slot)->terms.number, 2);
	assert_int_equal(lb_slot_current(w->slot)->terms.idle_timeout_ns, 0);
}

static void filters_of_the_listener_reach_the_snapshot(void **state)
{
	struct world *w = *state;
	const struct lb_filter fault = {.name = STR("chaos"), .kind = LB_FILTER_FAULT};
	const struct res_vhost a = {"a", DOMAINS("*"), TO_BLUE, .hash = {1, 1}};
	struct res_endpoints *e = endpoints_of(&one_priority, 1);
	struct res_listener *l = listener_of("1", &fault, 1);
	struct res_route_config *r = routes_of(&a, 1);
	l->max_stream_duration_ns = 5;
	l->stream_idle_ns = 6;
	struct xds_config *c = config_of(l, r, (const char *[]){"blue"}, &e, 1);
	update(w, 0, xds_config_get(c));
	settle(w);
	struct lb_filter_chain *chain = published(w, 0)->filters;
	assert_int_equal(chain->n, 1);
	assert_int_equal(chain->timeouts.max_ns, 5);
	assert_int_equal(chain->timeouts.idle_ns[0], 6);
	assert_int_equal(chain->timeouts.idle_ns[1], 6);
	assert_true(str_eq(chain->filters[0].name, STR("chaos")));
	update(w, 0, c);
	settle(w);
	assert_ptr_equal(published(w, 0)->filters, chain);
	assembler_fail(w->assembler, 0, "gone");
	settle(w);
	assert_null(published(w, 0)->filters);
	xds_res_put(&e->base);
	xds_res_put(&l->base);
	xds_res_put(&r->base);
}

static bool rewrites(const struct world *w)
{
	struct rand rand;
	rand_init(&rand, 1);
	struct lb_req req = {.authority = STR("x"), .path = STR("/"), .method = STR("GET")};
	struct lb_route_ctx ctx = {.rand = &rand, .scratch = lb_route_scratch_new(0, 1024)};
	struct lb_route_result r = lb_route_find(published(w, 0)->routes, &req, &ctx);
	lb_route_scratch_free(ctx.scratch);
	assert_int_equal(r.kind, LB_ROUTE_CLUSTER);
	return r.policy->auto_host_rewrite;
}

// D2: custom metadata is visible always, what belongs to the transport where the frontend says so.
static void matchers_see_of_grpc_what_the_frontend_says(void **state)
{
	struct world *w = *state;
	const struct lb_header_match_conf agent = {
		.name = STR("user-agent"), .kind = LB_HEADER_PRESENT, .present = true};
	const struct res_vhost v = {"a", DOMAINS("*"),
		ROUTES({PREFIX("/"), CLUSTERS({"blue", 1}), .headers = &agent, .n_headers = 1}),
		.hash = {7, 1}};
	const struct field field = {.name = STR("user-agent"), .value = STR("grpc-go")};
	w->frontends[1].grpc_headers = CONFIG_GRPC_ALL;
	for (uint32_t i = 0; i < 2; i++) {
		give(w, i, "1", &v, 1);
		settle(w);
		struct rand rand;
		rand_init(&rand, 1);
		struct lb_req req = {.authority = STR("x"),
			.path = STR("/"),
			.is_grpc = true,
			.fields = &field,
			.n_fields = 1};
		struct lb_route_ctx ctx = {.rand = &rand, .scratch = lb_route_scratch_new(0, 1024)};
		struct lb_route_result r = lb_route_find(published(w, i)->routes, &req, &ctx);
		lb_route_scratch_free(ctx.scratch);
		assert_int_equal(r.kind, i ? LB_ROUTE_CLUSTER : LB_ROUTE_NONE);
	}
	assert_ptr_equal(vhost_at(w, 0, 0), vhost_at(w, 1, 0)); // shared all the same
}

static const struct lb_route_policy of_endpoints = {.auto_host_rewrite = true};
static const struct res_vhost rewriting = {"a", DOMAINS("*"),
	ROUTES({WITH_POLICY(&of_endpoints, "", LB_PATH_PREFIX, "/", LB_PPM_ALWAYS),
		CLUSTERS({"blue", 1})}),
	.hash = {1, 1}};

// The same routes, from whoever it is.
static void give_from(
	struct world *w, const struct xds_server_conf *server, const struct res_vhost *vhost)
{
	static const char *const names[] = {"blue", "green"};
	struct res_endpoints *e = endpoints_of(&one_priority, 1);
	struct res_listener *l = listener_of("1", NULL, 0);
	struct res_route_config *r = routes_of(vhost, 1);
	xds_res_set_server(&r->base, server);
	update(w, 0, config_of(l, r, names, (struct res_endpoints *[]){e, e}, 2));
	xds_res_put(&e->base);
	xds_res_put(&l->base);
	xds_res_put(&r->base);
	settle(w);
}

// AR-01, AR-02 (gRFC A81): the server counts that sent the routes, not what others are.
static void rewriting_counts_if_the_server_that_sent_the_routes_is_trusted(void **state)
{
	struct world *w = *state;
	static const struct xds_server_conf trusted = {.trusted = true}, other = {.trusted = false};
	const struct res_vhost plain = {"a", DOMAINS("*"), TO_BLUE, .hash = {2, 2}};
	give_from(w, &other, &rewriting);
	assert_false(rewrites(w));
	give_from(w, &trusted, &rewriting); // the same bytes
	assert_true(rewrites(w));
	give_from(w, &trusted, &plain);
	assert_false(rewrites(w));
	give_from(w, &trusted, &rewriting);
	assert_true(rewrites(w));
	give_from(w, &other, &rewriting);
	assert_false(rewrites(w));
	give_from(w, NULL, &rewriting);
	assert_false(rewrites(w));
}

// Hosts.

static const struct ip_port more[] = {{IP(11), 81}};
static const struct told_endpoint_more one_example = {more, 1, "one.example", ""};
static const struct told_endpoint mixed[] = {
	{{IP(1), 80}, LB_LEAF_HEALTHY, 1, &one_example},
	{{IP(2), 80}, LB_LEAF_DRAINING, 1},
	{{IP(3), 80}, LB_LEAF_UNHEALTHY, 1},
	{{IP(4), 80}, LB_LEAF_UNKNOWN, 1},
};
static const struct told_endpoint failover[] = {{{IP(9), 80}, LB_LEAF_HEALTHY, 1}};
static const struct told_locality mixed_locality = {"", "", "", 1, mixed, 4};
static const struct told_locality failover_locality = {"", "", "", 1, failover, 1};
static const struct told_priority two_priorities[] = {
	{&mixed_locality, 1}, {&failover_locality, 1}};

static const struct res_vhost to_blue = {"a", DOMAINS("*"), TO_BLUE, .hash = {1, 1}};

static void give_hosts(struct world *w, struct res_endpoints *e, uint32_t session_health)
{
	static const struct lb_filter session = {.name = STR("session"), .kind = LB_FILTER_SESSION};
	struct res_listener *l = listener_of("1", &session, 1);
	struct res_route_config *r = routes_of(&to_blue, 1);
	struct xds_config *c = config_of(l, r, (const char *[]){"blue"}, &e, 1);
	struct res_cluster *other = (struct res_cluster *)xds_res_new(
		&res_type_cluster, sizeof(*other), "blue", NULL, 0);
	other->eds_name = "blue";
	other->eds_service_name = "";
	other->spec = c->clusters[0].cluster->spec;
	other->max_requests = c->clusters[0].cluster->max_requests;
	other->session_health = session_health;
	xds_res_put(&c->clusters[0].cluster->base);
	c->clusters[0].cluster = other;
	update(w, 0, c);
	xds_res_put(&l->base);
	xds_res_put(&r->base);
	settle(w);
}

static const struct lb_cluster *blue(const struct world *w)
{
	return lb_snapshot_cluster(lb_slot_current(w->slot), route(w, "/"));
}

// What sessions know of an address. False = nothing.
static bool host(const struct world *w, uint8_t last, struct lb_affinity_host *ret)
{
	struct ip_port a = {IP(last), 80};
	return lb_affinity_map_find(lb_leaf_layer(blue(w)->picker)->affinity, &a, ret);
}

static bool is_target(const struct world *w, uint8_t last)
{
	struct lb_affinity_host h;
	return host(w, last, &h) && h.is_target;
}

// SA-12, SA-13, SA-14, A81, A55-O01.
static void hosts_of_a_cluster_are_all_that_a_request_may_reach(void **state)
{
	struct world *w = *state;
	struct res_endpoints *e = endpoints_of(two_priorities, 2);
	struct lb_affinity_host h;
	give_hosts(w, e, 1u << LB_LEAF_UNKNOWN | 1u << LB_LEAF_HEALTHY);
	assert_true(host(w, 1, &h));
	assert_true(str_eq(h.hostname, STR("one.example")));
	char text[64];
	size_t len = lb_affinity_print(&h, text, sizeof(text));
	assert_true(str_eq((struct str){text, len}, STR("10.0.0.1:80,10.0.0.11:81")));
	assert_true(h.is_target);
	assert_false(is_target(w, 2)); // DRAINING, and no session may use it
	assert_false(host(w, 3, &h)); // UNHEALTHY
	assert_true(is_target(w, 4));
	assert_true(is_target(w, 9)); // in another priority
	// Only those of the priority in use are connected to: 1 and 4.
	expect_command(w, LB_COMMAND_CONNECT);
	expect_command(w, LB_COMMAND_CONNECT);
	struct lb_command none;
	assert_false(spsc_read(&w->link->commands, &none));
	xds_res_put(&e->base);
}

// SA-12, SA-13: the set decides, and a change of it alone is enough.
static void override_host_status_decides_which_hosts_sessions_may_use(void **state)
{
	struct world *w = *state;
	struct res_endpoints *e = endpoints_of(two_priorities, 2);
	give_hosts(w, e, 1u << LB_LEAF_HEALTHY | 1u << LB_LEAF_DRAINING);
	assert_true(is_target(w, 1));
	assert_true(is_target(w, 2));
	assert_false(is_target(w, 4)); // UNKNOWN: for requests, not for sessions
	give_hosts(w, e, 0);
	assert_false(is_target(w, 1));
	assert_null(lb_leaf_layer(blue(w)->picker)->sessions);
	xds_res_put(&e->base);
}

// A75-O08, SA-13: a session's connect request connects a draining endpoint; it is released when EDS
// drops it.
static void a_draining_host_is_connected_for_a_session_until_eds_drops_it(void **state)
{
	struct world *w = *state;
	struct res_endpoints *e = endpoints_of(two_priorities, 2),
			     *one = endpoints_of(&one_priority, 1);
	uint32_t health = 1u << LB_LEAF_HEALTHY | 1u << LB_LEAF_DRAINING;
	struct lb_affinity_host h;
	struct lb_command c;
	give_hosts(w, e, health);
	while (spsc_read(&w->link->commands, &c))
		assert_int_equal(c.kind, LB_COMMAND_CONNECT);
	assert_true(host(w, 2, &h));
	struct lb_event request = {.kind = LB_EVENT_CONNECT_REQUEST, .member = h.member};
	assert_true(spsc_write(&w->link->events, &request));
	turns(w, 1);
	uint32_t draining = expect_command(w, LB_COMMAND_CONNECT);
	give_hosts(w, one, health);
	settle(w);
	bool released = false;
	while (spsc_read(&w->link->commands, &c))
		released |= c.kind == LB_COMMAND_RELEASE && c.endpoint->id == draining;
	assert_true(released);
	xds_res_put(&e->base);
	xds_res_put(&one->base);
}

// What is written to stderr while the frontend takes the configuration.
static char *log_of(struct world *w, uint32_t frontend, struct xds_config *c)
{
	static char text[4096];
	int pipes[2], before = dup(STDERR_FILENO);
	assert_int_equal(pipe(pipes), 0);
	dup2(pipes[1], STDERR_FILENO);
	update(w, frontend, c);
	dup2(before, STDERR_FILENO);
	close(before);
	close(pipes[1]);
	ssize_t len = read(pipes[0], text, sizeof(text) - 1);
	text[len > 0 ? len : 0] = 0;
	close(pipes[0]);
	return text;
}

static char *log_of_version(struct world *w, const struct res_warning *warnings, uint32_t n)
{
	static const char *const any[] = {"*"};
	static const struct res_vhost v = {
		.name = "v", .domains = any, .n_domains = 1, .hash = {1, 1}};
	static const char *const names[] = {"blue"};
	struct res_listener *l = listener_of("1", NULL, 0);
	struct res_route_config *r = routes_of(&v, 1);
	r->warnings = (struct res_warnings){warnings, n};
	char *text = log_of(w, 0, config_of(l, r, names, (struct res_endpoints *[]){NULL}, 1));
	xds_res_put(&l->base);
	xds_res_put(&r->base);
	return text;
}

// ENV-04: what is accepted and ignored is said once.
static void warnings_of_a_cluster_are_logged_when_they_are_new(void **state)
{
	static const struct res_warning warnings[] = {
		{"one is ignored", "", 1}, {"two is ignored", "route 3", 7}};
	struct world *w = *state;
	struct res_listener *l = listener_of("1", NULL, 0);
	struct res_route_config *r = routes_of(&to_blue, 1);
	struct res_endpoints *e = endpoints_of(two_priorities, 2);
	for (uint32_t n = 0; n <= 2; n++) {
		struct xds_config *c = config_of(l, r, (const char *[]){"blue"}, &e, 1);
		struct res_cluster *version = (struct res_cluster *)xds_res_new(
			&res_type_cluster, sizeof(*version), "blue", (uint8_t[]){(uint8_t)n}, 1);
		version->eds_name = "blue";
		version->eds_service_name = "";
		version->spec = c->clusters[0].cluster->spec;
		version->warnings = (struct res_warnings){warnings, n};
		xds_res_put(&c->clusters[0].cluster->base);
		c->clusters[0].cluster = version;
		char *text = log_of(w, 0, c);
		assert_int_equal(strstr(text, "one is ignored") != NULL, n == 1);
		assert_int_equal(strstr(text, "two is ignored") != NULL, n == 2);
	}
	xds_res_put(&e->base);
	xds_res_put(&l->base);
	xds_res_put(&r->base);
}

static void a_warning_is_logged_when_it_comes_not_with_every_version(void **state)
{
	static const struct res_warning warnings[] = {
		{"one is ignored", "", 1}, {"two is ignored", "route 3", 7}};
	struct world *w = *state;
	assert_non_null(strstr(log_of_version(w, warnings, 1), "one is ignored"));
	assert_string_equal(log_of_version(w, warnings, 1), "");
	const char *text = log_of_version(w, warnings, 2);
	assert_null(strstr(text, "one is ignored"));
	assert_non_null(strstr(text, "warning=\"route 3: two is ignored\" places=7"));
	assert_string_equal(log_of_version(w, warnings, 0), "");
	assert_non_null(strstr(log_of_version(w, warnings, 1), "one is ignored")); // again
}

static void a_warning_is_logged_once_however_many_frontends_use_the_resource(void **state)
{
	static const struct res_warning warnings[] = {{"one is ignored", "", 1}};
	static const char *const names[] = {"blue"};
	struct world *w = *state;
	struct res_listener *l = listener_of("1", NULL, 0);
	struct res_route_config *r = routes_of(&to_blue, 1);
	r->warnings = (struct res_warnings){warnings, 1};
	for (uint32_t i = 0; i < 2; i++) {
		struct xds_config *c = config_of(l, r, names, (struct res_endpoints *[]){NULL}, 1);
		assert_int_equal(strstr(log_of(w, i, c), "one is ignored") != NULL, i == 0);
	}
	xds_res_put(&l->base);
	xds_res_put(&r->base);
}

// Reading keys, making, joining and listing actions: each virtual host is a step of each.
static void a_table_is_made_in_steps_while_the_one_before_it_serves(void **state)
{
	struct world *w = *state;
	const struct res_vhost one = {"a", DOMAINS("a"), TO_BLUE, .hash = {1, 1}};
	const struct res_vhost three[] = {
		{"new", DOMAINS("*.n", "n"), TO_BLUE, .hash = {3, 3}},
		{"b", DOMAINS("b"), TO_GREEN, .hash = {2, 2}},
		{"a", DOMAINS("a"), TO_BLUE, .hash = {1, 1}},
	};
	give(w, 0, "1", &one, 1);
	assert_string_equal(assembler_frontend_waiting(w->assembler, 0), "compiling routes");
	turns(w, 10);
	settle(w);
	assert_string_equal(assembler_frontend_waiting(w->assembler, 0), "");
	const struct lb_vhost *a = vhost_at(w, 0, 0);
	give(w, 0, "1", three, 3);
	for (int i = 0; i < 10; i++) {
		assert_string_equal(
			assembler_frontend_waiting(w->assembler, 0), "compiling routes");
		assert_ptr_equal(vhost_at(w, 0, 0), a);
		turns(w, 1);
	}
	turns(w, 10);
	settle(w);
	assert_string_equal(assembler_frontend_waiting(w->assembler, 0), "");
	assert_ptr_equal(vhost_at(w, 0, 2), a);
	assert_ptr_not_equal(vhost_at(w, 0, 0), a);
}

static void what_is_half_made_is_given_up_at_any_step(void **state)
{
	struct world *w = *state;
	const struct res_vhost two[] = {
		{"a", DOMAINS("a", "*.a"), TO_BLUE, .hash = {1, 1}},
		{"b", DOMAINS("b"), TO_GREEN, .hash = {2, 2}},
	};
	for (int n = 0; n < 12; n++) {
		give(w, 0, "1", two, 2);
		turns(w, n);
		assembler_fail(w->assembler, 0, "gone");
		settle(w);
	}
}

#define STEPS(test) cmocka_unit_test_setup_teardown(test, world_set_up_in_steps, world_tear_down)
#define CASE(test) cmocka_unit_test_setup_teardown(test, world_set_up_both, world_tear_down)

RUN_SUITE("ctrl/frontend", STEPS(a_table_is_made_in_steps_while_the_one_before_it_serves),
	STEPS(what_is_half_made_is_given_up_at_any_step),
	CASE(a_warning_is_logged_when_it_comes_not_with_every_version),
	CASE(a_warning_is_logged_once_however_many_frontends_use_the_resource),
	CASE(a_virtual_host_that_did_not_change_is_the_same_object),
	CASE(twins_in_one_configuration_are_one_object),
	CASE(a_virtual_host_whose_clusters_got_other_ids_is_another_one),
	CASE(patterns_hold_up_nothing_but_the_configuration_that_needs_them),
	CASE(a_storm_of_new_patterns_is_heard), CASE(a_frontend_that_waits_holds_up_no_other),
	CASE(ops_323_one_that_a_reload_brought_is_not_asked_for_readiness),
	CASE(another_listener_means_another_generation),
	CASE(ops_320_terms_come_with_every_snapshot),
	CASE(filters_of_the_listener_reach_the_snapshot),
	CASE(matchers_see_of_grpc_what_the_frontend_says),
	CASE(rewriting_counts_if_the_server_that_sent_the_routes_is_trusted),
	CASE(hosts_of_a_cluster_are_all_that_a_request_may_reach),
	CASE(warnings_of_a_cluster_are_logged_when_they_are_new),
	CASE(override_host_status_decides_which_hosts_sessions_may_use),
	CASE(a_draining_host_is_connected_for_a_session_until_eds_drops_it))
