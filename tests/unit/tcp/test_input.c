// SPDX-License-Identifier: Apache-2.0
#include "dataplane/tcp/csum.h"
#include "lb/base/time.h"
#include "tests/unit/tcp/rig.h"

static const struct tcp_opts with_ts = {
	.has_mss = true, .mss = MSS, .has_ts = true, .ts_val = 1000};

static void raw_in(const uint8_t *segment, size_t len)
{
	struct tcp_flow flow = {.local = rig.flow.local, .remote = rig.flow.remote};
	tcp_stack_input(rig.stack, &flow, segment, len);
}

// A valid segment with the checksum filled in after `change` was applied.
static void changed_in(size_t at, uint8_t byte)
{
	uint8_t segment[20] = {0x9c, 0x40, 0, 80, [12] = 5 << 4, [13] = ACK};
	segment[at] = byte;
	uint16_t sum =
		tcp_csum_segment(tcp_csum_flow(&rig.flow.remote, &rig.flow.local), segment, 20);
	memcpy(segment + 16, &sum, 2);
	raw_in(segment, 20);
}

// NET-34
static void a_segment_that_somebody_vouches_for_needs_no_checksum(void **state)
{
	uint8_t segment[20] = {0x9c, 0x40, 0, 80, [12] = 5 << 4, [13] = ACK};
	raw_in(segment, 20);
	assert_int_equal(rig_count(TCP_drop_checksum), 1);
	tcp_stack_set_verified(rig.stack, true);
	raw_in(segment, 20);
	assert_int_equal(rig_count(TCP_drop_checksum), 1);
	assert_int_equal(rig_count(TCP_drop_no_connection), 1);
	tcp_stack_set_verified(rig.stack, false);
	raw_in(segment, 20);
	assert_int_equal(rig_count(TCP_drop_checksum), 2);
	assert_int_equal(rig_count(TCP_segments_in), 3);
	assert_int_equal(rig_count(TCP_checksums_by_software), 2);
}

// NET-34. As a kernel leaves it for a card: the pseudo-header's sum.
static void a_checksum_that_was_never_made_has_a_counter_of_its_own(void **state)
{
	uint8_t segment[20] = {0x9c, 0x40, 0, 80, [12] = 5 << 4, [13] = ACK};
	uint32_t sum = 6 + 20; // protocol and length, as the addresses in 16-bit words
	const struct ip_addr *ends[] = {&rig.flow.local, &rig.flow.remote};
	for (int i = 0; i < 2; i++)
		sum += (uint32_t)(ends[i]->b[12] << 8 | ends[i]->b[13]) +
		       (uint32_t)(ends[i]->b[14] << 8 | ends[i]->b[15]);
	sum = (sum & 0xffff) + (sum >> 16);
	segment[16] = (uint8_t)(sum >> 8);
	segment[17] = (uint8_t)sum;
	raw_in(segment, 20);
	assert_int_equal(rig_count(TCP_drop_checksum_unmade), 1);
	segment[17] ^= 1;
	raw_in(segment, 20);
	assert_int_equal(rig_count(TCP_drop_checksum), 1);
}

// TH-44, TCP-01, TCP-02, TCP-03, TCP-04
static void malformed_segments_are_dropped_by_cause(void **state)
{
	uint8_t segment[20] = {0x9c, 0x40, 0, 80, [12] = 5 << 4};
	for (size_t len = 0; len < 20; len++)
		raw_in(segment, len);
	assert_int_equal(rig_count(TCP_drop_short), 20);
	raw_in(segment, 20);
	assert_int_equal(rig_count(TCP_drop_checksum), 1);
	changed_in(12, 4 << 4);
	changed_in(12, 15 << 4);
	assert_int_equal(rig_count(TCP_drop_offset), 2);
	changed_in(3, 0); // to port 0
	assert_int_equal(rig_count(TCP_drop_port), 1);
	changed_in(13, SYN | FIN | ACK);
	changed_in(13, SYN | RST);
	assert_int_equal(rig_count(TCP_drop_flags), 2);
	NO_OUT();
	assert_int_equal(rig_count(TCP_segments_in), 26);
}

// TCP-03
static void a_segment_from_itself_to_itself_is_dropped(void **state)
{
	rig.flow.remote = rig.flow.local;
	IN(.flags = SYN, .seq = 0, .from = 80);
	assert_int_equal(rig_count(TCP_drop_port), 1);
	NO_OUT();
}

