// SPDX-License-Identifier: Apache-2.0
#include "ctrl/deps/depmgr.h"

#include "ctrl/deps/compose.h"
#include "ctrl/deps/config.h"
#include "ctrl/deps/dns_source.h"
#include "ctrl/deps/leaves.h"
#include "ctrl/deps/nodes.h"
#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "lb/base/check.h"
#include "lb/base/twheel.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_NAMES_SHOWN 5 // of what is missing
#define RETRY_NS 1000000000ull // after running out of memory
// What waits holds newer endpoints of what serves up no longer: most often it is there sooner.
#define MEANWHILE_NS 1000000000ull
// What no server can be asked for holds up what others say no longer than what is absent (FM-04).
#define PATIENCE_NS 15000000000ull
#define IN_USE_INTERVAL_NS 1000000000ull // of clusters that requests hold
#define REFRESH_INTERVAL_NS 1000000000ull // many connections fail at once
// A configuration is made as a whole, so that many changes of a large one would take the square of
// its size: the next one rests for several times as long as this one took. Small ones need none.
#define REST_FROM_CLUSTERS 1000
#define REST_NS_PER_CLUSTER 10000ull

enum outcome {
	WAITING, // something has neither a value nor an error yet
	FAILED, // no usable listener or routes
	STARVED, // no memory to find out: the last config serves on
	COMPLETE,
};

// What a walk found out.
struct found {
	enum outcome outcome; // never mind what is not resolved yet
	struct res_route_config *routes; // COMPLETE: borrowed from the nodes
	int32_t vhost;
	uint32_t n_held; // clusters that only requests need
	char *error; // FAILED: owned; NULL = no memory even for that
};

// A cluster that is subscribed to, however often.
struct depmgr_sub {
	struct depmgr_sub *next;
	struct depmgr *dm;
	uint32_t n_refs;
	char name[];
};

struct depmgr {
	struct depmgr_conf conf;
	struct depmgr_sub *subs;
	char *listener_name, *authority, *node_id;
	struct nodes nodes;
	struct node *listener; // in nodes, always
	struct node *routes; // in nodes; NULL = inline, or not known yet
	struct xds_settled settled;
	struct twheel_timer kick;
	struct twheel_timer retry;
	struct twheel_timer refresh; // of names
	struct twheel_timer patience; // with servers that can't be reached
	struct twheel_timer meanwhile; // newer endpoints of what serves
	bool keeps; // clusters of what serves that the next configuration does not need
	struct twheel_timer in_use; // asks whether requests hold clusters still
	uint64_t refreshed_ns; // the last time; 0 = never
	uint64_t rest_until_ns;
	struct found found;
	bool busy; // a pass is running
	struct xds_config *config; // counted; the last delivered one; NULL = none
	char *error; // the last delivered one; NULL = none
	char *waiting, *refused; // for operators
};

static void set_text(char **at, char *text)
{
	free(*at);
	*at = text;
}

// One pass

