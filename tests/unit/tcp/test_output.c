// SPDX-License-Identifier: Apache-2.0
#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "tests/unit/tcp/rig.h"

// TCP-57
static void data_goes_out_in_full_segments_and_is_pushed_at_its_end(void **state)
{
	rig_accept(PLAIN);
	rig_write_n(2 * MSS + 7);
	struct out *o = rig_out();
	assert_int_equal(o->len, MSS);
	assert_int_equal(o->flags, ACK);
	assert_int_equal(rig_out()->seq, 1 + MSS);
	o = rig_out();
	assert_int_equal(o->len, 7);
	assert_int_equal(o->flags, ACK | PSH);
	NO_OUT();
}

// TCP-33, RFC 6691: the option's room is the sender's to subtract.
static void timestamps_shorten_a_full_segment(void **state)
{
	rig_accept((struct tcp_opts){.has_mss = true, .mss = MSS, .has_ts = true, .ts_val = 1});
	rig_write_n(2 * MSS);
	assert_int_equal(rig_out()->len, MSS - 12);
}

static void one_turn_sends_a_connection_once(void **state)
{
	rig_accept(PLAIN);
	rig_write("a");
	rig_write("b");
	tcp_conn_shutdown(rig.conn);
	struct out *o = rig_out();
	assert_int_equal(o->len, 2);
	assert_int_equal(o->flags, ACK | PSH | FIN);
	NO_OUT();
}

// TCP-70, RFC 6928.
static void the_first_flight_is_ten_segments(void **state)
{
	rig_accept(PLAIN);
	rig_write_n(20 * MSS);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(rig_out()->len, MSS);
	NO_OUT();
}

static uint32_t first_flight_after(uint64_t unanswered_ms)
{
	rig_begin_connect(10 * NS_PER_SECOND);
	rig_after_ms(unanswered_ms);
	IN(.flags = SYN | ACK, .seq = 0, .ack = 1, .opts = PLAIN);
	rig_write_n(20 * MSS);
	rig_skip();
	return rig.conn->snd_max - rig.conn->snd_una;
}

// TCP-219, RFC 6928 2: one lost SYN may be chance.
static void the_first_flight_after_two_lost_syns_is_one_segment(void **state)
{
	assert_int_equal(first_flight_after(1000), 10 * MSS);
	assert_int_equal(first_flight_after(3000), MSS);
}

// TCP-219
static void the_first_flight_after_two_lost_syn_acks_is_one_segment(void **state)
{
	IN(.flags = SYN, .seq = 0, .opts = PLAIN);
	rig_after_ms(3000);
	rig_skip();
	IN(.flags = ACK, .seq = 1, .ack = 1);
	rig_write_n(20 * MSS);
	assert_int_equal(rig_out()->len, MSS);
	NO_OUT();
	IN(.flags = ACK, .seq = 1, .ack = 1 + MSS); // slow start
	assert_int_equal(rig_out()->len, MSS);
	assert_int_equal(rig_out()->len, MSS);
	NO_OUT();
}

// TCP-53
static void the_peers_window_bounds_what_is_in_flight(void **state)
{
	rig_accept(PLAIN);
	IN(.flags = ACK, .seq = 1, .ack = 1, .wnd = 3 * MSS);
	rig_write_n(10 * MSS);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(rig_out()->len, MSS);
	NO_OUT();
	IN(.flags = ACK, .seq = 1, .ack = 1 + MSS, .wnd = 2 * MSS); // the edge stays
	NO_OUT();
	IN(.flags = ACK, .seq = 1, .ack = 1 + MSS, .wnd = 3 * MSS);
	assert_int_equal(rig_out()->seq, 1 + 3 * MSS);
	NO_OUT();
}

// TCP-54, RFC 9293 3.10.7.4: an old segment must not bring an old window back.
static void a_window_from_an_older_segment_is_ignored(void **state)
{
	rig_accept(PLAIN);
	IN(.flags = ACK, .seq = 1, .ack = 1, .data = "abc", .wnd = 5000);
	rig_write("hello");
	rig_skip();
	IN(.flags = ACK, .seq = 4, .ack = 6, .wnd = 7000);
	IN(.flags = ACK, .seq = 4, .ack = 1, .wnd = 100);
	assert_int_equal(rig.conn->snd_wnd, 7000);
}

