// SPDX-License-Identifier: Apache-2.0
// The log of what was sent when, and what became of it: runs of bytes that left at about one time,
// in order. All that one flush sends has one time, so that a run for each turn says all that RFC
// 8985 asks of each segment. The last run is part of the connection, the others are pooled; a
// connection that sends now and then, or in one turn, needs none of them.
#include "dataplane/tcp/sent.h"

#include <limits.h>

#define FEW_RUNS 8 // those who have so few may take the last quarter of what all share

// Each connection has some of its own, so that nobody's reports can stop another one's repairs.
static bool may_take(const struct tcp_conn *c)
{
	const struct pool *p = &c->stack->runs;
	uint32_t own = TCP_OWN_RUNS * c->stack->conf.max_conns, left = pool_left(p);
	uint32_t shared = left > own ? left - own : 0;
	if (c->n_runs < TCP_OWN_RUNS)
		return true;
	if (c->n_runs < FEW_RUNS)
		return shared;
	return c->n_runs < TCP_MAX_RUNS && shared > (p->n_total - own) / 4;
}

// What is sent for the first time leaves a connection's own ones to cuts.
static bool may_take_for_new(const struct tcp_conn *c)
{
	return pool_left(&c->stack->runs) > TCP_OWN_RUNS * c->stack->conf.max_conns &&
	       c->n_runs < TCP_MAX_RUNS - TCP_OWN_RUNS;
}

static struct tcp_run *take(struct tcp_conn *c)
{
	struct tcp_run *r = may_take(c) ? pool_take(&c->stack->runs) : NULL;
	c->n_runs += r != NULL;
	return r;
}

static void give(struct tcp_conn *c, struct tcp_run *r)
{
	c->n_runs--;
	pool_put(&c->stack->runs, r);
}

// Puts r behind prev, a pooled run or NULL: behind all pooled ones.
static void insert(struct tcp_conn *c, struct tcp_run *prev, struct tcp_run *r)
{
	struct tcp_run *newest = c->last.next;
	prev = prev ? prev : newest;
	r->next = prev ? prev->next : r;
	if (prev)
		prev->next = r;
	if (prev == newest)
		c->last.next = r;
}

static void drop_first(struct tcp_conn *c)
{
	struct tcp_run *newest = c->last.next, *first = newest->next;
	newest->next = first->next;
	if (first == newest)
		c->last.next = NULL;
	give(c, first);
}

static void account(struct tcp_conn *c, uint8_t fate, uint32_t len)
{
	c->sacked_bytes += fate & TCP_RUN_SACKED ? len : 0;
	c->lost_bytes += fate & TCP_RUN_LOST ? len : 0;
	c->has_reports = c->sacked_bytes != 0;
	c->has_lost = c->lost_bytes != 0;
}

// Of what left at one time, and one ACK reports: where it was cut is not written down.
static unsigned n_segments(const struct tcp_conn *c, uint32_t seq, uint32_t end)
{
	uint32_t len = end - seq - (c->fin_sent && end == c->snd_max);
	return max_u32((len + c->mss - 1) / c->mss, 1);
}

static void add_segments(struct tcp_run *r, unsigned n)
{
	r->n_segments = (uint8_t)min_u32(r->n_segments + n, UINT8_MAX);
}

void tcp_sent_mark(struct tcp_conn *c, struct tcp_run *r, uint8_t fate)
{
	uint32_t end = tcp_run_end(c, r), len = end - r->seq;
	if (fate & ~r->fate & TCP_RUN_SACKED) {
		r->n_segments = 0;
		add_segments(r, n_segments(c, r->seq, end));
	}
	account(c, r->fate, -len);
	account(c, fate, len);
	r->fate = fate;
}

bool tcp_sent_join(struct tcp_conn *c, struct tcp_run *r)
{
	struct tcp_run *next = tcp_run_next(c, r);
	if (!next || next == &c->last)
		return false;
	bool both = r->fate & next->fate & TCP_RUN_SACKED;
	if (!both && (r->fate != next->fate || r->sent_ns != next->sent_ns))
		return false;
	add_segments(r, next->n_segments);
	r->next = next->next;
	if (c->last.next == next)
		c->last.next = r;
	give(c, next);
	return true;
}

