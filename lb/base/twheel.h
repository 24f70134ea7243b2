// SPDX-License-Identifier: Apache-2.0
// Hierarchical timing wheel with a tick of 1 ms (Varghese and Lauck, scheme 6). Also the owner's
// clock: everything that runs in one turn sees the same now_ns.
// Thread: one owner. Reads no clock; never allocates after new().
#pragma once

#include "lb/base/list.h"
#include "lb/base/time.h"

#include <stdbool.h>
#include <stdint.h>

#define TWHEEL_NS_PER_TICK NS_PER_MS
// Whatever is so late comes after a pause of the machine or the owner, in which nobody was heard.
#define TWHEEL_PAUSE_NS (100 * NS_PER_MS)

struct twheel_timer {
	struct list_link link; // private to twheel.c
	uint64_t expires_tick; // private to twheel.c
	// Called once, when no longer armed: it may arm the timer again or free its object.
	void (*fire)(struct twheel_timer *);
};

#define TWHEEL_SLOTS 64
#define TWHEEL_LEVELS 8

// Public so that twheel_now() is a load; private to twheel.c otherwise.
struct twheel {
	uint64_t now_ns;
	uint64_t now_tick; // of now_ns: a timer for this tick or before is due
	uint64_t position; // slots are relative to it; behind now_tick until advance() ends
	uint64_t used[TWHEEL_LEVELS]; // bit i: slots[level][i] is not empty
	struct list_link due; // timers armed for a tick that had passed
	struct list_link slots[TWHEEL_LEVELS][TWHEEL_SLOTS];
};

// Starts at now_ns (monotonic). NULL = out of memory.
struct twheel *twheel_new(uint64_t now_ns);
void twheel_free(struct twheel *); // armed timers are forgotten

// The time of the current turn, as last given to new(), set_now() or advance().
static inline uint64_t twheel_now(const struct twheel *w)
{
	return w->now_ns;
}

// The same in whole ticks.
static inline uint64_t twheel_now_tick(const struct twheel *w)
{
	return w->now_tick;
}

// The owner sets fire and zeroes the link before the first arm. Arming an armed timer moves it. It
// fires at the first advance() to a time >= at_ns, rounded up to the tick: never early.
void twheel_arm(struct twheel *, struct twheel_timer *, uint64_t at_ns);
void twheel_cancel(struct twheel *, struct twheel_timer *); // no effect if not armed
static inline bool twheel_armed(const struct twheel_timer *t)
{
	return list_linked(&t->link);
}

// When it fires, if armed; otherwise when it was last due.
static inline uint64_t twheel_expires_ns(const struct twheel_timer *t)
{
	return t->expires_tick * TWHEEL_NS_PER_TICK;
}

// Advances the time alone: what is due fires at the next advance(), behind what is armed for the
// past meanwhile, unless it is cancelled or moved before. An earlier now_ns counts as equal.
void twheel_set_now(struct twheel *, uint64_t now_ns);

// Advances the time and fires due timers, in order of tick. An earlier now_ns than before counts as
// equal. Returns true if any fired.
bool twheel_advance(struct twheel *, uint64_t now_ns);

// A lower bound of the next expiry, for idle waiting; UINT64_MAX = none armed.
uint64_t twheel_next_ns(const struct twheel *);
