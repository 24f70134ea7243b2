// SPDX-License-Identifier: Apache-2.0
#include "ctrl/deps/compose.h"

#include "ctrl/deps/config.h"
#include "ctrl/deps/dns_source.h"
#include "ctrl/deps/leaves.h"
#include "ctrl/deps/nodes.h"
#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "lb/base/arena.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NOTES 8 // of one cluster

struct composer {
	const struct composition *in;
	struct config_builder b;
	struct node **clusters; // by name
	struct leaves leaves; // of the aggregate at hand; its list is scratch
	const char *node_id; // for notes where nothing is wrong (DM-27)
};

// What is wrong with one cluster; NULL = nothing, and not counted.
struct notes {
	const char *list[MAX_NOTES];
	unsigned n;
};

static void note(struct notes *notes, const char *text)
{
	if (text && *text)
		notes->list[notes->n++] = text;
}

// "<a>; <b>; …". NULL = out of memory.
static const char *join(struct lb_arena *arena, const struct notes *notes)
{
	size_t len = 0;
	for (unsigned i = 0; i < notes->n; i++)
		len += strlen(notes->list[i]) + 2;
	char *text = lb_arena_alloc(arena, 1, len), *at = text;
	for (unsigned i = 0; text && i < notes->n; i++) {
		if (i)
			at = stpcpy(at, "; ");
		at = stpcpy(at, notes->list[i]);
	}
	return text;
}

static const char *error_of(const struct node *n)
{
	const char *error;
	return node_cluster(n, &error) ? "" : error;
}

// "; <error>; …" of the clusters that were left out. NULL = out of memory.
static const char *faults(struct composer *c)
{
	const struct leaves *l = &c->leaves;
	struct notes list = {.n = 0};
	for (uint32_t i = 0; i < l->n_faulty && i < LEAVES_MAX_FAULTY_TOLD; i++)
		note(&list, error_of(l->faulty[i]));
	const char *text = join(c->b.arena, &list);
	if (!text || l->n_faulty <= LEAVES_MAX_FAULTY_TOLD)
		return text;
	return config_builder_text(
		&c->b, "%s; and %u more", text, l->n_faulty - LEAVES_MAX_FAULTY_TOLD);
}

// An aggregate without leaves is an entry in error (A37-G02, A37-G03, A37-G10).
static int fail_aggregate(struct composer *c, struct xds_cluster_config *k)
{
	const struct leaves *l = &c->leaves;
	if (l->too_deep) {
		k->error = config_builder_text(&c->b,
			"aggregate cluster \"%s\" exceeds max depth %d (at \"%s\"); %s", k->name,
			LEAVES_MAX_DEPTH, l->too_deep, c->node_id);
	} else {
		// Clusters that exist but are no leaves are aggregates that come round again.
		const char *why = l->n_faulty ? faults(c) : "they form a loop";
		k->error = why ? config_builder_text(&c->b,
					 "aggregate cluster \"%s\" has no leaf clusters: %s; %s",
					 k->name, why, c->node_id)
		               : NULL;
	}
	return k->error ? 0 : -ENOMEM;
}

static int fill_aggregate(
	struct composer *c, struct node *n, struct xds_cluster_config *k, struct notes *notes)
{
	struct leaves *l = &c->leaves;
	leaves_find(c->in->nodes, n, l);
	if (l->too_deep || l->n == 0)
		return fail_aggregate(c, k);
	const char **names = lb_arena_alloc(c->b.arena, l->n, sizeof(*names));
	if (!names)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->n; i++)
		names[i] = c->b.config->clusters[cluster_node_of(l->list[i])->entry].name;
	k->leaves = names;
	k->n_leaves = l->n;
	if (l->n_faulty) {
		const char *text = faults(c);
		text = text ? config_builder_text(&c->b, "left out: %s", text) : NULL;
		if (!text)
			return -ENOMEM;
		note(notes, text);
	}
	return 0;
}

static int fill_eds(
	struct composer *c, const struct node *n, struct xds_cluster_config *k, struct notes *notes)
{
	const struct node *e =
		node_find(&c->in->nodes->endpoints, res_cluster_from(n->res)->eds_name);
	if (!e)
		return 0;
	if (!e->res) {
		note(notes, e->error ? e->error : "out of memory");
		return 0;
	}
	k->endpoints = res_endpoints_from(xds_res_get(e->res));
	note(notes, e->ambient);
	if (k->endpoints->list->n_priorities == 0) { // A27-V09
		const char *text = config_builder_text(
			&c->b, "endpoints \"%s\" hold no locality; %s", node_name(e), c->node_id);
		if (!text)
			return -ENOMEM;
		note(notes, text);
	}
	return 0;
}

