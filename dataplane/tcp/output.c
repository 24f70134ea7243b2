// SPDX-License-Identifier: Apache-2.0
// Segments out. A connection sends only here, once per turn, so that data, acknowledgement, window
// and FIN ride together.
#include "dataplane/tcp/build.h"
#include "dataplane/tcp/cwnd.h"
#include "dataplane/tcp/mss.h"
#include "dataplane/tcp/ooo.h"
#include "dataplane/tcp/pace.h"
#include "dataplane/tcp/sent.h"

// Any options, no data; flow_sum: tcp_csum_flow() of the flow's addresses.
static bool send_bare(struct tcp_stack *s, const struct tcp_flow *flow, uint16_t flow_sum,
	const struct tcp_seg *seg)
{
	struct tcp_room room;
	if (!tcp_build_begin(s, flow, TCP_HEADER_LEN + tcp_opts_len(&seg->opts), 0, &room))
		return false;
	tcp_build_header(&room, flow, seg->seq, seg->ack, seg->flags, seg->wnd);
	uint8_t *opts = room.p + TCP_HEADER_LEN;
	size_t len = tcp_opts_write(&seg->opts, opts);
	for (size_t i = 0; i < len; i += 4) {
		uint32_t word;
		memcpy(&word, opts + i, sizeof(word));
		room.sum += word;
	}
	tcp_build_emit(s, flow, flow_sum, &room, 0, false);
	return true;
}

void tcp_output_raw(struct tcp_stack *s, const struct tcp_flow *flow, const struct tcp_seg *seg)
{
	// Lost if no buffer comes: it is an answer to something that comes again.
	(void)!send_bare(s, flow, tcp_csum_flow(&flow->local, &flow->remote), seg);
}

// A source that may be forged decides how much we send, and to whom: not without bound. Who is in
// earnest asks again. A bound for all sources together would tell each how often others are
// answered, and so which connections they have (as CVE-2016-5696 and CVE-2020-25705).
bool tcp_may_answer(struct tcp_stack *s, const struct ip_addr *remote)
{
	static const struct gcra_limit limit = GCRA_LIMIT(1000, 1000);
	uint64_t words[2];
	memcpy(words, remote->b, sizeof(words));
	if (!ip_is_v4(remote)) // one host has all of a /64
		words[1] = 0;
	uint64_t place = siphash13(s->key, words, 2, UINT64_C(16) << 56) % TCP_ANSWER_PLACES;
	if (gcra_is_spent(&s->answers[place], &limit, tcp_now(s))) {
		tcp_count(s, TCP_answers_limited);
		return false;
	}
	return gcra_charge(&s->answers[place], &limit, tcp_now(s));
}

void tcp_output_rst_reply(
	struct tcp_stack *s, const struct tcp_flow *flow, const struct tcp_seg *in)
{
	struct tcp_seg rst = {.flags = TCP_RST};
	if (!tcp_may_answer(s, &flow->remote))
		return;
	if (in->flags & TCP_ACK) {
		rst.seq = in->ack;
	} else {
		rst.flags |= TCP_ACK;
		rst.ack = in->seq + in->len + (in->flags & TCP_SYN ? 1 : 0) +
		          (in->flags & TCP_FIN ? 1 : 0);
	}
	tcp_count(s, TCP_rsts_out);
	tcp_output_raw(s, flow, &rst);
}

// Highest sequence number that the peer takes for one of its window, for segments without data.
static uint32_t bare_seq(const struct tcp_conn *c)
{
	uint32_t edge = c->snd_una + c->snd_wnd;
	if (c->state != TCP_OPEN || seq_le(c->snd_max, edge))
		return c->snd_max;
	return seq_le(c->snd_nxt, edge) ? c->snd_nxt : edge;
}

void tcp_output_rst(struct tcp_conn *c)
{
	struct tcp_seg rst = {
		.seq = bare_seq(c),
		.ack = c->rcv_nxt,
		.flags = TCP_RST | TCP_ACK,
		.opts = {.has_ts = c->ts_on, .ts_val = tcp_ts_now(c), .ts_ecr = c->ts_recent},
	};
	tcp_count(c->stack, TCP_rsts_out);
	tcp_output_raw(c->stack, &c->flow, &rst);
}

