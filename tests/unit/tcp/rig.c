// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/tcp/rig.h"

#include "dataplane/tcp/csum.h"
#include "lb/base/time.h"

struct rig rig;

static void *rig_reserve(void *ctx, const struct tcp_flow *flow, size_t len)
{
	assert_true(len <= (size_t)rig.mtu - (ip_is_v4(&flow->remote) ? 20 : 40));
	return rig.no_buffer ? NULL : rig.room;
}

static void rig_emit(void *ctx, const struct tcp_flow *flow, void *segment, size_t len)
{
	const uint8_t *p = segment;
	assert_ptr_equal(segment, rig.room);
	assert_int_equal(tcp_csum_segment(tcp_csum_flow(&flow->local, &flow->remote), p, len), 0);
	assert_true(rig.n_out < RIG_MAX_OUT);
	struct out *o = &rig.out[rig.n_out++];
	size_t header_len = (size_t)(p[12] >> 4) * 4;
	memset(o, 0, sizeof(*o));
	o->flags = p[13];
	if (o->flags & TCP_SYN)
		rig.iss = get32(p + 4);
	o->seq = get32(p + 4) - rig.iss;
	o->ack = o->flags & TCP_ACK ? get32(p + 8) - PEER_ISS : 0;
	o->wnd = get16(p + 14);
	o->len = len - header_len;
	memcpy(o->data, p + header_len, o->len);
	assert_true(tcp_opts_parse(p + 20, header_len - 20, &o->opts));
	assert_int_equal(get16(p), flow->local_port);
	assert_int_equal(get16(p + 2), flow->remote_port);
	o->at_ns = twheel_now(rig.wheel);
	o->flow = *flow;
}

static void rig_emit_ect(void *ctx, const struct tcp_flow *flow, void *segment, size_t len)
{
	rig_emit(ctx, flow, segment, len);
	rig.out[rig.n_out - 1].ect = true;
}

static uint16_t rig_mtu(void *ctx, const struct tcp_flow *flow)
{
	return rig.mtu;
}

static void rig_on_established(struct tcp_conn *c, void *user)
{
	rig.n_established++;
}

static size_t rig_on_data(struct tcp_conn *c, void *user, const uint8_t *data, size_t len)
{
	size_t n = len < rig.appetite ? len : rig.appetite;
	assert_true(n <= sizeof(rig.got) - rig.n_got);
	memcpy(rig.got + rig.n_got, data, n);
	rig.n_got += n;
	rig.appetite -= n;
	if (rig.resume_in_data) {
		rig.appetite = SIZE_MAX;
		tcp_conn_resume(c);
	}
	if (rig.abort_in_data) {
		tcp_conn_abort(c);
		rig.conn = NULL;
	}
	return n;
}

static void rig_on_send_room(struct tcp_conn *c, void *user)
{
	rig.n_room++;
	if (rig.abort_in_room) {
		tcp_conn_abort(c);
		rig.conn = NULL;
	}
}

static void rig_on_eof(struct tcp_conn *c, void *user)
{
	rig.n_eof++;
	if (rig.shutdown_in_eof)
		tcp_conn_shutdown(c);
}

static void rig_on_closed(struct tcp_conn *c, void *user, enum tcp_close_reason reason)
{
	rig.n_closed++;
	rig.reason = reason;
	rig.conn = NULL;
}

static void rig_on_unanswered(struct tcp_conn *c, void *user)
{
	rig.n_unanswered++;
}

static const struct tcp_conn_ops ops = {rig_on_established, rig_on_data, rig_on_send_room,
	rig_on_eof, rig_on_closed, rig_on_unanswered};

static const struct tcp_conn_ops *rig_on_accept(void *arg, struct tcp_conn *c, void **ret_user)
{
	if (rig.refuse)
		return NULL;
	rig.conn = c;
	*ret_user = &rig;
	return &ops;
}

static void start(void)
{
	struct tcp_io io = {rig_reserve, rig_emit, rig_mtu, NULL, rig.ecn ? rig_emit_ect : NULL};
	rig.wheel = twheel_new(0);
	assert_int_equal(buf_pool_init(&rig.chunks, 2048), 0);
	rig.stack = tcp_stack_new(&rig.conf, &io, &rig.chunks, rig.wheel);
	assert_non_null(rig.stack);
	assert_int_equal(tcp_listen(rig.stack, &rig.flow.local, 80, rig_on_accept, NULL), 0);
}

int rig_setup(void **state)
{
	memset(&rig, 0, offsetof(struct rig, out));
	rig.n_out = rig.n_seen = 0;
	rig.no_buffer = rig.ecn = false;
	memset(&rig.mtu, 0, sizeof(rig) - offsetof(struct rig, mtu));
	rig.mtu = RIG_MTU;
	rig.appetite = SIZE_MAX;
	rig.conf = (struct tcp_conf){
		.max_conns = 16,
		.max_half_open = 4,
		.max_time_wait = 4,
		.send_limit = 1 << 20,
		.recv_window = 65535,
		.secret = "rig",
		.seed = 1,
		.congestion = &tcp_cc_reno, // whose windows are easily told
		.unpaced = true,
	};
	rig.flow = (struct tcp_flow){ip_from_v4(0x0a000001), ip_from_v4(0x0a000002), 80, 40000};
	start();
	return 0;
}

