// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/scratch.h"

#include "lb/base/cacheline.h"
#include "lb/route/route.h"

#include <errno.h>

int proxy_scratch_init(
	struct proxy_scratch *s, uint32_t worker, uint32_t max_fields, size_t max_header_bytes)
{
	s->max_fields = max_fields;
	s->fields = cacheline_alloc(max_fields + PROXY_ADDED_FIELDS, sizeof(*s->fields));
	// Fields in their stored form take less than what the limit counts for them.
	s->size = max_header_bytes + 1024;
	s->bytes = cacheline_alloc(1, s->size);
	s->pick = cacheline_alloc(1, s->size);
	s->route = lb_route_scratch_new(worker, s->size);
	return s->fields && s->bytes && s->pick && s->route ? 0 : -ENOMEM;
}

void proxy_scratch_fini(struct proxy_scratch *s)
{
	cacheline_free(s->fields);
	cacheline_free(s->bytes);
	cacheline_free(s->pick);
	lb_route_scratch_free(s->route);
}
