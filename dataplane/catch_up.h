// SPDX-License-Identifier: Apache-2.0
// When a turn's timers may fire: behind the frames that are there, so that what came in time is in
// time. After a pause of the machine or of the process more of them may be there than one turn
// reads (TCP-210).
// Thread: the owning worker.
#pragma once

#include "lb/base/twheel.h"

#include <stdbool.h>
#include <stdint.h>

#define CATCH_UP_TURNS 64 // that receive: 8192 frames of a port

struct catch_up { // zero at the start
	uint64_t turned_ns; // the last turn
	uint32_t n_left; // turns that may yet be without timers
};

// A turn at now_ns has read what it could, and whether there was anything. True = timers may fire.
// A sleep is taken for a pause, too: it ends with the first turn that receives nothing.
static inline bool catch_up(struct catch_up *c, uint64_t now_ns, bool received)
{
	bool paused = now_ns - c->turned_ns >= TWHEEL_PAUSE_NS;
	c->turned_ns = now_ns;
	if (!received)
		c->n_left = 0;
	else if (paused)
		c->n_left = CATCH_UP_TURNS;
	else if (c->n_left)
		c->n_left--;
	return c->n_left == 0;
}
