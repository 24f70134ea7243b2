// SPDX-License-Identifier: Apache-2.0
// The policies of a leaf's priorities: each is a child of lb/policy/priority.h, in a place where a
// policy of one kind can replace another. They get their configuration from the layout.
// Thread: ctrl.
#pragma once

#include "lb/policy/node.h"

struct lb_leaf_members;
struct lb_priority;

// The leaf, to which they report.
struct lb_leaf_children_parent {
	// New state and picker; the parent takes over the reference.
	void (*publish)(void *ctx, enum lb_state, struct lb_picker *);
	// A policy was replaced or freed: from the next tick on, members may have no user.
	void (*on_replace)(void *ctx);
	void *ctx;
};

struct lb_leaf_children {
	struct lb_leaf_members *members; // borrowed
	struct lb_leaf_children_parent parent;
	struct lb_priority *priority; // owned
	struct lb_node_env env; // of the policies
	bool is_updating; // set by the leaf: members are listed when the update is complete
	// set by the leaf: its endpoints come from EDS (A56-P14, A74-C06)
	bool ignores_reresolution;
};

// Borrows the name and the counts, too. False = out of memory; call fini anyway.
[[nodiscard]] bool lb_leaf_children_init(struct lb_leaf_children *, struct lb_leaf_members *,
	const char *cluster, struct lb_wrr_counts *, struct lb_leaf_children_parent);
void lb_leaf_children_fini(struct lb_leaf_children *);
// Gives them the layout. Returns 0, or -ENOMEM with nothing changed except children that had
// already taken theirs.
[[nodiscard]] int lb_leaf_children_update(struct lb_leaf_children *);
// The exists() of lb_leaf_layout_new(); ctx is the children.
bool lb_leaf_children_exists(void *ctx, uint32_t number);
// Marks the members that a policy uses, for lb_affinity_list.uses (A55-O03).
void lb_leaf_children_mark(const struct lb_leaf_children *, uint8_t *uses);
