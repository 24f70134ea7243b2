// SPDX-License-Identifier: Apache-2.0
#include "lb/base/time.h"
#include "tests/unit/tcp/rig.h"

static void expect_resent(uint32_t seq)
{
	struct out *o = rig_out();
	assert_int_equal(o->seq, seq);
	assert_true(o->len > 0);
}

static void dup_acks(unsigned n, uint32_t ack)
{
	while (n--)
		IN(.flags = ACK, .seq = 1, .ack = ack);
}

// TCP-63, TCP-65, RFC 6298 5: the handshake took no time, so the timeout is its minimum, doubled
// each time.
static void unacknowledged_data_comes_again_after_200_600_1400_ms(void **state)
{
	rig_accept(PLAIN);
	rig_after_ms(7);
	rig_write("hello");
	rig_at_ms(7 + 3100);
	static const unsigned at[] = {0, 200, 600, 1400, 3000};
	for (unsigned i = 0; i < 5; i++) {
		struct out *o = rig_out();
		assert_int_equal(rig_ms(o), 7 + at[i]);
		assert_int_equal(o->seq, 1);
		assert_int_equal(o->len, 5);
	}
	NO_OUT();
	assert_int_equal(rig_count(TCP_retransmission_timeouts), 4);
	assert_int_equal(rig_count(TCP_retransmits), 4);
}

// TCP-62, RFC 6298 2.2 and 2.3.
static void the_timeout_follows_the_round_trips(void **state)
{
	rig_begin_connect(10 * NS_PER_SECOND);
	rig_after_ms(100);
	IN(.flags = SYN | ACK, .seq = 0, .ack = 1, .opts = PLAIN);
	assert_int_equal(rig.conn->srtt_ns, 100 * NS_PER_MS);
	assert_int_equal(rig.conn->rttvar_ns, 50 * NS_PER_MS);
	assert_int_equal(rig.conn->rto_ns, 300 * NS_PER_MS);
	rig_write("a");
	rig_skip();
	rig_after_ms(200);
	IN(.flags = ACK, .seq = 1, .ack = 2);
	assert_int_equal(rig.conn->rttvar_ns, 62500000); // 3/4 * 50 + 1/4 * |100 - 200|
	assert_int_equal(rig.conn->srtt_ns, 112500000); // 7/8 * 100 + 1/8 * 200
	assert_int_equal(rig.conn->rto_ns, 362500000);
}

// TCP-192, RFC 7323 appendix G: as the sender counts ACKs, not as it guesses them.
static void an_ack_of_the_whole_flight_is_a_whole_sample(void **state)
{
	rig_begin_connect(10 * NS_PER_SECOND);
	rig_after_ms(100);
	IN(.flags = SYN | ACK, .seq = 0, .ack = 1, .opts = PLAIN);
	rig_write_n(10 * MSS);
	rig_skip();
	rig_after_ms(180);
	IN(.flags = ACK, .seq = 1, .ack = 1 + 10 * MSS);
	assert_int_equal(rig.conn->srtt_ns, 110 * NS_PER_MS); // 7/8 * 100 + 1/8 * 180
	rig_write_n(8 * MSS);
	rig_skip();
	rig_after_ms(190);
	IN(.flags = ACK, .seq = 1, .ack = 1 + 12 * MSS); // for 4096 bytes, of 11680: two halves
	assert_int_equal(rig.conn->srtt_ns, 110 * NS_PER_MS + 80 * NS_PER_MS / 16);
	rig_skip();
}

// TCP-64: Karn: an answer to something sent twice says nothing about time.
static void a_retransmitted_segment_gives_no_sample(void **state)
{
	rig_accept(PLAIN);
	rig_write("a");
	rig_after_ms(250);
	IN(.flags = ACK, .seq = 1, .ack = 2);
	assert_int_equal(rig.conn->rto_ns, 200 * NS_PER_MS);
	assert_int_equal(rig.conn->n_backoff, 0);
}

// TCP-67, RFC 6298 5.7.
static void a_lost_syn_makes_the_first_timeout_3_seconds(void **state)
{
	rig_begin_connect(10 * NS_PER_SECOND);
	rig_after_ms(1000);
	rig_skip();
	IN(.flags = SYN | ACK, .seq = 0, .ack = 1, .opts = PLAIN);
	rig_write("a");
	rig_skip();
	rig_after_ms(2999);
	NO_OUT();
	rig_after_ms(1);
	expect_resent(1);
}

