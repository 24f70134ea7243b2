// SPDX-License-Identifier: Apache-2.0
#include "dataplane/tcp/sent.h"
#include "lb/base/time.h"
#include "tests/unit/tcp/rig.h"

#define RTT_MS 40

static const struct tcp_opts sacking = {.has_mss = true, .mss = MSS, .sack_ok = true};

// The peer says: everything before ack, and segments [from, to) beyond it.
static void sack(uint32_t ack, uint32_t from, uint32_t to)
{
	struct tcp_opts o = {
		.n_sack = 1, .sack = {{rig.iss + 1 + from * MSS, rig.iss + 1 + to * MSS}}};
	IN(.flags = ACK, .seq = 1, .ack = 1 + ack * MSS, .opts = o);
}

static void cumulative(uint32_t ack)
{
	IN(.flags = ACK, .seq = 1, .ack = 1 + ack * MSS);
}

static void expect_segment(uint32_t number)
{
	struct out *o = rig_out();
	assert_int_equal(o->seq, 1 + number * MSS);
	assert_int_equal(o->len, MSS);
}

// Over a path of 40 ms.
static void open_far(void)
{
	rig_begin_connect(10 * NS_PER_SECOND);
	rig_after_ms(RTT_MS);
	IN(.flags = SYN | ACK, .seq = 0, .ack = 1, .opts = sacking);
	rig_skip();
}

static void until_probed(void)
{
	for (int i = 0; i < 10000 && !rig_count(TCP_tail_probes); i++)
		rig_after_ms(1);
	assert_int_not_equal(rig_count(TCP_tail_probes), 0);
}

static unsigned n_runs(void)
{
	unsigned n = 0;
	for (struct tcp_run *r = tcp_run_first(rig.conn); r; r = tcp_run_next(rig.conn, r))
		n += r->seq != tcp_run_end(rig.conn, r);
	return n;
}

// TCP-110
static void what_leaves_in_one_turn_is_one_run(void **state)
{
	open_far();
	rig_write_n(3 * MSS);
	rig_skip();
	assert_int_equal(n_runs(), 1);
	assert_int_equal(rig.conn->n_runs, 0); // it is the connection's own
	rig_after_ms(1);
	rig_write_n(3 * MSS);
	rig_skip();
	rig_after_ms(1);
	rig_write_n(MSS);
	rig_skip();
	assert_int_equal(n_runs(), 3);
	cumulative(4);
	assert_int_equal(n_runs(), 2);
	cumulative(7);
	assert_int_equal(n_runs(), 0);
	assert_int_equal(rig.stack->runs.n_used, 0);
}

// TCP-110: within a 64th of a round trip.
static void turns_close_to_each_other_are_one_run(void **state)
{
	rig_begin_connect(10 * NS_PER_SECOND);
	rig_after_ms(640);
	IN(.flags = SYN | ACK, .seq = 0, .ack = 1, .opts = sacking);
	for (unsigned i = 0; i < 10; i++) {
		rig_write("x");
		rig_skip();
		rig_after_ms(1);
	}
	assert_int_equal(n_runs(), 1);
	rig_after_ms(1);
	rig_write("x");
	rig_skip();
	assert_int_equal(n_runs(), 2);
}

// TCP-111
static void without_a_record_the_log_is_coarser_and_nothing_is_lost(void **state)
{
	open_far();
	rig.stack->runs.n_used = rig.stack->runs.n_total; // as if others had them all
	rig.stack->runs.n_fresh = 0;
	for (unsigned i = 0; i < 4; i++) {
		rig_write_n(MSS);
		rig_skip();
		rig_after_ms(2);
	}
	assert_int_equal(n_runs(), 1);
	sack(0, 1, 3); // finds no place
	assert_int_equal(rig.conn->sacked_bytes, 0);
	rig_after_ms(100);
	expect_segment(3); // a tail probe
	sack(0, 1, 4);
	rig_after_ms(400);
	expect_segment(0);
	rig.stack->runs.n_used = 0;
	cumulative(4);
	rig_after_ms(1000);
	assert_int_equal(rig.conn->snd_una, rig.conn->snd_max);
	assert_int_equal(rig_count(TCP_retransmission_timeouts), 1);
	rig_skip();
}

