// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/loads.h"

#include "lb/base/check.h"

#include <stdlib.h>

struct lb_loads *lb_loads_new(uint32_t n_drops)
{
	struct lb_loads *l = calloc(1, sizeof(*l) + n_drops * sizeof(l->drops[0]));
	if (!l)
		return NULL;
	l->n_refs = 1;
	l->n_drops = n_drops;
	return l;
}

struct lb_loads *lb_loads_get(struct lb_loads *l)
{
	if (l)
		l->n_refs++;
	return l;
}

void lb_loads_put(struct lb_loads *l)
{
	if (!l)
		return;
	CHECK(l->n_refs > 0);
	if (--l->n_refs == 0)
		free(l);
}
