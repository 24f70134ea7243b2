// SPDX-License-Identifier: Apache-2.0
// What operators hear of clusters, endpoints and frontends.
#include "ctrl/assemble/assemble_inside.h"
#include "ctrl/assemble/cluster_set.h"
#include "ctrl/assemble/leaf_source.h"
#include "ctrl/assemble/members.h"
#include "ctrl/assemble/overrides.h"
#include "ctrl/assemble/route_compile.h"
#include "ctrl/base/stats_proto.h"
#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "lb/base/twheel.h"
#include "lb/cluster.h"
#include "lb/member/connectivity.h"
#include "lb/pick/affinity_map.h"
#include "lb/pick/breaker.h"
#include "lb/pick/drop.h"
#include "lb/pick/leaf_picker.h"
#include "lb/pick/limits.h"
#include "lb/pick/link.h"
#include "lb/pick/picker.h"
#include "lb/route/req.h"
#include "lb/route/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Endpoints.

#define CHECK_ERROR_MAX (LB_PROBE_WHY_MAX + 32)

struct endpoint_walk {
	const struct assembler *a;
	void (*fn)(void *ctx, const struct assembler_endpoint_info *);
	void *ctx;
	uint32_t n_skipped, n_left; // before the first one; of those that are told
};

static uint64_t connections_to(const struct assembler *a, const struct ip_port *address)
{
	const struct lb_endpoint_table *all = lb_connectivity_endpoints(a->connectivity);
	uint64_t n = 0;
	for (const struct lb_endpoint *e = NULL; (e = lb_endpoint_next_of(all, address, e));)
		for (uint32_t w = 0; w < workers_count(a->conf.workers); w++)
			n += counter_read(
				&workers_link(a->conf.workers, w)->endpoints[e->id].connections);
	return n;
}

static const char *health_name(enum lb_leaf_health health)
{
	static const char *const names[] = {
		"UNKNOWN", "HEALTHY", "UNHEALTHY", "DRAINING", "TIMEOUT", "DEGRADED"};
	return health < sizeof(names) / sizeof(names[0]) ? names[health] : "UNKNOWN";
}

// Of new requests: a cluster without any such endpoint keeps the connection of its last one.
static bool serves(enum lb_leaf_health health)
{
	return health == LB_LEAF_UNKNOWN || health == LB_LEAF_HEALTHY;
}

// What an operator reads of one that is connected and gets no requests.
static const char *check_error(const struct lb_health_record *r, char text[CHECK_ERROR_MAX])
{
	if (r->health != LB_MEMBER_UNHEALTHY)
		return "";
	snprintf(text, CHECK_ERROR_MAX, "failed active health check: %s", r->why);
	return text;
}

static void tell_endpoint(struct endpoint_walk *w, const struct leaf_source *s,
	const struct lb_leaf *leaf, uint32_t i, struct assembler_endpoint_info *info)
{
	const struct lb_leaf_endpoint e = lb_leaf_endpoints_at(s->list, i);
	const struct lb_member *m = leaf ? lb_leaf_member(leaf, e.addresses, e.n_addresses) : NULL;
	char error[CHECK_ERROR_MAX];
	info->leaf = s->name;
	info->addresses = e.addresses;
	info->n_addresses = e.n_addresses;
	info->proxy = s->cluster->uses_proxies && e.proxy.port ? &e.proxy : NULL;
	info->health = health_name(e.health);
	info->weight = e.weight;
	info->override =
		overrides_find(w->a->tree_env.overrides, s->name, e.addresses, e.n_addresses);
	info->state = m ? lb_member_raw_state(m) : LB_IDLE;
	info->is_up = m && lb_member_state(m) == LB_READY && serves(e.health);
	info->is_failing = m && lb_member_state(m) == LB_TRANSIENT_FAILURE;
	info->is_ejected = m && lb_member_is_ejected(m);
	info->last_error = m ? lb_member_last_error(m) : "";
	info->record = (struct lb_leaf_record){0};
	if (m)
		lb_leaf_look(leaf, m, &info->record);
	if (info->record.health.health == LB_MEMBER_UNHEALTHY)
		info->health = health_name(LB_LEAF_UNHEALTHY);
	if (!*info->last_error)
		info->last_error = check_error(&info->record.health, error);
	info->totals = (struct member_totals){0};
	info->connections = 0;
	if (m)
		members_totals(w->a->members, lb_member_id(m), &info->totals);
	for (uint32_t k = 0; k < e.n_addresses; k++)
		info->connections += connections_to(w->a, &e.addresses[k]);
	w->fn(w->ctx, info);
}

