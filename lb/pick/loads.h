// SPDX-License-Identifier: Apache-2.0
// Which load counters (lb/pick/link.h) a leaf's refusals are booked under: one a category of drops,
// and one for the circuit breaker's (LR-07). Those of localities go with their
// members (lb_shared.loads). Immutable, shared by the pickers that have it.
// Thread: new/get/put on ctrl; workers read.
#pragma once

#include <stdint.h>

struct lb_loads {
	uint32_t n_refs; // ctrl only
	uint32_t breaker; // index of lb_link.loads; 0 = none
	uint32_t n_drops; // as many as the lb_drops that goes with it
	uint32_t drops[]; // by category
};

// All are zero at first; the caller fills them in before anybody else sees it. Count 1. NULL = no
// memory.
struct lb_loads *lb_loads_new(uint32_t n_drops);
struct lb_loads *lb_loads_get(struct lb_loads *); // NULL is fine
void lb_loads_put(struct lb_loads *); // NULL is fine
