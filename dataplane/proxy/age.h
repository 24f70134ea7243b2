// SPDX-License-Identifier: Apache-2.0
// How long a client may be connected (OPS-150, gRPC A9).
// Thread: any. Pure.
#pragma once

#include "lb/base/rand.h"

// What ages differ by, either way, lest those that came at once go at once.
#define PROXY_AGE_JITTER_SHARE 10

// A tenth more or less than max_ns.
static inline uint64_t proxy_age_ns(uint64_t max_ns, struct rand *rand)
{
	uint64_t jitter_ns = max_ns / PROXY_AGE_JITTER_SHARE;
	return max_ns - jitter_ns + rand_below(rand, 2 * jitter_ns + 1);
}