// Without data: reports what came out of order or twice. False = no buffer.
static bool send_blocks(struct tcp_conn *c, uint32_t seq, uint8_t flags)
{
	uint32_t edge;
	struct tcp_seg seg = {
		.seq = seq,
		.ack = c->rcv_nxt,
		.wnd = tcp_build_window(c, &edge),
		.flags = TCP_ACK | flags,
		.opts = {.has_ts = c->ts_on, .ts_val = tcp_ts_now(c), .ts_ecr = c->ts_recent},
	};
	unsigned max = c->ts_on ? TCP_MAX_SACK_BLOCKS - 1 : TCP_MAX_SACK_BLOCKS;
	unsigned n = 0;
	if (c->dsack_due) { // RFC 2883 4: first, and behind it what it is part of
		seg.opts.sack[n++] = c->dsack;
		tcp_ooo_put_first(c, c->dsack.start);
	}
	c->dsack_due = false;
	n += tcp_ooo_blocks(c, seg.opts.sack + n, max - n);
	seg.opts.n_sack = (uint8_t)n;
	if (!send_bare(c->stack, &c->flow, c->flow_sum, &seg))
		return false;
	tcp_build_done(c, edge);
	return true;
}

void tcp_output_blocks(struct tcp_conn *c)
{
	uint8_t flags = c->ecn_echo ? TCP_ECE : 0;
	if (send_blocks(c, bare_seq(c), flags))
		tcp_count(c->stack, TCP_acks_out);
}

// len bytes of the send queue from seq on, and the flags. False = no buffer.
static bool send_segment(struct tcp_conn *c, uint32_t seq, uint32_t len, uint8_t flags)
{
	struct tcp_room room;
	uint32_t edge;
	if (c->ecn_echo && c->state == TCP_OPEN)
		flags |= TCP_ECE;
	// RFC 3168 6.1.4 to 6.1.6: no bare ACKs or probes of a window, and nothing that is sent
	// again may be marked.
	bool is_new = len && seq == c->snd_max && !c->probe_due;
	if (is_new && c->cwr_due)
		flags |= TCP_CWR;
	if (c->rare && !len && c->sack_on && (c->n_ranges || c->dsack_due))
		return send_blocks(c, seq, flags);
	if (!tcp_build_begin(c->stack, &c->flow, c->header_len, len, &room))
		return false;
	uint16_t wnd = tcp_build_window(c, &edge);
	tcp_build_header(&room, &c->flow, seq, c->rcv_nxt, TCP_ACK | flags, wnd);
	if (c->ts_on)
		tcp_build_timestamps(&room, tcp_ts_now(c), c->ts_recent);
	uint8_t *data = room.p + c->header_len;
	if (len && seq == c->snd_nxt) {
		if (c->cursor.offset != seq - c->snd_una) // snd_nxt has jumped
			buf_cursor_set(&c->sendq, &c->cursor, seq - c->snd_una);
		buf_cursor_read(&c->sendq, &c->cursor, data, len);
	} else if (len) {
		buf_copy_out(&c->sendq, seq - c->snd_una, data, len);
	}
	tcp_build_emit(c->stack, &c->flow, c->flow_sum, &room, len, is_new && c->ecn_on);
	if (is_new)
		c->cwr_due = false;
	tcp_build_done(c, edge);
	return true;
}

// Data, FIN or both from seq on, with all the bookkeeping. False = no buffer.
static bool send_data(struct tcp_conn *c, uint32_t seq, uint32_t len, bool fin)
{
	struct tcp_stack *s = c->stack;
	uint64_t now = tcp_now(s);
	uint32_t end = seq + len + fin;
	if (!c->rare && seq == c->snd_max) {
		bool start = c->snd_max == c->snd_una || !c->deadlines[TCP_TIMER_RTX];
		bool sent = tcp_fast_path_send(c, len);
		if (sent && start)
			tcp_rtx_start(c);
		return sent;
	}
	bool last = seq + len == c->snd_una + (uint32_t)c->sendq.len;
	uint8_t flags = (uint8_t)((fin ? TCP_FIN : 0) | (len && last ? TCP_PSH : 0));
	if (!send_segment(c, seq, len, flags))
		return false;
	bool regular = seq == c->snd_nxt;
	bool idle = c->snd_max == c->snd_una;
	if (seq_lt(seq, c->snd_max))
		tcp_sent_again(c, seq, seq_lt(c->snd_max, end) ? c->snd_max : end);
	if (seq_lt(c->snd_max, end)) {
		tcp_sent_new(c, now);
		counter_add(&s->counters[TCP_bytes_out], len);
		c->snd_max = end;
		if (len > c->mss)
			tcp_mss_probed(c, len, end);
	} else {
		tcp_count(s, TCP_retransmits);
		c->n_resent++;
		tcp_mss_resent(c, seq);
		if (c->in_recovery && c->sack_on) // RFC 6675 6: it has its time, too
			tcp_rtx_start(c);
	}
	if (idle)
		c->progress_ns = now;
	if (regular && (idle || !c->deadlines[TCP_TIMER_RTX]))
		tcp_rtx_start(c);
	if (regular)
		c->snd_nxt = end;
	c->prr_out += c->in_recovery ? end - seq : 0;
	c->fin_sent |= fin;
	return true;
}

