// SPDX-License-Identifier: Apache-2.0
// The fast path of nearly every segment (Van Jacobson's header prediction): the next one in order,
// on a connection on which nothing rare is going on, with nothing but an acknowledgement and data.
// Everything else takes the slow path (input.c, ack.c, recv.c, output.c), which is the reference:
// what is here must do exactly what it would do, and tests/sim/tcp and tests/fuzz compare the two.
#include "dataplane/tcp/build.h"
#include "dataplane/tcp/cwnd.h"
#include "dataplane/tcp/pace.h"
#include "dataplane/tcp/sent.h"

// What a plain segment says.
struct plain {
	uint32_t ack, wnd; // wnd in bytes
	uint32_t acked; // of it new
	uint32_t len; // of data
	uint32_t ts_val;
	const uint8_t *data;
};

// Looks only. True = the segment is well-formed, in order, within the window, newer than what it
// follows, acknowledges nothing that was not sent, and brings data or acknowledges something.
static inline bool predicted(
	const struct tcp_conn *c, const uint8_t *segment, size_t len, struct plain *ret)
{
	size_t header_len = c->header_len;
	uint32_t word = get32(segment + offsetof(struct tcp_header, offset));
	uint32_t expected = (uint32_t)header_len << 26 | TCP_ACK << 16;
	uint32_t ignored = 0xf << 24 | TCP_PSH << 16 | UINT16_MAX; // reserved bits, window
	if (c->rare || (word & ~ignored) != expected || len < header_len || len > UINT16_MAX)
		return false;
	const uint8_t *opts = segment + TCP_HEADER_LEN;
	ret->ts_val = c->ts_on ? get32(opts + 4) : 0;
	if (c->ts_on && (get32(opts) != TCP_OPT_TS_HEAD || seq_lt(ret->ts_val, c->ts_recent)))
		return false;
	ret->ack = get32(segment + offsetof(struct tcp_header, ack));
	ret->acked = ret->ack - c->snd_una;
	ret->wnd = (word & UINT16_MAX) << c->snd_wscale;
	ret->len = (uint32_t)(len - header_len);
	ret->data = segment + header_len;
	return get32(segment + offsetof(struct tcp_header, seq)) == c->rcv_nxt &&
	       c->snd_nxt == c->snd_max && ret->acked <= c->snd_max - c->snd_una &&
	       ret->len <= c->rcv_adv - c->rcv_nxt && (ret->acked || ret->len) &&
	       (c->stack->verified || tcp_csum_segment(c->flow_sum, segment, len) == 0);
}

// As advance() of ack.c for a connection without losses, probes and FINs. The owner may do anything
// when told of room.
static inline void acknowledge(struct tcp_conn *c, const struct plain *p)
{
	struct tcp_stack *s = c->stack;
	bool had_room = c->sendq.len < s->conf.send_limit;
	uint64_t rtt;
	if (c->last.next || c->last.fate) { // the timestamp echoed is the last word before the data
		rtt = tcp_sent_measure(c, c->ts_on ? get32(p->data - 4) : 0, p->acked);
		tcp_sent_acked(c, p->ack, NULL);
	} else { // one run, the same in short
		rtt = tcp_now(s) - c->last.sent_ns;
		tcp_rtt_sample(c, rtt, p->acked);
		c->last.seq = p->ack;
	}
	if (c->cwnd_limited || c->cwnd_used)
		tcp_cwnd_grow(c, p->acked, rtt);
	if (c->cursor.offset <= p->acked)
		c->cursor = (struct buf_cursor){0};
	else
		c->cursor.offset -= p->acked;
	buf_consume(&c->sendq, s->chunks, p->acked);
	c->snd_una = p->ack;
	tcp_ack_trail(c);
	c->progress_ns = tcp_now(s);
	if (c->snd_una == c->snd_max)
		tcp_timer_stop(c, TCP_TIMER_RTX);
	else
		tcp_rtx_start(c);
	if (!had_room || !c->sendq.len)
		c->ops->on_send_room(c, c->user);
}

bool tcp_fast_path_input(struct tcp_conn *c, const uint8_t *segment, size_t len)
{
	struct plain p;
	if (!predicted(c, segment, len, &p))
		return false;
	uint64_t now = tcp_now(c->stack);
	uint32_t seq = c->rcv_nxt;
	bool probing = c->snd_nxt == c->snd_una;
	tcp_conn_hold(c);
	c->heard_ns = now;
	if (c->ts_on && seq == c->rcv_acked) // RFC 7323 4.3
		c->ts_recent = p.ts_val;
	if (p.acked)
		acknowledge(c, &p);
	if (!c->dead) {
		if (probing)
			c->progress_ns = now;
		tcp_ack_window(c, seq, p.ack, p.wnd);
		if (tcp_output_pending(c))
			tcp_conn_mark_dirty(c);
		if (p.len)
			tcp_recv_in_order(c, p.data, p.len);
	}
	tcp_conn_unhold(c);
	return true;
}

bool tcp_fast_path_send(struct tcp_conn *c, uint32_t len)
{
	struct tcp_stack *s = c->stack;
	uint64_t now = tcp_now(s);
	uint32_t edge, seq = c->snd_nxt, sent = seq - c->snd_una;
	struct tcp_room room;
	DCHECK(!c->rare && seq == c->snd_max && len && sent + len <= c->sendq.len);
	if (!tcp_build_begin(s, &c->flow, c->header_len, len, &room))
		return false;
	if (c->cursor.offset != sent)
		buf_cursor_set(&c->sendq, &c->cursor, sent);
	buf_cursor_read(&c->sendq, &c->cursor, room.p + c->header_len, len);
	uint8_t flags = sent + len == c->sendq.len ? TCP_ACK | TCP_PSH : TCP_ACK;
	tcp_build_header(&room, &c->flow, seq, c->rcv_nxt, flags, tcp_build_window(c, &edge));
	if (c->ts_on)
		tcp_build_timestamps(&room, tcp_ts_now(c), c->ts_recent);
	tcp_build_emit(s, &c->flow, c->flow_sum, &room, len, c->ecn_on);
	tcp_build_done(c, edge);
	counter_add(&s->counters[TCP_bytes_out], len);
	tcp_sent_new(c, now);
	c->snd_nxt = c->snd_max = seq + len;
	if (!sent)
		c->progress_ns = now;
	return true;
}

// Does it matter to congestion control that so many bytes are in flight? output.c looks at it then.
static inline bool fills_cwnd(const struct tcp_conn *c, uint32_t flight)
{
	return 2 * flight > c->cc.cwnd && (flight > c->cc.cwnd || c->cc.cwnd < c->cc.ssthresh);
}

bool tcp_fast_path_output(struct tcp_conn *c, enum tcp_output_result *ret)
{
	uint32_t sent = c->snd_nxt - c->snd_una, queued = (uint32_t)c->sendq.len;
	uint32_t len = queued - sent;
	bool idle = !sent && tcp_now(c->stack) - c->last.sent_ns > c->rto_ns;
	if (c->rare || c->snd_nxt != c->snd_max || !len || len > c->mss || queued > c->snd_wnd ||
		fills_cwnd(c, queued) || idle || tcp_pace_applies(c, queued))
		return false;
	if (!tcp_fast_path_send(c, len)) {
		*ret = TCP_OUTPUT_BLOCKED;
		return true;
	}
	if (!sent || !c->deadlines[TCP_TIMER_RTX] || tcp_may_probe_tail(c)) // RFC 8985 7.2
		tcp_rtx_start(c);
	*ret = TCP_OUTPUT_DONE;
	return true;
}
