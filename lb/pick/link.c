// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/link.h"

#include "lb/base/check.h"
#include "lb/base/lines.h"

#include <stdlib.h>

struct lb_shared *lb_shared_new(void)
{
	struct lb_shared *s = lines_new(1, sizeof(*s));
	if (!s)
		return NULL;
	s->active = lines_new(LB_MAX_MEMBERS, sizeof(s->active[0]));
	s->loads = lines_new(LB_MAX_MEMBERS, sizeof(s->loads[0]));
	if (!s->active || !s->loads) {
		lb_shared_free(s);
		return NULL;
	}
	return s;
}

void lb_shared_free(struct lb_shared *s)
{
	if (!s)
		return;
	lines_free(s->active);
	lines_free(s->loads);
	lines_free(s);
}

struct lb_link *lb_link_new(uint32_t worker, int core, struct lb_shared *shared)
{
	struct lb_link *l = aligned_alloc(_Alignof(struct lb_link), sizeof(*l));
	if (!l)
		return NULL;
	*l = (struct lb_link){.worker = worker, .core = core, .shared = shared};
	l->clusters = lines_new(LB_MAX_CLUSTERS, sizeof(l->clusters[0]));
	l->endpoints = lines_new(LB_MAX_ENDPOINTS, sizeof(l->endpoints[0]));
	l->members = lines_new(LB_MAX_MEMBERS, sizeof(l->members[0]));
	l->loads = lines_new(LB_MAX_LOADS, sizeof(l->loads[0]));
	if (!l->clusters || !l->endpoints || !l->members || !l->loads)
		goto err;
	if (spsc_init(&l->commands, sizeof(struct lb_command), LB_LINK_COMMANDS) ||
		spsc_init(&l->events, sizeof(struct lb_event), LB_LINK_EVENTS))
		goto err;
	return l;
err:
	lb_link_free(l);
	return NULL;
}

void lb_link_free(struct lb_link *l)
{
	if (!l)
		return;
	spsc_fini(&l->commands);
	spsc_fini(&l->events);
	lines_free(l->clusters);
	lines_free(l->endpoints);
	lines_free(l->members);
	lines_free(l->loads);
	free(l);
}

void lb_link_add_group(struct lb_link *l, const char *name, struct counter_set set)
{
	CHECK(l->n_groups < LB_LINK_MAX_GROUPS);
	l->groups[l->n_groups++] = (struct lb_counter_group){name, set};
}