// A37-D03
static void fill_dns(const struct node *n, struct xds_cluster_config *k, struct notes *notes)
{
	if (n->dns->endpoints)
		k->endpoints = res_endpoints_from(xds_res_get(&n->dns->endpoints->base));
	note(notes, n->dns->error);
}

// DM-10, DM-11, DM-27.
static int fill(struct composer *c, struct node *n, struct xds_cluster_config *k)
{
	struct notes notes = {.n = 0};
	const char *error = "";
	struct res_cluster *cluster = node_cluster(n, &error);
	int rc = 0;
	k->is_root = cluster_node_of(n)->root_pass == c->in->nodes->pass;
	note(&notes, c->in->listener->ambient);
	note(&notes, c->in->route_node ? c->in->route_node->ambient : NULL);
	note(&notes, n->ambient);
	k->error = cluster ? "" : lb_arena_strdup(c->b.arena, error);
	if (!k->error)
		return -ENOMEM;
	if (cluster && cluster->kind == RES_CLUSTER_AGGREGATE)
		rc = fill_aggregate(c, n, k, &notes);
	else if (cluster && cluster->kind == RES_CLUSTER_LOGICAL_DNS)
		fill_dns(n, k, &notes);
	else if (cluster)
		rc = fill_eds(c, n, k, &notes);
	if (rc)
		return rc;
	if (!*k->error)
		k->cluster = res_cluster_from(xds_res_get(n->res));
	k->resolution_note = notes.n ? join(c->b.arena, &notes) : c->node_id;
	k->has_trouble = notes.n > 0;
	return k->resolution_note ? 0 : -ENOMEM;
}

static int by_name(const void *pa, const void *pb)
{
	const struct node *const *a = pa, *const *b = pb;
	return strcmp(node_name(*a), node_name(*b));
}

// Each has the place that it had the last time, which is where they belong as long as none comes
// or goes. False = not so.
static bool order_as_before(struct composer *c)
{
	uint32_t n = c->in->n_clusters;
	for (struct node *i = c->in->nodes->all; i; i = i->next) {
		if (!i->taken)
			continue;
		uint32_t entry = cluster_node_of(i)->entry;
		if (entry >= n || c->clusters[entry])
			return false;
		c->clusters[entry] = i;
	}
	for (uint32_t i = 1; i < n; i++)
		if (by_name(&c->clusters[i - 1], &c->clusters[i]) >= 0)
			return false;
	return true;
}

static void order(struct composer *c)
{
	if (order_as_before(c))
		return;
	uint32_t n = 0;
	for (struct node *i = c->in->nodes->all; i; i = i->next)
		if (i->taken)
			c->clusters[n++] = i;
	qsort(c->clusters, n, sizeof(*c->clusters), by_name);
}

// The names of all entries, before any aggregate borrows some.
static int fill_names(struct composer *c)
{
	uint32_t n = c->in->n_clusters;
	order(c);
	for (uint32_t i = 0; i < n; i++) {
		struct node *node = c->clusters[i];
		cluster_node_of(node)->entry = i;
		const char *name = lb_arena_strdup(c->b.arena, node_name(node));
		if (!name)
			return -ENOMEM;
		c->b.config->clusters[i].name = name;
	}
	return 0;
}

static int fill_all(struct composer *c)
{
	uint32_t n = c->in->n_clusters;
	c->node_id = config_builder_text(&c->b, "xDS node id \"%s\"", c->in->node_id);
	c->clusters = calloc((size_t)n + 1, sizeof(*c->clusters));
	c->leaves.list = calloc((size_t)n + 1, sizeof(*c->leaves.list));
	int rc = c->node_id && c->clusters && c->leaves.list ? fill_names(c) : -ENOMEM;
	for (uint32_t i = 0; !rc && i < n; i++)
		rc = fill(c, c->clusters[i], &c->b.config->clusters[i]);
	free(c->clusters);
	free(c->leaves.list);
	return rc;
}

struct xds_config *compose(const struct composition *in)
{
	struct composer c = {.in = in};
	// Inline routes are made anew with each version of the listener: equal ones are shared.
	struct res_route_config *routes = in->routes;
	if (in->last && xds_res_eq(&in->last->routes->base, &routes->base))
		routes = in->last->routes;
	if (config_builder_init(
		    &c.b, res_listener_from(in->listener->res), routes, in->vhost, in->n_clusters))
		return NULL;
	if (fill_all(&c) == 0)
		return c.b.config;
	xds_config_put(c.b.config);
	return NULL;
}

// Meanwhile

