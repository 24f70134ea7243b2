// SPDX-License-Identifier: Apache-2.0
// Recoveries and timeouts that were needless, since the segments were late and not lost: found by
// timestamps (Eifel, RFC 3522), by what the peer got twice (RFC 3708), and after a timeout by what
// arrives that was sent once (F-RTO, RFC 5682 3). What they took from cwnd comes back (RFC 4015 3).
#include "dataplane/tcp/sent.h"

void tcp_undo_begin(struct tcp_conn *c)
{
	tcp_cc_settle(&c->cc);
	c->may_undo = true;
	c->timed_out = false;
	c->undo_bytes = 0;
	c->resent_ns = 0;
}

void tcp_undo_resent(struct tcp_conn *c, uint32_t seq, uint32_t end)
{
	if (!c->resent_ns) {
		c->resent_ns = tcp_now(c->stack);
		c->resent_seq = seq;
		c->resent_end = end;
	}
	c->resent_seq = seq_lt(seq, c->resent_seq) ? seq : c->resent_seq;
	c->resent_end = seq_lt(c->resent_end, end) ? end : c->resent_end;
	c->undo_bytes += end - seq;
}

// What was repeated has been acknowledged, or will be within a round trip.
void tcp_undo_end(struct tcp_conn *c)
{
	c->undo_until = c->snd_max;
}

bool tcp_undo_was_resent(const struct tcp_conn *c, const struct tcp_sack_block *b)
{
	return c->resent_ns && seq_le(c->resent_seq, b->start) && seq_le(b->end, c->resent_end);
}

// Our clock of timestamps shows whole milliseconds, so of two segments in one the order is unknown.
bool tcp_undo_is_older(const struct tcp_conn *c, const struct tcp_news *news, uint64_t sent_ns)
{
	uint32_t ago = (uint32_t)(twheel_now_tick(c->stack->wheel) - sent_ns / NS_PER_MS);
	return news->has_echo && seq_lt(news->ts_ecr, tcp_ts_now(c) - ago);
}

// RFC 4015 3.2: not if a mark came meanwhile. Without one, the next mark is to be heard, and a CWR
// that is still due would end its echo.
static void restore(struct tcp_conn *c)
{
	if (c->in_recovery)
		c->cc.cwnd = c->cc.ssthresh; // not what was let out at the moment
	if (!c->cc.prior_cwnd || c->marked_since) {
		tcp_cc_settle(&c->cc);
		return;
	}
	tcp_cc_ops(c)->undo(&c->cc);
	c->reduced_ns = 0;
	c->cwr_due = false;
}

static void undo(struct tcp_conn *c)
{
	tcp_count(c->stack, c->timed_out ? TCP_timeouts_undone : TCP_recoveries_undone);
	c->reordering_seen |= !c->timed_out;
	restore(c);
	c->may_undo = c->in_loss = c->in_recovery = false;
	c->frto = TCP_FRTO_OFF;
	c->n_dup_acks = 0;
	c->rtx_due = false;
	c->snd_nxt = c->snd_max;
	tcp_sent_lose_none(c);
	tcp_conn_mark_dirty(c);
}

// RFC 3522 3.2: what arrived left before anything was repeated. In a recovery of several holes it
// counts once none of them is open. Where nothing was repeated yet it needs no timestamp.
static bool were_originals(struct tcp_conn *c, const struct tcp_news *news)
{
	if (news->una == c->snd_una)
		return false;
	if (!c->resent_ns && !c->undo_bytes)
		return c->in_recovery && !c->lost_bytes &&
		       (c->sack_on || seq_lt(c->recover, c->snd_una));
	if (!tcp_undo_is_older(c, news, c->resent_ns))
		return false;
	return c->in_loss || (!c->lost_bytes && !tcp_sent_has_again(c));
}

// RFC 3708 2: all that was repeated came twice.
static bool were_duplicates(struct tcp_conn *c, const struct tcp_news *news)
{
	if (!news->twice || !c->undo_bytes || !tcp_undo_was_resent(c, &news->dsack))
		return false;
	c->undo_bytes -= min_u32(news->dsack.end - news->dsack.start, c->undo_bytes);
	return !c->undo_bytes;
}

// RFC 5682 3.1, with SACK.
static bool was_frto(struct tcp_conn *c, const struct tcp_news *news)
{
	if (!c->in_loss || !c->frto)
		return false;
	if (news->original)
		return true;
	bool moved = news->una != c->snd_una;
	bool more = c->sendq.len > c->snd_max - c->snd_una &&
	            c->snd_wnd >= c->snd_max - c->snd_una + c->mss;
	if (c->frto == TCP_FRTO_REPEATED && moved && more && seq_le(c->snd_una, c->recover))
		c->frto = TCP_FRTO_NEW; // step 2 b
	else if (moved || news->delivered)
		c->frto = TCP_FRTO_OFF; // step 3 a
	return false;
}

bool tcp_undo_input(struct tcp_conn *c, const struct tcp_news *news)
{
	bool repairing = c->in_recovery || c->in_loss;
	if (!c->may_undo || (!repairing && seq_lt(c->undo_until, c->snd_una)))
		return false;
	bool needless = (repairing && were_originals(c, news)) || were_duplicates(c, news);
	if (!needless && !was_frto(c, news))
		return false;
	undo(c);
	return true;
}
