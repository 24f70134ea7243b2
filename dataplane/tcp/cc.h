// SPDX-License-Identifier: Apache-2.0
// Congestion control of one connection: how many bytes may be in flight. ack.c reports
// acknowledgements and losses to it, and decides which segments are sent again.
// Thread: the owning worker. Pure: time comes in as an argument.
#pragma once

#include "dataplane/tcp/hystart.h"

#include <stdbool.h>
#include <stdint.h>

// Of cc_cubic.c (RFC 9438). Windows in bytes.
struct tcp_cubic {
	uint64_t epoch_ns; // when this stage of congestion avoidance began; 0 = with the next ACK
	uint64_t last_ns; // of the last ACK while cwnd was the limit
	uint32_t w_max; // where growth is slowest; 0 = where the stage begins
	uint32_t k_ms; // from the stage's begin to w_max
	uint32_t w_est; // what Reno would have
	uint32_t est_acked; // acknowledged since that last grew
	uint32_t before; // cwnd before the last loss
};

// Plain data.
struct tcp_cc {
	uint32_t cwnd, ssthresh; // bytes
	uint32_t acked; // what has been acknowledged but not been enough for cwnd to grow
	// As before the loss under repair; cwnd 0 = none is.
	uint32_t prior_cwnd, prior_ssthresh, prior_w_max;
	struct tcp_hystart hystart;
	struct tcp_cubic cubic;
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
	// trip: sets ssthresh and cwnd, which it never raises, by RFC 8511's share. Settles what
	// was saved: nothing undoes it.
	void (*on_ecn)(struct tcp_cc *, uint32_t mss, uint32_t flight);
	// Called before sending after n > 0 whole retransmission timeouts of silence, or after as
	// many times five minutes in which less than half of cwnd was in use.
	void (*on_idle)(struct tcp_cc *, uint32_t mss, uint64_t n);
	// Nothing was lost after all (RFC 4015 3): restores what was saved, if anything is, and is
	// settled.
	void (*undo)(struct tcp_cc *);
};

extern const struct tcp_cc_ops tcp_cc_cubic; // RFC 9438 and RFC 9406; the default
extern const struct tcp_cc_ops tcp_cc_reno; // RFC 5681; the simple one, for tests

// What was lost has been repaired, and stays a loss.
static inline void tcp_cc_settle(struct tcp_cc *cc)
{
	cc->prior_cwnd = 0;
}

// cc.c: what both have in common.
void tcp_cc_init(struct tcp_cc *, uint32_t mss);
uint32_t tcp_cc_initial_window(uint32_t mss); // RFC 6928 2
void tcp_cc_save(struct tcp_cc *); // for undo, unless something is saved
void tcp_cc_restore(struct tcp_cc *); // what is saved, if anything is, and settles
void tcp_cc_grow(struct tcp_cc *, uint32_t bytes); // up to 2 GiB
// Slow start up to ssthresh (RFC 5681 3.1). Returns the acknowledged bytes that are left for
// congestion avoidance.
uint32_t tcp_cc_slow_start(struct tcp_cc *, uint32_t acked);
// A share of what is in flight, numerator / denominator <= 1, but two segments at least.
uint32_t tcp_cc_share(uint32_t mss, uint32_t flight, uint32_t numerator, uint32_t denominator);
