// SPDX-License-Identifier: Apache-2.0
// Windows and queues that follow what comes, or is taken, in a round trip.
#include "tests/unit/tcp/rig.h"

#define RTT_MS 100
#define FIRST 65536u
#define MOST (256u << 10)
#define SHIFT 3 // that windows of 256 KiB need

static void accept_with(uint32_t window_max)
{
	rig.conf.recv_window = rig.conf.send_limit = FIRST;
	rig.conf.window_max = window_max;
	rig_restart();
	rig_accept((struct tcp_opts){.has_mss = true, .mss = MSS, .has_wscale = true, .wscale = 7});
	rig.conn->srtt_ns = RTT_MS * NS_PER_MS;
}

static uint32_t next; // sequence number of the peer

// So many bytes at once; returns the window that the ACK announces.
static uint32_t receive(size_t len)
{
	while (len) {
		size_t n = len < MSS ? len : MSS;
		IN(.flags = ACK, .seq = next, .ack = 1, .len = n);
		next += (uint32_t)n;
		len -= n;
	}
	rig_after_ms(50); // an odd segment's ACK, too
	struct out *o = NULL;
	for (struct out *more; (more = rig_peek());)
		o = rig_out();
	assert_non_null(o);
	assert_int_equal(o->ack, next);
	return (uint32_t)o->wnd << rig.conn->rcv_wscale;
}

static uint32_t receive_round_trips(unsigned n, size_t len)
{
	uint32_t wnd = 0;
	for (unsigned i = 0; i < n; i++) {
		wnd = receive(len);
		rig_after_ms(RTT_MS - 50);
	}
	return wnd;
}

// TCP-145
static void the_scale_of_the_handshake_is_that_of_the_largest_window(void **state)
{
	accept_with(MOST);
	assert_int_equal(rig.conn->rcv_wscale, SHIFT);
	assert_int_equal(rig.conn->rcv_wnd, FIRST);
}

// TCP-145
static void a_window_of_which_half_comes_in_a_round_trip_doubles(void **state)
{
	accept_with(MOST);
	next = 1;
	assert_int_equal(receive_round_trips(2, FIRST / 2), 2 * FIRST);
	assert_int_equal(rig_count(TCP_windows_grown), 1);
	assert_in_range(receive_round_trips(8, FIRST), MOST - 8192, MOST);
	assert_int_equal(rig.conn->rcv_wnd, MOST);
	assert_int_equal(rig_count(TCP_windows_grown), 2);
}

// TCP-145
static void a_window_of_which_less_comes_in_a_round_trip_stays(void **state)
{
	accept_with(MOST);
	next = 1;
	assert_int_equal(receive_round_trips(40, FIRST / 4), FIRST);
	assert_int_equal(rig_count(TCP_windows_grown), 0);
}

// TCP-145
static void a_window_without_scaling_stays(void **state)
{
	rig.conf.window_max = MOST;
	rig_restart();
	rig_accept(PLAIN);
	rig.conn->srtt_ns = RTT_MS * NS_PER_MS;
	next = 1;
	assert_int_equal(receive_round_trips(8, 60000), 65535);
}

// TCP-145: what its owner leaves does not make a window grow.
static void a_window_stays_while_its_owner_leaves_bytes(void **state)
{
	accept_with(MOST);
	next = 1;
	rig.appetite = 1000;
	receive(FIRST / 2);
	rig_after_ms(RTT_MS - 50);
	receive(FIRST / 2 - 2000);
	assert_int_equal(rig_count(TCP_windows_grown), 0);
}

static void take_chunks(struct buf *b, size_t len)
{
	static uint8_t zeros[4096];
	for (; len; len -= sizeof(zeros))
		assert_true(buf_append(b, &rig.chunks, zeros, sizeof(zeros)));
}

