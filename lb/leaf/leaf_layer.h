// SPDX-License-Identifier: Apache-2.0
// The part of a leaf's layer (lb/pick/leaf_picker.h) that its updates configure, like gRPC's
// xds_cluster_impl: drops, circuit breaker, load counters.
// Thread: ctrl.
#pragma once

struct lb_breakers;
struct lb_dump;
struct lb_leaf_config;
struct lb_leaf_layer;

// `before` is the leaf's layer so far; its drops and breaker stay if they are equal. Counts
// references to what it names. Returns 0, or -ENOMEM with nothing counted.
[[nodiscard]] int lb_leaf_layer_init(struct lb_leaf_layer *, const struct lb_leaf_layer *before,
	struct lb_breakers *, const struct lb_leaf_config *);
void lb_leaf_layer_fini(struct lb_leaf_layer *); // all zero is fine
// leaves the dump's node entered
void lb_leaf_layer_dump(const struct lb_leaf_layer *, struct lb_dump *);
