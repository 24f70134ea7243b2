// SPDX-License-Identifier: Apache-2.0
#include "dataplane/tcp/recovery.h"
#include "lb/base/time.h"
#include "tests/unit/tcp/rig.h"

#define RTT_MS 40
#define TS_MSS (MSS - TCP_OPT_TS_LEN)

static const struct tcp_opts sacking = {.has_mss = true, .mss = MSS, .sack_ok = true};
static const struct tcp_opts stamping = {
	.has_mss = true, .mss = MSS, .sack_ok = true, .has_ts = true, .ts_val = 1};

// The clock of our timestamps now.
static uint32_t stamp(void)
{
	return tcp_ts_now(rig.conn);
}

static void open_far(struct tcp_opts peer)
{
	rig_begin_connect(10 * NS_PER_SECOND);
	rig_after_ms(RTT_MS);
	IN(.flags = SYN | ACK, .seq = 0, .ack = 1, .opts = peer);
	rig_skip();
}

// Everything before ack, segments [from, to) beyond it, and the timestamp echoed; of the length
// that segments have here.
static void sack(uint32_t ack, uint32_t from, uint32_t to, uint32_t ecr)
{
	uint32_t mss = rig.conn->mss;
	struct tcp_opts o = {.has_ts = rig.conn->ts_on, .ts_val = 2, .ts_ecr = ecr};
	if (from != to) {
		o.n_sack = 1;
		o.sack[0] =
			(struct tcp_sack_block){rig.iss + 1 + from * mss, rig.iss + 1 + to * mss};
	}
	IN(.flags = ACK, .seq = 1, .ack = 1 + ack * mss, .opts = o);
}

static void expect_segment(uint32_t number)
{
	assert_int_equal(rig_out()->seq, 1 + number * rig.conn->mss);
}

// TCP-117
static void the_windows_before_a_loss_come_back(void **state)
{
	struct tcp_cc cc;
	const struct tcp_cc_ops *ops = &tcp_cc_reno;
	ops->init(&cc, MSS);
	ops->on_loss(&cc, MSS, 10 * MSS);
	ops->on_timeout(&cc, MSS, 5 * MSS, true);
	assert_int_equal(cc.cwnd, MSS);
	ops->undo(&cc);
	assert_int_equal(cc.cwnd, 10 * MSS);
	assert_int_equal(cc.ssthresh, UINT32_MAX);
}

static void a_loss_that_is_settled_stays_one(void **state)
{
	struct tcp_cc cc;
	const struct tcp_cc_ops *ops = &tcp_cc_reno;
	ops->init(&cc, MSS);
	ops->on_loss(&cc, MSS, 10 * MSS);
	uint32_t cwnd = cc.cwnd;
	tcp_cc_settle(&cc);
	ops->undo(&cc);
	assert_int_equal(cc.cwnd, cwnd);
}

// TCP-117, RFC 3522 3.2: the echo is of the first transmission.
static void a_recovery_whose_segment_was_late_is_undone(void **state)
{
	open_far(stamping);
	rig_write_n(10 * TS_MSS);
	uint32_t sent = stamp();
	rig_skip();
	rig_after_ms(RTT_MS);
	sack(0, 1, 4, sent);
	expect_segment(0);
	assert_int_equal(rig.conn->cc.ssthresh, 5 * TS_MSS);
	rig_after_ms(5);
	rig_skip();
	sack(4, 0, 0, sent);
	assert_false(rig.conn->in_recovery);
	assert_int_equal(rig.conn->cc.cwnd, 10 * TS_MSS);
	assert_int_equal(rig_count(TCP_recoveries_undone), 1);
	assert_true(rig.conn->reordering_seen);
	rig_skip();
}

// TCP-117
static void a_recovery_whose_segment_was_lost_is_not(void **state)
{
	open_far(stamping);
	rig_write_n(10 * TS_MSS);
	uint32_t sent = stamp();
	rig_skip();
	rig_after_ms(RTT_MS);
	sack(0, 1, 10, sent);
	expect_segment(0);
	uint32_t again = stamp();
	rig_after_ms(RTT_MS);
	rig_skip();
	sack(10, 0, 0, again);
	assert_false(rig.conn->in_recovery);
	assert_int_equal(rig.conn->cc.cwnd, 5 * TS_MSS);
	assert_int_equal(rig_count(TCP_recoveries_undone), 0);
	rig_skip();
}

