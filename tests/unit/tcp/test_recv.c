// SPDX-License-Identifier: Apache-2.0
#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "tests/unit/tcp/rig.h"

// TCP-45, RFC 9293 3.8.6.3: within 500 ms, and at least every second full segment.
static void a_lone_segment_is_acknowledged_after_40_ms(void **state)
{
	rig_accept(PLAIN);
	IN(.flags = ACK, .seq = 1, .ack = 1, .data = "question");
	rig_write("answer");
	assert_int_equal(rig_out()->ack, 9);
	uint64_t start = twheel_now(rig.wheel) / NS_PER_MS;
	IN(.flags = ACK, .seq = 9, .ack = 7, .data = "abc");
	NO_OUT();
	rig_after_ms(100);
	struct out *o = rig_out();
	assert_int_equal(rig_ms(o), start + 40);
	assert_int_equal(o->flags, ACK);
	assert_int_equal(o->ack, 12);
	NO_OUT();
}

// A segment that comes alone; returns when it is acknowledged, in milliseconds.
static uint64_t delay_of_lone_ack(uint32_t seq)
{
	uint64_t start = twheel_now(rig.wheel) / NS_PER_MS;
	IN(.flags = ACK, .seq = seq, .ack = 1, .data = "abc");
	NO_OUT();
	rig_after_ms(100);
	struct out *o = rig_out();
	assert_int_equal(o->ack, seq + 3);
	NO_OUT();
	return rig_ms(o) - start;
}

// TCP-208
static void the_first_sixteen_alone_are_acknowledged_within_a_millisecond(void **state)
{
	rig_accept(PLAIN);
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(delay_of_lone_ack(1 + 3 * i), 1);
	assert_int_equal(delay_of_lone_ack(1 + 3 * 16), 40);
}

// TCP-208: whose segments come in pairs waits for none of their ACKs.
static void a_pair_ends_the_haste_of_the_start(void **state)
{
	rig_accept(PLAIN);
	assert_int_equal(delay_of_lone_ack(1), 1);
	IN(.flags = ACK, .seq = 4, .ack = 1, .data = "abc");
	IN(.flags = ACK, .seq = 7, .ack = 1, .data = "abc");
	assert_int_equal(rig_out()->ack, 10);
	assert_int_equal(delay_of_lone_ack(10), 40);
}

// TCP-208, TLS-260; TCP-164 stays as it is.
static void an_owner_that_will_answer_ends_the_haste_of_the_start(void **state)
{
	rig_accept(PLAIN);
	tcp_conn_will_answer(rig.conn);
	assert_int_equal(delay_of_lone_ack(1), 40);
	IN(.flags = ACK, .seq = 7, .ack = 1, .data = "abc");
	assert_int_equal(rig_out()->ack, 4);
	tcp_conn_will_answer(rig.conn);
	IN(.flags = ACK, .seq = 4, .ack = 1, .data = "abc");
	assert_int_equal(rig_out()->ack, 10);
	IN(.flags = ACK, .seq = 10, .ack = 1, .data = "abc");
	assert_int_equal(rig_out()->ack, 13); // with the turn
}

// TCP-45
static void the_second_segment_is_acknowledged_at_once(void **state)
{
	rig_accept(PLAIN);
	IN(.flags = ACK, .seq = 1, .ack = 1, .len = MSS);
	IN(.flags = ACK, .seq = 1 + MSS, .ack = 1, .len = MSS);
	assert_int_equal(rig_out()->ack, 1 + 2 * MSS);
	NO_OUT();
	rig_after_ms(100);
	NO_OUT();
}

static void an_ack_rides_on_data_of_the_same_turn(void **state)
{
	rig_accept(PLAIN);
	IN(.flags = ACK, .seq = 1, .ack = 1, .data = "question");
	rig_write("answer");
	struct out *o = rig_out();
	assert_int_equal(o->ack, 9);
	assert_int_equal(o->len, 6);
	rig_after_ms(100);
	NO_OUT();
}

