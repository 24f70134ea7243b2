// SPDX-License-Identifier: Apache-2.0
// The policies of a leaf's priorities: one child of lb/policy/priority.h each, in whose place one
// kind of policy follows another. They are told what the members' layout says.
// Thread: ctrl.
#pragma once

#include "lb/policy/node.h"

struct lb_leaf_members;
struct lb_priority;

// Whom they tell.
struct lb_leaf_children_parent {
	// New state and picker; the reference moves to the parent.
	void (*publish)(void *ctx, enum lb_state, struct lb_picker *);
	// A policy took another's place, or ended: some members may be nobody's any more, from the
	// next tick on.
	void (*on_replace)(void *ctx);
	void *ctx;
};

struct lb_leaf_children {
	struct lb_leaf_members *members; // borrowed
	struct lb_leaf_children_parent parent;
	struct lb_priority *priority; // owned
	struct lb_node_env env; // of the policies
	bool is_updating; // the leaf's: who comes and goes is listed when the update is whole
	bool ignores_reresolution; // the leaf's: it came of EDS (A56-P14, A74-C06)
};

// Borrows the name too. False = out of memory; it may be finished all the same.
[[nodiscard]] bool lb_leaf_children_init(struct lb_leaf_children *, struct lb_leaf_members *,
	const char *cluster, struct lb_leaf_children_parent);
void lb_leaf_children_fini(struct lb_leaf_children *);
// Gives them the layout. 0, or -ENOMEM: as before, but for those that already took theirs.
[[nodiscard]] int lb_leaf_children_update(struct lb_leaf_children *);
// As lb_leaf_layout_new's exists(); ctx is the children.
bool lb_leaf_children_exists(void *ctx, uint32_t number);
// Marks members that a policy uses, for lb_affinity_list.uses (A55-O03).
void lb_leaf_children_mark(const struct lb_leaf_children *, uint8_t *uses);