// TCP-55, RFC 9293 3.8.6.2.1.
static void no_small_segment_is_cut_to_fit_a_window(void **state)
{
	rig_accept(PLAIN);
	rig_write_n(MSS);
	rig_skip();
	IN(.flags = ACK, .seq = 1, .ack = 1, .wnd = MSS + 100); // 100 bytes are left of it
	rig_write_n(MSS);
	NO_OUT();
	IN(.flags = ACK, .seq = 1, .ack = 1 + MSS, .wnd = MSS);
	assert_int_equal(rig_out()->len, MSS);
}

// TCP-58, RFC 9293 3.8.6.1, RFC 6298 5.5: 200 ms after the window closed, then twice as long each
// time.
static void a_closed_window_is_probed_with_one_byte(void **state)
{
	rig_accept(PLAIN);
	IN(.flags = ACK, .seq = 1, .ack = 1, .zero_wnd = true);
	uint64_t start = twheel_now(rig.wheel) / NS_PER_MS;
	rig_write_n(3000);
	NO_OUT();
	static const unsigned at[] = {200, 600, 1400, 3000};
	for (unsigned i = 0; i < 4; i++) {
		rig_at_ms(start + at[i] - 1);
		NO_OUT();
		rig_at_ms(start + at[i]);
		struct out *o = rig_out();
		assert_int_equal(o->len, 1);
		assert_int_equal(o->seq, 1);
		IN(.flags = ACK, .seq = 1, .ack = 1, .zero_wnd = true);
		NO_OUT();
	}
	assert_int_equal(rig_count(TCP_window_probes), 4);
	assert_int_equal(rig_count(TCP_fast_recoveries), 0); // the answers are no duplicates
	IN(.flags = ACK, .seq = 1, .ack = 1);
	struct out *o = rig_out();
	assert_int_equal(o->seq, 1);
	assert_int_equal(o->len, MSS);
}

static void a_probe_that_is_taken_counts_as_sent(void **state)
{
	rig_accept(PLAIN);
	IN(.flags = ACK, .seq = 1, .ack = 1, .zero_wnd = true);
	rig_write("abc");
	rig_after_ms(200);
	assert_int_equal(rig_out()->len, 1);
	IN(.flags = ACK, .seq = 1, .ack = 2, .wnd = 1000);
	struct out *o = rig_out();
	assert_int_equal(o->seq, 2);
	assert_string_equal((char *)o->data, "bc");
}

// TCP-58
static void an_answered_probe_keeps_the_connection_for_ever(void **state)
{
	rig_accept(PLAIN);
	tcp_conn_set_user_timeout(rig.conn, 5 * NS_PER_SECOND);
	IN(.flags = ACK, .seq = 1, .ack = 1, .zero_wnd = true);
	rig_write("abc");
	for (unsigned i = 0; i < 600; i++) {
		rig_after_ms(1000);
		IN(.flags = ACK, .seq = 1, .ack = 1, .zero_wnd = true);
	}
	assert_int_equal(rig.n_closed, 0);
	rig_after_ms(5001); // and unanswered ones end it
	assert_int_equal(rig.n_closed, 1);
	assert_int_equal(rig.reason, TCP_CLOSE_TIMEOUT);
}

// TCP-88
static void a_fin_is_probed_for_like_data(void **state)
{
	rig_accept(PLAIN);
	IN(.flags = ACK, .seq = 1, .ack = 1, .zero_wnd = true);
	tcp_conn_shutdown(rig.conn);
	NO_OUT();
	rig_after_ms(200);
	assert_int_equal(rig_out()->flags, ACK | FIN);
	IN(.flags = ACK, .seq = 1, .ack = 2, .zero_wnd = true);
	rig_after_ms(5000);
	NO_OUT();
}