// n endpoints that stand one behind the other.
static void tell_run(struct endpoint_walk *w, const struct leaf_source *s,
	const struct lb_leaf *leaf, uint32_t first, uint32_t n,
	struct assembler_endpoint_info *info)
{
	uint32_t skip = n < w->n_skipped ? n : w->n_skipped;
	w->n_skipped -= skip;
	for (uint32_t k = skip; k < n && w->n_left; k++, w->n_left--)
		tell_endpoint(w, s, leaf, first + k, info);
}

static void tell_leaf(void *ctx, const struct leaf_source *s, struct lb_leaf *leaf)
{
	const struct lb_leaf_endpoints *e = s->endpoints ? s->list : NULL;
	struct assembler_endpoint_info info = {
		.ignores_weight = leaf && lb_leaf_ignores_weights(leaf)};
	for (uint32_t i = 0; e && i < e->n_spans; i++) {
		const struct lb_leaf_span *span = &e->spans[i];
		while (lb_leaf_endpoints_ends(e)[info.priority] <= i)
			info.priority++;
		info.locality = span->name;
		info.locality_weight = span->weight;
		tell_run(ctx, s, leaf, span->first, span->n_serving + span->n_draining, &info);
		tell_run(ctx, s, leaf, span->first_unused, span->n_unused, &info);
	}
}

static void each_endpoint(const struct assembler *a, const struct cluster *c,
	void (*fn)(void *ctx, const struct assembler_endpoint_info *), void *ctx)
{
	struct endpoint_walk w = {a, fn, ctx, 0, UINT32_MAX};
	cluster_tree_each_leaf(c->tree, tell_leaf, &w);
}

uint32_t assembler_some_endpoints(const struct assembler *a, const char *cluster, uint32_t from,
	uint32_t n, void (*fn)(void *ctx, const struct assembler_endpoint_info *), void *ctx)
{
	struct endpoint_walk w = {a, fn, ctx, from, n};
	const struct cluster *c = cluster_set_find(a->clusters, cluster);
	if (c)
		cluster_tree_each_leaf(c->tree, tell_leaf, &w);
	return n - w.n_left;
}

void assembler_each_endpoint(const struct assembler *a, const char *cluster,
	void (*fn)(void *ctx, const struct assembler_endpoint_info *), void *ctx)
{
	const struct cluster *c = cluster_set_find(a->clusters, cluster);
	if (c)
		each_endpoint(a, c, fn, ctx);
}

struct id_walk {
	const struct assembler *a;
	const char *cluster;
	void (*fn)(void *ctx, const char *cluster, uint32_t id);
	void *ctx;
};

static void tell_ids(void *ctx, const struct leaf_source *s, struct lb_leaf *leaf)
{
	const struct id_walk *w = ctx;
	const struct lb_endpoint_table *all = lb_connectivity_endpoints(w->a->connectivity);
	const struct lb_leaf_endpoints *list = s->endpoints ? s->endpoints->list : NULL;
	for (uint32_t i = 0; list && i < list->n_addresses; i++)
		for (const struct lb_endpoint *e = NULL;
			(e = lb_endpoint_next_of(all, &list->addresses[i], e));)
			w->fn(w->ctx, w->cluster, e->id);
}

void assembler_each_endpoint_id(const struct assembler *a, const char *cluster,
	void (*fn)(void *ctx, const char *cluster, uint32_t id), void *ctx)
{
	for (uint32_t i = 0; i < cluster_set_count(a->clusters); i++) {
		const struct cluster *c = cluster_set_at(a->clusters, i);
		struct id_walk w = {a, c->name, fn, ctx};
		if (!cluster || strcmp(cluster, c->name) == 0)
			cluster_tree_each_leaf(c->tree, tell_ids, &w);
	}
}

// Picks.

#define SCRATCH_SIZE ((size_t)2 * STATS_MAX_COMMAND) // a command's header values fit, joined

// ERR-01: what stands above the picker says no, in the words of workers, but that a breaker may be
// full of places that these keep (lb/pick/quota_cache.h). Good until it is asked again. NULL =
// nothing does.
static const char *why_refused(const struct lb_leaf_layer *layer)
{
	static char text[512]; // ctrl's
	uint32_t category = layer ? lb_drops_total(layer->drops) : LB_DROP_NONE;
	if (category != LB_DROP_NONE)
		snprintf(text, sizeof(text), "cluster %s: EDS-configured drop: %s", layer->name,
			lb_drops_name(layer->drops, category));
	else if (layer && lb_breaker_in_flight(layer->breaker) >= layer->max_requests)
		snprintf(text, sizeof(text),
			"cluster %s: circuit breaker drop: %u requests are in flight or have their "
			"places kept by workers, the maximum",
			layer->name, layer->max_requests);
	else
		return NULL;
	return text;
}

