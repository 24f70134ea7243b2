// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/tcp/rig.h"

static const struct tcp_opts full = {
	.has_mss = true, .mss = MSS, .sack_ok = true, .has_ts = true, .ts_val = 1};

static void too_big(uint32_t seq, uint32_t mtu)
{
	tcp_stack_too_big(rig.stack, &rig.flow, rig.iss + seq, mtu);
}

// Pieces of so many bytes, the last one shorter, from seq to end, and nothing else.
static void assert_pieces(uint32_t seq, uint32_t end, size_t len)
{
	while (seq < end) {
		const struct out *o = rig_out();
		assert_int_equal(o->seq, seq);
		assert_int_equal(o->len, end - seq < len ? end - seq : len);
		seq += (uint32_t)o->len;
	}
	NO_OUT();
}

// TCP-98
static void what_was_too_long_goes_out_again_in_smaller_pieces(void **state)
{
	rig_accept(PLAIN);
	rig_write_n(4000);
	assert_pieces(1, 4001, MSS);
	too_big(1, 1300);
	assert_pieces(1, 4001, 1260);
	assert_int_equal(rig_count(TCP_too_big), 1);
	assert_int_equal(rig_count(TCP_retransmission_timeouts), 0);
	IN(.flags = ACK, .seq = 1, .ack = 4001);
	rig_write_n(2000);
	assert_pieces(4001, 6001, 1260); // for good
}

// TCP-98, TCP-33
static void options_count_into_the_room_that_is_left(void **state)
{
	rig_accept(full);
	rig_write_n(2896);
	assert_pieces(1, 2897, MSS - 12);
	too_big(1, 1300);
	assert_pieces(1, 2897, 1260 - 12);
}

// TCP-98, RFC 1191 6.5.
static void a_small_path_is_no_congestion(void **state)
{
	rig_accept(PLAIN);
	rig_write_n(MSS * 10);
	rig_skip();
	uint32_t cwnd = rig.conn->cc.cwnd, ssthresh = rig.conn->cc.ssthresh;
	too_big(1, 1300);
	assert_pieces(1, 1 + MSS * 10, 1260);
	assert_int_equal(rig.conn->cc.cwnd, cwnd);
	assert_int_equal(rig.conn->cc.ssthresh, ssthresh);
	assert_int_equal(rig.conn->n_backoff, 0);
}

// TCP-98
static void of_one_flight_one_message_counts(void **state)
{
	rig_accept(PLAIN);
	rig_write_n(MSS * 3);
	rig_skip();
	for (uint32_t i = 0; i < 3; i++)
		too_big(1 + i * MSS, 1300);
	assert_pieces(1, 1 + MSS * 3, 1260);
	assert_int_equal(rig_count(TCP_too_big), 1);
	assert_int_equal(rig_count(TCP_too_big_ignored), 2);
	too_big(1, 1400); // no larger one either
	NO_OUT();
	too_big(1, 1000); // but a smaller one, behind the next router
	assert_pieces(1, 1 + MSS * 3, 960);
}

// TCP-99, TH-42, RFC 5927 4.1.
static void only_what_is_outstanding_is_believed(void **state)
{
	rig_accept(PLAIN);
	rig_write_n(MSS);
	rig_skip();
	IN(.flags = ACK, .seq = 1, .ack = 1 + MSS);
	too_big(1, 1300); // nothing is
	rig_write_n(MSS * 2);
	rig_skip();
	too_big(MSS, 1300); // acknowledged
	too_big(1 + 3 * MSS, 1300); // not sent yet
	too_big(1u << 31, 1300);
	struct tcp_flow other = rig.flow;
	other.remote_port++;
	tcp_stack_too_big(rig.stack, &other, rig.iss + 1 + MSS, 1300);
	NO_OUT();
	assert_int_equal(rig_count(TCP_too_big_ignored), 5);
	assert_int_equal(rig.conn->mss, MSS);
	too_big(3 * MSS, 1300); // the last byte
	assert_int_equal(rig_count(TCP_too_big), 1);
	rig_skip();
}

// TCP-99
static void a_handshake_has_nothing_that_could_be_too_long(void **state)
{
	rig_begin_connect(10 * NS_PER_SECOND);
	too_big(0, 1300);
	assert_int_equal(rig_count(TCP_too_big_ignored), 1);
	IN(.flags = SYN | ACK, .seq = 0, .ack = 1, .opts = PLAIN);
	assert_int_equal(rig.conn->mss, MSS);
	rig_skip();
}

