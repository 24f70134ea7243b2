// SPDX-License-Identifier: Apache-2.0
// Which load counters (lb/pick/link.h) a leaf's refusals are counted under: one per category of
// drops, and one for the circuit breaker (LR-07). lb_shared.loads gives those of localities.
// Immutable, shared by pickers.
// Thread: new/get/put on ctrl; workers read.
#pragma once

#include <stdint.h>

struct lb_loads {
	uint32_t n_refs; // ctrl only
	uint32_t breaker; // index of lb_link.loads; 0 = none
	uint32_t n_drops; // as many as categories in the matching lb_drops
	uint32_t drops[]; // by category
};

// All entries are zero; the caller fills them in before it shares the object. Count 1. Returns NULL
// if out of memory.
struct lb_loads *lb_loads_new(uint32_t n_drops);
struct lb_loads *lb_loads_get(struct lb_loads *); // NULL is fine
void lb_loads_put(struct lb_loads *); // NULL is fine
