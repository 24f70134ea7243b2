// SPDX-License-Identifier: Apache-2.0
// The peer's data on its way to the owner. In the normal case the owner reads it right out of the
// segment; what it leaves is kept in recvq and counts against the window until it is taken.
#include "dataplane/tcp/ooo.h"
#include "dataplane/tcp/tcp_internal.h"

#define QUICK_OUT 0x40 // one of the start waits for its time

uint32_t tcp_recv_edge(const struct tcp_conn *c)
{
	uint32_t window = c->stack->conf.recv_window;
	if (c->other_window)
		window = tcp_window_other(c);
	uint32_t kept = (uint32_t)c->recvq.len;
	return c->rcv_nxt + (kept < window ? window - kept : 0);
}

static void ack_soon(struct tcp_conn *c)
{
	c->ack_due = true;
	tcp_conn_mark_dirty(c);
}

void tcp_recv_ack_late(struct tcp_conn *c)
{
	c->quick_acks &= (uint8_t)~QUICK_OUT;
	ack_soon(c);
}

// A peer that begins, or that has lost something, may have a window of one segment, and nothing to
// send until that is acknowledged. Who repairs a loss is told at once: on a short path a
// millisecond is many round trips. At the start an answer may take the ACK along, and once one did
// others will.
static __attribute__((noinline)) void ack_quickly(struct tcp_conn *c)
{
	uint8_t left = c->quick_acks - 1u;
	uint64_t delay = TCP_QUICK_ACK;
	if (!(c->quick_acks & TCP_QUICK_START)) {
		c->quick_acks = left;
		ack_soon(c);
		return;
	}
	if (left & QUICK_OUT) {
		left = 0;
		delay = TCP_DELAYED_ACK;
	} else {
		left = left != TCP_QUICK_START ? left | QUICK_OUT : 0;
	}
	c->quick_acks = left;
	tcp_timer_set(c, TCP_TIMER_ACK, tcp_now(c->stack) + delay);
}

void tcp_conn_will_answer(struct tcp_conn *c)
{
	if (c->quick_acks & TCP_QUICK_START)
		c->quick_acks = 0;
}

// Returns what the owner consumed; the connection may be dead after it.
static size_t give(struct tcp_conn *c, const uint8_t *data, size_t len)
{
	c->delivering = true;
	c->resume_asked = false;
	size_t n = c->ops->on_data(c, c->user, data, len);
	c->delivering = false;
	CHECK(n <= len);
	if (n < len && !c->dead) {
		c->paused = true;
		if (c->resume_asked) // with the timers, so that this cannot go round in circles
			tcp_timer_set(c, TCP_TIMER_RESUME, tcp_now(c->stack));
	}
	return n;
}

// Gives the owner what was kept, and after that the end.
static void drain(struct tcp_conn *c)
{
	while (!c->paused && c->recvq.len) {
		size_t len;
		const uint8_t *piece = buf_peek(&c->recvq, &len);
		size_t n = give(c, piece, len);
		if (c->dead)
			return;
		buf_consume(&c->recvq, c->stack->chunks, n);
	}
	if (c->fin_received && !c->recvq.len && !c->eof_told) {
		c->eof_told = true;
		c->ops->on_eof(c, c->user);
	}
}

// What its owner does not take. Of a peer that asks, and is not asked, it takes none of the last
// chunks, which are for answers. False = there is no room.
static bool keep(struct tcp_conn *c, const uint8_t *data, size_t len)
{
	struct pool *chunks = c->stack->chunks;
	return !(c->passive && buf_is_short(chunks)) && buf_append(&c->recvq, chunks, data, len);
}

void tcp_recv_in_order(struct tcp_conn *c, const uint8_t *data, uint32_t len)
{
	struct tcp_stack *s = c->stack;
	size_t n = 0;
	if (!c->recvq.len && !c->paused) {
		n = give(c, data, len);
		if (c->dead)
			return;
	}
	if (n < len && !keep(c, data + n, len - n)) {
		tcp_drop(s, TCP_drop_no_chunk);
		len = (uint32_t)n; // the peer sends the rest again
		ack_soon(c);
	}
	uint32_t before = c->rcv_nxt;
	c->rcv_nxt += len;
	if ((before ^ c->rcv_nxt) >> TCP_MEASURE_SHIFT)
		tcp_window_measure(c);
	counter_add(&s->counters[TCP_bytes_in], len);
	if (c->ranges) { // RFC 5681 4.2: at once when a hole is filled, whole or in part
		tcp_ooo_pull(c);
		ack_soon(c);
	} else if (++c->n_unacked >= 2) {
		ack_soon(c);
	} else if (!c->deadlines[TCP_TIMER_ACK]) {
		if (c->quick_acks)
			ack_quickly(c);
		else
			tcp_timer_set(c, TCP_TIMER_ACK, tcp_now(s) + TCP_DELAYED_ACK);
	}
}

static void out_of_order(struct tcp_conn *c, const struct tcp_seg *seg, uint32_t len,
	struct tcp_sack_block *ret_twice)
{
	if (len && tcp_ooo_insert(c, seg->seq, seg->data, len, ret_twice))
		tcp_count(c->stack, TCP_out_of_order);
	c->quick_acks = TCP_QUICK_ACKS;
	if (c->sack_on) // blocks tell more than the number of duplicates
		c->sack_due = true;
	else if (c->n_dup_acks_due < UINT8_MAX)
		c->n_dup_acks_due++;
	tcp_conn_mark_dirty(c);
}

// A peer that ends before what it sent contradicts itself: what is right it sends again.
static void forget_beyond(struct tcp_conn *c, uint32_t fin_seq)
{
	const struct tcp_range *last = c->ranges;
	while (last && last->next)
		last = last->next;
	if (!last || seq_le(last->seq + (uint32_t)last->data.len, fin_seq))
		return;
	tcp_drop(c->stack, TCP_drop_after_fin);
	tcp_ooo_clear(c);
}

void tcp_recv_input(struct tcp_conn *c, const struct tcp_seg *seg, struct tcp_sack_block *ret_twice)
{
	uint32_t len = seg->len;
	if (seg->flags & TCP_FIN && !c->fin_seen) {
		c->fin_seen = true;
		c->fin_seq = seg->seq + seg->len;
		forget_beyond(c, c->fin_seq);
	}
	if (c->fin_seen && seq_lt(c->fin_seq, seg->seq + len)) {
		tcp_drop(c->stack, TCP_drop_after_fin);
		ack_soon(c);
		len = seq_lt(seg->seq, c->fin_seq) ? c->fin_seq - seg->seq : 0;
		if (!len)
			return;
	}
	if (seg->seq != c->rcv_nxt) {
		out_of_order(c, seg, len, ret_twice);
		return;
	}
	if (len)
		tcp_recv_in_order(c, seg->data, len);
	if (c->dead)
		return;
	if (c->fin_seen && !c->fin_received && c->rcv_nxt == c->fin_seq) {
		c->rcv_nxt++;
		c->fin_received = true;
		ack_soon(c);
	}
	drain(c);
}

bool tcp_recv_resume(struct tcp_conn *c)
{
	if (c->delivering) {
		c->resume_asked = true;
		return false;
	}
	if (!c->paused)
		return false;
	c->paused = false;
	drain(c);
	if (c->dead || (c->fin_acked && c->eof_told)) // no window is of use any more
		return true;
	uint32_t window = c->stack->conf.recv_window;
	int32_t opened = seq_diff(tcp_recv_edge(c), c->rcv_adv);
	if (opened >= (int32_t)min_u32(c->our_mss, window / 2))
		ack_soon(c);
	return true;
}
