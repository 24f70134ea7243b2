// SPDX-License-Identifier: Apache-2.0
// Samples of smoothed round trips, by side (OPS-230): each connection that knows one is looked at
// once a second, in the order in which they lie in their pools and so many at a time, so that
// neither segments nor requests nor the end of a connection pay for it. Where there are more than
// some thousands, or ever were at once, it is less often.
// Thread: the owning worker.
#pragma once

#include "lb/base/twheel.h"

#include <stdbool.h>
#include <stdint.h>

struct proxy;

struct proxy_round_trips {
	struct twheel_timer timer;
	uint64_t round_ns; // when the first client was looked at
	uint32_t at; // the next one
	bool at_upstreams; // of those, else of the clients
};

// Looks from now on until the caller cancels the timer.
void proxy_round_trips_begin(struct proxy *);
