// SPDX-License-Identifier: Apache-2.0
// The sender's side of selective acknowledgement (RFC 2018, RFC 6675): which bytes above snd_una
// the peer has, hence which are lost, and what to send again. The list is short and only looked at
// during a loss; a block that does not fit is forgotten, which costs a needless retransmission at
// worst.
#include "dataplane/tcp/tcp_internal.h"

#define DUP_THRESHOLD 3

// Puts [start, end) in, joined with what it touches. False = nothing new, or no room.
static bool insert(struct tcp_scoreboard *b, uint32_t start, uint32_t end)
{
	uint32_t first = 0;
	while (first < b->n && seq_lt(b->blocks[first].end, start))
		first++;
	uint32_t last = first; // one past those that it touches
	while (last < b->n && seq_le(b->blocks[last].start, end))
		last++;
	if (first == last) {
		if (b->n == TCP_MAX_SACKED)
			return false;
		memmove(&b->blocks[first + 1], &b->blocks[first],
			(b->n - first) * sizeof(b->blocks[0]));
		b->blocks[first] = (struct tcp_sack_block){start, end};
		b->n++;
		return true;
	}
	struct tcp_sack_block joined = {b->blocks[first].start, b->blocks[last - 1].end};
	if (seq_le(joined.start, start) && seq_le(end, joined.end) && last == first + 1)
		return false;
	if (seq_lt(start, joined.start))
		joined.start = start;
	if (seq_lt(joined.end, end))
		joined.end = end;
	b->blocks[first] = joined;
	memmove(&b->blocks[first + 1], &b->blocks[last], (b->n - last) * sizeof(b->blocks[0]));
	b->n -= last - first - 1;
	return true;
}

bool tcp_sack_update(struct tcp_conn *c, const struct tcp_opts *o)
{
	bool news = false;
	for (unsigned i = 0; i < o->n_sack; i++) {
		uint32_t start = o->sack[i].start, end = o->sack[i].end;
		// Not what we sent and miss: old, a report of duplicates (RFC 2883), or made up.
		if (!seq_lt(start, end) || !seq_lt(c->snd_una, start) || seq_lt(c->snd_max, end))
			continue;
		if (!c->scoreboard) {
			c->scoreboard = pool_take(&c->stack->scoreboards);
			if (!c->scoreboard)
				return news;
			c->scoreboard->n = 0;
			c->has_scoreboard = true;
		}
		news |= insert(c->scoreboard, start, end);
	}
	return news;
}

void tcp_sack_clear(struct tcp_conn *c)
{
	pool_put(&c->stack->scoreboards, c->scoreboard);
	c->scoreboard = NULL;
	c->has_scoreboard = false;
}

void tcp_sack_acked(struct tcp_conn *c)
{
	struct tcp_scoreboard *b = c->scoreboard;
	if (!b)
		return;
	uint32_t n = 0;
	while (n < b->n && seq_le(b->blocks[n].end, c->snd_una))
		n++;
	b->n -= n;
	memmove(b->blocks, b->blocks + n, b->n * sizeof(b->blocks[0]));
	if (b->n && seq_lt(b->blocks[0].start, c->snd_una))
		b->blocks[0].start = c->snd_una;
	if (!b->n)
		tcp_sack_clear(c);
}

// RFC 6675 4, IsLost() for the holes: those before block i are lost for i < the result, since what
// counts against a hole only grows with the distance.
static uint32_t n_lost_holes(const struct tcp_conn *c)
{
	const struct tcp_scoreboard *b = c->scoreboard;
	uint32_t above = 0;
	for (uint32_t i = b->n; i-- > 0;) {
		above += b->blocks[i].end - b->blocks[i].start;
		if (b->n - i >= DUP_THRESHOLD || above > (DUP_THRESHOLD - 1) * c->mss ||
			seq_lt(b->blocks[i].start, c->lost_below))
			return i + 1;
	}
	return 0;
}

bool tcp_sack_oldest_lost(const struct tcp_conn *c)
{
	return c->scoreboard && n_lost_holes(c) > 0;
}

bool tcp_sack_has(const struct tcp_conn *c, uint32_t seq)
{
	uint32_t gap;
	return tcp_sack_gap(c, seq, &gap) != seq;
}

// Length of the part of [start, end) below seq.
static uint32_t part_below(uint32_t start, uint32_t end, uint32_t seq)
{
	if (!seq_lt(start, seq))
		return 0;
	return seq_lt(seq, end) ? seq - start : end - start;
}

uint32_t tcp_sack_below(const struct tcp_conn *c, uint32_t seq)
{
	uint32_t n = 0;
	for (uint32_t i = 0; c->scoreboard && i < c->scoreboard->n; i++)
		n += part_below(c->scoreboard->blocks[i].start, c->scoreboard->blocks[i].end, seq);
	return n;
}

// RFC 6675 4, SetPipe().
uint32_t tcp_sack_pipe(const struct tcp_conn *c)
{
	uint32_t at = c->snd_una, pipe = 0;
	uint32_t n = c->scoreboard ? c->scoreboard->n : 0,
		 n_lost = c->scoreboard ? n_lost_holes(c) : 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t end = c->scoreboard->blocks[i].start;
		if (i >= n_lost)
			pipe += end - at;
		pipe += part_below(at, end, c->high_rxt);
		at = c->scoreboard->blocks[i].end;
	}
	return pipe + (c->snd_max - at) + part_below(at, c->snd_max, c->high_rxt);
}

// RFC 6675 4, NextSeg(), rules 1 and 3.
bool tcp_sack_next(const struct tcp_conn *c, bool lost_only, uint32_t *ret_seq, uint32_t *ret_len)
{
	uint32_t at = c->snd_una;
	uint32_t n = !c->scoreboard ? 0 : lost_only ? n_lost_holes(c) : c->scoreboard->n;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t end = c->scoreboard->blocks[i].start;
		uint32_t seq = seq_lt(at, c->high_rxt) ? c->high_rxt : at;
		if (seq_lt(seq, end)) {
			*ret_seq = seq;
			*ret_len = min_u32(end - seq, c->mss);
			return true;
		}
		at = c->scoreboard->blocks[i].end;
	}
	return false;
}

uint32_t tcp_sack_gap(const struct tcp_conn *c, uint32_t seq, uint32_t *ret_len)
{
	uint32_t n = c->scoreboard ? c->scoreboard->n : 0;
	*ret_len = UINT32_MAX;
	for (uint32_t i = 0; i < n; i++) {
		const struct tcp_sack_block *b = &c->scoreboard->blocks[i];
		if (seq_lt(seq, b->start)) {
			*ret_len = b->start - seq;
			break;
		}
		if (seq_lt(seq, b->end))
			seq = b->end;
	}
	return seq;
}
