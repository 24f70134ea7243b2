// SPDX-License-Identifier: Apache-2.0
// A node of a cluster's policy tree: a single-threaded state machine that turns members' states
// into one state and one immutable picker (docs/balancing.md). One algorithm per file (node_*.c). A
// node knows no socket and no clock but the wheel.
// Thread: ctrl.
#pragma once

#include "lb/base/str.h"
#include "lb/base/twheel.h"
#include "lb/pick/endpoint.h"
#include "lb/policy/policy_spec.h"

#include <stdbool.h>
#include <stdint.h>

struct ip_port;
struct lb_member;
struct lb_node;
struct lb_orca_table;
struct lb_picker;
struct lb_spread_kind;
struct rand;

// The input of an update; borrowed for the call.
struct lb_node_member {
	struct lb_member *member; // the node takes its own reference
	// Weight of the endpoint, times its locality's if the policy sees several (A42-C11).
	uint32_t weight;
};
struct lb_node_locality {
	struct str name; // "region/zone/sub_zone", slashes in these escaped; unique in the list
	uint32_t weight; // >= 1
	const struct lb_node_member *members;
	uint32_t n_members;
	// [n_members], ring keys (RH-01): "" = the first address's text. NULL = all are "".
	const char *const *hash_keys;
};
struct lb_node_config {
	const struct lb_policy_spec *spec;
	// a policy that does not split by locality sees all members
	const struct lb_node_locality *localities;
	uint32_t n_localities;
};

struct lb_node_ops;
typedef const struct lb_node_ops *lb_node_ops_find(enum lb_policy_kind);

// What weighted_round_robin met when it weighed its endpoints (gRFC A78), which it does once an
// update period, and when they change.
struct lb_wrr_counts {
	uint64_t updates;
	uint64_t rr_fallback; // of these, those with fewer than two weights: plain round robin
	// Endpoints without a weight, in each: no report gave one or the blackout lasts; expired.
	uint64_t not_yet_usable, stale;
};

// What nodes may ask of their environment.
struct lb_node_services {
	// Returns a dense number owned by this node: its index in each worker's
	// lb_pick_ctx.positions. UINT32_MAX = none is left.
	uint32_t (*slot_take)(void *ctx);
	void (*slot_give)(void *ctx, uint32_t slot);
	// Makes a member over these addresses for the node alone, for pick_first. Connect requests
	// of picks (lb_pick.connect_request) find it by id like any other. The node puts it. NULL =
	// out of memory.
	struct lb_member *(*member_new)(void *ctx, const struct ip_port *, uint32_t n);
	// A connection was lost or an attempt failed: addresses from DNS may be outdated (PF-05,
	// PF-06, A74-C06). Only notes the request. May be NULL.
	void (*reresolve)(void *ctx);
	// Such a member may stay: it would be connected in the same way if it were new. NULL = each
	// may.
	bool (*member_fits)(void *ctx, const struct lb_member *);
};

// What all nodes of a leaf share; borrowed, outlives them. Call lb_node_env_init() after filling in
// the first part.
struct lb_node_env {
	const char *cluster; // for error texts (ERR-01)
	const char *note; // resolution note of the newest update, for error texts; "" = none
	struct twheel *wheel;
	struct rand *rand;
	struct lb_orca_table *orca; // reports by member id (lb/pick/orca.h); NULL = none
	lb_node_ops_find *ops_of; // makes child nodes; usually lb_node_ops_of
	struct lb_wrr_counts *wrr; // added to; NULL = nobody asks
	const struct lb_node_services *services;
	void *ctx; // of the services
	// Private to lb/policy/node.c:
	struct twheel_timer timer; // for those in due
	struct lb_node *due, *called; // nodes that asked for again(), and those being called now
	struct lb_node *dismissed; // owned
};

// The parent that a node reports to.
struct lb_node_parent {
	// New state and picker; the parent takes over the reference, even on failure. Called inside
	// update() (at most once), exit_idle(), timers, and members' changes. Returns 0, or
	// -ENOMEM: the parent keeps the old picker and the node tries again (UPD-*).
	int (*publish)(void *ctx, enum lb_state, struct lb_picker *);
	void *ctx;
};

struct lb_dump; // visitor of `show tree` (lb/policy/dump.h)

struct lb_node_ops {
	const char *name; // gRPC's: "round_robin", "weighted_target", …
	// Returns NULL if out of memory.
	struct lb_node *(*new)(struct lb_node_env *, struct lb_node_parent);
	// 0, or -ENOMEM with nothing changed
	int (*update)(struct lb_node *, const struct lb_node_config *);
	void (*exit_idle)(struct lb_node *); // a request needs the node; IDLE members may connect
	void (*dump)(const struct lb_node *, struct lb_dump *); // NULL = name and state are all
	void (*again)(struct lb_node *); // called at lb_node_again()'s time; NULL = never used
	void (*free)(struct lb_node *); // frees the kind's own part, for lb_node_free()
	// for kinds built on lb/policy/node_spread.h; else NULL
	const struct lb_spread_kind *spread;
};
struct lb_node {
	const struct lb_node_ops *ops;
	struct lb_node_env *env;
	struct lb_node_parent parent;
	struct lb_node *next; // private to lb/policy/node.c; NULL = in no list
};

void lb_node_env_init(struct lb_node_env *);
void lb_node_env_fini(struct lb_node_env *); // after all nodes are freed or dismissed
void lb_node_free(struct lb_node *); // NULL is fine
// Stops a node's reports and frees it at the next tick, since it may be the caller. NULL is fine.
void lb_node_dismiss(struct lb_node *);
// Calls the node's again() at this time, or earlier if another node of the leaf is due before.
void lb_node_again(struct lb_node *, uint64_t at_ns);
static inline int lb_node_publish(
	const struct lb_node *n, enum lb_state state, struct lb_picker *picker)
{
	return n->parent.publish(n->parent.ctx, state, picker);
}
