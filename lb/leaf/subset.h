// SPDX-License-Identifier: Apache-2.0
// Which endpoints of a leaf its policies are given where they are to have a few only (gRFC A68,
// random subsetting; A68-01 to A68-08). By rendezvous hashing: each endpoint has a hash of its own
// and the seed, and those with the least are taken. So one endpoint that comes or goes moves one
// at most, and processes with different seeds choose as if by chance.
// Thread: ctrl. Pure.
#pragma once

#include <stdint.h>

struct lb_leaf_endpoints;
struct lb_policy_spec;

// *ret: [endpoints->n], 1 = left out, to be freed; NULL = none is. Returns 0 or -ENOMEM.
[[nodiscard]] int lb_subset_choose(const struct lb_leaf_endpoints *, const struct lb_policy_spec *,
	uint64_t seed, uint8_t **ret);
// The sizes, for display; 0 = all.
uint32_t lb_subset_of_priority(const struct lb_policy_spec *);
uint32_t lb_subset_of_locality(const struct lb_policy_spec *);
