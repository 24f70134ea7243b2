// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/leave.h"

#include "dataplane/h2/carrier.h"
#include "dataplane/proxy/age.h"
#include "dataplane/proxy/client.h"
#include "dataplane/proxy/state.h"
#include "dataplane/proxy/telling.h"
#include "lb/base/container_of.h"
#include "lb/base/min.h"

void proxy_leave_say_first(struct proxy_client *c)
{
	h2_conn_drain_begin(c->conn.h2);
	proxy_conn_touch(&c->conn);
}

static struct proxy_client *of_timer(struct twheel_timer *t)
{
	return CONTAINER_OF(t, struct proxy_client, leave.timer);
}

// 0 = its streams may take their time.
static uint64_t deadline(const struct proxy_leave *l)
{
	if (!l->own_by_ns || !l->frontend_by_ns)
		return l->own_by_ns ? l->own_by_ns : l->frontend_by_ns;
	return min_u64(l->own_by_ns, l->frontend_by_ns);
}

void proxy_leave_cut(struct proxy_client *c)
{
	c->cut = true;
	c->conn.ops->on_expired(&c->conn); // client.c, which calls this file
}

static void time_is_up(struct twheel_timer *t)
{
	proxy_leave_cut(of_timer(t));
}

// By the deadline as it is now, whatever comes next.
static void hurry(struct proxy_client *c)
{
	struct twheel *wheel = c->conn.proxy->wheel;
	struct twheel_timer *t = &c->leave.timer;
	uint64_t by_ns = deadline(&c->leave);
	bool is_last = t->fire == time_is_up;
	if (is_last)
		twheel_cancel(wheel, t);
	if (by_ns && (is_last || twheel_expires_ns(t) > by_ns))
		twheel_arm(wheel, t, by_ns);
}

static void grace_over(struct twheel_timer *t)
{
	struct proxy_client *c = of_timer(t);
	proxy_leave_say_last(c);
	if (!c->drained)
		return;
	t->fire = time_is_up;
	hurry(c);
}

static void give_grace(struct proxy_client *c)
{
	struct twheel *wheel = c->conn.proxy->wheel;
	c->leave.silent = h2_carrier_may_begin(c->conn.h2);
	c->leave.timer.fire = grace_over;
	twheel_arm(wheel, &c->leave.timer, twheel_now(wheel) + PROXY_LEAVE_GRACE_NS);
	hurry(c);
}

// It had not said which protocol it speaks, so there was nothing to tell it in: once it begins, it
// has the grace of others.
static bool may_yet_begin(const struct proxy_client *c)
{
	uint64_t by_ns = deadline(&c->leave);
	return (c->leave.silent || h2_carrier_may_begin(c->conn.h2)) &&
	       (!by_ns || twheel_now(c->conn.proxy->wheel) < by_ns);
}

void proxy_leave_say_last(struct proxy_client *c)
{
	if (may_yet_begin(c)) {
		c->leave.told = true; // nothing takes it back
		give_grace(c);
		return;
	}
	h2_conn_drain_end(c->conn.h2, H2_NO_ERROR);
	c->drained = true;
	proxy_conn_touch(&c->conn);
}

// GOAWAY in two steps, beginning now.
static void tell(struct proxy_client *c)
{
	if (!c->drained) // by the end of everything
		proxy_leave_say_first(c);
	c->leave.told = true;
	give_grace(c);
}

static void tell_to_leave(struct twheel_timer *t)
{
	struct proxy_client *c = of_timer(t);
	proxy_count(c->conn.proxy, PROXY_clients_drained);
	tell(c);
}

// Its streams may take their time where there is no grace.
static void grown_old(struct twheel_timer *t)
{
	struct proxy_client *c = of_timer(t);
	const struct proxy *p = c->conn.proxy;
	proxy_count(c->conn.proxy, PROXY_clients_aged);
	if (p->conf.terms.max_age_grace_ns)
		c->leave.own_by_ns = twheel_now(p->wheel) + p->conf.terms.max_age_grace_ns;
	tell(c);
}

