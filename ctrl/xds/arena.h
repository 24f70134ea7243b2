// SPDX-License-Identifier: Apache-2.0
// Memory that is freed whole: what one decoded resource or one config owns besides itself.
// Thread: ctrl.
#pragma once

#include <stddef.h>

struct xds_arena_block;
struct xds_arena {
	struct xds_arena_block *blocks; // newest first; NULL = empty, no init needed
};

// Zeroed, aligned for anything. NULL = no memory (also when n * size overflows).
void *xds_arena_alloc(struct xds_arena *, size_t n, size_t size);
char *xds_arena_strdup(struct xds_arena *, const char *text); // NULL = no memory
void xds_arena_fini(struct xds_arena *);
