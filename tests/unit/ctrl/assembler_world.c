// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ctrl/assembler_world.h"

#include "lb/base/log.h"
#include "lb/base/twheel.h"
#include "lb/pick/link.h"
#include "lb/policy/policy_spec.h"
#include "lb/route/req.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// Those of earlier configurations of a test: an unchanged resource stays the same object.
static struct res_cluster *made[64]; // counted
static unsigned n_made;

static void on_event(void *ctx, uint32_t worker, const struct lb_event *event)
{
	assembler_event(((struct world *)ctx)->assembler, worker, event);
}

struct how {
	unsigned n_frontends;
	struct config_sessions *sessions;
	struct config_metrics *metrics;
	uint64_t steps;
};

static int make(void **state, struct how how)
{
	log_set_level(LOG_LEVEL_WARN);
	struct world *w = calloc(1, sizeof(*w));
	w->frontends[0] = (struct config_frontend){.name = strdup("web"), .target = strdup("w")};
	w->frontends[1] = (struct config_frontend){.name = strdup("api"), .target = strdup("a")};
	w->config.frontends = w->frontends;
	w->config.sessions = how.sessions;
	w->config.metrics = how.metrics;
	w->config.n_frontends = how.n_frontends;
	w->now = 1000 * MS;
	w->wheel = twheel_new(w->now);
	w->slot = lb_slot_new(lb_snapshot_new(how.n_frontends, "nothing yet"));
	w->link = lb_link_new(0, 0, w->shared = lb_shared_new());
	w->workers = workers_new(&w->link, 1, on_event, w);
	struct assembler_conf conf = {
		&w->config, w->slot, w->workers, w->wheel, 7, .slice.most = how.steps};
	w->assembler = assembler_new(&conf);
	assert_non_null(w->assembler);
	*state = w;
	return 0;
}

int world_set_up(void **state)
{
	return make(state, (struct how){.n_frontends = 1});
}

int world_set_up_both(void **state)
{
	return make(state, (struct how){.n_frontends = 2});
}

int world_set_up_in_steps(void **state)
{
	return make(state, (struct how){.n_frontends = 1, .steps = 1});
}

int world_set_up_with(void **state, struct config_sessions *sessions)
{
	return make(state, (struct how){.n_frontends = 1, .sessions = sessions});
}

int world_set_up_counting(void **state)
{
	static struct config_metrics metrics = {.virtual_hosts = true};
	return make(state, (struct how){.n_frontends = 1, .metrics = &metrics});
}

int world_tear_down(void **state)
{
	struct world *w = *state;
	while (n_made)
		xds_res_put(&made[--n_made]->base);
	lb_slot_free(w->slot);
	assembler_free(w->assembler);
	workers_free(w->workers);
	lb_link_free(w->link);
	lb_shared_free(w->shared);
	twheel_free(w->wheel);
	for (int i = 0; i < 2; i++) {
		free(w->frontends[i].name);
		free(w->frontends[i].target);
	}
	free(w);
	return 0;
}

void turns(struct world *w, int n)
{
	for (int i = 0; i < n; i++) {
		w->now += 2 * MS;
		twheel_advance(w->wheel, w->now);
		workers_poll(w->workers);
		assembler_tick(w->assembler);
	}
}

void sleep_a_little(void)
{
	struct timespec pause = {.tv_nsec = 500000};
	nanosleep(&pause, NULL);
}

void settle(struct world *w)
{
	for (int i = 0; i < 2000; i++) {
		turns(w, 1);
		if (i > 3 && assembler_n_live_snapshots(w->assembler) == 1)
			return;
		sleep_a_little();
	}
	fail_msg("old snapshots are never freed");
}

void await_patterns(struct world *w, uint32_t frontend)
{
	for (int i = 0; i < 20000; i++) {
		turns(w, 1);
		if (assembler_frontend_waiting(w->assembler, frontend)[0] == 0)
			return;
		sleep_a_little();
	}
	fail_msg("patterns are never there");
}

static struct lb_leaf_endpoint endpoint_of(const struct told_endpoint *told, struct lb_arena *arena)
{
	struct lb_leaf_endpoint e = {.addresses = &told->addr,
		.n_addresses = 1,
		.weight = told->weight,
		.health = told->health};
	if (!told->more)
		return e;
	uint32_t n = told->more->n_additional;
	struct ip_port *list = lb_arena_alloc(arena, n + 1, sizeof(*list));
	list[0] = told->addr;
	for (uint32_t i = 0; i < n; i++)
		list[i + 1] = told->more->additional[i];
	e.addresses = list;
	e.n_addresses = n + 1;
	e.hostname = str_from(told->more->hostname);
	e.hash_key = str_from(told->more->hash_key);
	return e;
}

static struct lb_leaf_locality locality_of(const struct told_locality *told, struct lb_arena *arena)
{
	struct lb_leaf_endpoint *list = lb_arena_alloc(arena, told->n_endpoints, sizeof(*list));
	char *name = lb_arena_alloc(arena, 1, 100);
	for (uint32_t i = 0; i < told->n_endpoints; i++)
		list[i] = endpoint_of(&told->endpoints[i], arena);
	snprintf(name, 100, "%s/%s/%s", told->region, told->zone, told->sub_zone);
	return (struct lb_leaf_locality){str_from(name), told->weight, list, told->n_endpoints};
}

