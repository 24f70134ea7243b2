// SPDX-License-Identifier: Apache-2.0
// What an operator is told of one connection.
#include "dataplane/tcp/pace.h"
#include "lb/pick/tcp_info.h"

// What came since the last look may have gone past 2^32, once at most (window.c).
static uint64_t received(const struct tcp_conn *c)
{
	uint32_t low = c->rcv_nxt - c->irs, mark = c->rcv_mark - c->irs;
	uint64_t n_wraps = c->n_rcv_wraps + (low < mark);
	return (n_wraps << 32 | low) - 1 - c->fin_received;
}

// docs/tcp.md has the table.
static const char *name_of_state(const struct tcp_conn *c)
{
	if (c->state != TCP_OPEN)
		return c->state == TCP_SYN_SENT ? "syn_sent" : "syn_received";
	if (!c->shut)
		return c->fin_received ? "close_wait" : "established";
	if (!c->fin_received)
		return c->fin_acked ? "fin_wait_2" : "fin_wait_1";
	return c->no_time_wait ? "last_ack" : "closing";
}

void tcp_conn_tell(const struct tcp_conn *c, struct lb_tcp_info *ret)
{
	uint32_t in_flight = c->snd_max - c->snd_una;
	bool is_paced = !c->stack->conf.unpaced && tcp_pace_applies(c, in_flight);
	bool is_open = c->state != TCP_SYN_SENT;
	*ret = (struct lb_tcp_info){
		.state = name_of_state(c),
		.n_received = is_open ? received(c) : 0,
		.rtt_ns = c->srtt_ns,
		.rttvar_ns = c->rttvar_ns,
		.min_rtt_ns = c->min_rtt_ns == UINT32_MAX ? 0 : c->min_rtt_ns,
		.rto_ns = c->rto_ns,
		.pace = is_paced ? tcp_pace_rate(c) : 0,
		.send_queue = c->sendq.len,
		.recv_queue = c->recvq.len,
		.cwnd = c->cc.cwnd,
		.ssthresh = c->cc.ssthresh,
		.in_flight = in_flight,
		.n_resent = c->n_resent,
		.send_window = c->snd_wnd,
		.recv_window = is_open ? c->rcv_adv - c->rcv_nxt : 0,
		.mss = c->mss,
		.send_scale = c->wscale_on ? c->snd_wscale : 0,
		.recv_scale = c->wscale_on ? c->rcv_wscale : 0,
		.n_backoff = c->n_backoff,
		.congestion = tcp_cc_ops(c)->name,
	};
}
