// SPDX-License-Identifier: Apache-2.0
// A configuration's routes and clusters take effect together, however long its patterns take; and
// what serves meanwhile still hears where its endpoints are. Compiled patterns arrive when the test
// lets them.
#include "ctrl/assemble/assemble_inside.h"
#include "ctrl/assemble/cluster_set.h"
#include "ctrl/assemble/regex_cache.h"
#include "lb/cluster.h"
#include "lb/pick/limits.h"
#include "lb/pick/link.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/assembler_world.h"
#include "tests/unit/ctrl/routes_by_hand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool patterns_held;
static uint32_t n_found; // clusters looked for

// The linker's --wrap: what the assembler calls.
bool __real_regex_cache_poll(struct regex_cache *);
bool __wrap_regex_cache_poll(struct regex_cache *);
bool __wrap_regex_cache_poll(struct regex_cache *c)
{
	return !patterns_held && __real_regex_cache_poll(c);
}

struct cluster *__real_cluster_set_find(const struct cluster_set *, const char *name);
struct cluster *__wrap_cluster_set_find(const struct cluster_set *, const char *name);
struct cluster *__wrap_cluster_set_find(const struct cluster_set *s, const char *name)
{
	n_found++;
	return __real_cluster_set_find(s, name);
}

#define IP(last)                                                                                   \
	{                                                                                          \
		.b = { [10] = 255, [11] = 255, [12] = 10, [15] = (last) }                          \
	}
static const struct told_endpoint old_backend[] = {{{IP(1), 80}, LB_LEAF_HEALTHY, 1}};
static const struct told_endpoint new_backend[] = {{{IP(2), 80}, LB_LEAF_HEALTHY, 1}};
static const struct told_endpoint third_backend[] = {{{IP(3), 80}, LB_LEAF_HEALTHY, 1}};
static const struct told_locality old_place = {"", "", "", 1, old_backend, 1};
static const struct told_locality new_place = {"", "", "", 1, new_backend, 1};
static const struct told_locality third_place = {"", "", "", 1, third_backend, 1};
static const struct told_priority old_priority = {&old_place, 1};
static const struct told_priority new_priority = {&new_place, 1};
static const struct told_priority third_priority = {&third_place, 1};

static const struct res_vhost to_blue = {
	"a", DOMAINS("*"), ROUTES({PREFIX("/"), CLUSTERS({"blue", 1})}), .hash = {1, 1}};
static const struct res_vhost to_green = {"a", DOMAINS("*"),
	ROUTES({REGEX("/(foo|ba[rz])+/[0-9]{1,40}"), CLUSTERS({"green", 1})},
		{PREFIX("/"), CLUSTERS({"green", 1})}),
	.hash = {2, 2}};
static const struct res_vhost to_green_again = {"a", DOMAINS("*"),
	ROUTES({REGEX("/(x|yz)*/[0-9]{1,50}"), CLUSTERS({"green", 1})},
		{PREFIX("/"), CLUSTERS({"green", 1})}),
	.hash = {3, 3}};
static const struct res_vhost to_red = {
	"a", DOMAINS("*"), ROUTES({PREFIX("/"), CLUSTERS({"red", 1})}), .hash = {4, 4}};

static struct res_endpoints *old_endpoints, *new_endpoints, *third_endpoints;

static void make_endpoints(void)
{
	patterns_held = false;
	old_endpoints = endpoints_of(&old_priority, 1);
	new_endpoints = endpoints_of(&new_priority, 1);
	third_endpoints = endpoints_of(&third_priority, 1);
}

static int set_up(void **state)
{
	make_endpoints();
	return world_set_up(state);
}

static int set_up_both(void **state)
{
	make_endpoints();
	return world_set_up_both(state);
}

static int tear_down(void **state)
{
	xds_res_put(&old_endpoints->base);
	xds_res_put(&new_endpoints->base);
	xds_res_put(&third_endpoints->base);
	return world_tear_down(state);
}

// Blue has these endpoints (NULL = it is in error), green the old ones.
static void give(struct world *w, const struct res_vhost *vhost, struct res_endpoints *blue)
{
	apply(w, vhost, (const char *[]){"blue", "green"},
		(struct res_endpoints *[]){blue, old_endpoints}, 2);
}

