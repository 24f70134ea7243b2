// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_MIN 1024
#define ALIGN 16

struct xds_arena_block {
	struct xds_arena_block *next;
	size_t n_left; // bytes at the end of data
	size_t size;
	_Alignas(ALIGN) uint8_t data[];
};

void *xds_arena_alloc(struct xds_arena *a, size_t n, size_t size)
{
	size_t len;
	if (__builtin_mul_overflow(n, size, &len) || len > SIZE_MAX / 2)
		return NULL;
	len = (len + ALIGN - 1) & ~(size_t)(ALIGN - 1);

	struct xds_arena_block *b = a->blocks;
	if (!b || b->n_left < len) {
		size_t room = len > BLOCK_MIN ? len : BLOCK_MIN;
		b = calloc(1, sizeof(*b) + room);
		if (!b)
			return NULL;
		b->size = b->n_left = room;
		b->next = a->blocks;
		a->blocks = b;
	}
	void *p = b->data + (b->size - b->n_left);
	b->n_left -= len;
	return p;
}

char *xds_arena_strdup(struct xds_arena *a, const char *text)
{
	size_t len = strlen(text) + 1;
	char *copy = xds_arena_alloc(a, 1, len);
	return copy ? memcpy(copy, text, len) : NULL;
}

void xds_arena_fini(struct xds_arena *a)
{
	while (a->blocks) {
		struct xds_arena_block *next = a->blocks->next;
		free(a->blocks);
		a->blocks = next;
	}
}