// TCP-65, TCP-66, RFC 6298 5.3.
static void progress_restarts_the_timer(void **state)
{
	rig_accept(PLAIN);
	rig_write_n(2 * MSS);
	rig_skip();
	rig_after_ms(150);
	IN(.flags = ACK, .seq = 1, .ack = 1 + MSS);
	rig_after_ms(199);
	NO_OUT();
	rig_after_ms(201); // the sample of 150 ms made the timeout longer
	expect_resent(1 + MSS);
}

// TCP-73, RFC 5681 3.1: one segment, and half of what was in flight as the threshold.
static void a_timeout_starts_over_with_one_segment(void **state)
{
	rig_accept(PLAIN);
	rig_write_n(10 * MSS);
	rig_skip();
	rig_after_ms(200);
	expect_resent(1);
	NO_OUT();
	assert_int_equal(rig.conn->cc.cwnd, MSS);
	assert_int_equal(rig.conn->cc.ssthresh, 5 * MSS);
	IN(.flags = ACK, .seq = 1, .ack = 1 + MSS);
	expect_resent(1 + MSS);
	expect_resent(1 + 2 * MSS);
	NO_OUT();
	// What the peer had kept needs no resending.
	IN(.flags = ACK, .seq = 1, .ack = 1 + 10 * MSS);
	NO_OUT();
	assert_int_equal(rig.n_room, 1);
}

// TCP-61
static void after_a_timeout_segments_fit_a_smaller_mtu(void **state)
{
	rig_accept(PLAIN);
	rig_write_n(2 * MSS);
	rig_skip();
	rig.mtu = 600;
	rig_after_ms(200);
	struct out *o = rig_out();
	assert_int_equal(o->seq, 1);
	assert_int_equal(o->len, 560);
	NO_OUT(); // the loss window is one segment of that size, too
	assert_int_equal(rig.conn->cc.cwnd, 560);
}

// TCP-68
static void the_user_timeout_ends_the_connection_on_time(void **state)
{
	rig_accept(PLAIN);
	rig_after_ms(5);
	tcp_conn_set_user_timeout(rig.conn, 5000 * NS_PER_MS);
	rig_write("a");
	rig_skip();
	rig_after_ms(4999);
	assert_int_equal(rig.n_closed, 0);
	rig_skip();
	rig_after_ms(1);
	assert_int_equal(rig.n_closed, 1);
	assert_int_equal(rig.reason, TCP_CLOSE_TIMEOUT);
	struct out *o = rig_out();
	assert_int_equal(o->flags, RST | ACK);
	assert_int_equal(o->seq, 2);
}

// TCP-68: whatever the timer was when it began to double.
static void whoever_was_away_for_25_seconds_is_asked_before_the_user_timeout(void **state)
{
	for (uint64_t rto_ms = 200; rto_ms <= 3000; rto_ms += 50) {
		rig_restart();
		rig_accept(PLAIN);
		rig.conn->rto_ns = rto_ms * NS_PER_MS;
		rig_write("a");
		rig_after_ms(25000);
		rig_skip();
		rig_after_ms(4999);
		assert_int_equal(rig_out()->len, 1);
		IN(.flags = ACK, .seq = 1, .ack = 2);
		rig_after_ms(60000);
		assert_int_equal(rig.n_closed, 0);
		rig_skip();
	}
}

// TCP-68
static void the_default_user_timeout_is_30_seconds(void **state)
{
	rig_accept(PLAIN);
	rig_write("a");
	rig_after_ms(29999);
	assert_int_equal(rig.n_closed, 0);
	rig_after_ms(1);
	assert_int_equal(rig.n_closed, 1);
	rig_skip();
}

