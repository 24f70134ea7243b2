// SPDX-License-Identifier: Apache-2.0
#include "lb/base/spsc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int spsc_init(struct spsc *r, size_t item_size, uint32_t n_items)
{
	uint32_t n = 1;
	while (n < n_items)
		n <<= 1;
	uint8_t *items = calloc(n, item_size);
	if (!items)
		return -ENOMEM;
	*r = (struct spsc){.items = items, .item_size = item_size, .mask = n - 1};
	return 0;
}

void spsc_fini(struct spsc *r)
{
	free(r->items);
	*r = (struct spsc){0};
}

bool spsc_write(struct spsc *r, const void *item)
{
	uint32_t head = r->head;
	// Pairs with the reader's release of tail: its copy out is done before the slot is reused.
	if (head - __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) > r->mask)
		return false;
	memcpy(r->items + (size_t)(head & r->mask) * r->item_size, item, r->item_size);
	// Pairs with the reader's acquire of head: it sees the whole item.
	__atomic_store_n(&r->head, head + 1, __ATOMIC_RELEASE);
	return true;
}

uint32_t spsc_room(const struct spsc *r)
{
	return r->mask + 1 - (r->head - __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE));
}

bool spsc_read(struct spsc *r, void *ret_item)
{
	uint32_t tail = r->tail;
	if (__atomic_load_n(&r->head, __ATOMIC_ACQUIRE) == tail)
		return false;
	memcpy(ret_item, r->items + (size_t)(tail & r->mask) * r->item_size, r->item_size);
	__atomic_store_n(&r->tail, tail + 1, __ATOMIC_RELEASE);
	return true;
}
