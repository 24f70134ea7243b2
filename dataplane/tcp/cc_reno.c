// SPDX-License-Identifier: Apache-2.0
// Slow start and congestion avoidance of RFC 5681, with appropriate byte counting (RFC 3465) and
// the initial window of RFC 6928.
#include "dataplane/tcp/cc.h"

static void reno_on_ack(struct tcp_cc *cc, const struct tcp_cc_ack *ack)
{
	cc->acked += tcp_cc_slow_start(cc, ack->acked);
	if (cc->acked >= cc->cwnd) {
		cc->acked -= cc->cwnd;
		tcp_cc_grow(cc, ack->mss);
	}
}

static void halve(struct tcp_cc *cc, uint32_t mss, uint32_t flight)
{
	tcp_cc_save(cc);
	cc->ssthresh = tcp_cc_share(mss, flight, 1, 2);
	cc->acked = 0;
}

static void reno_on_loss(struct tcp_cc *cc, uint32_t mss, uint32_t flight)
{
	halve(cc, mss, flight);
	cc->cwnd = cc->ssthresh;
}

static void reno_on_timeout(struct tcp_cc *cc, uint32_t mss, uint32_t flight, bool first)
{
	if (first) // RFC 5681 3.1: not again for a segment that timed out before
		halve(cc, mss, flight);
	cc->cwnd = mss;
	cc->acked = 0;
}

static void reno_on_ecn(struct tcp_cc *cc, uint32_t mss, uint32_t flight)
{
	tcp_cc_settle(cc);
	cc->ssthresh = tcp_cc_share(mss, flight, 4, 5); // RFC 8511 3.1
	cc->cwnd = cc->cwnd < cc->ssthresh ? cc->cwnd : cc->ssthresh;
	cc->acked = 0;
}

static void reno_on_idle(struct tcp_cc *cc, uint32_t mss, uint64_t n)
{
	if (cc->cwnd > tcp_cc_initial_window(mss)) // RFC 5681 4.1
		cc->cwnd = tcp_cc_initial_window(mss);
}

const struct tcp_cc_ops tcp_cc_reno = {"reno", tcp_cc_init, reno_on_ack, reno_on_loss,
	reno_on_timeout, reno_on_ecn, reno_on_idle, tcp_cc_restore};
