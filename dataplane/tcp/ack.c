// SPDX-License-Identifier: Apache-2.0
// The peer's acknowledgements and what they tell about losses: window, round trips, fast retransmit
// and NewReno recovery (RFC 5681, RFC 6582, limited transmit of RFC 3042).
#include "dataplane/tcp/cwnd.h"
#include "dataplane/tcp/sent.h"

#define HASTE_STEP 2
#define HASTE_MAX 16

// cwnd was reduced: ECN does not within a round trip, and the peer hears of it whatever the cause
// (RFC 3168 6.1.2). A mark that came earlier in the repair stays heard.
static void reduced(struct tcp_conn *c)
{
	c->reduced_ns = tcp_now(c->stack);
	c->reduced_by_mark = false;
	c->marked_since &= c->in_recovery || c->in_loss;
	c->cwr_due = c->ecn_on;
}

// RFC 6582 3.2, step 2; RFC 6675 5, step 4. A loss of the round trip in which a mark has reduced
// cwnd is the same event.
static void enter_recovery(struct tcp_conn *c, const struct tcp_news *news)
{
	bool reduced_it = c->reduced_by_mark && tcp_now(c->stack) - c->reduced_ns < c->srtt_ns;
	tcp_undo_begin(c);
	if (!reduced_it)
		tcp_cc_ops(c)->on_loss(&c->cc, c->mss, tcp_cwnd_in_use(c, news->flight));
	if (!c->sack_on) { // with SACK, what has arrived is known, not guessed
		c->cc.cwnd += TCP_DUP_THRESHOLD * c->mss;
		c->rtx_due = true;
	}
	tcp_prr_begin(c, news->flight - news->reported);
	reduced(c);
	c->recover = c->snd_max - 1;
	c->in_recovery = true;
	tcp_count(c->stack, TCP_fast_recoveries);
}

// Without SACK.
static void duplicate(struct tcp_conn *c, const struct tcp_news *news)
{
	if (c->n_dup_acks < UINT8_MAX)
		c->n_dup_acks++;
	if (c->in_recovery)
		c->cc.cwnd += c->mss; // a segment has left the network
	else if (c->n_dup_acks >= TCP_DUP_THRESHOLD && !c->in_loss &&
		 seq_lt(c->recover, c->snd_una))
		enter_recovery(c, news);
	tcp_conn_mark_dirty(c);
}

// RFC 6582 3.2, step 3: without SACK.
static void partial_ack(struct tcp_conn *c, uint32_t acked)
{
	struct tcp_cc *cc = &c->cc;
	cc->cwnd -= min_u32(acked, cc->cwnd - min_u32(cc->cwnd, c->mss));
	if (acked >= c->mss)
		cc->cwnd += c->mss;
	c->rtx_due = true;
	tcp_conn_mark_dirty(c);
}

// All that was outstanding at its begin is acknowledged (RFC 6582 3.2, step 3; RFC 9937 6).
static void end_recovery(struct tcp_conn *c)
{
	if (c->in_recovery)
		c->cc.cwnd = c->sack_on
		                     ? c->cc.ssthresh
		                     : min_u32(c->cc.ssthresh,
					       max_u32(c->snd_max - c->snd_una, c->mss) + c->mss);
	c->in_recovery = c->in_loss = false;
	c->frto = TCP_FRTO_OFF;
	c->n_dup_acks = 0;
	tcp_undo_end(c);
	tcp_rack_recovered(c);
}

// RFC 8985 7.4: the ACK of a probe that repeated old data, and no word that the data came twice,
// says that the probe itself repaired a loss; unless it comes too soon to be of the probe, as in
// 6.2, step 2. The next ones may come sooner, until HASTE_STEP of them for each such loss were
// needless, since an ACK was late or lost.
static void tail_acked(struct tcp_conn *c, const struct tcp_seg *seg, const struct tcp_news *news)
{
	if (!c->tail_probe_out || seq_lt(seg->ack, c->tail_end))
		return;
	c->tail_probe_out = false;
	bool twice = seg->opts.n_sack && seq_le(seg->opts.sack[0].end, seg->ack);
	bool crossed = tcp_now(c->stack) - c->tail_ns < c->min_rtt_ns;
	if (!c->tail_probe_old || c->in_recovery)
		return;
	if (twice || crossed || tcp_undo_is_older(c, news, c->tail_ns)) {
		c->haste -= c->haste != 0;
		return;
	}
	c->haste = (uint8_t)min_u32(c->haste + HASTE_STEP, HASTE_MAX);
	tcp_cc_settle(&c->cc);
	tcp_cc_ops(c)->on_loss(&c->cc, c->mss, tcp_cwnd_in_use(c, news->flight));
	reduced(c);
}

