// SPDX-License-Identifier: Apache-2.0
// How a host says farewell that is reached by a route (FL-41): what its last parts take. Before
// them clients are sent away, behind them readiness goes. And how any drain ends.
// Thread: any. Pure.
#pragma once

#include "lb/base/min.h"
#include "lb/base/time.h"

// The end of a farewell, in which nobody new is answered: for handshakes that had begun.
#define LB_FAREWELL_HUSH_NS NS_PER_SECOND
// The drain behind it: whoever comes meanwhile hears nothing, and must not wait for long.
#define LB_FAREWELL_DRAIN_S 3

// Behind a drain's deadline: who is cut takes what he is told, and ends (FL-176).
#define LB_DRAIN_LAST_NS NS_PER_SECOND

// How long what is left may take then, where drain_s is what a drain may take.
static inline uint32_t lb_farewell_drain_s(uint32_t drain_s)
{
	return min_u32(drain_s, LB_FAREWELL_DRAIN_S);
}
