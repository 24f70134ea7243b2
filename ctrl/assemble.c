// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble.h"

#include "ctrl/cluster_set.h"
#include "ctrl/config.h"
#include "ctrl/deps/depmgr.h"
#include "ctrl/res/route.h"
#include "ctrl/route_compile.h"
#include "ctrl/workers.h"
#include "lb/balancer.h"
#include "lb/base/log.h"
#include "lb/base/rand.h"
#include "lb/base/twheel.h"
#include "lb/cluster.h"
#include "lb/connectivity.h"
#include "lb/picker.h"
#include "lb/route.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "lb/subchannel.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// A change waits for the next tick while this many snapshots are alive, so that a storm of changes
// becomes few snapshots; not longer than HOLD_NS, since a stalled worker may delay freeing but not
// publishing (lb-tree.md MC-18).
#define MAX_LIVE 3
#define HOLD_NS UINT64_C(100000000)

struct assembled_frontend {
	struct xds_config *config; // counted; NULL = none
	struct lb_route_table *table; // counted; compiled from config's routes
	char *error; // owned; "" = serves
};

struct assembler {
	struct assembler_conf conf;
	struct rand rand;
	struct lb_connectivity *connectivity;
	struct cluster_set *clusters;
	struct lb_snapshot *next; // owned: what the next publish shows; NULL = nothing changed
	bool retry; // memory ran out in between: configure again at the next tick
	bool leaving; // some cluster waits for its last request
	uint64_t n_published;
	uint64_t held_since_ns; // 0 = no change waits
	unsigned n_live;
	struct assembled_frontend frontends[]; // as config has
};

// The snapshot in the making. NULL = no memory.
static struct lb_snapshot *draft(struct assembler *a)
{
	if (!a->next)
		a->next = lb_snapshot_copy(lb_slot_current(a->conf.slot));
	return a->next;
}

static void draft_cluster(struct assembler *a, uint32_t id, struct lb_cluster *cluster)
{
	struct lb_snapshot *s = draft(a);
	if (!s || lb_snapshot_set_cluster(s, id, cluster))
		a->retry = true;
}

static void on_cluster_change(void *ctx, struct lb_cluster *cluster)
{
	draft_cluster(ctx, cluster->id, cluster);
}

static void on_connect(void *ctx, struct lb_endpoint *endpoint)
{
	struct assembler *a = ctx;
	uint32_t n = workers_count(a->conf.workers);
	struct lb_command c = {.kind = LB_COMMAND_CONNECT, .endpoint = endpoint};
	workers_send(a->conf.workers, lb_endpoint_anchor(endpoint->id, n), &c);
}

static void on_release(void *ctx, struct lb_endpoint *endpoint)
{
	struct assembler *a = ctx;
	struct lb_command c = {.kind = LB_COMMAND_RELEASE, .endpoint = endpoint};
	workers_send_all(a->conf.workers, &c);
}

struct assembler *assembler_new(const struct assembler_conf *conf)
{
	uint32_t n = conf->config->n_frontends;
	struct assembler *a = calloc(1, sizeof(*a) + n * sizeof(a->frontends[0]));
	if (!a)
		return NULL;
	a->conf = *conf;
	rand_init(&a->rand, conf->seed);
	struct lb_connectivity_env env = {
		.wheel = conf->wheel,
		.rand = &a->rand,
		.n_workers = workers_count(conf->workers),
		.connect = on_connect,
		.release = on_release,
		.ctx = a,
	};
	a->connectivity = lb_connectivity_new(&env);
	struct cluster_set_env set_env = {a->connectivity, on_cluster_change, a};
	a->clusters = a->connectivity ? cluster_set_new(&set_env) : NULL;
	bool ok = a->clusters != NULL;
	for (uint32_t i = 0; i < n; i++) {
		a->frontends[i].error = strdup("no configuration has been received yet");
		ok = ok && a->frontends[i].error;
	}
	if (!ok) {
		assembler_free(a);
		return NULL;
	}
	return a;
}