// What is forgotten when the two become one: 0 = times only, 1 = reports, 2 = what is not lost.
static unsigned harm(const struct tcp_run *a, const struct tcp_run *b)
{
	uint8_t differ = (a->fate ^ b->fate) & (TCP_RUN_SACKED | TCP_RUN_LOST);
	return !differ ? 0 : differ == TCP_RUN_SACKED ? 1 : 2;
}

// Gives a record back by joining the two neighbours whose difference matters least. `keep` is
// neither. False = there are no two.
static bool squeeze(struct tcp_conn *c, const struct tcp_run *keep)
{
	struct tcp_run *newest = c->last.next, *prev = newest, *best = NULL, *before = NULL;
	unsigned least = UINT_MAX;
	for (struct tcp_run *r = tcp_run_first(c), *next; (next = tcp_run_next(c, r));
		prev = r, r = next) {
		if (r == keep || next == keep || harm(r, next) >= least)
			continue;
		before = prev;
		best = r;
		least = harm(r, next);
	}
	if (!best)
		return false;
	struct tcp_run *next = tcp_run_next(c, best);
	uint8_t fate = best->fate & next->fate & TCP_RUN_SACKED;
	if (!fate)
		fate = ((best->fate | next->fate) & TCP_RUN_LOST) | TCP_RUN_AGAIN;
	tcp_sent_mark(c, best, fate);
	tcp_sent_mark(c, next, fate);
	next->sent_ns = best->sent_ns > next->sent_ns ? best->sent_ns : next->sent_ns;
	next->seq = best->seq;
	add_segments(next, best->n_segments);
	before->next = best->next;
	if (best == newest)
		c->last.next = before == best ? NULL : before;
	give(c, best);
	return true;
}

void tcp_sent_push(struct tcp_conn *c, uint64_t now)
{
	bool counts = c->last.fate & (TCP_RUN_SACKED | TCP_RUN_LOST);
	struct tcp_run *r = NULL;
	if (counts || may_take_for_new(c))
		r = take(c);
	if (!r && counts && squeeze(c, &c->last))
		r = take(c);
	if (r) {
		*r = c->last;
		insert(c, NULL, r);
		c->last.seq = c->snd_max;
		c->last.fate = 0;
	} else {
		tcp_sent_mark(c, &c->last, TCP_RUN_AGAIN); // Karn: its time is not of all of it
	}
	c->last.sent_ns = now;
}

struct tcp_run *tcp_sent_cut(struct tcp_conn *c, struct tcp_run *r, uint32_t seq)
{
	struct tcp_run *other = take(c);
	if (!other)
		return NULL;
	bool is_last = r == &c->last;
	DCHECK(seq_lt(r->seq, seq) && seq_lt(seq, tcp_run_end(c, r)));
	*other = *r;
	insert(c, is_last ? NULL : r, other);
	if (is_last) {
		r->seq = seq;
		return other;
	}
	other->seq = seq;
	return r;
}

void tcp_sent_shift(struct tcp_conn *c, struct tcp_run *prev, struct tcp_run *r, uint32_t end)
{
	add_segments(prev, n_segments(c, r->seq, end));
	account(c, r->fate, r->seq - end);
	account(c, prev->fate, end - r->seq);
	r->seq = end;
}

void tcp_sent_again(struct tcp_conn *c, uint32_t seq, uint32_t end)
{
	struct tcp_run *prev = NULL, *part;
	tcp_undo_resent(c, seq, end);
	for (struct tcp_run *r = tcp_run_first(c); r && seq_lt(r->seq, end);
		prev = r, r = tcp_run_next(c, r)) {
		uint32_t run_end = tcp_run_end(c, r);
		if (seq_le(run_end, seq) || r->fate & TCP_RUN_SACKED)
			continue;
		// Without a record for what is not meant all of the run counts as sent again; RACK
		// or the timer repairs what was not.
		if (seq_lt(r->seq, seq) && (part = tcp_sent_cut(c, r, seq))) {
			r = part;
			continue;
		}
		if (seq_lt(end, run_end)) {
			part = tcp_sent_cut(c, r, end);
			if (!part && prev && !(prev->fate & (TCP_RUN_SACKED | TCP_RUN_LOST))) {
				tcp_sent_mark(c, prev, TCP_RUN_AGAIN);
				prev->sent_ns = tcp_now(c->stack);
				tcp_sent_shift(c, prev, r, end);
				return;
			}
			if (!part && squeeze(c, r)) { // prev may be gone
				prev = NULL;
				part = tcp_sent_cut(c, r, end);
			}
			r = part ? part : r;
		}
		tcp_sent_mark(c, r, TCP_RUN_AGAIN);
		r->sent_ns = tcp_now(c->stack);
		if (prev && tcp_sent_join(c, prev))
			r = prev;
	}
}

