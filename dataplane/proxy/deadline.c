// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/deadline.h"

#include "dataplane/proxy/client.h"
#include "dataplane/proxy/pick.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "lb/base/container_of.h"

#include <stdio.h>

uint64_t proxy_deadline_left_ns(const struct proxy_request *r)
{
	if (!twheel_armed(&r->deadline))
		return LB_NO_TIMEOUT;
	uint64_t now_ns = twheel_now(r->proxy->wheel);
	return r->deadline_ns > now_ns ? r->deadline_ns - now_ns : 0;
}

static void count(struct proxy_request *r)
{
	static const enum proxy_counter by_state[] = {
		[PROXY_REQUEST_PAUSED] = PROXY_deadlines_paused,
		[PROXY_REQUEST_PICKING] = PROXY_deadlines_queued,
		[PROXY_REQUEST_ROOM] = PROXY_deadlines_queued,
		[PROXY_REQUEST_SENT] = PROXY_deadlines_sent,
		[PROXY_REQUEST_ANSWERED] = PROXY_deadlines_answered,
	};
	proxy_count(r->proxy, by_state[r->state]);
}

// what it waited for, in the words of its cluster if that fails.
static struct str waited_for(struct proxy_request *r, char *text, size_t size)
{
	const char *error = r->pick_failed ? proxy_pick_error(r) : NULL;
	int len = error ? snprintf(text, size, "deadline exceeded; last error: %s", error)
	                : snprintf(text, size, "deadline exceeded while waiting for a backend");
	return (struct str){text, len < 0 ? 0 : (size_t)len < size ? (size_t)len : size - 1};
}

// A31-T08
static void expire(struct proxy_request *r)
{
	struct proxy_reply reply = proxy_reply_for(LB_CAUSE_TIMEOUT, STR("deadline exceeded"));
	char text[PROXY_GRPC_MESSAGE_MAX];
	if (r->state == PROXY_REQUEST_PICKING && list_linked(&r->link))
		reply.text = waited_for(r, text, sizeof(text));
	if (!r->request_done)
		reply.http_status = 408;
	count(r);
	if (r->upstream && !r->capped)
		proxy_source_ended_early(r->owner->source, r->proxy->now_ns);
	proxy_accounting_expire(r);
	proxy_request_cut_short(r, &reply, H2_CANCEL);
}

static void fire(struct twheel_timer *t)
{
	struct proxy_request *r = CONTAINER_OF(t, struct proxy_request, deadline);
	proxy_request_enter(r);
	expire(r);
	proxy_request_leave(r);
}

bool proxy_deadline_begin(struct proxy_request *r, const struct lb_timeouts *timeouts,
	uint64_t listener_max_ns, uint64_t client_ns)
{
	struct lb_timeouts t = *timeouts;
	// It speaks of grpc-timeout, which nobody else has: they keep the other limits.
	t.has_header_max = t.has_header_max && r->is_grpc;
	uint64_t ns = lb_timeouts_effective(&t, listener_max_ns, client_ns);
	if (ns >= PROXY_LONGEST_NS)
		return true;
	struct twheel *w = r->proxy->wheel;
	r->capped = ns < client_ns;
	if (!ns) {
		expire(r);
		return false;
	}
	r->deadline_ns = twheel_now(w) + ns;
	r->half_ns = twheel_now(w) + ns / 2;
	r->deadline.fire = fire;
	twheel_arm(w, &r->deadline, r->deadline_ns);
	return true;
}
