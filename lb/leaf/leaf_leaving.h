// SPDX-License-Identifier: Apache-2.0
// Members that a leaf's newest list lacks, but its policies still have: lists that are to take over
// wait until somebody of theirs is READY (RR-04), and so may several in a row. Requests
// to them find their host names, and who comes back is the same member (A50-E04). Not the policies'
// own lists, which keep the members connected.
// Thread: ctrl.
#pragma once

#include <stdbool.h>

struct lb_leaf_endpoints;
struct lb_leaf_layout;
struct lb_roster;

struct lb_leaf_leaving { // all zero = nobody
	struct lb_leaf_endpoints *endpoints; // counted
	struct lb_roster *roster; // counted; of all of these
};

// Whoever was leaving earlier or is in the layout before, but is not in the newest one. `before`
// may be NULL. 0, or -ENOMEM: nobody.
[[nodiscard]] int lb_leaf_leaving_init(struct lb_leaf_leaving *,
	const struct lb_leaf_leaving *earlier, const struct lb_leaf_layout *before,
	const struct lb_leaf_layout *newest);
void lb_leaf_leaving_fini(struct lb_leaf_leaving *); // nobody afterwards
// Forgets whom no policy has any more. True = there are others now. Out of memory they stay.
bool lb_leaf_leaving_prune(struct lb_leaf_leaving *);
