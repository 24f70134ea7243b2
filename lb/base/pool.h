// SPDX-License-Identifier: Apache-2.0
// Fixed-size objects, all memory taken from libc once at new(): the packet path never calls malloc.
// The memory is only reserved then; a page becomes resident when its first object is used.
// Thread: one owner.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct pool {
	void *free; // singly linked through the objects' first word
	uint8_t *memory; // owned
	size_t size; // of one object, rounded up to 16
	uint32_t n_total;
	uint32_t n_fresh; // objects never handed out yet: memory + (n_total - n_fresh) * size
	uint32_t n_used;
	uint32_t n_peak;
};

// Room for n objects of `size` bytes. 0 or -ENOMEM.
[[nodiscard]] int pool_init(struct pool *, size_t size, uint32_t n);
// Frees the memory; objects still out become invalid.
void pool_fini(struct pool *);

// One object, not zeroed, owned by the caller until pool_put(); NULL when all are out.
void *pool_take(struct pool *);
// NULL is fine.
void pool_put(struct pool *, void *object);
static inline uint32_t pool_left(const struct pool *p)
{
	return p->n_total - p->n_used;
}
