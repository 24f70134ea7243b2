// SPDX-License-Identifier: Apache-2.0
#include "lb/base/record_ring.h"

#include "lb/base/cacheline.h"
#include "lb/base/check.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define HEADER RECORD_RING_HEADER
#define TO_START UINT32_MAX // instead of a length: the next record stands at the ring's beginning

// What is in one piece from `staged` on may be used up to where the reader was seen last, but never
// more than the longest record.
static void set_run(struct record_ring *r, uint32_t staged)
{
	uint32_t place = staged & (r->size - 1), run = r->size - place;
	uint32_t free = r->size - (staged - r->seen_tail);
	run = run < free ? run : free;
	r->next = r->bytes + place;
	r->end = r->next + (run < r->size / 2 ? run : r->size / 2);
	r->base = staged - (uint32_t)(uintptr_t)r->next;
}

int record_ring_init(struct record_ring *r, uint32_t size)
{
	uint32_t n = 64;
	while (n < size)
		n <<= 1;
	uint8_t *bytes = cacheline_alloc(n, 1);
	if (!bytes)
		return -ENOMEM;
	*r = (struct record_ring){.bytes = bytes, .size = n};
	set_run(r, 0);
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

static bool has_room(struct record_ring *r, uint32_t staged, uint32_t needed)
{
	if (staged - r->seen_tail <= r->size - needed)
		return true;
	// Pairs with the reader's release of tail: it is done with what lies there.
	r->seen_tail = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE);
	return staged - r->seen_tail <= r->size - needed;
}

void *record_ring_place(struct record_ring *r, uint32_t len)
{
	void *next = record_ring_place_next(r, len);
	if (next)
		return next;
	r->end = r->next;
	if (len > r->size / 2 - HEADER)
		return NULL;
	uint32_t staged = record_ring_staged(r);
	uint32_t needed = room_of(len), to_end = r->size - (staged & (r->size - 1));
	uint32_t skipped = needed > to_end ? to_end : 0;
	if (!has_room(r, staged, skipped + needed))
		return NULL;
	if (skipped)
		put_length(r, staged, TO_START);
	set_run(r, staged + skipped);
	return record_ring_place_next(r, len);
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
