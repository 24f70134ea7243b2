// SPDX-License-Identifier: Apache-2.0
#include "lb/own_ranges.h"

#include <stdlib.h>
#include <string.h>

struct lb_own_ranges *lb_own_ranges_new(
	const struct lb_own_range *list, uint32_t n, uint64_t version)
{
	struct lb_own_ranges *r = malloc(sizeof(*r) + n * sizeof(r->list[0]));
	if (!r)
		return NULL;
	r->n_refs = 1;
	r->n = n;
	r->version = version;
	if (n)
		memcpy(r->list, list, n * sizeof(r->list[0]));
	return r;
}

struct lb_own_ranges *lb_own_ranges_get(struct lb_own_ranges *r)
{
	if (r)
		r->n_refs++;
	return r;
}

void lb_own_ranges_put(struct lb_own_ranges *r)
{
	if (r && --r->n_refs == 0)
		free(r);
}