static struct pool *scarce; // of which others have all but what is everyone's own

static void let_others_take_what_all_share(void)
{
	scarce = &rig.stack->runs;
	scarce->n_used += 100 * TCP_MAX_RUNS;
}

static void let_others_give_back(void)
{
	scarce->n_used -= 100 * TCP_MAX_RUNS;
	rig_skip();
}

// TCP-111: who reports every other byte takes nothing from others.
static void the_last_two_records_of_each_connection_are_its_own(void **state)
{
	open_far();
	rig_write_n(10 * MSS);
	rig_skip();
	let_others_take_what_all_share();
	for (uint32_t i = 1; i < 9; i += 2)
		sack(0, i, i + 1);
	assert_int_equal(rig.conn->n_runs, 2);
	assert_int_equal(rig.conn->sacked_bytes, MSS);
	let_others_give_back();
}

// TCP-111: a timeout's repetitions follow each other as ACKs come, each turn's at its own time.
static void two_records_are_enough_to_repair_a_flight(void **state)
{
	open_far();
	rig_write_n(10 * MSS);
	rig_skip();
	let_others_take_what_all_share();
	while (!rig_count(TCP_retransmission_timeouts))
		rig_after_ms(1);
	rig_skip();
	rig.conn->cc.cwnd = 2 * MSS;
	for (uint32_t i = 0; i < 3; i++) { // without an ACK, so that each is a run
		rig_after_ms(2);
		rig.conn->cc.cwnd += MSS;
		tcp_conn_mark_dirty(rig.conn);
		rig_skip();
	}
	assert_true(rig.conn->n_runs <= 2);
	for (uint32_t i = 1; i < 10; i++) {
		rig_after_ms(2);
		cumulative(i);
		rig_skip();
		assert_true(rig.conn->n_runs <= 2);
	}
	cumulative(10);
	assert_true(rig_count(TCP_retransmits) >= 10);
	assert_int_equal(rig_count(TCP_retransmission_timeouts), 1);
	let_others_give_back();
}

// TCP-111: a hole of several segments before a report.
static void two_records_are_enough_to_repair_a_hole(void **state)
{
	open_far();
	rig_write_n(10 * MSS);
	rig_skip();
	let_others_take_what_all_share();
	rig_after_ms(RTT_MS);
	sack(0, 5, 9);
	uint32_t lost = 0;
	for (struct out *o; (o = rig_peek());) {
		lost += rig_out()->len;
		rig_after_ms(1);
	}
	assert_true(lost >= MSS);
	assert_int_equal(rig.conn->lost_bytes, 5 * MSS - lost); // the rest waits its turn
	rig_after_ms(RTT_MS);
	for (uint32_t i = lost / MSS; i < 5; i++) {
		cumulative(i);
		rig_skip();
		rig_after_ms(2);
	}
	assert_true(rig_count(TCP_retransmits) >= 5);
	cumulative(10);
	assert_int_equal(rig_count(TCP_retransmission_timeouts), 0);
	let_others_give_back();
}

// TCP-110: a run without a record of its own has no one time (Karn).
static void what_has_no_record_measures_nothing(void **state)
{
	open_far();
	uint32_t min_rtt = rig.conn->min_rtt_ns;
	let_others_take_what_all_share();
	for (unsigned i = 0; i < 4; i++) {
		rig_write_n(MSS);
		rig_skip();
		rig_after_ms(RTT_MS / 4);
	}
	cumulative(1);
	cumulative(4);
	assert_int_equal(rig.conn->min_rtt_ns, min_rtt);
	let_others_give_back();
}

// Four of 200 bytes, so many milliseconds apart, and then a round trip.
static void send_short_ones(unsigned apart_ms)
{
	open_far();
	for (unsigned i = 0; i < 4; i++) {
		rig_write_n(200);
		rig_skip();
		rig_after_ms(apart_ms);
	}
	rig_after_ms(RTT_MS);
}

