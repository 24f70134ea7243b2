// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/progress.h"

#include "dataplane/proxy/client.h"
#include "dataplane/proxy/deadline.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"

#include <inttypes.h>
#include <stdio.h>

#define LOOK_NS (100 * NS_PER_MS) // between two looks at a client's requests

// Whoever owes the rest of its request is told so (408); else it is the backend that is late (504).
static void expire(struct proxy_request *r)
{
	char text[64];
	int len = snprintf(text, sizeof(text), "nothing of it moved for %" PRIu64 " s",
		r->progress.limit_ns / NS_PER_SECOND);
	struct proxy_reply reply =
		proxy_reply_for(LB_CAUSE_STREAM_IDLE, (struct str){text, (size_t)len});
	proxy_request_enter(r);
	if (!r->request_done) {
		reply.http_status = 408;
		if (r->upstream)
			proxy_source_ended_early(r->owner->source, r->proxy->now_ns);
	}
	proxy_accounting_idle(r);
	proxy_request_cut_short(r, &reply, H2_CANCEL);
	proxy_request_leave(r);
}

// When its time is over; UINT64_MAX = it has no limit.
static uint64_t over_at_ns(const struct proxy_request *r)
{
	bool is_limited = r && r->progress.limit_ns && r->state < PROXY_REQUEST_ENDING;
	return is_limited ? r->progress.at_ns + r->progress.limit_ns : UINT64_MAX;
}

static void look(struct twheel_timer *t)
{
	struct proxy_client *c = CONTAINER_OF(t, struct proxy_client, progress_timer);
	struct twheel *w = c->conn.proxy->wheel;
	uint64_t now_ns = twheel_now(w), next_ns = UINT64_MAX;
	struct h2_stream *older;
	for (struct h2_stream *s = h2_conn_newest(c->conn.h2); s; s = older) {
		struct proxy_request *r = h2_stream_user(s);
		uint64_t at_ns = over_at_ns(r);
		older = h2_stream_older(s);
		if (at_ns <= now_ns)
			expire(r);
		else if (at_ns < next_ns)
			next_ns = at_ns;
	}
	if (next_ns != UINT64_MAX)
		twheel_arm(w, t, next_ns > now_ns + LOOK_NS ? next_ns : now_ns + LOOK_NS);
}

void proxy_progress_begin(struct proxy_request *r, uint64_t limit_ns)
{
	if (limit_ns >= PROXY_LONGEST_NS)
		return;
	struct twheel_timer *t = &r->owner->progress_timer;
	uint64_t now_ns = r->proxy->now_ns;
	r->progress = (struct proxy_progress){.at_ns = now_ns, .limit_ns = limit_ns};
	if (twheel_armed(t) && twheel_expires_ns(t) <= now_ns + limit_ns)
		return;
	t->fire = look;
	twheel_arm(r->proxy->wheel, t, now_ns + limit_ns);
}
