// SPDX-License-Identifier: Apache-2.0
// A leaf's configuration of this moment, with members in the place of addresses: what its policies
// are given, also those that are made later. Made anew by each update.
// Thread: ctrl.
#pragma once

#include "lb/leaf/leaf.h"
#include "lb/leaf/roster.h"
#include "lb/pick/leaf_endpoints.h"
#include "lb/policy/node.h"

struct lb_child_names;
struct lb_leaf_members;

#define LB_LEAF_CHILD_NAME_MAX 24

struct lb_leaf_layout {
	struct lb_leaf_endpoints *endpoints; // counted
	struct lb_roster *roster; // counted; of those that take part
	const struct lb_policy_spec *spec; // of all priorities
	uint32_t n_priorities; // one without endpoints if EDS has none (A74-C08)
	struct lb_child_names *names; // owned
	// The rest lies behind it.
	const char *note;
	const char **children; // [n_priorities], their names
	struct lb_leaf_child *by_name; // [n_priorities], the same, sorted
};
struct lb_leaf_child {
	const char *name;
	uint32_t rank;
};

// NULL = out of memory, or no number for a member is left.
// Members are kept from the layout before, and found among or made by these.
struct lb_leaf_layout *lb_leaf_layout_new(struct lb_leaf_members *, const struct lb_leaf_config *,
	bool (*exists)(void *ctx, uint32_t number), void *ctx);
// The members take over the order of their addresses. True = one has another first address, by
// which rings know it (RH-01).
bool lb_leaf_layout_reorder(const struct lb_leaf_layout *);
// Puts the members. NULL is fine.
void lb_leaf_layout_free(struct lb_leaf_layout *);
// The policies would be told nothing new (A74-C09).
bool lb_leaf_layout_same_configs(const struct lb_leaf_layout *, const struct lb_leaf_layout *);
// What this priority's policies are told; to be freed. NULL = out of memory.
struct lb_node_config *lb_leaf_layout_config(const struct lb_leaf_layout *, uint32_t rank);
// This priority's localities.
const struct lb_leaf_span *lb_leaf_layout_spans(
	const struct lb_leaf_layout *, uint32_t rank, uint32_t *ret_n);
void lb_leaf_child_name(uint32_t number, char ret[LB_LEAF_CHILD_NAME_MAX]);
// The rank of this child; UINT32_MAX = absent.
uint32_t lb_leaf_layout_find(const struct lb_leaf_layout *, const char *child);
// A75-O21: tells wherever a pick finds it what counts each member's locality: loads by member,
// of_localities as lb_leaf_config.locality_loads. Both may be NULL.
void lb_leaf_layout_book(
	const struct lb_leaf_layout *, uint32_t *loads, const uint32_t *of_localities);
