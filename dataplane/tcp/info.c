// SPDX-License-Identifier: Apache-2.0
// What an operator is told of one connection.
#include "dataplane/tcp/tcp_internal.h"

// What came since the last look may have gone past 2^32, once at most (window.c).
static uint64_t received(const struct tcp_conn *c)
{
	uint32_t low = c->rcv_nxt - c->irs, mark = c->rcv_mark - c->irs;
	uint64_t n_wraps = c->n_rcv_wraps + (low < mark);
	return (n_wraps << 32 | low) - 1 - c->fin_received;
}

void tcp_conn_tell(const struct tcp_conn *c, struct tcp_conn_info *ret)
{
	*ret = (struct tcp_conn_info){
		.n_received = c->state == TCP_SYN_SENT ? 0 : received(c),
		.rtt_ns = c->srtt_ns,
		.cwnd = c->cc.cwnd,
		.mss = c->mss,
		.in_flight = c->snd_max - c->snd_una,
		.n_resent = c->n_resent,
	};
}
