// SPDX-License-Identifier: Apache-2.0
// Ring between one writing and one reading thread; items are copied. Never blocks, never allocates
// after init.
// Thread: spsc_write() and spsc_room() on the writer, spsc_read() on the reader, init/fini while
// neither runs.
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
};

// n_items is rounded up to a power of two. 0 or -ENOMEM.
[[nodiscard]] int spsc_init(struct spsc *, size_t item_size, uint32_t n_items);
void spsc_fini(struct spsc *);
// Copies the item in; false when the ring is full (nothing written).
[[nodiscard]] bool spsc_write(struct spsc *, const void *item);
// On the writer: how many more go in, at least.
uint32_t spsc_room(const struct spsc *);
// Copies the oldest item out; false when the ring is empty.
[[nodiscard]] bool spsc_read(struct spsc *, void *ret_item);
