// SPDX-License-Identifier: Apache-2.0
// Delays between connection attempts, as in gRPC (grpc/grpc doc/connection-backoff.md; BO-01,
// FM-03): 1 s, multiplied by 1.6 each time, at most 120 s, ±20 %. Contains no timer.
// Thread: one owner.
#pragma once

#include <stdint.h>

struct rand;

struct backoff { // all zero = before the first
	uint64_t wait_ns; // the last one, before jitter
};

// Returns the delay before the next attempt, and increases the one after it.
uint64_t backoff_next_ns(struct backoff *, struct rand *);
void backoff_reset(struct backoff *); // after a success
