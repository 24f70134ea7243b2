// SPDX-License-Identifier: Apache-2.0
// The graph of resources that one dependency manager watches, each once, and their state. walk.h
// decides what is needed, compose.h builds the configuration. Part of the manager.
// Thread: ctrl.
#pragma once

#include "ctrl/base/strmap.h"
#include "ctrl/res/cluster.h"
#include "ctrl/xds/federation.h"

#include <stdbool.h>
#include <stdint.h>

struct dns_resolver;
struct dns_source;

struct node {
	struct strmap_link link; // clusters and endpoints, by name
	struct xds_watcher watcher;
	struct nodes *nodes;
	const struct xds_type *type;
	struct node *next; // of all
	struct xds_res *res; // counted; NULL = no value
	char *error;
	char *ambient; // a problem besides the value; NULL = none
	uint64_t pass; // last one that reached it
	uint64_t waited_pass; // last pass that reached it from a route
	struct dns_source *dns; // addresses of a LOGICAL_DNS cluster; NULL = not watched
	bool waited; // a configuration waits for it; false = only requests under way need it
	bool failed; // no value; error has the reason (NULL = out of memory)
	// No value, and no reachable server: neither resolved nor failed, so the configuration in
	// use stays (DM-06, FM-09).
	bool withheld;
	bool taken; // a cluster that is part of the configuration
};
struct cluster_node {
	struct node base;
	uint64_t root_pass; // last one in which a route named it
	uint64_t held_pass; // last one in which only requests or subscribers named it
	struct node *next_reached; // list of nodes at the same distance from the routes
	uint64_t seen; // last flattening that visited it
	uint32_t entry; // index in the configuration being built
	bool was_root; // a route named it in an earlier pass, or requests have used it since
	bool whole; // waited for, or complete
};

static inline const char *node_name(const struct node *n) // lies behind it
{
	return n->link.key;
}
static inline bool node_is_cluster(const struct node *n)
{
	return n->type == &res_type_cluster;
}
static inline struct cluster_node *cluster_node_of(const struct node *n) // that of a cluster
{
	return (struct cluster_node *)(uintptr_t)n;
}

struct nodes {
	struct xds_federation *client; // borrowed
	struct dns_resolver *dns; // borrowed; NULL = none
	struct node *all; // newest first
	struct strmap clusters, endpoints;
	// Number of nodes without value and error, and of names without an answer, by `waited`.
	uint32_t n_unresolved[2];
	uint64_t pass; // counter of passes
	bool serving; // a configuration is in use
	uint32_t n_withheld;
	// News arrived that the configuration withholds because something is missing or may become
	// so.
	bool heard;
	bool holding; // nodes are now reached only for requests under way (DM-22)
	uint64_t n_flattenings;
	bool dirty; // an event came since this was cleared
	bool reshaped; // likewise, of a resource that names others: a pass is needed
	// An event came from elsewhere than the client, which says itself when it has told all.
	void (*on_news)(struct nodes *);
};

// Chooses the clusters of a configuration: all that it waits for, and those that only requests or
// subscribers need if they are complete, with their dependencies (DM-21, DM-22). Returns how many.
uint32_t nodes_take(struct nodes *);
// What is withheld has failed; while a configuration is in use, all but its listener and routes.
void nodes_give_up(struct nodes *);
void nodes_sweep(struct nodes *); // DM-24: unwatches what the pass did not reach
void nodes_fini(struct nodes *);

// Starts a watch; a cached value is in the node when it returns. map: of the type; NULL for types
// without one. Returns NULL if out of memory.
struct node *node_new(
	struct nodes *, const struct xds_type *, const char *name, struct strmap *map);
// One that is not watched, but is this resource. Returns NULL if out of memory.
struct node *node_fixed(struct nodes *, struct xds_res *);
// Returns NULL if it is not watched.
struct node *node_find(const struct strmap *map, const char *name);
// Finds or makes it, and marks it as needed in this pass. Returns NULL if out of memory.
struct node *node_reach(
	struct nodes *, const struct xds_type *, const char *name, struct strmap *map);
void node_set_waited(struct node *, bool);
// Watches the DNS name of a LOGICAL_DNS cluster, and unwatches it for other types. Returns 0 or
// -ENOMEM.
[[nodiscard]] int node_resolve_name(struct node *);
bool node_resolved(const struct node *); // it has a value or an error
bool node_is_missing_something(const struct node *); // that, or addresses of its name
// Returns the cluster, or NULL and the reason, which lives as long as the node.
struct res_cluster *node_cluster(const struct node *, const char **reterr);
