// SPDX-License-Identifier: Apache-2.0
#include "dataplane/tcp/mss.h"
#include "tests/unit/tcp/rig.h"

// An open connection with these, beyond slow start, whose peer has a window of 2 MiB.
static void open_conn(unsigned cwnd, uint64_t srtt_us)
{
	rig.conf.unpaced = false;
	rig_restart();
	rig_accept((struct tcp_opts){.has_mss = true, .mss = MSS, .has_wscale = true, .wscale = 5});
	IN(.flags = ACK, .seq = 1, .ack = 1, .wnd = 65535);
	rig.conn->srtt_ns = srtt_us * NS_PER_US;
	rig.conn->cc.cwnd = cwnd * MSS;
	rig.conn->cc.ssthresh = cwnd * MSS;
}

// Segments sent so far.
static unsigned n_sent(void)
{
	tcp_stack_flush(rig.stack);
	return rig.n_out;
}

// Sends so many segments, the peer saying nothing; checks that those beyond ten leave at so many a
// millisecond (in tenths), never more than that takes in two milliseconds and a segment at once.
static void assert_paced(unsigned n, unsigned tenths)
{
	unsigned last = 0, at_once = 2 * tenths / 10 > 2 ? 2 * tenths / 10 + 1 : 3;
	rig_write_n(n * MSS);
	for (unsigned ms = 0; last < n; ms++) {
		unsigned sent = n_sent(), should = 10 + ms * tenths / 10;
		assert_true(ms || sent <= 10 + at_once);
		assert_true(!ms || sent - last <= at_once);
		assert_true(sent <= should + at_once);
		assert_true(sent == n || sent + at_once >= should);
		last = sent;
		rig_after_ms(1);
	}
}

// TCP-140
static void what_cwnd_allows_leaves_within_a_round_trip(void **state)
{
	open_conn(100, 100000);
	assert_paced(100, 12); // 1.2 windows a round trip
}

// TCP-140
static void slow_start_is_paced_at_twice_the_window(void **state)
{
	open_conn(100, 100000);
	rig.conn->cc.ssthresh = UINT32_MAX;
	assert_paced(100, 20);
}

// TCP-140
static void slow_ways_have_bursts_of_two_segments(void **state)
{
	open_conn(20, 100000);
	rig_write_n(20 * MSS);
	assert_int_equal(n_sent(), 12);
	rig_after_ms(8); // two take 8.3 ms at 1.2 * 20 / 100 a millisecond
	assert_int_equal(n_sent(), 12);
	rig_after_ms(1);
	assert_int_equal(n_sent(), 14);
	rig_after_ms(30);
	assert_int_equal(n_sent(), 20);
}

static void fast_ways_have_bursts_of_a_millisecond(void **state)
{
	open_conn(400, 20000);
	assert_paced(400, 240);
}

// TCP-211, TCP-169: or the timer would be due at once, again and again.
static void a_probe_of_three_segments_leaves_when_its_time_has_come(void **state)
{
	open_conn(20, 100000);
	struct tcp_conn *c = rig.conn;
	c->path_guess = 512;
	c->guessed_path = true;
	c->path_at_ms = (uint32_t)(tcp_now(rig.stack) / NS_PER_MS) + 20;
	tcp_mss_refresh(c);
	rig_write_n(20 * MSS);
	for (unsigned ms = 0; ms < 30; ms++) {
		(void)n_sent();
		uint64_t at = c->deadlines[TCP_TIMER_PACE];
		assert_true(!at || at > tcp_now(rig.stack));
		rig_after_ms(1);
	}
	assert_int_equal(rig_count(TCP_path_probes), 1);
	rig_skip();
}

// TCP-141
static void ten_segments_are_never_held_back(void **state)
{
	open_conn(100, 100000);
	for (unsigned round = 0; round < 3; round++) {
		uint32_t end = rig.conn->snd_nxt - rig.iss + 10 * MSS;
		rig_write_n(10 * MSS);
		rig_skip();
		assert_int_equal(rig.conn->snd_nxt - rig.iss, end);
		IN(.flags = ACK, .seq = 1, .ack = end, .wnd = 65535);
	}
}

// TCP-141: a stream of small messages is one flight.
static void messages_beyond_ten_segments_in_flight_are_paced_too(void **state)
{
	open_conn(100, 100000);
	for (unsigned i = 0; i < 30; i++) {
		rig_write_n(MSS);
		tcp_stack_flush(rig.stack);
	}
	assert_in_range(n_sent(), 11, 13);
	rig_after_ms(20);
	assert_int_equal(n_sent(), 30);
}

// TCP-142
static void short_ways_are_not_paced(void **state)
{
	open_conn(60, 3999);
	rig_write_n(60 * MSS);
	assert_int_equal(n_sent(), 60);
}