static void data_is_given_straight_from_the_segment(void **state)
{
	rig_accept(PLAIN);
	IN(.flags = ACK, .seq = 1, .ack = 1, .len = MSS);
	assert_int_equal(rig.n_got, MSS);
	assert_int_equal(rig.chunks.n_peak, 0);
}

// TCP-41
static void what_the_owner_leaves_shrinks_the_window_and_comes_again(void **state)
{
	rig_accept(PLAIN);
	rig.appetite = 400;
	IN(.flags = ACK, .seq = 1, .ack = 1, .len = 1000);
	IN(.flags = ACK, .seq = 1001, .ack = 1, .len = 1000);
	assert_int_equal(rig.n_got, 400);
	struct out *o = rig_out();
	assert_int_equal(o->ack, 2001); // received, though not consumed
	assert_int_equal(o->wnd, 65535 - 2000); // 400 are too few to move the right edge
	rig.appetite = SIZE_MAX;
	tcp_conn_resume(rig.conn);
	assert_int_equal(rig.n_got, 2000);
	o = rig_out(); // the window opened by more than a segment
	assert_int_equal(o->ack, 2001);
	assert_int_equal(o->wnd, 65535);
	NO_OUT();
}

// TCP-43, RFC 9293 3.8.6.2.2.
static void a_small_opening_of_the_window_is_not_announced(void **state)
{
	rig_accept(PLAIN);
	rig.appetite = 0;
	IN(.flags = ACK, .seq = 1, .ack = 1, .len = MSS);
	IN(.flags = ACK, .seq = 1 + MSS, .ack = 1, .len = MSS);
	assert_int_equal(rig_out()->wnd, 65535 - 2 * MSS);
	rig.appetite = MSS - 1;
	tcp_conn_resume(rig.conn);
	NO_OUT();
	rig.appetite = 1;
	tcp_conn_resume(rig.conn);
	assert_int_equal(rig_out()->wnd, 65535 - MSS);
	NO_OUT();
}

// TCP-42
static void an_owner_that_stops_reading_closes_the_window(void **state)
{
	rig.conf.recv_window = 4000;
	rig_restart();
	rig_accept(PLAIN);
	rig.appetite = 0;
	for (uint32_t seq = 1; seq < 4001; seq += 1000)
		IN(.flags = ACK, .seq = seq, .ack = 1, .len = 1000);
	assert_int_equal(rig_out()->wnd, 0);
	IN(.flags = ACK, .seq = 4001, .ack = 1, .data = "p"); // the peer's probe
	struct out *o = rig_out();
	assert_int_equal(o->ack, 4001);
	assert_int_equal(o->wnd, 0);
	assert_int_equal(rig.chunks.n_used, 2); // 4000 bytes
	rig.appetite = SIZE_MAX;
	tcp_conn_resume(rig.conn);
	assert_int_equal(rig.n_got, 4000);
	assert_int_equal(rig_out()->wnd, 4000);
	assert_int_equal(rig.chunks.n_used, 0);
}

// TCP-44, RFC 9293 3.10.7.4: ACKs are taken even when the window is closed.
static void a_closed_window_still_takes_acknowledgements(void **state)
{
	rig.conf.recv_window = 2000;
	rig_restart();
	rig_accept(PLAIN);
	rig.appetite = 0;
	IN(.flags = ACK, .seq = 1, .ack = 1, .len = 1000);
	IN(.flags = ACK, .seq = 1001, .ack = 1, .len = 1000);
	rig_write("hello");
	rig_skip();
	IN(.flags = ACK, .seq = 2001, .ack = 6);
	assert_int_equal(rig.n_room, 1);
	rig_write("more");
	rig_skip();
	IN(.flags = ACK, .seq = 2001, .ack = 10, .data = "x");
	assert_int_equal(rig.n_room, 2);
}

static void resume_inside_on_data_delivers_at_the_next_turn(void **state)
{
	rig_accept(PLAIN);
	rig_after_ms(1);
	rig.appetite = 2;
	rig.resume_in_data = true;
	IN(.flags = ACK, .seq = 1, .ack = 1, .data = "abcd");
	assert_int_equal(rig.n_got, 2);
	rig.resume_in_data = false;
	rig_after_ms(1);
	assert_int_equal(rig.n_got, 4);
	assert_memory_equal(rig.got, "abcd", 4);
}

