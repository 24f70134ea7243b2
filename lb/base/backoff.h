// SPDX-License-Identifier: Apache-2.0
// Waits between attempts to connect, as gRPC has them (grpc/grpc doc/connection-backoff.md; BO-01,
// FM-03): 1 s, times 1.6 each, at most 120 s, ±20 %. Holds no timer.
// Thread: one owner.
#pragma once

#include <stdint.h>

struct rand;

struct backoff { // all zero = the first
	uint64_t wait_ns; // the last one, before jitter
};

// How long to wait before the next attempt; the one after that waits longer.
uint64_t backoff_next_ns(struct backoff *, struct rand *);
void backoff_reset(struct backoff *); // after a success
