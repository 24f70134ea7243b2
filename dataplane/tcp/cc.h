// SPDX-License-Identifier: Apache-2.0
// Congestion control of one connection: how much may be in flight. It hears of acknowledgements and
// losses; which segments to send again is not its business (ack.c).
// Thread: the owning worker.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tcp_cc {
	uint32_t cwnd, ssthresh; // bytes
	uint32_t acked; // bytes acknowledged since cwnd grew last, in congestion avoidance
};

struct tcp_cc_ops {
	const char *name;
	void (*init)(struct tcp_cc *, uint32_t mss);
	// `acked` new bytes arrived outside of recovery while cwnd was what held us back.
	void (*on_ack)(struct tcp_cc *, uint32_t mss, uint32_t acked);
	// A loss seen by duplicate acknowledgements: sets ssthresh and cwnd to it.
	void (*on_loss)(struct tcp_cc *, uint32_t mss, uint32_t flight);
	// A retransmission timeout; first = not yet for the oldest outstanding byte.
	void (*on_timeout)(struct tcp_cc *, uint32_t mss, uint32_t flight, bool first);
	// About to send after more than a retransmission timeout of silence.
	void (*on_idle)(struct tcp_cc *, uint32_t mss);
};

extern const struct tcp_cc_ops tcp_cc_reno;
