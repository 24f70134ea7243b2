// SPDX-License-Identifier: Apache-2.0
#include "dataplane/tcp/sent.h"
#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "tests/unit/tcp/rig.h"

static const struct tcp_opts sacking = {.has_mss = true, .mss = MSS, .sack_ok = true};

static void expect_block(const struct out *o, unsigned i, uint32_t start, uint32_t end)
{
	assert_true(i < o->opts.n_sack);
	assert_int_equal(o->opts.sack[i].start - PEER_ISS, start);
	assert_int_equal(o->opts.sack[i].end - PEER_ISS, end);
}

// The peer says: everything before ack, and segments [from, to) beyond it.
static void sack(uint32_t ack, uint32_t from, uint32_t to)
{
	struct tcp_opts o = {
		.n_sack = 1, .sack = {{rig.iss + 1 + from * MSS, rig.iss + 1 + to * MSS}}};
	IN(.flags = ACK, .seq = 1, .ack = 1 + ack * MSS, .opts = o);
}

static void expect_segment(uint32_t number)
{
	struct out *o = rig_out();
	assert_int_equal(o->seq, 1 + number * MSS);
	assert_int_equal(o->len, MSS);
}

// TCP-34
static void both_sides_must_offer_it(void **state)
{
	rig_accept(PLAIN);
	assert_false(rig.conn->sack_on);
	IN(.flags = ACK, .seq = 4, .ack = 1, .data = "def");
	assert_int_equal(rig_out()->opts.n_sack, 0);
	rig_connect(sacking);
	assert_true(rig.conn->sack_on);
}

// TCP-80
static void blocks_that_were_not_agreed_upon_count_nothing(void **state)
{
	rig_accept(PLAIN);
	rig_write_n(10 * MSS);
	rig_skip();
	sack(1, 3, 4);
	sack(1, 3, 5);
	assert_false(rig.conn->has_reports);
}

// TCP-50, RFC 2018 4: the first block holds the segment that caused the ACK.
static void the_latest_block_comes_first(void **state)
{
	rig_accept(sacking);
	IN(.flags = ACK, .seq = 10, .ack = 1, .data = "abc");
	struct out *o = rig_out();
	assert_int_equal(o->ack, 1);
	assert_int_equal(o->opts.n_sack, 1);
	expect_block(o, 0, 10, 13);
	IN(.flags = ACK, .seq = 30, .ack = 1, .data = "abc");
	o = rig_out();
	assert_int_equal(o->opts.n_sack, 2);
	expect_block(o, 0, 30, 33);
	expect_block(o, 1, 10, 13);
	IN(.flags = ACK, .seq = 13, .ack = 1, .data = "def"); // grows the older one
	o = rig_out();
	expect_block(o, 0, 10, 16);
	expect_block(o, 1, 30, 33);
	IN(.flags = ACK, .seq = 1, .ack = 1, .data = "123456789");
	o = rig_out();
	assert_int_equal(o->ack, 16);
	assert_int_equal(o->opts.n_sack, 1);
	expect_block(o, 0, 30, 33);
	rig_after_ms(50);
	NO_OUT();
}

// TCP-50, TCP-46
static void every_island_of_a_turn_is_reported(void **state)
{
	rig_accept(sacking);
	for (uint32_t i = 1; i <= 10; i++)
		IN(.flags = ACK, .seq = i * 10, .ack = 1, .data = "x");
	static const unsigned n_blocks[] = {4, 4, 4};
	bool seen[11] = {0};
	for (unsigned k = 0; k < 3; k++) {
		struct out *o = rig_out();
		assert_int_equal(o->opts.n_sack, n_blocks[k]);
		for (unsigned i = 0; i < o->opts.n_sack; i++)
			seen[(o->opts.sack[i].start - PEER_ISS) / 10] = true;
	}
	NO_OUT();
	for (unsigned i = 1; i <= 10; i++)
		assert_true(seen[i]);
}

static void with_timestamps_three_blocks_fit(void **state)
{
	struct tcp_opts o = sacking;
	o.has_ts = true;
	o.ts_val = 7;
	rig_accept(o);
	struct tcp_opts ts = {.has_ts = true, .ts_val = 7};
	for (uint32_t i = 1; i <= 4; i++)
		IN(.flags = ACK, .seq = i * 10, .ack = 1, .data = "x", .opts = ts);
	assert_int_equal(rig_out()->opts.n_sack, 3);
}

