// SPDX-License-Identifier: Apache-2.0
#include "lb/base/record_ring.h"

#include "lb/base/cacheline.h"
#include "lb/base/check.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define HEADER 8u // of a record: its length; keeps what follows aligned
#define TO_START UINT32_MAX // instead of a length: the next record stands at the ring's beginning

int record_ring_init(struct record_ring *r, uint32_t size)
{
	uint32_t n = 64;
	while (n < size)
		n <<= 1;
	uint8_t *bytes = cacheline_alloc(n, 1);
	if (!bytes)
		return -ENOMEM;
	*r = (struct record_ring){.bytes = bytes, .size = n};
	return 0;
}

void record_ring_fini(struct record_ring *r)
{
	cacheline_free(r->bytes);
	*r = (struct record_ring){0};
}

static uint32_t room_of(uint32_t len)
{
	return HEADER + ((len + 7) & ~7u);
}

static uint8_t *at(const struct record_ring *r, uint32_t place)
{
	return r->bytes + (place & (r->size - 1));
}

static void put_length(const struct record_ring *r, uint32_t place, uint32_t len)
{
	memcpy(at(r, place), &len, sizeof(len));
}

static uint32_t length_at(const struct record_ring *r, uint32_t place)
{
	uint32_t len;
	memcpy(&len, at(r, place), sizeof(len));
	return len;
}

static bool has_room(struct record_ring *r, uint32_t needed)
{
	if (r->staged - r->seen_tail <= r->size - needed)
		return true;
	// Pairs with the reader's release of tail: it is done with what lies there.
	r->seen_tail = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE);
	return r->staged - r->seen_tail <= r->size - needed;
}

void *record_ring_place(struct record_ring *r, uint32_t len)
{
	if (len > r->size / 2 - HEADER)
		return NULL;
	uint32_t needed = room_of(len), to_end = r->size - (r->staged & (r->size - 1));
	uint32_t skipped = needed > to_end ? to_end : 0;
	if (!has_room(r, skipped + needed))
		return NULL;
	if (skipped)
		put_length(r, r->staged, TO_START);
	r->staged += skipped;
	uint8_t *record = at(r, r->staged) + HEADER;
	put_length(r, r->staged, len);
	r->staged += needed;
	return record;
}

void record_ring_publish(struct record_ring *r)
{
	// Pairs with the reader's acquire of head: it sees the whole records.
	__atomic_store_n(&r->head, r->staged, __ATOMIC_RELEASE);
}

const void *record_ring_peek(struct record_ring *r, uint32_t *ret_len)
{
	if (__atomic_load_n(&r->head, __ATOMIC_ACQUIRE) == r->tail)
		return NULL;
	uint32_t len = length_at(r, r->tail);
	if (len == TO_START) { // a record follows: both were published at once
		uint32_t skipped = r->size - (r->tail & (r->size - 1));
		__atomic_store_n(&r->tail, r->tail + skipped, __ATOMIC_RELEASE);
		len = length_at(r, r->tail);
	}
	*ret_len = len;
	return at(r, r->tail) + HEADER;
}

void record_ring_pass(struct record_ring *r)
{
	DCHECK(__atomic_load_n(&r->head, __ATOMIC_ACQUIRE) != r->tail);
	uint32_t used = room_of(length_at(r, r->tail));
	__atomic_store_n(&r->tail, r->tail + used, __ATOMIC_RELEASE);
}
