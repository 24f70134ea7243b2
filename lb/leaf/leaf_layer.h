// SPDX-License-Identifier: Apache-2.0
// The part of a leaf's layer (lb/pick/leaf_picker.h) that its updates bring, gRPC's
// xds_cluster_impl: drops, the limit of requests, what counts loads.
// Thread: ctrl.
#pragma once

struct lb_breakers;
struct lb_dump;
struct lb_leaf_config;
struct lb_leaf_layer;

// Of the leaf that the layer before is of; drops and breaker of before serve on if they are the
// same. Counts what it names. 0, or -ENOMEM: nothing is counted.
[[nodiscard]] int lb_leaf_layer_init(struct lb_leaf_layer *, const struct lb_leaf_layer *before,
	struct lb_breakers *, const struct lb_leaf_config *);
void lb_leaf_layer_fini(struct lb_leaf_layer *); // all zero is fine
void lb_leaf_layer_dump(const struct lb_leaf_layer *, struct lb_dump *); // stays entered
