// SPDX-License-Identifier: Apache-2.0
// How one host chooses backends for requests: shuntd's policy over those that it is given, and its
// picks by several workers.
// Thread: one.
#pragma once

#include "lb/policy/policy_spec.h"

#include <stdint.h>

struct balancer;
struct mesh;

struct balancer_conf {
	uint64_t seed; // the host's: of its subset, and of all that it draws
	uint32_t n_workers;
	uint32_t n_under_way; // requests of the host, >= 1: each that begins ends another one's
};

// One host's; both are borrowed, spec too by what it makes. Returns NULL if out of memory.
struct balancer *balancer_new(
	struct mesh *, const struct lb_policy_spec *, const struct balancer_conf *);
void balancer_free(struct balancer *); // NULL is fine
// The backend of one request, by its number; some worker has it.
uint32_t balancer_pick(struct balancer *);
