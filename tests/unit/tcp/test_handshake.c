// SPDX-License-Identifier: Apache-2.0
#include "lb/base/time.h"
#include "tests/unit/tcp/rig.h"

static const struct tcp_conn_ops no_ops;

static struct tcp_flow flow_to(uint16_t local_port, uint16_t remote_port)
{
	return (struct tcp_flow){rig.flow.local, rig.flow.remote, local_port, remote_port};
}

// TCP-22, RFC 9293 3.5, figure 6.
static void an_active_open_takes_three_segments(void **state)
{
	rig_begin_connect(NS_PER_SECOND);
	IN(.flags = SYN | ACK, .seq = 0, .ack = 1, .opts = PLAIN);
	assert_int_equal(rig.n_established, 1);
	struct out *o = rig_out();
	assert_int_equal(o->flags, ACK);
	assert_int_equal(o->seq, 1);
	assert_int_equal(o->ack, 1);
	NO_OUT();
	assert_int_equal(rig_count(TCP_opened), 1);
	assert_int_equal(tcp_stack_n_conns(rig.stack), 1);
}

// TCP-22, TCP-33
static void our_syn_offers_mss_scale_and_timestamps(void **state)
{
	rig.conf.recv_window = 1 << 20;
	rig_restart();
	struct tcp_flow flow = flow_to(0, 443);
	assert_non_null(tcp_connect(rig.stack, &flow, NS_PER_SECOND, &no_ops, NULL));
	struct out *o = rig_out();
	assert_int_equal(o->flags, SYN);
	assert_int_equal(o->opts.mss, 1460);
	assert_int_equal(o->wnd, 65535); // never scaled in a SYN (RFC 7323 2.2)
	assert_true(o->opts.has_wscale);
	assert_int_equal(o->opts.wscale, 5);
	assert_true(o->opts.has_ts);
}

// TCP-22
static void the_ack_of_a_syn_ack_carries_what_was_queued(void **state)
{
	rig_begin_connect(NS_PER_SECOND);
	rig_write("hello");
	NO_OUT();
	IN(.flags = SYN | ACK, .seq = 0, .ack = 1, .opts = PLAIN);
	struct out *o = rig_out();
	assert_int_equal(o->flags, ACK | PSH);
	assert_string_equal((char *)o->data, "hello");
	NO_OUT();
}

static void a_passive_open_is_accepted_with_the_third_segment(void **state)
{
	IN(.flags = SYN, .seq = 0, .opts = PLAIN);
	struct out *o = rig_out();
	assert_int_equal(o->flags, SYN | ACK);
	assert_int_equal(o->ack, 1);
	assert_false(o->opts.has_ts); // only what they offered
	assert_false(o->opts.has_wscale);
	assert_null(rig.conn);
	IN(.flags = ACK, .seq = 1, .ack = 1);
	assert_non_null(rig.conn);
	assert_int_equal(rig_count(TCP_accepted), 1);
	assert_int_equal(rig.n_established, 0); // accept says it
	NO_OUT();
}

static void data_on_the_third_segment_is_delivered(void **state)
{
	IN(.flags = SYN, .seq = 0, .opts = PLAIN);
	rig_skip();
	IN(.flags = ACK, .seq = 1, .ack = 1, .data = "GET");
	assert_int_equal(rig.n_got, 3);
}

// TCP-26, RFC 6298: 1 s, then twice as long each time.
static void an_unanswered_syn_comes_again_after_1_3_7_seconds(void **state)
{
	struct tcp_flow flow = flow_to(0, 443);
	assert_non_null(tcp_connect(rig.stack, &flow, 10 * NS_PER_SECOND, &no_ops, NULL));
	rig_at_ms(9000);
	static const unsigned at[] = {0, 1000, 3000, 7000};
	for (unsigned i = 0; i < 4; i++) {
		struct out *o = rig_out();
		assert_int_equal(o->flags, SYN);
		assert_int_equal(o->seq, 0);
		assert_int_equal(rig_ms(o), at[i]);
	}
	NO_OUT();
}

