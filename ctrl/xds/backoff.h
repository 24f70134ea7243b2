// SPDX-License-Identifier: Apache-2.0
// Waits between attempts to reach a server: 1 s, times 1.6 each, at most 120 s, ±20 % (FM-03).
// Thread: ctrl.
#pragma once

#include <stdint.h>

struct rand;

struct xds_backoff {
	uint64_t next_ns; // before jitter; 0 = the first
};

// How long to wait before the next attempt; the one after that waits longer.
uint64_t xds_backoff_next(struct xds_backoff *, struct rand *);
void xds_backoff_reset(struct xds_backoff *);