static void an_ack_lets_out_no_more_than_a_burst(void **state)
{
	open_conn(60, 100000);
	rig_write_n(200 * MSS);
	rig_after_ms(120);
	assert_int_equal(n_sent(), 60);
	IN(.flags = ACK, .seq = 1, .ack = 1 + 50 * MSS, .wnd = 65535); // many were under way
	assert_in_range(n_sent(), 60, 64);
}

// TCP-143
static void acks_of_a_flight_that_filled_cwnd_grow_it(void **state)
{
	open_conn(20, 1000);
	rig.conn->cc.ssthresh = UINT32_MAX;
	rig_write_n(21 * MSS);
	assert_int_equal(n_sent(), 20);
	IN(.flags = ACK, .seq = 1, .ack = 1 + 5 * MSS, .wnd = 65535);
	assert_int_equal(n_sent(), 21); // nothing is left that cwnd holds back
	assert_int_equal(rig.conn->cc.cwnd, 25 * MSS);
	IN(.flags = ACK, .seq = 1, .ack = 1 + 20 * MSS, .wnd = 65535);
	assert_int_equal(rig.conn->cc.cwnd, 40 * MSS);
	IN(.flags = ACK, .seq = 1, .ack = 1 + 21 * MSS, .wnd = 65535);
	assert_int_equal(rig.conn->cc.cwnd, 40 * MSS);
}

// TCP-143
static void what_leaves_room_in_cwnd_does_not_grow_it(void **state)
{
	open_conn(20, 100000);
	rig_write_n(19 * MSS);
	rig_after_ms(50);
	assert_int_equal(n_sent(), 19);
	IN(.flags = ACK, .seq = 1, .ack = 1 + 19 * MSS, .wnd = 65535);
	assert_int_equal(rig.conn->cc.cwnd, 20 * MSS);
}

// TCP-207
static void slow_start_goes_on_with_more_than_half_of_cwnd_in_use(void **state)
{
	open_conn(20, 1000);
	rig.conn->cc.ssthresh = UINT32_MAX;
	rig_write_n(10 * MSS);
	assert_int_equal(n_sent(), 10);
	IN(.flags = ACK, .seq = 1, .ack = 1 + 10 * MSS, .wnd = 65535); // half is not enough
	assert_int_equal(rig.conn->cc.cwnd, 20 * MSS);
	rig_write_n(12 * MSS);
	assert_int_equal(n_sent(), 22);
	for (unsigned i = 0; i < 6; i++)
		IN(.flags = ACK, .seq = 1, .ack = 1 + (12 + 2 * i) * MSS, .wnd = 65535);
	assert_int_equal(rig.conn->cc.cwnd, 24 * MSS); // twice what was in flight, and no more
	rig_write_n(MSS);
	assert_int_equal(n_sent(), 23);
	IN(.flags = ACK, .seq = 1, .ack = 1 + 23 * MSS, .wnd = 65535);
	assert_int_equal(rig.conn->cc.cwnd, 24 * MSS);
}

// TCP-207
static void it_goes_on_up_to_the_threshold(void **state)
{
	open_conn(20, 1000);
	rig.conn->cc.ssthresh = 21 * MSS;
	rig_write_n(15 * MSS);
	assert_int_equal(n_sent(), 15);
	IN(.flags = ACK, .seq = 1, .ack = 1 + 15 * MSS, .wnd = 65535);
	assert_int_equal(rig.conn->cc.cwnd, 21 * MSS);
	rig_write_n(20 * MSS);
	rig_after_ms(50);
	assert_int_equal(n_sent(), 35);
	IN(.flags = ACK, .seq = 1, .ack = 1 + 35 * MSS, .wnd = 65535);
	assert_int_equal(rig.conn->cc.cwnd, 21 * MSS);
}

// TCP-207: a segment a turn, so that each could take the fast path.
static void a_flight_written_piece_by_piece_counts_as_a_whole(void **state)
{
	open_conn(10, 1000);
	rig.conn->cc.ssthresh = UINT32_MAX;
	for (unsigned i = 0; i < 8; i++) {
		rig_write_n(MSS);
		tcp_stack_flush(rig.stack);
	}
	assert_int_equal(n_sent(), 8);
	for (unsigned i = 1; i <= 8; i++)
		IN(.flags = ACK, .seq = 1, .ack = 1 + i * MSS, .wnd = 65535);
	assert_int_equal(rig.conn->cc.cwnd, 16 * MSS);
}

// A segment each 100 ms, which is no silence, and its ACK after one.
static void trickle(unsigned seconds, uint32_t *seq)
{
	for (unsigned i = 0; i < 10 * seconds; i++) {
		rig_write_n(MSS);
		rig_skip();
		rig_after_ms(1);
		*seq += MSS;
		IN(.flags = ACK, .seq = 1, .ack = *seq, .wnd = 65535);
		rig_after_ms(99);
	}
}

