// SPDX-License-Identifier: Apache-2.0
// A segment comes in: parsed, checked, brought to its connection, and there tested in the order of
// RFC 9293 3.10.7 as hardened by RFC 5961 and RFC 7323. What passes goes to ack.c and recv.c.
#include "dataplane/tcp/csum.h"
#include "dataplane/tcp/recovery.h"
#include "dataplane/tcp/timewait.h"
#include "lb/base/time.h"

#define PAWS_IDLE_NS (24 * 24 * 3600 * NS_PER_SECOND) // RFC 7323 5.5: then ts_recent means nothing

// False = malformed. Blocks that are not there are not written: n_sack says which are.
static inline bool options(const uint8_t *p, size_t len, struct tcp_opts *ret)
{
	if (len != 0 && (len != TCP_OPT_TS_LEN || get32(p) != TCP_OPT_TS_HEAD))
		return tcp_opts_parse(p, len, ret);
	ret->has_mss = ret->has_wscale = ret->sack_ok = false;
	ret->wscale = ret->n_sack = 0;
	ret->mss = 0;
	ret->has_ts = len != 0;
	ret->ts_val = len ? get32(p + 4) : 0;
	ret->ts_ecr = len ? get32(p + 8) : 0;
	return true;
}

// Senders that leave a checksum to hardware put the pseudo-header's sum there.
static bool is_unmade(uint16_t flow_sum, const uint8_t *segment, size_t len)
{
	uint16_t field, inverse = tcp_csum_rest(flow_sum, 0, len, NULL, 0);
	memcpy(&field, segment + offsetof(struct tcp_header, checksum), sizeof(field));
	return (field ^ inverse) == UINT16_MAX;
}

// len >= TCP_HEADER_LEN, ports in the flow; flow_sum: tcp_csum_flow() of its addresses. True =
// well-formed.
static inline bool parse(struct tcp_stack *s, const struct tcp_flow *flow, uint16_t flow_sum,
	const uint8_t *segment, size_t len, struct tcp_seg *ret)
{
	uint8_t flags = segment[offsetof(struct tcp_header, flags)];
	size_t header_len = (size_t)(segment[offsetof(struct tcp_header, offset)] >> 4) * 4;
	if (header_len < TCP_HEADER_LEN || header_len > len || len > UINT16_MAX) {
		tcp_drop(s, TCP_drop_offset);
		return false;
	}
	if (!s->verified && tcp_csum_segment(flow_sum, segment, len) != 0) {
		bool unmade = is_unmade(flow_sum, segment, len);
		tcp_drop(s, unmade ? TCP_drop_checksum_unmade : TCP_drop_checksum);
		return false;
	}
	if (!flow->remote_port || !flow->local_port ||
		(flow->remote_port == flow->local_port && ip_eq(&flow->remote, &flow->local))) {
		tcp_drop(s, TCP_drop_port);
		return false;
	}
	ret->seq = get32(segment + offsetof(struct tcp_header, seq));
	ret->ack = get32(segment + offsetof(struct tcp_header, ack));
	ret->wnd = get16(segment + offsetof(struct tcp_header, window));
	ret->len = (uint32_t)(len - header_len);
	ret->flags = flags;
	ret->old = ret->marked = false;
	ret->data = segment + header_len;
	if (flags & TCP_SYN && flags & (TCP_FIN | TCP_RST)) {
		tcp_drop(s, TCP_drop_flags);
		return false;
	}
	if (!options(segment + TCP_HEADER_LEN, header_len - TCP_HEADER_LEN, &ret->opts)) {
		tcp_drop(s, TCP_drop_options);
		return false;
	}
	return true;
}

// A peer that opens a connection has left the one that waits here.
static void leave_to_front(struct tcp_stack *s, struct tcp_tw *tw)
{
	if (tw)
		tcp_tw_forget(s, tw);
	tcp_drop(s, TCP_drop_company);
}

// What was ours lately, or comes to where somebody listens, nobody else gets.
static bool pass(struct tcp_stack *s, const struct tcp_flow *flow, const struct tcp_tw *tw)
{
	if (tw || !s->conf.pass || tcp_listener_find(s, &flow->local, flow->local_port) ||
		!s->conf.pass(s->conf.pass_ctx, flow))
		return false;
	tcp_drop(s, TCP_drop_passed);
	return true;
}

