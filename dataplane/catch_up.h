// SPDX-License-Identifier: Apache-2.0
// When a turn's timers may fire: behind the frames that are there, so that what came in time is in
// time. After a pause of the machine or of the process more of them may be there than one turn
// reads (TCP-210).
// Thread: the owning worker.
#pragma once

#include "lb/base/twheel.h"

#include <stdbool.h>
#include <stdint.h>

#define CATCH_UP_NS (50 * NS_PER_MS) // at most, and never in two turns of a pause each

struct catch_up { // zero at the start
	uint64_t turned_ns; // the last turn
	uint64_t until_ns; // timers wait; 0 = they don't
};

// A turn at now_ns has read what it could, and whether there was anything. True = timers may fire.
static inline bool catch_up(struct catch_up *c, uint64_t now_ns, bool received)
{
	bool paused = now_ns - c->turned_ns >= TWHEEL_PAUSE_NS;
	c->turned_ns = now_ns;
	if (!received || now_ns >= c->until_ns)
		c->until_ns = received && paused && !c->until_ns ? now_ns + CATCH_UP_NS : 0;
	return !c->until_ns;
}
