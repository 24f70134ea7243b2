// SPDX-License-Identifier: Apache-2.0
// Pacing: what is in flight beyond the initial window leaves at a rate a little above cwnd a round
// trip, in small bursts, so that queues on the way need not hold what an ACK, or an owner, lets out
// at once. On short paths cwnd alone decides: the wheel's tick is too coarse for them. Rates and
// bursts: docs/decisions/pacing.md.
// Thread: the owning worker.
#pragma once

#include "dataplane/tcp/tcp_internal.h"

#define TCP_PACE_MIN_RTT (4 * TWHEEL_NS_PER_TICK)
#define TCP_PACE_FREE 10 // segments in flight that are not paced: the initial window

// True if pacing applies when so many bytes are in flight.
static inline bool tcp_pace_applies(const struct tcp_conn *c, uint32_t flight)
{
	return c->srtt_ns >= TCP_PACE_MIN_RTT && flight > TCP_PACE_FREE * c->mss;
}
// Where it does: true = len bytes must wait for TCP_TIMER_PACE, which is set.
bool tcp_pace_holds(struct tcp_conn *, uint32_t len);
void tcp_pace_sent(struct tcp_conn *, uint32_t len);
// Where it does: bytes a second.
uint64_t tcp_pace_rate(const struct tcp_conn *);
