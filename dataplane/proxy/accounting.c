// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/accounting.h"

#include "dataplane/proxy/client.h"
#include "dataplane/proxy/leaf.h"
#include "dataplane/proxy/local_reply.h"
#include "dataplane/proxy/place.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/retry.h"
#include "dataplane/proxy/state.h"
#include "lb/base/check.h"
#include "lb/base/grpc_status.h"
#include "lb/base/time.h"
#include "lb/cluster.h"
#include "lb/pick/leaf_picker.h"
#include "lb/pick/link.h"
#include "lb/snapshot.h"

#define USED_STEP_NS NS_PER_SECOND // MC-16

static bool enter_breaker(struct proxy_request *r, const struct lb_leaf_layer *layer)
{
	struct proxy *p = r->proxy;
	if (!lb_quota_cache_enter(&p->quota_cache, layer->breaker, layer->max_requests))
		return false;
	r->accounting.breaker = layer->breaker;
	return true;
}

static inline struct proxy_share_ask ask_of(
	const struct proxy_request *r, const struct lb_leaf_layer *layer)
{
	return (struct proxy_share_ask){.breaker = layer->breaker,
		.source = r->owner->source,
		.limit = layer->max_requests,
		.now_ns = r->proxy->now_ns};
}

// There is less than ample room: its client may have one more of the places, or another request
// gives one up.
static __attribute__((noinline)) enum lb_cause enter_short(
	struct proxy_request *r, const struct lb_leaf_layer *layer)
{
	struct proxy_shares *shares = &r->proxy->shares;
	struct proxy_held *held = &r->accounting.held;
	struct proxy_share_ask ask = ask_of(r, layer);
	enum lb_cause refused = LB_CAUSE_OK;
	if (!proxy_share_enter(shares, &ask, held)) {
		refused = LB_CAUSE_OVER_SHARE;
	} else if (!enter_breaker(r, layer)) {
		proxy_share_leave(shares, held);
		refused = LB_CAUSE_OVERFLOW;
	}
	if (refused != LB_CAUSE_OK && proxy_place_take_over(r, layer))
		refused = LB_CAUSE_OK;
	if (held->by_source && !r->is_grpc && !r->request_done)
		list_append(proxy_share_owing(shares, layer->breaker), &held->owing);
	return refused;
}

enum lb_cause proxy_accounting_enter(struct proxy_request *r, const struct lb_leaf_layer *layer)
{
	if (!layer)
		return LB_CAUSE_OK;
	struct proxy_share_ask ask = ask_of(r, layer);
	if (proxy_share_is_ample(&r->proxy->shares, &ask) && enter_breaker(r, layer))
		return LB_CAUSE_OK;
	return enter_short(r, layer);
}

// A75-O12
static void note_use(struct proxy *p, struct lb_member_counters *c)
{
	uint64_t now_ns = twheel_now(p->wheel);
	if (now_ns >= c->used_ns + USED_STEP_NS || !c->used_ns)
		counter_set_to(&c->used_ns, now_ns ? now_ns : 1);
}

void proxy_accounting_open(struct proxy_request *r)
{
	struct proxy *p = r->proxy;
	struct proxy_accounting *b = &r->accounting;
	b->is_open = true;
	b->verdict = PROXY_UNJUDGED;
	b->whole_ns = twheel_now(p->wheel);
	proxy_latency_sent(r);
	if (!b->member)
		return;
	uint32_t member = b->member - 1;
	struct lb_member_counters *c = &p->link->members[member];
	counter_add(&c->issued, 1);
	b->load = __atomic_load_n(&p->shared->loads[member], __ATOMIC_RELAXED);
	if (b->load)
		counter_add(&p->link->loads[b->load].issued, 1);
	if (b->counts_active)
		__atomic_fetch_add(&p->shared->active[member], 1, __ATOMIC_RELAXED);
	if (r->session.on)
		note_use(p, c);
}

void proxy_accounting_close(struct proxy_request *r)
{
	struct proxy *p = r->proxy;
	struct proxy_accounting *b = &r->accounting;
	if (b->breaker) {
		lb_quota_cache_leave(&p->quota_cache, b->breaker);
		b->breaker = NULL;
	}
	if (b->held.by_source)
		proxy_share_leave(&p->shares, &b->held);
	if (!b->is_open)
		return;
	b->is_open = false;
	proxy_latency_attempt_over(r);
	if (!b->member)
		return;
	uint32_t member = b->member - 1;
	struct lb_member_counters *c = &p->link->members[member];
	uint64_t *const by_verdict[] = {&c->unjudged, &c->ok, &c->failed};
	counter_add(by_verdict[b->verdict], 1);
	if (b->load) {
		struct lb_load_counters *l = &p->link->loads[b->load];
		counter_add(b->verdict == PROXY_GOOD ? &l->ok : &l->failed, 1);
	}
	if (b->counts_active)
		__atomic_fetch_sub(&p->shared->active[member], 1, __ATOMIC_RELAXED);
}