// TCP-112, RFC 8985 6.2: three segments' worth beyond the hole.
static void only_the_hole_is_sent_again(void **state)
{
	rig_accept(sacking);
	rig_write_n(10 * MSS);
	rig_skip();
	rig_after_ms(1);
	sack(0, 1, 2);
	sack(0, 1, 3);
	NO_OUT();
	sack(0, 1, 4);
	expect_segment(0);
	NO_OUT();
	assert_int_equal(rig.conn->cc.ssthresh, 5 * MSS);
	sack(0, 1, 10);
	NO_OUT();
	IN(.flags = ACK, .seq = 1, .ack = 1 + 10 * MSS);
	assert_false(rig.conn->in_recovery);
	assert_false(rig.conn->has_reports);
	assert_int_equal(rig_count(TCP_retransmits), 1);
}

static void one_ack_may_tell_of_a_loss(void **state)
{
	rig_accept(sacking);
	rig_write_n(10 * MSS);
	rig_skip();
	sack(0, 1, 10); // receivers that batch send one ACK for many segments
	expect_segment(0);
	NO_OUT();
}

// TCP-82
static void several_holes_are_sent_again_in_one_round_trip(void **state)
{
	rig_accept(sacking);
	rig_write_n(10 * MSS);
	rig_skip();
	struct tcp_opts o = {.n_sack = 3,
		.sack = {{rig.iss + 1 + 5 * MSS, rig.iss + 1 + 10 * MSS},
			{rig.iss + 1 + 3 * MSS, rig.iss + 1 + 4 * MSS},
			{rig.iss + 1 + 1 * MSS, rig.iss + 1 + 2 * MSS}}};
	IN(.flags = ACK, .seq = 1, .ack = 1, .opts = o);
	expect_segment(0);
	expect_segment(2);
	expect_segment(4);
	NO_OUT();
}

// TCP-82, RFC 6675 4, SetPipe(): what is lost is not in the network, what was sent again is.
static void recovery_keeps_the_pipe_within_cwnd(void **state)
{
	rig_accept(sacking);
	rig_write_n(40 * MSS);
	rig_skip();
	rig_after_ms(1);
	sack(0, 5, 10); // 0..4 lost: pipe is 0, cwnd 5
	for (uint32_t i = 0; i < 5; i++)
		expect_segment(i);
	NO_OUT();
	IN(.flags = ACK, .seq = 1, .ack = 1 + 2 * MSS); // two have left it
	expect_segment(10);
	expect_segment(11);
	NO_OUT();
}

// TCP-82
static void new_data_goes_out_in_recovery_when_the_pipe_has_room(void **state)
{
	rig_accept(sacking);
	rig_write_n(20 * MSS);
	rig_skip();
	sack(0, 1, 7); // pipe: 7, 8 and 9; cwnd 5
	expect_segment(0);
	expect_segment(10);
	NO_OUT();
}

// TCP-80
static void blocks_that_cannot_be_true_are_ignored(void **state)
{
	rig_accept(sacking);
	rig_write_n(10 * MSS);
	rig_skip();
	uint32_t una = rig.iss + 1, max = una + 10 * MSS;
	struct tcp_sack_block bad[] = {{una, una + MSS}, {una - 5, una + 5}, {max, max + 5},
		{una + 5, max + 1}, {una + 5, una + 5}, {una + 9, una + 5}, {una - 50, una - 5},
		{una + 0x80000000, una + 5}};
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct tcp_opts o = {.n_sack = 1, .sack = {bad[i]}};
		IN(.flags = ACK, .seq = 1, .ack = 1, .opts = o);
	}
	NO_OUT();
	assert_false(rig.conn->has_reports);
	assert_int_equal(rig.conn->n_dup_acks, 0);
}

// TCP-83, RFC 6675 5.1.
static void a_timeout_sends_nothing_again_that_was_reported(void **state)
{
	rig_accept(sacking);
	rig_write_n(10 * MSS);
	rig_skip();
	sack(0, 2, 4);
	rig_after_ms(2); // reordering, for longer than a tick
	expect_segment(0);
	NO_OUT();
	rig_after_ms(200);
	expect_segment(0);
	NO_OUT();
	assert_int_equal(rig.conn->sacked_bytes, 2 * MSS);
	IN(.flags = ACK, .seq = 1, .ack = 1 + MSS);
	expect_segment(1);
	expect_segment(4);
	NO_OUT();
	IN(.flags = ACK, .seq = 1, .ack = 1 + 5 * MSS);
	for (uint32_t i = 5; i < 10; i++)
		expect_segment(i);
}