// What frontends say of blue and green.
static void say(struct world *w, uint32_t frontend, struct res_route_config *routes,
	struct res_endpoints *blue, struct res_endpoints *green)
{
	struct res_listener *l = listener_of("1", NULL, 0);
	update(w, frontend,
		config_of(l, routes, (const char *[]){"blue", "green"},
			(struct res_endpoints *[]){blue, green}, 2));
	xds_res_put(&l->base);
	settle(w);
	turns(w, 1);
}

static const struct lb_cluster *published(const struct world *w, uint32_t id)
{
	return lb_snapshot_cluster(lb_slot_current(w->slot), id);
}

// Whether workers were told to connect to it since the last time.
static bool connects(struct world *w, uint8_t last)
{
	struct lb_command c;
	bool does = false;
	while (spsc_read(&w->link->commands, &c))
		does |= c.kind == LB_COMMAND_CONNECT && c.endpoint->addr.ip.b[15] == last;
	return does;
}

static void begin(struct world *w)
{
	give(w, &to_blue, old_endpoints);
	settle(w);
	assert_true(connects(w, 1));
	patterns_held = true;
}

static void let_patterns_come(struct world *w)
{
	patterns_held = false;
	await_patterns(w, 0);
	settle(w);
}

// DM-28: the routes that serve until the new ones are there have the clusters that they had.
static void routes_that_wait_for_patterns_bring_their_clusters_along(void **state)
{
	struct world *w = *state;
	begin(w);
	uint32_t blue = route(w, "/");
	give(w, &to_green, NULL);
	turns(w, 1000); // two seconds
	assert_string_equal(
		assembler_frontend_waiting(w->assembler, 0), "compiling regular expressions");
	assert_int_equal(route(w, "/"), blue);
	assert_int_equal(published(w, blue)->state, LB_CONNECTING);
	let_patterns_come(w);
	uint32_t green = route(w, "/");
	assert_int_not_equal(green, blue);
	assert_int_equal(published(w, green)->state, LB_CONNECTING);
	assert_int_equal(published(w, blue)->state, LB_TRANSIENT_FAILURE);
}

static void routes_that_are_refused_leave_the_clusters_alone(void **state)
{
	struct world *w = *state;
	begin(w);
	uint32_t blue = route(w, "/");
	// Routes to a cluster that the configuration lacks: cannot be.
	give(w, &to_red, NULL);
	assert_non_null(strstr(assembler_frontend_refusal(w->assembler, 0), "cluster 'red'"));
	turns(w, 1000);
	assert_int_equal(route(w, "/"), blue);
	assert_int_equal(published(w, blue)->state, LB_CONNECTING);
	// Its endpoints move all the same.
	give(w, &to_red, new_endpoints);
	turns(w, 1);
	assert_true(connects(w, 2));
}

// What serves is said again, but its clusters have followed another configuration since.
static void what_was_followed_meanwhile_is_taken_back(void **state)
{
	struct world *w = *state;
	struct res_route_config *r = routes_of(&to_blue, 1), *refused = routes_of(&to_red, 1);
	say(w, 0, r, old_endpoints, third_endpoints);
	assert_true(connects(w, 1));
	say(w, 0, refused, new_endpoints, third_endpoints);
	assert_true(connects(w, 2));
	say(w, 0, r, old_endpoints, third_endpoints);
	assert_true(connects(w, 1));
	xds_res_put(&refused->base);
	xds_res_put(&r->base);
}

// Endpoints that came with the new routes are theirs for a while, but backends may be gone.
static void endpoints_wait_for_patterns_a_second_at_most(void **state)
{
	struct world *w = *state;
	begin(w);
	give(w, &to_green, new_endpoints);
	turns(w, 400);
	assert_false(connects(w, 2));
	turns(w, 200);
	assert_true(connects(w, 2));
	assert_string_equal(
		assembler_frontend_waiting(w->assembler, 0), "compiling regular expressions");
	let_patterns_come(w);
	assert_false(connects(w, 2)); // they are connected to
}