// TCP-117: without timestamps, too, as nothing but the original can have arrived.
static void a_recovery_that_repeated_nothing_is_undone(void **state)
{
	open_far(sacking);
	rig_write_n(10 * MSS);
	rig_skip();
	rig_after_ms(RTT_MS);
	rig.no_buffer = true;
	sack(0, 1, 4, 0);
	assert_true(rig.conn->in_recovery);
	sack(4, 0, 0, 0);
	assert_false(rig.conn->in_recovery);
	assert_int_equal(rig.conn->cc.cwnd, 10 * MSS);
	assert_int_equal(rig_count(TCP_recoveries_undone), 1);
	rig.no_buffer = false;
	rig_skip();
	assert_int_equal(rig_count(TCP_retransmits), 0);
}

// TCP-117: what the duplicates asked for without SACK is not repeated any more.
static void what_is_undone_repeats_nothing(void **state)
{
	open_far(PLAIN);
	rig_write_n(10 * MSS);
	rig_skip();
	rig_after_ms(RTT_MS);
	rig.no_buffer = true;
	for (unsigned i = 0; i < 3; i++)
		sack(0, 0, 0, 0);
	assert_true(rig.conn->in_recovery);
	sack(10, 0, 0, 0);
	rig_write_n(MSS);
	rig.no_buffer = false;
	assert_int_equal(rig_out()->seq, 1 + 10 * MSS);
	assert_int_equal(rig_count(TCP_recoveries_undone), 1);
	assert_int_equal(rig.conn->n_dup_acks, 0);
	assert_int_equal(rig_count(TCP_retransmits), 0);
}

// TCP-118, RFC 3708 2: also once the recovery is over.
static void a_recovery_whose_repetitions_came_twice_is_undone(void **state)
{
	open_far(sacking);
	rig_write_n(10 * MSS);
	rig_skip();
	rig_after_ms(RTT_MS);
	sack(0, 2, 10, 0);
	expect_segment(0);
	expect_segment(1);
	rig_after_ms(5);
	sack(10, 0, 0, 0);
	assert_false(rig.conn->in_recovery);
	assert_int_equal(rig.conn->cc.cwnd, 5 * MSS);
	rig_after_ms(35);
	sack(10, 0, 1, 0);
	assert_int_equal(rig_count(TCP_recoveries_undone), 0);
	sack(10, 1, 2, 0);
	assert_int_equal(rig_count(TCP_recoveries_undone), 1);
	assert_int_equal(rig.conn->cc.cwnd, 10 * MSS);
	assert_int_equal(rig_count(TCP_dsacks_in), 2);
	rig_skip();
}

// TCP-118: what the network doubled says nothing, nor does a report that comes much later.
static void other_reports_undo_nothing(void **state)
{
	open_far(sacking);
	rig_write_n(10 * MSS);
	rig_skip();
	rig_after_ms(RTT_MS);
	sack(0, 1, 10, 0);
	expect_segment(0);
	rig_after_ms(RTT_MS);
	sack(10, 0, 0, 0);
	sack(10, 3, 4, 0);
	assert_int_equal(rig.conn->cc.cwnd, 5 * MSS);
	for (uint32_t i = 11; i <= 13; i++) {
		rig_write_n(MSS);
		rig_skip();
		rig_after_ms(RTT_MS);
		sack(i, 0, 0, 0);
	}
	sack(13, 0, 1, 0);
	assert_true(rig.conn->cc.cwnd < 9 * MSS);
	assert_int_equal(rig_count(TCP_dsacks_in), 2);
	assert_int_equal(rig_count(TCP_recoveries_undone), 0);
	rig_skip();
}

// All of ten segments is late by more than the timeout, which begins at a tail probe.
static uint32_t time_out(void)
{
	rig_write_n(10 * rig.conn->mss);
	uint32_t sent = stamp();
	rig_skip();
	while (!rig_count(TCP_retransmission_timeouts))
		rig_after_ms(1);
	rig_skip();
	rig_after_ms(20);
	return sent;
}

