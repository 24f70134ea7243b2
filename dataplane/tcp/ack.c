// SPDX-License-Identifier: Apache-2.0
// The peer's acknowledgements and what they tell about losses: window, round trips, fast retransmit
// and NewReno recovery (RFC 5681, RFC 6582, limited transmit of RFC 3042).
#include "dataplane/tcp/tcp_internal.h"

#define DUP_THRESHOLD 3

// Returns the round trip of a measurement that ended, or 0.
static uint64_t measure(struct tcp_conn *c, const struct tcp_seg *seg)
{
	uint64_t rtt = 0;
	if (c->timing && seq_le(c->rtt_seq, seg->ack)) {
		c->timing = false;
		rtt = tcp_now(c->stack) - c->rtt_start_ns;
		tcp_rtt_sample(c, rtt);
	} else if (!c->timing && (c->n_backoff || c->in_recovery)) {
		// Karn's rule leaves no other sample while everything is sent twice.
		(void)!tcp_rtt_sample_echo(c, seg);
	}
	return rtt;
}

void tcp_ack_grow(struct tcp_conn *c, uint32_t acked, uint64_t rtt, uint32_t ts_ecr)
{
	const struct tcp_cc_ack ack = {
		.now_ns = tcp_now(c->stack),
		.rtt_ns = rtt ? rtt : tcp_rtt_of_echo(c, ts_ecr),
		.srtt_ns = c->srtt_ns,
		.mss = c->mss,
		.acked = acked,
		.una = c->snd_una + acked,
		.nxt = c->snd_nxt,
	};
	tcp_cc_ops(c)->on_ack(&c->cc, &ack);
}

// RFC 6582 3.2, step 2; RFC 6675 5, step 4.
static void enter_recovery(struct tcp_conn *c)
{
	tcp_cc_ops(c)->on_loss(&c->cc, c->mss, c->snd_max - c->snd_una);
	if (!c->sack_on) // with SACK, what has arrived is known, not guessed
		c->cc.cwnd += DUP_THRESHOLD * c->mss;
	c->recover = c->snd_max - 1;
	c->high_rxt = c->snd_una;
	c->in_recovery = true;
	c->rtx_due = true;
	tcp_count(c->stack, TCP_fast_recoveries);
}

static void duplicate(struct tcp_conn *c)
{
	if (c->n_dup_acks < UINT8_MAX)
		c->n_dup_acks++;
	if (c->in_recovery && !c->sack_on)
		c->cc.cwnd += c->mss; // a segment has left the network
	bool lost = c->n_dup_acks >= DUP_THRESHOLD || tcp_sack_oldest_lost(c);
	if (!c->in_recovery && lost && seq_lt(c->recover, c->snd_una))
		enter_recovery(c);
	tcp_conn_mark_dirty(c);
}

// RFC 6582 3.2, step 3; RFC 6675 5, steps A and B.
static void recovery_ack(struct tcp_conn *c, uint32_t ack, uint32_t acked)
{
	struct tcp_cc *cc = &c->cc;
	if (seq_lt(c->recover, ack)) {
		uint32_t flight = c->snd_max - ack;
		if (!c->sack_on)
			cc->cwnd = min_u32(cc->ssthresh, max_u32(flight, c->mss) + c->mss);
		c->in_recovery = false;
		tcp_cc_settle(cc);
		c->n_dup_acks = 0;
		return;
	}
	tcp_conn_mark_dirty(c);
	if (c->sack_on) // the scoreboard says what follows
		return;
	cc->cwnd -= min_u32(acked, cc->cwnd - min_u32(cc->cwnd, c->mss));
	if (acked >= c->mss)
		cc->cwnd += c->mss;
	c->rtx_due = true;
}

// RFC 8985 7.4: the ACK of a probe that repeated old data, and no word that the data came twice,
// says that the probe itself repaired a loss.
static void tail_acked(struct tcp_conn *c, const struct tcp_seg *seg)
{
	if (!c->tail_probe_out || seq_lt(seg->ack, c->tail_end))
		return;
	c->tail_probe_out = false;
	bool twice = seg->opts.n_sack && seq_le(seg->opts.sack[0].end, seg->ack);
	if (c->tail_probe_old && !twice && !c->in_recovery)
		tcp_cc_ops(c)->on_loss(&c->cc, c->mss, c->snd_max - c->snd_una);
}

// News of what arrived beyond a hole.
static void sack_news(struct tcp_conn *c)
{
	// The probe was sent long after all else: what is missing before it is lost.
	if (c->tail_probe_out && tcp_sack_has(c, c->tail_end - 1)) {
		c->tail_probe_out = false;
		c->lost_below = c->tail_end;
	}
	// Three segments arrived that were sent after the last repetition, which did not: it was
	// lost, too, and counts as another loss (RFC 5681 4.3).
	uint32_t later = tcp_sack_below(c, c->snd_max) - tcp_sack_below(c, c->rtx_mark);
	if (c->in_recovery && seq_lt(c->snd_una, c->high_rxt) && later >= DUP_THRESHOLD * c->mss) {
		tcp_cc_ops(c)->on_loss(&c->cc, c->mss, c->cc.cwnd);
		c->high_rxt = c->snd_una;
		c->rtx_mark = c->snd_max;
		c->rtx_due = true;
	}
	if (c->tail_probe_next) // the timer is for the hole now
		tcp_rtx_start(c);
	duplicate(c);
	if (!c->in_recovery &&
		c->has_scoreboard) // RFC 8985 6.2: a quarter of a round trip is reordering
		tcp_timer_set(c, TCP_TIMER_REORDER,
			tcp_now(c->stack) + c->srtt_ns / 4 + TWHEEL_NS_PER_TICK);
}

