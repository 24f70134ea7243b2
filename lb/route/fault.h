// SPDX-License-Identifier: Apache-2.0
// What a fault filter does to one request (gRFC A33; FI-01..FI-09): a delay, an abort
// after it, both or none, each by its own draw.
// Thread: workers. Pure but for the gauge.
#pragma once

#include "lb/base/rand.h"
#include "lb/route/filter.h"
#include "lb/route/req.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_fault_draw {
	uint64_t delay_ns; // 0 = none
	enum lb_fault_abort abort; // never HEADER
	uint32_t status; // HTTP or gRPC
};

struct lb_fault_draw lb_fault_draw(const struct lb_fault *, const struct lb_req *, struct rand *);

// Counts a request in the gauge of those under a fault now, one gauge per process (FI-08). Call it
// only when a draw hit; false = the limit is reached, and the request continues without a fault.
[[nodiscard]] bool lb_fault_begin(uint32_t *active, uint32_t max_active);
void lb_fault_end(uint32_t *active);
