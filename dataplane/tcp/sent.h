// SPDX-License-Identifier: Apache-2.0
// The log of what was sent when. It covers snd_una to snd_max without a gap, at least by the
// connection's last run, so that nothing of it needs memory that may not be there: without a
// record, runs become coarser.
// Thread: the owning worker.
#pragma once

#include "dataplane/tcp/recovery.h"

static inline struct tcp_run *tcp_run_first(struct tcp_conn *c)
{
	return c->last.next ? c->last.next->next : &c->last;
}

// NULL = r is the last one.
static inline struct tcp_run *tcp_run_next(struct tcp_conn *c, const struct tcp_run *r)
{
	return r == &c->last ? NULL : r == c->last.next ? &c->last : r->next;
}

static inline uint32_t tcp_run_end(struct tcp_conn *c, const struct tcp_run *r)
{
	const struct tcp_run *next = tcp_run_next(c, r);
	return next ? next->seq : c->snd_max;
}

// Begins a run before the last one, which it empties. Without a record the last one has the new
// time and counts as sent again, which measures nothing, and nothing of it as lost or reported.
void tcp_sent_push(struct tcp_conn *, uint64_t now_ns);
// New bytes leave at snd_max, before that moves.
static inline void tcp_sent_new(struct tcp_conn *c, uint64_t now_ns)
{
	struct tcp_run *last = &c->last;
	if (last->seq == c->snd_max)
		last->sent_ns = now_ns;
	else if (last->fate || now_ns - last->sent_ns > c->srtt_ns >> TCP_RUN_SHIFT)
		tcp_sent_push(c, now_ns);
}
// Bytes [seq, end) of what was sent leave again.
void tcp_sent_again(struct tcp_conn *, uint32_t seq, uint32_t end);
// snd_una moves to ack; news may be NULL if nothing is lost, reported or being repaired.
void tcp_sent_acked(struct tcp_conn *, uint32_t ack, struct tcp_news *);
// Cuts r in two at seq, strictly inside of it; returns the first part, NULL = no record.
struct tcp_run *tcp_sent_cut(struct tcp_conn *, struct tcp_run *, uint32_t seq);
// The bytes of r up to end, strictly inside of it, become part of prev, the run before it.
void tcp_sent_shift(struct tcp_conn *, struct tcp_run *prev, struct tcp_run *r, uint32_t end);
// Joins r with the run behind it, if they are alike. True = they were.
bool tcp_sent_join(struct tcp_conn *, struct tcp_run *);
// Changes what became of a run, and the sums of bytes. fate: TCP_RUN_*.
void tcp_sent_mark(struct tcp_conn *, struct tcp_run *, uint8_t fate);
void tcp_sent_lose_all(struct tcp_conn *); // but for what was reported
void tcp_sent_lose_none(struct tcp_conn *);
void tcp_sent_clear(struct tcp_conn *); // gives the records back
// The first bytes below snd_nxt that are lost, up to an MSS. False = none.
bool tcp_sent_next_lost(struct tcp_conn *, uint32_t *ret_seq, uint32_t *ret_len);
// Any bytes sent more than once outstanding, that were not reported?
bool tcp_sent_has_again(struct tcp_conn *);
// First byte at or above seq that the peer is not known to have; *ret_len bytes until one that it
// has.
uint32_t tcp_sent_gap(struct tcp_conn *, uint32_t seq, uint32_t *ret_len);
// Start of the last bytes below end, up to an MSS, that the peer is not known to have, with their
// number; end, and none, if it has all.
uint32_t tcp_sent_last_gap(struct tcp_conn *, uint32_t end, uint32_t *ret_len);
// Bytes in the network, as far as is known (RFC 6675 4, SetPipe()).
static inline uint32_t tcp_sent_pipe(const struct tcp_conn *c)
{
	return c->snd_max - c->snd_una - c->sacked_bytes - c->lost_bytes;
}

// Samples the round trip of the oldest bytes outstanding, which an ACK with this timestamp's echo
// acknowledges; returns it, 0 = there is none (RFC 6298 3, RFC 7323 4). Call before the log
// forgets.
static inline uint64_t tcp_sent_measure(struct tcp_conn *c, uint32_t ts_ecr, uint32_t acked)
{
	const struct tcp_run *first = tcp_run_first(c);
	if (first->fate & TCP_RUN_AGAIN) // Karn
		return tcp_rtt_sample_echo(c, ts_ecr, acked);
	uint64_t rtt = tcp_now(c->stack) - first->sent_ns;
	tcp_rtt_sample(c, rtt, acked);
	return rtt;
}