// What came while another configuration waited has waited, too.
static void endpoints_of_a_later_configuration_do_not_wait_anew(void **state)
{
	struct world *w = *state;
	begin(w);
	give(w, &to_green, old_endpoints);
	turns(w, 400);
	give(w, &to_green_again, new_endpoints);
	turns(w, 80);
	assert_false(connects(w, 2));
	turns(w, 120);
	assert_true(connects(w, 2));
	let_patterns_come(w);
	assert_int_equal(published(w, route(w, "/"))->state, LB_CONNECTING);
}

// Its number is needed early, its endpoints are not: no route leads there yet.
static void a_new_cluster_connects_when_its_routes_serve(void **state)
{
	struct world *w = *state;
	apply(w, &to_blue, (const char *[]){"blue"}, &old_endpoints, 1);
	settle(w);
	assert_true(connects(w, 1));
	patterns_held = true;
	apply(w, &to_green, (const char *[]){"blue", "green"},
		(struct res_endpoints *[]){old_endpoints, new_endpoints}, 2);
	turns(w, 1000);
	assert_false(connects(w, 2));
	let_patterns_come(w);
	assert_true(connects(w, 2));
}

// Both hear it, one of them waits: the cluster that they share does not go back and forth.
static void what_another_frontend_serves_with_is_not_taken_back(void **state)
{
	struct world *w = *state;
	struct res_listener *l = listener_of("1", NULL, 0);
	struct res_route_config *r = routes_of(&to_blue, 1);
	static const char *const blue[] = {"blue"};
	begin(w);
	update(w, 1, config_of(l, r, blue, &old_endpoints, 1));
	settle(w);
	give(w, &to_green, old_endpoints);
	give(w, &to_green_again, new_endpoints);
	update(w, 1, config_of(l, r, blue, &new_endpoints, 1));
	turns(w, 1);
	assert_true(connects(w, 2));
	let_patterns_come(w);
	assert_false(connects(w, 2)); // it was not let go
	xds_res_put(&l->base);
	xds_res_put(&r->base);
}

// A frontend that waits for a cluster says its last configuration again for the sake of newer
// endpoints: of green they are, and blue is as old as it was.
static void what_waits_takes_nothing_back(void **state)
{
	struct world *w = *state;
	struct res_route_config *r = routes_of(&to_blue, 1);
	for (uint32_t i = 0; i < 2; i++)
		say(w, i, r, old_endpoints, old_endpoints);
	say(w, 1, r, new_endpoints, old_endpoints);
	assert_true(connects(w, 2));
	say(w, 0, r, old_endpoints, third_endpoints);
	assert_true(connects(w, 3));
	say(w, 0, r, old_endpoints, old_endpoints);
	say(w, 1, r, NULL, old_endpoints);
	say(w, 0, r, old_endpoints, third_endpoints);
	assert_int_equal(published(w, route(w, "/"))->state, LB_TRANSIENT_FAILURE);
	// What it hears at last is what the other one has. Then it may go anywhere.
	say(w, 0, r, NULL, third_endpoints);
	assert_int_equal(published(w, route(w, "/"))->state, LB_TRANSIENT_FAILURE);
	say(w, 0, r, old_endpoints, third_endpoints);
	assert_int_equal(published(w, route(w, "/"))->state, LB_CONNECTING);
	xds_res_put(&r->base);
}

// One that does not fit, whoever says it.
static struct res_endpoints *too_many(void)
{
	struct told_endpoint *list = calloc(LB_MAX_MEMBERS + 1, sizeof(*list));
	assert_non_null(list);
	for (uint32_t i = 0; i <= LB_MAX_MEMBERS; i++) {
		list[i] = (struct told_endpoint){{IP(0), 80}, LB_LEAF_HEALTHY, 1};
		for (int k = 0; k < 3; k++)
			list[i].addr.ip.b[13 + k] = (uint8_t)(i >> 8 * k);
	}
	const struct told_locality place = {"", "", "", 1, list, LB_MAX_MEMBERS + 1};
	struct res_endpoints *e = endpoints_of(&(struct told_priority){&place, 1}, 1);
	free(list);
	return e;
}

