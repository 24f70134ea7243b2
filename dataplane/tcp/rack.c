// SPDX-License-Identifier: Apache-2.0
// RACK (RFC 8985 6): what was sent before something that has arrived is lost once it is late by a
// window that reordering widens. It works on the runs of the log, which are what segments are to
// the RFC.
#include "dataplane/tcp/sent.h"

#define PERSIST 16 // recoveries without DSACK, until the window is as at first
#define MIN_RTT_NS (300 * NS_PER_SECOND) // how long a smallest round trip holds

// RFC 8985 6.2, RACK_sent_after().
static bool sent_after(uint64_t a_ns, uint32_t a_end, uint64_t b_ns, uint32_t b_end)
{
	return a_ns > b_ns || (a_ns == b_ns && seq_lt(b_end, a_end));
}

// Steps 2 and 3.
void tcp_rack_delivered(
	struct tcp_conn *c, const struct tcp_run *r, uint32_t end, struct tcp_news *news)
{
	uint64_t rtt = tcp_now(c->stack) - r->sent_ns;
	bool again = r->fate & TCP_RUN_AGAIN;
	news->delivered += end - r->seq;
	news->original |= !again && seq_le(end, c->recover + 1);
	if (!again && seq_lt(end, news->fack))
		c->reordering_seen = true;
	// Of what was sent twice, the first one may have arrived.
	if (again && (rtt < c->min_rtt_ns || (news->cumulative && news->has_echo &&
						     tcp_undo_is_older(c, news, r->sent_ns))))
		return;
	if (sent_after(r->sent_ns, end, c->rack_ns, c->rack_end)) {
		c->rack_ns = r->sent_ns;
		c->rack_end = end;
		c->rack_rtt_ns = rtt;
	}
}

// Step 4: once in a round trip.
void tcp_rack_dsack(struct tcp_conn *c)
{
	bool same =
		seq_lt(c->snd_una, c->dsack_round_end) && seq_le(c->dsack_round_end, c->snd_max);
	if (c->dsack_round && same) // else 2 GiB later it would compare as ahead
		return;
	c->dsack_round = true;
	c->dsack_round_end = c->snd_max;
	if (c->reo_wnd_more < UINT8_MAX)
		c->reo_wnd_more++;
	tcp_count(c->stack, TCP_reordering_widened);
	c->reo_wnd_persist = PERSIST;
}

void tcp_rack_recovered(struct tcp_conn *c)
{
	if (c->reo_wnd_persist && --c->reo_wnd_persist == 0)
		c->reo_wnd_more = 0;
}

static bool are_many_reported(struct tcp_conn *c)
{
	unsigned n = 0;
	for (struct tcp_run *r = tcp_run_first(c); r && n < TCP_DUP_THRESHOLD;
		r = tcp_run_next(c, r))
		n += r->fate & TCP_RUN_SACKED ? r->n_segments : 0;
	return n >= TCP_DUP_THRESHOLD;
}

// Step 4. A tick at least, since the timer knows no less.
static uint64_t reo_wnd(struct tcp_conn *c)
{
	if (!c->reordering_seen && (c->in_recovery || c->in_loss || are_many_reported(c)))
		return 0;
	uint64_t wnd = (uint64_t)(c->reo_wnd_more + 1) * c->min_rtt_ns / 4;
	wnd = wnd < c->srtt_ns ? wnd : c->srtt_ns;
	return wnd > TWHEEL_NS_PER_TICK ? wnd : TWHEEL_NS_PER_TICK;
}

static void age_min_rtt(struct tcp_conn *c, uint64_t now)
{
	if (now - c->min_rtt_since_ns < MIN_RTT_NS)
		return;
	c->min_rtt_since_ns = now;
	c->min_rtt_ns = c->srtt_ns < UINT32_MAX ? (uint32_t)c->srtt_ns : UINT32_MAX;
}

// Step 5.
enum tcp_rack_found tcp_rack_detect(struct tcp_conn *c)
{
	enum tcp_rack_found found = TCP_RACK_NOTHING;
	uint64_t now = tcp_now(c->stack), latest = 0;
	age_min_rtt(c, now);
	uint64_t wait = c->rack_rtt_ns + reo_wnd(c);
	for (struct tcp_run *r = tcp_run_first(c); r; r = tcp_run_next(c, r)) {
		uint32_t end = tcp_run_end(c, r);
		if (r->fate & (TCP_RUN_SACKED | TCP_RUN_LOST) || r->seq == end ||
			!sent_after(c->rack_ns, c->rack_end, r->sent_ns, end))
			continue;
		if (r->sent_ns + wait > now) {
			latest = latest > r->sent_ns + wait ? latest : r->sent_ns + wait;
			continue;
		}
		bool anew = r->fate & TCP_RUN_AGAIN && r->sent_ns >= c->reduced_ns;
		found = anew ? TCP_RACK_LOST_AGAIN : found ? found : TCP_RACK_LOST;
		tcp_sent_mark(c, r, r->fate | TCP_RUN_LOST);
	}
	if (latest)
		tcp_timer_set(c, TCP_TIMER_REORDER, latest);
	else
		tcp_timer_stop(c, TCP_TIMER_REORDER);
	return found;
}