void assembler_free(struct assembler *a)
{
	if (!a)
		return;
	cluster_set_free(a->clusters);
	lb_snapshot_free(a->next);
	lb_connectivity_free(a->connectivity);
	for (uint32_t i = 0; i < a->conf.config->n_frontends; i++) {
		xds_config_put(a->frontends[i].config);
		lb_route_table_put(a->frontends[i].table);
		free(a->frontends[i].error);
	}
	free(a);
}

// Frontends.

static bool set_error(struct assembled_frontend *f, const char *text)
{
	char *copy = strdup(text);
	if (!copy)
		return false;
	free(f->error);
	f->error = copy;
	return true;
}

static void draft_frontend(struct assembler *a, uint32_t i)
{
	struct assembled_frontend *f = &a->frontends[i];
	struct lb_snapshot *s = draft(a);
	if (!s || lb_snapshot_set_frontend(s, i, f->error[0] ? NULL : f->table, f->error))
		a->retry = true;
}

static void count_users(struct assembler *a)
{
	uint32_t n = cluster_set_count(a->clusters);
	a->leaving = false;
	for (uint32_t i = 0; i < n; i++) {
		struct cluster *c = cluster_set_at(a->clusters, i);
		c->n_users = 0;
		for (uint32_t f = 0; f < a->conf.config->n_frontends; f++)
			if (a->frontends[f].config &&
				xds_config_find_cluster(a->frontends[f].config, c->name))
				c->n_users++;
		a->leaving |= c->n_users == 0;
	}
}

static bool configure_clusters(struct assembler *a, const struct xds_config *config)
{
	for (uint32_t i = 0; i < config->n_clusters; i++) {
		struct lb_err err = {0};
		uint32_t known = cluster_set_count(a->clusters);
		struct cluster *c = cluster_set_obtain(a->clusters, config->clusters[i].name, &err);
		if (!c) {
			log_error("configuration not applied", "error=%s", log_quote(err.text));
			return false;
		}
		if (cluster_set_count(a->clusters) != known) {
			workers_cluster_totals(a->conf.workers, c->id, &c->before);
			draft_cluster(a, c->id, lb_balancer_cluster(c->balancer));
		}
		if (cluster_configure(a->clusters, c, &config->clusters[i]))
			return false;
	}
	return true;
}

static bool compile_routes(
	struct assembler *a, struct assembled_frontend *f, struct xds_config *config)
{
	bool same = f->table && f->config && f->config->routes == config->routes &&
	            f->config->vhost == config->vhost;
	if (same)
		return true;
	struct lb_err err = {0};
	struct lb_route_table *table =
		route_compile(config->routes, config->vhost, a->clusters, &err);
	if (!table) {
		log_error("routes not applied", "error=%s", log_quote(err.text));
		return false;
	}
	lb_route_table_put(f->table);
	f->table = table;
	return true;
}

void assembler_update(struct assembler *a, uint32_t frontend, struct xds_config *config)
{
	struct assembled_frontend *f = &a->frontends[frontend];
	// On failure the last good state serves on, and every tick tries again.
	bool applied =
		configure_clusters(a, config) && compile_routes(a, f, config) && set_error(f, "");
	a->retry |= !applied;
	xds_config_get(config);
	xds_config_put(f->config);
	f->config = config;
	if (applied)
		draft_frontend(a, frontend);
	count_users(a);
	log_info("configuration", "frontend=%s clusters=%u applied=%s",
		log_quote(a->conf.config->frontends[frontend].name), config->n_clusters,
		applied ? "yes" : "later");
}

void assembler_fail(struct assembler *a, uint32_t frontend, const char *text)
{
	struct assembled_frontend *f = &a->frontends[frontend];
	if (!set_error(f, text[0] ? text : "no configuration"))
		return;
	xds_config_put(f->config);
	f->config = NULL;
	lb_route_table_put(f->table);
	f->table = NULL;
	draft_frontend(a, frontend);
	count_users(a);
}

void assembler_event(struct assembler *a, uint32_t worker, const struct lb_event *event)
{
	lb_connectivity_event(a->connectivity, worker, event);
}