// TCP-117, RFC 3522 3.2; RFC 4015 3.
static void a_timeout_that_was_too_early_is_undone_by_timestamps(void **state)
{
	open_far(stamping);
	uint32_t sent = time_out();
	assert_int_equal(rig.conn->cc.cwnd, rig.conn->mss);
	uint64_t resent = rig_count(TCP_retransmits);
	sack(2, 0, 0, sent);
	assert_int_equal(rig_count(TCP_timeouts_undone), 1);
	assert_true(rig.conn->cc.cwnd >= 10 * rig.conn->mss);
	rig_skip();
	sack(10, 0, 0, sent);
	rig_after_ms(1000);
	assert_int_equal(rig_count(TCP_retransmits), resent); // nothing more
	rig_skip();
}

// TCP-119, RFC 5682 3.1, step 3 b: by what arrives that was sent once.
static void a_timeout_that_was_too_early_is_undone_by_originals(void **state)
{
	open_far(sacking);
	time_out();
	uint64_t resent = rig_count(TCP_retransmits);
	sack(2, 0, 0, 0); // the first or its repetition, but one that was sent once
	rig_skip();
	assert_int_equal(rig_count(TCP_timeouts_undone), 1);
	assert_true(rig.conn->cc.cwnd >= 10 * MSS);
	sack(10, 0, 0, 0);
	rig_after_ms(1000);
	assert_true(rig_count(TCP_retransmits) <= resent + 2);
	rig_skip();
}

// TCP-119, RFC 5682 3.1, step 2 b: two new segments ask before anything else is repeated.
static void after_a_timeout_new_segments_go_first(void **state)
{
	open_far(sacking);
	time_out();
	rig_write_n(4 * MSS);
	rig_skip();
	sack(1, 0, 0, 0);
	expect_segment(10);
	expect_segment(11);
	NO_OUT();
	sack(1, 10, 11, 0); // step 3 a: a report of those, so the others are lost
	expect_segment(1);
	assert_int_equal(rig_count(TCP_timeouts_undone), 0);
	assert_true(rig.conn->in_loss);
	rig_skip();
	sack(12, 0, 0, 0);
	assert_false(rig.conn->in_loss);
	rig_skip();
}

// TCP-119
static void a_timeout_without_new_data_repeats_what_is_lost(void **state)
{
	open_far(sacking);
	time_out();
	sack(1, 0, 0, 0);
	expect_segment(1);
	expect_segment(2);
	NO_OUT();
	sack(3, 0, 0, 0);
	for (uint32_t i = 3; i <= 6; i++)
		expect_segment(i);
	NO_OUT();
	assert_int_equal(rig_count(TCP_timeouts_undone), 0);
}

// TCP-117: without SACK, too.
static void timestamps_undo_a_timeout_without_sack(void **state)
{
	struct tcp_opts peer = stamping;
	peer.sack_ok = false;
	open_far(peer);
	uint32_t sent = time_out();
	uint64_t resent = rig_count(TCP_retransmits);
	sack(2, 0, 0, sent);
	assert_int_equal(rig_count(TCP_timeouts_undone), 1);
	sack(10, 0, 0, sent);
	rig_after_ms(1000);
	assert_int_equal(rig_count(TCP_retransmits), resent);
	NO_OUT();
}

RUN_SUITE("tcp/undo", CASE(the_windows_before_a_loss_come_back),
	CASE(a_loss_that_is_settled_stays_one), CASE(a_recovery_whose_segment_was_late_is_undone),
	CASE(a_recovery_whose_segment_was_lost_is_not),
	CASE(a_recovery_that_repeated_nothing_is_undone), CASE(what_is_undone_repeats_nothing),
	CASE(a_recovery_whose_repetitions_came_twice_is_undone), CASE(other_reports_undo_nothing),
	CASE(a_timeout_that_was_too_early_is_undone_by_timestamps),
	CASE(a_timeout_that_was_too_early_is_undone_by_originals),
	CASE(after_a_timeout_new_segments_go_first),
	CASE(a_timeout_without_new_data_repeats_what_is_lost),
	CASE(timestamps_undo_a_timeout_without_sack))