// What to send next from snd_nxt on; false = nothing now.
static bool next_piece(struct tcp_conn *c, uint32_t *ret_len, bool *ret_fin)
{
	uint32_t gap = UINT32_MAX;
	if (c->has_reports && seq_lt(c->snd_nxt, c->snd_max)) // resending after a timeout
		c->snd_nxt = tcp_sent_gap(c, c->snd_nxt, &gap);
	if (!tcp_output_pending(c))
		return false;
	if (c->guessed_path)
		tcp_mss_learn(c);
	uint32_t sent = c->snd_nxt - c->snd_una;
	uint32_t unsent = (uint32_t)c->sendq.len - sent;
	uint32_t flight = tcp_sent_pipe(c);
	uint32_t cwnd = c->cc.cwnd;
	if (c->n_dup_acks && !c->in_recovery && !c->sack_on && c->n_dup_acks <= 2)
		cwnd += c->n_dup_acks * c->mss; // RFC 3042
	uint32_t wnd_room = c->snd_wnd > sent ? c->snd_wnd - sent : 0;
	uint32_t cwnd_room = cwnd > flight ? cwnd - flight : 0;
	uint32_t room = min_u32(wnd_room, cwnd_room);
	uint32_t most = c->guessed_path ? tcp_mss_piece(c, room) : c->mss;
	uint32_t wanted = min_u32(min_u32(unsent, gap), most);
	uint32_t len = min_u32(wanted, room);
	if (len < wanted) {
		bool limits = cwnd_room <= wnd_room;
		if (limits)
			tcp_cwnd_limits(c);
		// RFC 9293 3.8.6.2.1: a short segment only if it is half of all they ever offered.
		if (limits || len < c->max_snd_wnd / 2 || !len)
			return false;
	}
	if (len && tcp_pace_applies(c, flight + len) && tcp_pace_holds(c, len)) {
		if (min_u32((uint32_t)c->sendq.len, c->snd_wnd) >= cwnd) // it will be soon
			tcp_cwnd_limits(c);
		return false;
	}
	*ret_len = len;
	*ret_fin = c->shut && len == unsent && wnd_room > len;
	return len || *ret_fin;
}

// The oldest outstanding segment once more.
static bool resend_oldest(struct tcp_conn *c)
{
	uint32_t gap, sent = c->snd_max - c->snd_una;
	(void)tcp_sent_gap(c, c->snd_una, &gap);
	uint32_t len = min_u32(min_u32((uint32_t)c->sendq.len, c->mss), min_u32(sent, gap));
	bool fin = c->fin_sent && sent > len && len == c->sendq.len;
	return send_data(c, c->snd_una, len, fin);
}

// What is lost, as far as cwnd and the peer's window allow (RFC 6675 5, step C).
static enum tcp_output_result resend_lost(struct tcp_conn *c)
{
	uint32_t seq, len;
	for (unsigned n = 0; tcp_sent_next_lost(c, &seq, &len); n++) {
		uint32_t data_end = c->snd_una + (uint32_t)c->sendq.len;
		bool fin = c->fin_sent && seq_lt(data_end, seq + len);
		bool limits = c->cc.cwnd < tcp_sent_pipe(c) + len;
		if (limits)
			tcp_cwnd_limits(c);
		if (limits || seq_lt(c->snd_una + c->snd_wnd, seq + len))
			return TCP_OUTPUT_DONE;
		bool paced = tcp_pace_applies(c, tcp_sent_pipe(c) + len);
		if (paced && tcp_pace_holds(c, len))
			return TCP_OUTPUT_DONE;
		if (n == TCP_MAX_BURST)
			return TCP_OUTPUT_MORE;
		if (!send_data(c, seq, len - fin, fin))
			return TCP_OUTPUT_BLOCKED;
		if (paced)
			tcp_pace_sent(c, len);
	}
	return TCP_OUTPUT_DONE;
}

