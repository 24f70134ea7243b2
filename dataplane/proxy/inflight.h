// SPDX-License-Identifier: Apache-2.0
// Answers what is in flight (lb/pick/inflight.h, OPS-60 to OPS-66): looks at all objects of a pool
// in the order in which they lie there, so many each millisecond, and writes down the oldest ones.
// Then it ends those of them that were marked (kill.h), so many each millisecond, too.
// Nothing is noted for that meanwhile, and without a question it costs nothing.
// Thread: the owning worker.
#pragma once

#include "lb/base/twheel.h"

#include <stdbool.h>
#include <stdint.h>

struct proxy;

struct proxy_inflight {
	struct twheel_timer timer; // armed while a question is open
	bool at_upstreams; // of connections: those of clients have been looked at
	uint32_t at; // the object of the pool that is looked at, or the marked row
};

// The link's question is the worker's now.
void proxy_inflight_begin(struct proxy *);
