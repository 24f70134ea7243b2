// SPDX-License-Identifier: Apache-2.0
#include "ctrl/deps/depmgr.h"

#include "ctrl/deps/config.h"
#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "ctrl/xds/client.h"
#include "ctrl/xds/strmap.h"
#include "lb/base/twheel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_NAMES_SHOWN 5 // of what is missing
#define RETRY_NS 1000000000ull // after running out of memory

// One resource that is watched, and what is known of it.
struct node {
	struct strmap_link link; // clusters and endpoints, by name
	struct xds_watcher watcher;
	struct depmgr *dm;
	const struct xds_type *type;
	struct node *next; // of all nodes
	char *name;
	struct xds_res *res; // counted; NULL = no value
	bool failed; // no value, and error says why (NULL = no memory even for that)
	char *error;
	char *ambient; // trouble beside the value; NULL = none
	uint64_t pass; // last one that reached it
};

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
	uint32_t n_clusters;
	char *error; // FAILED: owned; NULL = no memory even for that
};

struct depmgr {
	struct depmgr_conf conf;
	char *listener_name, *authority, *node_id;
	struct node *nodes;
	struct strmap clusters, endpoints;
	struct node *listener; // in nodes, always
	struct node *routes; // in nodes; NULL = inline, or not known yet
	struct xds_settled settled;
	struct twheel_timer kick;
	struct twheel_timer retry;
	uint32_t n_unresolved; // nodes with neither value nor error
	uint64_t pass;
	struct found found;
	bool dirty; // an event came since the last pass
	bool reshaped; // of a resource that names others: a walk is due
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

static void put(struct xds_res **at, struct xds_res *res)
{
	xds_res_put(*at);
	*at = res;
}

// Nodes

static bool resolved(const struct node *n)
{
	return n->res || n->failed;
}

// Only notes: the pass comes when the client has told all events that belong together.
static void on_event(struct xds_watcher *w, const struct xds_event *e)
{
	struct node *n = (struct node *)((char *)w - offsetof(struct node, watcher));
	n->dm->dirty = true;
	n->dm->reshaped |= n->type != &res_type_endpoints;
	n->dm->n_unresolved -= !resolved(n);
	switch (e->kind) {
	case XDS_EVENT_RESOURCE:
		put(&n->res, xds_res_get(e->res));
		n->failed = false;
		set_text(&n->error, NULL);
		set_text(&n->ambient, NULL);
		break;
	case XDS_EVENT_ERROR:
		put(&n->res, NULL);
		n->failed = true;
		set_text(&n->error, strdup(e->text));
		set_text(&n->ambient, NULL);
		break;
	case XDS_EVENT_AMBIENT:
		set_text(&n->ambient, e->code == XDS_OK ? NULL : strdup(e->text));
		break;
	}
	n->dm->n_unresolved += !resolved(n);
}

static const char *error_of(const struct node *n)
{
	return n->error ? n->error : "no memory";
}

static void node_free(struct node *n)
{
	xds_client_cancel(n->dm->conf.client, &n->watcher);
	n->dm->n_unresolved -= !resolved(n);
	xds_res_put(n->res);
	free(n->name);
	free(n->error);
	free(n->ambient);
	free(n);
}

// Starts a watch; what is cached is in the node when it returns. NULL = no memory.
static struct node *node_new(
	struct depmgr *dm, const struct xds_type *type, const char *name, struct strmap *map)
{
	struct node *n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	n->dm = dm;
	n->type = type;
	n->watcher.on_event = on_event;
	n->name = strdup(name);
	if (!n->name || (map && strmap_add(map, &n->link, n->name))) {
		free(n->name);
		free(n);
		return NULL;
	}
	n->next = dm->nodes;
	dm->nodes = n;
	dm->n_unresolved++;
	if (xds_client_watch(dm->conf.client, type, n->name, &n->watcher) == 0)
		return n;
	dm->nodes = n->next;
	if (map)
		strmap_remove(map, &n->link);
	node_free(n);
	return NULL;
}

static struct node *find(const struct strmap *map, const char *name)
{
	struct strmap_link *l = strmap_find(map, name);
	return l ? (struct node *)((char *)l - offsetof(struct node, link)) : NULL;
}

static struct node *reach(
	struct depmgr *dm, const struct xds_type *type, const char *name, struct strmap *map)
{
	struct node *n = find(map, name);
	if (!n)
		n = node_new(dm, type, name, map);
	if (n)
		n->pass = dm->pass;
	return n;
}

// DM-24: what the pass did not reach is watched no more.
static void sweep(struct depmgr *dm)
{
	for (struct node **at = &dm->nodes; *at;) {
		struct node *n = *at;
		if (n->pass == dm->pass) {
			at = &n->next;
			continue;
		}
		*at = n->next;
		if (n->type == &res_type_cluster)
			strmap_remove(&dm->clusters, &n->link);
		else if (n->type == &res_type_endpoints)
			strmap_remove(&dm->endpoints, &n->link);
		node_free(n);
	}
}

// One pass

static enum outcome fail(char **reterr, const char *text)
{
	set_text(reterr, strdup(text));
	return FAILED;
}

// DM-02, DM-25: only the routes that the current listener names are of interest.
static enum outcome reach_routes(struct depmgr *dm, struct res_route_config **ret, char **reterr)
{
	if (dm->listener->failed)
		return fail(reterr, error_of(dm->listener));
	if (!dm->listener->res)
		return WAITING;
	const struct res_listener *l = res_listener_from(dm->listener->res);
	if (!l->is_api) {
		char text[512];
		snprintf(text, sizeof(text),
			"listener \"%s\" is a socket listener, which serves no target",
			dm->listener_name);
		return fail(reterr, text);
	}
	if (l->routes) {
		dm->routes = NULL;
		*ret = l->routes;
		return COMPLETE;
	}
	if (!dm->routes || strcmp(dm->routes->name, l->rds_name) != 0)
		dm->routes = node_new(dm, &res_type_route_config, l->rds_name, NULL);
	if (!dm->routes)
		return STARVED;
	dm->routes->pass = dm->pass;
	if (dm->routes->failed)
		return fail(reterr, error_of(dm->routes));
	if (!dm->routes->res)
		return WAITING;
	*ret = res_route_config_from(dm->routes->res);
	return COMPLETE;
}

// A cluster and its endpoints. False = no memory.
static bool reach_cluster(struct depmgr *dm, const char *name, uint32_t *n_clusters)
{
	struct node *n = find(&dm->clusters, name);
	if (n && n->pass == dm->pass)
		return true;
	n = reach(dm, &res_type_cluster, name, &dm->clusters);
	if (!n)
		return false;
	++*n_clusters;
	if (!n->res)
		return true;
	return reach(dm, &res_type_endpoints, res_cluster_from(n->res)->eds_name, &dm->endpoints);
}

static bool reach_vhost(struct depmgr *dm, const struct res_vhost *v, uint32_t *n_clusters)
{
	for (uint32_t r = 0; r < v->n_routes; r++)
		for (uint32_t c = 0; c < v->routes[r].n_clusters; c++)
			if (!reach_cluster(dm, v->routes[r].clusters[c].name, n_clusters))
				return false;
	return true;
}

// DM-03, or DESIGN 3.10 without a pinned authority.
static enum outcome reach_clusters(struct depmgr *dm, const struct res_route_config *routes,
	int32_t *ret_vhost, uint32_t *ret_n, char **reterr)
{
	int vhost = -1;
	if (dm->authority) {
		vhost = res_route_config_choose(routes, dm->authority);
		if (vhost == -ENOMEM)
			return STARVED;
		if (vhost < 0) {
			char text[512];
			snprintf(text, sizeof(text),
				"route configuration \"%s\" has no virtual host for \"%s\"",
				routes->base.name, dm->authority);
			return fail(reterr, text);
		}
	}
	uint32_t n = 0;
	for (uint32_t i = 0; i < routes->n_vhosts; i++)
		if (vhost < 0 || i == (uint32_t)vhost)
			if (!reach_vhost(dm, &routes->vhosts[i], &n))
				return STARVED;
	*ret_vhost = vhost;
	*ret_n = n;
	return COMPLETE;
}

// Everything that the listener reaches, by value or by name.
static void walk(struct depmgr *dm)
{
	struct found f = {0};
	dm->pass++;
	dm->listener->pass = dm->pass;
	f.outcome = reach_routes(dm, &f.routes, &f.error);
	if (f.outcome == COMPLETE)
		f.outcome = reach_clusters(dm, f.routes, &f.vhost, &f.n_clusters, &f.error);
	// What is needed is not known yet: all that was needed may still be.
	if (f.outcome == WAITING || f.outcome == STARVED)
		for (struct node *n = dm->nodes; n; n = n->next)
			if (n->type != &res_type_route_config)
				n->pass = dm->pass;
	if (f.outcome == FAILED && dm->routes && dm->routes->pass != dm->pass)
		dm->routes = NULL; // swept
	sweep(dm);
	free(dm->found.error);
	dm->found = f;
}

// Building

// "<a>; <b>; …" of what is wrong; NULL = nothing is. 0 or -ENOMEM.
static int join_notes(
	struct xds_arena *arena, const char *const *notes, unsigned n, const char **ret)
{
	size_t len = 0;
	*ret = NULL;
	for (unsigned i = 0; i < n; i++)
		len += notes[i] ? strlen(notes[i]) + 2 : 0;
	if (!len)
		return 0;
	char *text = xds_arena_alloc(arena, 1, len + 1);
	if (!text)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++) {
		if (!notes[i])
			continue;
		if (*text)
			strcat(text, "; ");
		strcat(text, notes[i]);
	}
	*ret = text;
	return 0;
}

