// SPDX-License-Identifier: Apache-2.0
// A leaf's picker: what its priorities pick with, and above it the layer of checks that the leaf
// applies to each request (gRFC A75): drops, session affinity, the circuit breaker. Workers read
// nothing else of a leaf.
// Thread: made by ctrl; read on workers.
#pragma once

#include "lb/base/container_of.h"
#include "lb/pick/breaker.h"
#include "lb/pick/drop.h"
#include "lb/pick/picker.h"

#include <stddef.h>
#include <stdint.h>

struct lb_affinity_map;
struct lb_loads;
struct lb_metrics;

// In the order in which a request passes them (A27-I01). Immutable.
struct lb_leaf_layer {
	// Fields that each pick reads come first.
	uint32_t id;
	uint32_t max_requests;
	struct lb_drops *drops; // NULL = no category
	struct lb_breaker *breaker;
	// `affinity`, if sessions may use it (A55-O02); else NULL
	const struct lb_affinity_map *sessions;
	struct lb_picker *picker; // what its priorities pick with
	// All endpoints, if there are sessions or any endpoint has a host name; else NULL.
	struct lb_affinity_map *affinity;
	struct lb_loads *loads; // NULL = none
	struct lb_metrics *metrics; // NULL = none
	struct lb_retry_budget retry_budget;
	const char *name; // of the leaf
};
// The head of a leaf's picker. It asks layer.picker; a caller that has gone through the layer may
// ask that directly.
struct lb_leaf_picker {
	struct lb_picker base;
	struct lb_leaf_layer layer;
};
const struct lb_cell *lb_leaf_pick(const struct lb_picker *, struct lb_pick_ctx *);
// NULL = the picker belongs to no leaf. For an aggregate's picker: the leaf in use.
static inline const struct lb_leaf_layer *lb_leaf_layer(const struct lb_picker *p)
{
	return p->pick == lb_leaf_pick ? &CONTAINER_OF(p, struct lb_leaf_picker, base)->layer
	                               : NULL;
}
// Takes its own references to all that the layer refers to, and copies its name. Count 1. Returns
// NULL if out of memory.
struct lb_picker *lb_leaf_picker_new(const struct lb_leaf_layer *);