// TCP-08, RFC 9293 3.10.7.1.
static void a_segment_to_nowhere_is_reset_in_kind(void **state)
{
	IN(.flags = ACK, .seq = 5, .ack = 7, .to = 81);
	struct out *o = rig_out();
	assert_int_equal(o->flags, RST);
	assert_int_equal(o->seq, 7);
	IN(.flags = SYN, .seq = 5, .to = 81);
	o = rig_out();
	assert_int_equal(o->flags, RST | ACK);
	assert_int_equal(o->seq + rig.iss, 0);
	assert_int_equal(o->ack, 6);
	IN(.flags = FIN, .seq = 5, .to = 81, .data = "xyz");
	assert_int_equal(rig_out()->ack, 9);
	IN(.flags = RST, .seq = 5, .to = 81);
	NO_OUT();
	assert_int_equal(rig_count(TCP_drop_no_connection), 3);
	assert_int_equal(rig_count(TCP_drop_stray_rst), 1);
}

static bool takes;
static uint32_t n_passed;

static bool pass(void *ctx, const struct tcp_flow *flow)
{
	n_passed++;
	return takes;
}

// FL-21
static void what_is_nobodys_may_be_somebody_elses(void **state)
{
	rig.conf.pass = pass;
	rig_restart();
	takes = true;
	n_passed = 0;
	IN(.flags = SYN, .seq = 5, .to = 22);
	IN(.flags = ACK, .seq = 5, .ack = 7, .to = 22);
	IN(.flags = RST, .seq = 5, .to = 22);
	NO_OUT();
	assert_int_equal(n_passed, 3);
	assert_int_equal(rig_count(TCP_drop_passed), 3);
	IN(.flags = ACK, .seq = 5, .ack = 7); // where somebody listens
	assert_int_equal(rig_out()->flags, RST);
	assert_int_equal(n_passed, 3);
	takes = false;
	IN(.flags = ACK, .seq = 5, .ack = 7, .to = 22);
	assert_int_equal(rig_out()->flags, RST);
	assert_int_equal(rig_count(TCP_drop_passed), 3);
	takes = true;
	tcp_stack_hush(rig.stack); // FL-41 is for who asks us
	IN(.flags = SYN, .seq = 5, .to = 22);
	assert_int_equal(rig_count(TCP_drop_passed), 4);
	IN(.flags = SYN, .seq = 5);
	assert_int_equal(rig_count(TCP_drop_hushed), 1);
	tcp_stack_set_company(rig.stack, LB_FRONT); // FL-04: it may be another process's
	IN(.flags = ACK, .seq = 5, .ack = 7, .to = 22);
	assert_int_equal(rig_count(TCP_drop_company), 1);
	NO_OUT();
}

// FL-41: what is open goes on, and strays that open nothing are answered as ever.
static void fl_41_who_opens_a_connection_hears_nothing_once_hushed(void **state)
{
	tcp_stack_hush(rig.stack);
	IN(.flags = SYN, .seq = 5);
	IN(.flags = SYN, .seq = 5, .to = 81);
	NO_OUT();
	assert_int_equal(rig_count(TCP_drop_hushed), 2);
	IN(.flags = ACK, .seq = 5, .ack = 7, .to = 81);
	assert_int_equal(rig_out()->flags, RST);
}

// TCP-190, TH-99
static void strays_of_one_source_are_answered_1000_times_a_second(void **state)
{
	struct tcp_flow other = rig.flow;
	other.remote = ip_from_v4(0x0a00ff01);
	for (int i = 0; i < 5000; i++)
		IN(.flags = ACK, .seq = 5, .ack = 7, .to = 81);
	assert_int_equal(rig_count(TCP_rsts_out), 1000);
	assert_int_equal(rig_count(TCP_answers_limited), 4000);
	assert_int_equal(rig_count(TCP_drop_no_connection), 5000);
	struct tcp_seg stray = {.flags = TCP_ACK};
	tcp_output_rst_reply(rig.stack, &other, &stray); // others have their own
	assert_int_equal(rig_count(TCP_rsts_out), 1001);
	for (int ms = 0; ms < 3000; ms++) { // however many more there are
		rig_after_ms(1);
		rig_skip();
		for (int i = 0; i < 3; i++)
			IN(.flags = ACK, .seq = 5, .ack = 7, .to = 81);
	}
	assert_int_equal(rig_count(TCP_rsts_out), 1001 + 3000);
}

