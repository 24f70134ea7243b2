// SPDX-License-Identifier: Apache-2.0
// Congestion control of one connection: how many bytes may be in flight. ack.c reports
// acknowledgements and losses to it, and decides which segments are sent again.
// Thread: the owning worker.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tcp_cc {
	uint32_t cwnd, ssthresh; // bytes
	uint32_t acked; // bytes acknowledged since cwnd last grew, in congestion avoidance
	uint32_t prior_cwnd, prior_ssthresh; // as before the loss under repair; 0 = none is
};

// An acknowledgement of new data.
struct tcp_cc_ack {
	uint64_t now_ns;
	uint64_t rtt_ns; // the round trip that it measured; 0 = none
	uint64_t srtt_ns; // 0 = none was measured yet
	uint32_t mss;
	uint32_t acked; // bytes
	uint32_t una, nxt; // SND.UNA with it, and SND.NXT: what tells where a round trip ends
};

struct tcp_cc_ops {
	const char *name;
	void (*init)(struct tcp_cc *, uint32_t mss);
	// New bytes were acknowledged outside of recovery while cwnd was the limit.
	void (*on_ack)(struct tcp_cc *, const struct tcp_cc_ack *);
	// Acknowledgements show a loss: sets ssthresh and cwnd. The first one since tcp_cc_settle()
	// saves what was before.
	void (*on_loss)(struct tcp_cc *, uint32_t mss, uint32_t flight);
	// A retransmission timeout; first = the first one for the oldest outstanding byte. Saves
	// likewise.
	void (*on_timeout)(struct tcp_cc *, uint32_t mss, uint32_t flight, bool first);
	// The peer echoes a mark of congestion (RFC 3168 6.1.2), not more often than once a round
	// trip: sets ssthresh and cwnd by RFC 8511's share. Not saved: nothing undoes it.
	void (*on_ecn)(struct tcp_cc *, uint32_t mss, uint32_t flight);
	// Called before sending after more than a retransmission timeout of silence.
	void (*on_idle)(struct tcp_cc *, uint32_t mss);
	// Nothing was lost after all (RFC 4015 3): restores what was saved, if anything is, and is
	// settled.
	void (*undo)(struct tcp_cc *);
};

// What was lost has been repaired, and stays a loss.
static inline void tcp_cc_settle(struct tcp_cc *cc)
{
	cc->prior_cwnd = 0;
}

extern const struct tcp_cc_ops tcp_cc_reno;