// Else nobody would try again once there is room.
static void what_was_refused_is_no_repetition(void **state)
{
	struct world *w = *state;
	struct res_route_config *r = routes_of(&to_blue, 1);
	struct res_endpoints *many = too_many();
	for (uint32_t i = 0; i < 2; i++)
		say(w, i, r, old_endpoints, old_endpoints);
	say(w, 1, r, many, old_endpoints);
	assert_non_null(strstr(assembler_frontend_refusal(w->assembler, 1), "'blue'"));
	say(w, 1, r, many, third_endpoints);
	assert_non_null(strstr(assembler_frontend_refusal(w->assembler, 1), "'blue'"));
	turns(w, 2000); // retries
	assert_non_null(strstr(assembler_frontend_refusal(w->assembler, 1), "'blue'"));
	say(w, 1, r, new_endpoints, third_endpoints);
	turns(w, 10000);
	assert_string_equal(assembler_frontend_refusal(w->assembler, 1), "");
	assert_true(connects(w, 2));
	xds_res_put(&many->base);
	xds_res_put(&r->base);
}

static void what_is_refused_takes_nothing_back(void **state)
{
	struct world *w = *state;
	struct res_route_config *r = routes_of(&to_blue, 1), *refused = routes_of(&to_red, 1);
	for (uint32_t i = 0; i < 2; i++)
		say(w, i, r, old_endpoints, old_endpoints);
	say(w, 1, r, new_endpoints, old_endpoints);
	assert_true(connects(w, 2));
	uint32_t blue = route(w, "/");
	const struct lb_cluster *before = published(w, blue);
	say(w, 0, refused, old_endpoints, third_endpoints);
	assert_non_null(strstr(assembler_frontend_refusal(w->assembler, 0), "cluster 'red'"));
	assert_true(connects(w, 3));
	assert_ptr_equal(published(w, blue), before);
	xds_res_put(&refused->base);
	xds_res_put(&r->base);
}

static const struct res_vhost only_to_green = {
	"a", DOMAINS("*"), ROUTES({PREFIX("/"), CLUSTERS({"green", 1})}), .hash = {5, 5}};

// Routes lead to green alone; requests of before, or an aggregate, have blue.
static void say_with_leaf(
	struct world *w, const struct res_vhost *vhost, struct res_endpoints *blue)
{
	struct res_listener *l = listener_of("1", NULL, 0);
	struct res_route_config *r = routes_of(vhost, 1);
	struct xds_config *config = config_of(l, r, (const char *[]){"blue", "green"},
		(struct res_endpoints *[]){blue, old_endpoints}, 2);
	config->clusters[0].is_root = false;
	update(w, 0, config);
	xds_res_put(&l->base);
	xds_res_put(&r->base);
	turns(w, 1);
}

// A31-R11: nobody else sees to the cluster, since the refused one never serves.
static void a_refused_configuration_that_is_gone_uses_no_cluster(void **state)
{
	struct world *w = *state;
	give(w, &to_blue, old_endpoints);
	settle(w);
	counter_set_to(&w->link->clusters[route(w, "/")].active, 1);
	say_with_leaf(w, &only_to_green, old_endpoints);
	give(w, &to_red, old_endpoints);
	turns(w, 10);
	assert_non_null(strstr(assembler_frontend_refusal(w->assembler, 0), "cluster 'red'"));
	assert_false(connects(w, 2));
	say_with_leaf(w, &only_to_green, new_endpoints);
	assert_true(connects(w, 2));
}

#define N_OTHERS 1000

// Thousands of frontends may share an aggregate, and each is told when one of its leaves changes.
static void an_update_looks_for_no_other_frontends_clusters(void **state)
{
	struct world *w = *state;
	static char texts[N_OTHERS][8];
	static const char *names[N_OTHERS];
	static struct res_endpoints *none[N_OTHERS];
	struct res_listener *l = listener_of("1", NULL, 0);
	struct res_route_config *r = routes_of(&to_blue, 1);
	for (uint32_t i = 0; i < N_OTHERS; i++) {
		snprintf(texts[i], sizeof(texts[i]), "c%u", i);
		names[i] = texts[i];
	}
	names[0] = "blue";
	update(w, 1, config_of(l, r, names, none, N_OTHERS));
	turns(w, 1);
	n_found = 0;
	for (int i = 0; i < 10; i++) {
		say_with_leaf(w, &only_to_green, i % 2 ? new_endpoints : old_endpoints);
		turns(w, 10);
	}
	assert_in_range(n_found, 10, 200);
	xds_res_put(&l->base);
	xds_res_put(&r->base);
}