struct res_endpoints *endpoints_of(const struct told_priority *told, uint32_t n)
{
	struct lb_arena arena = {0};
	struct res_endpoints *e = (struct res_endpoints *)xds_res_new(
		&res_type_endpoints, sizeof(*e), "endpoints", NULL, 0);
	struct lb_leaf_priority *priorities = lb_arena_alloc(&arena, n, sizeof(*priorities));
	const struct ip_port *second;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t count = told[i].n_localities;
		struct lb_leaf_locality *list = lb_arena_alloc(&arena, count, sizeof(*list));
		for (uint32_t k = 0; k < count; k++)
			list[k] = locality_of(&told[i].localities[k], &arena);
		priorities[i] = (struct lb_leaf_priority){list, count};
	}
	e->list = lb_leaf_endpoints_new(priorities, n, &second);
	assert_non_null(e->list);
	lb_arena_fini(&arena);
	return e;
}

struct res_cluster *cluster_of(const char *name)
{
	static const struct lb_policy_spec round_robin = {.kind = LB_POLICY_ROUND_ROBIN};
	static const struct lb_policy_spec by_locality = {
		.kind = LB_POLICY_WRR_LOCALITY, .child = &round_robin};
	for (unsigned i = 0; i < n_made; i++)
		if (strcmp(made[i]->base.name, name) == 0)
			return res_cluster_from(xds_res_get(&made[i]->base));
	struct res_cluster *c =
		(struct res_cluster *)xds_res_new(&res_type_cluster, sizeof(*c), name, NULL, 0);
	c->eds_name = name;
	c->eds_service_name = "";
	c->spec = &by_locality;
	c->max_requests = 1024;
	c->session_health = 1u << LB_LEAF_UNKNOWN | 1u << LB_LEAF_HEALTHY;
	if (n_made < sizeof(made) / sizeof(made[0]))
		made[n_made++] = res_cluster_from(xds_res_get(&c->base));
	return c;
}

struct res_listener *listener_of(
	const char *version, const struct lb_filter *filters, uint32_t n_filters)
{
	struct res_listener *l = (struct res_listener *)xds_res_new(
		&res_type_listener, sizeof(*l), "web", (const uint8_t *)version, strlen(version));
	l->is_api = true;
	l->filters = filters;
	l->n_filters = n_filters;
	l->max_stream_duration_ns = LB_NO_TIMEOUT;
	return l;
}

struct xds_config *config_of(struct res_listener *listener, struct res_route_config *routes,
	const char *const *names, struct res_endpoints *const *endpoints, uint32_t n)
{
	struct config_builder b;
	assert_int_equal(config_builder_init(&b, listener, routes, -1, n), 0);
	for (uint32_t i = 0; i < n; i++) {
		struct xds_cluster_config *to = &b.config->clusters[i];
		to->name = names[i];
		to->is_root = true;
		to->error = endpoints[i] ? "" : "no such cluster";
		to->resolution_note = "node n1";
		if (!endpoints[i])
			continue;
		to->cluster = cluster_of(names[i]);
		to->endpoints = (struct res_endpoints *)xds_res_get(&endpoints[i]->base);
	}
	config_builder_sort(&b);
	return b.config;
}

void update(struct world *w, uint32_t frontend, struct xds_config *c)
{
	assembler_update(w->assembler, frontend, c);
	xds_config_put(c);
}

void apply(struct world *w, const struct res_vhost *vhost, const char *const *names,
	struct res_endpoints *const *endpoints, uint32_t n)
{
	struct res_listener *listener = listener_of("1", NULL, 0);
	struct res_route_config *routes = (struct res_route_config *)xds_res_new(
		&res_type_route_config, sizeof(*routes), "routes", NULL, 0);
	routes->vhosts = vhost;
	routes->n_vhosts = 1;
	update(w, 0, config_of(listener, routes, names, endpoints, n));
	xds_res_put(&routes->base);
	xds_res_put(&listener->base);
}

uint32_t route(const struct world *w, const char *path)
{
	const struct lb_snapshot *s = lb_slot_current(w->slot);
	struct rand rand;
	rand_init(&rand, 1);
	struct lb_req req = {.authority = STR("x"), .path = str_from(path), .method = STR("GET")};
	struct lb_route_scratch *scratch = lb_route_scratch_new(0, 1024);
	assert_non_null(scratch);
	struct lb_route_ctx ctx = {.rand = &rand, .scratch = scratch};
	struct lb_route_result r = lb_route_find(lb_snapshot_frontend(s, 0)->routes, &req, &ctx);
	lb_route_scratch_free(scratch);
	assert_int_equal(r.kind, LB_ROUTE_CLUSTER);
	return r.cluster_id;
}

uint32_t expect_command(struct world *w, enum lb_command_kind kind)
{
	struct lb_command c;
	assert_true(spsc_read(&w->link->commands, &c));
	assert_int_equal(c.kind, kind);
	return c.endpoint->id;
}