// The node of a cluster that has newer endpoints; NULL = it has none. What is gone waits with the
// rest (DM-05).
static const struct node *find_newer(
	const struct nodes *nodes, const struct xds_cluster_config *last)
{
	const struct node *n = last->cluster ? node_find(&nodes->clusters, last->name) : NULL;
	if (!n || !n->res || !xds_res_eq(n->res, &last->cluster->base))
		return NULL;
	const struct res_endpoints *now = NULL;
	if (last->cluster->kind == RES_CLUSTER_EDS) {
		const struct node *e = node_find(&nodes->endpoints, last->cluster->eds_name);
		now = e && e->res ? res_endpoints_from(e->res) : NULL;
	} else if (n->dns) {
		now = n->dns->endpoints;
	}
	bool is_same = now && last->endpoints &&
	               (now == last->endpoints || xds_res_eq(&now->base, &last->endpoints->base));
	return now && !is_same ? n : NULL;
}

// Trouble of routes that are still to come is not that of those that serve.
static const char *ambient_of_routes(const struct composition *in)
{
	const struct node *n = in->route_node;
	bool serve = n && strcmp(node_name(n), in->last->routes->base.name) == 0;
	return serve ? n->ambient : NULL;
}

static int renew(struct composer *c, const struct node *n, struct xds_cluster_config *k)
{
	struct notes notes = {.n = 0};
	int rc = 0;
	note(&notes, c->in->listener->ambient);
	note(&notes, ambient_of_routes(c->in));
	note(&notes, n->ambient);
	if (k->cluster->kind == RES_CLUSTER_EDS)
		rc = fill_eds(c, n, k, &notes);
	else
		fill_dns(n, k, &notes);
	if (rc)
		return rc;
	k->resolution_note = notes.n ? join(c->b.arena, &notes) : c->node_id;
	k->has_trouble = notes.n > 0;
	return k->resolution_note ? 0 : -ENOMEM;
}

static int copy_leaves(
	struct composer *c, const struct xds_cluster_config *from, struct xds_cluster_config *k)
{
	const struct xds_config *last = c->in->last;
	const char **names = lb_arena_alloc(c->b.arena, from->n_leaves, sizeof(*names));
	if (!names)
		return -ENOMEM;
	for (uint32_t i = 0; i < from->n_leaves; i++) {
		const struct xds_cluster_config *leaf =
			xds_config_find_cluster(last, from->leaves[i]);
		names[i] = c->b.config->clusters[leaf - last->clusters].name;
	}
	k->leaves = names;
	k->n_leaves = from->n_leaves;
	return 0;
}

// Names are there.
static int copy(struct composer *c, uint32_t i)
{
	const struct xds_cluster_config *from = &c->in->last->clusters[i];
	struct xds_cluster_config *k = &c->b.config->clusters[i];
	const struct node *n = find_newer(c->in->nodes, from);
	k->is_root = from->is_root;
	if (from->cluster)
		k->cluster = res_cluster_from(xds_res_get(&from->cluster->base));
	k->error = lb_arena_strdup(c->b.arena, from->error);
	if (!k->error)
		return -ENOMEM;
	if (n)
		return renew(c, n, k);
	if (from->endpoints)
		k->endpoints = res_endpoints_from(xds_res_get(&from->endpoints->base));
	k->has_trouble = from->has_trouble;
	k->resolution_note =
		from->has_trouble ? lb_arena_strdup(c->b.arena, from->resolution_note) : c->node_id;
	if (!k->resolution_note)
		return -ENOMEM;
	return from->leaves ? copy_leaves(c, from, k) : 0;
}

int compose_meanwhile(const struct composition *in, struct xds_config **ret)
{
	const struct xds_config *last = in->last;
	struct composer c = {.in = in};
	bool is_newer = false;
	for (uint32_t i = 0; i < last->n_clusters && !is_newer; i++)
		is_newer = find_newer(in->nodes, &last->clusters[i]);
	if (!is_newer) {
		*ret = NULL;
		return 0;
	}
	if (config_builder_init(&c.b, last->listener, last->routes, last->vhost, last->n_clusters))
		return -ENOMEM;
	c.node_id = config_builder_text(&c.b, "xDS node id \"%s\"", in->node_id);
	bool ok = c.node_id;
	for (uint32_t i = 0; i < last->n_clusters && ok; i++) {
		const char *name = lb_arena_strdup(c.b.arena, last->clusters[i].name);
		c.b.config->clusters[i].name = name;
		ok = name;
	}
	for (uint32_t i = 0; i < last->n_clusters && ok; i++)
		ok = copy(&c, i) == 0;
	if (ok)
		*ret = c.b.config;
	else
		xds_config_put(c.b.config);
	return ok ? 0 : -ENOMEM;
}
