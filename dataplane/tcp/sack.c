// SPDX-License-Identifier: Apache-2.0
// The peer's reports of what it has beyond a hole (RFC 2018) and of what it got twice (RFC 2883),
// written into the log of what was sent. What finds no record there is forgotten, which costs a
// needless retransmission at worst.
#include "dataplane/tcp/sent.h"

// RFC 2883 4: the first block, if it lies below the acknowledgement or within the second one.
static bool is_dsack(const struct tcp_opts *o, uint32_t ack)
{
	const struct tcp_sack_block *b = o->sack;
	return seq_le(b->end, ack) ||
	       (o->n_sack > 1 && seq_le(b[1].start, b->start) && seq_le(b->end, b[1].end));
}

// [start, end) has arrived.
static void report(struct tcp_conn *c, uint32_t start, uint32_t end, struct tcp_news *news)
{
	struct tcp_run *prev = NULL;
	for (struct tcp_run *r = tcp_run_first(c); r && seq_lt(r->seq, end);
		prev = r, r = tcp_run_next(c, r)) {
		uint32_t run_end = tcp_run_end(c, r);
		if (seq_le(run_end, start) || r->fate & TCP_RUN_SACKED)
			continue;
		if (seq_lt(r->seq, start)) { // what lies before is not meant
			r = tcp_sent_cut(c, r, start);
			if (!r)
				return;
			continue;
		}
		if (seq_lt(end, run_end)) {
			struct tcp_run *part = tcp_sent_cut(c, r, end);
			if (!part && prev && prev->fate & TCP_RUN_SACKED) {
				tcp_rack_delivered(c, r, end, news);
				tcp_sent_shift(c, prev, r, end);
				return;
			}
			if (!part)
				return;
			r = part;
		}
		tcp_rack_delivered(c, r, tcp_run_end(c, r), news);
		tcp_sent_mark(c, r, TCP_RUN_SACKED);
		if (prev && tcp_sent_join(c, prev))
			r = prev;
		(void)!tcp_sent_join(c, r);
	}
}

void tcp_sack_update(struct tcp_conn *c, const struct tcp_opts *o, struct tcp_news *news)
{
	// Of the last window, else it is an attacker's or too old to say anything.
	if (is_dsack(o, news->ack) && seq_lt(o->sack[0].start, o->sack[0].end) &&
		seq_le(c->snd_una - c->max_snd_wnd, o->sack[0].start) &&
		seq_le(o->sack[0].end, c->snd_max)) {
		news->twice = true;
		news->dsack = o->sack[0];
		tcp_count(c->stack, TCP_dsacks_in);
	}
	for (unsigned i = 0; i < o->n_sack; i++) {
		uint32_t start = o->sack[i].start, end = o->sack[i].end;
		// Not what we sent and miss: old, a report of duplicates, or made up.
		if (seq_lt(start, end) && seq_lt(c->snd_una, start) && seq_le(end, c->snd_max))
			report(c, start, end, news);
	}
}

void tcp_sack_forget(struct tcp_conn *c)
{
	for (struct tcp_run *r = tcp_run_first(c); r; r = tcp_run_next(c, r))
		tcp_sent_mark(c, r, r->fate & (uint8_t)~TCP_RUN_SACKED);
}

uint32_t tcp_sack_fack(struct tcp_conn *c)
{
	uint32_t fack = c->snd_una;
	if (!c->has_reports)
		return fack;
	for (struct tcp_run *r = tcp_run_first(c); r; r = tcp_run_next(c, r))
		if (r->fate & TCP_RUN_SACKED)
			fack = tcp_run_end(c, r);
	return fack;
}
