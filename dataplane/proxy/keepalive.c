// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/keepalive.h"

#include "dataplane/proxy/conn.h"
#include "dataplane/proxy/state.h"
#include "lb/base/container_of.h"
#include "lb/base/min.h"

#define JITTER 7 // up to a seventh of the interval is added, as Envoy adds 15 %

static void arm(struct proxy_conn *c, uint64_t delay_ns)
{
	struct twheel *w = c->proxy->wheel;
	twheel_arm(w, &c->keepalive.timer, twheel_now(w) + delay_ns);
}

static void rest(struct proxy_conn *c)
{
	uint64_t wait = c->keepalive.interval_ns;
	if (c->keepalive.asked_ns) { // of which the time for an answer was a part
		uint64_t past = twheel_now(c->proxy->wheel) - c->keepalive.asked_ns;
		wait = wait > past ? wait - past : 0;
	}
	c->keepalive.asked_ns = 0;
	arm(c, wait + rand_below(&c->proxy->rand, c->keepalive.interval_ns / JITTER + 1));
}

static void ask(struct proxy_conn *c)
{
	c->keepalive.received = tcp_conn_n_received(c->tcp);
	c->keepalive.asked_ns = twheel_now(c->proxy->wheel);
	h2_conn_ping(c->h2);
	proxy_conn_touch(c);
	arm(c, min_u64(c->keepalive.timeout_ns, c->keepalive.interval_ns));
}

static void fire(struct twheel_timer *t)
{
	struct proxy_conn *c = CONTAINER_OF(t, struct proxy_conn, keepalive.timer);
	uint32_t received = tcp_conn_n_received(c->tcp);
	uint64_t timeout = c->keepalive.timeout_ns;
	uint64_t until = c->keepalive.asked_ns + timeout, now = twheel_now(c->proxy->wheel);
	if (!c->keepalive.asked_ns) {
		ask(c);
	} else if (!h2_conn_ping_out(c->h2)) {
		rest(c);
	} else if (received != c->keepalive.received) { // the answer stands in a line
		c->keepalive.received = received;
		arm(c, timeout);
	} else if (now < until) { // the interval is shorter
		arm(c, until - now);
	} else if (now - twheel_expires_ns(t) >= TWHEEL_PAUSE_NS) {
		c->keepalive.asked_ns = now;
		arm(c, timeout);
	} else {
		proxy_count(c->proxy, PROXY_pings_unanswered);
		c->ops->on_expired(c);
	}
}

void proxy_keepalive_start(struct proxy_conn *c, const struct lb_silence *silence)
{
	c->keepalive = (struct proxy_keepalive){.timer.fire = fire,
		.interval_ns = silence->ping_interval_ns,
		.timeout_ns = silence->ping_timeout_ns};
	if (silence->ping_interval_ns)
		rest(c);
}

void proxy_keepalive_stop(struct proxy_conn *c)
{
	twheel_cancel(c->proxy->wheel, &c->keepalive.timer);
}