// TCP-99, RFC 5927 7.2, CVE-2005-1065.
static void the_floor_is_552_of_ipv4(void **state)
{
	rig_accept(PLAIN);
	rig_write_n(2000);
	rig_skip();
	too_big(1, 68);
	assert_pieces(1, 2001, 512);
	too_big(1, 0);
	assert_int_equal(rig_count(TCP_too_big_ignored), 1);
	assert_int_equal(rig.conn->mss, 512);
}

// TCP-99, RFC 8201 4: no link of IPv6 has less than 1280.
static void what_claims_less_than_ipv6_allows_is_ignored(void **state)
{
	rig_use_ipv6();
	rig_connect(PLAIN);
	assert_int_equal(rig.conn->mss, RIG_MTU - 60);
	rig_write_n(2000);
	rig_skip();
	too_big(1, 1279);
	NO_OUT();
	assert_int_equal(rig_count(TCP_too_big_ignored), 1);
	too_big(1, 1280);
	assert_pieces(1, 2001, 1220);
}

// TCP-98, TCP-61
static void a_timeout_does_not_forget_it(void **state)
{
	rig_accept(PLAIN);
	rig_write_n(MSS);
	rig_skip();
	too_big(1, 1300);
	rig_skip();
	rig_after_ms(1100);
	assert_int_equal(rig_out()->len, 1260);
	rig_skip();
	assert_int_equal(rig.conn->mss, 1260);
}

// TCP-98
static void what_the_peer_reported_is_not_sent_again(void **state)
{
	rig_accept(full);
	uint32_t len = MSS - 12;
	rig_write_n(len * 3);
	rig_skip();
	struct tcp_opts third = {.has_ts = true, .ts_val = 2, .n_sack = 1};
	third.sack[0] = (struct tcp_sack_block){rig.iss + 1 + 2 * len, rig.iss + 1 + 3 * len};
	IN(.flags = ACK, .seq = 1, .ack = 1, .opts = third);
	rig_skip();
	too_big(1, 1300);
	assert_pieces(1, 1 + 2 * len, 1248);
}

// TCP-98: a recovery's cwnd of the moment does not stay.
static void a_small_path_in_a_recovery_leaves_its_threshold(void **state)
{
	rig_accept(full);
	uint32_t len = MSS - 12;
	rig_write_n(len * 10);
	rig_skip();
	struct tcp_opts some = {.has_ts = true, .ts_val = 2, .n_sack = 1};
	some.sack[0] = (struct tcp_sack_block){rig.iss + 1 + len, rig.iss + 1 + 4 * len};
	IN(.flags = ACK, .seq = 1, .ack = 1, .opts = some);
	assert_true(rig.conn->in_recovery);
	assert_int_not_equal(rig.conn->cc.cwnd, rig.conn->cc.ssthresh);
	rig_skip();
	too_big(1, 1300);
	assert_false(rig.conn->in_recovery);
	assert_int_equal(rig.conn->cc.cwnd, rig.conn->cc.ssthresh);
	rig_skip();
}

// The tenth and all before it arrive only when the first was repeated twice, so that the
// eleventh, which left before that, is lost, too. Returns what leaves next.
static uint32_t next_after_a_second_loss(bool slow_path)
{
	const uint32_t piece = 1300 - 40 - 12, ten = 1 + 10 * piece;
	rig.conf.unpaced = false;
	rig.conf.slow_path = slow_path;
	rig_restart();
	rig_accept(full);
	rig.conn->srtt_ns = 100 * NS_PER_MS;
	rig.conn->cc.cwnd = rig.conn->cc.ssthresh = 40 * MSS;
	rig_write_n(40 * MSS);
	rig_after_ms(100);
	rig_skip();
	too_big(1, 1300);
	rig_after_ms(20);
	struct tcp_opts reports = {.has_ts = true, .ts_val = 2, .n_sack = 1};
	reports.sack[0] = (struct tcp_sack_block){rig.iss + 1 + piece, rig.iss + ten};
	IN(.flags = ACK, .seq = 1, .ack = 1, .opts = reports);
	rig_skip();
	rig_after_ms(25);
	rig_skip();
	assert_true(rig.conn->snd_nxt != rig.conn->snd_max);
	IN(.flags = ACK, .seq = 1, .ack = ten, .opts = {.has_ts = true, .ts_val = 3});
	assert_false(rig.conn->has_reports);
	assert_true(rig.conn->lost_bytes != 0);
	for (unsigned ms = 0; ms < 10 && !rig_peek(); ms++)
		rig_after_ms(1);
	uint32_t seq = rig_out()->seq;
	rig_skip();
	return seq;
}

