// SPDX-License-Identifier: Apache-2.0
// The input of one leaf cluster's policy tree: the newest resources as lb_leaf_config. A policy
// that is equal in a new resource stays the same object, so that the tree sees no change (A74-C09).
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cluster_tree_env;
struct lb_leaf;
struct lb_leaf_endpoints;
struct load_leaf;
struct res_cluster;
struct res_endpoints;
struct xds_cluster_config;

struct leaf_source {
	struct leaf_source *next; // in its owner's list
	uint32_t id; // of the leaf, for lb_leaf_new()
	// What the leaf was last given. Counted; NULL = nothing yet, or (endpoints) unknown.
	struct res_cluster *cluster;
	struct res_endpoints *endpoints;
	struct res_cluster *policy_of; // counted; the resource whose spec the leaf has
	uint32_t credential; // taken; LB_PLAIN_TEXT = it is spoken to in the clear
	char *note; // owned; resolution note; NULL = none
	struct lb_leaf_endpoints *list; // counted; of endpoints, with the overrides; NULL = none
	uint64_t overridden; // overrides_revision() of when it was made
	struct load_leaf *loads; // NULL = no load reports
	char name[];
};

// Takes a leaf id. Returns NULL if out of memory or out of ids.
struct leaf_source *leaf_source_new(const struct cluster_tree_env *, const char *name);
void leaf_source_free(struct leaf_source *, const struct cluster_tree_env *); // NULL is fine
// True if nothing changed for the leaf. policy: the resource whose spec is used.
bool leaf_source_is_same(const struct leaf_source *, const struct cluster_tree_env *,
	const struct xds_cluster_config *, const struct res_cluster *policy);
// Gives the configuration to the leaf. Returns 0, or -ENOMEM (also out of ids of TLS contexts) with
// nothing changed.
[[nodiscard]] int leaf_source_apply(struct leaf_source *, const struct cluster_tree_env *,
	struct lb_leaf *, const struct xds_cluster_config *, struct res_cluster *policy);
