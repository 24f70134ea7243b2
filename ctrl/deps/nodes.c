// SPDX-License-Identifier: Apache-2.0
#include "ctrl/deps/nodes.h"

#include "ctrl/deps/dns_source.h"
#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "lb/base/container_of.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

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

bool node_resolved(const struct node *n)
{
	return n->res || n->failed;
}

static uint32_t n_missing(const struct node *n)
{
	return (uint32_t)!node_resolved(n) + (n->dns && !n->dns->answered);
}

bool node_is_missing_something(const struct node *n)
{
	return n_missing(n) > 0;
}

void node_set_waited(struct node *n, bool waited)
{
	n->nodes->n_unresolved[n->waited] -= n_missing(n);
	n->waited = waited;
	n->nodes->n_unresolved[n->waited] += n_missing(n);
}

static void set_withheld(struct node *n, bool withheld)
{
	n->nodes->n_withheld += (uint32_t)withheld - n->withheld;
	n->withheld = withheld;
}

// Somebody says so now: an error that stands is told again when its server is lost (FM-01).
static bool is_fresh(const struct node *n, const struct xds_event *error)
{
	bool stands = n->failed && n->error && strcmp(n->error, error->text) == 0;
	return !error->no_server && !stands;
}

// Only notes: the pass comes when the client has told all events that belong together.
static void on_event(struct xds_watcher *w, const struct xds_event *e)
{
	struct node *n = CONTAINER_OF(w, struct node, watcher);
	n->nodes->dirty = true;
	n->nodes->reshaped |= n->type != &res_type_endpoints;
	n->nodes->n_unresolved[n->waited] -= !node_resolved(n);
	switch (e->kind) {
	case XDS_EVENT_RESOURCE:
		put(&n->res, xds_res_get(e->res));
		n->nodes->heard |= n->nodes->n_withheld > 0;
		n->failed = false;
		set_withheld(n, false);
		set_text(&n->error, NULL);
		set_text(&n->ambient, NULL);
		break;
	case XDS_EVENT_ERROR:
		put(&n->res, NULL);
		n->nodes->heard |= n->nodes->n_withheld > 0 && is_fresh(n, e);
		// What the configuration has in error stays so while servers change their reasons.
		set_withheld(n, e->no_server && n->nodes->serving && !n->failed);
		n->failed = !n->withheld;
		set_text(&n->error, strdup(e->text));
		set_text(&n->ambient, NULL);
		break;
	case XDS_EVENT_AMBIENT:
		set_text(&n->ambient, e->code == XDS_OK ? NULL : strdup(e->text));
		break;
	}
	n->nodes->n_unresolved[n->waited] += !node_resolved(n);
}

static void drop_source(struct node *n)
{
	if (n->dns)
		n->nodes->n_unresolved[n->waited] -= !n->dns->answered;
	dns_source_free(n->dns);
	n->dns = NULL;
}

static void node_free(struct node *n)
{
	if (n->watcher.on_event)
		xds_federation_cancel(n->nodes->client, &n->watcher);
	n->nodes->n_unresolved[n->waited] -= !node_resolved(n);
	set_withheld(n, false);
	drop_source(n);
	xds_res_put(n->res);
	free(n->error);
	free(n->ambient);
	free(n);
}

static struct node *make(struct nodes *nodes, const struct xds_type *type, const char *name)
{
	size_t size = type == &res_type_cluster ? sizeof(struct cluster_node) : sizeof(struct node);
	size_t len = strlen(name) + 1;
	struct node *n = calloc(1, size + len);
	if (!n)
		return NULL;
	n->link.key = memcpy((char *)n + size, name, len);
	n->nodes = nodes;
	n->type = type;
	n->waited = !nodes->holding;
	return n;
}

struct node *node_fixed(struct nodes *nodes, struct xds_res *res)
{
	struct node *n = make(nodes, res->type, res->name);
	if (!n)
		return NULL;
	n->res = xds_res_get(res);
	n->next = nodes->all;
	nodes->all = n;
	return n;
}

struct node *node_new(
	struct nodes *nodes, const struct xds_type *type, const char *name, struct strmap *map)
{
	struct node *n = make(nodes, type, name);
	if (!n)
		return NULL;
	n->watcher.on_event = on_event;
	if (map && strmap_add(map, &n->link, n->link.key)) {
		free(n);
		return NULL;
	}
	n->next = nodes->all;
	nodes->all = n;
	nodes->n_unresolved[n->waited]++;
	if (xds_federation_watch(nodes->client, type, n->link.key, &n->watcher) == 0)
		return n;
	nodes->all = n->next;
	if (map)
		strmap_remove(map, &n->link);
	node_free(n);
	return NULL;
}

struct node *node_find(const struct strmap *map, const char *name)
{
	struct strmap_link *l = strmap_find(map, name);
	return l ? CONTAINER_OF(l, struct node, link) : NULL;
}

struct node *node_reach(
	struct nodes *nodes, const struct xds_type *type, const char *name, struct strmap *map)
{
	struct node *n = node_find(map, name);
	if (!n)
		n = node_new(nodes, type, name, map);
	if (!n)
		return NULL;
	n->pass = nodes->pass;
	if (!nodes->holding)
		n->waited_pass = nodes->pass;
	return n;
}

// What it needs itself; of an aggregate not its members.
static bool has_all(const struct nodes *nodes, const struct node *n)
{
	const struct res_cluster *c = n->res ? res_cluster_from(n->res) : NULL;
	const struct node *e =
		c && c->kind == RES_CLUSTER_EDS ? node_find(&nodes->endpoints, c->eds_name) : NULL;
	return n_missing(n) == 0 && (!e || node_resolved(e));
}

