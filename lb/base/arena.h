// SPDX-License-Identifier: Apache-2.0
// Memory taken in small pieces and given back as a whole: what one immutable object, one
// decoded resource or one config owns besides itself.
// Thread: the owner's.
#pragma once

#include "lb/base/str.h"

struct lb_arena_block;
struct lb_arena {
	struct lb_arena_block *blocks; // {0} is an empty arena
	size_t n_bytes; // taken from the heap
};

// Zeroed, aligned for pointers and 64-bit numbers, never NULL for want of length. NULL = out of
// memory, or n * size overflows.
void *lb_arena_alloc(struct lb_arena *, size_t n, size_t size);
// A copy, terminated. False = out of memory.
bool lb_arena_copy(struct lb_arena *, struct str, struct str *ret);
char *lb_arena_strdup(struct lb_arena *, const char *); // NULL = out of memory
void lb_arena_fini(struct lb_arena *); // empty afterwards
