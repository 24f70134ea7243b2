// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/booking.h"

#include "dataplane/proxy/request.h"
#include "dataplane/proxy/retry.h"
#include "dataplane/proxy/state.h"
#include "lb/base/check.h"
#include "lb/breaker.h"
#include "lb/leaf.h"
#include "lb/link.h"

#define USED_STEP_NS UINT64_C(1000000000) // MC-16

bool proxy_booking_enter(struct proxy_request *r, const struct lb_leaf_layer *layer)
{
	if (!layer)
		return true;
	if (!lb_breaker_enter(layer->breaker, layer->max_requests))
		return false;
	r->booking.breaker = layer->breaker;
	return true;
}

// A75-O12
static void note_use(struct proxy *p, struct lb_member_counters *c)
{
	uint64_t now_ns = twheel_now(p->wheel);
	if (now_ns >= c->used_ns + USED_STEP_NS || !c->used_ns)
		counter_set_to(&c->used_ns, now_ns ? now_ns : 1);
}

void proxy_booking_open(struct proxy_request *r)
{
	struct proxy *p = r->proxy;
	struct proxy_booking *b = &r->booking;
	b->is_open = true;
	b->is_bad = b->is_ok = false;
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

void proxy_booking_close(struct proxy_request *r)
{
	struct proxy *p = r->proxy;
	struct proxy_booking *b = &r->booking;
	if (b->breaker) {
		lb_breaker_leave(b->breaker);
		b->breaker = NULL;
	}
	if (!b->is_open)
		return;
	b->is_open = false;
	if (!b->member)
		return;
	uint32_t member = b->member - 1;
	struct lb_member_counters *c = &p->link->members[member];
	counter_add(b->is_ok ? &c->ok : &c->failed, 1);
	if (b->load) {
		struct lb_load_counters *l = &p->link->loads[b->load];
		counter_add(b->is_ok ? &l->ok : &l->failed, 1);
	}
	if (b->counts_active)
		__atomic_fetch_sub(&p->shared->active[member], 1, __ATOMIC_RELAXED);
}

// gRPC reads a report from the fields that end a call alone.
static void read_report(struct proxy_request *r, const struct h2_message *m)
{
	const struct proxy_booking *b = &r->booking;
	if (b->member && (b->wants_report || b->wants_metrics))
		proxy_notice_report(r->proxy, b->member - 1, b->wants_metrics ? b->load : 0,
			b->wants_report, m->fields, m->n_fields);
}

// A50-E05. A status other than OK is a failure, CANCELLED too, as it is to gRPC's C-core; plain
// HTTP fails with 5xx.
void proxy_booking_answer(struct proxy_request *r, const struct h2_message *m)
{
	struct proxy_booking *b = &r->booking;
	b->is_bad = !r->is_grpc && m->status >= 500;
	if (m->end_stream)
		b->is_ok = r->is_grpc ? !proxy_retry_status_of(m) : !b->is_bad;
	if (m->end_stream || !r->is_grpc)
		read_report(r, m);
}

void proxy_booking_answer_data_end(struct proxy_request *r)
{
	r->booking.is_ok = !r->is_grpc && !r->booking.is_bad;
}

void proxy_booking_answer_trailers(struct proxy_request *r, const struct h2_message *m)
{
	r->booking.is_ok = r->is_grpc ? !proxy_retry_status_of(m) : !r->booking.is_bad;
	read_report(r, m);
}