// TCP-26
static void a_connect_timeout_is_reported_on_time(void **state)
{
	rig_begin_connect(2500 * NS_PER_MS);
	rig_at_ms(2499);
	assert_int_equal(rig.n_closed, 0);
	rig_at_ms(2500);
	assert_int_equal(rig.n_closed, 1);
	assert_int_equal(rig.reason, TCP_CLOSE_CONNECT_TIMEOUT);
	assert_int_equal(tcp_stack_n_conns(rig.stack), 0);
}

static void the_reset_of_a_syn_means_refused(void **state)
{
	rig_begin_connect(NS_PER_SECOND);
	IN(.flags = RST | ACK, .seq = 0, .ack = 1);
	assert_int_equal(rig.n_closed, 1);
	assert_int_equal(rig.reason, TCP_CLOSE_REFUSED);
	NO_OUT();
}

// NET-28, RFC 5927: ICMP errors are hints, and only believed before the connection exists.
static void unreachable_ends_only_a_connection_that_is_not_open_yet(void **state)
{
	rig_begin_connect(NS_PER_SECOND);
	tcp_stack_unreachable(rig.stack, &rig.flow, rig.iss);
	assert_int_equal(rig.n_closed, 1);
	assert_int_equal(rig.reason, TCP_CLOSE_UNREACHABLE);
	rig_connect(PLAIN);
	tcp_stack_unreachable(rig.stack, &rig.flow, rig.iss);
	assert_int_equal(rig.n_closed, 1);
}

// NET-45, TH-42, RFC 5927 4.1: addresses and ports can be guessed.
static void unreachable_must_quote_our_syns_number(void **state)
{
	rig_begin_connect(NS_PER_SECOND);
	const uint32_t others[] = {1, (uint32_t)-1, 1u << 31, -rig.iss};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		tcp_stack_unreachable(rig.stack, &rig.flow, rig.iss + others[i]);
	assert_int_equal(rig.n_closed, 0);
}

// TCP-24, RFC 9293 3.10.7.3: only an acceptable ACK makes a RST in SYN_SENT valid.
static void a_reset_without_our_sequence_number_is_ignored(void **state)
{
	struct tcp_flow flow = flow_to(0, 443);
	struct tcp_conn *c = tcp_connect(rig.stack, &flow, NS_PER_SECOND, &no_ops, NULL);
	rig.flow = *tcp_conn_flow(c);
	rig_skip();
	IN(.flags = RST, .seq = 0);
	IN(.flags = RST | ACK, .seq = 0, .ack = 2);
	assert_int_equal(tcp_stack_n_conns(rig.stack), 1);
	assert_int_equal(rig_count(TCP_drop_syn_sent), 2);
	NO_OUT();
}

// TCP-24
static void a_wrong_ack_of_our_syn_is_answered_by_reset(void **state)
{
	struct tcp_flow flow = flow_to(0, 443);
	struct tcp_conn *c = tcp_connect(rig.stack, &flow, NS_PER_SECOND, &no_ops, NULL);
	rig.flow = *tcp_conn_flow(c);
	rig_skip();
	IN(.flags = SYN | ACK, .seq = 0, .ack = 77);
	struct out *o = rig_out();
	assert_int_equal(o->flags, RST);
	assert_int_equal(o->seq, 77);
	assert_int_equal(tcp_stack_n_conns(rig.stack), 1);
}

// TCP-23, RFC 9293 3.5, figure 7.
static void both_sides_may_open_at_once(void **state)
{
	rig_begin_connect(NS_PER_SECOND);
	IN(.flags = SYN, .seq = 0, .opts = PLAIN);
	struct out *o = rig_out();
	assert_int_equal(o->flags, SYN | ACK);
	assert_int_equal(o->seq, 0);
	assert_int_equal(o->ack, 1);
	// Their SYN-ACK is a repetition; the plain ACKs that answer both complete it.
	IN(.flags = SYN | ACK, .seq = 0, .ack = 1);
	o = rig_out();
	assert_int_equal(o->flags, ACK);
	assert_int_equal(o->seq, 1);
	assert_int_equal(o->ack, 1);
	assert_int_equal(rig.n_established, 0);
	IN(.flags = ACK, .seq = 1, .ack = 1);
	assert_int_equal(rig.n_established, 1);
}