// TCP-83, RFC 2018 8.
static void who_drops_what_he_reported_gets_it_again(void **state)
{
	rig_accept(sacking);
	rig_write_n(5 * MSS);
	rig_skip();
	sack(0, 1, 4);
	expect_segment(0);
	IN(.flags = ACK, .seq = 1, .ack = 1 + MSS); // but not what was reported behind it
	rig_after_ms(250);
	assert_int_equal(rig.conn->sacked_bytes, 0);
	rig_skip();
	IN(.flags = ACK, .seq = 1, .ack = 1 + 2 * MSS);
	expect_segment(2);
	expect_segment(3);
	NO_OUT();
}

// TCP-112, RFC 8985 6.2: what is missing for a quarter of a round trip longer than what came after
// it.
static void too_few_reports_for_a_loss_count_after_a_while(void **state)
{
	rig_begin_connect(10 * NS_PER_SECOND);
	rig_after_ms(40);
	IN(.flags = SYN | ACK, .seq = 0, .ack = 1, .opts = sacking);
	rig_write_n(3 * MSS);
	rig_skip();
	sack(0, 1, 2);
	rig_after_ms(9);
	NO_OUT();
	rig_after_ms(1);
	expect_segment(0);
	NO_OUT();
	assert_true(rig.conn->in_recovery);
}

static void what_was_only_reordered_is_not_sent_again(void **state)
{
	rig_begin_connect(10 * NS_PER_SECOND);
	rig_after_ms(40);
	IN(.flags = SYN | ACK, .seq = 0, .ack = 1, .opts = sacking);
	rig_write_n(3 * MSS);
	rig_skip();
	sack(0, 1, 2);
	rig_after_ms(5);
	IN(.flags = ACK, .seq = 1, .ack = 1 + 2 * MSS);
	rig_after_ms(30);
	NO_OUT();
}

// TCP-114, RFC 5681 4.3: the loss of a repetition is another loss, and seen without a timeout.
static void a_lost_repetition_is_repeated(void **state)
{
	rig_accept(sacking);
	rig_write_n(30 * MSS);
	rig_skip();
	rig_after_ms(1);
	sack(0, 1, 8); // pipe: 8 and 9
	expect_segment(0);
	expect_segment(10);
	expect_segment(11);
	NO_OUT();
	rig_after_ms(1);
	sack(0, 1, 10); // which left before 0 did again
	expect_segment(12);
	expect_segment(13);
	NO_OUT();
	rig_after_ms(1);
	sack(0, 1, 11); // which left behind it
	expect_segment(0);
	assert_true(rig.conn->cc.ssthresh < 3 * MSS);
	rig_skip();
	assert_int_equal(rig_count(TCP_retransmits), 2);
	assert_int_equal(rig_count(TCP_retransmission_timeouts), 0);
}

// TCP-86, RFC 8985 7.2 and 7.3: nothing came for two round trips, so the last segment goes again.
static void a_silent_tail_is_probed_before_the_timeout(void **state)
{
	rig_accept(sacking);
	uint64_t start = twheel_now(rig.wheel) / NS_PER_MS;
	rig_write_n(4 * MSS);
	rig_skip();
	rig_after_ms(100);
	struct out *o = rig_out();
	assert_int_equal(rig_ms(o), start + 3);
	assert_int_equal(o->seq, 1 + 3 * MSS);
	assert_int_equal(o->len, MSS);
	NO_OUT();
	// The answer shows that 0 and 1 are missing.
	sack(0, 2, 4);
	expect_segment(0);
	expect_segment(1);
	NO_OUT();
	assert_int_equal(rig_count(TCP_tail_probes), 1);
	assert_int_equal(rig_count(TCP_retransmission_timeouts), 0);
}

// TCP-86
static void a_probe_prefers_new_data(void **state)
{
	rig_accept(sacking);
	rig_write_n(20 * MSS);
	rig_skip();
	rig_after_ms(3);
	expect_segment(10); // beyond cwnd
	NO_OUT();
	rig_after_ms(199);
	NO_OUT();
	rig_after_ms(1); // nobody answers: the timeout runs from the probe
	expect_segment(0);
	NO_OUT();
}

// TCP-87, RFC 8985 7.4.
static void a_probe_that_repaired_the_loss_itself_slows_us_down(void **state)
{
	rig_accept(sacking);
	rig_write_n(4 * MSS);
	rig_skip();
	rig_after_ms(50);
	rig_skip();
	IN(.flags = ACK, .seq = 1, .ack = 1 + 4 * MSS);
	assert_int_equal(rig.conn->cc.cwnd, 2 * MSS);
}