static void input_without_conn(
	struct tcp_stack *s, const struct tcp_flow *flow, uint32_t hash, struct tcp_seg *seg)
{
	uint32_t iss_floor;
	const uint32_t *floor = NULL;
	struct tcp_tw *tw = tcp_tw_find(s, flow, hash);
	bool syn = (seg->flags & (TCP_SYN | TCP_ACK | TCP_RST)) == TCP_SYN;
	if (syn && s->company >= LB_BEHIND) {
		leave_to_front(s, tw);
		return;
	}
	if (syn && s->hushed) {
		if (!pass(s, flow, tw))
			tcp_drop(s, TCP_drop_hushed);
		return;
	}
	bool listening = syn && tcp_listener_find(s, &flow->local, flow->local_port);
	if (tw) {
		if (!tcp_tw_input(s, tw, seg, &iss_floor))
			return;
		floor = &iss_floor;
	}
	if (listening) {
		tcp_listener_syn(s, flow, hash, seg, floor);
	} else if (!tw && !(seg->flags & TCP_RST) && tcp_listener_cookie(s, flow, hash, seg)) {
		return;
	} else if (s->company != LB_ALONE && !syn) {
		tcp_drop(s, TCP_drop_company); // it may be another's: nobody else is to see it
	} else if (pass(s, flow, tw)) {
		return;
	} else if (seg->flags & TCP_RST) {
		tcp_drop(s, TCP_drop_stray_rst);
	} else {
		tcp_drop(s, TCP_drop_no_connection);
		tcp_output_rst_reply(s, flow, seg);
	}
}

void tcp_stack_set_verified(struct tcp_stack *s, bool verified)
{
	s->verified = verified;
}

void tcp_stack_set_overhead(struct tcp_stack *s, uint32_t overhead)
{
	s->overhead = overhead;
}

// len >= TCP_HEADER_LEN.
static inline void take_ports(struct tcp_flow *flow, const uint8_t *segment)
{
	flow->remote_port = get16(segment + offsetof(struct tcp_header, src_port));
	flow->local_port = get16(segment + offsetof(struct tcp_header, dst_port));
}

bool tcp_stack_knows(struct tcp_stack *s, struct tcp_flow *flow, const uint8_t *segment, size_t len)
{
	uint32_t hash;
	if (len < TCP_HEADER_LEN || segment[offsetof(struct tcp_header, flags)] & TCP_SYN)
		return true;
	take_ports(flow, segment);
	// In company what is unknown here may be another one's, who hears it, too (FL-04).
	if (s->company != LB_ALONE || tcp_conn_find(s, flow, &hash) || tcp_tw_find(s, flow, hash))
		return true;
	struct tcp_seg seg = {.seq = get32(segment + offsetof(struct tcp_header, seq)),
		.ack = get32(segment + offsetof(struct tcp_header, ack)),
		.flags = segment[offsetof(struct tcp_header, flags)]};
	return tcp_listener_is_cookie(s, flow, &seg);
}

void tcp_stack_hush(struct tcp_stack *s)
{
	s->hushed = true;
}

static inline __attribute__((always_inline)) void input(
	struct tcp_stack *s, struct tcp_flow *flow, const uint8_t *segment, size_t len, bool marked)
{
	struct tcp_seg seg;
	tcp_count(s, TCP_segments_in);
	if (len < TCP_HEADER_LEN) {
		tcp_drop(s, TCP_drop_short);
		return;
	}
	if (!s->verified)
		tcp_count(s, TCP_checksums_by_software);
	take_ports(flow, segment);
	uint32_t hash;
	struct tcp_conn *c = tcp_conn_find(s, flow, &hash);
	if (c && !marked && tcp_fast_path_input(c, segment, len))
		return;
	uint16_t flow_sum = c ? c->flow_sum : tcp_csum_flow(&flow->local, &flow->remote);
	if (!parse(s, flow, flow_sum, segment, len, &seg))
		return;
	if (!c) {
		input_without_conn(s, flow, hash, &seg);
		return;
	}
	seg.marked = marked;
	tcp_conn_hold(c);
	tcp_conn_input(c, &seg);
	tcp_conn_unhold(c);
}

