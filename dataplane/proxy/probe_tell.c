// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/probe_tell.h"

#include "dataplane/proxy/probe.h"
#include "dataplane/proxy/state.h"
#include "lb/base/container_of.h"
#include "lb/pick/link.h"
#include "lb/pick/probe.h"

#include <stdio.h>

void proxy_probe_list(struct proxy *p, struct lb_probe *l)
{
	if (!list_linked(&l->worker.to_tell))
		list_append(&p->probes.to_tell, &l->worker.to_tell);
}

void proxy_probe_report(struct proxy *p, struct lb_probe *l, struct proxy_verdict v)
{
	l->worker.owes_result = true;
	l->worker.result = (uint8_t)v.result;
	snprintf(l->worker.why, sizeof(l->worker.why), "%s", v.why);
	proxy_probe_list(p, l);
}

static bool tell(struct proxy *p, struct lb_probe *l)
{
	struct lb_event e = {.kind = LB_EVENT_PROBED, .probe = l->id};
	e.probed.result = l->worker.result;
	snprintf(e.probed.why, sizeof(e.probed.why), "%s", l->worker.why);
	if (l->worker.owes_result && !spsc_write(&p->link->events, &e))
		return false;
	l->worker.owes_result = false;
	e = (struct lb_event){.kind = LB_EVENT_PROBE_ENDED, .probe = l->id};
	list_remove(&l->worker.to_tell); // it may be freed as soon as the end is told
	if (!l->worker.owes_end || spsc_write(&p->link->events, &e))
		return true;
	list_insert(&p->probes.to_tell, &l->worker.to_tell);
	return false;
}

void proxy_probe_tell_all(struct proxy *p)
{
	for (struct list_link *l; (l = list_first(&p->probes.to_tell));)
		if (!tell(p, CONTAINER_OF(l, struct lb_probe, worker.to_tell))) {
			proxy_count(p, PROXY_events_delayed);
			return;
		}
}