// TCP-46, RFC 5681 4.2: one duplicate ACK for each, at once; one ACK when the hole is filled.
static void segments_beyond_a_hole_wait_for_it(void **state)
{
	rig_accept(PLAIN);
	IN(.flags = ACK, .seq = 4, .ack = 1, .data = "def");
	IN(.flags = ACK, .seq = 7, .ack = 1, .data = "ghi");
	assert_int_equal(rig_out()->ack, 1);
	assert_int_equal(rig_out()->ack, 1);
	NO_OUT();
	assert_int_equal(rig.n_got, 0);
	IN(.flags = ACK, .seq = 1, .ack = 1, .data = "abc");
	assert_int_equal(rig.n_got, 9);
	assert_memory_equal(rig.got, "abcdefghi", 9);
	assert_int_equal(rig_out()->ack, 10);
	NO_OUT();
	assert_int_equal(rig.stack->ranges.n_used, 0);
}

// TCP-48
static void overlapping_pieces_in_any_order_give_each_byte_once(void **state)
{
	static uint8_t stream[3000];
	struct rand r;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		rand_init(&r, seed);
		rig_accept(PLAIN);
		rig.n_got = 0;
		for (unsigned i = 0; i < sizeof(stream); i++)
			stream[i] = (uint8_t)('A' + i % 26);
		for (unsigned i = 0; i < 2000 && rig.n_got < sizeof(stream); i++) {
			char piece[101];
			size_t from = rand_below(&r, sizeof(stream));
			size_t len = 1 + rand_below(&r, 100);
			if (i > 300) // fill what chance left out
				from = rig.n_got;
			len = len < sizeof(stream) - from ? len : sizeof(stream) - from;
			memcpy(piece, stream + from, len);
			piece[len] = 0;
			IN(.flags = ACK, .seq = (uint32_t)from + 1, .ack = 1, .data = piece);
		}
		assert_int_equal(rig.n_got, sizeof(stream));
		assert_memory_equal(rig.got, stream, sizeof(stream));
		assert_int_equal(rig.stack->ranges.n_used, 0);
		tcp_conn_abort(rig.conn);
		rig_skip();
	}
}

// TH-38, TCP-47, CVE-2018-5390.
static void tiny_segments_pin_little_memory(void **state)
{
	rig_accept(PLAIN);
	for (uint32_t seq = 60000; seq > 2; seq--)
		IN(.flags = ACK, .seq = seq, .ack = 1, .data = "x");
	assert_int_equal(rig.stack->ranges.n_used, 1);
	assert_true(rig.chunks.n_used <= 2 * 60000 / BUF_CHUNK_ROOM + 1);
	IN(.flags = ACK, .seq = 1, .ack = 1, .data = "xx");
	assert_int_equal(rig.n_got, 60000);
	rig_skip();
}

// TH-37, TCP-47
static void the_number_of_holes_is_bounded(void **state)
{
	rig_accept(PLAIN);
	for (uint32_t i = 1; i <= 100; i++)
		IN(.flags = ACK, .seq = 1 + 2 * i, .ack = 1, .data = "x");
	rig_skip();
	assert_int_equal(rig.stack->ranges.n_used, TCP_FEW_RANGES);
	assert_int_equal(rig_count(TCP_drop_out_of_order_full), 100 - TCP_FEW_RANGES);
}

static void tcp_191_whole_segments_may_have_more_holes_between(void **state)
{
	static char half[MSS / 2 + 1];
	memset(half, 'x', MSS / 2);
	rig_accept(PLAIN);
	for (uint32_t i = 0; i < 80; i++)
		IN(.flags = ACK, .seq = 2 + i * (MSS / 2 + 1), .ack = 1, .data = half);
	rig_skip();
	assert_int_equal(rig.stack->ranges.n_used, 80);
	IN(.flags = ACK, .seq = 2 + 80 * (MSS / 2 + 1), .ack = 1, .data = "x");
	rig_skip();
	assert_int_equal(rig_count(TCP_drop_out_of_order_full), 1);
}

