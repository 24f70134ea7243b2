// SPDX-License-Identifier: Apache-2.0
// What one dependency manager watches, each thing once, and what is known of it. Part of the
// manager. Not here: what is needed (walk.h), what becomes of it (compose.h).
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
	char *ambient; // trouble beside the value; NULL = none
	uint64_t pass; // last one that reached it
	uint64_t waited_pass; // last one that did so from a route
	struct dns_source *dns; // addresses of a LOGICAL_DNS cluster; NULL = not watched
	bool waited; // a configuration waits for it; else it is there for requests under way alone
	bool failed; // no value, and error says why (NULL = no memory even for that)
	// No value, and no server to ask for it: neither resolved nor failed, so that the
	// configuration in use stays (DM-06, FM-09).
	bool withheld;
	bool taken; // a cluster, into the configuration
};
struct cluster_node {
	struct node base;
	uint64_t root_pass; // last one in which a route named it
	uint64_t held_pass; // last one in which only requests or subscribers named it
	struct node *next_reached; // of those as far from the routes
	uint64_t seen; // last flattening that came by
	uint32_t entry; // in the configuration that is being built
	bool was_root; // in an earlier pass, or requests hold it since
	bool whole; // waited for, or nothing that it needs is missing
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
	// Nodes with neither value nor error, names without an answer: by `waited`.
	uint32_t n_unresolved[2];
	uint64_t pass; // counts the manager's
	bool serving; // a configuration is in use
	uint32_t n_withheld;
	// News came that what is withheld holds up, or will hold up if what is missing becomes so.
	bool heard;
	bool holding; // what is reached now is so for requests under way (DM-22)
	uint64_t n_flattenings;
	bool dirty; // an event came since the flag was cleared
	bool reshaped; // likewise, of a resource that names others: a pass is due
	// An event came from elsewhere than the client, which says itself when it has told all.
	void (*on_news)(struct nodes *);
};

// Chooses the clusters that a configuration takes: all that it waits for, and of those that only
// requests or subscribers name the ones that lack nothing, with what they need (DM-21, DM-22). How
// many.
uint32_t nodes_take(struct nodes *);
// What is withheld has failed; while a configuration is in use, all but its listener and routes.
void nodes_give_up(struct nodes *);
void nodes_sweep(struct nodes *); // DM-24: what the pass did not reach is watched no more
void nodes_fini(struct nodes *);

// Starts a watch; what is cached is in the node when it returns. The map is that of the type, NULL
// for those that have none. NULL = out of memory.
struct node *node_new(
	struct nodes *, const struct xds_type *, const char *name, struct strmap *map);
// NULL = it is not watched.
struct node *node_find(const struct strmap *map, const char *name);
// Finds or starts it, and notes that this pass needs it. NULL = out of memory.
struct node *node_reach(
	struct nodes *, const struct xds_type *, const char *name, struct strmap *map);
void node_set_waited(struct node *, bool);
// Resolves the name of a LOGICAL_DNS cluster, and stops that for all others. 0 or -ENOMEM.
[[nodiscard]] int node_resolve_name(struct node *);
bool node_resolved(const struct node *); // it has a value or an error
bool node_is_missing_something(const struct node *); // that, or addresses of its name
// The cluster, or NULL and the reason, which lives as long as the node.
struct res_cluster *node_cluster(const struct node *, const char **reterr);
