// SPDX-License-Identifier: Apache-2.0
// What one leaf cluster's policy tree is made from: the resources of the newest configuration, as
// lb_leaf_config. A policy that says the same in another resource stays the same object, so that
// nothing is pushed down (A74-C09).
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cluster_tree_env;
struct lb_leaf;
struct load_leaf;
struct res_cluster;
struct res_endpoints;
struct xds_cluster_config;

struct leaf_source {
	struct leaf_source *next; // its owner's
	uint32_t id; // of the leaf, for lb_leaf_new()
	// What the leaf was given last. Counted; NULL = nothing yet, or (endpoints) none is known.
	struct res_cluster *cluster;
	struct res_endpoints *endpoints;
	struct res_cluster *policy_of; // counted; whose spec the leaf has
	char *note; // owned; of trouble; NULL = there is none
	struct load_leaf *loads; // NULL = nothing is reported
	char name[];
};

// Takes a leaf id. NULL = out of memory, or none is left.
struct leaf_source *leaf_source_new(const struct cluster_tree_env *, const char *name);
void leaf_source_free(struct leaf_source *, const struct cluster_tree_env *); // NULL is fine
// It has nothing new for the leaf. policy: whose spec counts.
bool leaf_source_is_same(const struct leaf_source *, const struct xds_cluster_config *,
	const struct res_cluster *policy);
// Gives it to the leaf. 0 or -ENOMEM: as before.
[[nodiscard]] int leaf_source_apply(struct leaf_source *, const struct cluster_tree_env *,
	struct lb_leaf *, const struct xds_cluster_config *, struct res_cluster *policy);
