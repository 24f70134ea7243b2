// SPDX-License-Identifier: Apache-2.0
// Ring between one writing and one reading thread; items are copied, or written and read where they
// lie. Never blocks, never allocates after init.
// Thread: spsc_write(), stage, place, publish and room on the writer, spsc_read*(), peek, pass and
// is_empty on the reader, init/fini while neither runs.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spsc {
	uint8_t *items; // owned
	size_t item_size;
	uint32_t mask;
	_Alignas(64) uint32_t head; // w: writer (release), r: reader (acquire)
	_Alignas(64) uint32_t tail; // w: reader (release), r: writer (acquire)
	_Alignas(64) uint32_t staged; // the writer's: head including unpublished items
	uint32_t seen_tail; // the writer's: a past value of tail
};

// n_items is rounded up to a power of two. 0 or -ENOMEM.
[[nodiscard]] int spsc_init(struct spsc *, size_t item_size, uint32_t n_items);
void spsc_fini(struct spsc *);
// Copies the item in; false when the ring is full (nothing written).
[[nodiscard]] bool spsc_write(struct spsc *, const void *item);
// The same, but the reader sees the item only after the next spsc_publish() or spsc_write():
// several items cost one exchange of cache lines.
[[nodiscard]] bool spsc_stage(struct spsc *, const void *item);
void spsc_publish(struct spsc *);
// The same without a copy: where the next item is to be written (NULL = the ring is full), and that
// it is there, which publishes it or stages it.
void *spsc_place(struct spsc *);
void spsc_placed(struct spsc *);
void spsc_stage_placed(struct spsc *);
// For the writer: a lower bound of how many more items fit.
uint32_t spsc_room(const struct spsc *);
// Copies the oldest item out; false when the ring is empty.
[[nodiscard]] bool spsc_read(struct spsc *, void *ret_item);
// The same without a copy: the oldest item (NULL = the ring is empty), the reader's, who may write
// to it, until it passes it, once.
[[nodiscard]] void *spsc_peek(struct spsc *);
void spsc_pass(struct spsc *);
// Copies out the oldest items, at most max; returns how many.
uint32_t spsc_read_many(struct spsc *, void *ret_items, uint32_t max);
bool spsc_is_empty(const struct spsc *); // on the reader
// How many items there have been so far, modulo 2^32: that were placed, and that were passed.
static inline uint32_t spsc_n_placed(const struct spsc *r) // on the writer
{
	return r->staged;
}
static inline uint32_t spsc_n_passed(const struct spsc *r) // on the reader
{
	return r->tail;
}
