// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/ids.h"

#include "lb/base/check.h"
#include "lb/base/min.h"

#include <errno.h>
#include <stdlib.h>

struct ids_resting {
	uint64_t since_ns;
	uint32_t id;
};

int ids_init(struct ids *ids, uint32_t n_max, uint64_t rest_ns)
{
	*ids = (struct ids){.n_max = n_max, .rest_ns = rest_ns};
	// calloc leaves what was never given back as untouched zero pages.
	ids->resting = calloc(n_max, sizeof(*ids->resting));
	return ids->resting ? 0 : -ENOMEM;
}

void ids_fini(struct ids *ids)
{
	free(ids->resting);
	*ids = (struct ids){0};
}

static uint32_t take_new(struct ids *ids)
{
	return ids->next < ids->n_max ? ids->next++ : IDS_NONE;
}

uint32_t ids_take(struct ids *ids, uint64_t now_ns)
{
	const struct ids_resting *oldest = &ids->resting[ids->head];
	if (ids->n_resting && now_ns - oldest->since_ns >= ids->rest_ns) {
		ids->head = (ids->head + 1) % ids->n_max;
		ids->n_resting--;
		return oldest->id;
	}
	return take_new(ids);
}

uint32_t ids_take_idle(struct ids *ids, uint64_t now_ns, uint32_t max_tries,
	bool (*is_idle)(void *ctx, uint32_t id), void *ctx)
{
	for (uint32_t n = min_u32(ids->n_resting, max_tries); n > 0; n--) {
		uint32_t id = ids_take(ids, now_ns);
		if (id == IDS_NONE || is_idle(ctx, id))
			return id;
		ids_give(ids, id, now_ns);
	}
	return take_new(ids);
}

void ids_give(struct ids *ids, uint32_t id, uint64_t now_ns)
{
	CHECK(id < ids->next && ids->n_resting < ids->n_max);
	ids->resting[(ids->head + ids->n_resting++) % ids->n_max] =
		(struct ids_resting){now_ns, id};
}