// TH-37, RFC 2018 8
static void what_waits_beyond_a_hole_for_too_long_is_dropped_and_sent_again(void **state)
{
	rig_accept(PLAIN);
	IN(.flags = ACK, .seq = 2, .ack = 1, .data = "bcd");
	rig_after_ms(20000);
	IN(.flags = ACK, .seq = 6, .ack = 1, .data = "f"); // more of them is no progress
	assert_int_equal(rig.chunks.n_used, 2);
	rig_after_ms(9999);
	assert_int_equal(rig.chunks.n_used, 2);
	rig_after_ms(2);
	assert_int_equal(rig.chunks.n_used, 0);
	assert_int_equal(rig_count(TCP_drop_out_of_order_late), 1);
	rig_skip();
	IN(.flags = ACK, .seq = 1, .ack = 1, .data = "abcdef");
	assert_int_equal(rig.n_got, 6);
	assert_memory_equal(rig.got, "abcdef", 6);
}

static void a_hole_that_is_filled_at_last_costs_nothing(void **state)
{
	uint32_t at = 1;
	rig_accept(PLAIN);
	for (int i = 0; i < 12; i++, at += 3000) { // a slow link that loses and repeats
		IN(.flags = ACK, .seq = at + 1500, .ack = 1, .len = 1500);
		rig_after_ms(20000);
		IN(.flags = ACK, .seq = at + 3000, .ack = 1, .len = 1500);
		IN(.flags = ACK, .seq = at, .ack = 1, .len = 1500);
	}
	assert_int_equal(rig.n_got, 12 * 3000 + 1500);
	assert_int_equal(rig.chunks.n_used, 0);
	IN(.flags = ACK, .seq = at + 5000, .ack = 1, .len = 1500); // its time is its own
	rig_after_ms(29000);
	IN(.flags = ACK, .seq = at + 1500, .ack = 1, .len = 3500);
	assert_int_equal(rig.n_got, 12 * 3000 + 1500 + 5000);
	assert_int_equal(rig_count(TCP_drop_out_of_order_late), 0);
}

static void random_segments(struct rand *r, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct tcp_opts opts = {.n_sack = (uint8_t)rand_below(r, 4)};
		for (unsigned k = 0; k < opts.n_sack; k++)
			opts.sack[k] = (struct tcp_sack_block){
				(uint32_t)rand_u64(r), (uint32_t)rand_u64(r)};
		uint32_t next = rig.conn->rcv_nxt - PEER_ISS;
		IN(.seq = next + (uint32_t)rand_below(r, 300000) - 20000, .ack = 1,
			.flags = ACK | (rand_below(r, 20) ? 0 : PSH), .len = rand_below(r, 1461),
			.opts = opts);
		if (i % 16 == 0)
			rig_after_ms(1);
		rig_skip();
		rig.n_got = 0; // nobody looks at what came, and the rig keeps a megabyte
	}
}

// TH-37: the connection lives on, and its peer answers.
static void random_segments_hold_no_memory_for_longer_than_a_minute(void **state)
{
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct rand r;
		rand_init(&r, seed);
		rig.conf.recv_window = 256 << 10;
		rig_restart();
		rig_accept((struct tcp_opts){.has_mss = true,
			.mss = MSS,
			.sack_ok = true,
			.has_wscale = true,
			.wscale = 3});
		random_segments(&r, 40000);
		assert_non_null(rig.conn);
		assert_true(rig.chunks.n_used > 32);
		for (int s = 0; s < 60; s++) {
			IN(.seq = rig.conn->rcv_nxt - PEER_ISS, .ack = 1, .flags = ACK);
			rig_after_ms(1000);
			rig_skip();
		}
		assert_int_equal(rig.chunks.n_used, 0);
		assert_int_equal(rig.stack->range_bytes, 0);
		tcp_conn_abort(rig.conn);
		rig.conn = NULL;
		rig_skip();
	}
}

static struct buf hog;

