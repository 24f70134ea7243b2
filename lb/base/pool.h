// SPDX-License-Identifier: Apache-2.0
// A pool of fixed-size objects; all memory comes from libc once at pool_init(), so that the packet
// path never calls malloc. Memory is only reserved then; a page becomes resident when its first
// object is used.
// Thread: one owner; any thread may read the usage, through a pool_view.
#pragma once

#include "lb/base/counter.h"

#include <stddef.h>
#include <stdint.h>

struct pool {
	void *free; // singly linked through the objects' first word
	uint8_t *memory; // owned
	size_t size; // of one object, rounded up to 16
	uint32_t n_total;
	uint32_t n_fresh; // objects never handed out yet: memory + (n_total - n_fresh) * size
	uint32_t n_used; // w: owner (relaxed), r: any (relaxed)
	uint32_t n_peak; // likewise
};

// Room for n objects of `size` bytes. 0 or -ENOMEM.
[[nodiscard]] int pool_init(struct pool *, size_t size, uint32_t n);
// Frees the memory; objects still out become invalid.
void pool_fini(struct pool *);

// Returns an object, not zeroed, owned by the caller until pool_put(); NULL if all are in use.
void *pool_take(struct pool *);
// NULL is fine.
void pool_put(struct pool *, void *object);
// For who looks at all objects: how many were ever handed out, and the nth of these. It may have
// been put back, and but for its first word it is then as it was.
static inline uint32_t pool_n_seen(const struct pool *p)
{
	return p->n_total - p->n_fresh;
}
static inline void *pool_at(const struct pool *p, uint32_t n)
{
	return p->memory + (size_t)n * p->size;
}
static inline uint32_t pool_left(const struct pool *p)
{
	return p->n_total - p->n_used;
}

// The usage of anything with a fixed number of objects.
struct pool_view {
	const char *name; // borrowed
	size_t size; // bytes of an object
	uint32_t n_total;
	const uint32_t *n_used; // as pool's
	uint32_t *n_peak; // likewise
};
#define POOL_LIST_MAX 48 // a worker's own, at most 28, and one for each port
// Filled before it is shared, constant afterwards.
struct pool_list {
	struct pool_view views[POOL_LIST_MAX];
	uint32_t n;
};
// Both CHECK the bound; what is added must outlive the list.
void pool_list_add(struct pool_list *, const char *name, struct pool *);
void pool_list_add_view(struct pool_list *, const struct pool_view *);

// The owner of all its pools: what they have in use is the most they ever had.
void pool_list_clear_peaks(const struct pool_list *);

// The owner updates the two counts of a view.
static inline void pool_count(uint32_t *n_used, uint32_t *n_peak, uint32_t now)
{
	gauge_set(n_used, now);
	if (now > *n_peak)
		gauge_set(n_peak, now);
}