static void report_bytes(uint32_t from, uint32_t to)
{
	struct tcp_opts o = {.n_sack = 1, .sack = {{rig.iss + 1 + from, rig.iss + 1 + to}}};
	IN(.flags = ACK, .seq = 1, .ack = 1, .opts = o);
}

// TCP-112, RFC 8985 6.2, step 4: it is segments that count, not their bytes.
static void three_short_segments_that_are_reported_make_what_is_before_them_lost(void **state)
{
	send_short_ones(0);
	assert_int_equal(n_runs(), 1);
	report_bytes(200, 400);
	report_bytes(200, 600);
	NO_OUT();
	report_bytes(200, 600); // nothing new
	NO_OUT();
	report_bytes(200, 800);
	struct out *o = rig_out();
	assert_int_equal(o->seq, 1);
	assert_int_equal(o->len, 200);
	assert_true(rig.conn->in_recovery);
}

// TCP-112
static void short_segments_of_three_turns_are_three_in_one_report_too(void **state)
{
	send_short_ones(2);
	assert_int_equal(n_runs(), 4);
	report_bytes(200, 800);
	assert_int_equal(rig_out()->seq, 1);
}

// TCP-112: they may be one.
static void what_left_at_one_time_and_is_reported_together_counts_by_its_bytes(void **state)
{
	send_short_ones(0);
	report_bytes(200, 800);
	NO_OUT();
	rig_after_ms(RTT_MS / 4 + 1);
	assert_int_equal(rig_out()->seq, 1);
}

// TCP-112: it has a sequence number, and no segment of its own.
static void a_fin_on_a_full_segment_is_not_another_one(void **state)
{
	open_far();
	rig_write_n(3 * MSS);
	tcp_conn_shutdown(rig.conn);
	rig_skip();
	rig_after_ms(RTT_MS);
	report_bytes(MSS, 3 * MSS + 1);
	NO_OUT();
	rig_after_ms(RTT_MS / 4 + 1);
	expect_segment(0);
}

// TCP-112: the reports of three segments are a loss as long as none was ever reordered.
static void reordering_that_was_seen_widens_the_window(void **state)
{
	open_far();
	rig_write_n(10 * MSS);
	rig_skip();
	rig_after_ms(RTT_MS);
	sack(0, 1, 2);
	rig_after_ms(3);
	NO_OUT();
	cumulative(2); // it was only late
	assert_true(rig.conn->reordering_seen);
	sack(2, 3, 8); // five beyond the hole
	NO_OUT();
	rig_after_ms(6);
	NO_OUT();
	cumulative(8);
	rig_after_ms(20);
	NO_OUT();
	assert_int_equal(rig_count(TCP_fast_recoveries), 0);
}

// TCP-113, RFC 8985 6.2, step 4.
static void each_round_trip_with_a_dsack_widens_it_by_a_quarter(void **state)
{
	open_far();
	struct tcp_conn *c = rig.conn;
	for (unsigned i = 1; i <= 3; i++) {
		struct tcp_opts twice = {.n_sack = 1, .sack = {{rig.iss + 1, rig.iss + 1 + MSS}}};
		rig_write_n(2 * MSS);
		rig_skip();
		rig_after_ms(RTT_MS);
		tcp_undo_resent(c, rig.iss + 1, rig.iss + 1 + MSS); // as if it had been
		for (unsigned k = 0; k < 2; k++) // once a round trip
			IN(.flags = ACK, .seq = 1, .ack = 1 + (2 * i - 1) * MSS, .opts = twice);
		assert_int_equal(c->reo_wnd_more, i);
		cumulative(2 * i);
	}
	assert_int_equal(rig_count(TCP_dsacks_in), 6);
	rig_skip();
}

