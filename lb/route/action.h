// SPDX-License-Identifier: Apache-2.0
// What the routes of one virtual host do with a request: clusters by weight, and the route's
// policy. Routes that do the same share one action; everything is copied.
// Thread: built on ctrl; drawn from on workers. Pure.
#pragma once

#include "lb/base/arena.h"
#include "lb/base/err.h"
#include "lb/base/rand.h"
#include "lb/route/route.h"

struct lb_draw {
	uint32_t cluster_id;
	uint32_t upto; // sum of the weights up to here
	struct lb_filter_overrides overrides;
};

struct lb_action {
	enum lb_action_kind kind;
	uint32_t n_draws; // clusters with a weight (A28-W04)
	const struct lb_draw *draws;
	const struct lb_route_policy *policy;
};

struct lb_actions {
	struct lb_arena arena; // holds all that actions point to
	struct lb_action *list; // owned, as all below
	uint32_t n, room;
	struct lb_route_policy **policies;
	uint32_t n_policies, policies_room;
	struct lb_action_builder *builder; // until sealed
};

// Sets *ret to the index of the route's action. Returns 0, or -EINVAL with the reason (out of
// memory included). The conf's policy must stay allocated until the actions are sealed.
int lb_actions_add(
	struct lb_actions *, const struct lb_route_conf *, uint32_t *ret, struct lb_err *reterr);
// After the last add. False = out of memory.
[[nodiscard]] bool lb_actions_seal(struct lb_actions *);
void lb_actions_fini(struct lb_actions *);
size_t lb_actions_size(const struct lb_actions *); // bytes beside the struct itself

// Draws once per request, which keeps the result (A31); a single cluster needs no draw.
const struct lb_draw *lb_action_draw(const struct lb_action *, struct rand *);