static struct node *child_of(const struct nodes *nodes, const struct res_cluster *c, uint32_t i)
{
	return node_find(&nodes->clusters, c->children[i]);
}

static bool goes_on(const struct node *n, bool is_up)
{
	return is_up ? cluster_node_of(n)->whole : n->taken;
}

// One step from members up and from holders down. True = something changed: there are as many
// steps as levels of aggregates at most.
static bool spread(const struct nodes *nodes, struct node *n, bool is_up)
{
	const struct res_cluster *c = n->res ? res_cluster_from(n->res) : NULL;
	bool changed = false;
	for (uint32_t i = 0; c && i < c->n_children && goes_on(n, is_up); i++) {
		struct node *child = child_of(nodes, c, i);
		if (!child || (is_up ? cluster_node_of(child)->whole : child->taken))
			continue;
		changed = true;
		*(is_up ? &cluster_node_of(n)->whole : &child->taken) = !is_up;
	}
	return changed;
}

static void spread_all(const struct nodes *nodes, bool is_up)
{
	bool changed;
	do {
		changed = false;
		for (struct node *n = nodes->all; n; n = n->next)
			if (node_is_cluster(n) && !n->waited)
				changed |= spread(nodes, n, is_up);
	} while (changed);
}

// Requests or subscribers name it, and nothing is missing.
static bool is_wanted(const struct nodes *nodes, const struct node *n)
{
	const struct cluster_node *c = node_is_cluster(n) ? cluster_node_of(n) : NULL;
	return c && c->whole && c->held_pass == nodes->pass;
}

uint32_t nodes_take(struct nodes *nodes)
{
	uint32_t n_taken = 0;
	bool is_held = false;
	for (struct node *n = nodes->all; n; n = n->next) {
		if (!node_is_cluster(n))
			continue;
		cluster_node_of(n)->whole = n->taken = n->waited;
		if (n->waited)
			continue;
		is_held = true;
		cluster_node_of(n)->whole = has_all(nodes, n);
	}
	if (is_held) {
		spread_all(nodes, true);
		for (struct node *n = nodes->all; n; n = n->next)
			n->taken |= is_wanted(nodes, n);
		spread_all(nodes, false);
	}
	for (const struct node *n = nodes->all; n; n = n->next)
		n_taken += n->taken;
	return n_taken;
}

// The others fail one by one (DM-07); without these there is no configuration at all (DM-08).
static bool is_vital(const struct node *n)
{
	return n->type == &res_type_listener || n->type == &res_type_route_config;
}

void nodes_give_up(struct nodes *nodes)
{
	for (struct node *n = nodes->all; n; n = n->next) {
		if (!n->withheld || (nodes->serving && is_vital(n))) // FM-09
			continue;
		set_withheld(n, false);
		n->failed = true;
		nodes->n_unresolved[n->waited]--;
		nodes->dirty = nodes->reshaped = true;
	}
}

void nodes_sweep(struct nodes *nodes)
{
	for (struct node **at = &nodes->all; *at;) {
		struct node *n = *at;
		if (n->pass == nodes->pass) {
			at = &n->next;
			continue;
		}
		*at = n->next;
		if (node_is_cluster(n))
			strmap_remove(&nodes->clusters, &n->link);
		else if (n->type == &res_type_endpoints)
			strmap_remove(&nodes->endpoints, &n->link);
		node_free(n);
	}
}

void nodes_fini(struct nodes *nodes)
{
	for (struct node *n = nodes->all, *next; n; n = next) {
		next = n->next;
		node_free(n);
	}
	nodes->all = NULL;
	strmap_fini(&nodes->clusters);
	strmap_fini(&nodes->endpoints);
}

// Names

static void on_addresses(struct dns_source *s)
{
	struct node *n = s->ctx;
	n->nodes->dirty = true;
	// Name servers go on whatever becomes of the servers of resources.
	n->nodes->heard |= s->moved && (!s->first || n->nodes->n_withheld > 0);
	n->nodes->reshaped |= s->out_of_memory; // the pass asks for the answer again
	if (s->first)
		n->nodes->n_unresolved[n->waited]--;
	n->nodes->on_news(n->nodes);
}

int node_resolve_name(struct node *n)
{
	struct res_cluster *c = n->res ? res_cluster_from(n->res) : NULL;
	if (!c || c->kind != RES_CLUSTER_LOGICAL_DNS || !n->nodes->dns) {
		drop_source(n);
		return 0;
	}
	if (n->dns && !n->dns->out_of_memory && dns_source_fits(n->dns, c))
		return 0;
	// The new watch starts before the old one ends: a name that stays is not asked for again.
	struct dns_source *s = dns_source_new(n->nodes->dns, c, n->dns, on_addresses, n);
	if (!s)
		return -ENOMEM;
	drop_source(n);
	n->dns = s;
	n->nodes->n_unresolved[n->waited] += !s->answered;
	return 0;
}

struct res_cluster *node_cluster(const struct node *n, const char **reterr)
{
	struct res_cluster *c = n->res ? res_cluster_from(n->res) : NULL;
	if (c && (c->kind != RES_CLUSTER_LOGICAL_DNS || n->dns))
		return c;
	if (c)
		*reterr = "LOGICAL_DNS needs a resolver of names, and this instance has none";
	else
		*reterr = n->error ? n->error : "out of memory";
	return NULL;
}
