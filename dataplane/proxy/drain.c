// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/drain.h"

#include "dataplane/proxy/client.h"
#include "dataplane/proxy/listen.h"
#include "dataplane/proxy/state.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"
#include "lb/pick/link.h"
#include "lb/snapshot.h"

// Time for requests that were on their way when the client had not heard of the drain yet.
#define GRACE_NS NS_PER_SECOND
// Clients told in one turn.
#define PER_TURN 256
// The share of the time of a listener's clients over which they are told, one by one: all at once
// they would all come back at once.
#define TELLING_SHARE 10
#define TIMELESS UINT64_MAX // of a client whose streams may take their time

static void enter_step(struct proxy *p, enum proxy_drain_step step)
{
	p->drain.step = step;
	p->drain.next = proxy_client_first(p); // there are no new ones
}

static void deadline_over(struct twheel_timer *t)
{
	// That a turn happens is all: its step does the rest.
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
	p->drain.timer.fire = grace_over;
	twheel_arm(p->wheel, &p->drain.timer, twheel_now(p->wheel) + GRACE_NS);
}

static void say_first_goaway(struct proxy_client *c)
{
	h2_conn_drain_begin(c->conn.h2);
	proxy_conn_touch(&c->conn);
}

static void say_last_goaway(struct proxy_client *c)
{
	h2_conn_drain_end(c->conn.h2, H2_NO_ERROR);
	c->drained = true;
	proxy_conn_touch(&c->conn);
}

