// SPDX-License-Identifier: Apache-2.0
#include "lb/route/tracing.h"

#include "lb/base/arena.h"

#include <errno.h>

int lb_tracing_copy(struct lb_arena *arena, const struct lb_tracing *from, struct lb_tracing *ret)
{
	*ret = *from;
	ret->tags = NULL;
	if (!from->n_tags)
		return 0;
	struct lb_trace_tag *tags = lb_arena_alloc(arena, from->n_tags, sizeof(*tags));
	if (!tags)
		return -ENOMEM;
	for (uint32_t i = 0; i < from->n_tags; i++)
		if (!lb_arena_copy(arena, from->tags[i].key, &tags[i].key) ||
			!lb_arena_copy(arena, from->tags[i].header, &tags[i].header) ||
			!lb_arena_copy(arena, from->tags[i].value, &tags[i].value))
			return -ENOMEM;
	ret->tags = tags;
	return 0;
}
