// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/drain.h"

#include "dataplane/proxy/client.h"
#include "dataplane/proxy/state.h"
#include "lb/link.h"

// Time for requests that were on their way when the client had not heard of the drain yet.
#define GRACE_NS UINT64_C(1000000000)
// Clients told in one turn.
#define PER_TURN 256

void proxy_drain_forget(struct proxy *p, const struct proxy_client *c)
{
	if (p->drain.next == c)
		p->drain.next = c->next;
}

static void enter_step(struct proxy *p, enum proxy_drain_step step)
{
	p->drain.step = step;
	p->drain.next = p->client_list; // there are no new ones
}

static void deadline_over(struct twheel_timer *t)
{
	// That a turn happens is all: its step does the rest.
}

static void grace_over(struct twheel_timer *t)
{
	struct proxy *p = (void *)((uint8_t *)t - offsetof(struct proxy, drain.timer));
	enter_step(p, PROXY_DRAIN_ENDING);
	t->fire = deadline_over;
	twheel_arm(p->wheel, t, p->drain.deadline_ns);
}

void proxy_drain_begin(struct proxy *p, uint64_t deadline_ns)
{
	if (p->drain.step != PROXY_DRAIN_NONE)
		return;
	for (uint32_t i = 0; i < p->conf.n_frontends; i++)
		tcp_unlisten(p->tcp, &p->conf.frontends[i].address, p->conf.frontends[i].port);
	enter_step(p, PROXY_DRAIN_BEGUN);
	p->drain.deadline_ns = deadline_ns;
	p->drain.timer.fire = grace_over;
	twheel_arm(p->wheel, &p->drain.timer, twheel_now(p->wheel) + GRACE_NS);
}

static void tell_client(struct proxy *p, struct proxy_client *c)
{
	if (p->drain.step == PROXY_DRAIN_BEGUN) {
		h2_conn_drain_begin(c->conn.h2);
	} else {
		h2_conn_drain_end(c->conn.h2, H2_NO_ERROR);
		c->drained = true;
	}
	proxy_conn_touch(&c->conn);
}

static void tell_some(struct proxy *p)
{
	for (uint32_t i = 0; p->drain.next && i < PER_TURN; i++) {
		struct proxy_client *c = p->drain.next;
		p->drain.next = c->next;
		tell_client(p, c);
	}
}

static void cut_all(struct proxy *p)
{
	while (p->client_list) {
		p->client_list->cut = true;
		proxy_client_abort(p->client_list);
	}
	while (p->lingering)
		proxy_conn_gone(p->lingering, H2_NO_ERROR, true);
}

static void answer(struct proxy *p)
{
	struct lb_event e = {.kind = LB_EVENT_DRAINED};
	if (!p->drain.answered)
		p->drain.answered = spsc_write(&p->link->events, &e);
}

void proxy_drain_step(struct proxy *p)
{
	switch (p->drain.step) {
	case PROXY_DRAIN_NONE:
		return;
	case PROXY_DRAIN_BEGUN:
	case PROXY_DRAIN_ENDING:
		tell_some(p);
		if (twheel_now(p->wheel) >= p->drain.deadline_ns)
			cut_all(p);
		if (p->client_list || p->lingering)
			return;
		twheel_cancel(p->wheel, &p->drain.timer);
		p->drain.step = PROXY_DRAIN_DONE;
		answer(p);
		return;
	case PROXY_DRAIN_DONE:
		answer(p);
		return;
	}
}