// FL-50: what another host had is told at once, a host's worth of clients in one turn.
static void strays_of_many_sources_are_all_answered(void **state)
{
	struct tcp_flow flow = rig.flow;
	const struct tcp_seg stray = {.flags = TCP_ACK};
	for (uint32_t i = 0; i < 10000; i++) {
		flow.remote = ip_from_v4(0x0a010000 + i);
		tcp_output_rst_reply(rig.stack, &flow, &stray);
		rig_skip();
	}
	assert_int_equal(rig_count(TCP_rsts_out), 10000);
	assert_int_equal(rig_count(TCP_answers_limited), 0);
}

// TH-34, TCP-13, RFC 5961 3.2.
static void only_an_exact_reset_resets(void **state)
{
	rig_accept(PLAIN);
	IN(.flags = RST, .seq = 2);
	assert_int_equal(rig.n_closed, 0);
	struct out *o = rig_out();
	assert_int_equal(o->flags, ACK); // the challenge
	assert_int_equal(o->seq, 1);
	assert_int_equal(o->ack, 1);
	IN(.flags = RST, .seq = 0);
	IN(.flags = RST, .seq = 1 + 65535); // beyond the window: no answer either
	NO_OUT();
	assert_int_equal(rig.n_closed, 0);
	assert_int_equal(rig_count(TCP_drop_rst_sequence), 3);
	IN(.flags = RST, .seq = 1);
	assert_int_equal(rig.n_closed, 1);
	assert_int_equal(rig.reason, TCP_CLOSE_RESET);
}

// TH-36, TCP-16, RFC 5961 7, but per connection.
static void challenges_come_at_most_once_in_half_a_second(void **state)
{
	rig_accept(PLAIN);
	for (unsigned i = 0; i < 100; i++) {
		IN(.flags = RST, .seq = 2);
		IN(.flags = SYN, .seq = 100);
		IN(.flags = ACK, .seq = 1, .ack = 1000);
		rig_after_ms(1);
	}
	rig_out();
	NO_OUT();
	rig_after_ms(400);
	IN(.flags = RST, .seq = 2);
	rig_out();
	assert_int_equal(rig_count(TCP_challenge_acks), 2);
}

// TH-34, TCP-14, RFC 5961 4.2, wherever its sequence number is.
static void a_syn_in_a_connection_is_challenged(void **state)
{
	static const uint32_t seqs[] = {0, 1, 500, 100000, 0x80000000};
	rig_accept(PLAIN);
	for (unsigned i = 0; i < 5; i++) {
		IN(.flags = SYN, .seq = seqs[i]);
		struct out *o = rig_out();
		assert_int_equal(o->flags, ACK);
		assert_int_equal(o->ack, 1);
		rig_after_ms(500);
	}
	assert_int_equal(rig.n_closed, 0);
	assert_int_equal(rig_count(TCP_drop_syn), 5);
}

// TH-34, TCP-15, RFC 5961 5.2: MAX.SND.WND is how far back an ACK may lie.
static void acks_outside_of_the_acceptable_range_carry_no_data_in(void **state)
{
	rig_accept(PLAIN);
	IN(.flags = ACK, .seq = 1, .ack = 2, .data = "unsent");
	assert_int_equal(rig_count(TCP_drop_ack_unsent), 1);
	assert_int_equal(rig_out()->flags, ACK);
	rig_after_ms(500);
	IN(.flags = ACK, .seq = 1, .ack = 1u - 65536, .data = "ancient");
	assert_int_equal(rig_count(TCP_drop_ack_old), 1);
	assert_int_equal(rig_out()->flags, ACK);
	assert_int_equal(rig.n_got, 0);
	IN(.flags = ACK, .seq = 1, .ack = 1u - 65535, .data = "old but fine");
	assert_int_equal(rig.n_got, 12);
}

// TCP-12
static void a_segment_without_ack_is_dropped(void **state)
{
	rig_accept(PLAIN);
	IN(.flags = PSH, .seq = 1, .data = "x");
	assert_int_equal(rig_count(TCP_drop_no_ack), 1);
	assert_int_equal(rig.n_got, 0);
	NO_OUT();
}