// TCP-87, RFC 2883: the peer got it twice, so only the ACK was lost.
static void a_probe_that_was_needless_does_not(void **state)
{
	rig_accept(sacking);
	rig_write_n(4 * MSS);
	rig_skip();
	rig_after_ms(50);
	rig_skip();
	struct tcp_opts o = {.n_sack = 1, .sack = {{rig.iss + 1 + 3 * MSS, rig.iss + 1 + 4 * MSS}}};
	IN(.flags = ACK, .seq = 1, .ack = 1 + 4 * MSS, .opts = o);
	assert_int_equal(rig.conn->cc.cwnd, 10 * MSS);
}

// TCP-86, RFC 8985 7.2: its ACK may be delayed.
static void a_single_segment_is_probed_a_delayed_ack_later(void **state)
{
	rig_accept(sacking);
	rig_write("one");
	rig_skip();
	rig_after_ms(50);
	NO_OUT();
	rig_after_ms(1);
	assert_int_equal(rig_out()->seq, 1);
	NO_OUT();
	assert_int_equal(rig_count(TCP_tail_probes), 1);
	rig_after_ms(1);
	IN(.flags = ACK, .seq = 1, .ack = 4);
	assert_int_equal(rig.conn->cc.cwnd, 2 * MSS);
}

// TCP-218: a peer that delays ACKs by 200 ms has sent it before the probe, which left after 250 ms,
// could arrive.
static void an_ack_that_crosses_a_probe_shows_no_loss(void **state)
{
	rig_begin_connect(10 * NS_PER_SECOND);
	rig_after_ms(100);
	IN(.flags = SYN | ACK, .seq = 0, .ack = 1, .opts = sacking);
	rig_skip();
	rig_write("one");
	rig_after_ms(300);
	rig_skip();
	assert_int_equal(rig_count(TCP_tail_probes), 1);
	IN(.flags = ACK, .seq = 1, .ack = 4);
	assert_int_equal(rig.conn->cc.cwnd, 10 * MSS);
	assert_int_equal(rig.conn->haste, 0);
}

// TCP-51
static void what_comes_twice_is_reported(void **state)
{
	rig_accept(sacking);
	IN(.flags = ACK, .seq = 1, .ack = 1, .data = "abcdef");
	rig_skip();
	IN(.flags = ACK, .seq = 3, .ack = 1, .data = "cd");
	struct out *o = rig_out();
	assert_int_equal(o->ack, 7);
	assert_int_equal(o->opts.n_sack, 1);
	expect_block(o, 0, 3, 5);
	NO_OUT();
}

// TCP-51, RFC 2883 4: whatever else the turn brings, the second block is the island.
static void what_comes_twice_beyond_a_hole_is_reported_with_its_island(void **state)
{
	rig_accept(sacking);
	IN(.flags = ACK, .seq = 10, .ack = 1, .data = "abcdef");
	rig_skip();
	IN(.flags = ACK, .seq = 12, .ack = 1, .data = "cd");
	IN(.flags = ACK, .seq = 30, .ack = 1, .data = "xyz");
	struct out *o = rig_out();
	assert_int_equal(o->ack, 1);
	assert_int_equal(o->opts.n_sack, 3);
	expect_block(o, 0, 12, 14);
	expect_block(o, 1, 10, 16);
	expect_block(o, 2, 30, 33);
	NO_OUT();
}

// TCP-51: the peer would take it for a report of what it must send again.
static void what_came_twice_and_was_dropped_is_not_reported(void **state)
{
	rig_accept(sacking);
	IN(.flags = ACK, .seq = 10, .ack = 1, .data = "abc");
	rig_skip();
	IN(.flags = ACK, .seq = 10, .ack = 1, .data = "abc");
	IN(.flags = ACK | FIN, .seq = 5, .ack = 1); // ends before them
	assert_int_equal(rig_count(TCP_drop_after_fin), 1);
	assert_int_equal(rig_out()->opts.n_sack, 0);
	NO_OUT();
}

static void a_fin_waits_for_its_turn_in_recovery(void **state)
{
	rig_accept(sacking);
	rig_write_n(5 * MSS);
	tcp_conn_shutdown(rig.conn);
	rig_skip();
	sack(0, 1, 5);
	expect_segment(0);
	NO_OUT();
	IN(.flags = ACK, .seq = 1, .ack = 1 + 5 * MSS); // all but the FIN
	rig_after_ms(200);
	assert_int_equal(rig_out()->flags, ACK | FIN);
}

