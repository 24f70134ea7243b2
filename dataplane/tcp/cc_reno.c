// SPDX-License-Identifier: Apache-2.0
// Slow start and congestion avoidance of RFC 5681, with appropriate byte counting (RFC 3465) and
// the initial window of RFC 6928.
#include "dataplane/tcp/cc.h"

static uint32_t initial_window(uint32_t mss)
{
	uint32_t floor = 2 * mss > 14600 ? 2 * mss : 14600;
	return 10 * mss < floor ? 10 * mss : floor;
}

static void reno_init(struct tcp_cc *cc, uint32_t mss)
{
	*cc = (struct tcp_cc){.cwnd = initial_window(mss), .ssthresh = UINT32_MAX};
}

static void reno_on_ack(struct tcp_cc *cc, const struct tcp_cc_ack *ack)
{
	uint32_t acked = ack->acked;
	// One acknowledgement may cover many segments (offloads, batching at the receiver), so the
	// growth is by bytes without RFC 3465's limit; tcp_stack_flush() bounds the burst.
	if (cc->cwnd < cc->ssthresh) {
		uint32_t room = cc->ssthresh - cc->cwnd;
		uint32_t grow = acked < room ? acked : room;
		cc->cwnd = cc->cwnd > UINT32_MAX / 2 ? cc->cwnd : cc->cwnd + grow;
		acked -= grow;
	}
	cc->acked += acked;
	if (cc->acked >= cc->cwnd) {
		cc->acked -= cc->cwnd;
		cc->cwnd = cc->cwnd > UINT32_MAX / 2 ? cc->cwnd : cc->cwnd + ack->mss;
	}
}

static void halve(struct tcp_cc *cc, uint32_t mss, uint32_t flight)
{
	if (!cc->prior_cwnd) {
		cc->prior_cwnd = cc->cwnd;
		cc->prior_ssthresh = cc->ssthresh;
	}
	cc->ssthresh = flight / 2 > 2 * mss ? flight / 2 : 2 * mss;
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
	uint32_t left = (uint32_t)((uint64_t)flight * 4 / 5); // RFC 8511 4.1
	cc->cwnd = cc->ssthresh = left > 2 * mss ? left : 2 * mss;
	cc->acked = 0;
}

static void reno_on_idle(struct tcp_cc *cc, uint32_t mss)
{
	if (cc->cwnd > initial_window(mss)) // RFC 5681 4.1
		cc->cwnd = initial_window(mss);
}

static void reno_undo(struct tcp_cc *cc)
{
	if (!cc->prior_cwnd)
		return;
	cc->cwnd = cc->cwnd > cc->prior_cwnd ? cc->cwnd : cc->prior_cwnd;
	cc->ssthresh = cc->ssthresh > cc->prior_ssthresh ? cc->ssthresh : cc->prior_ssthresh;
	tcp_cc_settle(cc);
}

const struct tcp_cc_ops tcp_cc_reno = {"reno", reno_init, reno_on_ack, reno_on_loss,
	reno_on_timeout, reno_on_ecn, reno_on_idle, reno_undo};
