// SPDX-License-Identifier: Apache-2.0
// The balancing of one cluster: the policy tree of a leaf, that of an aggregate with a tree per
// leaf (gRFC A75; A75-T01, A75-T02, A74-C01 to A74-C09, A88-C10), or an error. Turns the tree's
// results into immutable lb_cluster objects for snapshots.
// Thread: ctrl.
#pragma once

#include "ctrl/assemble/ids.h"
#include "lb/base/err.h"
#include "lb/leaf/leaf.h"
#include "lb/member/member.h"

#include <stdbool.h>
#include <stdint.h>

struct cluster_tree;
struct credentials;
struct lb_breakers;
struct lb_cluster;
struct lb_dump;
struct lb_probes;
struct leaf_source;
struct load_report;
struct members;
struct overrides;
struct rand;
struct twheel;
struct xds_cluster_config;
struct xds_config;

// What all trees share; borrowed, outlives them.
struct cluster_tree_env {
	struct twheel *wheel;
	struct rand *rand;
	struct lb_member_env member_env;
	struct members *members;
	struct ids *leaf_ids;
	struct lb_breakers *breakers;
	struct lb_orca_table *orca;
	struct lb_probes *probes; // NULL = no health checks
	uint32_t *member_loads; // lb_shared.loads
	struct load_report *loads; // NULL = no load reports
	struct overrides *overrides; // NULL = none
	struct credentials *credentials; // NULL = connections by TLS are refused
	bool aggregate_policy; // leaves of an aggregate use its policy (A75-G08)
	bool sessions_use_ejected; // A75-O22
	uint64_t subset_seed; // as in lb_leaf_env
	// Called for a new state or picker, which a snapshot counts itself. Called from inside
	// configure() and from events; must not free the tree.
	void (*on_change)(void *ctx, struct lb_cluster *);
	void (*reresolve)(void *ctx); // DNS names may have other addresses now (A74-C06)
	void *ctx;
	struct lb_leaf_env leaf; // set by cluster_tree_env_init()
};
// Call after filling in the rest, at its final address.
void cluster_tree_env_init(struct cluster_tree_env *);

// id < LB_MAX_CLUSTERS; the name outlives the tree. Requests wait until it is configured (A28-R05).
// Returns NULL if out of memory.
struct cluster_tree *cluster_tree_new(
	const struct cluster_tree_env *, uint32_t id, const char *name);
void cluster_tree_free(struct cluster_tree *); // NULL is fine
// True if the tree already has this configuration of the cluster.
bool cluster_tree_is_same(
	const struct cluster_tree *, const struct xds_config *, const struct xds_cluster_config *);
// Applies the cluster's configuration; no effect if it is unchanged. Endpoints that stay keep their
// connections (UPD-02), even when a leaf becomes an aggregate (A74-C09). Returns 0, or -ENOMEM with
// reterr: out of memory, or too many endpoints. The earlier tree then keeps serving; without one,
// requests fail with that text.
[[nodiscard]] int cluster_tree_configure(struct cluster_tree *, struct xds_config *,
	const struct xds_cluster_config *, struct lb_err *reterr);
// Applies the same configuration again, with overrides as they are now. Likewise.
[[nodiscard]] int cluster_tree_refresh(struct cluster_tree *, struct lb_err *reterr);
// Call when the environment begins to allow sessions (lb_leaf_env.has_sessions).
void cluster_tree_begin_sessions(struct cluster_tree *);
// A request waits for this member (LB_EVENT_CONNECT_REQUEST).
void cluster_tree_want(struct cluster_tree *, uint32_t member);

// Requests wait until the cluster serves: see lb_leaf_expedite(). No effect if it serves.
uint32_t cluster_tree_expedite(struct cluster_tree *);

// No configuration routes to it any more, or one does again (A31-R12).
void cluster_tree_set_leaving(struct cluster_tree *, bool);

// The newest object; never NULL; borrowed until the next change.
struct lb_cluster *cluster_tree_object(const struct cluster_tree *);
// A problem of a cluster that serves nevertheless: its newest resource was rejected or deleted, or
// its endpoints are missing. "" = none; borrowed until configure().
const char *cluster_tree_trouble(const struct cluster_tree *);
// Of a cluster that is its own leaf: "" = plain text, "tls", or "mtls" where we show a certificate.
const char *cluster_tree_tls(const struct cluster_tree *);
// Why its TLS context is none, or an older one; "" = all is well. Borrowed.
const char *cluster_tree_tls_error(const struct cluster_tree *);
void cluster_tree_dump(const struct cluster_tree *, struct lb_dump *);
// What its leaves have counted, also those it no longer has.
void cluster_tree_count(const struct cluster_tree *, struct lb_leaf_counts *ret);
// Calls fn for each leaf in order; leaf NULL = not made yet. Borrowed for the call.
void cluster_tree_each_leaf(const struct cluster_tree *,
	void (*fn)(void *ctx, const struct leaf_source *, struct lb_leaf *leaf), void *ctx);