static void a_fin_leaves_although_blocks_are_due(void **state)
{
	rig_accept(sacking);
	IN(.flags = ACK, .seq = 4, .ack = 1, .data = "def");
	rig_skip();
	tcp_conn_shutdown(rig.conn);
	struct out *o = rig_out();
	assert_int_equal(o->flags, ACK | FIN);
	expect_block(o, 0, 4, 7);
}

// TH-39, TCP-80
static void the_board_is_bounded(void **state)
{
	rig_accept(sacking);
	IN(.flags = ACK, .seq = 1, .ack = 1, .wnd = 65535);
	rig_write_n(10 * MSS);
	rig_skip();
	for (uint32_t i = 0; i < TCP_MAX_RUNS; i++) {
		uint32_t start = rig.iss + 3 + 10 * i;
		struct tcp_opts o = {.n_sack = 1, .sack = {{start, start + 1}}};
		IN(.flags = ACK, .seq = 1, .ack = 1, .opts = o);
	}
	assert_int_equal(rig.conn->n_runs, TCP_MAX_RUNS);
	rig_skip();
}

// Naive twin: one flag per byte.
static void random_blocks_agree_with_a_map_of_bytes(void **state)
{
	enum { N = 10 * MSS };
	static bool have[N];
	struct rand r;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		rand_init(&r, seed);
		rig_accept(sacking);
		rig_write_n(N);
		rig_skip();
		memset(have, 0, sizeof(have));
		struct tcp_conn *c = rig.conn;
		for (unsigned step = 0; step < 25; step++) {
			uint32_t from = 1 + (uint32_t)rand_below(&r, N - 1);
			uint32_t len = 1 + (uint32_t)rand_below(&r, rand_below(&r, 2) ? 50 : 3000);
			uint32_t to = from + len < N ? from + len : N;
			struct tcp_opts o = {
				.n_sack = 1, .sack = {{c->snd_una + from, c->snd_una + to}}};
			uint32_t news = 0;
			for (uint32_t i = from; i < to; i++) {
				news += !have[i];
				have[i] = true;
			}
			struct tcp_news said = {.ack = c->snd_una};
			tcp_sack_update(c, &o, &said);
			assert_int_equal(said.delivered, news);
			uint32_t at = (uint32_t)rand_below(&r, N), gap;
			uint32_t found = tcp_sent_gap(c, c->snd_una + at, &gap) - c->snd_una;
			while (at < N && have[at])
				at++;
			assert_int_equal(found, at);
			for (uint32_t i = 0; i < gap && at + i < N; i++)
				assert_false(have[at + i]);
		}
		uint32_t in_map = 0;
		for (uint32_t i = 0; i < N; i++)
			in_map += have[i];
		assert_int_equal(c->sacked_bytes, in_map);
		tcp_conn_abort(c);
		rig_skip();
	}
}

RUN_SUITE("tcp/sack", CASE(both_sides_must_offer_it),
	CASE(blocks_that_were_not_agreed_upon_count_nothing), CASE(the_latest_block_comes_first),
	CASE(every_island_of_a_turn_is_reported), CASE(with_timestamps_three_blocks_fit),
	CASE(only_the_hole_is_sent_again), CASE(one_ack_may_tell_of_a_loss),
	CASE(several_holes_are_sent_again_in_one_round_trip),
	CASE(recovery_keeps_the_pipe_within_cwnd),
	CASE(new_data_goes_out_in_recovery_when_the_pipe_has_room),
	CASE(blocks_that_cannot_be_true_are_ignored),
	CASE(a_timeout_sends_nothing_again_that_was_reported),
	CASE(who_drops_what_he_reported_gets_it_again),
	CASE(too_few_reports_for_a_loss_count_after_a_while),
	CASE(what_was_only_reordered_is_not_sent_again), CASE(a_lost_repetition_is_repeated),
	CASE(a_silent_tail_is_probed_before_the_timeout), CASE(a_probe_prefers_new_data),
	CASE(a_probe_that_repaired_the_loss_itself_slows_us_down),
	CASE(a_probe_that_was_needless_does_not),
	CASE(a_single_segment_is_probed_a_delayed_ack_later),
	CASE(an_ack_that_crosses_a_probe_shows_no_loss), CASE(what_comes_twice_is_reported),
	CASE(what_comes_twice_beyond_a_hole_is_reported_with_its_island),
	CASE(what_came_twice_and_was_dropped_is_not_reported),
	CASE(a_fin_waits_for_its_turn_in_recovery), CASE(a_fin_leaves_although_blocks_are_due),
	CASE(the_board_is_bounded), CASE(random_blocks_agree_with_a_map_of_bytes))
