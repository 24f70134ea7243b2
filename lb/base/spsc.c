// SPDX-License-Identifier: Apache-2.0
#include "lb/base/spsc.h"

#include "lb/base/cacheline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int spsc_init(struct spsc *r, size_t item_size, uint32_t n_items)
{
	uint32_t n = 1;
	while (n < n_items)
		n <<= 1;
	uint8_t *items = cacheline_alloc(n, item_size);
	if (!items)
		return -ENOMEM;
	*r = (struct spsc){.items = items, .item_size = item_size, .mask = n - 1};
	return 0;
}

void spsc_fini(struct spsc *r)
{
	cacheline_free(r->items);
	*r = (struct spsc){0};
}

void *spsc_place(struct spsc *r)
{
	uint32_t at = r->staged;
	if (at - r->seen_tail > r->mask) {
		// Pairs with the reader's release of tail: its copy out is done before the slot is
		// reused.
		r->seen_tail = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE);
		if (at - r->seen_tail > r->mask)
			return NULL;
	}
	return r->items + (size_t)(at & r->mask) * r->item_size;
}

void spsc_stage_placed(struct spsc *r)
{
	r->staged++;
}

void spsc_placed(struct spsc *r)
{
	spsc_stage_placed(r);
	spsc_publish(r);
}

bool spsc_stage(struct spsc *r, const void *item)
{
	void *place = spsc_place(r);
	if (!place)
		return false;
	memcpy(place, item, r->item_size);
	r->staged++;
	return true;
}

void spsc_publish(struct spsc *r)
{
	// Pairs with the reader's acquire of head: it sees the whole items.
	__atomic_store_n(&r->head, r->staged, __ATOMIC_RELEASE);
}

bool spsc_write(struct spsc *r, const void *item)
{
	if (!spsc_stage(r, item))
		return false;
	spsc_publish(r);
	return true;
}

uint32_t spsc_room(const struct spsc *r)
{
	return r->mask + 1 - (r->staged - __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE));
}

uint32_t spsc_read_many(struct spsc *r, void *ret_items, uint32_t max)
{
	uint32_t tail = r->tail;
	uint32_t n = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE) - tail;
	if (n == 0)
		return 0;
	n = n < max ? n : max;
	uint8_t *to = ret_items;
	for (uint32_t i = 0; i < n; i++, to += r->item_size)
		memcpy(to, r->items + (size_t)((tail + i) & r->mask) * r->item_size, r->item_size);
	__atomic_store_n(&r->tail, tail + n, __ATOMIC_RELEASE);
	return n;
}

bool spsc_read(struct spsc *r, void *ret_item)
{
	return spsc_read_many(r, ret_item, 1) == 1;
}

void *spsc_peek(struct spsc *r)
{
	return spsc_is_empty(r) ? NULL : r->items + (size_t)(r->tail & r->mask) * r->item_size;
}

void spsc_pass(struct spsc *r)
{
	// Pairs with the writer's acquire of tail: the reader is done with the item.
	__atomic_store_n(&r->tail, r->tail + 1, __ATOMIC_RELEASE);
}

bool spsc_is_empty(const struct spsc *r)
{
	return __atomic_load_n(&r->head, __ATOMIC_ACQUIRE) == r->tail;
}