// TCP-113: of what was sent once the network made two.
static void doubles_of_the_network_do_not_widen_it(void **state)
{
	open_far();
	rig_write_n(4 * MSS);
	rig_skip();
	rig_after_ms(RTT_MS);
	struct tcp_opts twice = {.n_sack = 1, .sack = {{rig.iss + 1, rig.iss + 1 + MSS}}};
	IN(.flags = ACK, .seq = 1, .ack = 1 + 2 * MSS, .opts = twice);
	assert_int_equal(rig_count(TCP_dsacks_in), 1);
	assert_int_equal(rig.conn->reo_wnd_more, 0);
	rig_skip();
}

// TCP-113: an old round trip's end is none ahead.
static void it_widens_after_two_gibibytes(void **state)
{
	open_far();
	struct tcp_conn *c = rig.conn;
	tcp_rack_dsack(c);
	c->dsack_round_end = c->snd_una - (1U << 31) - 1000;
	tcp_rack_dsack(c);
	assert_int_equal(c->reo_wnd_more, 2);
}

// TCP-113: the word that a tail probe was needless says nothing of reordering.
static void a_tail_probe_that_came_twice_does_not_widen_it(void **state)
{
	open_far();
	rig_write_n(3 * MSS);
	rig_skip();
	until_probed();
	expect_segment(2);
	cumulative(3);
	struct tcp_opts twice = {
		.n_sack = 1, .sack = {{rig.iss + 1 + 2 * MSS, rig.iss + 1 + 3 * MSS}}};
	IN(.flags = ACK, .seq = 1, .ack = 1 + 3 * MSS, .opts = twice);
	assert_int_equal(rig_count(TCP_dsacks_in), 1);
	assert_int_equal(rig.conn->reo_wnd_more, 0);
}

// TCP-87: what no buffer let leave is no probe yet, and an ACK makes it needless.
static void a_tail_probe_is_out_once_it_has_left(void **state)
{
	open_far();
	rig_write_n(4 * MSS);
	rig_skip();
	rig.no_buffer = true;
	while (!rig.conn->tail_probe_due)
		rig_after_ms(1);
	assert_false(rig.conn->tail_probe_out);
	cumulative(2);
	assert_false(rig.conn->tail_probe_due);
	rig.no_buffer = false;
	rig_after_ms(1);
	NO_OUT();
	assert_int_equal(rig_count(TCP_tail_probes), 0);
}

// TCP-209: and then the timeout.
static void a_lone_fin_is_probed_like_data(void **state)
{
	open_far();
	rig_write_n(MSS);
	rig_skip();
	rig_after_ms(RTT_MS);
	cumulative(1);
	tcp_conn_shutdown(rig.conn);
	assert_true(rig_out()->flags & FIN);
	until_probed();
	struct out *o = rig_out();
	assert_true(o->flags & FIN);
	assert_int_equal(o->len, 0);
	assert_in_range(rig_ms(o), 4 * RTT_MS + 50, 4 * RTT_MS + 52);
	assert_int_equal(rig_count(TCP_retransmission_timeouts), 0);
	rig_after_ms(rig.conn->rto_ns / NS_PER_MS + 2);
	assert_true(rig_out()->flags & FIN);
	assert_int_equal(rig_count(TCP_retransmission_timeouts), 1);
	IN(.flags = ACK, .seq = 1, .ack = 2 + MSS);
	assert_true(rig.conn->fin_acked);
	assert_false(rig.conn->tail_probe_out);
}

// TCP-209: what is missing before it is found by the report of it.
static void a_fin_sent_by_itself_is_the_last_segment(void **state)
{
	open_far();
	rig_write_n(2 * MSS);
	rig_skip();
	rig_after_ms(10);
	tcp_conn_shutdown(rig.conn);
	rig_skip();
	until_probed();
	struct out *o = rig_out();
	assert_int_equal(o->flags, FIN | ACK);
	assert_int_equal(o->seq, 1 + 2 * MSS);
	rig_after_ms(RTT_MS);
	uint32_t fin = rig.iss + 1 + 2 * MSS;
	struct tcp_opts got = {.n_sack = 1, .sack = {{fin, fin + 1}}};
	IN(.flags = ACK, .seq = 1, .ack = 1 + MSS, .opts = got);
	rig_after_ms(RTT_MS);
	o = rig_out();
	assert_int_equal(o->seq, 1 + MSS);
	assert_int_equal(o->len, MSS);
	assert_int_equal(rig_count(TCP_retransmission_timeouts), 0);
	IN(.flags = ACK, .seq = 1, .ack = 2 + 2 * MSS);
	assert_true(rig.conn->fin_acked);
}

