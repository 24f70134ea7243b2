// SPDX-License-Identifier: Apache-2.0
#include "dataplane/tcp/pace.h"

// Tenths of a window that leave in a round trip: two windows in slow start, 1.2 later.
static uint64_t tenths(const struct tcp_conn *c)
{
	return c->cc.cwnd < c->cc.ssthresh ? 20 : 12;
}

// The time that so many bytes take.
static uint64_t price_ns(const struct tcp_conn *c, uint32_t len)
{
	return len * c->srtt_ns * 10 / (tenths(c) * c->cc.cwnd);
}

uint64_t tcp_pace_rate(const struct tcp_conn *c)
{
	return (uint64_t)((double)(tenths(c) * c->cc.cwnd) / 10 * NS_PER_SECOND /
			  (double)c->srtt_ns);
}

bool tcp_pace_holds(struct tcp_conn *c, uint32_t len)
{
	if (c->stack->conf.unpaced)
		return false;
	uint64_t two = price_ns(c, max_u32(2 * c->mss, len)); // or a probe (mss.h)
	uint64_t burst = two > TWHEEL_NS_PER_TICK ? two : TWHEEL_NS_PER_TICK;
	if (c->pace_ns + price_ns(c, len) <= tcp_now(c->stack) + burst)
		return false;
	tcp_timer_set(c, TCP_TIMER_PACE, c->pace_ns);
	return true;
}

void tcp_pace_sent(struct tcp_conn *c, uint32_t len)
{
	// The wheel is late by up to a tick, for which the next burst makes up.
	uint64_t now = tcp_now(c->stack), tick = TWHEEL_NS_PER_TICK;
	c->pace_ns = (c->pace_ns + tick > now ? c->pace_ns : now - tick) + price_ns(c, len);
}
