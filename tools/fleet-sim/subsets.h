// SPDX-License-Identifier: Apache-2.0
// The backends of a fleet whose hosts each choose a subset of them (gRFC A68), as lb/leaf/subset.h
// does.
// Thread: one.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct subsets_conf {
	uint64_t seed;
	uint32_t n_hosts, n_backends, size;
};
struct subsets {
	uint32_t *counts; // [n_backends], owned: hosts that are connected to each
	uint64_t n_moved; // of all hosts' choices, by a rollout: what has gone from them
	double choose_ns; // CPU time of all choices
};

// A rollout replaces n_replaced backends by others. False = out of memory.
bool subsets_run(const struct subsets_conf *, uint32_t n_replaced, struct subsets *ret);
void subsets_free(struct subsets *);