// TCP-09, RFC 9293 3.10.7.4, first: the four cases of the acceptability test.
static void segments_outside_of_the_window_are_acknowledged_and_dropped(void **state)
{
	rig_accept(PLAIN);
	IN(.flags = ACK, .seq = 1, .ack = 1, .data = "abc");
	rig_skip();
	IN(.flags = ACK, .seq = 1, .ack = 1, .data = "abc"); // wholly old: at once
	assert_int_equal(rig_out()->ack, 4);
	assert_int_equal(rig_count(TCP_drop_old), 1);
	IN(.flags = ACK, .seq = 4 + 65535 + 1, .ack = 1, .data = "far");
	assert_int_equal(rig_out()->ack, 4);
	assert_int_equal(rig_count(TCP_drop_beyond_window), 1);
	assert_int_equal(rig.n_got, 3);
}

// TCP-10
static void a_segment_that_overlaps_what_was_received_gives_its_new_part(void **state)
{
	rig_accept(PLAIN);
	IN(.flags = ACK, .seq = 1, .ack = 1, .data = "abc");
	IN(.flags = ACK, .seq = 2, .ack = 1, .data = "bcde");
	assert_int_equal(rig.n_got, 5);
	assert_memory_equal(rig.got, "abcde", 5);
}

static void a_keepalive_of_the_peer_is_answered(void **state)
{
	rig_accept(PLAIN);
	IN(.flags = ACK, .seq = 0, .ack = 1);
	struct out *o = rig_out();
	assert_int_equal(o->flags, ACK);
	assert_int_equal(o->ack, 1);
}

// TCP-36, RFC 7323 3.2.
static void once_agreed_a_segment_without_timestamp_is_dropped(void **state)
{
	rig_accept(with_ts);
	IN(.flags = ACK, .seq = 1, .ack = 1, .data = "x");
	assert_int_equal(rig_count(TCP_drop_no_timestamp), 1);
	assert_int_equal(rig.n_got, 0);
	IN(.flags = RST, .seq = 1); // which may come without
	assert_int_equal(rig.n_closed, 1);
}

// TCP-37, RFC 7323 5.3.
static void an_old_timestamp_is_dropped_and_acknowledged(void **state)
{
	rig_accept(with_ts);
	IN(.flags = ACK, .seq = 1, .ack = 1, .data = "x", .opts = {.has_ts = true, .ts_val = 999});
	assert_int_equal(rig_count(TCP_drop_old_timestamp), 1);
	assert_int_equal(rig.n_got, 0);
	struct out *o = rig_out();
	assert_int_equal(o->flags, ACK);
	assert_int_equal(o->opts.ts_ecr, 1000);
}

// Two segments are out, the peer's last timestamp is 1000; what it then says of both beyond a hole.
static void report(struct tcp_opts opts, uint32_t seq, uint32_t ack, const char *data)
{
	opts.has_ts = true;
	opts.n_sack = 1;
	opts.sack[0] = (struct tcp_sack_block){rig.iss + 1449, rig.iss + 2897};
	IN(.flags = ACK, .seq = seq, .ack = ack, .data = data, .opts = opts);
}

static void begin_report(void)
{
	struct tcp_opts peer = with_ts;
	peer.has_mss = peer.sack_ok = true;
	peer.mss = MSS;
	rig_accept(peer);
	rig_write_n(2896);
	rig_skip();
}

// TCP-37
static void of_a_bare_ack_that_was_overtaken_the_blocks_count(void **state)
{
	begin_report();
	report((struct tcp_opts){.ts_val = 999}, 1, 1, NULL);
	assert_int_equal(rig_count(TCP_drop_old_timestamp), 0);
	assert_int_equal(rig.conn->sacked_bytes, 1448);
	assert_int_equal(rig.conn->ts_recent, 1000); // which goes up only
	report((struct tcp_opts){.ts_val = 999}, 1, 1, NULL);
	assert_int_equal(rig.conn->sacked_bytes, 1448); // news once
	NO_OUT();
}