void tcp_stack_input(struct tcp_stack *s, struct tcp_flow *flow, const uint8_t *segment, size_t len)
{
	input(s, flow, segment, len, false);
}

__attribute__((cold)) void tcp_stack_input_marked(
	struct tcp_stack *s, struct tcp_flow *flow, const uint8_t *segment, size_t len)
{
	input(s, flow, segment, len, true);
}

static void ack_soon(struct tcp_conn *c)
{
	c->ack_due = true;
	tcp_conn_mark_dirty(c);
}

// An ACK for something that may be forged or part of a loop: one per connection and half second
// (RFC 5961 7, but not shared between connections, which CVE-2016-5696 exploits).
static void challenge(struct tcp_conn *c)
{
	uint64_t now = tcp_now(c->stack);
	if (now < c->challenge_ns)
		return;
	c->challenge_ns = now + TCP_CHALLENGE_NS;
	tcp_count(c->stack, TCP_challenge_acks);
	ack_soon(c);
}

// The handshake is complete. False = the connection is gone.
static bool become_open(struct tcp_conn *c, const struct tcp_seg *seg)
{
	struct tcp_stack *s = c->stack;
	uint64_t now = tcp_now(s);
	if (c->timing)
		tcp_rtt_sample(c, now == c->last.sent_ns ? 1 : now - c->last.sent_ns, 0);
	else if (!tcp_rtt_sample_echo(c, seg->opts.ts_ecr, 0) && c->n_backoff)
		c->rto_ns = TCP_RTO_AFTER_SYN_LOSS;
	if (c->n_backoff > 1) // RFC 6928 2: one loss may be chance
		c->cc.cwnd = c->mss;
	if (c->passive)
		s->n_half_open--;
	c->state = TCP_OPEN;
	c->timing = c->syn_due = false;
	c->n_backoff = 0;
	c->snd_una = c->last.seq = c->rack_end = c->iss + 1;
	c->progress_ns = c->heard_ns = c->min_rtt_since_ns = now;
	tcp_timer_stop(c, TCP_TIMER_PATIENCE);
	tcp_timer_stop(c, TCP_TIMER_RTX);
	if (tcp_output_pending(c))
		tcp_conn_mark_dirty(c);
	c->told = true;
	if (c->passive)
		return tcp_listener_accept(c);
	c->ops->on_established(c, c->user);
	return !c->dead;
}

// RFC 9293 3.10.7.3.
static void syn_sent_input(struct tcp_conn *c, const struct tcp_seg *seg)
{
	struct tcp_stack *s = c->stack;
	bool acked = seg->flags & TCP_ACK && seg->ack == c->snd_max;
	if (seg->flags & TCP_ACK && !acked) {
		tcp_drop(s, TCP_drop_syn_sent);
		if (!(seg->flags & TCP_RST))
			tcp_output_rst_reply(s, &c->flow, seg);
		return;
	}
	if (seg->flags & TCP_RST && acked) {
		tcp_conn_close(c, TCP_CLOSE_REFUSED);
		return;
	}
	if (!(seg->flags & TCP_SYN) || seg->flags & TCP_RST) {
		tcp_drop(s, TCP_drop_syn_sent);
		return;
	}
	tcp_conn_take_syn(c, seg);
	if (acked) {
		ack_soon(c);
		(void)!become_open(c, seg);
	} else { // both sides opened at once
		c->state = TCP_SYN_RECEIVED;
		c->syn_due = true;
		tcp_conn_mark_dirty(c);
	}
}

// RFC 5961 3.2.
static void rst_input(struct tcp_conn *c, const struct tcp_seg *seg)
{
	if (seg->seq != c->rcv_nxt) {
		tcp_drop(c->stack, TCP_drop_rst_sequence);
		if (seq_lt(c->rcv_nxt, seg->seq) && seq_lt(seg->seq, c->rcv_adv))
			challenge(c);
		return;
	}
	if (c->fin_acked && c->fin_received) { // TIME_WAIT, but for bytes not read yet: RFC 1337
		tcp_drop(c->stack, TCP_drop_time_wait);
		return;
	}
	if (c->state == TCP_SYN_RECEIVED)
		tcp_conn_close(c, TCP_CLOSE_REFUSED);
	else
		tcp_conn_close(c, TCP_CLOSE_RESET);
}