static enum outcome fail(char **reterr, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static enum outcome fail(char **reterr, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	if (vasprintf(reterr, fmt, args) < 0)
		*reterr = NULL;
	va_end(args);
	return FAILED;
}

static const char *error_of(const struct node *n)
{
	return n->error ? n->error : "no memory";
}

// DM-02, DM-25: only the routes that the current listener names are of interest.
static enum outcome reach_routes(struct depmgr *dm, struct res_route_config **ret, char **reterr)
{
	if (dm->listener->failed)
		return fail(reterr, "%s", error_of(dm->listener));
	if (!dm->listener->res)
		return WAITING;
	const struct res_listener *l = res_listener_from(dm->listener->res);
	if (!l->is_api)
		return fail(reterr, "listener \"%s\" is a socket listener, which serves no target",
			dm->listener_name);
	if (l->routes) {
		dm->routes = NULL;
		*ret = l->routes;
		return COMPLETE;
	}
	if (!dm->routes || strcmp(node_name(dm->routes), l->rds_name) != 0)
		dm->routes = node_new(&dm->nodes, &res_type_route_config, l->rds_name, NULL);
	if (!dm->routes)
		return STARVED;
	dm->routes->pass = dm->nodes.pass;
	if (dm->routes->failed)
		return fail(reterr, "%s", error_of(dm->routes));
	if (!dm->routes->res)
		return WAITING;
	*ret = res_route_config_from(dm->routes->res);
	return COMPLETE;
}

// Clusters, in order of their distance from the routes.
struct level {
	struct node *first; // by next_reached
};

// False = no memory.
static bool reach_cluster(
	struct depmgr *dm, const char *name, struct level *level, struct node **ret)
{
	struct node *n = node_find(&dm->nodes.clusters, name);
	if (!n || n->pass != dm->nodes.pass) {
		n = node_reach(&dm->nodes, &res_type_cluster, name, &dm->nodes.clusters);
		if (!n)
			return false;
		cluster_node_of(n)->next_reached = level->first;
		level->first = n;
	}
	*ret = n;
	return true;
}

// What one cluster needs. False = no memory.
static bool reach_beyond(struct depmgr *dm, struct node *n, bool deeper, struct level *next)
{
	if (node_resolve_name(n))
		return false;
	const struct res_cluster *c = n->res ? res_cluster_from(n->res) : NULL;
	if (!c)
		return true;
	if (c->kind == RES_CLUSTER_EDS)
		return node_reach(
			&dm->nodes, &res_type_endpoints, c->eds_name, &dm->nodes.endpoints);
	struct node *child;
	for (uint32_t i = 0; deeper && i < c->n_children; i++)
		if (!reach_cluster(dm, c->children[i], next, &child))
			return false;
	return true;
}

// Breadth first: whatever is less than the forbidden depth below any route is reached at its least
// depth, and once. Faulty graphs stay watched, or their repair would not be seen. False = no
// memory.
static bool reach_levels(struct depmgr *dm, struct level *level)
{
	for (unsigned depth = 0; level->first; depth++) {
		struct level next = {NULL};
		for (struct node *n = level->first; n; n = cluster_node_of(n)->next_reached)
			if (!reach_beyond(dm, n, depth + 1 < LEAVES_MAX_DEPTH, &next))
				return false;
		*level = next;
	}
	return true;
}

static bool reach_vhost(struct depmgr *dm, const struct res_vhost *v, struct level *roots)
{
	struct node *root;
	for (uint32_t r = 0; r < v->n_routes; r++) {
		for (uint32_t c = 0; c < v->routes[r].n_clusters; c++) {
			if (!reach_cluster(dm, v->routes[r].clusters[c].name, roots, &root))
				return false;
			cluster_node_of(root)->root_pass = dm->nodes.pass;
		}
	}
	return true;
}

// DM-03, or DESIGN 3.10 without a pinned authority.
static enum outcome reach_clusters(
	struct depmgr *dm, const struct res_route_config *routes, int32_t *ret_vhost, char **reterr)
{
	int vhost = -1;
	if (dm->authority) {
		vhost = res_route_config_choose(routes, dm->authority);
		if (vhost == -ENOMEM)
			return STARVED;
		if (vhost < 0)
			return fail(reterr,
				"route configuration \"%s\" has no virtual host for \"%s\"",
				routes->base.name, dm->authority);
	}
	struct level level = {NULL};
	for (uint32_t i = 0; i < routes->n_vhosts; i++)
		if (vhost < 0 || i == (uint32_t)vhost)
			if (!reach_vhost(dm, &routes->vhosts[i], &level))
				return STARVED;
	if (!reach_levels(dm, &level))
		return STARVED;
	*ret_vhost = vhost;
	return COMPLETE;
}

// True = nothing else needs it.
static bool hold(struct depmgr *dm, struct node *n, struct level *level)
{
	cluster_node_of(n)->held_pass = dm->nodes.pass;
	if (n->pass == dm->nodes.pass)
		return false;
	n->pass = dm->nodes.pass;
	cluster_node_of(n)->next_reached = level->first;
	level->first = n;
	return true;
}

// DM-20. False = no memory.
static bool hold_subscribed(struct depmgr *dm, struct level *level)
{
	for (struct depmgr_sub *s = dm->subs; s; s = s->next) {
		struct node *n = node_find(&dm->nodes.clusters, s->name);
		if (!n)
			n = node_new(&dm->nodes, &res_type_cluster, s->name, &dm->nodes.clusters);
		if (!n)
			return false;
		hold(dm, n, level);
	}
	return true;
}

// DM-22: what was a root and is none any more, while requests that chose it are under way; and what
// somebody subscribes to. *ret_n is how many requests alone hold.
static enum outcome reach_held(struct depmgr *dm, uint32_t *ret_n)
{
	uint64_t pass = dm->nodes.pass;
	struct level level = {NULL};
	*ret_n = 0;
	for (struct node *n = dm->nodes.all; n; n = n->next) {
		struct cluster_node *c = node_is_cluster(n) ? cluster_node_of(n) : NULL;
		if (c && c->root_pass == pass) {
			c->was_root = true;
		} else if (c && c->was_root) {
			c->was_root =
				dm->conf.in_use && dm->conf.in_use(dm->conf.ctx, node_name(n));
			if (c->was_root)
				*ret_n += hold(dm, n, &level);
		}
	}
	dm->nodes.holding = true;
	bool ok = hold_subscribed(dm, &level) && reach_levels(dm, &level);
	dm->nodes.holding = false;
	return ok ? COMPLETE : STARVED;
}

// Of what serves nothing is forgotten before another configuration takes its place; until then, and
// so then, requests choose its clusters (DM-22).
static void keep_last(struct depmgr *dm)
{
	for (uint32_t i = 0; i < dm->config->n_clusters; i++) {
		const struct xds_cluster_config *k = &dm->config->clusters[i];
		const struct res_cluster *c = k->cluster;
		struct node *kept[] = {node_find(&dm->nodes.clusters, k->name),
			c && c->kind == RES_CLUSTER_EDS
				? node_find(&dm->nodes.endpoints, c->eds_name)
				: NULL};
		if (kept[0] && k->is_root)
			cluster_node_of(kept[0])->was_root = true;
		for (int n = 0; n < 2; n++) {
			if (!kept[n] || kept[n]->pass == dm->nodes.pass)
				continue;
			kept[n]->pass = dm->nodes.pass;
			dm->keeps = true;
		}
	}
}

static bool is_missing_something(const struct depmgr *dm)
{
	for (const struct node *n = dm->nodes.all; n; n = n->next)
		if (n->waited_pass == dm->nodes.pass && node_is_missing_something(n))
			return true;
	return false;
}

// Everything that the listener reaches, by value or by name.
static void walk(struct depmgr *dm)
{
	struct found f = {0};
	uint64_t pass = ++dm->nodes.pass;
	dm->listener->pass = pass;
	f.outcome = reach_routes(dm, &f.routes, &f.error);
	if (f.outcome == COMPLETE)
		f.outcome = reach_clusters(dm, f.routes, &f.vhost, &f.error);
	if (f.outcome == COMPLETE)
		f.outcome = reach_held(dm, &f.n_held);
	// What is needed is not known yet: all that was needed may still be.
	if (f.outcome == WAITING || f.outcome == STARVED)
		for (struct node *n = dm->nodes.all; n; n = n->next)
			if (n->type != &res_type_route_config)
				n->pass = pass;
	dm->keeps = false;
	if (f.outcome == COMPLETE && dm->config && is_missing_something(dm))
		keep_last(dm);
	if (dm->routes && dm->routes->pass != pass)
		dm->routes = NULL; // swept
	nodes_sweep(&dm->nodes);
	for (struct node *n = dm->nodes.all; n; n = n->next)
		node_set_waited(n, f.outcome != COMPLETE || n->waited_pass == pass);
	free(dm->found.error);
	dm->found = f;
}

static void deliver_error(struct depmgr *dm, const char *text)
{
	twheel_cancel(dm->conf.wheel, &dm->meanwhile);
	if (!dm->config && dm->error && strcmp(dm->error, text) == 0)
		return;
	xds_config_put(dm->config);
	dm->config = NULL;
	dm->nodes.serving = false;
	nodes_give_up(&dm->nodes);
	set_text(&dm->error, strdup(text));
	dm->conf.on_error(dm->conf.ctx, text);
}

// The config is counted for the manager.
static void put_in_use(struct depmgr *dm, struct xds_config *config)
{
	if (config->n_clusters >= REST_FROM_CLUSTERS)
		dm->rest_until_ns =
			twheel_now(dm->conf.wheel) + config->n_clusters * REST_NS_PER_CLUSTER;
	if (dm->config && xds_config_eq(dm->config, config)) {
		xds_config_put(config);
		return;
	}
	xds_config_put(dm->config);
	dm->config = config;
	dm->nodes.serving = true;
	set_text(&dm->error, NULL);
	dm->conf.on_update(dm->conf.ctx, config);
}

// DM-05, DM-29: a change is delivered once, equal content not at all. False = no memory.
static bool deliver(struct depmgr *dm)
{
	struct xds_config *config = compose(&(struct composition){
		.nodes = &dm->nodes,
		.n_clusters = nodes_take(&dm->nodes),
		.listener = dm->listener,
		.route_node = dm->routes,
		.routes = dm->found.routes,
		.vhost = dm->found.vhost,
		.node_id = dm->node_id,
		.last = dm->config,
	});
	if (!config)
		return false;
	twheel_cancel(dm->conf.wheel, &dm->meanwhile);
	put_in_use(dm, config);
	if (dm->keeps) // no longer: the next pass sweeps them
		dm->nodes.dirty = dm->nodes.reshaped = true;
	return true;
}

// Unlike DM-05, by which nothing is delivered while anything is missing: endpoints that are gone
// serve nobody, and a cluster that never comes would hold all others to theirs.
static void meanwhile_fired(struct twheel_timer *t)
{
	struct depmgr *dm = (struct depmgr *)((char *)t - offsetof(struct depmgr, meanwhile));
	const struct composition in = {
		.nodes = &dm->nodes,
		.listener = dm->listener,
		.route_node = dm->routes,
		.node_id = dm->node_id,
		.last = dm->config,
	};
	struct xds_config *config;
	if (compose_meanwhile(&in, &config))
		twheel_arm(dm->conf.wheel, t, twheel_now(dm->conf.wheel) + RETRY_NS);
	else if (config)
		put_in_use(dm, config);
}

static void reconcile_later(struct depmgr *dm)
{
	uint64_t now_ns = twheel_now(dm->conf.wheel);
	twheel_arm(
		dm->conf.wheel, &dm->kick, now_ns < dm->rest_until_ns ? dm->rest_until_ns : now_ns);
}

// As long as nothing at all comes in, there is nothing that could be held up.
static void be_patient(struct depmgr *dm)
{
	if (dm->nodes.n_withheld == 0)
		twheel_cancel(dm->conf.wheel, &dm->patience);
	else if (dm->nodes.heard && !twheel_armed(&dm->patience))
		twheel_arm(dm->conf.wheel, &dm->patience, twheel_now(dm->conf.wheel) + PATIENCE_NS);
	if (dm->nodes.n_unresolved[true] == 0) // all is delivered
		dm->nodes.heard = false;
}

static void reconcile(struct depmgr *dm)
{
	if (dm->busy)
		return;
	dm->busy = true;
	do { // a watch that fails at once comes back as an event
		xds_federation_begin(dm->conf.client);
		if (dm->nodes.reshaped)
			walk(dm);
		// The walk has read what came inside it.
		dm->nodes.dirty = dm->nodes.reshaped = false;
		xds_federation_end(dm->conf.client);
	} while (dm->nodes.dirty);
	bool starved = dm->found.outcome == STARVED;
	if (dm->found.outcome == FAILED)
		deliver_error(dm, dm->found.error ? dm->found.error : "no memory");
	else if (dm->found.outcome == COMPLETE && dm->nodes.n_unresolved[true] == 0)
		starved = !deliver(dm);
	else if (dm->config && !twheel_armed(&dm->meanwhile))
		twheel_arm(
			dm->conf.wheel, &dm->meanwhile, twheel_now(dm->conf.wheel) + MEANWHILE_NS);
	dm->busy = false;
	twheel_cancel(dm->conf.wheel, &dm->retry);
	if (starved) { // no event may ever come: the server has said everything
		dm->nodes.reshaped = true;
		twheel_arm(dm->conf.wheel, &dm->retry, twheel_now(dm->conf.wheel) + RETRY_NS);
	}
	if (dm->found.n_held && !twheel_armed(&dm->in_use))
		twheel_arm(dm->conf.wheel, &dm->in_use,
			twheel_now(dm->conf.wheel) + IN_USE_INTERVAL_NS);
	be_patient(dm);
	if (dm->nodes.dirty)
		reconcile_later(dm);
}

static void on_settled(struct xds_settled *s)
{
	struct depmgr *dm = (struct depmgr *)((char *)s - offsetof(struct depmgr, settled));
	if (!dm->nodes.dirty || twheel_armed(&dm->kick))
		return;
	if (twheel_now(dm->conf.wheel) < dm->rest_until_ns)
		reconcile_later(dm);
	else
		reconcile(dm);
}

static void kick_fired(struct twheel_timer *t)
{
	reconcile((struct depmgr *)((char *)t - offsetof(struct depmgr, kick)));
}

static void retry_fired(struct twheel_timer *t)
{
	reconcile((struct depmgr *)((char *)t - offsetof(struct depmgr, retry)));
}

static void patience_fired(struct twheel_timer *t)
{
	struct depmgr *dm = (struct depmgr *)((char *)t - offsetof(struct depmgr, patience));
	nodes_give_up(&dm->nodes);
	dm->nodes.heard = false; // what routes still hold up must wait for them
	reconcile(dm);
}

static void in_use_fired(struct twheel_timer *t)
{
	struct depmgr *dm = (struct depmgr *)((char *)t - offsetof(struct depmgr, in_use));
	dm->nodes.reshaped = true;
	reconcile(dm);
}

// All that is found out in one turn of the wheel is one event.
static void on_news(struct nodes *nodes)
{
	struct depmgr *dm = (struct depmgr *)((char *)nodes - offsetof(struct depmgr, nodes));
	if (!dm->busy)
		reconcile_later(dm);
}

static void refresh_names(struct depmgr *dm)
{
	dm->refreshed_ns = twheel_now(dm->conf.wheel);
	for (const struct node *n = dm->nodes.all; n; n = n->next)
		if (n->dns)
			dns_source_refresh(n->dns);
}

static void refresh_fired(struct twheel_timer *t)
{
	refresh_names((struct depmgr *)((char *)t - offsetof(struct depmgr, refresh)));
}

void depmgr_reresolve(struct depmgr *dm)
{
	uint64_t at_ns = dm->refreshed_ns ? dm->refreshed_ns + REFRESH_INTERVAL_NS : 0;
	if (twheel_armed(&dm->refresh))
		return;
	if (twheel_now(dm->conf.wheel) < at_ns)
		twheel_arm(dm->conf.wheel, &dm->refresh, at_ns);
	else
		refresh_names(dm);
}

struct depmgr_sub *depmgr_subscribe(struct depmgr *dm, const char *cluster)
{
	struct depmgr_sub *s = dm->subs;
	while (s && strcmp(s->name, cluster) != 0)
		s = s->next;
	if (!s) {
		size_t size = strlen(cluster) + 1;
		s = calloc(1, sizeof(*s) + size);
		if (!s)
			return NULL;
		memcpy(s->name, cluster, size);
		s->dm = dm;
		s->next = dm->subs;
		dm->subs = s;
		dm->nodes.dirty = dm->nodes.reshaped = true;
		reconcile_later(dm);
	}
	s->n_refs++;
	return s;
}

void depmgr_unsubscribe(struct depmgr_sub **sub)
{
	struct depmgr_sub *s = *sub;
	*sub = NULL;
	if (!s || --s->n_refs > 0)
		return;
	struct depmgr *dm = s->dm;
	struct depmgr_sub **at = &dm->subs;
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	free(s);
	dm->nodes.dirty = dm->nodes.reshaped = true;
	reconcile_later(dm);
}

struct depmgr *depmgr_new(const struct depmgr_conf *conf)
{
	struct depmgr *dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;
	dm->conf = *conf;
	dm->nodes = (struct nodes){
		.client = conf->client,
		.dns = conf->dns,
		.reshaped = true,
		.on_news = on_news,
	};
	dm->settled.fn = on_settled;
	dm->kick.fire = kick_fired;
	dm->retry.fire = retry_fired;
	dm->refresh.fire = refresh_fired;
	dm->patience.fire = patience_fired;
	dm->meanwhile.fire = meanwhile_fired;
	dm->in_use.fire = in_use_fired;
	dm->listener_name = strdup(conf->listener_name);
	dm->node_id = strdup(conf->node_id);
	dm->authority = conf->authority ? strdup(conf->authority) : NULL;
	xds_federation_add_settled(conf->client, &dm->settled);
	// What is cached is acted on in the first turn of the wheel, not inside this call.
	twheel_arm(conf->wheel, &dm->kick, twheel_now(conf->wheel));
	if (dm->listener_name && dm->node_id && (dm->authority || !conf->authority))
		dm->listener = node_new(&dm->nodes, &res_type_listener, dm->listener_name, NULL);
	if (!dm->listener) {
		depmgr_free(dm);
		return NULL;
	}
	return dm;
}

void depmgr_free(struct depmgr *dm)
{
	if (!dm)
		return;
	CHECK(!dm->subs);
	twheel_cancel(dm->conf.wheel, &dm->kick);
	twheel_cancel(dm->conf.wheel, &dm->retry);
	twheel_cancel(dm->conf.wheel, &dm->refresh);
	twheel_cancel(dm->conf.wheel, &dm->patience);
	twheel_cancel(dm->conf.wheel, &dm->meanwhile);
	twheel_cancel(dm->conf.wheel, &dm->in_use);
	xds_federation_remove_settled(dm->conf.client, &dm->settled);
	xds_federation_begin(dm->conf.client);
	nodes_fini(&dm->nodes);
	xds_federation_end(dm->conf.client);
	xds_config_put(dm->config);
	free(dm->error);
	free(dm->waiting);
	free(dm->refused);
	free(dm->found.error);
	free(dm->listener_name);
	free(dm->authority);
	free(dm->node_id);
	free(dm);
}

struct missing {
	FILE *f;
	unsigned n;
};

static void tell_missing(struct missing *m, const char *what, const char *name)
{
	if (m->n++ < N_NAMES_SHOWN)
		fprintf(m->f, "%s%s %s", m->n > 1 ? ", " : "", what, name);
}

const char *depmgr_waiting(struct depmgr *dm)
{
	set_text(&dm->waiting, NULL);
	size_t len;
	FILE *f = open_memstream(&dm->waiting, &len);
	if (!f)
		return "";
	struct missing m = {.f = f};
	for (const struct node *i = dm->nodes.all; i; i = i->next) {
		if (i->waited && !node_resolved(i))
			tell_missing(&m, i->type->label, node_name(i));
		if (i->waited && i->dns && !i->dns->answered)
			tell_missing(&m, "addresses of", i->dns->cluster->dns.host);
	}
	if (m.n > N_NAMES_SHOWN)
		fprintf(f, " and %u more", m.n - N_NAMES_SHOWN);
	return fclose(f) == 0 ? dm->waiting : "";
}

static void find_refused(void *ctx, const struct xds_entry_info *e)
{
	struct depmgr *dm = ctx;
	if (e->status != XDS_STATUS_NACKED || dm->refused)
		return;
	const struct node *own[] = {dm->listener, dm->routes};
	for (int i = 0; i < 2; i++)
		if (own[i] && own[i]->type == e->type && strcmp(node_name(own[i]), e->name) == 0)
			set_text(&dm->refused, strdup(e->error));
}

const char *depmgr_refused(struct depmgr *dm)
{
	set_text(&dm->refused, NULL);
	xds_federation_each(dm->conf.client, find_refused, dm);
	return dm->refused ? dm->refused : "";
}