void tcp_sent_acked(struct tcp_conn *c, uint32_t ack, struct tcp_news *news)
{
	for (struct tcp_run *r; seq_lt((r = tcp_run_first(c))->seq, ack);) {
		uint32_t run_end = tcp_run_end(c, r);
		uint32_t end = seq_lt(ack, run_end) ? ack : run_end;
		if (news && !(r->fate & TCP_RUN_SACKED))
			tcp_rack_delivered(c, r, end, news);
		account(c, r->fate, r->seq - end);
		if (r != &c->last && end == run_end) {
			drop_first(c);
			continue;
		}
		r->seq = end;
		if (end == c->snd_max)
			r->fate = 0;
	}
}

void tcp_sent_lose_all(struct tcp_conn *c)
{
	for (struct tcp_run *r = tcp_run_first(c); r; r = tcp_run_next(c, r))
		if (!(r->fate & TCP_RUN_SACKED))
			tcp_sent_mark(c, r, r->fate | TCP_RUN_LOST);
}

void tcp_sent_lose_none(struct tcp_conn *c)
{
	for (struct tcp_run *r = tcp_run_first(c); r; r = tcp_run_next(c, r))
		tcp_sent_mark(c, r, r->fate & (uint8_t)~TCP_RUN_LOST);
}

void tcp_sent_clear(struct tcp_conn *c)
{
	while (c->last.next)
		drop_first(c);
}

bool tcp_sent_next_lost(struct tcp_conn *c, uint32_t *ret_seq, uint32_t *ret_len)
{
	if (!c->lost_bytes)
		return false;
	struct tcp_run *r = tcp_run_first(c);
	while (r && !(r->fate & TCP_RUN_LOST))
		r = tcp_run_next(c, r);
	if (!r || !seq_lt(r->seq, c->snd_nxt))
		return false;
	uint32_t seq = r->seq, end = seq;
	for (; r && r->fate & TCP_RUN_LOST && end - seq < c->mss; r = tcp_run_next(c, r))
		end = tcp_run_end(c, r);
	*ret_seq = seq;
	*ret_len = min_u32(min_u32(end, c->snd_nxt) - seq, c->mss);
	return true;
}

bool tcp_sent_has_again(struct tcp_conn *c)
{
	for (struct tcp_run *r = tcp_run_first(c); r; r = tcp_run_next(c, r))
		if ((r->fate & (TCP_RUN_AGAIN | TCP_RUN_SACKED)) == TCP_RUN_AGAIN)
			return true;
	return false;
}

uint32_t tcp_sent_last_gap(struct tcp_conn *c, uint32_t end, uint32_t *ret_len)
{
	uint32_t from = end, to = end;
	for (struct tcp_run *r = tcp_run_first(c); r && seq_lt(r->seq, end);
		r = tcp_run_next(c, r)) {
		uint32_t run_end = tcp_run_end(c, r);
		if (r->fate & TCP_RUN_SACKED || r->seq == run_end)
			continue;
		if (from == end || r->seq != to) // else it goes on where the one before ended
			from = r->seq;
		to = seq_lt(run_end, end) ? run_end : end;
	}
	if (from == end)
		to = end;
	*ret_len = min_u32(to - from, c->mss);
	return to - *ret_len;
}

uint32_t tcp_sent_gap(struct tcp_conn *c, uint32_t seq, uint32_t *ret_len)
{
	*ret_len = UINT32_MAX;
	if (!c->has_reports)
		return seq;
	for (struct tcp_run *r = tcp_run_first(c); r; r = tcp_run_next(c, r)) {
		if (!(r->fate & TCP_RUN_SACKED))
			continue;
		if (seq_lt(seq, r->seq)) {
			*ret_len = r->seq - seq;
			break;
		}
		if (seq_lt(seq, tcp_run_end(c, r)))
			seq = tcp_run_end(c, r);
	}
	return seq;
}
