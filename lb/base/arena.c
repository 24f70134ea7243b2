// SPDX-License-Identifier: Apache-2.0
#include "lb/base/arena.h"

#include <stdlib.h>

#define ALIGN 8
// With its head and the allocator's own word the first block is a cache line, which is all that
// most resources need: for a name. Others are two at least.
#define FIRST_BLOCK 32
#define SMALLEST_BLOCK 96
// Up to here a block is an eighth of all before it. With its head and the allocator's words it is
// whole pages.
#define LARGEST_STEP (((size_t)64 << 10) - 2 * sizeof(void *) - sizeof(struct lb_arena_block))

// Objects lie at the beginning, texts at the end, which need no alignment.
struct lb_arena_block {
	struct lb_arena_block *next;
	size_t low, high; // between them it is free
	_Alignas(ALIGN) char bytes[];
};

static size_t usual_size(const struct lb_arena *a)
{
	if (!a->blocks)
		return FIRST_BLOCK;
	size_t size = a->n_bytes / 8;
	if (size > LARGEST_STEP)
		size = LARGEST_STEP;
	return size > SMALLEST_BLOCK ? size : SMALLEST_BLOCK;
}

// A block with room for len bytes. One that is made for a large piece goes behind the first, in
// which there may be room for small ones still.
static struct lb_arena_block *find_room(struct lb_arena *a, size_t len)
{
	struct lb_arena_block *first = a->blocks;
	if (first && first->high - first->low >= len)
		return first;
	size_t size = usual_size(a) / ALIGN * ALIGN;
	bool is_large = len > size / 2;
	if (is_large && (first || len > size))
		size = (len + ALIGN - 1) / ALIGN * ALIGN;
	struct lb_arena_block *b = calloc(1, sizeof(*b) + size);
	if (!b)
		return NULL;
	struct lb_arena_block **link = is_large && first ? &first->next : &a->blocks;
	b->high = size;
	b->next = *link;
	*link = b;
	a->n_bytes += sizeof(*b) + size;
	return b;
}

void *lb_arena_alloc(struct lb_arena *a, size_t n, size_t size)
{
	size_t len;
	if (__builtin_mul_overflow(n, size, &len) || len > SIZE_MAX / 4)
		return NULL;
	len = len ? (len + ALIGN - 1) / ALIGN * ALIGN : ALIGN;
	struct lb_arena_block *b = find_room(a, len);
	if (!b)
		return NULL;
	void *p = b->bytes + b->low;
	b->low += len;
	return p;
}

bool lb_arena_copy(struct lb_arena *a, struct str s, struct str *ret)
{
	if (s.len > SIZE_MAX / 4)
		return false;
	struct lb_arena_block *b = find_room(a, s.len + 1);
	if (!b)
		return false;
	b->high -= s.len + 1;
	char *p = b->bytes + b->high;
	if (s.len)
		memcpy(p, s.p, s.len);
	*ret = (struct str){p, s.len};
	return true;
}

char *lb_arena_strdup(struct lb_arena *a, const char *text)
{
	struct str copy;
	return lb_arena_copy(a, str_from(text), &copy) ? (char *)(uintptr_t)copy.p : NULL;
}

void lb_arena_fini(struct lb_arena *a)
{
	for (struct lb_arena_block *b = a->blocks, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	*a = (struct lb_arena){0};
}