// TCP-27
static void a_repeated_syn_gets_the_same_syn_ack(void **state)
{
	IN(.flags = SYN, .seq = 0, .opts = PLAIN);
	struct out first = *rig_out();
	uint32_t iss = rig.iss;
	IN(.flags = SYN, .seq = 0, .opts = PLAIN);
	struct out *o = rig_out();
	assert_int_equal(o->flags, SYN | ACK);
	assert_int_equal(rig.iss, iss);
	assert_int_equal(o->ack, first.ack);
	assert_int_equal(tcp_stack_n_conns(rig.stack), 1);
}

// TCP-28
static void a_syn_ack_comes_again_until_patience_ends(void **state)
{
	IN(.flags = SYN, .seq = 0, .opts = PLAIN);
	rig_at_ms(16000);
	static const unsigned at[] = {0, 1000, 3000, 7000};
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(rig_ms(rig_out()), at[i]);
	NO_OUT();
	assert_int_equal(rig_count(TCP_half_open_expired), 1);
	assert_int_equal(tcp_stack_n_conns(rig.stack), 0);
	assert_int_equal(rig.stack->n_half_open, 0);
}

// TCP-27
static void a_wrong_third_segment_is_answered_by_reset(void **state)
{
	IN(.flags = SYN, .seq = 0, .opts = PLAIN);
	rig_skip();
	IN(.flags = ACK, .seq = 1, .ack = 9);
	struct out *o = rig_out();
	assert_int_equal(o->flags, RST);
	assert_int_equal(o->seq, 9);
	assert_null(rig.conn);
	IN(.flags = ACK, .seq = 1, .ack = 1);
	assert_non_null(rig.conn);
}

static void a_reset_ends_a_half_open_connection(void **state)
{
	IN(.flags = SYN, .seq = 0, .opts = PLAIN);
	rig_skip();
	IN(.flags = RST, .seq = 1);
	assert_int_equal(tcp_stack_n_conns(rig.stack), 0);
	assert_int_equal(rig.stack->n_half_open, 0);
}

static void a_refused_accept_resets(void **state)
{
	rig.refuse = true;
	IN(.flags = SYN, .seq = 0, .opts = PLAIN);
	rig_skip();
	IN(.flags = ACK, .seq = 1, .ack = 1, .data = "lost");
	struct out *o = rig_out();
	assert_int_equal(o->flags, RST | ACK);
	assert_int_equal(o->seq, 1);
	assert_int_equal(tcp_stack_n_conns(rig.stack), 0);
	assert_int_equal(rig_count(TCP_accept_refused), 1);
}

static void after_unlisten_new_connections_are_reset_and_old_ones_stay(void **state)
{
	rig_accept(PLAIN);
	IN(.flags = SYN, .seq = 0, .from = 2, .opts = PLAIN);
	rig_skip();
	tcp_unlisten(rig.stack, &rig.flow.local, 80);
	IN(.flags = SYN, .seq = 0, .from = 3, .opts = PLAIN);
	struct out *o = rig_out();
	assert_int_equal(o->flags, RST | ACK);
	assert_int_equal(o->ack, 1);
	IN(.flags = ACK, .seq = 1, .ack = 1, .from = 2); // half open at that time
	assert_int_equal(rig_out()->flags, RST | ACK);
	assert_int_equal(tcp_stack_n_conns(rig.stack), 1);
	assert_int_equal(tcp_listen(rig.stack, &rig.flow.local, 80, NULL, NULL), 0);
}

// TH-33, TCP-29
static void half_open_connections_are_capped(void **state)
{
	for (uint16_t port = 1; port <= 6; port++)
		IN(.flags = SYN, .seq = 0, .from = port, .opts = PLAIN);
	rig_skip();
	assert_int_equal(rig.stack->n_half_open, 4);
	assert_int_equal(tcp_stack_n_conns(rig.stack), 4);
	assert_int_equal(rig_count(TCP_cookies_out), 2);
}