// RFC 8985 6.2, steps 4 and 5, and what follows for cwnd. by_timer: no ACK came.
static void repair(struct tcp_conn *c, const struct tcp_news *news, bool by_timer)
{
	bool begun = false;
	enum tcp_rack_found found = tcp_rack_detect(c);
	if (c->lost_bytes && !c->in_recovery && !c->in_loss && c->snd_nxt == c->snd_max) {
		enter_recovery(c, news);
		begun = true;
	} else if (found == TCP_RACK_LOST_AGAIN && c->in_recovery) { // RFC 5681 4.3: another loss
		tcp_cc_ops(c)->on_loss(&c->cc, c->mss, c->cc.cwnd);
		tcp_prr_begin(c, tcp_sent_pipe(c));
		reduced(c);
	}
	if (c->in_recovery && (news->delivered || begun))
		tcp_prr_input(c, news->delivered, news->una != c->snd_una && !found);
	else if (c->in_recovery && by_timer && found)
		c->cc.cwnd = max_u32(c->cc.cwnd, tcp_sent_pipe(c) + c->mss);
	if (c->in_recovery || c->lost_bytes)
		tcp_conn_mark_dirty(c);
}

// False = an ACK without reports says nothing about losses.
static bool repairs(const struct tcp_conn *c)
{
	return c->has_reports || c->in_recovery || c->in_loss || c->lost_bytes || c->may_undo ||
	       c->deadlines[TCP_TIMER_REORDER];
}

// What an ACK says about losses, with SACK.
static void recover_by_reports(struct tcp_conn *c, const struct tcp_seg *seg, struct tcp_news *news)
{
	// Even if answered. Some count the FIN behind the data, and some do not.
	bool is_probe =
		c->tail_probe_old && (news->dsack.end == c->tail_end ||
					     (c->fin_sent && news->dsack.end + 1 == c->tail_end));
	if (news->twice && !is_probe && tcp_undo_was_resent(c, &news->dsack))
		tcp_rack_dsack(c);
	if (c->tail_probe_out && c->has_reports) {
		uint32_t gap;
		c->tail_probe_out = tcp_sent_gap(c, c->tail_end - 1, &gap) == c->tail_end - 1;
	}
	// The timer is for the hole now. In a recovery it was so before: set anew by each segment
	// of a peer that goes on sending, it would never fire.
	if (c->tail_probe_next && c->has_reports && !c->in_recovery)
		tcp_rtx_start(c);
	(void)!tcp_undo_input(c, news);
	if ((c->in_recovery || c->in_loss) && seq_lt(c->recover, c->snd_una))
		end_recovery(c);
	if (c->has_reports || c->in_recovery || c->in_loss || c->lost_bytes)
		repair(c, news, false);
	else if (c->deadlines[TCP_TIMER_REORDER])
		tcp_timer_stop(c, TCP_TIMER_REORDER);
}

void tcp_ack_late(struct tcp_conn *c)
{
	const struct tcp_news news = {
		.una = c->snd_una,
		.flight = c->snd_max - c->snd_una,
		.reported = c->sacked_bytes,
		.fack = c->snd_una,
	};
	if (c->sack_on && c->state == TCP_OPEN)
		repair(c, &news, true);
}

