// SPDX-License-Identifier: Apache-2.0
// What the sender's loss recovery shares: the log of what was sent (sent.h), the peer's reports of
// what arrived (sack.c), which of the rest is lost (rack.c), how fast that goes out again (prr.c),
// and whether it was lost at all (undo.c). ack.c calls them.
// Thread: the owning worker.
#pragma once

#include "dataplane/tcp/tcp_internal.h"

#define TCP_DUP_THRESHOLD 3 // RFC 5681 3.2, RFC 8985 6.2

// What one acknowledgement said.
struct tcp_news {
	uint32_t ack;
	uint32_t una, flight; // SND.UNA and the bytes outstanding before it
	uint32_t reported; // of these
	uint32_t fack; // end of the highest report before it
	uint32_t ts_ecr;
	bool has_echo; // ts_ecr counts
	bool cumulative; // while snd_una moves: the echo is of what made it move
	uint32_t delivered; // bytes that were not known to have arrived
	bool original; // among them some that were sent once, not after c->recover
	bool twice; // it reports data received twice (RFC 2883)
	struct tcp_sack_block dsack; // which
};

// ack.c: handles acknowledgements. False = the connection is closed.
bool tcp_ack_input(struct tcp_conn *, const struct tcp_seg *);
// RFC 9293 3.10.7.4: SND.WND; wnd in bytes.
void tcp_ack_window(struct tcp_conn *, uint32_t seq, uint32_t ack, uint32_t wnd);
void tcp_ack_timeout(struct tcp_conn *); // the retransmission timer fired with data outstanding
// What is outstanding was too long for the path: goes out again in pieces of the new MSS.
void tcp_ack_too_big(struct tcp_conn *);
// the reordering timer fired: what is missing before a reported block is lost
void tcp_ack_late(struct tcp_conn *);

// timer.c
// A round trip, before snd_una moves by acked bytes: the less of a flight they are, the less it
// counts.
void tcp_rtt_sample(struct tcp_conn *, uint64_t rtt_ns, uint32_t acked);
// Samples the round trip by the timestamp that an ACK echoes (RFC 7323 4), in whole milliseconds,
// 1 ns at least, and returns it; 0 = it has no plausible one.
uint64_t tcp_rtt_sample_echo(struct tcp_conn *, uint32_t ts_ecr, uint32_t acked);

// Keeps what is behind snd_una close to it: after 2 GiB it would compare as ahead.
static inline void tcp_ack_trail(struct tcp_conn *c)
{
	if (seq_lt(c->recover, c->snd_una))
		c->recover = c->snd_una - 1;
}

// RFC 8985 7.2: is the next expiry of the timer a tail loss probe? Unlike there, in a recovery too,
// once all that is lost was repeated: the last repetitions have nothing behind them that would tell
// of their own loss.
static inline bool tcp_may_probe_tail(const struct tcp_conn *c)
{
	bool quiet =
		!c->rare ||
		(c->state == TCP_OPEN && !c->in_loss && !c->tail_probe_due && !c->tail_probe_out &&
			(c->in_recovery ? !c->lost_bytes : !c->has_reports) && !c->n_backoff);
	return quiet && c->sack_on && c->srtt_ns && c->snd_nxt == c->snd_max &&
	       c->snd_max != c->snd_una;
}

// sack.c: the peer's reports (RFC 2018, RFC 2883).
void tcp_sack_update(struct tcp_conn *, const struct tcp_opts *, struct tcp_news *);
void tcp_sack_forget(struct tcp_conn *); // all reports: the peer has dropped what it reported
uint32_t tcp_sack_fack(struct tcp_conn *); // end of the highest report; snd_una = there is none

// rack.c: RACK (RFC 8985 6).
// Bytes of the run up to end arrived. Call before the run changes.
void tcp_rack_delivered(struct tcp_conn *, const struct tcp_run *, uint32_t end, struct tcp_news *);
void tcp_rack_dsack(struct tcp_conn *); // the peer got something twice that we sent twice
// What rack_detect() found lost just now.
enum tcp_rack_found {
	TCP_RACK_NOTHING,
	TCP_RACK_LOST, // what was sent once
	TCP_RACK_LOST_AGAIN, // a repetition, since cwnd was last reduced
};
// Marks what is lost by now, and sets TCP_TIMER_REORDER for what will be.
enum tcp_rack_found tcp_rack_detect(struct tcp_conn *);
void tcp_rack_recovered(struct tcp_conn *); // a recovery ended

// prr.c: proportional rate reduction (RFC 9937).
// cwnd was reduced; flight: what was outstanding then and not known to have arrived.
void tcp_prr_begin(struct tcp_conn *, uint32_t flight);
// An ACK in recovery; safe = it moved snd_una and told of no further loss.
void tcp_prr_input(struct tcp_conn *, uint32_t delivered, bool safe);

// undo.c: needless recoveries and timeouts (RFC 3522, RFC 3708, RFC 5682).
void tcp_undo_begin(struct tcp_conn *); // a recovery or a timeout begins
void tcp_undo_resent(struct tcp_conn *, uint32_t seq, uint32_t end);
void tcp_undo_end(struct tcp_conn *); // it ended; DSACKs may still undo it
// Does the block lie within what was repeated? Else the network doubled it.
bool tcp_undo_was_resent(const struct tcp_conn *, const struct tcp_sack_block *);
// True = the recovery or timeout was needless, and is undone.
bool tcp_undo_input(struct tcp_conn *, const struct tcp_news *);
// Did what the ACK echoes leave before this time?
bool tcp_undo_is_older(const struct tcp_conn *, const struct tcp_news *, uint64_t sent_ns);
