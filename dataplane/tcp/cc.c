// SPDX-License-Identifier: Apache-2.0
// What Reno and CUBIC have in common.
#include "dataplane/tcp/cc.h"

uint32_t tcp_cc_initial_window(uint32_t mss)
{
	uint32_t floor = 2 * mss > 14600 ? 2 * mss : 14600;
	return 10 * mss < floor ? 10 * mss : floor;
}

void tcp_cc_init(struct tcp_cc *cc, uint32_t mss)
{
	*cc = (struct tcp_cc){.cwnd = tcp_cc_initial_window(mss), .ssthresh = UINT32_MAX};
}

void tcp_cc_save(struct tcp_cc *cc)
{
	if (cc->prior_cwnd)
		return;
	cc->prior_cwnd = cc->cwnd;
	cc->prior_ssthresh = cc->ssthresh;
	cc->prior_w_max = cc->cubic.w_max;
}

void tcp_cc_restore(struct tcp_cc *cc)
{
	if (!cc->prior_cwnd)
		return;
	cc->cwnd = cc->cwnd > cc->prior_cwnd ? cc->cwnd : cc->prior_cwnd;
	cc->ssthresh = cc->ssthresh > cc->prior_ssthresh ? cc->ssthresh : cc->prior_ssthresh;
	cc->cubic.w_max = cc->prior_w_max;
	tcp_cc_settle(cc);
}

void tcp_cc_grow(struct tcp_cc *cc, uint32_t bytes)
{
	uint32_t room = cc->cwnd < UINT32_MAX / 2 ? UINT32_MAX / 2 - cc->cwnd : 0;
	cc->cwnd += bytes < room ? bytes : room;
}

// One acknowledgement may cover many segments (offloads, batching at the receiver), so the growth
// is by bytes without RFC 3465's limit; pacing and tcp_stack_flush() bound the burst.
uint32_t tcp_cc_slow_start(struct tcp_cc *cc, uint32_t acked)
{
	uint32_t room = cc->ssthresh > cc->cwnd ? cc->ssthresh - cc->cwnd : 0;
	uint32_t grow = acked < room ? acked : room;
	tcp_cc_grow(cc, grow);
	return acked - grow;
}

uint32_t tcp_cc_share(uint32_t mss, uint32_t flight, uint32_t numerator, uint32_t denominator)
{
	uint32_t share = (uint32_t)((uint64_t)flight * numerator / denominator);
	return share > 2 * mss ? share : 2 * mss;
}