// All was sent in order before the highest reported block, so that time alone tells.
void tcp_ack_late(struct tcp_conn *c)
{
	if (!c->has_scoreboard || c->in_recovery || !seq_lt(c->recover, c->snd_una))
		return;
	c->lost_below = c->scoreboard->blocks[c->scoreboard->n - 1].end;
	enter_recovery(c);
	tcp_conn_mark_dirty(c);
}

// Advances snd_una. False = the connection is gone.
static bool advance(struct tcp_conn *c, const struct tcp_seg *seg)
{
	struct tcp_stack *s = c->stack;
	uint32_t acked = seg->ack - c->snd_una;
	uint32_t n = min_u32(acked, (uint32_t)c->sendq.len);
	bool had_room = c->sendq.len < s->conf.send_limit;
	uint64_t rtt = measure(c, seg);
	tail_acked(c, seg);
	if (c->in_recovery) {
		recovery_ack(c, seg->ack, acked);
	} else {
		c->n_dup_acks = 0;
		if (c->cwnd_limited)
			tcp_ack_grow(c, acked, rtt, seg->opts.ts_ecr);
	}
	if (c->cursor.offset <= n)
		c->cursor = (struct buf_cursor){0};
	else
		c->cursor.offset -= n;
	buf_consume(&c->sendq, s->chunks, n);
	c->snd_una = seg->ack;
	tcp_sack_acked(c);
	if (c->in_recovery && seq_lt(c->high_rxt, c->snd_una))
		c->high_rxt = c->snd_una;
	tcp_ack_trail(c);
	if (seq_lt(c->snd_nxt, seg->ack))
		c->snd_nxt = seg->ack;
	if (acked > n) {
		DCHECK(c->fin_sent);
		c->fin_acked = true;
	}
	c->n_backoff = 0;
	c->progress_ns = tcp_now(s);
	if (c->snd_una == c->snd_max) {
		c->rtx_due = false;
		tcp_timer_stop(c, TCP_TIMER_RTX);
	} else {
		tcp_rtx_start(c);
	}
	if (n && (!had_room || !c->sendq.len) && !c->shut)
		c->ops->on_send_room(c, c->user);
	return !c->dead;
}

void tcp_ack_window(struct tcp_conn *c, uint32_t seq, uint32_t ack, uint32_t wnd)
{
	if (!seq_lt(c->snd_wl1, seq) && !(c->snd_wl1 == seq && seq_le(c->snd_wl2, ack)))
		return;
	if (wnd > c->snd_wnd && c->snd_nxt == c->snd_una) { // the end of probing, if that was on
		c->n_backoff = 0;
		c->probe_due = false;
		if (c->snd_max == c->snd_una)
			tcp_timer_stop(c, TCP_TIMER_RTX);
	}
	c->snd_wnd = wnd;
	c->snd_wl1 = seq;
	c->snd_wl2 = ack;
	c->max_snd_wnd = max_u32(c->max_snd_wnd, wnd);
}

bool tcp_ack_input(struct tcp_conn *c, const struct tcp_seg *seg)
{
	uint32_t wnd = seg->wnd << c->snd_wscale;
	bool probing = c->snd_nxt == c->snd_una;
	bool reported = c->sack_on && seg->opts.n_sack;
	if (seq_lt(c->snd_una, seg->ack)) {
		if (!advance(c, seg))
			return false;
		if (reported && tcp_sack_update(c, &seg->opts))
			sack_news(c);
	} else if (c->sack_on) {
		if (reported && tcp_sack_update(c, &seg->opts)) // RFC 6675 2: what counts is news
			sack_news(c);
	} else if (seg->ack == c->snd_una && !probing && seg->len == 0 && !seg->old &&
		   !(seg->flags & TCP_FIN) && wnd == c->snd_wnd) {
		duplicate(c); // RFC 5681 2
	}
	// A peer that answers probes lives, however long its window stays closed (RFC 9293
	// 3.8.6.1).
	if (probing)
		c->progress_ns = tcp_now(c->stack);
	if (!seg->old)
		tcp_ack_window(c, seg->seq, seg->ack, wnd);
	if (tcp_output_pending(c))
		tcp_conn_mark_dirty(c);
	return true;
}

// From the oldest on, but for what is reported to have arrived.
static void send_all_again(struct tcp_conn *c)
{
	c->in_recovery = c->rtx_due = c->timing = false;
	c->tail_probe_due = c->tail_probe_out = false;
	c->n_dup_acks = 0;
	c->recover = c->snd_max - 1;
	c->snd_nxt = c->snd_una;
	c->cursor = (struct buf_cursor){0};
}

void tcp_ack_timeout(struct tcp_conn *c)
{
	tcp_count(c->stack, TCP_retransmission_timeouts);
	tcp_cc_ops(c)->on_timeout(&c->cc, c->mss, c->snd_max - c->snd_una, c->n_backoff == 0);
	send_all_again(c);
	tcp_sack_clear(c); // RFC 2018 8: the peer may have forgotten; it will say again
}

// RFC 1191 6.5: this is no congestion, so cwnd stays.
void tcp_ack_too_big(struct tcp_conn *c)
{
	send_all_again(c);
	tcp_rtx_start(c);
	tcp_conn_mark_dirty(c);
}
