// SPDX-License-Identifier: Apache-2.0
#include "lb/base/grow.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 8

bool grow(void *list, size_t n, uint32_t *room, size_t size)
{
	if (n < *room)
		return true;
	if (*room > UINT32_MAX / 2)
		return false;
	uint32_t more = *room ? 2 * *room : FIRST_ROOM;
	void *p;
	memcpy(&p, list, sizeof(p)); // any kind of pointer
	p = realloc(p, more * size);
	if (!p)
		return false;
	memcpy(list, &p, sizeof(p));
	*room = more;
	return true;
}
