// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/latency.h"

#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "lb/pick/link.h"

static inline void count_end(struct proxy *p, const struct proxy_latency_end *e)
{
	uint64_t request_ns = p->now_ns - e->began_ns, added_ns = request_ns - e->others_ns;
	uint32_t request = histogram_index(request_ns), added = histogram_index(added_ns);
	struct lb_frontend_times *f = &p->link->frontends[e->frontend];
	counter_add(&f->answers[e->answer], 1);
	histogram_add(&f->request, request, request_ns);
	histogram_add(&f->added, added, added_ns);
	if (e->cluster == PROXY_NO_CLUSTER)
		return;
	struct lb_cluster_times *c = &p->link->times[e->cluster];
	counter_add(&c->answers[e->answer], 1);
	histogram_add(&c->request, request, request_ns);
	histogram_add(&c->added, added, added_ns);
}

static inline void count_ends(struct proxy *p)
{
	struct proxy_latency *l = &p->latency;
	for (const struct proxy_latency_end *e = l->ended; e != l->next_end; e++)
		count_end(p, e);
	l->next_end = l->ended;
}

void proxy_latency_init(struct proxy_latency *l)
{
	l->next_sent = l->sent;
	l->next_end = l->ended;
}

// A call of its own, since it seldom happens.
static __attribute__((noinline)) void make_room(struct proxy *p)
{
	count_ends(p);
}

void proxy_latency_begin_turn(struct proxy *p)
{
	struct proxy_latency *l = &p->latency;
	for (uint64_t **s = l->sent; s != l->next_sent; s++)
		**s = p->now_ns;
	l->next_sent = l->sent;
	count_ends(p);
}

void proxy_latency_sent(struct proxy_request *r)
{
	struct proxy *p = r->proxy;
	struct proxy_latency *l = &p->latency;
	r->accounting.sent_ns = p->now_ns;
	if (__builtin_expect(l->next_sent != l->sent + PROXY_LATENCY_NOTES, 1))
		*l->next_sent++ = &r->accounting.sent_ns;
}

void proxy_latency_attempt_over(struct proxy_request *r)
{
	struct proxy *p = r->proxy;
	uint64_t ns = p->now_ns - r->accounting.sent_ns;
	r->backend_ns += ns;
	histogram_add(&p->link->times[r->cluster_id].attempt, histogram_index(ns), ns);
}

void proxy_latency_request_over(const struct proxy_request *r)
{
	struct proxy *p = r->proxy;
	struct proxy_latency *l = &p->latency;
	if (__builtin_expect(l->next_end == l->ended + PROXY_LATENCY_NOTES, 0))
		make_room(p);
	*l->next_end++ = (struct proxy_latency_end){.began_ns = r->began_ns,
		.cluster = r->cluster_id,
		.frontend = r->frontend,
		.answer = r->answer,
		.others_ns = r->backend_ns + (p->now_ns - r->whole_ns)};
}