// What a small window allows, or one byte beyond a closed one, or the FIN (RFC 9293 3.8.6.1).
static bool send_probe(struct tcp_conn *c)
{
	uint32_t len = min_u32(max_u32(c->snd_wnd, 1), min_u32((uint32_t)c->sendq.len, c->mss));
	struct buf_cursor cursor = c->cursor;
	if (!send_data(c, c->snd_una, len, !len))
		return false;
	tcp_count(c->stack, TCP_window_probes);
	if (!c->snd_wnd) { // not in flight: the window decides what is sent next
		tcp_sent_lose_all(c);
		c->snd_nxt = c->snd_una;
		c->cursor = cursor;
	}
	return true;
}

// RFC 8985 7.3: something new if there is, else the last segment again, so that the peer's answer
// shows what is missing before the timeout does. cwnd does not hold it back.
static bool send_tail_probe(struct tcp_conn *c)
{
	uint32_t sent = tcp_sent(c), unsent = (uint32_t)c->sendq.len - sent;
	uint32_t len = min_u32(unsent, c->mss);
	bool old = !len || c->snd_wnd < sent + len;
	uint32_t seq = c->snd_una + sent;
	bool fin_alone =
		old && c->fin_sent && c->last.seq == seq && !(c->last.fate & TCP_RUN_SACKED);
	if (fin_alone)
		len = 0;
	else if (old)
		seq = tcp_sent_last_gap(c, seq, &len);
	bool fin = c->fin_sent && !unsent && seq + len == c->snd_una + sent;
	if (c->snd_nxt != c->snd_max || !(len || fin_alone))
		return true;
	if (!send_data(c, seq, len, fin))
		return false;
	c->tail_probe_out = true;
	c->tail_probe_old = old;
	c->tail_end = seq + len + fin;
	c->tail_ns = tcp_now(c->stack);
	tcp_count(c->stack, TCP_tail_probes);
	return true;
}

static enum tcp_output_result output_handshake(struct tcp_conn *c)
{
	struct tcp_stack *s = c->stack;
	bool reply = c->state == TCP_SYN_RECEIVED;
	if (!c->syn_due && !c->ack_due)
		return TCP_OUTPUT_DONE;
	if (!c->syn_due)
		return send_segment(c, c->snd_max, 0, 0) ? TCP_OUTPUT_DONE : TCP_OUTPUT_BLOCKED;
	struct tcp_seg seg = {
		.seq = c->iss,
		.ack = reply ? c->rcv_nxt : 0,
		.wnd = min_u32(s->conf.recv_window, UINT16_MAX),
		.flags = (uint8_t)((reply ? TCP_SYN | TCP_ACK : TCP_SYN) | tcp_ecn_of_syn(c)),
		.opts =
			{
				.has_mss = true,
				.mss = c->our_mss,
				.has_wscale = !reply || c->wscale_on,
				.wscale = s->rcv_wscale,
				.sack_ok = !reply || c->sack_on,
				.has_ts = !reply || c->ts_on,
				.ts_val = tcp_ts_now(c),
				.ts_ecr = reply ? c->ts_recent : 0,
			},
	};
	if (!send_bare(s, &c->flow, c->flow_sum, &seg))
		return TCP_OUTPUT_BLOCKED;
	c->syn_due = c->ack_due = false;
	if (!c->syn_sent) {
		c->syn_sent = true;
		c->last.sent_ns = tcp_now(s);
		c->timing = true;
	} else {
		tcp_count(s, TCP_retransmits);
		c->n_resent++;
		c->timing = false;
	}
	if (!c->deadlines[TCP_TIMER_RTX])
		tcp_rtx_start(c);
	return TCP_OUTPUT_DONE;
}

// Acknowledgements of what came out of order. False = no buffer.
static bool send_duplicates(struct tcp_conn *c)
{
	for (; c->n_dup_acks_due; c->n_dup_acks_due--) {
		if (!send_segment(c, bare_seq(c), 0, 0))
			return false;
		tcp_count(c->stack, TCP_acks_out);
	}
	while (c->sack_due) {
		if (!send_segment(c, bare_seq(c), 0, 0))
			return false;
		tcp_count(c->stack, TCP_acks_out);
		c->sack_due = tcp_ooo_unreported(c);
	}
	return true;
}