static void wait_for_age(struct proxy_client *c)
{
	c->leave.timer.fire = grown_old;
	twheel_arm(c->conn.proxy->wheel, &c->leave.timer, c->leave.old_at_ns);
}

void proxy_leave_at_age(struct proxy_client *c)
{
	struct proxy *p = c->conn.proxy;
	if (!p->conf.terms.max_age_ns)
		return;
	c->leave.old_at_ns =
		twheel_now(p->wheel) + proxy_age_ns(p->conf.terms.max_age_ns, &p->rand);
	wait_for_age(c);
}

// Somewhen in this time. Returns when.
static uint64_t tell_within(struct proxy_client *c, uint64_t telling_ns)
{
	struct proxy *p = c->conn.proxy;
	struct twheel_timer *t = &c->leave.timer;
	uint64_t at_ns = proxy_telling_at(twheel_now(p->wheel), telling_ns, &p->rand);
	if (t->fire == tell_to_leave && twheel_armed(t) && twheel_expires_ns(t) <= at_ns)
		return twheel_expires_ns(t); // another reason tells it sooner
	t->fire = tell_to_leave;
	twheel_arm(p->wheel, t, at_ns);
	return at_ns;
}

// What is left of a listener's time behind that of telling.
static uint64_t rest_of(const struct proxy *p)
{
	return p->conf.terms.listener_drain_ns / PROXY_TELLING_SHARE * (PROXY_TELLING_SHARE - 1);
}

// One more reason of its own. False = there was an earlier deadline.
static bool bring_forward(struct proxy_leave *l, uint64_t by_ns)
{
	if (l->own_by_ns && l->own_by_ns <= by_ns)
		return false;
	l->own_by_ns = by_ns;
	return true;
}

bool proxy_leave_now(struct proxy_client *c)
{
	struct proxy *p = c->conn.proxy;
	bool has_reason = c->leave.own_by_ns;
	if (!bring_forward(&c->leave, twheel_now(p->wheel) + rest_of(p)))
		return false;
	if (c->leave.told)
		hurry(c);
	else
		tell(c);
	return !has_reason;
}

// Those who are told late have as long as the others, and are cut apart as well.
void proxy_leave_listener(struct proxy_client *c)
{
	struct proxy *p = c->conn.proxy;
	struct proxy_leave *l = &c->leave;
	if (proxy_leave_begun(l)) {
		if (bring_forward(l, twheel_now(p->wheel) + rest_of(p)))
			hurry(c);
	} else {
		l->own_by_ns =
			tell_within(c, p->conf.terms.listener_drain_ns / PROXY_TELLING_SHARE) +
			rest_of(p);
	}
}

// It may have become idle in between, which nobody was told of.
static void stay(struct proxy_client *c)
{
	if (c->leave.old_at_ns)
		wait_for_age(c);
	else
		twheel_cancel(c->conn.proxy->wheel, &c->leave.timer);
	proxy_conn_touch(&c->conn);
}

void proxy_leave_frontend(struct proxy_client *c, uint64_t by_ns)
{
	struct proxy_leave *l = &c->leave;
	bool had_begun = proxy_leave_begun(l);
	if (by_ns == l->frontend_by_ns)
		return;
	l->frontend_by_ns = by_ns;
	if (!had_begun)
		tell_within(c, proxy_telling_ns(twheel_now(c->conn.proxy->wheel), by_ns));
	else if (proxy_leave_begun(l))
		hurry(c);
	else
		stay(c);
}

// A newcomer of the last moments is told at once.
void proxy_leave_farewell(struct proxy_client *c, uint64_t before_ns)
{
	if (!c->leave.told)
		tell_within(c, proxy_telling_ns(twheel_now(c->conn.proxy->wheel), before_ns));
}

void proxy_leave_forget(struct proxy_client *c)
{
	twheel_cancel(c->conn.proxy->wheel, &c->leave.timer);
}