// RFC 5961 4.2.
static void syn_input(struct tcp_conn *c, const struct tcp_seg *seg)
{
	if (c->state == TCP_SYN_RECEIVED && seg->seq == c->irs) {
		if (seg->flags & TCP_ACK) // both opened at once; an ACK ends it
			c->ack_due = true;
		else // our SYN-ACK was lost
			c->syn_due = true;
		tcp_conn_mark_dirty(c);
		return;
	}
	tcp_drop(c->stack, TCP_drop_syn);
	challenge(c);
}

// RFC 7323 5.3 drops it, as a duplicate from before the numbers wrapped. But a bare ACK where the
// peer is now, older by RTO at most, that acknowledges nothing new was overtaken by another ACK and
// is true: what it reports beyond a hole may be news.
static bool was_overtaken(const struct tcp_conn *c, const struct tcp_seg *seg)
{
	uint32_t older_ms = c->ts_recent - seg->opts.ts_val;
	return c->state == TCP_OPEN && !seg->len && !(seg->flags & TCP_FIN) &&
	       seg->flags & TCP_ACK && seg->seq == c->rcv_nxt && seq_le(seg->ack, c->snd_una) &&
	       older_ms <= c->rto_ns / NS_PER_MS;
}

static struct tcp_sack_block whole(const struct tcp_seg *seg)
{
	return (struct tcp_sack_block){seg->seq, seg->seq + seg->len};
}

// RFC 2883 4: the peer hears of each segment that came twice, once; those that follow one another
// in a turn are one block.
static void report_twice(struct tcp_conn *c, struct tcp_sack_block twice)
{
	c->quick_acks = TCP_QUICK_ACKS;
	if (!c->sack_on)
		return;
	if (c->dsack_due && twice.start == c->dsack.end)
		twice.start = c->dsack.start;
	else if (c->dsack_due)
		tcp_output_blocks(c);
	c->dsack = twice;
	c->dsack_due = c->sack_due = true;
}

static __attribute__((noinline)) void input_old_timestamp(struct tcp_conn *c, struct tcp_seg *seg)
{
	if (was_overtaken(c, seg)) {
		seg->old = true;
		(void)!tcp_ack_input(c, seg);
		return;
	}
	tcp_drop(c->stack, TCP_drop_old_timestamp);
	uint32_t before = c->rcv_nxt - seg->seq;
	if (seg->len && before >= seg->len && before <= c->rcv_wnd)
		report_twice(c, whole(seg)); // what was sent first comes after its repetition
	if (seg->len)
		ack_soon(c);
	else
		challenge(c);
}

// RFC 7323 3.2 and 5.3. False = there is nothing left to do.
static bool check_timestamp(struct tcp_conn *c, struct tcp_seg *seg)
{
	uint64_t now = tcp_now(c->stack);
	if (!c->ts_on)
		return true;
	if (!seg->opts.has_ts) {
		tcp_drop(c->stack, TCP_drop_no_timestamp);
		return false;
	}
	if (seq_lt(seg->opts.ts_val, c->ts_recent) && now - c->heard_ns < PAWS_IDLE_NS) {
		input_old_timestamp(c, seg);
		return false;
	}
	return true;
}

// A segment wholly before the window. False = drop.
static bool take_old(struct tcp_conn *c, struct tcp_seg *seg, uint32_t before)
{
	tcp_drop(c->stack, TCP_drop_old);
	if (seg->len)
		report_twice(c, whole(seg));
	if (seg->len || seg->flags & TCP_FIN) // a retransmission: our ACK was lost
		ack_soon(c);
	else // a probe or keep-alive, or half of a loop of ACKs
		challenge(c);
	// Its acknowledgement is as good as any. Two ends that repeat themselves, each because the
	// other's ACK was lost, would else never hear each other. A peer repeats at most a window.
	seg->old = true;
	seg->len = 0;
	seg->flags &= (uint8_t)~TCP_FIN;
	return c->state == TCP_OPEN && before <= c->rcv_wnd;
}

