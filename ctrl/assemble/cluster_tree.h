// SPDX-License-Identifier: Apache-2.0
// What balances one cluster's requests: the policy tree of a leaf, that of an aggregate with a tree
// for each of its leaves (gRFC A75; A75-T01, A75-T02, A74-C01 to A74-C09, A88-C10), or
// an error. Turns what the tree publishes into immutable lb_cluster objects for snapshots.
// Thread: ctrl.
#pragma once

#include "ctrl/assemble/ids.h"
#include "lb/base/err.h"
#include "lb/leaf/leaf.h"
#include "lb/member/member.h"

#include <stdbool.h>
#include <stdint.h>

struct cluster_tree;
struct lb_breakers;
struct lb_cluster;
struct lb_dump;
struct leaf_source;
struct load_report;
struct members;
struct rand;
struct twheel;
struct xds_cluster_config;
struct xds_config;

// What all trees have in common; borrowed, outlives them.
struct cluster_tree_env {
	struct twheel *wheel;
	struct rand *rand;
	struct lb_member_env member_env;
	struct members *members;
	struct ids *leaf_ids;
	struct lb_breakers *breakers;
	struct lb_orca_table *orca;
	uint32_t *member_loads; // lb_shared.loads
	struct load_report *loads; // NULL = nobody takes load reports
	bool aggregate_policy; // leaves of an aggregate use the aggregate's own (A75-G08)
	bool sessions_use_ejected; // A75-O22
	// Another state or picker. Borrowed: a snapshot takes its own reference. Called from inside
	// configure() and from events; must not free the tree.
	void (*on_change)(void *ctx, struct lb_cluster *);
	void (*reresolve)(void *ctx); // names may have other addresses now (A74-C06)
	void *ctx;
	struct lb_leaf_env leaf; // cluster_tree_env_init()'s
};
// The rest is filled; it stays where it is.
void cluster_tree_env_init(struct cluster_tree_env *);

// id < LB_MAX_CLUSTERS; the name outlives the tree. Until it is configured its requests wait
// (A28-R05). NULL = out of memory.
struct cluster_tree *cluster_tree_new(
	const struct cluster_tree_env *, uint32_t id, const char *name);
void cluster_tree_free(struct cluster_tree *); // NULL is fine
// It has what the configuration says of it.
bool cluster_tree_is_same(
	const struct cluster_tree *, const struct xds_config *, const struct xds_cluster_config *);
// What the configuration says of it now; nothing happens if that is the same as before. Endpoints
// that stay keep their connections (UPD-02), also when a leaf becomes an aggregate (A74-C09). 0, or
// -ENOMEM with reterr: out of memory, or too many endpoints. Then the earlier tree serves on; where
// there is none, requests fail with that text.
[[nodiscard]] int cluster_tree_configure(struct cluster_tree *, struct xds_config *,
	const struct xds_cluster_config *, struct lb_err *reterr);
// The environment says now that requests may have sessions (lb_leaf_env.has_sessions).
void cluster_tree_begin_sessions(struct cluster_tree *);
// A request waits for this member (LB_EVENT_CONNECT_REQUEST).
void cluster_tree_want(struct cluster_tree *, uint32_t member);

// Requests wait until it serves; nothing if it does. As lb_leaf_expedite().
uint32_t cluster_tree_expedite(struct cluster_tree *);

// No configuration routes to it any more, or one does again (A31-R12).
void cluster_tree_set_leaving(struct cluster_tree *, bool);

// The newest object; never NULL; borrowed until the next change.
struct lb_cluster *cluster_tree_object(const struct cluster_tree *);
// What the configuration notes of a cluster that serves all the same: its newest resource was
// refused or deleted, its endpoints have no answer. "" = nothing; borrowed until configure().
const char *cluster_tree_trouble(const struct cluster_tree *);
void cluster_tree_dump(const struct cluster_tree *, struct lb_dump *);
// Its leaves in order; leaf NULL = not made yet. Borrowed for the call.
void cluster_tree_each_leaf(const struct cluster_tree *,
	void (*fn)(void *ctx, const struct leaf_source *, const struct lb_leaf *leaf), void *ctx);