// TCP-37
static void paws_drops_what_was_not_merely_overtaken(void **state)
{
	begin_report();
	uint32_t rto_ms = (uint32_t)(rig.conn->rto_ns / NS_PER_MS);
	report((struct tcp_opts){.ts_val = 1000 - rto_ms - 1}, 1, 1, NULL); // too old
	report((struct tcp_opts){.ts_val = 999}, 1, 1, "x"); // data
	report((struct tcp_opts){.ts_val = 999}, 1, 2, NULL); // acknowledges something
	report((struct tcp_opts){.ts_val = 999}, 0, 1, NULL); // from before
	report((struct tcp_opts){.ts_val = 999}, 2, 1, NULL); // from beyond
	assert_int_equal(rig_count(TCP_drop_old_timestamp), 5);
	assert_false(rig.conn->has_reports);
	assert_int_equal(rig.n_got, 0);
	assert_int_equal(rig.conn->snd_una, rig.iss + 1);
}

// TCP-38, RFC 7323 5.5.
static void after_24_days_of_silence_any_timestamp_is_fine(void **state)
{
	rig_accept(with_ts);
	twheel_advance(rig.wheel, UINT64_C(25) * 24 * 3600 * NS_PER_SECOND);
	IN(.flags = ACK, .seq = 1, .ack = 1, .data = "x", .opts = {.has_ts = true, .ts_val = 9});
	assert_int_equal(rig.n_got, 1);
}

// TCP-39, RFC 7323 4.3: the timestamp of the segment that the ACK answers, not of a later one.
static void the_echoed_timestamp_is_that_of_the_oldest_unacknowledged_segment(void **state)
{
	rig_accept(with_ts);
	IN(.flags = ACK, .seq = 1, .ack = 1, .data = "a", .opts = {.has_ts = true, .ts_val = 1010});
	IN(.flags = ACK, .seq = 2, .ack = 1, .data = "b", .opts = {.has_ts = true, .ts_val = 1020});
	assert_int_equal(rig_out()->opts.ts_ecr, 1010);
}

// TCP-09
static void an_empty_segment_at_the_right_edge_still_acknowledges(void **state)
{
	rig_accept(PLAIN);
	rig_write("hello");
	rig_skip();
	IN(.flags = ACK, .seq = 1 + 65535, .ack = 6);
	assert_int_equal(rig.n_room, 1);
	assert_int_equal(rig_count(TCP_drop_beyond_window), 0);
}

// TCP-11: Seed 1407 of the simulation: both ACKs were lost, both ends repeated themselves for ever.
static void a_repetition_still_acknowledges(void **state)
{
	rig_accept(PLAIN);
	IN(.flags = ACK, .seq = 1, .ack = 1, .data = "abc");
	rig_write("hello");
	rig_skip();
	IN(.flags = ACK, .seq = 1, .ack = 6, .data = "abc");
	assert_int_equal(rig.n_room, 1);
	assert_int_equal(rig.n_got, 3);
	rig_after_ms(1000);
	assert_int_equal(rig_out()->ack, 4);
	NO_OUT(); // nothing of ours comes again
}

// TCP-11, RFC 5961 5: a blind attacker must guess both numbers.
static void an_ack_in_a_segment_more_than_a_window_old_is_not_taken(void **state)
{
	rig_accept(PLAIN);
	rig_write("hello");
	rig_skip();
	IN(.flags = ACK, .seq = 1u - 65536, .ack = 6, .data = "x");
	assert_int_equal(rig.n_room, 0);
	rig_skip();
	IN(.flags = ACK, .seq = 1u - 65535, .ack = 6, .data = "x");
	assert_int_equal(rig.n_room, 1);
}

static void an_abort_inside_on_data_is_safe(void **state)
{
	rig_accept(PLAIN);
	rig.abort_in_data = true;
	IN(.flags = ACK | FIN, .seq = 1, .ack = 1, .data = "x");
	assert_int_equal(rig_out()->flags, RST | ACK);
	assert_int_equal(tcp_stack_n_conns(rig.stack), 0);
	assert_int_equal(rig.n_closed, 0);
	assert_int_equal(rig.n_eof, 0);
}

// Whether a bare segment of this client's port may be for us.
static bool knows(uint16_t port, uint8_t flags, uint32_t seq, uint32_t ack)
{
	uint8_t segment[20] = {port >> 8, port & 0xff, 0, 80, [12] = 0x50, flags};
	put32(segment + 4, PEER_ISS + seq);
	put32(segment + 8, rig.iss + ack);
	struct tcp_flow flow = {.local = rig.flow.local, .remote = rig.flow.remote};
	return tcp_stack_knows(rig.stack, &flow, segment, sizeof(segment));
}

