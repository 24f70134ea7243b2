// SPDX-License-Identifier: Apache-2.0
// A leaf's state, for its three files only: leaf.c (updates, publishing), leaf_bequest.c (what
// another process can go on with) and leaf_look.c (display).
// Thread: ctrl.
#pragma once

#include "lb/base/twheel.h"
#include "lb/leaf/leaf.h"
#include "lb/leaf/leaf_children.h"
#include "lb/leaf/leaf_layer.h"
#include "lb/leaf/leaf_members.h"
#include "lb/pick/leaf_picker.h"

struct lb_leaf {
	const struct lb_leaf_env *env;
	struct lb_leaf_parent parent;
	struct lb_leaf_counts *counts, uncounted; // the parent's, or, without, nobody's
	struct lb_leaf_members members; // and the layout, which is owned here
	struct lb_leaf_children children; // the policies of its priorities
	struct lb_ejection *ejection; // owned; NULL = nobody is to be (A50-E01)
	struct lb_health *health; // owned; NULL = there are no checks
	struct lb_leaf_layer layer; // what updates say of it; the rest is each picker's
	// Of the newest update, for lists that could not be made at once.
	uint64_t idle_timeout_ns;
	// What the priorities say.
	struct lb_picker *picker; // counted; NULL = nothing yet
	uint8_t state; // enum lb_state
	uint8_t session_health; // of the newest update
	bool publish_owed; // out of memory
	bool configs_owed; // to the policies, of which some took those of an update that failed
	bool lists_owed; // to ejection, health and affinity
	bool must_weigh; // reports of another process came
	bool served_unchecked; // members that there are serve until a check fails (AHC-05)
	struct twheel_timer later; // what is owed, and members that policies made
	char name[];
};

// As its parent is told.
enum lb_state lb_leaf_state(const struct lb_leaf *);
