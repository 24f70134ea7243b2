// SPDX-License-Identifier: Apache-2.0
// The ring of ring_hash (gRFC A42, A61; RH-01, RH-02): entries in proportion to weights, at places
// that depend only on keys, so that removing an item moves only its own requests.
// Thread: new/free on ctrl; find anywhere. Pure.
#pragma once

#include "lb/base/str.h"

#include <stdint.h>

struct lb_ring;
struct lb_ring_item {
	struct str key; // borrowed for the call
	uint32_t weight; // >= 1
};

// 1 <= min <= max, entries in the whole ring; the lightest item gets a whole number of entries
// where max allows it. n >= 1. Returns NULL if out of memory.
struct lb_ring *lb_ring_new(
	const struct lb_ring_item *, uint32_t n, uint64_t min_size, uint64_t max_size);
void lb_ring_free(struct lb_ring *); // NULL is fine
uint32_t lb_ring_size(const struct lb_ring *);
// Returns the first place at or after the hash, wrapping.
uint32_t lb_ring_find(const struct lb_ring *, uint64_t hash);
// Returns the item at a place, as its index in the list.
uint32_t lb_ring_item_at(const struct lb_ring *, uint32_t place);