// TH-82
static void half_open_connections_leave_what_is_not_for_peers(void **state)
{
	rig.conf.max_passive = 12;
	rig.conf.max_half_open = 8;
	rig_restart();
	for (uint16_t port = 100; port < 108; port++) { // accepted
		IN(.flags = SYN, .seq = 0, .from = port, .opts = PLAIN);
		rig_skip();
		IN(.flags = ACK, .seq = 1, .ack = 1, .from = port);
	}
	assert_int_equal(rig_count(TCP_accepted), 8);
	for (uint16_t port = 200; port < 300; port++)
		IN(.flags = SYN, .seq = 0, .from = port, .opts = PLAIN);
	rig_skip();
	assert_int_equal(tcp_stack_n_conns(rig.stack), 12);
	assert_int_equal(rig.stack->n_half_open, 4);
	assert_int_equal(rig_count(TCP_cookies_out), 96);
	struct tcp_flow flow = {.local = ip_from_v4(0x0a000001), .remote_port = 80};
	for (uint32_t i = 0; i < 4; i++) {
		flow.remote = ip_from_v4(0x0a000100 + i);
		assert_non_null(tcp_connect(rig.stack, &flow, NS_PER_SECOND, &no_ops, NULL));
	}
	assert_null(tcp_connect(rig.stack, &flow, NS_PER_SECOND, &no_ops, NULL));
}

static void flood(void)
{
	for (uint16_t port = 1; port <= 4; port++)
		IN(.flags = SYN, .seq = 0, .from = port, .opts = PLAIN);
	rig_skip();
}

// The largest segment to a peer whose SYN had these options and was answered with a cookie.
static size_t len_after_cookie(struct tcp_opts syn)
{
	flood();
	IN(.flags = SYN, .seq = 0, .opts = syn);
	assert_int_equal(rig_out()->flags, SYN | ACK);
	uint32_t iss = rig.iss;
	rig_after_ms(100000); // the flood's half-open connections end
	rig_skip();
	rig.iss = iss;
	IN(.flags = ACK, .seq = 1, .ack = 1);
	assert_int_equal(rig_count(TCP_cookies_taken), 1);
	rig_write_n(2000);
	return rig_out()->len;
}

// TCP-32
static void a_cookie_remembers_a_small_mss(void **state)
{
	assert_int_equal(len_after_cookie((struct tcp_opts){.has_mss = true, .mss = 88}), 64);
}

// TCP-32
static void a_cookie_remembers_that_there_was_no_mss(void **state)
{
	assert_int_equal(len_after_cookie((struct tcp_opts){0}), 536);
	rig_use_ipv6();
	assert_int_equal(len_after_cookie((struct tcp_opts){0}), 1220);
}

// TH-33, TCP-29, RFC 4987 3.6.
static void in_a_flood_the_ack_of_a_cookie_opens_the_connection(void **state)
{
	flood();
	IN(.flags = SYN, .seq = 0,
		.opts = {.has_mss = true,
			.mss = 1450,
			.has_wscale = true,
			.wscale = 7,
			.sack_ok = true});
	struct out *o = rig_out();
	assert_int_equal(o->flags, SYN | ACK);
	assert_int_equal(o->ack, 1);
	assert_int_equal(o->opts.mss, 1460);
	assert_false(o->opts.has_ts || o->opts.sack_ok || o->opts.has_wscale);
	assert_int_equal(tcp_stack_n_conns(rig.stack), 4); // nothing is kept of it
	uint32_t iss = rig.iss;
	rig_after_ms(100000); // the flood's half-open connections end, the cookie is still good
	rig_skip();
	rig.iss = iss; // not that of a SYN-ACK to the flood
	IN(.flags = ACK, .seq = 1, .ack = 1, .data = "GET");
	assert_non_null(rig.conn);
	assert_int_equal(rig.n_got, 3);
	assert_int_equal(rig_count(TCP_cookies_taken), 1);
	assert_int_equal(rig.stack->n_half_open, 0);
	rig_write_n(2000);
	o = rig_out();
	assert_int_equal(o->len, 1440); // the largest known size below the offer
	assert_int_equal(o->seq, 1);
	assert_int_equal(o->ack, 4);
}

