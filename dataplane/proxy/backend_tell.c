// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/backend_tell.h"

#include "dataplane/proxy/state.h"
#include "lb/pick/link.h"

#include <stdio.h>

void proxy_backend_tell_later(struct proxy_backend *b)
{
	if (b->tell_queued)
		return;
	b->tell_queued = true;
	STAILQ_INSERT_TAIL(&b->proxy->tell, b, tell_next);
}

// No connection is left.
static bool is_bare(const struct proxy_backend *b)
{
	return !b->n_conns && list_empty(&b->clients);
}

static bool tell(struct proxy_backend *b, enum lb_event_kind kind)
{
	struct lb_event e = {.kind = kind, .endpoint_id = b->id};
	if (kind == LB_EVENT_FAILED || kind == LB_EVENT_LOST || kind == LB_EVENT_SHORT_LIVED)
		snprintf(e.why, sizeof(e.why), "%s", *b->why ? b->why : "closed");
	return spsc_write(&b->proxy->link->events, &e);
}

// Told by comparing what is with what the control thread knows, so that a full ring can delay an
// event but not lose a state. False = the ring is full.
static bool tell_one(struct proxy_backend *b)
{
	bool ready = b->n_ready > 0 && !b->releasing;
	while (b->n_release_owed && (!b->releasing || is_bare(b))) {
		if (!tell(b, LB_EVENT_RELEASED))
			return false;
		b->n_release_owed--;
	}
	if (!ready && !b->replaces && b->told_up) {
		if (!tell(b, b->was_short_lived ? LB_EVENT_SHORT_LIVED : LB_EVENT_LOST))
			return false;
		b->told_up = false;
	}
	if (ready && (!b->told_up || b->connect_owed)) {
		if (!tell(b, LB_EVENT_CONNECTED))
			return false;
		b->told_up = true;
		b->connect_owed = false;
	}
	if (b->connect_owed && !b->n_connecting) {
		if (!tell(b, LB_EVENT_FAILED))
			return false;
		b->connect_owed = false;
	}
	return true;
}

void proxy_backend_tell_all(struct proxy *p)
{
	struct proxy_backend *b;
	while ((b = STAILQ_FIRST(&p->tell))) {
		if (!tell_one(b)) {
			proxy_count(p, PROXY_events_delayed);
			return;
		}
		STAILQ_REMOVE_HEAD(&p->tell, tell_next);
		b->tell_queued = false;
		if (b->releasing && is_bare(b) && list_empty(&b->waiting) && !b->serve_queued)
			*b = (struct proxy_backend){.barred = b->barred};
	}
}
