// SPDX-License-Identifier: Apache-2.0
#include "lb/arena.h"

#include <stdint.h>
#include <stdlib.h>

#define SMALLEST_BLOCK 128
#define LARGEST_STEP ((size_t)64 << 10) // up to here a block is half of all before it

struct lb_arena_block {
	struct lb_arena_block *next;
	size_t size, used; // of bytes
	_Alignas(16) char bytes[];
};

// The first block has room for len bytes.
static bool have_room(struct lb_arena *a, size_t len)
{
	struct lb_arena_block *first = a->blocks;
	if (first && first->size - first->used >= len)
		return true;
	size_t size = a->n_bytes / 2;
	if (size < SMALLEST_BLOCK)
		size = SMALLEST_BLOCK;
	if (size > LARGEST_STEP)
		size = LARGEST_STEP;
	if (size < len)
		size = len;
	struct lb_arena_block *b = malloc(sizeof(*b) + size);
	if (!b)
		return false;
	*b = (struct lb_arena_block){.next = first, .size = size};
	a->blocks = b;
	a->n_bytes += sizeof(*b) + size;
	return true;
}

void *lb_arena_alloc(struct lb_arena *a, size_t n, size_t size)
{
	size_t len;
	if (__builtin_mul_overflow(n, size, &len) || len > SIZE_MAX / 4)
		return NULL;
	len = (len + 15) & ~(size_t)15;
	if (!have_room(a, len ? len : 16))
		return NULL;
	void *p = a->blocks->bytes + a->blocks->used;
	a->blocks->used += len;
	return memset(p, 0, len);
}

bool lb_arena_copy(struct lb_arena *a, struct str s, struct str *ret)
{
	char *p = lb_arena_alloc(a, s.len + 1, 1);
	if (!p)
		return false;
	if (s.len)
		memcpy(p, s.p, s.len);
	*ret = (struct str){p, s.len};
	return true;
}

void lb_arena_fini(struct lb_arena *a)
{
	for (struct lb_arena_block *b = a->blocks, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	*a = (struct lb_arena){0};
}
