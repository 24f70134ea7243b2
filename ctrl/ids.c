// SPDX-License-Identifier: Apache-2.0
#include "ctrl/ids.h"

#include "lb/base/check.h"

#include <errno.h>
#include <stdlib.h>

int ids_init(struct ids *ids, uint32_t n_max, uint32_t n_rest)
{
	*ids = (struct ids){.n_max = n_max, .n_rest = n_rest};
	ids->resting = calloc(n_max, sizeof(*ids->resting));
	return ids->resting ? 0 : -ENOMEM;
}

void ids_fini(struct ids *ids)
{
	free(ids->resting);
	*ids = (struct ids){0};
}

uint32_t ids_take(struct ids *ids)
{
	if (ids->next < ids->n_max && ids->n_resting <= ids->n_rest)
		return ids->next++;
	if (ids->n_resting == 0)
		return IDS_NONE;
	uint32_t id = ids->resting[ids->head];
	ids->head = (ids->head + 1) % ids->n_max;
	ids->n_resting--;
	return id;
}

void ids_give(struct ids *ids, uint32_t id)
{
	CHECK(id < ids->next && ids->n_resting < ids->n_max);
	ids->resting[(ids->head + ids->n_resting++) % ids->n_max] = id;
}
