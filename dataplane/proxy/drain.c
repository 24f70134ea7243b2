// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/drain.h"

#include "dataplane/proxy/client.h"
#include "dataplane/proxy/leave.h"
#include "dataplane/proxy/listen.h"
#include "dataplane/proxy/state.h"
#include "lb/base/container_of.h"
#include "lb/base/min.h"
#include "lb/chain_set.h"
#include "lb/pick/farewell.h"
#include "lb/pick/link.h"
#include "lb/snapshot.h"

// Clients told in one turn.
#define PER_TURN 256

static void enter_step(struct proxy *p, enum proxy_drain_step step)
{
	p->drain.step = step;
	p->drain.next = proxy_client_first(p); // there are no new ones
}

// Nobody is waited for any more.
static void patience_over(struct twheel_timer *t)
{
	struct proxy *p = CONTAINER_OF(t, struct proxy, drain.timer);
	for (struct proxy_client *c; (c = proxy_client_first(p));)
		proxy_leave_cut(c);
	proxy_conn_end_lingering(p);
}

static void deadline_over(struct twheel_timer *t)
{
	struct proxy *p = CONTAINER_OF(t, struct proxy, drain.timer);
	enter_step(p, PROXY_DRAIN_CUTTING);
	t->fire = patience_over;
	twheel_arm(p->wheel, t, twheel_now(p->wheel) + LB_DRAIN_LAST_NS);
}

static void grace_over(struct twheel_timer *t)
{
	struct proxy *p = CONTAINER_OF(t, struct proxy, drain.timer);
	enter_step(p, PROXY_DRAIN_ENDING);
	t->fire = deadline_over;
	twheel_arm(p->wheel, t, p->drain.deadline_ns);
}

void proxy_drain_begin(struct proxy *p, uint64_t deadline_ns)
{
	if (p->drain.step != PROXY_DRAIN_NONE)
		return;
	proxy_listen_end(p);
	enter_step(p, PROXY_DRAIN_BEGUN);
	p->drain.deadline_ns = deadline_ns;
	uint64_t grace_ns = twheel_now(p->wheel) + PROXY_LEAVE_GRACE_NS;
	p->drain.timer.fire = grace_ns < deadline_ns ? grace_over : deadline_over;
	twheel_arm(p->wheel, &p->drain.timer, min_u64(grace_ns, deadline_ns));
}

static void hush(struct twheel_timer *t)
{
	tcp_stack_hush(CONTAINER_OF(t, struct proxy, drain.hush_timer)->tcp);
}

void proxy_drain_say_farewell(struct proxy *p, uint64_t until_ns)
{
	struct proxy_drain *d = &p->drain;
	if (d->step != PROXY_DRAIN_NONE || d->farewell_until_ns)
		return;
	d->farewell_until_ns = until_ns;
	d->look_at = proxy_client_first(p);
	d->hush_timer.fire = hush;
	twheel_arm(p->wheel, &d->hush_timer, until_ns - LB_FAREWELL_HUSH_NS);
}

static void tell_client(struct proxy *p, struct proxy_client *c)
{
	if (p->drain.step == PROXY_DRAIN_BEGUN)
		proxy_leave_say_first(c);
	else if (p->drain.step == PROXY_DRAIN_ENDING)
		proxy_leave_say_last(c);
	else
		proxy_leave_cut(c);
}

static void tell_some(struct proxy *p)
{
	for (uint32_t i = 0; p->drain.next && i < PER_TURN; i++) {
		struct proxy_client *c = p->drain.next;
		p->drain.next = proxy_client_after(c);
		tell_client(p, c);
	}
}

// Those of a replaced listener count once the process ends: their clients are sent away by both.
void proxy_drain_count_cut(struct proxy *p)
{
	if (p->drain.step != PROXY_DRAIN_NONE)
		p->drain.n_cut++;
}

static void answer(struct proxy *p)
{
	struct lb_event e = {.kind = LB_EVENT_DRAINED, .n_cut = p->drain.n_cut};
	if (!p->drain.answered)
		p->drain.answered = spsc_write(&p->link->events, &e);
}

// Newcomers are put in front. A walk that is on its way is not begun anew but made once more: or
// else tables that come one by one keep it from those behind.
static void look_at_all(struct proxy *p)
{
	if (p->drain.look_at)
		p->drain.looks_again = true;
	else
		p->drain.look_at = proxy_client_first(p);
}

void proxy_drain_see_frontends(struct proxy *p)
{
	look_at_all(p);
}

static void see_generations(struct proxy *p)
{
	struct proxy_drain *d = &p->drain;
	if (d->n_generations == p->snapshot->n_generations)
		return;
	d->n_generations = p->snapshot->n_generations;
	bool is_news = false;
	for (uint32_t i = 0; i < p->snapshot->n_frontends; i++) {
		uint64_t now = lb_snapshot_frontend(p->snapshot, i)->generation;
		is_news = is_news || now != d->generations[i];
		d->generations[i] = now;
	}
	if (is_news)
		look_at_all(p);
}

void proxy_drain_see_listeners(struct proxy *p)
{
	struct proxy_drain *d = &p->drain;
	const struct lb_vips *vips = p->snapshot->vips;
	see_generations(p);
	if (!vips || vips->version == d->vips_version)
		return;
	d->vips_version = vips->version;
	look_at_all(p);
}

// The vip by which it came is its Listener's no more: it is nobody's, or another's (A36-72).
static bool has_lost_address(const struct proxy_client *c)
{
	if (!c->vip)
		return false;
	const struct tcp_flow *flow = tcp_conn_flow(c->conn.tcp);
	const struct ip_port local = {flow->local, flow->local_port};
	const struct lb_chain_set *chains =
		lb_vips_chains(c->conn.proxy->snapshot->vips, c->vip - 1u, &local);
	return !chains || (!c->hello && !lb_chain_set_has(chains, c->chain));
}

// Before there was a listener nothing was promised that could have changed.
static void look_at_listener(struct proxy_client *c)
{
	uint64_t now = c->conn.proxy->drain.generations[c->chain];
	bool is_replaced = c->generation && c->generation != now;
	c->generation = now;
	if (!is_replaced && !has_lost_address(c))
		return;
	c->vip = 0;
	proxy_leave_listener(c);
}

static void look_at_some(struct proxy *p)
{
	for (uint32_t i = 0; p->drain.look_at && i < PER_TURN; i++) {
		struct proxy_client *c = p->drain.look_at;
		p->drain.look_at = proxy_client_after(c);
		look_at_listener(c);
		proxy_leave_frontend(c, p->listeners[c->frontend].gone_by_ns);
		if (p->drain.farewell_until_ns)
			proxy_leave_farewell(c, p->drain.farewell_until_ns);
	}
	if (p->drain.look_at || !p->drain.looks_again)
		return;
	p->drain.looks_again = false;
	p->drain.look_at = proxy_client_first(p);
}

void proxy_drain_step(struct proxy *p)
{
	if (proxy_drain_looks(&p->drain))
		look_at_some(p);
	switch (p->drain.step) {
	case PROXY_DRAIN_NONE:
		return;
	case PROXY_DRAIN_BEGUN:
	case PROXY_DRAIN_ENDING:
	case PROXY_DRAIN_CUTTING:
		tell_some(p);
		// What a backend has not read is of requests that have ended.
		if (!list_empty(&p->client_list) || !list_empty(&p->lingering_clients))
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
