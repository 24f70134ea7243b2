// SPDX-License-Identifier: Apache-2.0
#include "lb/base/cacheline.h"

#include <stdint.h>
#include <stdlib.h>

// aligned_alloc() gives no zeros, and to write them would make all of it resident. So calloc()
// gives more, and what it gave stands in front, on a line of its own.
void *cacheline_alloc(size_t n, size_t size)
{
	size_t room;
	if (__builtin_mul_overflow(n, size, &room) || room > SIZE_MAX - 4 * CACHELINE_SIZE)
		return NULL;
	room = (room + CACHELINE_SIZE - 1) & ~(size_t)(CACHELINE_SIZE - 1);
	uint8_t *given = calloc(1, room + 2 * CACHELINE_SIZE);
	if (!given)
		return NULL;
	uintptr_t at = (uintptr_t)given % CACHELINE_SIZE;
	uint8_t *lines = given + 2 * CACHELINE_SIZE - at;
	((void **)(void *)lines)[-1] = given;
	return lines;
}

void cacheline_free(void *lines)
{
	if (lines)
		free(((void **)lines)[-1]);
}
