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
#include "lb/limits.h"
#include "lb/picker.h"
#include "lb/route.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "lb/subchannel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// A change waits for the next tick while this many snapshots are alive, so that a storm of changes
// becomes few snapshots; not longer than HOLD_NS, since a stalled worker may delay freeing but not
// publishing (lb-tree.md MC-18).
#define MAX_LIVE 3
#define HOLD_NS UINT64_C(100000000)

// What could not be applied (too large, no memory) is tried again this often: clusters that left
// may have made room.
#define RETRY_NS UINT64_C(1000000000)

enum flip { FLIP_NONE, FLIP_UP, FLIP_DOWN };

struct assembled_frontend {
	struct xds_config *applied; // counted; serves; NULL = none
	struct lb_route_table *table; // counted; compiled from applied's routes
	struct xds_config *wanted; // counted; refused so far; NULL = none
	uint64_t retry_ns; // when `wanted` is tried again
	char *error; // owned; why there is no table; never ""
	char *refusal; // owned; why `wanted` is not applied; "" = nothing is refused
};

struct assembler {
	struct assembler_conf conf;
	struct rand rand;
	struct lb_connectivity *connectivity;
	struct cluster_set *clusters;
	struct lb_snapshot *next; // owned: what the next publish shows; NULL = nothing changed
	bool redraft; // memory ran out over `next`: it is to be made anew
	bool leaving; // some cluster waits for its last request
	uint64_t n_published;
	uint64_t held_since_ns; // 0 = no change waits
	unsigned n_live;
	uint8_t *flips; // [LB_MAX_ENDPOINTS] owned; enum flip: what the log said last
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
		a->redraft = true;
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
	a->flips = calloc(LB_MAX_ENDPOINTS, sizeof(*a->flips));
	bool ok = a->clusters && a->flips;
	for (uint32_t i = 0; i < n; i++) {
		a->frontends[i].error = strdup("no configuration has been received yet");
		a->frontends[i].refusal = strdup("");
		ok = ok && a->frontends[i].error && a->frontends[i].refusal;
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
	free(a->flips);
	for (uint32_t i = 0; i < a->conf.config->n_frontends; i++) {
		xds_config_put(a->frontends[i].applied);
		xds_config_put(a->frontends[i].wanted);
		lb_route_table_put(a->frontends[i].table);
		free(a->frontends[i].error);
		free(a->frontends[i].refusal);
	}
	free(a);
}

// Frontends.

static bool set_text(char **text, const char *value)
{
	char *copy = strdup(value);
	if (!copy)
		return false;
	free(*text);
	*text = copy;
	return true;
}

static void draft_frontend(struct assembler *a, uint32_t i)
{
	struct assembled_frontend *f = &a->frontends[i];
	struct lb_snapshot *s = draft(a);
	if (!s || lb_snapshot_set_frontend(s, i, f->table, f->table ? "" : f->error))
		a->redraft = true;
}

static bool is_named(const struct xds_config *config, const char *cluster)
{
	return config && xds_config_find_cluster(config, cluster);
}

static void count_users(struct assembler *a)
{
	uint32_t n = cluster_set_count(a->clusters);
	a->leaving = false;
	for (uint32_t i = 0; i < n; i++) {
		struct cluster *c = cluster_set_at(a->clusters, i);
		c->n_users = 0;
		for (uint32_t j = 0; j < a->conf.config->n_frontends; j++) {
			const struct assembled_frontend *f = &a->frontends[j];
			c->n_users += is_named(f->applied, c->name) || is_named(f->wanted, c->name);
		}
		a->leaving |= c->n_users == 0;
	}
}

static int configure_clusters(
	struct assembler *a, const struct xds_config *config, struct lb_err *reterr)
{
	for (uint32_t i = 0; i < config->n_clusters; i++) {
		uint32_t known = cluster_set_count(a->clusters);
		struct cluster *c =
			cluster_set_obtain(a->clusters, config->clusters[i].name, reterr);
		if (!c)
			return -ENOMEM;
		if (cluster_set_count(a->clusters) != known) {
			workers_cluster_totals(a->conf.workers, c->id, &c->before);
			draft_cluster(a, c->id, lb_balancer_cluster(c->balancer));
		}
		if (cluster_configure(a->clusters, c, &config->clusters[i], reterr))
			return -ENOMEM;
	}
	return 0;
}

// The table of a configuration: the one that serves, when its resource is the same. Counted.
static struct lb_route_table *table_for(const struct assembler *a,
	const struct assembled_frontend *f, const struct xds_config *config, struct lb_err *reterr)
{
	if (f->table && f->applied && f->applied->routes == config->routes &&
		f->applied->vhost == config->vhost)
		return lb_route_table_get(f->table);
	return route_compile(
		config->routes, config->vhost, a->clusters, workers_count(a->conf.workers), reterr);
}

// Whether any resource is another one.
static bool differs(const struct xds_config *a, const struct xds_config *b)
{
	if (a->listener != b->listener || a->routes != b->routes || a->n_clusters != b->n_clusters)
		return true;
	for (uint32_t i = 0; i < a->n_clusters; i++)
		if (a->clusters[i].cluster != b->clusters[i].cluster ||
			a->clusters[i].endpoints != b->clusters[i].endpoints)
			return true;
	return false;
}

// Tries to make `wanted` the configuration that serves. On failure the applied one serves on.
static void try_wanted(struct assembler *a, uint32_t i)
{
	struct assembled_frontend *f = &a->frontends[i];
	const char *name = a->conf.config->frontends[i].name;
	struct lb_err err = {.text = "out of memory"};
	struct lb_route_table *table = NULL;
	if (configure_clusters(a, f->wanted, &err) == 0)
		table = table_for(a, f, f->wanted, &err);
	if (!table || !set_text(&f->refusal, "")) {
		lb_route_table_put(table);
		f->retry_ns = twheel_now(a->conf.wheel) + RETRY_NS;
		if (strcmp(f->refusal, err.text) != 0)
			log_error("configuration refused", "frontend=%s serves=%s error=%s",
				log_quote(name), f->applied ? "the-last-good-one" : "nothing",
				log_quote(err.text));
		set_text(&f->refusal, err.text);
		if (!f->applied && set_text(&f->error, err.text))
			draft_frontend(a, i);
		return;
	}
	bool changed = !f->applied || differs(f->applied, f->wanted);
	lb_route_table_put(f->table);
	f->table = table;
	xds_config_put(f->applied);
	f->applied = f->wanted;
	f->wanted = NULL;
	draft_frontend(a, i);
	// Notes about the server's health come as configurations, too: not worth a line each.
	log_write(changed ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG, "configuration",
		"frontend=%s clusters=%u", log_quote(name), f->applied->n_clusters);
}

void assembler_update(struct assembler *a, uint32_t frontend, struct xds_config *config)
{
	struct assembled_frontend *f = &a->frontends[frontend];
	xds_config_get(config);
	xds_config_put(f->wanted);
	f->wanted = config;
	try_wanted(a, frontend);
	count_users(a);
}

void assembler_fail(struct assembler *a, uint32_t frontend, const char *text)
{
	struct assembled_frontend *f = &a->frontends[frontend];
	set_text(&f->error, text[0] ? text : "no configuration"); // else an older reason stays
	f->refusal[0] = 0;
	xds_config_put(f->applied);
	xds_config_put(f->wanted);
	f->applied = f->wanted = NULL;
	lb_route_table_put(f->table);
	f->table = NULL;
	draft_frontend(a, frontend);
	count_users(a);
}

// Each flip once, with its cause; how often an attempt fails is in `show clusters`.
static void log_flip(struct assembler *a, const struct lb_event *event)
{
	bool up = event->kind == LB_EVENT_CONNECTED;
	const struct lb_endpoint *e =
		lb_endpoint_find(lb_connectivity_endpoints(a->connectivity), event->endpoint_id);
	if (!e || event->kind == LB_EVENT_RELEASED)
		return;
	enum flip flip = up ? FLIP_UP : FLIP_DOWN;
	if (a->flips[e->id] == flip)
		return;
	a->flips[e->id] = flip;
	if (up)
		log_info("endpoint connected", "endpoint=%s", e->text);
	else
		log_warn("endpoint unreachable", "endpoint=%s event=%s cause=%s", e->text,
			event->kind == LB_EVENT_LOST ? "lost" : "failed", log_quote(event->why));
}

void assembler_event(struct assembler *a, uint32_t worker, const struct lb_event *event)
{
	log_flip(a, event);
	if (event->kind == LB_EVENT_RELEASED)
		a->flips[event->endpoint_id] = FLIP_NONE;
	lb_connectivity_event(a->connectivity, worker, event);
}

static void redraft(struct assembler *a)
{
	lb_snapshot_free(a->next);
	a->next = NULL;
	a->redraft = false;
	for (uint32_t i = 0; i < a->conf.config->n_frontends && !a->redraft; i++)
		draft_frontend(a, i);
	for (uint32_t i = 0; i < cluster_set_count(a->clusters) && !a->redraft; i++) {
		struct cluster *c = cluster_set_at(a->clusters, i);
		draft_cluster(a, c->id, lb_balancer_cluster(c->balancer));
	}
}

static void retry_wanted(struct assembler *a)
{
	bool tried = false;
	for (uint32_t i = 0; i < a->conf.config->n_frontends; i++) {
		struct assembled_frontend *f = &a->frontends[i];
		if (!f->wanted || twheel_now(a->conf.wheel) < f->retry_ns)
			continue;
		try_wanted(a, i);
		tried = true;
	}
	if (tried)
		count_users(a);
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
		if (a->redraft)
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
	retry_wanted(a);
	if (a->redraft)
		redraft(a);
	if (!a->next || a->redraft || must_hold(a))
		return;
	lb_slot_publish(a->conf.slot, a->next);
	a->next = NULL;
	a->held_since_ns = 0;
	a->n_published++;
}

bool assembler_ready(const struct assembler *a)
{
	for (uint32_t i = 0; i < a->conf.config->n_frontends; i++)
		if (!a->frontends[i].table)
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

// What a request would hear. A picker in this state looks at nothing.
static const char *why_failing(const struct lb_cluster *c)
{
	if (c->state != LB_TRANSIENT_FAILURE)
		return "";
	struct lb_pick_ctx nothing = {0};
	struct lb_pick pick = c->picker->pick(c->picker, &nothing);
	return pick.kind == LB_PICK_FAIL ? pick.text : "";
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
			.detail = why_failing(now),
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
	const struct assembled_frontend *f = &a->frontends[frontend];
	return f->table ? "" : f->error;
}

const char *assembler_frontend_refusal(const struct assembler *a, uint32_t frontend)
{
	return a->frontends[frontend].refusal;
}