// What the picker says to a worker that is connected to every endpoint.
static struct lb_pick ask(const struct assembler *a, const struct lb_picker *picker,
	const struct lb_req *req, struct lb_pick_hash hash)
{
	static const uint64_t all[LB_MAX_ENDPOINTS / 64] = {
		[0 ... LB_MAX_ENDPOINTS / 64 - 1] = UINT64_MAX};
	const char *refused = why_refused(lb_leaf_layer(picker));
	if (refused)
		return (struct lb_pick){.kind = LB_PICK_FAIL, .text = refused};
	char scratch[SCRATCH_SIZE];
	struct rand rand;
	rand_init(&rand, twheel_now(a->conf.wheel));
	struct lb_pick_ctx ctx = {.req = req,
		.rand = &rand,
		.ready = all,
		.hash = &hash,
		.scratch = scratch,
		.scratch_size = sizeof(scratch),
		.positions = a->positions,
		.active = workers_link(a->conf.workers, 0)->shared->active};
	return lb_pick(picker, &ctx);
}

struct lb_pick assembler_pick(const struct assembler *a, const char *name, const struct lb_req *req,
	const struct lb_pick_hash *hash)
{
	const struct cluster *c = cluster_set_find(a->clusters, name);
	if (!c)
		return (struct lb_pick){.kind = LB_PICK_FAIL, .text = "no such cluster"};
	return ask(a, cluster_tree_object(c->tree)->picker, req, *hash);
}

void assembler_each_drop(const struct assembler *a, const char *name,
	void (*fn)(void *ctx, const char *category, double chance), void *ctx)
{
	const struct cluster *c = cluster_set_find(a->clusters, name);
	const struct lb_leaf_layer *layer =
		c ? lb_leaf_layer(cluster_tree_object(c->tree)->picker) : NULL;
	const struct lb_drops *drops = layer ? layer->drops : NULL;
	for (uint32_t i = 0; drops && i < lb_drops_count(drops); i++)
		fn(ctx, lb_drops_name(drops, i), lb_drops_chance(drops, i));
}

bool assembler_session_endpoint(
	const struct assembler *a, const char *name, struct str addresses, struct ip_port *ret)
{
	struct ip_port list[LB_SESSION_MAX_ADDRESSES];
	const struct cluster *c = cluster_set_find(a->clusters, name);
	const struct lb_leaf_layer *layer =
		c ? lb_leaf_layer(cluster_tree_object(c->tree)->picker) : NULL;
	if (!layer || !layer->sessions)
		return false;
	uint32_t n = (uint32_t)lb_session_addresses(addresses, list);
	struct lb_affinity_host host;
	switch (lb_affinity_map_pick(layer->sessions, list, n, &host)) {
	case LB_AFFINITY_CHILD:
		return false;
	case LB_AFFINITY_USE:
		*ret = host.state->endpoint->addr;
		return true;
	case LB_AFFINITY_QUEUE:
	case LB_AFFINITY_CONNECT:
		break;
	}
	// Nobody is connected yet: the first that may be it.
	for (uint32_t i = 0; i < n; i++) {
		*ret = list[i];
		if (lb_affinity_map_find(layer->sessions, ret, &host) && host.is_target &&
			!host.state->is_barred)
			return true;
	}
	return false;
}

// Clusters.

static void count_endpoint(void *ctx, const struct assembler_endpoint_info *e)
{
	struct assembler_cluster_info *info = ctx;
	info->n_endpoints++;
	info->n_ready += e->is_up;
	info->n_failing += e->is_failing;
	info->n_ejected += e->is_ejected;
	info->n_unhealthy += e->record.health.health == LB_MEMBER_UNHEALTHY;
	info->connections += e->connections;
}

const char *assembler_why_failing(const void *ctx, const struct lb_cluster *c)
{
	const struct assembler *a = ctx;
	const struct lb_req any = {0};
	if (c->state != LB_TRANSIENT_FAILURE)
		return "";
	struct lb_pick pick = ask(a, c->picker, &any, (struct lb_pick_hash){0});
	return pick.kind == LB_PICK_FAIL ? pick.text : "";
}

