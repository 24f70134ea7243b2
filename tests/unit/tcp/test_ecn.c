// SPDX-License-Identifier: Apache-2.0
// Explicit congestion notification (RFC 3168, RFC 8511).
#include "tests/unit/tcp/rig.h"

static void restart(void)
{
	rig.ecn = true;
	rig_restart();
}

static void accept_with_ecn(void)
{
	restart();
	IN(.flags = SYN | ECE | CWR, .seq = 0, .opts = PLAIN);
	struct out *o = rig_out();
	assert_int_equal(o->flags, SYN | ACK | ECE);
	assert_false(o->ect);
	IN(.flags = ACK, .seq = 1, .ack = 1);
	assert_non_null(rig.conn);
	assert_true(rig.conn->ecn_on);
	rig.conn->srtt_ns = 100 * NS_PER_MS;
	rig_skip();
}

// TCP-157: some reflect flags that they do not know.
static void only_both_flags_of_a_syn_ask_for_ecn(void **state)
{
	static const uint8_t flags[] = {0, ECE, CWR};
	for (size_t i = 0; i < sizeof(flags); i++) {
		restart();
		IN(.flags = SYN | flags[i], .seq = 0, .opts = PLAIN);
		assert_int_equal(rig_out()->flags, SYN | ACK);
		IN(.flags = RST, .seq = 1);
	}
	assert_int_equal(rig_count(TCP_ecn_on), 0);
}

// TCP-157
static void without_a_way_to_mark_packets_there_is_no_ecn(void **state)
{
	IN(.flags = SYN | ECE | CWR, .seq = 0, .opts = PLAIN);
	assert_int_equal(rig_out()->flags, SYN | ACK);
}

static void connect_to_one_that_answers(uint8_t flags)
{
	restart();
	rig_begin_connect(10 * NS_PER_SECOND);
	IN(.flags = SYN | ACK | flags, .seq = 0, .ack = 1, .opts = PLAIN);
	assert_int_equal(rig.n_established, 1);
	assert_int_equal(rig.conn->ecn_on, flags == ECE);
}

// TCP-157
static void a_syn_asks_and_ece_alone_agrees(void **state)
{
	connect_to_one_that_answers(ECE);
}

// TCP-157
static void a_reflected_syn_does_not_agree(void **state)
{
	connect_to_one_that_answers(ECE | CWR);
}

// TCP-157
static void who_does_not_know_it_goes_without(void **state)
{
	connect_to_one_that_answers(0);
}

// TCP-158
static void a_lost_syn_is_repeated_without(void **state)
{
	restart();
	rig_begin_connect(10 * NS_PER_SECOND);
	rig_after_ms(1000);
	assert_int_equal(rig_out()->flags, SYN);
}

// TCP-159
static void new_data_may_be_marked_and_nothing_else(void **state)
{
	accept_with_ecn();
	rig_write_n(1000);
	assert_true(rig_out()->ect);
	rig_after_ms(2000);
	struct out *o = rig_out(); // again
	assert_int_equal(o->len, 1000);
	assert_false(o->ect);
	rig_skip();
	IN(.flags = ACK, .seq = 1, .ack = 1001, .len = 1);
	rig_after_ms(50);
	o = rig_out();
	assert_int_equal(o->len, 0);
	assert_false(o->ect);
}

// TCP-160
static void a_mark_is_echoed_at_once_until_the_peer_has_reduced(void **state)
{
	accept_with_ecn();
	IN(.flags = ACK, .seq = 1, .ack = 1, .data = "a", .marked = true);
	assert_int_equal(rig_out()->flags, ACK | ECE);
	IN(.flags = ACK, .seq = 2, .ack = 1, .data = "b");
	rig_after_ms(50);
	assert_int_equal(rig_out()->flags, ACK | ECE);
	rig_write("answer");
	assert_int_equal(rig_out()->flags, ACK | PSH | ECE);
	IN(.flags = ACK | CWR, .seq = 3, .ack = 7, .data = "c");
	rig_after_ms(50);
	assert_int_equal(rig_out()->flags, ACK);
	IN(.flags = ACK | CWR, .seq = 4, .ack = 7, .data = "d", .marked = true); // and again
	assert_int_equal(rig_out()->flags, ACK | ECE);
	assert_int_equal(rig_count(TCP_ecn_marks_in), 2);
	assert_memory_equal(rig.got, "abcd", 4);
}

// TCP-160: neither on what carries no data, nor without agreement.
static void a_mark_where_none_may_be_says_nothing(void **state)
{
	accept_with_ecn();
	IN(.flags = ACK, .seq = 1, .ack = 1, .marked = true);
	NO_OUT();
	assert_int_equal(rig_count(TCP_ecn_marks_in), 0);
	rig_restart();
	rig_accept(PLAIN);
	IN(.flags = ACK, .seq = 1, .ack = 1, .data = "a", .marked = true);
	rig_after_ms(50);
	assert_int_equal(rig_out()->flags, ACK);
	assert_int_equal(rig_count(TCP_ecn_marks_in), 0);
}

