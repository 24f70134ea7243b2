// SPDX-License-Identifier: Apache-2.0
#include "dataplane/relay_ring.h"

#include <errno.h>
#include <string.h>

#define LINE 64u
#define ETHERNET_LEAST 14u

// In front of the slots.
struct head {
	_Alignas(LINE) uint32_t written; // w: writer (release), r: reader (acquire)
	_Alignas(LINE) uint32_t read; // w: reader (release), r: writer (acquire)
};

struct slot {
	uint32_t len, way; // enum relay_way
	uint8_t frame[];
};
_Static_assert(sizeof(struct slot) == RELAY_SLOT_HEAD, "as the header says");

size_t relay_ring_size(const struct relay_shape *s)
{
	bool ok = s->n_slots >= 2 && s->n_slots <= RELAY_MAX_SLOTS &&
	          (s->n_slots & (s->n_slots - 1)) == 0 && s->slot_size >= RELAY_MIN_SLOT &&
	          s->slot_size <= RELAY_MAX_SLOT && s->slot_size % LINE == 0;
	return ok ? sizeof(struct head) + (size_t)s->n_slots * s->slot_size : 0;
}

void relay_cursor_init(struct relay_cursor *c, uint8_t *ring, const struct relay_shape *shape)
{
	*c = (struct relay_cursor){.ring = ring, .shape = *shape};
}

static struct head *head_of(const struct relay_cursor *c)
{
	return (struct head *)c->ring;
}

static struct slot *slot_of(const struct relay_cursor *c)
{
	size_t i = c->at & (c->shape.n_slots - 1);
	return (struct slot *)(c->ring + sizeof(struct head) + i * c->shape.slot_size);
}

// How many slots lie between both ends; none where that is more than there are.
static uint32_t between(struct relay_cursor *c, uint32_t newer, uint32_t older)
{
	if (newer - older > c->shape.n_slots)
		c->broken = true;
	return c->broken ? 0 : newer - older;
}

uint32_t relay_cursor_room(struct relay_cursor *c)
{
	// Acquire pairs with the reader's release: it has read what is overwritten.
	uint32_t used = between(c, c->at, __atomic_load_n(&head_of(c)->read, __ATOMIC_ACQUIRE));
	return c->broken ? 0 : c->shape.n_slots - used;
}

bool relay_cursor_put(struct relay_cursor *c, enum relay_way way, const uint8_t *frame, size_t len)
{
	if (len > c->shape.slot_size - RELAY_SLOT_HEAD || relay_cursor_room(c) == 0)
		return false;
	struct slot *s = slot_of(c);
	s->len = (uint32_t)len;
	s->way = way;
	memcpy(s->frame, frame, len);
	c->at++;
	// Release pairs with the reader's acquire: it sees the whole frame.
	__atomic_store_n(&head_of(c)->written, c->at, __ATOMIC_RELEASE);
	return true;
}

int relay_cursor_take(struct relay_cursor *c, enum relay_way *ret_way, uint8_t *to, size_t room)
{
	uint32_t written = __atomic_load_n(&head_of(c)->written, __ATOMIC_ACQUIRE);
	if (between(c, written, c->at) == 0)
		return 0;
	const struct slot *s = slot_of(c);
	// Each once: who wrote them may write again.
	uint32_t len = __atomic_load_n(&s->len, __ATOMIC_RELAXED);
	uint32_t way = __atomic_load_n(&s->way, __ATOMIC_RELAXED);
	bool ok = len >= ETHERNET_LEAST && len <= c->shape.slot_size - RELAY_SLOT_HEAD &&
	          len <= room && way >= RELAY_RECEIVED && way <= RELAY_RECEIVED_UNMADE;
	if (ok) {
		memcpy(to, s->frame, len);
		*ret_way = (enum relay_way)way;
	}
	c->at++;
	__atomic_store_n(&head_of(c)->read, c->at, __ATOMIC_RELEASE);
	return ok ? (int)len : -EPROTO;
}

bool relay_cursor_peek(const struct relay_cursor *c, enum relay_way *ret_way)
{
	uint32_t written = __atomic_load_n(&head_of(c)->written, __ATOMIC_ACQUIRE);
	if (written == c->at)
		return false;
	*ret_way = (enum relay_way)__atomic_load_n(&slot_of(c)->way, __ATOMIC_RELAXED);
	return true;
}
