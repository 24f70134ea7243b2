// SPDX-License-Identifier: Apache-2.0
// TIME_WAIT (RFC 9293 3.6.1): a small record instead of the control block. All wait equally long,
// so a list in order of entry and one timer serve for all.
#include "dataplane/tcp/timewait.h"

#include "lb/base/container_of.h"
#include "lb/base/time.h"

static struct tcp_tw *oldest(const struct tcp_stack *s)
{
	return list_empty(&s->tw_order) ? NULL
	                                : CONTAINER_OF(s->tw_order.next, struct tcp_tw, order);
}

static void tw_remove(struct tcp_stack *s, struct tcp_tw *tw)
{
	struct tcp_tw **link = &s->tw_table[tw->hash & s->tw_mask];
	while (*link != tw)
		link = &(*link)->hash_next;
	*link = tw->hash_next;
	list_remove(&tw->order);
	pool_put(&s->tws, tw);
}

static void tw_wait(struct tcp_stack *s, struct tcp_tw *tw)
{
	tw->expires_ns = tcp_now(s) + TCP_TIME_WAIT_NS;
	list_append(&s->tw_order, &tw->order);
	if (!twheel_armed(&s->tw_timer))
		twheel_arm(s->wheel, &s->tw_timer, tw->expires_ns);
}

void tcp_tw_add(struct tcp_conn *c)
{
	struct tcp_stack *s = c->stack;
	if (!s->conf.max_time_wait)
		return;
	if (!pool_left(&s->tws)) {
		tcp_count(s, TCP_time_wait_evicted);
		tw_remove(s, oldest(s));
	}
	struct tcp_tw *tw = pool_take(&s->tws);
	uint32_t scaled = (c->rcv_adv - c->rcv_nxt) >> c->rcv_wscale;
	*tw = (struct tcp_tw){
		.hash = c->hash,
		.snd_nxt = c->snd_max,
		.rcv_nxt = c->rcv_nxt,
		.ts_recent = c->ts_recent,
		.ts_offset = c->ts_offset,
		.ts_on = c->ts_on,
		.awaits_fin = !c->fin_received,
		.window = (uint16_t)min_u32(scaled, UINT16_MAX),
		.flow = c->flow,
	};
	struct tcp_tw **bucket = &s->tw_table[c->hash & s->tw_mask];
	tw->hash_next = *bucket;
	*bucket = tw;
	tw_wait(s, tw);
}

// It waits since its last segment, and a connection that follows it has newer timestamps.
bool tcp_tw_may_go(const struct tcp_stack *s, const struct tcp_tw *tw)
{
	return tw->ts_on &&
	       tcp_now(s) + TCP_TIME_WAIT_NS >= tw->expires_ns + TCP_TIME_WAIT_REUSE_NS;
}

void tcp_tw_forget(struct tcp_stack *s, struct tcp_tw *tw)
{
	tw_remove(s, tw);
}

void tcp_tw_reuse(struct tcp_conn *c)
{
	struct tcp_tw *tw = tcp_tw_find(c->stack, &c->flow, c->hash);
	if (!tw)
		return;
	if (seq_le(c->iss, tw->snd_nxt))
		c->iss = tw->snd_nxt + UINT16_MAX;
	tcp_count(c->stack, TCP_time_wait_reused);
	tw_remove(c->stack, tw);
}

struct tcp_tw *tcp_tw_find(const struct tcp_stack *s, const struct tcp_flow *flow, uint32_t hash)
{
	struct tcp_tw *tw = s->tw_table[hash & s->tw_mask];
	while (tw && !(tw->hash == hash && tcp_flow_eq(&tw->flow, flow)))
		tw = tw->hash_next;
	return tw;
}

static void tw_acknowledge(struct tcp_stack *s, struct tcp_tw *tw)
{
	struct tcp_seg ack = {
		.seq = tw->snd_nxt, .ack = tw->rcv_nxt, .wnd = tw->window, .flags = TCP_ACK};
	if (tw->ts_on) {
		ack.opts.has_ts = true;
		ack.opts.ts_val = (uint32_t)(tcp_now(s) / NS_PER_MS) + tw->ts_offset;
		ack.opts.ts_ecr = tw->ts_recent;
	}
	if (tcp_may_answer(s, &tw->flow.remote))
		tcp_output_raw(s, &tw->flow, &ack);
}

// Of a connection that was let go (RFC 9293 3.10.7.4, FIN-WAIT-2): its end comes, or data, which
// nobody reads (RFC 1122 4.2.2.13). False = neither.
static bool end_half(struct tcp_stack *s, struct tcp_tw *tw, const struct tcp_seg *seg)
{
	bool is_fin = seg->flags & TCP_FIN && seg->seq == tw->rcv_nxt && !seg->len;
	bool is_data = seg->len && seq_lt(tw->rcv_nxt, seg->seq + seg->len);
	if (!(seg->flags & TCP_ACK) || seg->ack != tw->snd_nxt || !(is_fin || is_data))
		return false;
	if (is_data) {
		tcp_drop(s, TCP_drop_let_go);
		tcp_output_rst_reply(s, &tw->flow, seg);
		tw_remove(s, tw);
		return true;
	}
	tw->awaits_fin = false;
	tw->rcv_nxt++;
	if (tw->ts_on && seg->opts.has_ts)
		tw->ts_recent = seg->opts.ts_val;
	list_remove(&tw->order);
	tw_wait(s, tw);
	tw_acknowledge(s, tw);
	return true;
}

bool tcp_tw_input(
	struct tcp_stack *s, struct tcp_tw *tw, const struct tcp_seg *seg, uint32_t *ret_iss_floor)
{
	if (seg->flags & TCP_RST) { // RFC 1337: it must not end the wait
		tcp_drop(s, TCP_drop_time_wait);
		return false;
	}
	if ((seg->flags & (TCP_SYN | TCP_ACK)) == TCP_SYN) {
		// RFC 6191 2, and RFC 9293 3.6.1 (MAY-2) without timestamps.
		int32_t newer = tw->ts_on && seg->opts.has_ts
		                        ? seq_diff(seg->opts.ts_val, tw->ts_recent)
		                        : 0;
		if (newer > 0 || (newer == 0 && seq_lt(tw->rcv_nxt, seg->seq))) {
			tcp_count(s, TCP_time_wait_reused);
			*ret_iss_floor = tw->snd_nxt + 1;
			tw_remove(s, tw);
			return true;
		}
	}
	if (tw->awaits_fin && end_half(s, tw, seg))
		return false;
	tcp_drop(s, TCP_drop_time_wait);
	bool their_fin = seg->flags & TCP_FIN && seg->seq + seg->len + 1 == tw->rcv_nxt;
	if (their_fin) { // our last acknowledgement was lost: wait again
		list_remove(&tw->order);
		tw_wait(s, tw);
	} else if (tcp_now(s) < tw->challenge_ns) {
		return false;
	}
	tw->challenge_ns = tcp_now(s) + TCP_CHALLENGE_NS;
	tw_acknowledge(s, tw);
	return false;
}

void tcp_tw_fire(struct twheel_timer *t)
{
	struct tcp_stack *s = CONTAINER_OF(t, struct tcp_stack, tw_timer);
	struct tcp_tw *tw;
	while ((tw = oldest(s)) && tw->expires_ns <= tcp_now(s))
		tw_remove(s, tw);
	if (tw)
		twheel_arm(s->wheel, &s->tw_timer, tw->expires_ns);
}
