// SPDX-License-Identifier: Apache-2.0
// A leaf's picker: what its priorities pick with, and above it the layer of what the leaf asks of
// each request (gRFC A75): drops, session affinity, the limit of requests. It is all that a worker
// reads of a leaf.
// Thread: made by ctrl; read on workers.
#pragma once

#include "lb/pick/drop.h"
#include "lb/pick/picker.h"

#include <stddef.h>
#include <stdint.h>

struct lb_affinity_map;
struct lb_breaker;
struct lb_loads;
struct lb_metrics;

// In the order in which a request passes it (A27-I01). Immutable.
struct lb_leaf_layer {
	// What each pick looks at comes first.
	uint32_t id;
	uint32_t max_requests;
	struct lb_drops *drops; // NULL = no category
	struct lb_breaker *breaker;
	const struct lb_affinity_map *sessions; // `affinity`, if it may bind (A55-O02); else NULL
	struct lb_picker *picker; // what its priorities pick with
	// All endpoints, if there are sessions or some have host names; else NULL.
	struct lb_affinity_map *affinity;
	struct lb_loads *loads; // NULL = none
	struct lb_metrics *metrics; // NULL = none
	const char *name; // of the leaf
};
// A leaf's picker begins with these. It asks layer.picker, as those may themselves who have been
// through the layer.
struct lb_leaf_picker {
	struct lb_picker base;
	struct lb_leaf_layer layer;
};
const struct lb_cell *lb_leaf_pick(const struct lb_picker *, struct lb_pick_ctx *);
// NULL = the picker is no leaf's. An aggregate's picker is that of the leaf in use.
static inline const struct lb_leaf_layer *lb_leaf_layer(const struct lb_picker *p)
{
	return p->pick == lb_leaf_pick ? &((const struct lb_leaf_picker *)p)->layer : NULL;
}
// Takes references of its own of all that the layer names; its name is copied. Count 1. NULL = no
// memory.
struct lb_picker *lb_leaf_picker_new(const struct lb_leaf_layer *);