struct shared_notes {
	const char *listener, *routes, *node_id;
};

// DM-10, DM-11, DM-27.
static int fill_cluster(const struct depmgr *dm, const struct node *n, struct config_builder *b,
	const struct shared_notes *shared, struct xds_cluster_config *c)
{
	const struct node *e = NULL;
	char empty[512] = "";
	c->name = xds_arena_strdup(b->arena, n->name);
	c->error = xds_arena_strdup(b->arena, n->res ? "" : error_of(n));
	if (!c->name || !c->error)
		return -ENOMEM;
	if (n->res) {
		c->cluster = res_cluster_from(xds_res_get(n->res));
		e = find(&dm->endpoints, c->cluster->eds_name);
	}
	if (e && e->res) {
		c->endpoints = res_endpoints_from(xds_res_get(e->res));
		if (c->endpoints->n_priorities == 0) // A27-V09
			snprintf(
				empty, sizeof(empty), "endpoints \"%s\" hold no locality", e->name);
	}
	const char *notes[] = {shared->listener, shared->routes, n->ambient,
		e && e->failed ? error_of(e) : NULL, e ? e->ambient : NULL, *empty ? empty : NULL};
	int rc = join_notes(b->arena, notes, sizeof(notes) / sizeof(notes[0]), &c->resolution_note);
	if (!c->resolution_note)
		c->resolution_note = shared->node_id;
	return rc;
}

