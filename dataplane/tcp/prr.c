// SPDX-License-Identifier: Apache-2.0
// Proportional rate reduction (RFC 9937): in recovery cwnd follows what arrives, so that it comes
// down to ssthresh over a round trip, neither in one pause nor in one burst.
#include "dataplane/tcp/sent.h"

void tcp_prr_begin(struct tcp_conn *c, uint32_t flight)
{
	c->prr_delivered = c->prr_out = 0;
	c->prr_flight = max_u32(flight, 1);
}

// RFC 9937 6.
void tcp_prr_input(struct tcp_conn *c, uint32_t delivered, bool safe)
{
	uint32_t pipe = tcp_sent_pipe(c), ssthresh = c->cc.ssthresh, may = 0;
	c->prr_delivered += delivered;
	if (pipe > ssthresh) {
		uint64_t due = (uint64_t)c->prr_delivered * ssthresh + c->prr_flight - 1;
		due /= c->prr_flight;
		may = due > c->prr_out ? (uint32_t)(due - c->prr_out) : 0;
	} else {
		uint32_t left = c->prr_delivered > c->prr_out ? c->prr_delivered - c->prr_out : 0;
		may = max_u32(left, delivered) + (safe ? c->mss : 0);
		may = min_u32(ssthresh - pipe, may);
	}
	if (!c->prr_out) // the first repetition leaves at once
		may = max_u32(may, c->mss);
	c->cc.cwnd = max_u32(pipe + may, c->mss);
}
