// SPDX-License-Identifier: Apache-2.0
#include "lb/base/lines.h"

#include <stdint.h>
#include <stdlib.h>

// aligned_alloc() gives no zeros, and to write them would make all of it resident. So calloc()
// gives more, and what it gave stands in front, on a line of its own.
void *lines_new(size_t n, size_t size)
{
	size_t room;
	if (__builtin_mul_overflow(n, size, &room) || room > SIZE_MAX - 4 * LINE_SIZE)
		return NULL;
	room = (room + LINE_SIZE - 1) & ~(size_t)(LINE_SIZE - 1);
	uint8_t *given = calloc(1, room + 2 * LINE_SIZE);
	if (!given)
		return NULL;
	uintptr_t at = (uintptr_t)given % LINE_SIZE;
	uint8_t *lines = given + 2 * LINE_SIZE - at;
	((void **)(void *)lines)[-1] = given;
	return lines;
}

void lines_free(void *lines)
{
	if (lines)
		free(((void **)lines)[-1]);
}