// TCP-166: 15 RTO, and not more than 100 s of them.
static void a_slow_path_lengthens_the_user_timeout(void **state)
{
	static const uint64_t cases[][2] = {{1900, 30000}, {4000, 60000}, {20000, 100000}};
	for (unsigned i = 0; i < 3; i++) {
		rig_restart();
		rig.n_closed = rig.n_unanswered = 0;
		rig_accept(PLAIN);
		rig.conn->rto_ns = cases[i][0] * NS_PER_MS;
		rig_write("a");
		rig_after_ms(cases[i][1] - 1);
		assert_int_equal(rig.n_closed, 0);
		rig_after_ms(1);
		assert_int_equal(rig.n_closed, 1);
		rig_skip();
	}
	rig_restart();
	rig.n_closed = 0;
	rig_accept(PLAIN);
	rig.conn->rto_ns = 20 * NS_PER_SECOND;
	tcp_conn_set_user_timeout(rig.conn, 200 * NS_PER_SECOND); // what the owner wants stays
	rig_write("a");
	rig_after_ms(199999);
	assert_int_equal(rig.n_closed, 0);
	rig_skip();
}

// TCP-167, RFC 9293 3.8.3.
static void the_owner_is_told_before_the_user_timeout(void **state)
{
	static const uint64_t cases[][3] = {
		{200, 6999, 7000}, {1000, 6999, 7000}, {3000, 20999, 21000}};
	for (unsigned i = 0; i < 3; i++) {
		rig_restart();
		rig.n_closed = rig.n_unanswered = 0;
		rig_accept(PLAIN);
		rig.conn->rto_ns = cases[i][0] * NS_PER_MS;
		rig_write("a");
		rig_after_ms(cases[i][1]);
		assert_int_equal(rig.n_unanswered, 0);
		rig_after_ms(cases[i][2] - cases[i][1]);
		assert_int_equal(rig.n_unanswered, 1);
		assert_int_equal(rig.n_closed, 0);
		rig_skip();
	}
	IN(.flags = ACK, .seq = 1, .ack = 2);
	rig_after_ms(100000);
	assert_int_equal(rig.n_unanswered, 1);
}

// TCP-167
static void the_owner_is_told_of_questions_without_an_answer(void **state)
{
	rig_accept(PLAIN);
	tcp_conn_set_keepalive(rig.conn, 3 * NS_PER_SECOND);
	rig_after_ms(8999);
	assert_int_equal(rig.n_unanswered, 0);
	rig_after_ms(1);
	assert_int_equal(rig.n_unanswered, 1);
	rig_skip();
	IN(.flags = ACK, .seq = 1, .ack = 1);
	for (unsigned i = 0; i < 10; i++) { // each question is answered
		rig_after_ms(3000);
		assert_int_equal(rig_out()->seq, 0);
		IN(.flags = ACK, .seq = 1, .ack = 1);
	}
	assert_int_equal(rig.n_unanswered, 1);
}

// TCP-210: whatever was due meanwhile, the peer is asked first.
static void a_pause_of_our_own_is_no_silence_of_the_peer(void **state)
{
	rig_accept(PLAIN);
	tcp_conn_set_keepalive(rig.conn, 3 * NS_PER_SECOND);
	rig_write("a");
	rig_skip();
	rig_leap_ms(100000);
	assert_int_equal(rig_out()->len, 1); // again
	assert_int_equal(rig.n_unanswered + rig.n_closed, 0);
	IN(.flags = ACK, .seq = 1, .ack = 2);
	rig_leap_ms(100000);
	assert_int_equal(rig_out()->seq, 1); // a question
	assert_int_equal(rig.n_unanswered + rig.n_closed, 0);
	rig_after_ms(5999);
	assert_int_equal(rig.n_unanswered, 0);
	rig_after_ms(1);
	assert_int_equal(rig.n_unanswered, 1);
}

// TCP-210: with a tail to be probed, data that is written before its timers fire sets the deadline
// anew.
static void a_pause_of_our_own_is_excused_when_more_data_comes_first(void **state)
{
	rig_accept((struct tcp_opts){.has_mss = true, .mss = MSS, .sack_ok = true});
	tcp_conn_set_user_timeout(rig.conn, 5 * NS_PER_SECOND);
	rig_write("a");
	rig_after_ms(10);
	IN(.flags = ACK, .seq = 1, .ack = 2);
	rig_write("b"); // is lost
	tcp_stack_flush(rig.stack);
	twheel_set_now(rig.wheel, twheel_now(rig.wheel) + 6 * NS_PER_SECOND);
	rig_write("c");
	tcp_stack_flush(rig.stack);
	rig_skip();
	rig_after_ms(1000);
	assert_true(rig_peek() != NULL); // asks
	assert_int_equal(rig.n_unanswered + rig.n_closed, 0);
	rig_after_ms(5000);
	assert_int_equal(rig.n_closed, 1); // it has its time, and no more
}

