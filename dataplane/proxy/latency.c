// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/latency.h"

#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "lb/base/cacheline.h"
#include "lb/pick/link.h"

struct proxy_latency *proxy_latency_new(void)
{
	return cacheline_alloc(1, sizeof(struct proxy_latency));
}

void proxy_latency_free(struct proxy_latency *l)
{
	cacheline_free(l);
}

static void count_end(struct proxy *p, const struct proxy_latency_end *e)
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

static void count_ends(struct proxy *p)
{
	struct proxy_latency *l = p->latency;
	for (uint32_t i = 0; i < l->n_ended; i++)
		count_end(p, &l->ended[i]);
	l->n_ended = 0;
}

void proxy_latency_begin_turn(struct proxy *p)
{
	struct proxy_latency *l = p->latency;
	for (uint32_t i = 0; i < l->n_sent; i++)
		if (l->sent[i])
			l->sent[i]->accounting.sent_ns = p->now_ns;
	l->n_sent = 0;
	count_ends(p);
}

void proxy_latency_sent(struct proxy_request *r)
{
	struct proxy_latency *l = r->proxy->latency;
	if (l->n_sent == PROXY_LATENCY_NOTES) {
		r->accounting.sent_ns = r->proxy->now_ns;
		return;
	}
	r->accounting.sent_ns = 0;
	r->accounting.sent_note = l->n_sent;
	l->sent[l->n_sent++] = r;
}

void proxy_latency_attempt_over(struct proxy_request *r)
{
	struct proxy *p = r->proxy;
	uint64_t ns = 0;
	if (r->accounting.sent_ns)
		ns = p->now_ns - r->accounting.sent_ns;
	else // in the turn in which it was sent
		p->latency->sent[r->accounting.sent_note] = NULL;
	r->backend_ns += ns;
	histogram_add(&p->link->times[r->cluster_id].attempt, histogram_index(ns), ns);
}

void proxy_latency_request_over(const struct proxy_request *r)
{
	struct proxy *p = r->proxy;
	struct proxy_latency *l = p->latency;
	if (l->n_ended == PROXY_LATENCY_NOTES)
		count_ends(p);
	l->ended[l->n_ended++] = (struct proxy_latency_end){.began_ns = r->began_ns,
		.others_ns = r->backend_ns + (p->now_ns - r->whole_ns),
		.cluster = r->cluster_id,
		.frontend = r->frontend,
		.answer = r->answer};
}
