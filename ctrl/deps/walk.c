// SPDX-License-Identifier: Apache-2.0
#include "ctrl/deps/walk.h"

#include "ctrl/deps/config.h"
#include "ctrl/deps/leaves.h"
#include "ctrl/deps/nodes.h"
#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct walker {
	const struct walk *from;
	struct nodes *nodes;
	struct walk_found found; // so far
};

static enum walk_outcome fail(char **reterr, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static enum walk_outcome fail(char **reterr, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	if (vasprintf(reterr, fmt, args) < 0)
		*reterr = NULL;
	va_end(args);
	return WALK_FAILED;
}

static const char *error_of(const struct node *n)
{
	return n->error ? n->error : "out of memory";
}

// DM-02, DM-25: only the routes that the current listener names are of interest.
static enum walk_outcome reach_routes(
	struct walker *w, struct res_route_config **ret, char **reterr)
{
	const struct node *listener = w->from->listener;
	struct node **at = &w->found.route_node;
	if (listener->failed)
		return fail(reterr, "%s", error_of(listener));
	if (!listener->res)
		return WALK_WAITING;
	const struct res_listener *l = res_listener_from(listener->res);
	if (!l->is_api)
		return fail(reterr, "listener \"%s\" is a socket listener, which serves no target",
			node_name(listener));
	if (l->routes) {
		*at = NULL;
		*ret = l->routes;
		return WALK_COMPLETE;
	}
	if (!*at || strcmp(node_name(*at), l->rds_name) != 0)
		*at = node_new(w->nodes, &res_type_route_config, l->rds_name, NULL);
	if (!*at)
		return WALK_OUT_OF_MEMORY;
	(*at)->pass = w->nodes->pass;
	if ((*at)->failed)
		return fail(reterr, "%s", error_of(*at));
	if (!(*at)->res)
		return WALK_WAITING;
	*ret = res_route_config_from((*at)->res);
	return WALK_COMPLETE;
}

// Clusters, in order of their distance from the routes.
struct level {
	struct node *first; // by next_reached
};

// False = out of memory.
static bool reach_cluster(
	struct walker *w, const char *name, struct level *level, struct node **ret)
{
	struct node *n = node_find(&w->nodes->clusters, name);
	if (!n || n->pass != w->nodes->pass) {
		n = node_reach(w->nodes, &res_type_cluster, name, &w->nodes->clusters);
		if (!n)
			return false;
		cluster_node_of(n)->next_reached = level->first;
		level->first = n;
	}
	*ret = n;
	return true;
}

// What one cluster needs. False = out of memory.
static bool reach_beyond(struct walker *w, struct node *n, bool deeper, struct level *next)
{
	if (node_resolve_name(n))
		return false;
	const struct res_cluster *c = n->res ? res_cluster_from(n->res) : NULL;
	if (!c)
		return true;
	if (c->kind == RES_CLUSTER_EDS)
		return node_reach(w->nodes, &res_type_endpoints, c->eds_name, &w->nodes->endpoints);
	struct node *child;
	for (uint32_t i = 0; deeper && i < c->n_children; i++)
		if (!reach_cluster(w, c->children[i], next, &child))
			return false;
	return true;
}

// Breadth first: whatever is less than the forbidden depth below any route is reached at its least
// depth, and once. Faulty graphs stay watched, or their repair would not be seen. False = no
// memory.
static bool reach_levels(struct walker *w, struct level *level)
{
	for (unsigned depth = 0; level->first; depth++) {
		struct level next = {NULL};
		for (struct node *n = level->first; n; n = cluster_node_of(n)->next_reached)
			if (!reach_beyond(w, n, depth + 1 < LEAVES_MAX_DEPTH, &next))
				return false;
		*level = next;
	}
	return true;
}

static bool reach_vhost(struct walker *w, const struct res_vhost *v, struct level *roots)
{
	struct node *root;
	for (uint32_t r = 0; r < v->n_routes; r++) {
		for (uint32_t c = 0; c < v->routes[r].n_clusters; c++) {
			if (!reach_cluster(w, v->routes[r].clusters[c].name, roots, &root))
				return false;
			cluster_node_of(root)->root_pass = w->nodes->pass;
		}
	}
	return true;
}

// DM-03; without a pinned authority, docs/decisions/authority-per-request.md.
static enum walk_outcome reach_clusters(
	struct walker *w, const struct res_route_config *routes, int32_t *ret_vhost, char **reterr)
{
	int vhost = -1;
	if (w->from->authority) {
		vhost = res_route_config_choose(routes, w->from->authority);
		if (vhost == -ENOMEM)
			return WALK_OUT_OF_MEMORY;
		if (vhost < 0)
			return fail(reterr,
				"route configuration \"%s\" has no virtual host for \"%s\"",
				routes->base.name, w->from->authority);
	}
	struct level level = {NULL};
	for (uint32_t i = 0; i < routes->n_vhosts; i++)
		if (vhost < 0 || i == (uint32_t)vhost)
			if (!reach_vhost(w, &routes->vhosts[i], &level))
				return WALK_OUT_OF_MEMORY;
	if (!reach_levels(w, &level))
		return WALK_OUT_OF_MEMORY;
	*ret_vhost = vhost;
	return WALK_COMPLETE;
}

// True = nothing else needs it.
static bool hold(struct walker *w, struct node *n, struct level *level)
{
	cluster_node_of(n)->held_pass = w->nodes->pass;
	if (n->pass == w->nodes->pass)
		return false;
	n->pass = w->nodes->pass;
	cluster_node_of(n)->next_reached = level->first;
	level->first = n;
	return true;
}

// DM-20. False = out of memory.
static bool hold_subscribed(struct walker *w, struct level *level)
{
	for (const struct depmgr_sub *s = w->from->subs; s; s = s->next) {
		struct node *n = node_find(&w->nodes->clusters, s->name);
		if (!n)
			n = node_new(w->nodes, &res_type_cluster, s->name, &w->nodes->clusters);
		if (!n)
			return false;
		hold(w, n, level);
	}
	return true;
}

// DM-22: what was a root and is none any more, while requests that chose it are under way; and what
// somebody subscribes to. *ret_n is how many requests alone hold.
static enum walk_outcome reach_held(struct walker *w, uint32_t *ret_n)
{
	uint64_t pass = w->nodes->pass;
	struct level level = {NULL};
	*ret_n = 0;
	for (struct node *n = w->nodes->all; n; n = n->next) {
		struct cluster_node *c = node_is_cluster(n) ? cluster_node_of(n) : NULL;
		if (c && c->root_pass == pass) {
			c->was_root = true;
		} else if (c && c->was_root) {
			c->was_root =
				w->from->in_use && w->from->in_use(w->from->ctx, node_name(n));
			if (c->was_root)
				*ret_n += hold(w, n, &level);
		}
	}
	w->nodes->holding = true;
	bool ok = hold_subscribed(w, &level) && reach_levels(w, &level);
	w->nodes->holding = false;
	return ok ? WALK_COMPLETE : WALK_OUT_OF_MEMORY;
}

// Of what serves nothing is forgotten before another configuration takes its place; until then, and
// so then, requests choose its clusters (DM-22).
static void keep_last(struct walker *w)
{
	for (uint32_t i = 0; i < w->from->serves->n_clusters; i++) {
		const struct xds_cluster_config *k = &w->from->serves->clusters[i];
		const struct res_cluster *c = k->cluster;
		struct node *kept[] = {node_find(&w->nodes->clusters, k->name),
			c && c->kind == RES_CLUSTER_EDS
				? node_find(&w->nodes->endpoints, c->eds_name)
				: NULL};
		if (kept[0] && k->is_root)
			cluster_node_of(kept[0])->was_root = true;
		for (int n = 0; n < 2; n++) {
			if (!kept[n] || kept[n]->pass == w->nodes->pass)
				continue;
			kept[n]->pass = w->nodes->pass;
			w->found.keeps = true;
		}
	}
}

static bool is_missing_something(const struct nodes *nodes)
{
	for (const struct node *n = nodes->all; n; n = n->next)
		if (n->waited_pass == nodes->pass && node_is_missing_something(n))
			return true;
	return false;
}

void walk(const struct walk *from, struct walk_found *found)
{
	struct walker w = {from, from->nodes, {.route_node = found->route_node}};
	struct walk_found *f = &w.found;
	uint64_t pass = ++w.nodes->pass;
	from->listener->pass = pass;
	f->outcome = reach_routes(&w, &f->routes, &f->error);
	if (f->outcome == WALK_COMPLETE)
		f->outcome = reach_clusters(&w, f->routes, &f->vhost, &f->error);
	if (f->outcome == WALK_COMPLETE)
		f->outcome = reach_held(&w, &f->n_held);
	// What is needed is not known yet: all that was needed may still be.
	if (f->outcome == WALK_WAITING || f->outcome == WALK_OUT_OF_MEMORY)
		for (struct node *n = w.nodes->all; n; n = n->next)
			if (n->type != &res_type_route_config)
				n->pass = pass;
	if (f->outcome == WALK_COMPLETE && from->serves && is_missing_something(w.nodes))
		keep_last(&w);
	if (f->route_node && f->route_node->pass != pass)
		f->route_node = NULL; // swept
	nodes_sweep(w.nodes);
	for (struct node *n = w.nodes->all; n; n = n->next)
		node_set_waited(n, f->outcome != WALK_COMPLETE || n->waited_pass == pass);
	free(found->error);
	*found = *f;
}