static void exhaust(unsigned leave)
{
	static uint8_t chunk[BUF_CHUNK_ROOM];
	while (pool_left(&rig.chunks) > leave)
		assert_true(buf_append(&hog, &rig.chunks, chunk, sizeof(chunk)));
}

static void without_chunks_unread_data_is_dropped_and_sent_again(void **state)
{
	rig_accept(PLAIN);
	exhaust(0);
	rig.appetite = 2;
	IN(.flags = ACK | FIN, .seq = 1, .ack = 1, .data = "abcd");
	struct out *o = rig_out();
	assert_int_equal(o->ack, 3);
	assert_int_equal(rig.n_eof, 0);
	assert_int_equal(rig_count(TCP_drop_no_chunk), 1);
	rig.appetite = SIZE_MAX;
	tcp_conn_resume(rig.conn);
	IN(.flags = ACK | FIN, .seq = 1, .ack = 1, .data = "abcd");
	assert_memory_equal(rig.got, "abcd", 4);
	assert_int_equal(rig.n_eof, 1);
	assert_int_equal(rig_out()->ack, 6);
	buf_clear(&hog, &rig.chunks);
}

static void th_70_unread_data_takes_none_of_the_last_chunks(void **state)
{
	rig_accept(PLAIN);
	exhaust(BUF_LAST_CHUNKS);
	rig.appetite = 2;
	IN(.flags = ACK, .seq = 1, .ack = 1, .data = "abcd");
	assert_int_equal(rig_out()->ack, 3);
	assert_int_equal(rig_count(TCP_drop_no_chunk), 1);
	buf_clear(&hog, &rig.chunks);
	exhaust(BUF_LAST_CHUNKS + 1);
	IN(.flags = ACK, .seq = 3, .ack = 1, .data = "cd");
	rig_after_ms(40);
	assert_int_equal(rig_out()->ack, 5);
	buf_clear(&hog, &rig.chunks);
}

// TCP-47
static void the_last_eighth_of_the_chunks_is_not_for_out_of_order_data(void **state)
{
	rig_accept(PLAIN);
	exhaust(rig.chunks.n_total / 8);
	IN(.flags = ACK, .seq = 2, .ack = 1, .data = "b");
	assert_int_equal(rig_count(TCP_drop_no_chunk), 1);
	assert_int_equal(rig_out()->ack, 1);
	rig.appetite = 0;
	IN(.flags = ACK, .seq = 1, .ack = 1, .data = "ab");
	rig_after_ms(40);
	assert_int_equal(rig_out()->ack, 3);
	buf_clear(&hog, &rig.chunks);
}

// TH-37
static void out_of_order_data_of_all_connections_takes_a_quarter_of_the_chunks(void **state)
{
	rig.conf.recv_window = 4 << 20;
	rig_restart();
	rig_accept((struct tcp_opts){.has_mss = true, .mss = MSS, .has_wscale = true, .wscale = 7});
	IN(.flags = ACK, .seq = 1, .ack = 1, .len = 1);
	rig_after_ms(50); // announces the whole window
	uint32_t seq = 3;
	for (; rig_count(TCP_drop_no_chunk) == 0; seq += 1460) {
		IN(.flags = ACK, .seq = seq, .ack = 1, .len = 1460);
		rig_skip();
	}
	assert_in_range(rig.chunks.n_used, rig.chunks.n_total / 4 - 1, rig.chunks.n_total / 4);
	IN(.flags = ACK, .seq = 2, .ack = 1, .len = 1);
	assert_int_equal(rig.chunks.n_used, 0);
	assert_int_equal(rig.stack->range_bytes, 0);
	assert_int_equal(rig.n_got, seq - 1460 - 1);
}

// TCP-49
static void a_fin_beyond_a_hole_waits_for_it(void **state)
{
	rig_accept(PLAIN);
	IN(.flags = ACK | FIN, .seq = 4, .ack = 1, .data = "def");
	assert_int_equal(rig_out()->ack, 1);
	assert_int_equal(rig.n_eof, 0);
	IN(.flags = ACK, .seq = 1, .ack = 1, .data = "abc");
	assert_int_equal(rig.n_eof, 1);
	assert_int_equal(rig_out()->ack, 8);
}

