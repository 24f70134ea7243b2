// SPDX-License-Identifier: Apache-2.0
// The clocks of a connection: one entry in the wheel for all its deadlines. Moving a deadline later
// leaves the entry where it is (it fires, finds nothing due, and moves itself), so acknowledgements
// do not touch the wheel.
#include "dataplane/tcp/recovery.h"
#include "lb/base/min.h"
#include "lb/base/time.h"

#define DARK_NS (2 * NS_PER_SECOND)
#define PROBE_SLACK (2 * TWHEEL_NS_PER_TICK)
#define MANY_BYTES 4096 // an acknowledgement is for so many, at least

void tcp_timer_set(struct tcp_conn *c, enum tcp_timer which, uint64_t at_ns)
{
	c->deadlines[which] = at_ns;
	uint64_t armed_ns = twheel_expires_ns(&c->timer);
	if (!twheel_armed(&c->timer) || armed_ns >= at_ns + TWHEEL_NS_PER_TICK)
		twheel_arm(c->stack->wheel, &c->timer, at_ns);
}

void tcp_timer_stop(struct tcp_conn *c, enum tcp_timer which)
{
	c->deadlines[which] = 0;
}

// A pause of our own is no silence of the peer: it has had so much less time.
void tcp_timer_excuse(struct tcp_conn *c, enum tcp_timer which)
{
	uint64_t now = tcp_now(c->stack), at = c->deadlines[which];
	if (!at || now < at + TWHEEL_PAUSE_NS)
		return;
	if (which == TCP_TIMER_RTX)
		c->progress_ns = min_u64(c->progress_ns + (now - at), now);
	else if (which == TCP_TIMER_KEEPALIVE)
		c->heard_ns = min_u64(c->heard_ns + (now - at), now);
}

static uint64_t backed_off(const struct tcp_conn *c)
{
	uint64_t rto = c->n_backoff > 9 ? TCP_RTO_MAX : c->rto_ns << c->n_backoff;
	uint64_t most = TCP_RTO_MAX;
	// Data that waits for a dark path is repeated soon after the path is back.
	if (c->state == TCP_OPEN && c->snd_wnd && c->snd_max != c->snd_una)
		most = c->user_timeout_ns / 16 > DARK_NS ? c->user_timeout_ns / 16 : DARK_NS;
	most = most < 4 * c->rto_ns ? 4 * c->rto_ns : most; // the path may be full, too
	most = most < TCP_RTO_MAX ? most : TCP_RTO_MAX;
	return rto < most ? rto : most;
}

uint64_t tcp_patience(const struct tcp_conn *c)
{
	uint64_t slow = TCP_PATIENCE_RTOS * c->rto_ns;
	slow = slow < TCP_PATIENCE_MAX ? slow : TCP_PATIENCE_MAX;
	return c->user_timeout_ns > slow ? c->user_timeout_ns : slow;
}

// RFC 8985 7.2. Less than two full segments may be acknowledged late (RFC 5681 4.2); where losses
// are to be expected, only as late as round trips have shown.
static uint64_t probe_timeout(const struct tcp_conn *c)
{
	bool few = c->snd_max - c->snd_una < 2u * c->mss;
	uint64_t late = few ? TCP_MAX_ACK_DELAY : PROBE_SLACK;
	if (few && c->haste) {
		late = 4 * c->rttvar_ns;
		late = late < PROBE_SLACK ? PROBE_SLACK : late;
		late = late < TCP_MAX_ACK_DELAY ? late : TCP_MAX_ACK_DELAY;
	}
	return 2 * c->srtt_ns + late;
}

// However far the timer has backed off, a peer that was away is asked once more in the last eighth
// of the user timeout, and again of our patience if that is longer, and has time to answer.
static uint64_t shorten(const struct tcp_conn *c, uint64_t now, uint64_t wait)
{
	uint64_t patience = c->user_timeout_ns;
	if (now >= c->progress_ns + patience)
		patience = tcp_patience(c);
	uint64_t give_up = c->progress_ns + patience, last = patience / 8;
	uint64_t left = give_up > now ? give_up - now : 0;
	if (c->state != TCP_OPEN || wait + last / 4 <= left)
		return wait;
	return left > last ? left / 2 : left;
}

void tcp_rtx_start(struct tcp_conn *c)
{
	uint64_t now = tcp_now(c->stack);
	uint64_t wait = c->n_backoff ? backed_off(c) : c->rto_ns;
	c->tail_probe_next = false;
	if (tcp_may_probe_tail(c)) {
		uint64_t probe = probe_timeout(c);
		c->tail_probe_next = true; // in the timeout's place, too
		wait = probe < wait ? probe : wait;
	}
	if (now + wait + c->user_timeout_ns / 32 > c->progress_ns + c->user_timeout_ns) {
		// Of the deadline that this one takes the place of.
		tcp_timer_excuse(c, TCP_TIMER_RTX);
		wait = shorten(c, now, wait);
	}
	tcp_timer_set(c, TCP_TIMER_RTX, now + wait);
}

void tcp_rtt_sample(struct tcp_conn *c, uint64_t rtt, uint32_t acked)
{
	if (rtt < c->min_rtt_ns)
		c->min_rtt_ns = (uint32_t)rtt;
	if (!c->srtt_ns) { // RFC 6298 2.2
		c->srtt_ns = rtt;
		c->rttvar_ns = rtt / 2;
	} else { // RFC 6298 2.3
		uint32_t flight = c->snd_max - c->snd_una;
		uint64_t off = rtt > c->srtt_ns ? rtt - c->srtt_ns : c->srtt_ns - rtt;
		if (flight < 2 * MANY_BYTES) {
			c->rttvar_ns = (3 * c->rttvar_ns + off) / 4;
			c->srtt_ns = (7 * c->srtt_ns + rtt) / 8;
		} else { // RFC 7323 appendix G: so many such samples make a flight
			unsigned many = flight / max_u32(acked, MANY_BYTES);
			many = 31 - (unsigned)__builtin_clz(many);
			c->rttvar_ns += (off >> (2 + many)) - (c->rttvar_ns >> (2 + many));
			c->srtt_ns += (rtt >> (3 + many)) - (c->srtt_ns >> (3 + many));
		}
	}
	uint64_t spread = 4 * c->rttvar_ns;
	// Round trips that never varied say nothing of an ACK that will be delayed.
	uint64_t rto = c->srtt_ns + (spread > TCP_MAX_ACK_DELAY ? spread : TCP_MAX_ACK_DELAY);
	rto = rto < TCP_RTO_MAX ? rto : TCP_RTO_MAX;
	c->rto_ns = rto < TCP_RTO_MIN ? TCP_RTO_MIN : rto;
}

static uint64_t rtt_of_echo(const struct tcp_conn *c, uint32_t ts_ecr)
{
	uint32_t ms = tcp_ts_now(c) - ts_ecr;
	if (!c->ts_on || !ts_ecr || ms >= TCP_RTO_MAX / NS_PER_MS)
		return 0;
	return ms ? ms * NS_PER_MS : 1;
}

uint64_t tcp_rtt_sample_echo(struct tcp_conn *c, uint32_t ts_ecr, uint32_t acked)
{
	uint64_t rtt = rtt_of_echo(c, ts_ecr);
	if (rtt)
		tcp_rtt_sample(c, rtt, acked);
	return rtt;
}
