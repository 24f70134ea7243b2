// SPDX-License-Identifier: Apache-2.0
// A leaf's configuration of this moment, by priority, with members in the place of addresses: what
// its policies are given, also those that are made later. Made anew by each update.
// Thread: ctrl.
#pragma once

#include "lb/base/arena.h"
#include "lb/leaf.h"

struct lb_child_names;

#define LB_LEAF_CHILD_NAME_MAX 24

struct lb_leaf_layout {
	struct lb_arena arena; // the rest lies in it
	struct lb_child_names *names; // owned
	const char *note;
	uint32_t n_priorities;
	struct lb_node_config *configs; // [n_priorities], for the policies
	const char **children; // [n_priorities], their names
	uint32_t *ends; // [n_priorities], of their endpoints
	uint32_t n_endpoints;
	// In the order of EDS, but that in each locality those that drain are the last.
	struct lb_node_member *endpoints; // their members are counted
	uint8_t *health; // of each: enum lb_leaf_health
	const char **hostnames; // of each; NULL = nobody has one
};

// Who makes members for it.
struct lb_leaf_members {
	const struct lb_leaf_layout *before; // whose members are kept; NULL = none
	// The member of these addresses, in the layout before or earlier ones; NULL = unknown.
	struct lb_member *(*find)(void *ctx, const struct ip_port *, uint32_t n);
	// A new one, counted. NULL = no memory, or no number is left.
	struct lb_member *(*make)(void *ctx, const struct ip_port *, uint32_t n);
	void *ctx;
};

// NULL = no memory, or no number for a member is left.
struct lb_leaf_layout *lb_leaf_layout_new(const struct lb_leaf_members *,
	const struct lb_leaf_config *, bool (*exists)(void *ctx, uint32_t number), void *ctx);
// The members take over the order of their addresses in the config, which is the layout's. True =
// one has another first address, by which rings know it (RH-01).
bool lb_leaf_layout_reorder(const struct lb_leaf_layout *, const struct lb_leaf_config *);
struct str lb_leaf_layout_hostname(const struct lb_leaf_layout *, uint32_t endpoint); // "" = none
// Puts the members. NULL is fine.
void lb_leaf_layout_free(struct lb_leaf_layout *);
// The policies would be told nothing new (C09).
bool lb_leaf_layout_same_configs(const struct lb_leaf_layout *, const struct lb_leaf_layout *);
void lb_leaf_child_name(uint32_t number, char ret[LB_LEAF_CHILD_NAME_MAX]);
// The rank of this child; UINT32_MAX = absent.
uint32_t lb_leaf_layout_find(const struct lb_leaf_layout *, const char *child);
