// SPDX-License-Identifier: Apache-2.0
// A leaf's members over all its updates: one per endpoint of the newest list, the leaving ones, and
// those that policies made for themselves (pick_first). The same addresses give the same member.
// Members that are down take turns to connect.
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
	void *owner; // from lb_leaf_parent
	struct lb_member_env env; // of the members; outlives them
	struct lb_leaf_layout *layout; // the leaf's, the newest; NULL = none yet
	struct lb_leaf_leaving leaving; // leaving members
	struct lb_leaf_made *made; // owned, each counted: members made for policies
	struct lb_affinity
		*affinity; // the leaf's; told of the members' changes; NULL = the leaf ends
	uint32_t turn_at; // place in the layout's roster that had the last turn
	bool has_turns; // turn_at is valid
};

void lb_leaf_members_init(struct lb_leaf_members *, const struct lb_leaf_env *, void *owner);
void lb_leaf_members_fini(struct lb_leaf_members *);

// The member with these addresses, from any list; borrowed. NULL = none.
struct lb_member *lb_leaf_members_find(
	const struct lb_leaf_members *, const struct ip_port *, uint32_t n);
// Makes a member, counted. Returns NULL if out of memory or out of ids.
struct lb_member *lb_leaf_members_make(
	struct lb_leaf_members *, const struct ip_port *, uint32_t n);
// As lb_node_services.member_new. It can be found as long as a policy uses it.
struct lb_member *lb_leaf_members_make_for_policy(
	struct lb_leaf_members *, const struct ip_port *, uint32_t n);
// The leaf asks for other times of connections; those that leave keep theirs.
void lb_leaf_members_set_timers(struct lb_leaf_members *, struct lb_timers);
// Drops those that no policy uses any more; their connections are closed (PF-07).
void lb_leaf_members_free_unused(struct lb_leaf_members *);
// As lb_leaf_want, for members made for policies, and lb_leaf_expedite.
void lb_leaf_members_want(struct lb_leaf_members *, uint32_t member);
uint32_t lb_leaf_members_expedite(struct lb_leaf_members *);