// NULL = no memory.
static struct xds_config *build(struct depmgr *dm)
{
	const struct found *f = &dm->found;
	struct config_builder b;
	// Inline routes are made anew with each version of the listener: equal ones are shared.
	struct res_route_config *routes = f->routes;
	if (dm->config && xds_res_eq(&dm->config->routes->base, &routes->base))
		routes = dm->config->routes;
	if (config_builder_init(
		    &b, res_listener_from(dm->listener->res), routes, f->vhost, f->n_clusters))
		return NULL;
	char node[256];
	snprintf(node, sizeof(node), "xDS node id \"%s\"", dm->node_id);
	struct shared_notes shared = {
		.listener = dm->listener->ambient,
		.routes = dm->routes ? dm->routes->ambient : NULL,
		.node_id = xds_arena_strdup(b.arena, node),
	};
	int rc = shared.node_id ? 0 : -ENOMEM;
	uint32_t n = 0;
	for (const struct node *i = dm->nodes; !rc && i; i = i->next)
		if (i->type == &res_type_cluster)
			rc = fill_cluster(dm, i, &b, &shared, &b.config->clusters[n++]);
	if (rc) {
		xds_config_put(b.config);
		return NULL;
	}
	config_builder_sort(&b);
	return b.config;
}

static void deliver_error(struct depmgr *dm, const char *text)
{
	if (!dm->config && dm->error && strcmp(dm->error, text) == 0)
		return;
	xds_config_put(dm->config);
	dm->config = NULL;
	set_text(&dm->error, strdup(text));
	dm->conf.on_error(dm->conf.ctx, text);
}

// DM-05, DM-29: a change is delivered once, equal content not at all. False = no memory.
static bool deliver(struct depmgr *dm)
{
	struct xds_config *config = build(dm);
	if (!config)
		return false;
	if (dm->config && xds_config_eq(dm->config, config)) {
		xds_config_put(config);
		return true;
	}
	xds_config_put(dm->config);
	dm->config = config;
	set_text(&dm->error, NULL);
	dm->conf.on_update(dm->conf.ctx, config);
	return true;
}

