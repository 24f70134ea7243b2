// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/scratch.h"

#include "lb/base/cacheline.h"
#include "lb/route/route.h"

#include <errno.h>

int proxy_scratch_init(
	struct proxy_scratch *s, uint32_t worker, uint32_t max_fields, size_t max_header_bytes)
{
	s->max_fields = max_fields + PROXY_FORWARDED_FIELDS;
	s->fields = cacheline_alloc(s->max_fields + PROXY_ADDED_FIELDS, sizeof(*s->fields));
	// Fields in their stored form take less than what the limit counts for them.
	s->size = max_header_bytes + PROXY_FORWARDED_BYTES + 1024;
	s->bytes = cacheline_alloc(1, s->size);
	s->pick = cacheline_alloc(1, s->size);
	s->route = lb_route_scratch_new(worker, s->size);
	s->forwarded.max_fields = s->max_fields;
	s->forwarded.fields = cacheline_alloc(s->max_fields, sizeof(*s->forwarded.fields));
	s->forwarded.size = max_header_bytes + PROXY_FORWARDED_BYTES;
	s->forwarded.text = cacheline_alloc(1, s->forwarded.size);
	bool has_all = s->fields && s->bytes && s->pick && s->route && s->forwarded.fields &&
	               s->forwarded.text;
	return has_all ? 0 : -ENOMEM;
}

void proxy_scratch_fini(struct proxy_scratch *s)
{
	cacheline_free(s->fields);
	cacheline_free(s->bytes);
	cacheline_free(s->pick);
	cacheline_free(s->forwarded.fields);
	cacheline_free(s->forwarded.text);
	lb_route_scratch_free(s->route);
}