// TCP-170: the options of a SYN that was answered with a cookie, in the timestamp that comes back.
static void a_cookies_timestamp_remembers_scale_and_sack(void **state)
{
	static const struct tcp_opts syns[] = {
		{.has_mss = true, .mss = MSS, .has_ts = true, .ts_val = 5},
		{.has_ts = true, .ts_val = 5, .has_wscale = true},
		{.has_ts = true, .ts_val = 5, .has_wscale = true, .wscale = 7, .sack_ok = true},
		{.has_ts = true, .ts_val = 5, .has_wscale = true, .wscale = 14},
		{.has_ts = true, .ts_val = 5, .sack_ok = true}};
	for (uint64_t ms = 0; ms < 200; ms++) {
		const struct tcp_opts *syn = &syns[ms % 5];
		rig_restart();
		rig_after_ms(ms);
		flood();
		IN(.flags = SYN, .seq = 0, .opts = *syn);
		struct out *o = rig_out();
		struct tcp_opts got = o->opts;
		assert_true(got.has_ts && got.ts_ecr == 5);
		assert_int_equal(got.sack_ok, syn->sack_ok);
		assert_int_equal(got.has_wscale, syn->has_wscale);
		uint32_t iss = rig.iss;
		rig_after_ms(15000); // the flood's half-open connections end
		rig_skip();
		rig.iss = iss;
		IN(.flags = ACK, .seq = 1, .ack = 1, .wnd = 1000,
			.opts = {.has_ts = true, .ts_val = 6, .ts_ecr = got.ts_val});
		assert_non_null(rig.conn);
		assert_true(rig.conn->ts_on);
		assert_int_equal(rig.conn->sack_on, syn->sack_ok);
		assert_int_equal(rig.conn->wscale_on, syn->has_wscale);
		assert_int_equal(rig.conn->snd_wnd, 1000u << syn->wscale);
		rig_write("a");
		o = rig_out();
		assert_true(seq_lt(got.ts_val, o->opts.ts_val)); // or PAWS would drop it
		assert_int_equal(o->opts.ts_ecr, 6);
		rig_skip();
	}
}

// TCP-170: who made it up, or none at all, goes without.
static void a_timestamp_that_cannot_be_a_cookies_tells_nothing(void **state)
{
	for (unsigned i = 0; i < 3; i++) {
		rig_restart();
		flood();
		IN(.flags = SYN, .seq = 0, .opts = {.has_ts = true, .ts_val = 5, .sack_ok = true});
		uint32_t ts = rig_out()->opts.ts_val, iss = rig.iss;
		rig_after_ms(15000);
		rig_skip();
		rig.iss = iss;
		IN(.flags = ACK, .seq = 1, .ack = 1,
			.opts = {.has_ts = i < 2,
				.ts_val = 6,
				.ts_ecr = i ? ts - 130000 : ts + 20000});
		assert_non_null(rig.conn);
		assert_false(rig.conn->ts_on || rig.conn->sack_on || rig.conn->wscale_on);
		rig_skip();
	}
}

// TCP-29
static void a_forged_or_stale_cookie_is_reset(void **state)
{
	flood();
	IN(.flags = SYN, .seq = 0, .opts = PLAIN);
	rig_skip();
	for (uint32_t bit = 0; bit < 32; bit++) {
		IN(.flags = ACK, .seq = 1, .ack = 1 ^ UINT32_C(1) << bit);
		assert_int_equal(rig_out()->flags, RST);
	}
	IN(.flags = ACK, .seq = 2, .ack = 1); // another number of theirs
	assert_int_equal(rig_out()->flags, RST);
	IN(.flags = ACK, .seq = 1, .ack = 1, .from = 40001); // another flow
	assert_int_equal(rig_out()->flags, RST);
	uint32_t iss = rig.iss;
	rig_after_ms(100000);
	flood(); // goes on, so that cookies are still believed
	IN(.flags = SYN, .seq = 0, .from = 9, .opts = PLAIN);
	rig_after_ms(28000);
	rig_skip();
	rig.iss = iss;
	IN(.flags = ACK, .seq = 1, .ack = 1);
	assert_int_equal(rig_out()->flags, RST);
	assert_null(rig.conn);
	assert_int_equal(rig_count(TCP_cookies_taken), 0);
}

// TCP-30
static void without_a_flood_no_ack_is_taken_for_a_cookie(void **state)
{
	flood();
	IN(.flags = SYN, .seq = 0, .opts = PLAIN);
	struct out good = *rig_out();
	uint32_t iss = rig.iss;
	rig_restart(); // same secret, same time, no flood seen
	rig.iss = iss;
	IN(.flags = ACK, .seq = 1, .ack = good.seq + 1);
	assert_int_equal(rig_out()->flags, RST);
	assert_null(rig.conn);
}