static void a_window_of_a_few_bytes_is_used_when_nothing_else_moves(void **state)
{
	rig_accept(PLAIN);
	IN(.flags = ACK, .seq = 1, .ack = 1, .wnd = 10);
	rig_write_n(3000);
	NO_OUT();
	rig_after_ms(200);
	assert_int_equal(rig_out()->len, 10);
	IN(.flags = ACK, .seq = 1, .ack = 11, .wnd = 5000);
	struct out *o = rig_out();
	assert_int_equal(o->seq, 11);
	assert_int_equal(o->len, MSS);
}

// TCP-60
static void without_a_buffer_sending_waits_a_millisecond(void **state)
{
	rig_accept(PLAIN);
	rig_after_ms(5);
	rig.no_buffer = true;
	rig_write("abc");
	NO_OUT();
	assert_int_equal(twheel_next_ns(rig.wheel), twheel_now(rig.wheel) + NS_PER_MS);
	rig_after_ms(3);
	assert_int_equal(rig_count(TCP_no_buffer), 5); // each turn tried once
	rig.no_buffer = false;
	struct out *o = rig_out();
	assert_int_equal(o->len, 3);
	assert_int_equal(o->seq, 1);
	NO_OUT();
}

static void a_device_without_buffers_is_not_asked_for_every_connection(void **state)
{
	rig.conf.max_half_open = 16;
	rig_restart();
	for (uint16_t port = 1; port <= 16; port++)
		IN(.flags = SYN, .seq = 0, .from = port, .opts = PLAIN);
	rig.no_buffer = true;
	NO_OUT();
	assert_int_equal(rig_count(TCP_no_buffer), 4);
	rig.no_buffer = false;
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(rig_out()->flags, SYN | ACK);
}

// TCP-68
static void a_peer_that_never_gets_a_buffer_times_out(void **state)
{
	rig_accept(PLAIN);
	tcp_conn_set_user_timeout(rig.conn, 3 * NS_PER_SECOND);
	rig.no_buffer = true;
	rig_write("abc");
	rig_after_ms(3100);
	assert_int_equal(rig.n_closed, 1);
	assert_int_equal(rig.reason, TCP_CLOSE_TIMEOUT);
}

// TCP-59
static void a_burst_is_cut_and_goes_on_at_the_next_flush(void **state)
{
	rig_accept((struct tcp_opts){.has_mss = true, .mss = MSS, .has_wscale = true, .wscale = 5});
	rig_write_n(300 * MSS);
	uint32_t acked = 1;
	for (unsigned round = 0; round < 5; round++) { // until cwnd is large
		for (struct out *o; (o = rig_peek()); rig.n_seen++)
			acked = o->seq + (uint32_t)o->len;
		IN(.flags = ACK, .seq = 1, .ack = acked, .wnd = 65535);
		rig.n_seen = rig.n_out = 0;
		if (rig.conn->cc.cwnd > 100 * MSS)
			break;
	}
	assert_true(rig.conn->cc.cwnd > 100 * MSS);
	tcp_stack_flush(rig.stack);
	assert_int_equal(rig.n_out, TCP_MAX_BURST);
	assert_int_equal(twheel_next_ns(rig.wheel), twheel_now(rig.wheel)); // no idle waiting
	tcp_stack_flush(rig.stack);
	assert_true(rig.n_out > TCP_MAX_BURST);
}

static void room_is_told_when_there_was_none_or_all_is_gone(void **state)
{
	rig.conf.send_limit = 2000;
	rig_restart();
	rig_accept(PLAIN);
	assert_int_equal(tcp_conn_send_room(rig.conn), 2000);
	rig_write_n(2000);
	assert_int_equal(tcp_conn_send_room(rig.conn), 0);
	rig_skip();
	IN(.flags = ACK, .seq = 1, .ack = 11); // there was none
	assert_int_equal(rig.n_room, 1);
	assert_int_equal(tcp_conn_send_room(rig.conn), 10);
	IN(.flags = ACK, .seq = 1, .ack = 21); // there was some
	assert_int_equal(rig.n_room, 1);
	IN(.flags = ACK, .seq = 1, .ack = 2001); // all gone
	assert_int_equal(rig.n_room, 2);
	tcp_conn_shutdown(rig.conn);
	assert_int_equal(tcp_conn_send_room(rig.conn), 0);
}