// TCP-167: a closed window that is answered is no silence.
static void who_answers_window_probes_is_not_silent(void **state)
{
	rig_accept(PLAIN);
	rig_write("a");
	rig_skip();
	IN(.flags = ACK, .seq = 1, .ack = 2, .zero_wnd = true);
	rig_write("b");
	for (unsigned i = 0; i < 100; i++) {
		rig_after_ms(1000);
		if (rig_peek())
			IN(.flags = ACK, .seq = 1, .ack = 2, .zero_wnd = true);
		rig_skip();
	}
	assert_int_equal(rig.n_unanswered, 0);
	assert_int_equal(rig.n_closed, 0);
}

// TCP-69, RFC 9293 3.8.4.
static void a_silent_peer_is_probed_and_given_up(void **state)
{
	rig_accept(PLAIN);
	tcp_conn_set_user_timeout(rig.conn, 8 * NS_PER_SECOND);
	tcp_conn_set_keepalive(rig.conn, 10 * NS_PER_SECOND);
	rig_after_ms(9999);
	NO_OUT();
	rig_after_ms(1);
	struct out *o = rig_out();
	assert_int_equal(o->flags, ACK);
	assert_int_equal(o->seq, 0);
	assert_int_equal(o->len, 0);
	IN(.flags = ACK, .seq = 1, .ack = 1); // it lives
	rig_after_ms(9999);
	NO_OUT();
	rig_after_ms(1 + 7999);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(rig_out()->seq, 0);
	NO_OUT();
	assert_int_equal(rig.n_closed, 0);
	rig_after_ms(1);
	assert_int_equal(rig.n_closed, 1);
	assert_int_equal(rig.reason, TCP_CLOSE_TIMEOUT);
	assert_int_equal(rig_out()->flags, RST | ACK);
}

// TCP-69
static void keepalive_is_off_unless_asked_for(void **state)
{
	rig_accept(PLAIN);
	rig_after_ms(100000);
	tcp_conn_set_keepalive(rig.conn, NS_PER_SECOND);
	tcp_conn_set_keepalive(rig.conn, 0);
	rig_after_ms(100000);
	NO_OUT();
	assert_int_equal(rig.n_closed, 0);
}

// TCP-76, RFC 3042.
static void the_first_two_duplicates_let_new_segments_out(void **state)
{
	rig_accept(PLAIN);
	rig_write_n(20 * MSS);
	rig_skip();
	dup_acks(1, 1);
	expect_resent(1 + 10 * MSS); // new
	NO_OUT();
	dup_acks(1, 1);
	expect_resent(1 + 11 * MSS);
	NO_OUT();
	assert_int_equal(rig_count(TCP_retransmits), 0);
}

// TCP-77, RFC 6582 3.2.
static void the_third_duplicate_resends_the_oldest_segment(void **state)
{
	rig_accept(PLAIN);
	rig_write_n(10 * MSS);
	rig_skip();
	dup_acks(3, 1);
	expect_resent(1);
	NO_OUT();
	assert_int_equal(rig.conn->cc.ssthresh, 5 * MSS);
	assert_int_equal(rig.conn->cc.cwnd, 8 * MSS);
	assert_int_equal(rig_count(TCP_fast_recoveries), 1);
	rig_write_n(10 * MSS);
	NO_OUT();
	dup_acks(3, 1); // each says that a segment has left the network
	expect_resent(1 + 10 * MSS);
	NO_OUT();
}

// TCP-78
static void a_partial_ack_resends_the_next_hole(void **state)
{
	rig_accept(PLAIN);
	rig_write_n(10 * MSS);
	rig_skip();
	dup_acks(3, 1);
	rig_skip();
	IN(.flags = ACK, .seq = 1, .ack = 1 + 4 * MSS);
	expect_resent(1 + 4 * MSS);
	NO_OUT();
	assert_true(rig.conn->in_recovery);
	IN(.flags = ACK, .seq = 1, .ack = 1 + 10 * MSS);
	assert_false(rig.conn->in_recovery);
	assert_true(rig.conn->cc.cwnd <= 5 * MSS);
	assert_int_equal(rig_count(TCP_fast_recoveries), 1);
	NO_OUT();
}