// TCP-31
static void connections_are_capped(void **state)
{
	rig.conf.max_half_open = 100;
	rig_restart();
	for (uint16_t port = 1; port <= 20; port++)
		IN(.flags = SYN, .seq = 0, .from = port, .opts = PLAIN);
	assert_int_equal(tcp_stack_n_conns(rig.stack), 16);
	assert_int_equal(rig_count(TCP_drop_conns_full), 4);
	struct tcp_flow flow = flow_to(0, 443);
	assert_null(tcp_connect(rig.stack, &flow, NS_PER_SECOND, &no_ops, NULL));
}

static void one_address_and_port_has_one_listener(void **state)
{
	assert_int_equal(tcp_listen(rig.stack, &rig.flow.local, 80, NULL, NULL), -98);
	for (uint16_t port = 1000; port < 1000 + TCP_MAX_LISTENERS - 1; port++)
		assert_int_equal(tcp_listen(rig.stack, &rig.flow.local, port, NULL, NULL), 0);
	assert_int_equal(tcp_listen(rig.stack, &rig.flow.local, 1, NULL, NULL), -12);
	tcp_unlisten(rig.stack, &rig.flow.local, 2000);
	assert_int_equal(tcp_listen(rig.stack, &rig.flow.local, 1, NULL, NULL), 0);
	assert_int_equal(tcp_listen(rig.stack, &rig.flow.local, 2, NULL, NULL), -12);
	assert_null(tcp_listener_find(rig.stack, &rig.flow.local, 2000));
	for (uint16_t port = 1000; port < 1000 + TCP_MAX_LISTENERS - 1; port++)
		if (port != 2000)
			assert_int_equal(
				tcp_listener_find(rig.stack, &rig.flow.local, port)->port, port);
}

// What a SYN costs does not grow with the number of listeners: ports in a row, and addresses.
static void listeners_are_spread_over_their_buckets(void **state)
{
	for (uint32_t i = 1; i < TCP_MAX_LISTENERS; i++) {
		struct ip_addr ip = ip_from_v4(0x0a510000 + i % 16);
		uint16_t port = (uint16_t)(1000 + i / 16);
		assert_int_equal(tcp_listen(rig.stack, &ip, port, NULL, NULL), 0);
	}
	unsigned longest = 0;
	for (unsigned b = 0; b < TCP_LISTENER_BUCKETS; b++) {
		unsigned len = 0;
		for (struct tcp_listener *l = rig.stack->listener_buckets[b]; l; l = l->next)
			len++;
		longest = len > longest ? len : longest;
	}
	assert_in_range(longest, 1, 8);
}

// TCP-32
static void an_offered_mss_below_536_is_honoured_and_counted(void **state)
{
	rig_accept((struct tcp_opts){.has_mss = true, .mss = 88});
	assert_int_equal(rig_count(TCP_small_mss), 1);
	rig_write_n(1000);
	assert_int_equal(rig_out()->len, 88);
}

// TH-39, TCP-32, CVE-2019-11479.
static void an_offered_mss_below_64_counts_as_64(void **state)
{
	rig_accept((struct tcp_opts){.has_mss = true, .mss = 8});
	assert_int_equal(rig_count(TCP_small_mss), 1);
	rig_write_n(1000);
	assert_int_equal(rig_out()->len, 64);
}

// TCP-32, TCP-33
static void of_the_least_mss_options_leave_52_bytes(void **state)
{
	rig_accept((struct tcp_opts){.has_mss = true, .mss = 0, .has_ts = true, .ts_val = 1});
	rig_write_n(1000);
	assert_int_equal(rig_out()->len, 52);
}

// TCP-32, RFC 9293 3.7.1: 536 without the option.
static void without_an_mss_option_segments_carry_536(void **state)
{
	rig_accept((struct tcp_opts){0});
	assert_int_equal(rig_count(TCP_small_mss), 0);
	rig_write_n(1000);
	assert_int_equal(rig_out()->len, 536);
}

