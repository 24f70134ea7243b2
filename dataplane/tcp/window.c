// SPDX-License-Identifier: Apache-2.0
// How many bytes a connection may have on their way, either way: what its owner takes, or its peer
// acknowledges, in a round trip makes it more (docs/decisions/windows.md). What all of them may
// have beyond what each has at first follows how full the pool of chunks is: then less is promised,
// and nothing is taken back.
#include "dataplane/tcp/tcp_internal.h"

static uint32_t allowed(const struct tcp_stack *s, uint32_t wanted, uint32_t first)
{
	return buf_allowed(s->chunks, wanted, first, s->conf.window_max);
}

void tcp_window_init(struct tcp_conn *c)
{
	c->rcv_wnd = c->stack->conf.recv_window;
	if (!c->wscale_on)
		c->rcv_wnd = min_u32(c->rcv_wnd, UINT16_MAX);
	c->other_window = !c->wscale_on;
	c->rcv_mark = c->rcv_nxt;
	c->rcv_mark_ns = tcp_now(c->stack);
}

uint32_t tcp_window_other(const struct tcp_conn *c)
{
	const struct tcp_conf *conf = &c->stack->conf;
	return allowed(c->stack, c->rcv_wnd, min_u32(c->rcv_wnd, conf->recv_window));
}

// Half of the window within a round trip, or else that has passed; and a quarter of one, since a
// whole window that is announced at once comes a round trip later or a little more.
void tcp_window_measure(struct tcp_conn *c)
{
	const struct tcp_conf *conf = &c->stack->conf;
	uint64_t now = tcp_now(c->stack);
	if (now - c->rcv_mark_ns <= c->srtt_ns + c->srtt_ns / 4) {
		if (c->rcv_nxt - c->rcv_mark < c->rcv_wnd / 2)
			return;
		if (c->wscale_on && !c->recvq.len && c->rcv_wnd < conf->window_max) {
			c->rcv_wnd = min_u32(2 * c->rcv_wnd, conf->window_max);
			c->other_window = true;
			tcp_count(c->stack, TCP_windows_grown);
		}
	}
	c->n_rcv_wraps += c->rcv_nxt - c->irs < c->rcv_mark - c->irs;
	c->rcv_mark = c->rcv_nxt;
	c->rcv_mark_ns = now;
}

// Half of what fits at first waits behind what is on its way. What is on its way is gone when the
// peer has it, so that a slow one has no more waiting than a fast one.
size_t tcp_window_send_limit(const struct tcp_conn *c)
{
	uint32_t first = c->stack->conf.send_limit;
	uint32_t flight = min_u32(c->cc.cwnd, c->snd_wnd);
	if (flight <= first / 2)
		return first;
	return (size_t)first / 2 + allowed(c->stack, flight, first / 2);
}
