// SPDX-License-Identifier: Apache-2.0
// Which segments take the fast path. That it does what the slow path does is for tcp_sim and
// tcp_random_input, which run everything both ways.
#include "dataplane/tcp/csum.h"
#include "tests/unit/tcp/rig.h"

static const struct tcp_opts modern = {
	.has_mss = true, .mss = MSS, .sack_ok = true, .has_ts = true, .ts_val = 100};

// A segment of the peer's with 3 bytes of data; relative numbers.
struct draft {
	uint32_t seq, ack, ts_val;
	uint8_t flags;
};

// True = the fast path took it.
static bool predicted(struct draft d)
{
	uint8_t segment[64] = {0};
	struct tcp_header h = {.offset = 0x80, .flags = d.flags};
	struct tcp_opts ts = {.has_ts = true, .ts_val = d.ts_val};
	put16(h.src_port, rig.flow.remote_port);
	put16(h.dst_port, rig.flow.local_port);
	put32(h.seq, d.seq + PEER_ISS);
	put32(h.ack, d.ack + rig.iss);
	put16(h.window, 65535);
	memcpy(segment, &h, sizeof(h));
	assert_int_equal(tcp_opts_write(&ts, segment + sizeof(h)), TCP_OPT_TS_LEN);
	memcpy(segment + 32, "abc", 3);
	uint16_t sum =
		tcp_csum_segment(tcp_csum_flow(&rig.flow.remote, &rig.flow.local), segment, 35);
	memcpy(segment + offsetof(struct tcp_header, checksum), &sum, 2);
	return tcp_fast_path_input(rig.conn, segment, 35);
}

// TCP-97
static void data_in_order_takes_it(void **state)
{
	rig_accept(modern);
	assert_true(predicted((struct draft){1, 1, 100, ACK}));
	assert_true(predicted((struct draft){4, 1, 101, ACK | PSH}));
	assert_memory_equal(rig.got, "abcabc", 6);
	assert_int_equal(rig_out()->ack, 7);
}

static void an_acknowledgement_with_data_takes_it(void **state)
{
	rig_accept(modern);
	rig_write("hello");
	rig_skip();
	assert_true(predicted((struct draft){1, 6, 100, ACK}));
	assert_int_equal(rig.conn->sendq.len, 0);
	assert_int_equal(rig.n_room, 1);
}

static void anything_else_does_not(void **state)
{
	static const struct draft others[] = {
		{2, 1, 100, ACK}, // a hole
		{0, 1, 100, ACK}, // a repetition
		{1, 2, 100, ACK}, // acknowledges what was not sent
		{1, 0, 100, ACK},
		{1, 1, 99, ACK}, // PAWS
		{1, 1, 100, ACK | FIN},
		{1, 1, 100, ACK | RST},
		{1, 1, 100, ACK | SYN},
		{1, 1, 100, PSH},
	};
	rig_accept(modern);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(predicted(others[i]));
	assert_int_equal(rig.n_got, 0);
}

static void a_connection_with_something_rare_does_not(void **state)
{
	enum tcp_output_result result;
	rig_accept(modern);
	rig_write("hello");
	for (unsigned bit = 0; bit < 64; bit++) {
		rig.conn->rare = UINT64_C(1) << bit;
		assert_false(predicted((struct draft){1, 1, 100, ACK}));
		assert_false(tcp_fast_path_output(rig.conn, &result));
	}
	rig.conn->rare = 0;
	assert_true(predicted((struct draft){1, 1, 100, ACK}));
	assert_true(tcp_fast_path_output(rig.conn, &result));
	tcp_conn_shutdown(rig.conn);
	assert_false(predicted((struct draft){4, 1, 100, ACK}));
	rig_skip();
}