// TCP-32, RFC 9293 3.7.1: MUST-15.
static void without_an_mss_option_segments_of_ipv6_carry_1220(void **state)
{
	rig_use_ipv6();
	rig_accept((struct tcp_opts){0});
	assert_int_equal(rig_count(TCP_small_mss), 0);
	rig_write_n(2000);
	assert_int_equal(rig_out()->len, 1220);
}

// TCP-32, TCP-33: whoever opens the connection.
static void a_syn_ack_of_ipv6_without_an_mss_option_means_1220_too(void **state)
{
	rig.mtu = 1280;
	rig_use_ipv6();
	rig_connect((struct tcp_opts){.has_ts = true, .ts_val = 1});
	rig_write_n(2000);
	assert_int_equal(rig_out()->len, 1208);
}

// TCP-32
static void the_mtu_bounds_the_peers_mss(void **state)
{
	rig_accept((struct tcp_opts){.has_mss = true, .mss = 8960});
	rig_write_n(3000);
	assert_int_equal(rig_out()->len, 1460);
}

// TCP-35, RFC 7323 2.2: the window of a SYN is not scaled, all later ones are.
static void the_peers_window_scale_applies_after_the_syn(void **state)
{
	rig_accept(
		(struct tcp_opts){.has_mss = true, .mss = 1000, .has_wscale = true, .wscale = 14});
	assert_int_equal(rig.conn->snd_wscale, 14);
	IN(.flags = ACK, .seq = 1, .ack = 1, .wnd = 2);
	assert_int_equal(rig.conn->snd_wnd, 2 << 14);
}

// TH-35, TCP-17, TCP-18, RFC 6528: the same address pair gets growing numbers, others unrelated
// ones.
static void sequence_numbers_are_keyed_and_grow_with_time(void **state)
{
	struct tcp_flow a = flow_to(1, 2), b = flow_to(1, 3);
	struct tcp_start a0 = tcp_start_of(rig.stack, &a), b0 = tcp_start_of(rig.stack, &b);
	rig_at_ms(1000);
	struct tcp_start a1 = tcp_start_of(rig.stack, &a), b1 = tcp_start_of(rig.stack, &b);
	assert_int_equal(a1.isn - a0.isn, 250000);
	assert_int_equal(b1.isn - b0.isn, 250000);
	assert_true(a0.isn - b0.isn > 1000 && b0.isn - a0.isn > 1000);
	// RFC 7323 5.4: the clock's offset is a flow's own, and stays, so that PAWS and RFC 6191
	// may compare timestamps of its successive connections.
	assert_int_equal(a1.ts_offset, a0.ts_offset);
	assert_int_not_equal(a0.ts_offset, b0.ts_offset);
	assert_int_not_equal(a0.ts_offset, a0.isn);
	rig.conf.secret[0]++;
	rig_restart();
	rig_at_ms(1000);
	struct tcp_start other = tcp_start_of(rig.stack, &a);
	assert_int_not_equal(other.isn, a1.isn);
	assert_int_not_equal(other.ts_offset, a1.ts_offset);
}

// TCP-19, RFC 6056 3.3.3.
static void picked_ports_differ_and_are_ephemeral(void **state)
{
	uint16_t last = 0;
	for (unsigned i = 0; i < 10; i++) {
		struct tcp_flow flow = flow_to(0, 443);
		struct tcp_conn *c = tcp_connect(rig.stack, &flow, NS_PER_SECOND, &no_ops, NULL);
		uint16_t port = tcp_conn_flow(c)->local_port;
		assert_true(port >= 32768 && port < 61000);
		assert_int_not_equal(port, last);
		last = port;
	}
}

// Every 61st port is ours, as among 61 workers.
static bool is_ours(void *ctx, const struct tcp_flow *flow)
{
	unsigned *n_asked = ctx;
	++*n_asked;
	return flow->local_port % 61 == 7;
}