static void let_time_pass_and_send(uint32_t *acked)
{
	rig_after_ms(150);
	rig_skip();
	rig_write_n(3 * MSS);
	rig_skip();
	*acked += 3 * MSS;
}

// TCP-161
static void an_echo_reduces_once_a_round_trip_and_is_told(void **state)
{
	accept_with_ecn();
	rig.conn->cc.cwnd = 40 * MSS;
	rig_write_n(20 * MSS);
	rig_skip();
	rig_after_ms(150);
	IN(.flags = ACK | ECE, .seq = 1, .ack = 1 + MSS);
	uint32_t cwnd = rig.conn->cc.cwnd;
	assert_in_range(cwnd, 20 * MSS * 3 / 4, 20 * MSS * 9 / 10); // RFC 8511: less than by half
	IN(.flags = ACK | ECE, .seq = 1, .ack = 1 + 12 * MSS); // still of before
	assert_true(rig.conn->cc.cwnd >= cwnd);
	assert_int_equal(rig_count(TCP_ecn_reductions), 1);
	rig_write_n(MSS);
	struct out *o = rig_out();
	assert_int_equal(o->flags, ACK | PSH | CWR);
	assert_true(o->ect);
	rig_write_n(MSS);
	assert_int_equal(rig_out()->flags, ACK | PSH);
	uint32_t acked = 1 + 22 * MSS;
	IN(.flags = ACK, .seq = 1, .ack = acked);
	let_time_pass_and_send(&acked);
	IN(.flags = ACK | ECE, .seq = 1, .ack = acked);
	assert_int_equal(rig_count(TCP_ecn_reductions), 2);
	IN(.flags = ACK | ECE, .seq = 1, .ack = acked); // acknowledges nothing
	assert_int_equal(rig_count(TCP_ecn_reductions), 2);
}

static void report(uint32_t ack, uint32_t from, uint32_t to, uint8_t flags)
{
	struct tcp_opts o = {
		.n_sack = 1, .sack = {{rig.iss + 1 + from * MSS, rig.iss + 1 + to * MSS}}};
	IN(.flags = ACK | flags, .seq = 1, .ack = 1 + ack * MSS, .opts = o);
}

static void send_twenty_segments(void)
{
	accept_with_ecn();
	rig.conn->sack_on = true;
	rig.conn->cc.cwnd = 40 * MSS;
	rig_write_n(20 * MSS);
	rig_skip();
	rig_after_ms(120);
}

// TCP-161, RFC 3168 6.1.2: who has reduced for a loss says so, too.
static void a_loss_is_told_as_a_mark_is(void **state)
{
	send_twenty_segments();
	report(0, 1, 5, 0);
	assert_true(rig.conn->in_recovery);
	assert_true(rig.conn->cwr_due);
	assert_int_equal(rig_out()->flags & CWR, 0); // a repetition
	rig_skip();
	IN(.flags = ACK, .seq = 1, .ack = 1 + 20 * MSS);
	rig_write_n(MSS);
	assert_int_equal(rig_out()->flags, ACK | PSH | CWR);
}

// TCP-161
static void a_timeout_is_told_as_a_mark_is(void **state)
{
	send_twenty_segments();
	while (!rig_count(TCP_retransmission_timeouts))
		rig_after_ms(1);
	assert_true(rig.conn->cwr_due);
	rig_skip();
}

// TCP-161: a mark and a loss of one round trip are one event.
static void a_loss_right_after_a_mark_does_not_reduce_again(void **state)
{
	send_twenty_segments();
	report(1, 0, 0, ECE);
	uint32_t ssthresh = rig.conn->cc.ssthresh;
	report(1, 2, 6, 0);
	assert_true(rig.conn->in_recovery);
	assert_int_equal(rig.conn->cc.ssthresh, ssthresh);
	rig_skip();
	IN(.flags = ACK, .seq = 1, .ack = 1 + 20 * MSS);
	assert_int_equal(rig.conn->cc.cwnd, ssthresh);
	rig_skip();
}

// Twenty segments are in flight, the first is late and is repeated, and so comes twice. Has begun.
static void begin_a_needless_recovery(void)
{
	send_twenty_segments();
	report(0, 1, 5, 0);
	assert_true(rig.conn->in_recovery);
	assert_int_equal(rig.conn->cc.ssthresh, 10 * MSS);
	assert_int_equal(rig_out()->seq, 1);
}