// Which values load reports want, as it stands now. NULL = none.
static const struct lb_metrics *metrics_of(const struct proxy_request *r)
{
	const struct lb_leaf_layer *layer = proxy_leaf_of(r);
	bool is_leaf = layer && layer->id + 1 == r->accounting.leaf;
	return is_leaf && r->accounting.load ? layer->metrics : NULL;
}

// gRPC reads a report from the fields that end a call alone.
static void read_report(struct proxy_request *r, const struct h2_message *m)
{
	const struct proxy_accounting *b = &r->accounting;
	if (b->member && (b->wants_report || b->wants_metrics))
		proxy_notice_report(r->proxy,
			&(struct proxy_notice_to){.member = b->member - 1,
				.is_wanted = b->wants_report,
				.load = b->load,
				.metrics = b->wants_metrics ? metrics_of(r) : NULL},
			m->fields, m->n_fields);
}

void proxy_accounting_request_done(struct proxy_request *r)
{
	r->accounting.whole_ns = twheel_now(r->proxy->wheel);
	// Whoever gave way for its body goes on without a place; one that lets its answer lie ends.
	if (r->state != PROXY_REQUEST_ANSWERED)
		list_remove(&r->accounting.held.owing);
}

// A time that is up speaks against the backend if it was ours, and the backend had the request
// whole for most of it. A client may set any time, and may take all of it for its own part.
static bool is_time_the_clients(const struct proxy_request *r)
{
	return r->deadline_ns &&
	       !(r->capped && r->request_done && r->accounting.whole_ns <= r->half_ns);
}

// A50-E05. A status other than OK is a failure, CANCELLED too, as it is to gRPC's C-core; plain
// HTTP fails with 5xx.
static enum proxy_verdict judge_status(struct proxy_request *r, const struct h2_message *m)
{
	int status = proxy_retry_status_of(m);
	if (r->answer == LB_ANSWER_NONE || proxy_retry_has_status(m)) // else the head's counts
		r->answer = lb_answer_grpc(status);
	if (status == GRPC_DEADLINE_EXCEEDED && is_time_the_clients(r))
		return PROXY_UNJUDGED;
	return status ? PROXY_BAD : PROXY_GOOD;
}

void proxy_accounting_answer(struct proxy_request *r, const struct h2_message *m)
{
	struct proxy_accounting *b = &r->accounting;
	if (!r->is_grpc)
		r->answer = lb_answer_http(m->status);
	else if (m->status != 200) // a proxy's, say: trailers may know better
		r->answer = lb_answer_grpc(proxy_grpc_of_http(m->status));
	if (!r->is_grpc && m->status >= 500)
		b->verdict = PROXY_BAD; // whatever comes
	else if (m->end_stream)
		b->verdict = r->is_grpc ? judge_status(r, m) : PROXY_GOOD;
	if (m->end_stream || !r->is_grpc)
		read_report(r, m);
}

void proxy_accounting_answer_data_end(struct proxy_request *r)
{
	struct proxy_accounting *b = &r->accounting;
	if (b->verdict == PROXY_UNJUDGED)
		b->verdict = r->is_grpc ? PROXY_BAD : PROXY_GOOD; // gRPC's has a status
	if (r->is_grpc && r->answer == LB_ANSWER_NONE)
		r->answer = lb_answer_grpc(GRPC_UNKNOWN); // as its client has it
}

void proxy_accounting_answer_trailers(struct proxy_request *r, const struct h2_message *m)
{
	struct proxy_accounting *b = &r->accounting;
	if (r->is_grpc)
		b->verdict = judge_status(r, m);
	else if (b->verdict == PROXY_UNJUDGED)
		b->verdict = PROXY_GOOD;
	read_report(r, m);
}

// A50-E05: what was not sent, or surely not begun, says nothing.
void proxy_accounting_cut(struct proxy_request *r, const struct proxy_upstream_end *end)
{
	// HTTP/2 gives a connection up with this code when we are out of memory.
	bool overload = end->cause == LB_CAUSE_UPSTREAM_PROTOCOL && end->code == H2_INTERNAL_ERROR;
	// gRPC's servers end with it what lasts too long.
	bool late = end->cause == LB_CAUSE_UPSTREAM_RESET && end->code == H2_CANCEL &&
	            is_time_the_clients(r);
	if (end->reach == PROXY_REACH_UNKNOWN && !overload && !late)
		r->accounting.verdict = PROXY_BAD;
}

// Likewise: it speaks against the backend if that had the request whole.
void proxy_accounting_idle(struct proxy_request *r)
{
	if (r->state == PROXY_REQUEST_SENT && r->request_done)
		r->accounting.verdict = PROXY_BAD;
}

// Whoever has begun to answer may be a stream that lasts as long as it may.
void proxy_accounting_expire(struct proxy_request *r)
{
	if (r->state == PROXY_REQUEST_SENT && !is_time_the_clients(r))
		r->accounting.verdict = PROXY_BAD;
}