// TCP-209, TCP-113: a FIN with its data in a probe, reported with or without it.
static void a_probe_with_a_fin_that_came_twice_does_not_widen_it(void **state)
{
	for (unsigned with_fin = 0; with_fin < 2; with_fin++) {
		rig_restart();
		open_far();
		rig_write_n(3 * MSS);
		tcp_conn_shutdown(rig.conn);
		rig_skip();
		until_probed();
		struct out *o = rig_out();
		assert_true(o->flags & FIN);
		assert_int_equal(o->len, MSS);
		uint32_t end = rig.iss + 1 + 3 * MSS;
		struct tcp_opts twice = {.n_sack = 1, .sack = {{end - MSS, end + with_fin}}};
		IN(.flags = ACK, .seq = 1, .ack = 2 + 3 * MSS, .opts = twice);
		assert_int_equal(rig_count(TCP_dsacks_in), 1);
		assert_int_equal(rig.conn->reo_wnd_more, 0);
		tcp_conn_abort(rig.conn);
		rig.conn = NULL;
		rig_skip();
	}
}

// TCP-113: sixteen recoveries without.
static void it_narrows_again(void **state)
{
	open_far();
	struct tcp_conn *c = rig.conn;
	tcp_rack_dsack(c);
	assert_int_equal(c->reo_wnd_more, 1);
	for (unsigned i = 0; i < 16; i++) {
		assert_int_equal(c->reo_wnd_more, 1);
		uint32_t first = (c->snd_una - rig.iss - 1) / MSS;
		c->cc.cwnd = 10 * MSS;
		rig_write_n(4 * MSS);
		rig_skip();
		rig_after_ms(RTT_MS);
		sack(first, first + 1, first + 4);
		expect_segment(first);
		rig_after_ms(RTT_MS);
		cumulative(first + 4);
		assert_false(c->in_recovery);
		rig_skip();
	}
	assert_int_equal(c->reo_wnd_more, 0);
	assert_int_equal(rig_count(TCP_fast_recoveries), 16);
}

// TCP-114, RFC 8985 6.2: by the time of the repetition, not by the number of reports.
static void a_repetition_that_is_under_way_is_not_repeated(void **state)
{
	open_far();
	rig_write_n(40 * MSS);
	rig_skip();
	rig_after_ms(RTT_MS);
	sack(0, 1, 4);
	expect_segment(0);
	rig_skip();
	rig_after_ms(RTT_MS / 2);
	for (uint32_t i = 5; i <= 10; i++)
		sack(0, 1, i); // all were sent before the repetition
	rig_skip();
	assert_int_equal(rig_count(TCP_retransmits), 1);
	rig_after_ms(RTT_MS / 2);
	sack(0, 1, 12); // 10 and 11 were sent with it or after
	expect_segment(0);
	rig_skip();
	assert_int_equal(rig_count(TCP_retransmits), 2);
	assert_int_equal(rig_count(TCP_retransmission_timeouts), 0);
}

// TCP-115, RFC 9937 6: what leaves follows what arrives, down to half of it.
static void recovery_sends_one_for_two_that_arrive(void **state)
{
	open_far();
	rig.conn->cc.cwnd = 20 * MSS;
	rig_write_n(100 * MSS);
	rig_skip();
	rig_after_ms(RTT_MS);
	sack(0, 1, 4);
	expect_segment(0);
	rig_skip();
	uint32_t sent = rig.conn->snd_max;
	for (uint32_t i = 5; i <= 14; i++) {
		sack(0, 1, i);
		rig_skip();
	}
	uint32_t more = (rig.conn->snd_max - sent) / MSS;
	assert_true(more >= 4 && more <= 5);
	assert_int_equal(rig.conn->cc.ssthresh, 10 * MSS);
	cumulative(20);
	assert_false(rig.conn->in_recovery);
	assert_int_equal(rig.conn->cc.cwnd, 10 * MSS);
	rig_skip();
}

