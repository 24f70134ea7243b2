// SPDX-License-Identifier: Apache-2.0
// Builds an outgoing segment, from reserving its buffer to handing it to the device; for output.c
// and fast_path.c.
// Thread: the owning worker.
#pragma once

#include "dataplane/tcp/csum.h"
#include "dataplane/tcp/tcp_internal.h"

// A segment between reserve and emit.
struct tcp_room {
	uint8_t *p;
	size_t header_len;
	uint64_t sum; // of the header's words: see tcp_csum_rest()
};

static inline uint8_t *tcp_put_word(uint8_t *p, uint32_t x, uint64_t *sum)
{
	x = __builtin_bswap32(x);
	memcpy(p, &x, sizeof(x));
	*sum += x;
	return p + 4;
}

// Reserves a buffer for header and data. False = no buffer.
static inline bool tcp_build_begin(struct tcp_stack *s, const struct tcp_flow *flow,
	size_t header_len, size_t len, struct tcp_room *ret)
{
	ret->header_len = header_len;
	ret->p = s->io.reserve(s->io.ctx, flow, header_len + len);
	if (!ret->p)
		tcp_count(s, TCP_no_buffer);
	return ret->p;
}

// Writes the header without options. wnd is in the unit of the wire.
static inline void tcp_build_header(struct tcp_room *r, const struct tcp_flow *flow, uint32_t seq,
	uint32_t ack, uint8_t flags, uint32_t wnd)
{
	uint64_t sum = 0;
	uint8_t *p = r->p;
	p = tcp_put_word(p, (uint32_t)flow->local_port << 16 | flow->remote_port, &sum);
	p = tcp_put_word(p, seq, &sum);
	p = tcp_put_word(p, ack, &sum);
	p = tcp_put_word(p, (uint32_t)r->header_len / 4 << 28 | (uint32_t)flags << 16 | wnd, &sum);
	tcp_put_word(p, 0, &sum); // checksum; no urgent data
	r->sum = sum;
}

// Writes timestamps alone, as in nearly every segment.
static inline void tcp_build_timestamps(struct tcp_room *r, uint32_t val, uint32_t ecr)
{
	uint8_t *p = r->p + TCP_HEADER_LEN;
	p = tcp_put_word(p, TCP_OPT_TS_HEAD, &r->sum);
	p = tcp_put_word(p, val, &r->sum);
	tcp_put_word(p, ecr, &r->sum);
}

// flow_sum: tcp_csum_flow() of the flow's addresses; ect: routers may mark it. The data has been
// written after the header.
static inline void tcp_build_emit(struct tcp_stack *s, const struct tcp_flow *flow,
	uint16_t flow_sum, const struct tcp_room *r, size_t len, bool ect)
{
	uint16_t sum = tcp_csum_rest(flow_sum, r->sum, r->header_len, r->p + r->header_len, len);
	memcpy(r->p + offsetof(struct tcp_header, checksum), &sum, sizeof(sum));
	(ect ? s->io.emit_ect : s->io.emit)(s->io.ctx, flow, r->p, r->header_len + len);
	tcp_count(s, TCP_segments_out);
}

// The window to announce now, in the unit of the wire; *ret_edge is its right edge.
static inline uint16_t tcp_build_window(const struct tcp_conn *c, uint32_t *ret_edge)
{
	uint32_t edge = tcp_recv_edge(c);
	uint32_t step = min_u32(c->our_mss, c->stack->conf.recv_window / 2);
	if (seq_diff(edge, c->rcv_adv) < (int32_t)step)
		edge = c->rcv_adv; // RFC 9293 3.8.6.2.2: no small steps, and never back
	uint32_t wnd = seq_lt(c->rcv_nxt, edge) ? edge - c->rcv_nxt : 0;
	// Rounded up: otherwise the edge would move back by less than a unit.
	uint32_t unit = UINT32_C(1) << c->rcv_wscale;
	uint32_t field = min_u32((wnd + unit - 1) >> c->rcv_wscale, UINT16_MAX);
	*ret_edge = c->rcv_nxt + (field << c->rcv_wscale);
	return (uint16_t)field;
}

static inline void tcp_build_done(struct tcp_conn *c, uint32_t edge)
{
	c->rcv_acked = c->rcv_nxt;
	if (seq_lt(c->rcv_adv, edge))
		c->rcv_adv = edge;
	c->ack_due = false;
	c->n_unacked = 0;
	tcp_timer_stop(c, TCP_TIMER_ACK);
}
