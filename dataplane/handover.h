// SPDX-License-Identifier: Apache-2.0
// Frames on their way from the worker that got them to the worker they belong to: a ring for each
// pair of workers, so that nobody ever contends, and a way to wake one that sleeps. It doesn't look
// at frames.
// Thread: new and free on ctrl while no worker runs; an end's functions on its worker.
#pragma once

#include "lb/base/counter.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct handover;
struct handover_end;

struct handover_item {
	void *frame;
	uint32_t port; // that it came by
	bool is_copy; // to learn from; the original was dealt with
};

// may_sleep: workers use handover_sleep(). NULL = out of memory or descriptor.
struct handover *handover_new(uint32_t n_workers, bool may_sleep);
// drop gets what was never taken. NULL is fine.
void handover_free(struct handover *, void (*drop)(void *frame));
struct handover_end *handover_end(struct handover *, uint32_t worker); // borrowed

#define HANDOVER_BATCH 32
// False = the ring to that worker is full, for copies half full, counted; the frame is still the
// caller's. It may leave at handover_flush() only.
[[nodiscard]] bool handover_give(struct handover_end *, uint32_t to, const struct handover_item *);
// Before a turn ends. Wakes those that sleep and have got something.
void handover_flush(struct handover_end *);
// At most max of what others gave, in the order in which each of them gave it.
uint32_t handover_take(struct handover_end *, struct handover_item *ret, uint32_t max);

// Before a sleep. False = something waits: don't sleep. Otherwise handover_awake() must follow.
[[nodiscard]] bool handover_sleep(struct handover_end *);
void handover_awake(struct handover_end *);
// Readable when something was given during a sleep.
int handover_wait_fd(const struct handover_end *);

struct counter_set handover_counters(const struct handover_end *);