// TCP-212, TCP-97: where nothing else is rare.
static void what_is_lost_again_while_all_is_repeated_goes_first(void **state)
{
	const uint32_t ten = 1 + 10 * (1300 - 40 - 12);
	assert_int_equal(next_after_a_second_loss(true), ten);
	assert_int_equal(next_after_a_second_loss(false), ten);
}

// Everything sent since is acknowledged. Returns the length of the longest segment.
static size_t acknowledge_all(void)
{
	size_t longest = 0;
	uint32_t end = 0;
	for (const struct out *o; (o = rig_peek()); rig_out()) {
		longest = o->len > longest ? o->len : longest;
		end = o->seq + (uint32_t)o->len > end ? o->seq + (uint32_t)o->len : end;
	}
	if (end)
		IN(.flags = ACK, .seq = 1, .ack = end);
	return longest;
}

// An open connection whose path let nothing through for so long; what it sent is unacknowledged.
static void guess(struct tcp_opts peer, uint64_t silent_ms)
{
	rig_accept(peer);
	rig_write_n(60000);
	rig_skip();
	rig_after_ms(silent_ms);
}

// TCP-168, RFC 8899 4.3.
static void three_timeouts_make_segments_shorter(void **state)
{
	guess(PLAIN, 1400);
	assert_int_equal(rig_out()->len, MSS);
	assert_int_equal(rig_out()->len, MSS);
	const struct out *o = rig_out();
	assert_int_equal(o->seq, 1);
	assert_int_equal(o->len, 1024);
	NO_OUT();
	assert_int_equal(rig_count(TCP_path_guesses), 1);
	rig_after_ms(4800); // and five shorter yet
	rig_out();
	assert_int_equal(rig_out()->len, 512);
	rig_after_ms(20000);
	assert_int_equal(rig_out()->len, 512); // no further
	rig_skip();
}

// TCP-168: every link of IPv6 lets 1280 bytes pass.
static void no_segment_of_ipv6_is_shorter_than_1220(void **state)
{
	rig_use_ipv6();
	rig_connect(PLAIN);
	rig_write_n(6000);
	rig_skip();
	rig_after_ms(25000);
	size_t len = 0;
	while (rig_peek())
		len = rig_out()->len;
	assert_int_equal(len, 1220);
}

// TCP-168
static void short_segments_that_get_lost_are_not_too_long(void **state)
{
	rig_accept(PLAIN);
	rig_write_n(1024);
	rig_skip();
	rig_after_ms(20000);
	assert_int_equal(rig_count(TCP_path_guesses), 0);
	assert_int_equal(rig.conn->mss, MSS);
	rig_skip();
}

// TCP-214: what was short at first is repeated together with what was written since.
static void segments_that_grow_while_all_is_silent_are_guessed_later(void **state)
{
	rig_accept(PLAIN);
	rig_write_n(1000);
	rig_after_ms(1500);
	assert_int_equal(rig_count(TCP_path_guesses), 0);
	rig_write_n(3000);
	rig_after_ms(20000);
	assert_int_equal(rig_count(TCP_path_guesses), 1);
	assert_in_range(rig.conn->mss, 512, 1024);
	rig_skip();
}

// TCP-169: all of it was silent, not what is long.
static void a_probe_that_arrives_ends_a_wrong_guess(void **state)
{
	guess(PLAIN, 7000);
	assert_int_equal(rig.conn->mss, 512);
	for (unsigned i = 0; i < 50 && rig.conn->mss < MSS; i++) {
		acknowledge_all();
		rig_after_ms(100);
	}
	assert_int_equal(rig.conn->mss, MSS);
	assert_int_equal(rig_count(TCP_path_probes), 1);
	assert_false(rig.conn->guessed_path);
	rig_skip();
}