static void tell_client(struct proxy *p, struct proxy_client *c)
{
	if (p->drain.step == PROXY_DRAIN_BEGUN)
		say_first_goaway(c);
	else
		say_last_goaway(c);
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

static void cut_all(struct proxy *p)
{
	for (struct proxy_client *c; (c = proxy_client_first(p));) {
		c->cut = true;
		proxy_client_abort(c);
	}
	proxy_conn_abort_lingering(p);
}

static void answer(struct proxy *p)
{
	struct lb_event e = {.kind = LB_EVENT_DRAINED, .n_cut = p->drain.n_cut};
	if (!p->drain.answered)
		p->drain.answered = spsc_write(&p->link->events, &e);
}

static struct proxy_client *of_leave_timer(struct twheel_timer *t)
{
	return CONTAINER_OF(t, struct proxy_client, leave_timer);
}

static void time_is_up(struct twheel_timer *t)
{
	struct proxy_client *c = of_leave_timer(t);
	c->cut = true;
	proxy_client_abort(c);
}

static void arm_end(struct proxy_client *c)
{
	c->leave_timer.fire = time_is_up;
	if (c->leave_by_ns != TIMELESS)
		twheel_arm(c->conn.proxy->wheel, &c->leave_timer, c->leave_by_ns);
}

static void client_grace_over(struct twheel_timer *t)
{
	struct proxy_client *c = of_leave_timer(t);
	say_last_goaway(c);
	arm_end(c);
}

// GOAWAY in two steps, beginning now.
static void tell(struct proxy_client *c)
{
	struct proxy *p = c->conn.proxy;
	uint64_t now_ns = twheel_now(p->wheel);
	uint64_t grace_end_ns = now_ns + GRACE_NS;
	if (!c->drained) // by the end of everything
		say_first_goaway(c);
	c->leave_timer.fire = client_grace_over;
	twheel_arm(p->wheel, &c->leave_timer,
		c->leave_by_ns < grace_end_ns ? c->leave_by_ns : grace_end_ns);
}

static void tell_to_leave(struct twheel_timer *t)
{
	struct proxy_client *c = of_leave_timer(t);
	proxy_count(c->conn.proxy, PROXY_clients_drained);
	tell(c);
}

// Somewhen in this time.
static uint64_t begin_telling(struct proxy_client *c, uint64_t telling_ns)
{
	struct proxy *p = c->conn.proxy;
	uint64_t at_ns = twheel_now(p->wheel) + rand_below(&p->rand, telling_ns + 1);
	c->leaves = true;
	c->leave_timer.fire = tell_to_leave;
	twheel_arm(p->wheel, &c->leave_timer, at_ns);
	return at_ns;
}

// What is left of a listener's time behind that of telling.
static uint64_t rest_of(const struct proxy *p)
{
	return p->conf.listener_drain_ns / TELLING_SHARE * (TELLING_SHARE - 1);
}

// Those who are told late have as long as the others, and are cut apart as well.
static void send_away(struct proxy *p, struct proxy_client *c)
{
	uint64_t told_ns = begin_telling(c, p->conf.listener_drain_ns / TELLING_SHARE);
	c->leave_by_ns = told_ns + rest_of(p);
}

void proxy_drain_client(struct proxy_client *c)
{
	struct proxy *p = c->conn.proxy;
	if (c->leaves)
		return;
	c->leaves = true;
	c->leave_by_ns = twheel_now(p->wheel) + rest_of(p);
	tell(c);
}

// OPS-73: of a frontend that is left. Who was to leave anyway leaves by then at the latest.
static void send_away_by(struct proxy *p, struct proxy_client *c, uint64_t by_ns)
{
	uint64_t now_ns = twheel_now(p->wheel), left_ns = by_ns > now_ns ? by_ns - now_ns : 0;
	if (!c->leaves) {
		c->drains = true;
		c->leave_by_ns = by_ns;
		(void)begin_telling(c, left_ns / TELLING_SHARE);
	} else if (by_ns < c->leave_by_ns) {
		c->leave_by_ns = by_ns;
		if (c->leave_timer.fire == time_is_up)
			arm_end(c);
		else if (twheel_expires_ns(&c->leave_timer) > by_ns)
			twheel_arm(p->wheel, &c->leave_timer, by_ns);
	}
}

// Who has not been told yet stays. GOAWAY can't be taken back, but the deadline is.
static void take_back(struct proxy *p, struct proxy_client *c)
{
	c->drains = false;
	if (c->leave_timer.fire == tell_to_leave) {
		twheel_cancel(p->wheel, &c->leave_timer);
		c->leaves = false;
		return;
	}
	c->leave_by_ns = TIMELESS;
	if (c->leave_timer.fire == time_is_up)
		twheel_cancel(p->wheel, &c->leave_timer);
}

void proxy_drain_see_frontends(struct proxy *p)
{
	p->drain.look_at = proxy_client_first(p);
}

void proxy_drain_see_generations(struct proxy *p)
{
	struct proxy_drain *d = &p->drain;
	if (d->n_generations == p->snapshot->n_generations)
		return;
	d->n_generations = p->snapshot->n_generations;
	for (uint32_t i = 0; i < p->snapshot->n_frontends; i++) {
		uint64_t now = lb_snapshot_frontend(p->snapshot, i)->generation;
		if (now == d->generations[i])
			continue;
		d->generations[i] = now;
		d->look_at = proxy_client_first(p); // newcomers are put in front of them
	}
}

static void look_at_frontend(struct proxy *p, struct proxy_client *c)
{
	uint64_t gone_by_ns = p->listeners[c->frontend].gone_by_ns;
	if (gone_by_ns)
		send_away_by(p, c, gone_by_ns);
	else if (c->drains)
		take_back(p, c);
}

// Before there was a listener nothing was promised that could have changed.
static void look_at_some(struct proxy *p)
{
	for (uint32_t i = 0; p->drain.look_at && i < PER_TURN; i++) {
		struct proxy_client *c = p->drain.look_at;
		p->drain.look_at = proxy_client_after(c);
		uint64_t now = p->drain.generations[c->chain];
		if (c->generation && c->generation != now && !c->leaves)
			send_away(p, c);
		c->generation = now;
		look_at_frontend(p, c);
	}
}

void proxy_drain_step(struct proxy *p)
{
	if (p->drain.look_at)
		look_at_some(p);
	switch (p->drain.step) {
	case PROXY_DRAIN_NONE:
		return;
	case PROXY_DRAIN_BEGUN:
	case PROXY_DRAIN_ENDING:
		tell_some(p);
		if (twheel_now(p->wheel) >= p->drain.deadline_ns)
			cut_all(p);
		if (!list_empty(&p->client_list) || !list_empty(&p->lingering))
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