// TH-46, TCP-19
static void ports_are_picked_among_ours_until_none_is_left(void **state)
{
	unsigned n_asked = 0, n = 0;
	rig.conf.is_ours = is_ours;
	rig.conf.is_ours_ctx = &n_asked;
	rig.conf.max_conns = 1000;
	rig_restart();
	for (;; n++) {
		struct tcp_flow flow = flow_to(0, 443);
		struct tcp_conn *c = tcp_connect(rig.stack, &flow, NS_PER_SECOND, &no_ops, NULL);
		if (!c)
			break;
		assert_int_equal(tcp_conn_flow(c)->local_port % 61, 7);
		if (n < 10)
			assert_in_range(n_asked, 1, 61 * (n + 1));
	}
	assert_int_equal(n, 462); // of 28232
	for (int i = 0; i < 4; i++) {
		struct tcp_flow flow = flow_to(0, 443);
		n_asked = 0;
		assert_null(tcp_connect(rig.stack, &flow, NS_PER_SECOND, &no_ops, NULL));
		assert_in_range(n_asked, 1, 10000);
	}
	struct tcp_flow other = flow_to(0, 444);
	assert_non_null(tcp_connect(rig.stack, &other, NS_PER_SECOND, &no_ops, NULL));
}

// TCP-20
static void a_port_in_use_is_not_given_twice(void **state)
{
	struct tcp_flow flow = flow_to(1234, 443);
	assert_non_null(tcp_connect(rig.stack, &flow, NS_PER_SECOND, &no_ops, NULL));
	assert_null(tcp_connect(rig.stack, &flow, NS_PER_SECOND, &no_ops, NULL));
	flow.remote_port = 444;
	assert_non_null(tcp_connect(rig.stack, &flow, NS_PER_SECOND, &no_ops, NULL));
}

RUN_SUITE("tcp/handshake", CASE(an_active_open_takes_three_segments),
	CASE(our_syn_offers_mss_scale_and_timestamps),
	CASE(the_ack_of_a_syn_ack_carries_what_was_queued),
	CASE(a_passive_open_is_accepted_with_the_third_segment),
	CASE(data_on_the_third_segment_is_delivered),
	CASE(an_unanswered_syn_comes_again_after_1_3_7_seconds),
	CASE(a_connect_timeout_is_reported_on_time), CASE(the_reset_of_a_syn_means_refused),
	CASE(unreachable_ends_only_a_connection_that_is_not_open_yet),
	CASE(unreachable_must_quote_our_syns_number),
	CASE(a_reset_without_our_sequence_number_is_ignored),
	CASE(a_wrong_ack_of_our_syn_is_answered_by_reset), CASE(both_sides_may_open_at_once),
	CASE(a_repeated_syn_gets_the_same_syn_ack), CASE(a_syn_ack_comes_again_until_patience_ends),
	CASE(a_wrong_third_segment_is_answered_by_reset), CASE(a_reset_ends_a_half_open_connection),
	CASE(a_refused_accept_resets),
	CASE(after_unlisten_new_connections_are_reset_and_old_ones_stay),
	CASE(half_open_connections_are_capped),
	CASE(half_open_connections_leave_what_is_not_for_peers),
	CASE(a_cookie_remembers_a_small_mss), CASE(a_cookie_remembers_that_there_was_no_mss),
	CASE(in_a_flood_the_ack_of_a_cookie_opens_the_connection),
	CASE(a_cookies_timestamp_remembers_scale_and_sack),
	CASE(a_timestamp_that_cannot_be_a_cookies_tells_nothing),
	CASE(a_forged_or_stale_cookie_is_reset), CASE(without_a_flood_no_ack_is_taken_for_a_cookie),
	CASE(connections_are_capped), CASE(one_address_and_port_has_one_listener),
	CASE(listeners_are_spread_over_their_buckets),
	CASE(an_offered_mss_below_536_is_honoured_and_counted),
	CASE(an_offered_mss_below_64_counts_as_64), CASE(of_the_least_mss_options_leave_52_bytes),
	CASE(without_an_mss_option_segments_carry_536),
	CASE(without_an_mss_option_segments_of_ipv6_carry_1220),
	CASE(a_syn_ack_of_ipv6_without_an_mss_option_means_1220_too),
	CASE(the_mtu_bounds_the_peers_mss), CASE(the_peers_window_scale_applies_after_the_syn),
	CASE(sequence_numbers_are_keyed_and_grow_with_time),
	CASE(picked_ports_differ_and_are_ephemeral),
	CASE(ports_are_picked_among_ours_until_none_is_left),
	CASE(a_port_in_use_is_not_given_twice))