// TCP-79, RFC 6582 3.2, step 2: duplicates that a timeout's resending causes are no new loss.
static void duplicates_after_a_timeout_do_not_start_recovery(void **state)
{
	rig_accept(PLAIN);
	rig_write_n(10 * MSS);
	rig_skip();
	rig_after_ms(200);
	rig_skip();
	dup_acks(5, 1);
	IN(.flags = ACK, .seq = 1, .ack = 1 + MSS);
	rig_skip();
	dup_acks(5, 1 + MSS);
	assert_int_equal(rig_count(TCP_fast_recoveries), 0);
}

// TCP-75, RFC 5681 2: all five conditions.
static void not_every_repeated_ack_is_a_duplicate(void **state)
{
	rig_accept(PLAIN);
	dup_acks(5, 1); // nothing outstanding
	rig_write_n(10 * MSS);
	rig_skip();
	for (unsigned i = 0; i < 5; i++) // windows
		IN(.flags = ACK, .seq = 1, .ack = 1, .wnd = (uint16_t)(30000 + i));
	for (uint32_t i = 0; i < 5; i++) // data
		IN(.flags = ACK, .seq = 1 + i, .ack = 1, .wnd = 30004, .data = "x");
	rig_skip();
	assert_int_equal(rig.conn->n_dup_acks, 0);
	assert_int_equal(rig_count(TCP_fast_recoveries), 0);
}

static void an_ack_in_the_middle_of_a_segment_is_fine(void **state)
{
	rig_accept(PLAIN);
	rig_write("hello");
	rig_skip();
	IN(.flags = ACK, .seq = 1, .ack = 3);
	rig_after_ms(200);
	struct out *o = rig_out();
	assert_int_equal(o->seq, 3);
	assert_string_equal((char *)o->data, "llo");
}

// The end of the last recovery, if there was any, is compared as a sequence number.
static void a_loss_is_found_after_2_gib_without_one(void **state)
{
	rig_accept(PLAIN);
	rig.conn->recover = rig.conn->snd_una - INT32_MAX + MSS; // long ago
	for (uint32_t i = 1; i <= 2; i++) {
		rig_write_n(MSS);
		rig_skip();
		IN(.flags = ACK, .seq = 1, .ack = 1 + i * MSS);
	}
	rig_write_n(5 * MSS);
	rig_skip();
	dup_acks(3, 1 + 2 * MSS);
	expect_resent(1 + 2 * MSS);
	assert_true(rig.conn->in_recovery);
}

RUN_SUITE("tcp/ack", CASE(a_loss_is_found_after_2_gib_without_one),
	CASE(unacknowledged_data_comes_again_after_200_600_1400_ms),
	CASE(the_timeout_follows_the_round_trips),
	CASE(an_ack_of_the_whole_flight_is_a_whole_sample),
	CASE(a_retransmitted_segment_gives_no_sample),
	CASE(a_lost_syn_makes_the_first_timeout_3_seconds), CASE(progress_restarts_the_timer),
	CASE(a_timeout_starts_over_with_one_segment),
	CASE(after_a_timeout_segments_fit_a_smaller_mtu),
	CASE(the_user_timeout_ends_the_connection_on_time),
	CASE(whoever_was_away_for_25_seconds_is_asked_before_the_user_timeout),
	CASE(the_default_user_timeout_is_30_seconds), CASE(a_silent_peer_is_probed_and_given_up),
	CASE(a_slow_path_lengthens_the_user_timeout),
	CASE(the_owner_is_told_before_the_user_timeout),
	CASE(the_owner_is_told_of_questions_without_an_answer),
	CASE(a_pause_of_our_own_is_no_silence_of_the_peer),
	CASE(a_pause_of_our_own_is_excused_when_more_data_comes_first),
	CASE(who_answers_window_probes_is_not_silent), CASE(keepalive_is_off_unless_asked_for),
	CASE(the_first_two_duplicates_let_new_segments_out),
	CASE(the_third_duplicate_resends_the_oldest_segment),
	CASE(a_partial_ack_resends_the_next_hole),
	CASE(duplicates_after_a_timeout_do_not_start_recovery),
	CASE(not_every_repeated_ack_is_a_duplicate),
	CASE(an_ack_in_the_middle_of_a_segment_is_fine))