// RFC 9293 3.10.7.4, first. Cuts off what is outside of the window; false = drop.
static bool trim(struct tcp_conn *c, struct tcp_seg *seg)
{
	int32_t before = seq_diff(c->rcv_nxt, seg->seq);
	uint32_t fin = seg->flags & TCP_FIN ? 1 : 0;
	if (before > 0) {
		if ((uint32_t)before >= seg->len + fin)
			return take_old(c, seg, (uint32_t)before);
		seg->data += before;
		seg->len -= (uint32_t)before;
		seg->seq = c->rcv_nxt;
		ack_soon(c);
	}
	// A bare ACK at the right edge is fine: it was sent after what filled the window.
	int32_t beyond = seq_diff(seg->seq + seg->len + fin, c->rcv_adv);
	if (beyond <= 0)
		return true;
	tcp_drop(c->stack, TCP_drop_beyond_window);
	if (seg->seq != c->rcv_nxt && seq_diff(seg->seq, c->rcv_adv) > 0) {
		challenge(c);
		return false;
	}
	ack_soon(c); // says where the window is
	uint32_t excess = (uint32_t)beyond - fin;
	seg->flags &= (uint8_t)~TCP_FIN;
	seg->len -= min_u32(excess, seg->len);
	return true;
}

// RFC 5961 5.2. False = drop.
static bool check_ack(struct tcp_conn *c, const struct tcp_seg *seg)
{
	if (!(seg->flags & TCP_ACK)) {
		tcp_drop(c->stack, TCP_drop_no_ack);
		return false;
	}
	if (c->state == TCP_SYN_RECEIVED && seg->ack != c->snd_max) {
		tcp_drop(c->stack, TCP_drop_ack_unsent);
		tcp_output_rst_reply(c->stack, &c->flow, seg);
		return false;
	}
	if (seq_lt(c->snd_max, seg->ack)) {
		tcp_drop(c->stack, TCP_drop_ack_unsent);
		challenge(c);
		return false;
	}
	if (seq_lt(seg->ack, c->snd_una - c->max_snd_wnd)) {
		tcp_drop(c->stack, TCP_drop_ack_old);
		challenge(c);
		return false;
	}
	return true;
}

void tcp_conn_input(struct tcp_conn *c, struct tcp_seg *seg)
{
	if (c->state == TCP_SYN_SENT) {
		syn_sent_input(c, seg);
		return;
	}
	if (seg->flags & TCP_RST) {
		rst_input(c, seg);
		return;
	}
	if (seg->flags & TCP_SYN) {
		syn_input(c, seg);
		return;
	}
	if (!check_timestamp(c, seg))
		return;
	uint32_t seq = seg->seq, len = seg->len; // before trimming: RFC 7323 4.3 compares it
	if (!trim(c, seg) || !check_ack(c, seg))
		return;
	c->heard_ns = tcp_now(c->stack);
	// RFC 7323 5.3, R3: not of data that is here already, which may have overtaken what left
	// before it.
	if (c->ts_on && seq_le(seq, c->rcv_acked) && !(seg->old && len))
		c->ts_recent = seg->opts.ts_val;
	if (c->state == TCP_SYN_RECEIVED) {
		c->snd_wnd = seg->wnd << c->snd_wscale;
		c->snd_wl1 = seg->seq;
		c->snd_wl2 = seg->ack;
		if (!become_open(c, seg))
			return;
	}
	tcp_ecn_ack(c, seg);
	if (!tcp_ack_input(c, seg))
		return;
	if (tcp_conn_is_done(c))
		tcp_conn_finish(c);
	if (c->dead || (!seg->len && !(seg->flags & TCP_FIN)))
		return;
	tcp_ecn_data(c, seg);
	struct tcp_sack_block twice = {0};
	tcp_recv_input(c, seg, &twice);
	if (twice.start != twice.end)
		report_twice(c, twice);
	if (!c->dead && tcp_conn_is_done(c))
		tcp_conn_finish(c);
}