static uint32_t n_named(const struct xds_config *config, uint32_t n, const char *cluster)
{
	for (uint32_t i = 0; config && i < n && i < config->n_clusters; i++)
		if (config->clusters[i].is_root && strcmp(config->clusters[i].name, cluster) == 0)
			return 1;
	return 0;
}

static void check_users(const struct world *w)
{
	const struct assembler *a = w->assembler;
	for (uint32_t i = 0; i < cluster_set_count(a->clusters); i++) {
		const struct cluster *c = cluster_set_at(a->clusters, i);
		uint32_t n = 0;
		for (uint32_t k = 0; k < w->config.n_frontends; k++) {
			const struct assembled_frontend *f = &a->frontends[k];
			n += n_named(f->applied, UINT32_MAX, c->name);
			n += n_named(f->wanted, f->n_held, c->name);
			n += n_named(f->newest, UINT32_MAX, c->name);
		}
		assert_int_equal(c->n_users, n);
		assert_int_equal(cluster_tree_object(c->tree)->is_leaving, n == 0);
		assert_true(n > 0 || a->frontend_env.left_by);
	}
}

#define N_STEPS 1000

static void users_of_clusters_are_counted_exactly_whatever_happens(void **state)
{
	struct world *w = *state;
	static const char *const all[] = {"blue", "green", "c0", "c1", "c2", "c3", "c4", "c5"};
	static const struct res_vhost *const vhosts[] = {
		&to_blue, &to_green, &to_green_again, &to_red, &only_to_green};
	struct res_endpoints *endpoints[] = {[7] = NULL};
	struct rand rand;
	uint32_t n_served = 0;
	rand_init(&rand, 3);
	for (int step = 0; step < N_STEPS; step++) {
		uint64_t draw = rand_u64(&rand);
		const char *names[8] = {"blue", "green"};
		uint32_t n = 2;
		for (uint32_t i = 2; i < 8; i++)
			if (draw >> i & 1)
				names[n++] = all[i];
		patterns_held = draw >> 8 & 1;
		struct res_listener *l = listener_of("1", NULL, 0);
		struct res_route_config *r = routes_of(vhosts[(draw >> 16) % 5], 1);
		struct xds_config *config = config_of(l, r, names, endpoints, n);
		for (uint32_t i = 1; i + 1 < n; i++) // by name: between blue and green
			config->clusters[i].is_root = draw >> (24 + i) & 1;
		if (draw >> 40 & 7)
			assembler_update(w->assembler, draw >> 9 & 1, config);
		else
			assembler_fail(w->assembler, draw >> 9 & 1, "gone");
		xds_config_put(config);
		check_users(w);
		turns(w, (int)(draw >> 48) % 300);
		check_users(w);
		n_served += assembler_frontend_error(w->assembler, 0)[0] == 0;
		xds_res_put(&l->base);
		xds_res_put(&r->base);
	}
	assert_in_range(n_served, N_STEPS / 10, N_STEPS);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

RUN_SUITE("ctrl/frontend_clusters", CASE(routes_that_wait_for_patterns_bring_their_clusters_along),
	CASE(routes_that_are_refused_leave_the_clusters_alone),
	CASE(what_was_followed_meanwhile_is_taken_back),
	CASE(endpoints_wait_for_patterns_a_second_at_most),
	CASE(endpoints_of_a_later_configuration_do_not_wait_anew),
	CASE(a_new_cluster_connects_when_its_routes_serve),
	CASE(a_refused_configuration_that_is_gone_uses_no_cluster),
	cmocka_unit_test_setup_teardown(
		an_update_looks_for_no_other_frontends_clusters, set_up_both, tear_down),
	cmocka_unit_test_setup_teardown(
		users_of_clusters_are_counted_exactly_whatever_happens, set_up_both, tear_down),
	cmocka_unit_test_setup_teardown(
		what_another_frontend_serves_with_is_not_taken_back, set_up_both, tear_down),
	cmocka_unit_test_setup_teardown(what_waits_takes_nothing_back, set_up_both, tear_down),
	cmocka_unit_test_setup_teardown(what_was_refused_is_no_repetition, set_up_both, tear_down),
	cmocka_unit_test_setup_teardown(what_is_refused_takes_nothing_back, set_up_both, tear_down))
