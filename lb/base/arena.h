// SPDX-License-Identifier: Apache-2.0
// An arena: small allocations that are freed together, for what one immutable object, decoded
// resource or config owns.
// Thread: the owner's.
#pragma once

#include "lb/base/str.h"

struct lb_arena_block;
struct lb_arena {
	struct lb_arena_block *blocks; // {0} is an empty arena
	size_t n_bytes; // taken from the heap
};

// Zeroed, aligned for pointers and 64-bit numbers; not NULL for a length of 0. Returns NULL if out
// of memory, or if n * size overflows.
void *lb_arena_alloc(struct lb_arena *, size_t n, size_t size);
// Copies the text and terminates it. Returns false if out of memory.
bool lb_arena_copy(struct lb_arena *, struct str, struct str *ret);
char *lb_arena_strdup(struct lb_arena *, const char *); // NULL = out of memory
void lb_arena_fini(struct lb_arena *); // leaves it empty