static void reconcile(struct depmgr *dm)
{
	if (dm->busy)
		return;
	dm->busy = true;
	do { // a watch that fails at once comes back as an event
		xds_client_begin(dm->conf.client);
		if (dm->reshaped)
			walk(dm);
		dm->dirty = dm->reshaped = false; // the walk has read what came inside it
		xds_client_end(dm->conf.client);
	} while (dm->dirty);
	bool starved = dm->found.outcome == STARVED;
	if (dm->found.outcome == FAILED)
		deliver_error(dm, dm->found.error ? dm->found.error : "no memory");
	else if (dm->found.outcome == COMPLETE && dm->n_unresolved == 0)
		starved = !deliver(dm);
	dm->busy = false;
	twheel_cancel(dm->conf.wheel, &dm->retry);
	if (starved) { // no event may ever come: the server has said everything
		dm->reshaped = true;
		twheel_arm(dm->conf.wheel, &dm->retry, twheel_now(dm->conf.wheel) + RETRY_NS);
	}
	if (dm->dirty)
		twheel_arm(dm->conf.wheel, &dm->kick, twheel_now(dm->conf.wheel));
}

static void on_settled(struct xds_settled *s)
{
	struct depmgr *dm = (struct depmgr *)((char *)s - offsetof(struct depmgr, settled));
	if (dm->dirty && !twheel_armed(&dm->kick))
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

struct depmgr *depmgr_new(const struct depmgr_conf *conf)
{
	struct depmgr *dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;
	dm->conf = *conf;
	dm->reshaped = true;
	dm->settled.fn = on_settled;
	dm->kick.fire = kick_fired;
	dm->retry.fire = retry_fired;
	dm->listener_name = strdup(conf->listener_name);
	dm->node_id = strdup(conf->node_id);
	dm->authority = conf->authority ? strdup(conf->authority) : NULL;
	xds_client_add_settled(conf->client, &dm->settled);
	// What is cached is acted on in the first turn of the wheel, not inside this call.
	twheel_arm(conf->wheel, &dm->kick, twheel_now(conf->wheel));
	if (dm->listener_name && dm->node_id && (dm->authority || !conf->authority))
		dm->listener = node_new(dm, &res_type_listener, dm->listener_name, NULL);
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
	twheel_cancel(dm->conf.wheel, &dm->kick);
	twheel_cancel(dm->conf.wheel, &dm->retry);
	xds_client_remove_settled(dm->conf.client, &dm->settled);
	xds_client_begin(dm->conf.client);
	for (struct node *n = dm->nodes, *next; n; n = next) {
		next = n->next;
		node_free(n);
	}
	xds_client_end(dm->conf.client);
	strmap_fini(&dm->clusters);
	strmap_fini(&dm->endpoints);
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

void depmgr_reresolve(struct depmgr *dm)
{
	(void)dm;
}

const char *depmgr_waiting(struct depmgr *dm)
{
	set_text(&dm->waiting, NULL);
	size_t len;
	FILE *f = open_memstream(&dm->waiting, &len);
	if (!f)
		return "";
	unsigned n = 0;
	for (const struct node *i = dm->nodes; i; i = i->next)
		if (!resolved(i) && n++ < N_NAMES_SHOWN)
			fprintf(f, "%s%s %s", n > 1 ? ", " : "", i->type->label, i->name);
	if (n > N_NAMES_SHOWN)
		fprintf(f, " and %u more", n - N_NAMES_SHOWN);
	return fclose(f) == 0 ? dm->waiting : "";
}

static void find_refused(void *ctx, const struct xds_entry_info *e)
{
	struct depmgr *dm = ctx;
	if (e->status != XDS_STATUS_NACKED || dm->refused)
		return;
	const struct node *own[] = {dm->listener, dm->routes};
	for (int i = 0; i < 2; i++)
		if (own[i] && own[i]->type == e->type && strcmp(own[i]->name, e->name) == 0)
			set_text(&dm->refused, strdup(e->error));
}

const char *depmgr_refused(struct depmgr *dm)
{
	set_text(&dm->refused, NULL);
	xds_client_each(dm->conf.client, find_refused, dm);
	return dm->refused ? dm->refused : "";
}