// Advances snd_una. False = the connection is gone.
static bool advance(struct tcp_conn *c, const struct tcp_seg *seg, struct tcp_news *news)
{
	struct tcp_stack *s = c->stack;
	uint32_t acked = seg->ack - c->snd_una;
	uint32_t n = min_u32(acked, (uint32_t)c->sendq.len);
	bool had_room = c->sendq.len < s->conf.send_limit;
	bool watched = c->has_reports || c->in_recovery || c->in_loss || c->tail_probe_out;
	uint64_t rtt = tcp_sent_measure(c, seg->opts.ts_ecr, acked);
	tail_acked(c, seg, news);
	c->tail_probe_due = false;
	if (!c->in_recovery) {
		c->n_dup_acks = 0;
		if (c->cwnd_limited || c->cwnd_used)
			tcp_cwnd_grow(c, acked, rtt);
	} else if (!c->sack_on && seq_le(seg->ack, c->recover)) {
		partial_ack(c, acked);
	}
	if (c->cursor.offset <= n)
		c->cursor = (struct buf_cursor){0};
	else
		c->cursor.offset -= n;
	buf_consume(&c->sendq, s->chunks, n);
	news->cumulative = true;
	if (watched || c->last.next || c->last.fate)
		tcp_sent_acked(c, seg->ack, watched ? news : NULL);
	else // one run, the same in short
		c->last.seq = seg->ack;
	news->cumulative = false;
	c->snd_una = seg->ack;
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

// What it says about losses, without SACK.
static void recover_by_number(struct tcp_conn *c, const struct tcp_seg *seg,
	const struct tcp_news *news, bool is_duplicate)
{
	if (is_duplicate)
		duplicate(c, news);
	(void)!tcp_undo_input(c, news);
	if ((c->in_recovery || c->in_loss) && seq_lt(c->recover, c->snd_una))
		end_recovery(c);
}

bool tcp_ack_input(struct tcp_conn *c, const struct tcp_seg *seg)
{
	uint32_t wnd = seg->wnd << c->snd_wscale;
	bool probing = c->snd_nxt == c->snd_una;
	bool is_duplicate = seg->ack == c->snd_una && !probing && seg->len == 0 && !seg->old &&
	                    !(seg->flags & TCP_FIN) && wnd == c->snd_wnd; // RFC 5681 2
	struct tcp_news news = {
		.ack = seg->ack,
		.una = c->snd_una,
		.flight = c->snd_max - c->snd_una,
		.reported = c->sacked_bytes,
		.fack = c->has_reports ? tcp_sack_fack(c) : c->snd_una,
		.ts_ecr = seg->opts.ts_ecr,
		.has_echo = c->ts_on && seg->opts.ts_ecr,
	};
	if (seq_lt(c->snd_una, seg->ack) && !advance(c, seg, &news))
		return false;
	if (c->sack_on) {
		if (seg->opts.n_sack)
			tcp_sack_update(c, &seg->opts, &news);
		if (seg->opts.n_sack || repairs(c))
			recover_by_reports(c, seg, &news);
	} else {
		recover_by_number(c, seg, &news, is_duplicate);
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
	c->in_recovery = c->rtx_due = false;
	c->tail_probe_due = c->tail_probe_out = false;
	c->n_dup_acks = 0;
	c->recover = c->snd_max - 1;
	tcp_sent_lose_all(c);
}

static void go_back(struct tcp_conn *c)
{
	c->snd_nxt = c->snd_una;
	c->cursor = (struct buf_cursor){0};
}

void tcp_ack_timeout(struct tcp_conn *c)
{
	bool first = c->n_backoff == 0, anew = !c->in_recovery && !c->in_loss;
	tcp_count(c->stack, TCP_retransmission_timeouts);
	if (anew)
		tcp_undo_begin(c);
	tcp_cc_ops(c)->on_timeout(&c->cc, c->mss, c->snd_max - c->snd_una, first);
	reduced(c);
	// RFC 2018 8: who reports what he would have acknowledged has dropped it.
	if (tcp_run_first(c)->fate & TCP_RUN_SACKED)
		tcp_sack_forget(c);
	send_all_again(c);
	c->in_loss = c->timed_out = true;
	c->frto = first && anew && c->sack_on ? TCP_FRTO_REPEATED : TCP_FRTO_OFF;
	tcp_timer_stop(c, TCP_TIMER_REORDER);
	if (!c->sack_on || c->snd_wnd < c->mss)
		go_back(c);
}

// RFC 1191 6.5: this is no congestion, so cwnd stays. That of a recovery under way follows what
// arrives, and would stay wherever it is.
void tcp_ack_too_big(struct tcp_conn *c)
{
	if (c->in_recovery)
		c->cc.cwnd = c->cc.ssthresh;
	send_all_again(c);
	c->frto = TCP_FRTO_OFF;
	c->may_undo = false;
	go_back(c);
	tcp_rtx_start(c);
	tcp_conn_mark_dirty(c);
}