// TCP-146
static void full_chunks_shrink_what_is_announced_and_take_nothing_back(void **state)
{
	struct buf others = {0};
	accept_with(MOST);
	next = 1;
	receive_round_trips(2, FIRST / 2);
	receive_round_trips(6, FIRST);
	uint32_t edge = rig.conn->rcv_adv;
	size_t half = (size_t)rig.chunks.n_total / 2 * BUF_CHUNK_ROOM;
	take_chunks(&others, (half - 8 * 2 * FIRST) & ~(size_t)4095);
	uint32_t wnd = receive(1460);
	assert_in_range(rig.conn->rcv_adv, edge, edge + 7); // not to the left; in units of 8
	assert_int_equal(wnd, rig.conn->rcv_adv - rig.conn->rcv_nxt);
	wnd = receive_round_trips(3, FIRST);
	assert_in_range(wnd, 2 * FIRST - 8192, 2 * FIRST + 8192);
	take_chunks(&others, 8 * 2 * FIRST + 4096);
	assert_in_range(receive_round_trips(3, FIRST / 2), FIRST, FIRST + 7); // what each has
	buf_clear(&others, &rig.chunks);
	assert_in_range(receive(1460), MOST - 8192, MOST);
}

static void acknowledge_all(uint16_t wnd)
{
	rig_skip();
	IN(.flags = ACK, .seq = 1, .ack = tcp_conn_n_sent(rig.conn) + 1, .wnd = wnd);
}

// TCP-147
static void the_send_queue_has_room_for_what_cwnd_allows(void **state)
{
	accept_with(MOST);
	assert_int_equal(tcp_conn_send_room(rig.conn), FIRST);
	acknowledge_all(0xffff);
	uint32_t cwnd = 0;
	for (unsigned i = 0; i < 12 && cwnd < FIRST; i++) {
		rig_write_n(tcp_conn_send_room(rig.conn));
		rig_after_ms(RTT_MS);
		acknowledge_all(0xffff);
		cwnd = rig.conn->cc.cwnd;
	}
	assert_in_range(cwnd, FIRST, MOST);
	assert_int_equal(rig.conn->sendq.len + tcp_conn_send_room(rig.conn), FIRST / 2 + cwnd);
	rig.conn->cc.cwnd = 1 << 30; // as much as there may be
	assert_in_range(
		rig.conn->sendq.len + tcp_conn_send_room(rig.conn), MOST - 8192, FIRST / 2 + MOST);
}

// TCP-147: a peer that closes its window finds no more waiting than before.
static void the_send_queue_shrinks_with_the_peers_window(void **state)
{
	accept_with(MOST);
	acknowledge_all(0xffff);
	rig.conn->cc.cwnd = 2 * FIRST;
	rig_write_n(tcp_conn_send_room(rig.conn));
	assert_int_equal(tcp_conn_unsent(rig.conn), FIRST / 2 + 2 * FIRST);
	rig_after_ms(3);
	assert_in_range(tcp_conn_unsent(rig.conn), FIRST / 2, FIRST / 2 + MSS);
	IN(.flags = ACK, .seq = 1, .ack = tcp_conn_n_sent(rig.conn) + 1, .zero_wnd = true);
	assert_in_range(rig.conn->sendq.len, FIRST / 2, FIRST / 2 + MSS);
	assert_int_equal(rig.conn->sendq.len + tcp_conn_send_room(rig.conn), FIRST);
}

RUN_SUITE("tcp/window", CASE(the_scale_of_the_handshake_is_that_of_the_largest_window),
	CASE(a_window_of_which_half_comes_in_a_round_trip_doubles),
	CASE(a_window_of_which_less_comes_in_a_round_trip_stays),
	CASE(a_window_without_scaling_stays), CASE(a_window_stays_while_its_owner_leaves_bytes),
	CASE(full_chunks_shrink_what_is_announced_and_take_nothing_back),
	CASE(the_send_queue_has_room_for_what_cwnd_allows),
	CASE(the_send_queue_shrinks_with_the_peers_window))
