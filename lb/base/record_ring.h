// SPDX-License-Identifier: Apache-2.0
// Ring of records of any length between one writing and one reading thread. A record lies in one
// piece, is written and read where it lies, and is seen once it is published, perhaps with others.
// Never blocks, never allocates after init.
// Thread: place and publish on the writer, peek and pass on the reader, init/fini while neither
// runs.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct record_ring {
	uint8_t *bytes; // owned
	uint32_t size; // power of two
	_Alignas(64) uint32_t head; // w: writer (release), r: reader (acquire)
	_Alignas(64) uint32_t tail; // w: reader (release), r: writer (acquire)
	// The writer's: the next record begins at `next`, and may go on to `end`, all in one piece,
	// without another look at the tail.
	_Alignas(64) uint8_t *next;
	uint8_t *end;
	uint32_t base; // with the address `next`: head including what is not published
	uint32_t seen_tail; // a past value of tail
};

#define RECORD_RING_HEADER 8u // of a record: its length; keeps what follows aligned

// size in bytes is rounded up to a power of two, at most 2^31. The memory becomes resident as it is
// used. 0 or -ENOMEM.
[[nodiscard]] int record_ring_init(struct record_ring *, uint32_t size);
void record_ring_fini(struct record_ring *);

// Room for one record of len bytes, which is part of the next publication. NULL = there is none
// now, or ever: a record takes half of the ring at most. Aligned to 8 bytes.
void *record_ring_place(struct record_ring *, uint32_t len);
// The same without a look at what the reader has passed since the last one: NULL =
// record_ring_place() says whether there is any.
static inline void *record_ring_place_next(struct record_ring *r, uint32_t len)
{
	uint8_t *record = r->next;
	size_t needed = ((size_t)len + RECORD_RING_HEADER + 7) & ~(size_t)7;
	if (__builtin_expect((uintptr_t)record + needed > (uintptr_t)r->end, 0))
		return NULL;
	r->next = record + needed;
	memcpy(record, &len, sizeof(len));
	return record + RECORD_RING_HEADER;
}
// Head including the records that are not published.
static inline uint32_t record_ring_staged(const struct record_ring *r)
{
	return r->base + (uint32_t)(uintptr_t)r->next;
}
// Whether there is none of those.
static inline bool record_ring_is_published(const struct record_ring *r)
{
	return r->head == record_ring_staged(r);
}
// Pairs with the reader's acquire of head: it sees the whole records.
static inline void record_ring_publish(struct record_ring *r)
{
	__atomic_store_n(&r->head, record_ring_staged(r), __ATOMIC_RELEASE);
}

// The oldest record, and its length; NULL = there is none. Valid until it is passed.
const void *record_ring_peek(struct record_ring *, uint32_t *ret_len);
// Gives the room of the one that was peeked at back. At least one was.
void record_ring_pass(struct record_ring *);
