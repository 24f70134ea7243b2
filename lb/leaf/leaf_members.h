// SPDX-License-Identifier: Apache-2.0
// A leaf's members over all its updates: one for each endpoint of the newest list, those that are
// leaving, and those that policies made for themselves (pick_first). The same addresses are the
// same member. Those that are down take turns to connect.
// Thread: ctrl.
#pragma once

#include "lb/leaf/leaf_leaving.h"
#include "lb/member/member.h"

struct ip_port;
struct lb_affinity;
struct lb_leaf_env;
struct lb_leaf_layout;
struct lb_leaf_made;

struct lb_leaf_members {
	const struct lb_leaf_env *leaf_env;
	void *owner; // as lb_leaf_parent's
	struct lb_member_env env; // of the members, which all are gone before
	struct lb_leaf_layout *layout; // the leaf's, the newest; NULL = none yet
	struct lb_leaf_leaving leaving; // those that it lacks
	struct lb_leaf_made *made; // owned, each counted: those of policies
	struct lb_affinity *affinity; // borrowed; hears of their changes. NULL = not any more
	uint32_t turn_at; // the place in the layout's roster whose turn was last
	bool has_turns; // there was one
};

void lb_leaf_members_init(struct lb_leaf_members *, const struct lb_leaf_env *, void *owner);
void lb_leaf_members_fini(struct lb_leaf_members *);

// The member of these addresses, in the newest lists or earlier ones; borrowed. NULL = unknown.
struct lb_member *lb_leaf_members_find(
	const struct lb_leaf_members *, const struct ip_port *, uint32_t n);
// A new one, counted. NULL = out of memory, or no number is left.
struct lb_member *lb_leaf_members_make(
	struct lb_leaf_members *, const struct ip_port *, uint32_t n);
// As lb_node_services.member_new. It is known while a policy has it.
struct lb_member *lb_leaf_members_make_for_policy(
	struct lb_leaf_members *, const struct ip_port *, uint32_t n);
// Those that no policy has any more; their connections end (PF-07).
void lb_leaf_members_free_unused(struct lb_leaf_members *);
// As lb_leaf_want, among those of policies, and lb_leaf_expedite.
void lb_leaf_members_want(struct lb_leaf_members *, uint32_t member);
uint32_t lb_leaf_members_expedite(struct lb_leaf_members *);