static void expect_undone(uint32_t ack)
{
	report(ack, 0, 1, 0);
	assert_int_equal(rig_count(TCP_recoveries_undone), 1);
	assert_false(rig.conn->in_recovery);
}

// TCP-217, RFC 4015 3.2: what the recovery took answers the mark.
static void a_mark_in_a_recovery_forbids_to_give_back_what_it_took(void **state)
{
	begin_a_needless_recovery();
	report(5, 0, 0, ECE);
	expect_undone(5);
	assert_int_equal(rig.conn->cc.cwnd, 10 * MSS);
	assert_int_equal(rig.conn->cc.ssthresh, 10 * MSS);
	assert_int_equal(rig_count(TCP_ecn_reductions), 0); // once was enough
	rig_skip();
}

// TCP-217: until the hole is filled no ACK is of new data.
static void a_mark_told_beside_a_report_forbids_it_too(void **state)
{
	begin_a_needless_recovery();
	report(0, 1, 6, ECE);
	expect_undone(6);
	assert_int_equal(rig.conn->cc.cwnd, 10 * MSS);
	rig_skip();
}

// TCP-217
static void a_mark_between_the_end_of_a_recovery_and_its_undoing_forbids_it(void **state)
{
	begin_a_needless_recovery();
	rig_write_n(MSS);
	rig_skip();
	report(20, 0, 0, 0);
	assert_false(rig.conn->in_recovery);
	report(21, 0, 0, ECE);
	expect_undone(21);
	assert_in_range(rig.conn->cc.cwnd, 10 * MSS, 11 * MSS);
}

// TCP-161: it was a loss that reduced, and this is another one.
static void a_mark_in_a_recovery_excuses_no_later_loss(void **state)
{
	begin_a_needless_recovery();
	report(20, 0, 0, ECE);
	assert_false(rig.conn->in_recovery);
	rig_write_n(20 * MSS);
	rig_skip();
	report(20, 21, 25, 0);
	assert_true(rig.conn->in_recovery);
	assert_true(rig.conn->cc.ssthresh < 10 * MSS);
	rig_skip();
}

// TCP-217: nothing was reduced after all, so nothing is told, and the next mark is heard at once.
static void without_a_mark_all_comes_back_and_nothing_is_told(void **state)
{
	begin_a_needless_recovery();
	assert_true(rig.conn->cwr_due);
	report(5, 0, 0, 0);
	expect_undone(5);
	assert_int_equal(rig.conn->cc.cwnd, 40 * MSS);
	rig_write_n(MSS);
	assert_int_equal(rig_out()->flags, ACK | PSH);
	report(6, 0, 0, ECE);
	assert_int_equal(rig_count(TCP_ecn_reductions), 1);
	assert_true(rig.conn->cc.cwnd < 16 * MSS);
	rig_skip();
}

// TCP-161
static void a_mark_never_raises_cwnd_and_nothing_undoes_it(void **state)
{
	const struct tcp_cc_ops *both[] = {&tcp_cc_reno, &tcp_cc_cubic};
	for (size_t i = 0; i < 2; i++) {
		struct tcp_cc cc;
		both[i]->init(&cc, MSS);
		both[i]->on_loss(&cc, MSS, 10 * MSS);
		uint32_t cwnd = cc.cwnd;
		both[i]->on_ecn(&cc, MSS, 100 * MSS);
		assert_int_equal(cc.cwnd, cwnd);
		both[i]->undo(&cc);
		assert_int_equal(cc.cwnd, cwnd);
	}
}

RUN_SUITE("tcp/ecn", CASE(only_both_flags_of_a_syn_ask_for_ecn),
	CASE(without_a_way_to_mark_packets_there_is_no_ecn), CASE(a_syn_asks_and_ece_alone_agrees),
	CASE(a_reflected_syn_does_not_agree), CASE(who_does_not_know_it_goes_without),
	CASE(a_lost_syn_is_repeated_without), CASE(new_data_may_be_marked_and_nothing_else),
	CASE(a_mark_is_echoed_at_once_until_the_peer_has_reduced),
	CASE(a_mark_where_none_may_be_says_nothing),
	CASE(an_echo_reduces_once_a_round_trip_and_is_told), CASE(a_loss_is_told_as_a_mark_is),
	CASE(a_timeout_is_told_as_a_mark_is), CASE(a_loss_right_after_a_mark_does_not_reduce_again),
	CASE(a_mark_in_a_recovery_forbids_to_give_back_what_it_took),
	CASE(a_mark_told_beside_a_report_forbids_it_too),
	CASE(a_mark_between_the_end_of_a_recovery_and_its_undoing_forbids_it),
	CASE(a_mark_in_a_recovery_excuses_no_later_loss),
	CASE(without_a_mark_all_comes_back_and_nothing_is_told),
	CASE(a_mark_never_raises_cwnd_and_nothing_undoes_it))
