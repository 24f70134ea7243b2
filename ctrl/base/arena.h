// SPDX-License-Identifier: Apache-2.0
// Memory that is freed whole: what one decoded resource or one config owns besides itself.
// Thread: ctrl.
#pragma once

#include "lb/base/arena.h"

struct xds_arena {
	struct lb_arena base; // all zero = empty, no init needed
};

// Zeroed, aligned for pointers and numbers. NULL = no memory (also when n * size overflows).
static inline void *xds_arena_alloc(struct xds_arena *a, size_t n, size_t size)
{
	return lb_arena_alloc(&a->base, n, size);
}
static inline char *xds_arena_strdup(struct xds_arena *a, const char *text) // NULL = no memory
{
	struct str copy;
	return lb_arena_copy(&a->base, str_from(text), &copy) ? (char *)(uintptr_t)copy.p : NULL;
}
static inline void xds_arena_fini(struct xds_arena *a)
{
	lb_arena_fini(&a->base);
}
