// SPDX-License-Identifier: Apache-2.0
#include "dataplane/tcp/cwnd.h"

#include "dataplane/tcp/sent.h"

#define UNUSED_MS (300 * 1000) // RFC 7661 4.4.3's non-validated period

void tcp_cwnd_limits(struct tcp_conn *c)
{
	c->cwnd_limited = true;
	c->limited_seq = c->snd_nxt;
	c->used_ms = tcp_ts_now(c);
}

// RFC 7661 4.3: a cwnd more than half of which is in flight is known to fit the path. Slow start
// goes on with it, so that what an owner writes a piece at a time finds room for a longer one.
void tcp_cwnd_use(struct tcp_conn *c)
{
	uint32_t flight = tcp_sent_pipe(c), cwnd = c->cc.cwnd;
	if (flight <= cwnd / 2 || cwnd >= c->cc.ssthresh)
		return;
	c->used_ms = tcp_ts_now(c);
	if (c->cwnd_limited)
		return;
	uint32_t segments = min_u32((flight + c->mss - 1) / c->mss, UINT16_MAX);
	if (c->cwnd_used && segments <= c->used_flight)
		return;
	c->cwnd_used = true;
	c->used_flight = (uint16_t)segments;
	c->limited_seq = c->snd_nxt;
}

// RFC 7661 4.4.3, just before it matters: a burst would use what nobody knows any more to fit the
// path.
void tcp_cwnd_validate(struct tcp_conn *c)
{
	uint32_t queued = min_u32((uint32_t)c->sendq.len, c->snd_wnd);
	if (queued <= c->cc.cwnd / 2 || c->sendq.len - tcp_sent(c) <= c->mss)
		return;
	uint32_t periods = (tcp_ts_now(c) - c->used_ms) / UNUSED_MS;
	if (periods)
		tcp_cc_ops(c)->on_idle(&c->cc, c->mss, periods);
	c->used_ms = tcp_ts_now(c);
}

// TCP-221: what waits for its time fills cwnd as what is in flight does, or a loss would take more
// the sooner it comes.
uint32_t tcp_cwnd_in_use(const struct tcp_conn *c, uint32_t flight)
{
	bool waits = c->cwnd_limited && c->deadlines[TCP_TIMER_PACE];
	return waits ? max_u32(flight, c->cc.cwnd) : flight;
}

// Of the acknowledged bytes, those that let cwnd grow. Where it was not the limit but in use, they
// do so in slow start alone, until it is twice what was in flight.
static uint32_t growth(const struct tcp_conn *c, uint32_t acked)
{
	const struct tcp_cc *cc = &c->cc;
	if (c->cwnd_limited)
		return acked;
	if (cc->cwnd >= 2u * c->used_flight * c->mss || cc->cwnd >= cc->ssthresh)
		return 0;
	return min_u32(acked, cc->ssthresh - cc->cwnd);
}

void tcp_cwnd_grow(struct tcp_conn *c, uint32_t acked, uint64_t rtt)
{
	const struct tcp_cc_ack ack = {
		.now_ns = tcp_now(c->stack),
		.rtt_ns = rtt,
		.srtt_ns = c->srtt_ns,
		.mss = c->mss,
		.acked = growth(c, acked),
		.una = c->snd_una + acked,
		.nxt = c->snd_nxt,
	};
	if (ack.acked)
		tcp_cc_ops(c)->on_ack(&c->cc, &ack);
	if (seq_le(c->limited_seq, ack.una))
		c->cwnd_limited = c->cwnd_used = false;
}