// TCP-74, RFC 5681 4.1.
static void after_silence_the_first_flight_is_small_again(void **state)
{
	rig_accept((struct tcp_opts){.has_mss = true, .mss = MSS, .has_wscale = true, .wscale = 5});
	rig_write_n(40 * MSS);
	rig_skip();
	IN(.flags = ACK, .seq = 1, .ack = 1 + 10 * MSS);
	rig_skip();
	IN(.flags = ACK, .seq = 1, .ack = 1 + 30 * MSS);
	rig_skip();
	IN(.flags = ACK, .seq = 1, .ack = 1 + 40 * MSS);
	assert_true(rig.conn->cc.cwnd >= 30 * MSS);
	rig_after_ms(500);
	rig_write_n(40 * MSS);
	rig_skip();
	assert_int_equal(rig.conn->snd_nxt - rig.conn->snd_una, 10 * MSS);
}

static void chunks_are_read_right_across_their_edges(void **state)
{
	static uint8_t stream[60000];
	struct rand r;
	rand_init(&r, 1);
	for (unsigned i = 0; i < sizeof(stream); i++)
		stream[i] = (uint8_t)rand_u64(&r);
	rig_accept(PLAIN);
	uint32_t acked = 0;
	for (size_t put = 0; acked < sizeof(stream);) {
		size_t n = rand_below(&r, 5000);
		n = n < sizeof(stream) - put ? n : sizeof(stream) - put;
		assert_true(buf_append(tcp_conn_sendq(rig.conn), &rig.chunks, stream + put, n));
		tcp_conn_push(rig.conn);
		put += n;
		for (struct out *o; (o = rig_peek()); rig.n_seen++) {
			assert_memory_equal(o->data, stream + o->seq - 1, o->len);
			if (o->seq == acked + 1 && rand_below(&r, 10))
				acked += (uint32_t)o->len;
		}
		rig.n_seen = rig.n_out = 0;
		IN(.flags = ACK, .seq = 1, .ack = 1 + acked - (uint32_t)rand_below(&r, 2));
		IN(.flags = ACK, .seq = 1, .ack = 1 + acked);
		if (rand_below(&r, 3) == 0)
			rig_after_ms(rand_below(&r, 300));
	}
}

RUN_SUITE("tcp/output", CASE(data_goes_out_in_full_segments_and_is_pushed_at_its_end),
	CASE(timestamps_shorten_a_full_segment), CASE(one_turn_sends_a_connection_once),
	CASE(the_first_flight_is_ten_segments),
	CASE(the_first_flight_after_two_lost_syns_is_one_segment),
	CASE(the_first_flight_after_two_lost_syn_acks_is_one_segment),
	CASE(the_peers_window_bounds_what_is_in_flight),
	CASE(a_window_from_an_older_segment_is_ignored),
	CASE(no_small_segment_is_cut_to_fit_a_window),
	CASE(a_closed_window_is_probed_with_one_byte), CASE(a_probe_that_is_taken_counts_as_sent),
	CASE(an_answered_probe_keeps_the_connection_for_ever), CASE(a_fin_is_probed_for_like_data),
	CASE(a_window_of_a_few_bytes_is_used_when_nothing_else_moves),
	CASE(without_a_buffer_sending_waits_a_millisecond),
	CASE(a_device_without_buffers_is_not_asked_for_every_connection),
	CASE(a_peer_that_never_gets_a_buffer_times_out),
	CASE(a_burst_is_cut_and_goes_on_at_the_next_flush),
	CASE(room_is_told_when_there_was_none_or_all_is_gone),
	CASE(after_silence_the_first_flight_is_small_again),
	CASE(chunks_are_read_right_across_their_edges))
