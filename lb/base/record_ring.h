// SPDX-License-Identifier: Apache-2.0
// Ring of records of any length between one writing and one reading thread. A record lies in one
// piece, is written and read where it lies, and is seen once it is published, perhaps with others.
// Never blocks, never allocates after init.
// Thread: place and publish on the writer, peek and pass on the reader, init/fini while neither
// runs.
#pragma once

#include <stdint.h>

struct record_ring {
	uint8_t *bytes; // owned
	uint32_t size; // power of two
	_Alignas(64) uint32_t head; // w: writer (release), r: reader (acquire)
	_Alignas(64) uint32_t tail; // w: reader (release), r: writer (acquire)
	_Alignas(64) uint32_t staged; // the writer's: head including unpublished records
	uint32_t seen_tail; // the writer's: a past value of tail
};

// size in bytes is rounded up to a power of two, at most 2^31. The memory becomes resident as it is
// used. 0 or -ENOMEM.
[[nodiscard]] int record_ring_init(struct record_ring *, uint32_t size);
void record_ring_fini(struct record_ring *);

// Room for one record of len bytes, which is part of the next publication. NULL = there is none
// now, or ever: a record takes half of the ring at most. Aligned to 8 bytes.
void *record_ring_place(struct record_ring *, uint32_t len);
void record_ring_publish(struct record_ring *);

// The oldest record, and its length; NULL = there is none. Valid until it is passed.
const void *record_ring_peek(struct record_ring *, uint32_t *ret_len);
// Gives the room of the one that was peeked at back. At least one was.
void record_ring_pass(struct record_ring *);
