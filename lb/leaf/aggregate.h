// SPDX-License-Identifier: Apache-2.0
// The balancing of an aggregate cluster (gRFC A37, A75; A75-T02, A75-G09, A75-G11, A75-G12): the
// first of its leaves that serves. Each leaf has a policy tree of its own. The dependency manager
// has already flattened and ordered the list.
// Thread: ctrl.
#pragma once

#include "lb/leaf/leaf.h"

struct lb_aggregate;

struct lb_aggregate_env {
	const struct lb_leaf_env *leaf; // of each
	// told of the leaf that serves; its ctx is also passed to these:
	struct lb_leaf_parent parent;
	// Gives a leaf its present configuration (lb_leaf_update()). Called inside update() for
	// each existing leaf, and when another leaf is made. Returns 0, or -ENOMEM with nothing
	// changed.
	int (*configure)(void *ctx, struct lb_leaf *, const char *name);
	uint32_t (*leaf_id)(void *ctx, const char *name); // for lb_leaf_new()
};

struct lb_aggregate *lb_aggregate_new(const struct lb_aggregate_env *, const char *name);
void lb_aggregate_free(struct lb_aggregate *); // NULL is fine
// Leaf names are unique and in order; without any, requests fail (A37-G10). Returns 0, or -ENOMEM
// with nothing changed except leaves that had already taken their update.
[[nodiscard]] int lb_aggregate_update(
	struct lb_aggregate *, const char *const *names, uint32_t n, const char *note);
// NULL = not made yet
struct lb_leaf *lb_aggregate_leaf(const struct lb_aggregate *, const char *name);
void lb_aggregate_dump(const struct lb_aggregate *, struct lb_dump *);