// But for its endpoints.
static void describe_cluster(
	const struct assembler *a, const struct cluster *c, struct assembler_cluster_info *ret)
{
	const struct lb_cluster *now = cluster_tree_object(c->tree);
	*ret = (struct assembler_cluster_info){
		.name = c->name,
		.id = c->id,
		.state = now->state,
		.detail = assembler_why_failing(a, now),
		.leaving = c->n_users == 0,
	};
	const struct lb_leaf_layer *layer = lb_leaf_layer(now->picker);
	if (layer) {
		ret->in_flight = lb_breaker_in_flight(layer->breaker);
		ret->max_requests = layer->max_requests;
	}
	ret->tls = cluster_tree_tls(c->tree);
	if (!*ret->detail)
		ret->detail = cluster_tree_trouble(c->tree);
	if (!*ret->detail)
		ret->detail = cluster_tree_tls_error(c->tree);
	cluster_tree_count(c->tree, &ret->counts);
	workers_cluster_totals(a->conf.workers, c->id, &ret->totals);
	if (c->before)
		cluster_totals_since(&ret->totals, &c->before->totals);
}

static void describe(
	const struct assembler *a, const struct cluster *c, struct assembler_cluster_info *ret)
{
	describe_cluster(a, c, ret);
	each_endpoint(a, c, count_endpoint, ret);
}

void assembler_each_cluster(const struct assembler *a,
	void (*fn)(void *ctx, const struct assembler_cluster_info *), void *ctx)
{
	for (uint32_t i = 0; i < cluster_set_count(a->clusters); i++) {
		struct assembler_cluster_info info;
		describe(a, cluster_set_at(a->clusters, i), &info);
		fn(ctx, &info);
	}
}

bool assembler_next_cluster(
	const struct assembler *a, const char *after, struct assembler_cluster_info *ret)
{
	uint32_t i = cluster_set_after(a->clusters, after);
	if (i == cluster_set_count(a->clusters))
		return false;
	describe(a, cluster_set_at(a->clusters, i), ret);
	return true;
}

const char *assembler_cluster_after(const struct assembler *a, const char *after)
{
	uint32_t i = cluster_set_after(a->clusters, after);
	return i < cluster_set_count(a->clusters) ? cluster_set_at(a->clusters, i)->name : NULL;
}

bool assembler_cluster_times(
	const struct assembler *a, const char *name, struct lb_cluster_times *ret)
{
	const struct cluster *c = cluster_set_find(a->clusters, name);
	if (!c)
		return false;
	workers_cluster_times(a->conf.workers, c->id, ret);
	if (c->before)
		cluster_times_since(ret, &c->before->times);
	return true;
}

bool assembler_find_cluster(
	const struct assembler *a, const char *name, struct assembler_cluster_info *ret)
{
	const struct cluster *c = cluster_set_find(a->clusters, name);
	if (c)
		describe(a, c, ret);
	return c;
}

bool assembler_find_without_endpoints(
	const struct assembler *a, const char *name, struct assembler_cluster_info *ret)
{
	const struct cluster *c = cluster_set_find(a->clusters, name);
	if (c)
		describe_cluster(a, c, ret);
	return c;
}

bool assembler_dump_tree(const struct assembler *a, const char *cluster, struct lb_dump *d)
{
	const struct cluster *c = cluster_set_find(a->clusters, cluster);
	if (c)
		cluster_tree_dump(c->tree, d);
	return c;
}

const struct vhost_numbers *assembler_vhost_numbers(const struct assembler *a)
{
	return a->numbers;
}

// Frontends.

const char *assembler_frontend_error(const struct assembler *a, uint32_t frontend)
{
	return assembled_frontend_error(&a->frontends[frontend]);
}

const char *assembler_frontend_refusal(const struct assembler *a, uint32_t frontend)
{
	return assembled_frontend_refusal(&a->frontends[frontend]);
}

const char *assembler_frontend_waiting(const struct assembler *a, uint32_t frontend)
{
	return assembled_frontend_waiting(&a->frontends[frontend]);
}

bool assembler_frontend_routes(
	const struct assembler *a, uint32_t frontend, struct assembler_routes *ret)
{
	return assembled_frontend_routes(&a->frontends[frontend], ret);
}

const char *assembled_frontend_error(const struct assembled_frontend *f)
{
	return f->routes || f->serves_chains ? "" : f->error;
}

// Whose news operators hear, as in ctrl/frontends.c.
static const struct assembled_frontend *newest(const struct assembled_frontend *f)
{
	return f->next ? f->next : f;
}

const char *assembled_frontend_refusal(const struct assembled_frontend *f)
{
	return newest(f)->refusal;
}

const char *assembled_frontend_waiting(const struct assembled_frontend *f)
{
	f = newest(f);
	return !f->waits ? "" : f->goes_on ? "compiling routes" : "compiling regular expressions";
}

bool assembled_frontend_routes(const struct assembled_frontend *f, struct assembler_routes *ret)
{
	if (!f->applied)
		return false;
	*ret = (struct assembler_routes){
		f->applied, compiled_routes_table(f->routes), f->filters, f->actions};
	return true;
}