// TCP-220, RFC 9937 6.1: two for three, since a quarter of the flight had arrived.
static void what_was_reported_before_a_recovery_has_no_share_in_it(void **state)
{
	open_far();
	rig.conn->reordering_seen = true;
	rig.conn->cc.cwnd = 20 * MSS;
	rig_write_n(20 * MSS);
	rig_skip();
	rig_after_ms(RTT_MS);
	sack(0, 1, 6);
	assert_false(rig.conn->in_recovery);
	rig_after_ms(RTT_MS / 4 + 1);
	assert_true(rig.conn->in_recovery);
	assert_int_equal(rig.conn->cc.ssthresh, 10 * MSS);
	rig_write_n(20 * MSS);
	rig_skip();
	uint32_t sent = rig.conn->snd_max;
	for (uint32_t i = 7; i <= 12; i++) {
		sack(0, 1, i);
		rig_skip();
	}
	assert_int_equal(rig.conn->snd_max - sent, 3 * MSS); // beside the repetition
}

// TCP-116, RFC 7323 4: whatever is sent twice, timestamps measure.
static void each_acknowledgement_is_a_sample(void **state)
{
	open_far();
	rig_write_n(10 * MSS);
	rig_skip();
	rig_after_ms(30);
	cumulative(1);
	assert_int_equal(rig.conn->min_rtt_ns, 30 * NS_PER_MS);
	rig_after_ms(5);
	cumulative(2);
	assert_int_equal(rig.conn->min_rtt_ns, 30 * NS_PER_MS);
	uint64_t srtt = rig.conn->srtt_ns;
	assert_true(srtt > 30 * NS_PER_MS && srtt < 40 * NS_PER_MS);
	rig_after_ms(100);
	cumulative(3);
	assert_true(rig.conn->srtt_ns > srtt);
	rig_skip();
}

RUN_SUITE("tcp/rack", CASE(what_leaves_in_one_turn_is_one_run),
	CASE(turns_close_to_each_other_are_one_run),
	CASE(without_a_record_the_log_is_coarser_and_nothing_is_lost),
	CASE(the_last_two_records_of_each_connection_are_its_own),
	CASE(two_records_are_enough_to_repair_a_flight),
	CASE(two_records_are_enough_to_repair_a_hole), CASE(what_has_no_record_measures_nothing),
	CASE(three_short_segments_that_are_reported_make_what_is_before_them_lost),
	CASE(short_segments_of_three_turns_are_three_in_one_report_too),
	CASE(what_left_at_one_time_and_is_reported_together_counts_by_its_bytes),
	CASE(a_fin_on_a_full_segment_is_not_another_one),
	CASE(reordering_that_was_seen_widens_the_window),
	CASE(each_round_trip_with_a_dsack_widens_it_by_a_quarter),
	CASE(doubles_of_the_network_do_not_widen_it), CASE(it_widens_after_two_gibibytes),
	CASE(a_tail_probe_that_came_twice_does_not_widen_it),
	CASE(a_tail_probe_is_out_once_it_has_left), CASE(a_lone_fin_is_probed_like_data),
	CASE(a_fin_sent_by_itself_is_the_last_segment),
	CASE(a_probe_with_a_fin_that_came_twice_does_not_widen_it), CASE(it_narrows_again),
	CASE(a_repetition_that_is_under_way_is_not_repeated),
	CASE(recovery_sends_one_for_two_that_arrive),
	CASE(what_was_reported_before_a_recovery_has_no_share_in_it),
	CASE(each_acknowledgement_is_a_sample))
