// SPDX-License-Identifier: Apache-2.0
// An aggregate cluster's balancing (gRFC A37, A75; A75-T02, A75-G09, A75-G11, A75-G12):
// the first of its leaves that serves, each with a tree of its own that the others don't touch. The
// list is flat already; who is a leaf, and in which order, the dependency manager says.
// Thread: ctrl.
#pragma once

#include "lb/leaf/leaf.h"

struct lb_aggregate;

struct lb_aggregate_env {
	const struct lb_leaf_env *leaf; // of each
	struct lb_leaf_parent parent; // hears of the one that serves; its ctx is that of these:
	// Gives a leaf its configuration of this moment (lb_leaf_update()). Called inside update()
	// for each leaf that exists, and when another leaf's turn comes. 0, or -ENOMEM: as before.
	int (*configure)(void *ctx, struct lb_leaf *, const char *name);
	uint32_t (*leaf_id)(void *ctx, const char *name); // for lb_leaf_new()
};

struct lb_aggregate *lb_aggregate_new(const struct lb_aggregate_env *, const char *name);
void lb_aggregate_free(struct lb_aggregate *); // NULL is fine
// Leaf names, unique, in order; none: requests fail (A37-G10). 0 or -ENOMEM: as before, but for
// leaves that took their update already.
[[nodiscard]] int lb_aggregate_update(
	struct lb_aggregate *, const char *const *names, uint32_t n, const char *note);
struct lb_leaf *lb_aggregate_leaf(const struct lb_aggregate *, const char *name); // NULL = not made
void lb_aggregate_dump(const struct lb_aggregate *, struct lb_dump *);