// TCP-202
static void five_minutes_of_little_use_halve_cwnd_for_the_next_burst(void **state)
{
	uint32_t seq = 1;
	rig.conf.congestion = NULL; // the default
	open_conn(60, 1000);
	rig.conn->cc.ssthresh = 20 * MSS;
	trickle(290, &seq);
	rig_write_n(40 * MSS);
	rig_skip();
	assert_int_equal(rig.conn->cc.cwnd, 60 * MSS);
	seq += 40 * MSS;
	IN(.flags = ACK, .seq = 1, .ack = seq, .wnd = 65535);
	trickle(290, &seq); // since the burst
	rig_write_n(40 * MSS);
	rig_skip();
	assert_int_equal(rig.conn->cc.cwnd, 60 * MSS);
	seq += 40 * MSS;
	IN(.flags = ACK, .seq = 1, .ack = seq, .wnd = 65535);
	trickle(305, &seq);
	rig_write_n(20 * MSS); // of little use, too
	rig_skip();
	assert_int_equal(rig.conn->cc.cwnd, 60 * MSS);
	seq += 20 * MSS;
	IN(.flags = ACK, .seq = 1, .ack = seq, .wnd = 65535);
	rig_write_n(40 * MSS);
	rig_skip();
	assert_int_equal(rig.conn->cc.cwnd, 30 * MSS);
	assert_int_equal(rig.conn->cc.ssthresh, 45 * MSS);
}

static void pacing_keeps_no_cwnd_from_growing(void **state)
{
	open_conn(20, 100000);
	rig.conn->cc.ssthresh = UINT32_MAX;
	rig_write_n(30 * MSS);
	unsigned n = n_sent();
	assert_true(n < 20);
	IN(.flags = ACK, .seq = 1, .ack = 1 + n * MSS, .wnd = 65535);
	assert_int_equal(rig.conn->cc.cwnd, (20 + n) * MSS);
}

// TCP-140: what has arrived beyond a hole is not in flight.
static void what_is_reported_is_not_in_flight(void **state)
{
	open_conn(100, 100000);
	rig.conn->sack_on = true;
	rig_write_n(20 * MSS);
	rig_after_ms(50);
	rig_skip();
	struct tcp_opts o = {.n_sack = 1, .sack = {{rig.iss + 1 + MSS, rig.iss + 1 + 20 * MSS}}};
	IN(.flags = ACK, .seq = 1, .ack = 1, .wnd = 65535, .opts = o);
	rig_write_n(20 * MSS);
	unsigned before = rig.n_out;
	assert_true(n_sent() - before >= 10);
	rig_skip();
}

// The first of what was sent is lost, the next three arrive. Returns the segments in flight.
static unsigned lose_first_of(unsigned n_queued)
{
	open_conn(40, 100000);
	rig.conn->sack_on = true;
	rig_write_n(n_queued * MSS);
	rig_after_ms(20);
	unsigned n = n_sent();
	assert_in_range(n, 15, 25);
	struct tcp_opts o = {.n_sack = 1, .sack = {{rig.iss + 1 + MSS, rig.iss + 1 + 4 * MSS}}};
	IN(.flags = ACK, .seq = 1, .ack = 1, .wnd = 65535, .opts = o);
	assert_true(rig.conn->in_recovery);
	rig_skip();
	return n;
}

// TCP-221
static void a_loss_leaves_its_share_of_what_pacing_holds_back_too(void **state)
{
	(void)lose_first_of(60);
	assert_int_equal(rig.conn->cc.ssthresh, 20 * MSS);
}

// TCP-221: cwnd would not have been full.
static void of_a_shorter_queue_it_leaves_its_share_of_what_is_in_flight(void **state)
{
	unsigned n = lose_first_of(35);
	assert_int_equal(rig.conn->cc.ssthresh, n * MSS / 2);
}

RUN_SUITE("tcp/pacing", CASE(what_cwnd_allows_leaves_within_a_round_trip),
	CASE(slow_start_is_paced_at_twice_the_window), CASE(slow_ways_have_bursts_of_two_segments),
	CASE(fast_ways_have_bursts_of_a_millisecond),
	CASE(a_probe_of_three_segments_leaves_when_its_time_has_come),
	CASE(ten_segments_are_never_held_back),
	CASE(messages_beyond_ten_segments_in_flight_are_paced_too), CASE(short_ways_are_not_paced),
	CASE(an_ack_lets_out_no_more_than_a_burst), CASE(acks_of_a_flight_that_filled_cwnd_grow_it),
	CASE(what_leaves_room_in_cwnd_does_not_grow_it),
	CASE(slow_start_goes_on_with_more_than_half_of_cwnd_in_use),
	CASE(it_goes_on_up_to_the_threshold),
	CASE(a_flight_written_piece_by_piece_counts_as_a_whole),
	CASE(five_minutes_of_little_use_halve_cwnd_for_the_next_burst),
	CASE(pacing_keeps_no_cwnd_from_growing), CASE(what_is_reported_is_not_in_flight),
	CASE(a_loss_leaves_its_share_of_what_pacing_holds_back_too),
	CASE(of_a_shorter_queue_it_leaves_its_share_of_what_is_in_flight))
