// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/check.h"

#include "lb/base/check.h"

#include <stdlib.h>
#include <string.h>

struct lb_check *lb_check_new(void)
{
	struct lb_check *c = calloc(1, sizeof(*c));
	if (c)
		c->n_refs = 1;
	return c;
}

struct lb_check *lb_check_get(struct lb_check *c)
{
	if (c)
		c->n_refs++;
	return c;
}

void lb_check_put(struct lb_check *c)
{
	if (!c)
		return;
	CHECK(c->n_refs > 0);
	if (--c->n_refs)
		return;
	lb_arena_fini(&c->arena);
	free(c);
}

bool lb_status_is_in(struct lb_status_ranges r, uint16_t status)
{
	for (uint32_t i = 0; i < r.n; i++)
		if (r.list[i].from <= status && status < r.list[i].to)
			return true;
	return false;
}

bool lb_check_finds(const struct lb_check *c, struct str received)
{
	for (uint32_t i = 0; i < c->n_receive; i++) {
		const struct str *block = &c->receive[i];
		const char *at = memmem(received.p, received.len, block->p, block->len);
		if (!at)
			return false;
		size_t used = (size_t)(at - received.p) + block->len;
		received = (struct str){received.p + used, received.len - used};
	}
	return true;
}
