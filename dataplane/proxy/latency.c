// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/latency.h"

#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"

// A call of its own, since few have it.
static __attribute__((noinline)) void count_vhost(struct lb_vhost_counters *v,
	const struct proxy_latency_whose *whose, uint32_t place, uint64_t ns)
{
	counter_add(&v->ended[whose->cause], 1);
	counter_add(&v->answers[whose->answer], 1);
	histogram_add(&v->request, place, ns);
}

// Likewise. What we answered ourselves, or was cut, is told by its cause and no other count.
static __attribute__((noinline)) void count_failure(
	struct lb_frontend_times *f, struct lb_cluster_times *c, enum lb_cause cause)
{
	if (cause != LB_CAUSE_OK)
		return;
	counter_add(&f->bad, 1);
	counter_add(&c->bad, 1);
}

// One thing after the other, so that few registers do.
static inline void count_end(
	const struct proxy_latency *l, const struct proxy_latency_note *n, uint64_t now_ns)
{
	struct lb_frontend_times *f = &l->frontends[n->whose.frontend];
	struct lb_cluster_times *c = &l->clusters[n->whose.cluster_id];
	uint32_t answer = n->whose.answer; // read once: counters may be anywhere
	counter_add(&f->answers[answer], 1);
	counter_add(&c->answers[answer], 1);
	if (__builtin_expect(lb_answer_is_failure((uint8_t)answer), 0))
		count_failure(f, c, n->whose.cause);
	uint64_t bytes = n->bodies.in; // likewise
	counter_add(&f->bodies.in, bytes);
	counter_add(&c->bodies.in, bytes);
	bytes = n->bodies.out;
	counter_add(&f->bodies.out, bytes);
	counter_add(&c->bodies.out, bytes);
	uint64_t ns = now_ns - n->whose.began_ns;
	uint32_t place = histogram_place(ns);
	histogram_add(&f->request, place, ns);
	histogram_add(&c->request, place, ns);
	if (n->whose.vhost)
		count_vhost(&l->vhosts[n->whose.vhost], &n->whose, place, ns);
	ns -= n->others_ns;
	place = histogram_place(ns);
	histogram_add(&f->added, place, ns);
	histogram_add(&c->added, place, ns);
}

static inline void give_time(struct proxy_latency *l, uint64_t now_ns)
{
	const struct proxy_latency_note *next = l->next;
	for (const struct proxy_latency_note *n = l->notes; n != next; n++)
		if (n->sent_ns)
			*n->sent_ns = now_ns;
		else
			count_end(l, n, now_ns);
	l->next = l->notes;
}

void proxy_latency_init(struct proxy_latency *l, const struct lb_link *link)
{
	l->clusters = link->times;
	l->frontends = link->frontends;
	l->vhosts = link->vhosts;
	l->next = l->notes;
	l->end = l->notes + PROXY_LATENCY_NOTES;
}

void proxy_latency_begin_turn(struct proxy *p)
{
	give_time(&p->latency, p->now_ns);
}

// A call of its own, since it seldom happens.
static __attribute__((noinline)) void make_room(struct proxy *p)
{
	give_time(&p->latency, p->now_ns);
}

static inline struct proxy_latency_note *place_note(struct proxy *p)
{
	struct proxy_latency *l = &p->latency;
	if (__builtin_expect(l->next == l->end, 0))
		make_room(p);
	return l->next++;
}

void proxy_latency_sent(struct proxy_request *r)
{
	struct proxy *p = r->proxy;
	r->accounting.sent_ns = p->now_ns;
	place_note(p)->sent_ns = &r->accounting.sent_ns;
}

void proxy_latency_attempt_over(struct proxy_request *r)
{
	struct proxy *p = r->proxy;
	uint64_t ns = p->now_ns - r->accounting.sent_ns;
	r->backend_ns += ns;
	histogram_add(&p->latency.clusters[r->cluster_id].attempt, histogram_place(ns), ns);
}

void proxy_latency_request_over(const struct proxy_request *r)
{
	struct proxy *p = r->proxy;
	struct proxy_latency_note *n = place_note(p);
	n->sent_ns = NULL;
	n->others_ns = r->backend_ns + (p->now_ns - r->whole_ns);
	n->whose = r->whose;
	n->bodies = r->bodies;
}