// What acknowledgements, not the timer, have shown to be lost.
static enum tcp_output_result send_again(struct tcp_conn *c)
{
	if (c->rtx_due) {
		if (!resend_oldest(c))
			return TCP_OUTPUT_BLOCKED;
		c->rtx_due = false;
	}
	if (!c->lost_bytes || c->frto == TCP_FRTO_NEW)
		return TCP_OUTPUT_DONE;
	return resend_lost(c);
}

static enum tcp_output_result send_new(struct tcp_conn *c)
{
	uint32_t len, max = c->snd_max;
	bool fin;
	if (c->lost_bytes && c->snd_nxt == c->snd_max && c->frto != TCP_FRTO_NEW)
		return TCP_OUTPUT_DONE; // what is lost goes first
	enum tcp_output_result result = TCP_OUTPUT_DONE;
	uint64_t silence = tcp_now(c->stack) - c->last.sent_ns;
	if (c->snd_una == c->snd_max && silence > c->rto_ns)
		tcp_cc_ops(c)->on_idle(&c->cc, c->mss, silence / c->rto_ns);
	tcp_cwnd_validate(c);
	for (unsigned n = 0; result == TCP_OUTPUT_DONE && next_piece(c, &len, &fin); n++) {
		if (n == TCP_MAX_BURST)
			result = TCP_OUTPUT_MORE;
		else if (!send_data(c, c->snd_nxt, len, fin))
			result = TCP_OUTPUT_BLOCKED;
		else if (tcp_pace_applies(c, tcp_sent_pipe(c)))
			tcp_pace_sent(c, len);
	}
	if (c->snd_max == max && !c->in_loss) // with what was repeated cwnd is in use, too
		return result;
	tcp_cwnd_use(c);
	if (c->snd_max != max && tcp_may_probe_tail(c)) // RFC 8985 7.2: from the last one sent
		tcp_rtx_start(c);
	return result;
}

// What goes before new data: all of it seldom.
static enum tcp_output_result output_rare(struct tcp_conn *c)
{
	if (!send_duplicates(c))
		return TCP_OUTPUT_BLOCKED;
	enum tcp_output_result result = send_again(c);
	if (result != TCP_OUTPUT_DONE)
		return result;
	if (c->probe_due) {
		if (!send_probe(c))
			return TCP_OUTPUT_BLOCKED;
		c->probe_due = false;
	}
	if (c->keepalive_due) { // RFC 9293 3.8.4: an old number, so that the peer must answer
		if (!send_segment(c, c->snd_una - 1, 0, 0))
			return TCP_OUTPUT_BLOCKED;
		c->keepalive_due = false;
		tcp_count(c->stack, TCP_keepalives);
	}
	if (c->tail_probe_due) {
		if (!send_tail_probe(c))
			return TCP_OUTPUT_BLOCKED;
		c->tail_probe_due = false;
	}
	return TCP_OUTPUT_DONE;
}

// Not part of tcp_output(), which has little to save on the stack.
static __attribute__((noinline)) enum tcp_output_result output_slow_path(struct tcp_conn *c)
{
	if (c->state != TCP_OPEN)
		return output_handshake(c);
	enum tcp_output_result result = c->rare ? output_rare(c) : TCP_OUTPUT_DONE;
	if (result == TCP_OUTPUT_DONE)
		result = send_new(c);
	if (result != TCP_OUTPUT_DONE)
		return result;
	if (c->ack_due) {
		if (!send_segment(c, bare_seq(c), 0, 0))
			return TCP_OUTPUT_BLOCKED;
		tcp_count(c->stack, TCP_acks_out);
	}
	// The window is closed and nothing in flight will open it.
	if (c->snd_nxt == c->snd_una && tcp_output_pending(c) && !c->deadlines[TCP_TIMER_RTX]) {
		c->progress_ns = tcp_now(c->stack);
		tcp_rtx_start(c);
	}
	return TCP_OUTPUT_DONE;
}

enum tcp_output_result tcp_output(struct tcp_conn *c)
{
	enum tcp_output_result result;
	return tcp_fast_path_output(c, &result) ? result : output_slow_path(c);
}
