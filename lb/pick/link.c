// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/link.h"

#include "lb/base/cacheline.h"
#include "lb/base/check.h"

#include <stdlib.h>

struct lb_shared *lb_shared_new(void)
{
	struct lb_shared *s = cacheline_alloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->active = cacheline_alloc(LB_MAX_MEMBERS, sizeof(s->active[0]));
	s->loads = cacheline_alloc(LB_MAX_MEMBERS, sizeof(s->loads[0]));
	s->timers = cacheline_alloc(LB_MAX_ENDPOINTS, sizeof(s->timers[0]));
	if (!s->active || !s->loads || !s->timers) {
		lb_shared_free(s);
		return NULL;
	}
	return s;
}

void lb_shared_free(struct lb_shared *s)
{
	if (!s)
		return;
	cacheline_free(s->active);
	cacheline_free(s->loads);
	cacheline_free(s->timers);
	cacheline_free(s);
}

struct lb_link *lb_link_new(uint32_t worker, int core, struct lb_shared *shared)
{
	struct lb_link *l = aligned_alloc(_Alignof(struct lb_link), sizeof(*l));
	if (!l)
		return NULL;
	*l = (struct lb_link){.worker = worker, .core = core, .shared = shared};
	l->clusters = cacheline_alloc(LB_MAX_CLUSTERS, sizeof(l->clusters[0]));
	l->times = cacheline_alloc(LB_MAX_CLUSTERS + 1, sizeof(l->times[0]));
	l->frontends = cacheline_alloc(LB_MAX_FRONTENDS, sizeof(l->frontends[0]));
	l->vhosts = cacheline_alloc(LB_MAX_COUNTED_VHOSTS + 1, sizeof(l->vhosts[0]));
	l->endpoints = cacheline_alloc(LB_MAX_ENDPOINTS, sizeof(l->endpoints[0]));
	l->members = cacheline_alloc(LB_MAX_MEMBERS, sizeof(l->members[0]));
	l->loads = cacheline_alloc(LB_MAX_LOADS, sizeof(l->loads[0]));
	l->failures = lb_failures_new();
	l->failed_answers = lb_failures_new();
	l->inflight = lb_inflight_new();
	if (!l->clusters || !l->times || !l->frontends || !l->vhosts || !l->inflight)
		goto err;
	if (!l->endpoints || !l->members || !l->loads || !l->failures || !l->failed_answers)
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
	cacheline_free(l->clusters);
	cacheline_free(l->times);
	cacheline_free(l->frontends);
	cacheline_free(l->vhosts);
	cacheline_free(l->endpoints);
	cacheline_free(l->members);
	cacheline_free(l->loads);
	lb_failures_free(l->failures);
	lb_failures_free(l->failed_answers);
	lb_inflight_free(l->inflight);
	lb_access_free(l->access);
	lb_trace_free(l->trace);
	lb_capture_free(l->capture);
	free(l);
}

void lb_link_add_group(struct lb_link *l, const char *name, struct counter_set set)
{
	CHECK(l->n_groups < LB_LINK_MAX_GROUPS);
	l->groups[l->n_groups++] = (struct lb_counter_group){name, set};
}

void lb_link_clear_maxima(struct lb_link *l)
{
	counter_set_to(&l->counters.longest_turn_ns, 0);
	pool_list_clear_peaks(&l->pools);
}