// TCP-49
static void data_beyond_the_fin_is_dropped(void **state)
{
	rig_accept(PLAIN);
	IN(.flags = ACK | FIN, .seq = 1, .ack = 1, .data = "abc");
	IN(.flags = ACK, .seq = 4, .ack = 1, .data = "more");
	IN(.flags = ACK, .seq = 5, .ack = 1, .data = "more");
	assert_int_equal(rig.n_got, 3);
	assert_int_equal(rig.n_eof, 1);
	assert_int_equal(rig_count(TCP_drop_after_fin), 2);
	rig_skip();
}

static void eof_comes_after_the_owner_has_read_everything(void **state)
{
	rig_accept(PLAIN);
	rig.appetite = 1;
	IN(.flags = ACK | FIN, .seq = 1, .ack = 1, .data = "abc");
	assert_int_equal(rig_out()->ack, 5);
	assert_int_equal(rig.n_eof, 0);
	rig.appetite = SIZE_MAX;
	tcp_conn_resume(rig.conn);
	assert_int_equal(rig.n_got, 3);
	assert_int_equal(rig.n_eof, 1);
}

// TCP-49
static void what_came_early_from_beyond_the_fin_is_forgotten(void **state)
{
	for (uint32_t seq = 3; seq <= 5; seq++) {
		rig_accept(PLAIN);
		IN(.flags = ACK, .seq = seq, .ack = 1, .data = "xyz");
		IN(.flags = ACK | FIN, .seq = 1, .ack = 1, .data = "abc"); // ends at 4
		assert_int_equal(rig.n_got, 3);
		assert_int_equal(rig.n_eof, 1);
		assert_null(rig.conn->ranges);
		assert_int_equal(rig.chunks.n_used, 0);
		tcp_conn_abort(rig.conn);
		rig_skip();
		rig.n_got = rig.n_eof = 0;
		rig.flow.remote_port++;
	}
	assert_int_equal(rig_count(TCP_drop_after_fin), 3);
}

RUN_SUITE("tcp/recv", CASE(what_came_early_from_beyond_the_fin_is_forgotten),
	CASE(a_lone_segment_is_acknowledged_after_40_ms),
	CASE(the_first_sixteen_alone_are_acknowledged_within_a_millisecond),
	CASE(a_pair_ends_the_haste_of_the_start),
	CASE(an_owner_that_will_answer_ends_the_haste_of_the_start),
	CASE(the_second_segment_is_acknowledged_at_once),
	CASE(an_ack_rides_on_data_of_the_same_turn), CASE(data_is_given_straight_from_the_segment),
	CASE(what_the_owner_leaves_shrinks_the_window_and_comes_again),
	CASE(a_small_opening_of_the_window_is_not_announced),
	CASE(an_owner_that_stops_reading_closes_the_window),
	CASE(a_closed_window_still_takes_acknowledgements),
	CASE(resume_inside_on_data_delivers_at_the_next_turn),
	CASE(segments_beyond_a_hole_wait_for_it),
	CASE(overlapping_pieces_in_any_order_give_each_byte_once),
	CASE(tiny_segments_pin_little_memory), CASE(the_number_of_holes_is_bounded),
	CASE(tcp_191_whole_segments_may_have_more_holes_between),
	CASE(without_chunks_unread_data_is_dropped_and_sent_again),
	CASE(th_70_unread_data_takes_none_of_the_last_chunks),
	CASE(the_last_eighth_of_the_chunks_is_not_for_out_of_order_data),
	CASE(out_of_order_data_of_all_connections_takes_a_quarter_of_the_chunks),
	CASE(what_waits_beyond_a_hole_for_too_long_is_dropped_and_sent_again),
	CASE(a_hole_that_is_filled_at_last_costs_nothing),
	CASE(random_segments_hold_no_memory_for_longer_than_a_minute),
	CASE(a_fin_beyond_a_hole_waits_for_it), CASE(data_beyond_the_fin_is_dropped),
	CASE(eof_comes_after_the_owner_has_read_everything))