// What a lack of memory left undone, from the configurations that are kept.
static void try_again(struct assembler *a)
{
	a->retry = false;
	for (uint32_t i = 0; i < a->conf.config->n_frontends; i++) {
		struct assembled_frontend *f = &a->frontends[i];
		if (f->config) {
			lb_route_table_put(f->table);
			f->table = NULL;
			assembler_update(a, i, f->config);
		} else {
			draft_frontend(a, i);
		}
	}
	for (uint32_t i = 0; i < cluster_set_count(a->clusters); i++) {
		struct cluster *c = cluster_set_at(a->clusters, i);
		draft_cluster(a, c->id, lb_balancer_cluster(c->balancer));
	}
}

// A cluster can go when no snapshot that a worker may still read routes to it, and no request that
// chose it is alive.
static void drop_left_clusters(struct assembler *a)
{
	if (!a->leaving || a->next || a->n_live != 1)
		return;
	for (uint32_t i = cluster_set_count(a->clusters); i-- > 0;) {
		struct cluster *c = cluster_set_at(a->clusters, i);
		if (c->n_users || workers_cluster_active(a->conf.workers, c->id))
			continue;
		draft_cluster(a, c->id, NULL);
		if (a->retry)
			return;
		cluster_set_drop(a->clusters, c);
	}
	count_users(a);
}

static bool must_hold(struct assembler *a)
{
	uint64_t now = twheel_now(a->conf.wheel);
	if (a->n_live < MAX_LIVE)
		return false;
	if (a->held_since_ns == 0)
		a->held_since_ns = now;
	return now - a->held_since_ns < HOLD_NS;
}

void assembler_tick(struct assembler *a)
{
	a->n_live = lb_slot_reclaim(a->conf.slot);
	drop_left_clusters(a);
	if (a->retry)
		try_again(a);
	if (!a->next || a->retry || must_hold(a))
		return;
	lb_slot_publish(a->conf.slot, a->next);
	a->next = NULL;
	a->held_since_ns = 0;
	a->n_published++;
}

bool assembler_ready(const struct assembler *a)
{
	for (uint32_t i = 0; i < a->conf.config->n_frontends; i++)
		if (a->frontends[i].error[0])
			return false;
	return a->next == NULL;
}

uint64_t assembler_n_snapshots(const struct assembler *a)
{
	return a->n_published;
}

unsigned assembler_n_live_snapshots(const struct assembler *a)
{
	return a->n_live;
}

// For operators.

static uint32_t count_ready(const struct cluster *c)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < c->n_subchannels; i++)
		n += lb_subchannel_state(c->subchannels[i]) == LB_READY;
	return n;
}

void assembler_each_cluster(const struct assembler *a,
	void (*fn)(void *ctx, const struct assembler_cluster_info *), void *ctx)
{
	for (uint32_t i = 0; i < cluster_set_count(a->clusters); i++) {
		const struct cluster *c = cluster_set_at(a->clusters, i);
		const struct lb_cluster *now = lb_balancer_cluster(c->balancer);
		struct assembler_cluster_info info = {
			.name = c->name,
			.id = c->id,
			.state = now->state,
			.detail = now->state == LB_TRANSIENT_FAILURE ? c->note : "",
			.leaving = c->n_users == 0,
			.n_endpoints = c->n_subchannels,
			.n_ready = count_ready(c),
		};
		workers_cluster_totals(a->conf.workers, c->id, &info.totals);
		cluster_totals_since(&info.totals, &c->before);
		fn(ctx, &info);
	}
}

void assembler_each_endpoint(const struct assembler *a, const char *cluster,
	void (*fn)(void *ctx, const struct assembler_endpoint_info *), void *ctx)
{
	const struct cluster *c = cluster_set_find(a->clusters, cluster);
	for (uint32_t i = 0; c && i < c->n_subchannels; i++) {
		const struct lb_endpoint *e = lb_subchannel_endpoint(c->subchannels[i]);
		struct assembler_endpoint_info info = {
			.address = e->text,
			.id = e->id,
			.state = lb_subchannel_state(c->subchannels[i]),
			.last_error = lb_subchannel_last_error(c->subchannels[i]),
		};
		fn(ctx, &info);
	}
}

const char *assembler_frontend_error(const struct assembler *a, uint32_t frontend)
{
	return a->frontends[frontend].error;
}