static void timestamps_may_wrap(void **state)
{
	struct tcp_opts late = modern;
	late.ts_val = UINT32_MAX - 1;
	rig_accept(late);
	assert_true(predicted((struct draft){1, 1, UINT32_MAX, ACK}));
	rig_after_ms(100); // acknowledged: the next one's counts
	assert_true(predicted((struct draft){4, 1, 0, ACK}));
	assert_int_equal(rig.conn->ts_recent, 0);
	assert_false(predicted((struct draft){7, 1, UINT32_MAX, ACK}));
	rig_skip();
}

static void its_owner_may_abort(void **state)
{
	rig_accept(modern);
	rig.abort_in_data = true;
	assert_true(predicted((struct draft){1, 1, 100, ACK}));
	assert_null(rig.conn);
	assert_int_equal(rig.stack->conns.n_used, 0);
	assert_int_equal(rig_out()->flags, RST | ACK);
}

static void its_owner_may_abort_when_told_of_room(void **state)
{
	rig_accept(modern);
	rig_write("hello");
	rig_skip();
	rig.abort_in_room = true;
	assert_true(predicted((struct draft){1, 6, 100, ACK}));
	assert_null(rig.conn);
	assert_int_equal(rig.n_got, 0);
	assert_int_equal(rig.stack->conns.n_used, 0);
	assert_int_equal(rig_out()->flags, RST | ACK);
	NO_OUT();
}

// A late acknowledgement of what was sent before the timeout may pass what was sent again.
static void an_acknowledgement_after_a_timeout_does_not(void **state)
{
	rig_accept(modern);
	struct tcp_conn *c = rig.conn;
	rig_write_n(3 * c->mss);
	for (unsigned ms = 0; ms < 5000 && !c->n_backoff; ms++)
		rig_after_ms(1);
	struct in first = {.seq = 1, .ack = 1 + c->mss, .flags = ACK, .opts.has_ts = true};
	first.opts.ts_val = 100;
	rig_in(first);
	assert_true(c->in_loss);
	assert_false(predicted((struct draft){1, 1 + 2 * c->mss, 100, ACK}));
	rig_skip();
}

static void data_beyond_the_window_does_not(void **state)
{
	rig_accept(modern);
	rig.conn->rcv_adv = rig.conn->rcv_nxt + 2;
	assert_false(predicted((struct draft){1, 1, 100, ACK}));
	rig.conn->rcv_adv++;
	assert_true(predicted((struct draft){1, 1, 100, ACK}));
	rig_skip();
}

// RFC 5681 4.1: cwnd falls back first.
static void data_after_a_silence_does_not(void **state)
{
	enum tcp_output_result result;
	rig_accept(modern);
	rig_write("a");
	assert_true(tcp_fast_path_output(rig.conn, &result));
	rig_after_ms(1);
	assert_true(predicted((struct draft){1, 2, 100, ACK}));
	rig_after_ms(1000);
	rig.conn->cc.cwnd = 100 * MSS;
	rig_write("b");
	assert_false(tcp_fast_path_output(rig.conn, &result));
	rig_skip();
	assert_int_equal(rig.conn->cc.cwnd, 10 * rig.conn->mss);
}

static void a_wrong_checksum_does_not(void **state)
{
	rig_accept(modern);
	uint8_t segment[35] = {[12] = 0x80, [13] = ACK};
	put32(segment + 4, 1 + PEER_ISS);
	put32(segment + 8, 1 + rig.iss);
	put32(segment + 20, TCP_OPT_TS_HEAD);
	put32(segment + 24, 100);
	assert_false(tcp_fast_path_input(rig.conn, segment, sizeof(segment)));
	assert_int_equal(rig.n_got, 0);
}

RUN_SUITE("tcp/fast_path", CASE(data_in_order_takes_it),
	CASE(an_acknowledgement_with_data_takes_it), CASE(anything_else_does_not),
	CASE(a_connection_with_something_rare_does_not), CASE(timestamps_may_wrap),
	CASE(its_owner_may_abort), CASE(its_owner_may_abort_when_told_of_room),
	CASE(an_acknowledgement_after_a_timeout_does_not), CASE(data_beyond_the_window_does_not),
	CASE(data_after_a_silence_does_not), CASE(a_wrong_checksum_does_not))