static void stop(void)
{
	tcp_stack_free(rig.stack);
	assert_int_equal(rig.chunks.n_used, 0);
	assert_int_equal(twheel_next_ns(rig.wheel), UINT64_MAX);
	pool_fini(&rig.chunks);
	twheel_free(rig.wheel);
}

int rig_teardown(void **state)
{
	stop();
	return 0;
}

void rig_restart(void)
{
	stop();
	start();
}

void rig_use_ipv6(void)
{
	rig.flow.local = (struct ip_addr){{0xfd, [15] = 1}};
	rig.flow.remote = (struct ip_addr){{0xfd, [15] = 2}};
	rig_restart();
}

void rig_in(struct in in)
{
	static uint8_t segment[70000];
	struct tcp_header h = {.flags = in.flags};
	memset(segment, 0, sizeof(segment));
	put16(h.src_port, in.from ? in.from : rig.flow.remote_port);
	put16(h.dst_port, in.to ? in.to : rig.flow.local_port);
	put32(h.seq, in.seq + PEER_ISS);
	if (in.flags & TCP_ACK)
		put32(h.ack, in.ack + rig.iss);
	put16(h.window, in.zero_wnd ? 0 : in.wnd ? in.wnd : 65535);
	size_t header_len = TCP_HEADER_LEN + tcp_opts_write(&in.opts, segment + TCP_HEADER_LEN);
	h.offset = (uint8_t)(header_len / 4 << 4);
	memcpy(segment, &h, sizeof(h));
	size_t len = in.data ? strlen(in.data) : in.len;
	if (in.data)
		memcpy(segment + header_len, in.data, len);
	uint16_t sum = tcp_csum_segment(
		tcp_csum_flow(&rig.flow.remote, &rig.flow.local), segment, header_len + len);
	memcpy(segment + 16, &sum, 2);
	struct tcp_flow flow = {.local = rig.flow.local, .remote = rig.flow.remote};
	if (in.marked)
		tcp_stack_input_marked(rig.stack, &flow, segment, header_len + len);
	else
		tcp_stack_input(rig.stack, &flow, segment, header_len + len);
}

struct out *rig_peek(void)
{
	tcp_stack_flush(rig.stack);
	return rig.n_seen < rig.n_out ? &rig.out[rig.n_seen] : NULL;
}

struct out *rig_out(void)
{
	struct out *o = rig_peek();
	assert_non_null(o);
	rig.n_seen++;
	return o;
}

void rig_skip(void)
{
	(void)rig_peek();
	rig.n_seen = rig.n_out = 0;
}

void rig_at_ms(uint64_t ms)
{
	tcp_stack_flush(rig.stack);
	for (uint64_t at; (at = twheel_now(rig.wheel) / NS_PER_MS) < ms;) {
		twheel_advance(rig.wheel, (at + 1) * NS_PER_MS);
		tcp_stack_flush(rig.stack);
	}
}

void rig_after_ms(uint64_t ms)
{
	rig_at_ms(twheel_now(rig.wheel) / NS_PER_MS + ms);
}

void rig_leap_ms(uint64_t ms)
{
	tcp_stack_flush(rig.stack);
	twheel_advance(rig.wheel, twheel_now(rig.wheel) + ms * NS_PER_MS);
	tcp_stack_flush(rig.stack);
}

uint64_t rig_ms(const struct out *o)
{
	return o->at_ns / NS_PER_MS;
}

void rig_open(uint64_t timeout_ns)
{
	rig.flow.local_port = 0;
	rig.flow.remote_port = 443;
	rig.conn = tcp_connect(rig.stack, &rig.flow, timeout_ns, &ops, &rig);
	assert_non_null(rig.conn);
	rig.flow = *tcp_conn_flow(rig.conn);
}

void rig_begin_connect(uint64_t timeout_ns)
{
	rig_open(timeout_ns);
	assert_int_equal(rig_out()->flags, rig.ecn ? SYN | ECE | CWR : SYN);
}

void rig_connect(struct tcp_opts peer)
{
	rig_begin_connect(10 * NS_PER_SECOND);
	IN(.flags = SYN | ACK, .seq = 0, .ack = 1, .opts = peer);
	assert_int_equal(rig.n_established, 1);
	rig_skip();
}

void rig_accept(struct tcp_opts peer)
{
	IN(.flags = SYN, .seq = 0, .opts = peer);
	struct out *o = rig_out();
	assert_int_equal(o->flags, SYN | ACK);
	struct tcp_opts later = {
		.has_ts = peer.has_ts, .ts_val = peer.ts_val, .ts_ecr = o->opts.ts_val};
	IN(.flags = ACK, .seq = 1, .ack = 1, .opts = later);
	assert_non_null(rig.conn);
	rig_skip();
}

void rig_write_n(size_t n)
{
	static uint8_t zeros[4096];
	for (size_t piece; n; n -= piece) {
		piece = n < sizeof(zeros) ? n : sizeof(zeros);
		assert_true(piece <= tcp_conn_send_room(rig.conn));
		assert_true(buf_append(tcp_conn_sendq(rig.conn), &rig.chunks, zeros, piece));
	}
	tcp_conn_push(rig.conn);
}

void rig_write(const char *text)
{
	assert_true(buf_append(tcp_conn_sendq(rig.conn), &rig.chunks, text, strlen(text)));
	tcp_conn_push(rig.conn);
}

uint64_t rig_count(enum tcp_counter what)
{
	return counter_read(&tcp_stack_counters(rig.stack).values[what]);
}