// Acknowledges as a path does that lets segments of so many bytes pass, with SACK. True = something
// came.
static bool pass(size_t most, uint32_t *una)
{
	bool came = false;
	for (const struct out *o; (o = rig_peek()); rig_out()) {
		if (o->len > most)
			continue;
		came = true;
		uint32_t end = o->seq + (uint32_t)o->len;
		struct tcp_opts opts = {.has_ts = true, .ts_val = 2, .ts_ecr = o->opts.ts_val};
		if (o->seq <= *una) {
			*una = end > *una ? end : *una;
		} else {
			opts.n_sack = 1;
			opts.sack[0] = (struct tcp_sack_block){rig.iss + o->seq, rig.iss + end};
		}
		IN(.flags = ACK, .seq = 1, .ack = *una, .opts = opts);
	}
	return came;
}

// TCP-169, TCP-33: the whole length, then 1280, then 1400, each once in ten minutes.
static void probes_find_the_longest_common_size_that_passes(void **state)
{
	guess(full, 1400);
	uint32_t una = 1;
	rig_skip();
	rig_after_ms(3000);
	for (unsigned i = 0; i < 100; i++) {
		pass(1260 - 12, &una);
		if (rig.conn->sendq.len < 10000)
			rig_write_n(10000);
		rig_after_ms(100);
	}
	assert_int_equal(rig.conn->mss, 1240 - 12);
	assert_int_equal(rig_count(TCP_path_probes), 3);
	while (pass(MSS, &una)) // another way
		rig_after_ms(100);
	rig_after_ms(580000);
	for (unsigned i = 0; i < 20; i++) {
		rig_write_n(1000);
		pass(MSS, &una);
		rig_after_ms(1000);
	}
	assert_int_equal(rig_count(TCP_path_probes), 3);
	rig_write_n(10000);
	while (pass(MSS, &una))
		rig_after_ms(100);
	rig_write_n(1); // looks whether the probe arrived
	rig_out();
	assert_int_equal(rig.conn->mss, MSS - 12);
	assert_int_equal(rig_count(TCP_path_probes), 4);
	rig_skip();
}

// TCP-169
static void a_lost_probe_at_the_end_has_failed_too(void **state)
{
	guess(PLAIN, 1400);
	uint32_t una = 1;
	for (unsigned i = 0; i < 300; i++) {
		pass(1260, &una);
		rig_after_ms(100);
	}
	assert_int_equal(una, 60001);
	assert_int_equal(rig.conn->sendq.len, 0);
	assert_in_range(rig.conn->mss, 1024, 1240);
}

// TCP-213: what losses left of cwnd is two of the short ones.
static void one_of_the_longer_segments_fits_into_cwnd(void **state)
{
	guess(PLAIN, 7000);
	for (unsigned i = 0; i < 50 && !rig.conn->path_probe; i++) {
		acknowledge_all();
		rig_after_ms(100);
	}
	assert_true(rig.conn->path_probe != 0);
	acknowledge_all();
	rig.conn->cc.cwnd = rig.conn->cc.ssthresh = 1024;
	assert_int_equal(rig_out()->len, MSS);
	assert_int_equal(rig.conn->mss, MSS);
	assert_int_equal(rig.conn->cc.ssthresh, 2 * MSS); // what a recovery leaves
	rig_skip();
}

RUN_SUITE("tcp/path", CASE(what_was_too_long_goes_out_again_in_smaller_pieces),
	CASE(options_count_into_the_room_that_is_left), CASE(a_small_path_is_no_congestion),
	CASE(of_one_flight_one_message_counts), CASE(only_what_is_outstanding_is_believed),
	CASE(a_handshake_has_nothing_that_could_be_too_long), CASE(the_floor_is_552_of_ipv4),
	CASE(what_claims_less_than_ipv6_allows_is_ignored), CASE(a_timeout_does_not_forget_it),
	CASE(what_the_peer_reported_is_not_sent_again),
	CASE(a_small_path_in_a_recovery_leaves_its_threshold),
	CASE(what_is_lost_again_while_all_is_repeated_goes_first),
	CASE(three_timeouts_make_segments_shorter), CASE(no_segment_of_ipv6_is_shorter_than_1220),
	CASE(short_segments_that_get_lost_are_not_too_long),
	CASE(segments_that_grow_while_all_is_silent_are_guessed_later),
	CASE(a_probe_that_arrives_ends_a_wrong_guess),
	CASE(probes_find_the_longest_common_size_that_passes),
	CASE(a_lost_probe_at_the_end_has_failed_too),
	CASE(one_of_the_longer_segments_fits_into_cwnd))
