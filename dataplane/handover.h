// SPDX-License-Identifier: Apache-2.0
// Hands frames from the worker that received them to the worker that owns their flow: a ring for
// each pair of workers, so that there is no contention, and a way to wake a sleeping worker. It
// does not look into frames.
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
	uint32_t port; // port on which it was received
	bool is_copy; // only to learn neighbors from; the original has been processed
};

// may_sleep: workers use handover_sleep(). Returns NULL if out of memory or descriptors.
struct handover *handover_new(uint32_t n_workers, bool may_sleep);
// Calls drop for frames that were never taken. NULL is fine.
void handover_free(struct handover *, void (*drop)(void *frame));
struct handover_end *handover_end(struct handover *, uint32_t worker); // borrowed

#define HANDOVER_BATCH 32
// Returns false, and counts it, if the ring to that worker is full (for copies: half full); the
// caller then keeps the frame. The frame may be delivered as late as handover_flush().
[[nodiscard]] bool handover_give(struct handover_end *, uint32_t to, const struct handover_item *);
// Call before a turn ends: delivers frames and wakes sleeping workers that got some.
void handover_flush(struct handover_end *);
// Takes at most max frames from others; those of one sender stay in order.
uint32_t handover_take(struct handover_end *, struct handover_item *ret, uint32_t max);

// Call before sleeping. False = frames are waiting: do not sleep. Otherwise handover_awake() must
// follow.
[[nodiscard]] bool handover_sleep(struct handover_end *);
void handover_awake(struct handover_end *);
// Readable when a frame was handed over during a sleep.
int handover_wait_fd(const struct handover_end *);

struct counter_set handover_counters(const struct handover_end *);
