// SPDX-License-Identifier: Apache-2.0
// A leaf's configuration of this moment, by priority, with members in the place of addresses: what
// its policies are given, also those that are made later. Made anew by each update.
// Thread: ctrl.
#pragma once

#include "lb/arena.h"
#include "lb/leaf.h"

struct lb_child_names;

#define LB_LEAF_CHILD_NAME_MAX 24

struct lb_leaf_entry {
	struct lb_member *member; // counted
	uint64_t hash; // of the set of addresses
	const struct ip_port *addresses; // in this update's order
	uint32_t n_addresses;
	enum lb_leaf_health health;
	uint32_t priority;
	struct str hostname, locality;
};

struct lb_leaf_layout {
	struct lb_arena arena; // the rest lies in it
	struct lb_child_names *names; // owned
	uint32_t n_priorities;
	struct lb_node_config *configs; // [n_priorities], for the policies
	const char **children; // [n_priorities], their names
	uint32_t n_endpoints;
	struct lb_leaf_entry *endpoints; // in the order of EDS
	struct lb_leaf_entry **by_hash; // the same
};

// Who makes members for it.
struct lb_leaf_members {
	const struct lb_leaf_env *env;
	const struct lb_leaf_layout *before; // whose members are kept; NULL = none
};

// NULL = no memory, or no number for a member is left.
struct lb_leaf_layout *lb_leaf_layout_new(const struct lb_leaf_members *,
	const struct lb_leaf_config *, bool (*exists)(void *ctx, uint32_t number), void *ctx);
// Puts the members; the numbers of those of which no `kept` layout (NULL = none) has the member are
// given back. NULL is fine.
void lb_leaf_layout_free(
	struct lb_leaf_layout *, const struct lb_leaf_env *, const struct lb_leaf_layout *kept);
// The member of this set of addresses, in whatever order; NULL = there is none.
struct lb_member *lb_leaf_layout_member(
	const struct lb_leaf_layout *, const struct ip_port *addresses, uint32_t n);
// The policies would be told nothing new (C09).
bool lb_leaf_layout_same_configs(const struct lb_leaf_layout *, const struct lb_leaf_layout *);
void lb_leaf_child_name(uint32_t number, char ret[LB_LEAF_CHILD_NAME_MAX]);
// The rank of this child; UINT32_MAX = absent.
uint32_t lb_leaf_layout_find(const struct lb_leaf_layout *, const char *child);
