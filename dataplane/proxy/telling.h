// SPDX-License-Identifier: Apache-2.0
// When clients that are to leave are told so: one by one, over the first part of the time that they
// have. All at once they would all come back at once.
// Thread: any. Pure.
#pragma once

#include "lb/base/rand.h"

// That part: a tenth.
#define PROXY_TELLING_SHARE 10

// How long telling may take whoever is to be gone by then; 0 = it is late.
static inline uint64_t proxy_telling_ns(uint64_t now_ns, uint64_t by_ns)
{
	return by_ns > now_ns ? (by_ns - now_ns) / PROXY_TELLING_SHARE : 0;
}

// When one of them is told: somewhen in so long from now on.
static inline uint64_t proxy_telling_at(uint64_t now_ns, uint64_t telling_ns, struct rand *rand)
{
	return now_ns + rand_below(rand, telling_ns + 1);
}
