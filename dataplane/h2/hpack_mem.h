// SPDX-License-Identifier: Apache-2.0
// Memory for HPACK's tables: size classes carved from pages that are all reserved at new(). An
// empty page can serve any class again.
// Thread: one owner.
#pragma once

#include "lb/base/pool.h"

#include <stddef.h>
#include <stdint.h>

struct hpack_mem;

// Reserves n_pages pages of HPACK_PAGE bytes. Returns NULL if out of memory.
#define HPACK_PAGE 32768
struct hpack_mem *hpack_mem_new(uint32_t n_pages);
void hpack_mem_free(struct hpack_mem *);

// Returns NULL if exhausted, or if len is more than a page holds.
void *hpack_mem_take(struct hpack_mem *, size_t size);
void hpack_mem_put(struct hpack_mem *, void *block); // NULL is fine
size_t hpack_mem_size(const struct hpack_mem *, const void *block); // usable bytes
uint32_t hpack_mem_used(const struct hpack_mem *); // blocks in use
struct pool_view hpack_mem_view(struct hpack_mem *); // pages with blocks in use
