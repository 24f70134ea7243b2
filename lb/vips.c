// SPDX-License-Identifier: Apache-2.0
#include "lb/vips.h"

#include "lb/chain_set.h"

#include <stdlib.h>

struct lb_vips *lb_vips_new(const struct lb_vip *list, uint32_t n, uint64_t version)
{
	struct lb_vips *v = malloc(sizeof(*v) + n * sizeof(v->list[0]));
	if (!v)
		return NULL;
	v->n_refs = 1;
	v->n = n;
	v->version = version;
	for (uint32_t i = 0; i < n; i++)
		v->list[i] = (struct lb_vip){list[i].at, lb_chain_set_get(list[i].chains)};
	return v;
}

struct lb_vips *lb_vips_get(struct lb_vips *v)
{
	if (v)
		v->n_refs++;
	return v;
}

void lb_vips_put(struct lb_vips *v)
{
	if (!v || --v->n_refs)
		return;
	for (uint32_t i = 0; i < v->n; i++)
		lb_chain_set_put(v->list[i].chains);
	free(v);
}