// FL-38
static void segments_of_connections_and_what_begins_one_are_known(void **state)
{
	uint16_t port = rig.flow.remote_port;
	assert_true(knows(port, SYN, 0, 0));
	assert_true(knows(port, SYN | ACK, 0, 1)); // of a connection of ours, or answered by RST
	assert_false(knows(port, ACK, 1, 1));
	assert_false(knows(port, RST, 1, 0));
	tcp_stack_set_company(rig.stack, LB_FRONT);
	assert_true(knows(port, ACK, 1, 1)); // FL-04: it may be that of another process of ours
	tcp_stack_set_company(rig.stack, LB_ALONE);
	rig_accept(PLAIN);
	assert_true(knows(port, ACK, 1, 1));
	assert_true(knows(port, RST, 77, 0));
	assert_false(knows(port + 1, ACK, 1, 1));
	tcp_conn_shutdown(rig.conn);
	rig_skip();
	IN(.flags = FIN | ACK, .seq = 1, .ack = 2);
	assert_int_equal(tcp_stack_n_conns(rig.stack), 0);
	assert_true(knows(port, FIN | ACK, 1, 2)); // it waits in TIME_WAIT
}

// FL-38
static void the_ack_of_a_cookie_is_known(void **state)
{
	assert_false(knows(rig.flow.remote_port, ACK, 1, 1));
	for (uint16_t port = 1; port <= rig.conf.max_half_open; port++)
		IN(.flags = SYN, .seq = 0, .from = port, .opts = PLAIN);
	rig_skip();
	IN(.flags = SYN, .seq = 0, .opts = PLAIN);
	rig_skip();
	assert_true(knows(rig.flow.remote_port, ACK, 1, 1));
	assert_false(knows(rig.flow.remote_port, ACK, 1, 2));
	assert_false(knows(rig.flow.remote_port, RST | ACK, 1, 1));
	assert_int_equal(rig_count(TCP_cookies_taken), 0);
}

RUN_SUITE("tcp/input", CASE(a_checksum_that_was_never_made_has_a_counter_of_its_own),
	CASE(a_segment_that_somebody_vouches_for_needs_no_checksum),
	CASE(malformed_segments_are_dropped_by_cause),
	CASE(a_segment_from_itself_to_itself_is_dropped),
	CASE(fl_41_who_opens_a_connection_hears_nothing_once_hushed),
	CASE(a_segment_to_nowhere_is_reset_in_kind), CASE(what_is_nobodys_may_be_somebody_elses),
	CASE(only_an_exact_reset_resets),
	CASE(strays_of_one_source_are_answered_1000_times_a_second),
	CASE(strays_of_many_sources_are_all_answered),
	CASE(challenges_come_at_most_once_in_half_a_second),
	CASE(a_syn_in_a_connection_is_challenged),
	CASE(acks_outside_of_the_acceptable_range_carry_no_data_in),
	CASE(a_segment_without_ack_is_dropped),
	CASE(segments_outside_of_the_window_are_acknowledged_and_dropped),
	CASE(a_segment_that_overlaps_what_was_received_gives_its_new_part),
	CASE(a_keepalive_of_the_peer_is_answered),
	CASE(once_agreed_a_segment_without_timestamp_is_dropped),
	CASE(an_old_timestamp_is_dropped_and_acknowledged),
	CASE(of_a_bare_ack_that_was_overtaken_the_blocks_count),
	CASE(paws_drops_what_was_not_merely_overtaken),
	CASE(after_24_days_of_silence_any_timestamp_is_fine),
	CASE(the_echoed_timestamp_is_that_of_the_oldest_unacknowledged_segment),
	CASE(an_empty_segment_at_the_right_edge_still_acknowledges),
	CASE(a_repetition_still_acknowledges),
	CASE(an_ack_in_a_segment_more_than_a_window_old_is_not_taken),
	CASE(an_abort_inside_on_data_is_safe),
	CASE(segments_of_connections_and_what_begins_one_are_known),
	CASE(the_ack_of_a_cookie_is_known))
