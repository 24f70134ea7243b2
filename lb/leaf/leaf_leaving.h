// SPDX-License-Identifier: Apache-2.0
// Members that a leaf's newest list lacks but its policies still use: a new list takes over only
// when one of its members is READY (RR-04), and several may wait in a row. Requests to these
// members still find their host names, and an endpoint that returns is the same member (A50-E04).
// The policies' own lists keep them connected.
// Thread: ctrl.
#pragma once

#include <stdbool.h>

struct lb_leaf_endpoints;
struct lb_leaf_layout;
struct lb_roster;

struct lb_leaf_leaving { // all zero = empty
	struct lb_leaf_endpoints *endpoints; // counted
	struct lb_roster *roster; // counted; the members of all these endpoints
};

// Takes the members that were leaving earlier or are in `before`, but are not in the newest layout.
// `before` may be NULL. Returns 0, or -ENOMEM with an empty result.
[[nodiscard]] int lb_leaf_leaving_init(struct lb_leaf_leaving *,
	const struct lb_leaf_leaving *earlier, const struct lb_leaf_layout *before,
	const struct lb_leaf_layout *newest);
void lb_leaf_leaving_fini(struct lb_leaf_leaving *); // leaves it empty
// Drops members that no policy uses any more. True = some were dropped. Out of memory they stay.
bool lb_leaf_leaving_prune(struct lb_leaf_leaving *);
