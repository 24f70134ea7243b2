// SPDX-License-Identifier: Apache-2.0
// A node of a cluster's policy tree: a single-threaded state machine that turns members' states
// into one state and one immutable picker (docs/balancing.md). One algorithm a file (node_*.c). A
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

// What an update brings; borrowed for the call.
struct lb_node_member {
	struct lb_member *member; // the node takes its own reference
	// Of the endpoint, times its locality's where the policy sees several (A42-C11).
	uint32_t weight;
};
struct lb_node_locality {
	struct str name; // "region/zone/sub_zone", slashes in these escaped; unique in the list
	uint32_t weight; // >= 1
	const struct lb_node_member *members;
	uint32_t n_members;
	// [n_members], of the ring (RH-01): "" = the first address's text. NULL = all are.
	const char *const *hash_keys;
};
struct lb_node_config {
	const struct lb_policy_spec *spec;
	const struct lb_node_locality *localities; // a policy that does not split sees all members
	uint32_t n_localities;
};

struct lb_node_ops;
typedef const struct lb_node_ops *lb_node_ops_find(enum lb_policy_kind);

// What nodes ask of whoever has their environment.
struct lb_node_services {
	// A dense number that is this node's alone: the index of its place in each worker's
	// lb_pick_ctx.positions. UINT32_MAX = none is left.
	uint32_t (*slot_take)(void *ctx);
	void (*slot_give)(void *ctx, uint32_t slot);
	// A member of the node's own over these addresses, for pick_first. Its id is found by the
	// picks' connect requests (lb_pick.connect_request) as any other's. The caller puts it.
	// NULL = out of memory.
	struct lb_member *(*member_new)(void *ctx, const struct ip_port *, uint32_t n);
	// A connection was lost, or an attempt to connect failed: addresses that come of DNS may be
	// stale (PF-05, PF-06, A74-C06). Only takes note of it. NULL = nobody listens.
	void (*reresolve)(void *ctx);
};

// What all nodes of a leaf have in common; borrowed, outlives them. lb_node_env_init() once the
// first part is filled.
struct lb_node_env {
	const char *cluster; // for error texts (ERR-01)
	const char *note; // resolution note, for these too: that of the newest update; "" = none
	struct twheel *wheel;
	struct rand *rand;
	struct lb_orca_table *orca; // reports by member id (lb/pick/orca.h); NULL = there are none
	lb_node_ops_find *ops_of; // what the nodes below are made by; usually lb_node_ops_of
	const struct lb_node_services *services;
	void *ctx; // theirs
	// lb/policy/node.c's.
	struct twheel_timer timer; // of those below
	struct lb_node *due, *called; // those that asked for it, and those whose turn it is now
	struct lb_node *dismissed; // owned
};

// Whom a node tells.
struct lb_node_parent {
	// New state and picker; the reference moves to the parent, also on failure. Called inside
	// update() (once at most), exit_idle(), timers, and members' changes. 0, or -ENOMEM: the
	// parent has the old one still; the node tries again (UPD-*).
	int (*publish)(void *ctx, enum lb_state, struct lb_picker *);
	void *ctx;
};

struct lb_dump; // what `show tree` is drawn from (lb/policy/dump.h)

struct lb_node_ops {
	const char *name; // gRPC's: "round_robin", "weighted_target", …
	// NULL = out of memory.
	struct lb_node *(*new)(struct lb_node_env *, struct lb_node_parent);
	int (*update)(struct lb_node *, const struct lb_node_config *); // 0 or -ENOMEM: as before
	void (*exit_idle)(struct lb_node *); // a request wants it; IDLE members may connect
	void (*dump)(const struct lb_node *, struct lb_dump *); // NULL = name and state say it all
	void (*again)(struct lb_node *); // lb_node_again()'s time has come; NULL = it never asks
	void (*free)(struct lb_node *); // lb_node_free()'s part
	const struct lb_spread_kind *spread; // one of lb/policy/node_spread.h's; else NULL
};
struct lb_node {
	const struct lb_node_ops *ops;
	struct lb_node_env *env;
	struct lb_node_parent parent;
	struct lb_node *next; // lb/policy/node.c's; NULL = on none of its lists
};

void lb_node_env_init(struct lb_node_env *);
void lb_node_env_fini(struct lb_node_env *); // all nodes are freed or dismissed
void lb_node_free(struct lb_node *); // NULL is fine
// Nobody hears of it any more, and it is freed at the next tick: it may be what is calling. NULL is
// fine.
void lb_node_dismiss(struct lb_node *);
// Calls its again() at this time, or sooner if another node of the leaf is due before.
void lb_node_again(struct lb_node *, uint64_t at_ns);
static inline int lb_node_publish(
	const struct lb_node *n, enum lb_state state, struct lb_picker *picker)
{
	return n->parent.publish(n->parent.ctx, state, picker);
}
