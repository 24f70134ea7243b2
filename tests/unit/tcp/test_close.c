// SPDX-License-Identifier: Apache-2.0
#include "dataplane/tcp/timewait.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"
#include "tests/unit/tcp/rig.h"

static void expect_closed(enum tcp_close_reason reason, unsigned n_time_wait)
{
	assert_int_equal(rig.n_closed, 1);
	assert_int_equal(rig.reason, reason);
	assert_int_equal(tcp_stack_n_conns(rig.stack), 0);
	assert_int_equal(rig.stack->tws.n_used, n_time_wait);
}

// TCP-88, TCP-92, RFC 9293 3.6, figure 12.
static void we_close_first(void **state)
{
	rig_accept(PLAIN);
	tcp_conn_shutdown(rig.conn);
	struct out *o = rig_out();
	assert_int_equal(o->flags, ACK | FIN);
	assert_int_equal(o->seq, 1);
	IN(.flags = ACK, .seq = 1, .ack = 2);
	assert_int_equal(rig.n_closed, 0);
	IN(.flags = ACK | FIN, .seq = 1, .ack = 2);
	assert_int_equal(rig.n_eof, 1);
	o = rig_out();
	assert_int_equal(o->flags, ACK);
	assert_int_equal(o->seq, 2);
	assert_int_equal(o->ack, 2);
	expect_closed(TCP_CLOSE_DONE, 1);
	rig_after_ms(59999);
	assert_int_equal(rig.stack->tws.n_used, 1);
	rig_after_ms(2);
	assert_int_equal(rig.stack->tws.n_used, 0);
}

static void they_close_first(void **state)
{
	rig_accept(PLAIN);
	IN(.flags = ACK | FIN, .seq = 1, .ack = 1);
	assert_int_equal(rig.n_eof, 1);
	assert_int_equal(rig_out()->ack, 2);
	rig_write("still talking");
	assert_int_equal(rig_out()->len, 13);
	IN(.flags = ACK, .seq = 2, .ack = 14);
	tcp_conn_shutdown(rig.conn);
	assert_int_equal(rig_out()->flags, ACK | FIN);
	IN(.flags = ACK, .seq = 2, .ack = 15);
	expect_closed(TCP_CLOSE_DONE, 0); // they wait, not we
	NO_OUT();
}

static void both_close_in_one_turn(void **state)
{
	rig_accept(PLAIN);
	rig.shutdown_in_eof = true;
	IN(.flags = ACK | FIN, .seq = 1, .ack = 1);
	struct out *o = rig_out();
	assert_int_equal(o->flags, ACK | FIN);
	assert_int_equal(o->ack, 2);
	NO_OUT();
	IN(.flags = ACK, .seq = 2, .ack = 2);
	expect_closed(TCP_CLOSE_DONE, 0);
}

// TCP-89, RFC 9293 3.6, figure 13.
static void both_close_at_once(void **state)
{
	rig_accept(PLAIN);
	tcp_conn_shutdown(rig.conn);
	rig_skip();
	IN(.flags = ACK | FIN, .seq = 1, .ack = 1); // has not seen ours
	assert_int_equal(rig_out()->ack, 2);
	assert_int_equal(rig.n_closed, 0);
	IN(.flags = ACK, .seq = 2, .ack = 2);
	expect_closed(TCP_CLOSE_DONE, 1);
}

// TCP-89
static void fin_and_its_ack_may_come_together(void **state)
{
	rig_accept(PLAIN);
	tcp_conn_shutdown(rig.conn);
	rig_skip();
	IN(.flags = ACK | FIN, .seq = 1, .ack = 2, .data = "bye");
	assert_int_equal(rig.n_got, 3);
	assert_int_equal(rig_out()->ack, 5);
	expect_closed(TCP_CLOSE_DONE, 1);
}

// TCP-88, TCP-96
static void receiving_goes_on_after_our_fin(void **state)
{
	rig_accept(PLAIN);
	tcp_conn_shutdown(rig.conn);
	rig_skip();
	IN(.flags = ACK, .seq = 1, .ack = 2, .data = "later");
	rig_after_ms(10000);
	IN(.flags = ACK, .seq = 6, .ack = 2, .data = "and later");
	assert_int_equal(rig.n_got, 14);
	assert_int_equal(rig.n_closed, 0);
	rig_skip();
}

// TCP-88
static void a_lost_fin_is_sent_again_with_its_data(void **state)
{
	rig_accept(PLAIN);
	rig_write("last words");
	tcp_conn_shutdown(rig.conn);
	rig_skip();
	rig_after_ms(200);
	struct out *o = rig_out();
	assert_int_equal(o->flags, ACK | FIN | PSH);
	assert_int_equal(o->len, 10);
	IN(.flags = ACK, .seq = 1, .ack = 11); // all but the FIN
	rig_after_ms(200);
	o = rig_out();
	assert_int_equal(o->flags, ACK | FIN);
	assert_int_equal(o->seq, 11);
	assert_int_equal(o->len, 0);
}

// TCP-88
static void fin_waits_for_the_queue(void **state)
{
	rig_accept(PLAIN);
	rig_write_n(11 * MSS);
	tcp_conn_shutdown(rig.conn);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(rig_out()->flags, ACK);
	NO_OUT();
	IN(.flags = ACK, .seq = 1, .ack = 1 + 10 * MSS);
	assert_int_equal(rig_out()->flags, ACK | FIN | PSH);
}

// TCP-90
static void bytes_that_the_owner_has_not_read_survive_the_close(void **state)
{
	rig_accept(PLAIN);
	rig.appetite = 0;
	tcp_conn_shutdown(rig.conn);
	rig_skip();
	IN(.flags = ACK | FIN, .seq = 1, .ack = 2, .data = "unread");
	assert_int_equal(rig_out()->ack, 8);
	assert_int_equal(rig.n_closed, 0);
	IN(.flags = RST, .seq = 8); // RFC 1337
	assert_int_equal(rig.n_closed, 0);
	rig.appetite = SIZE_MAX;
	tcp_conn_resume(rig.conn);
	assert_memory_equal(rig.got, "unread", 6);
	assert_int_equal(rig.n_eof, 1);
	expect_closed(TCP_CLOSE_DONE, 1);
}

// TCP-91
static void an_abort_resets_and_says_nothing(void **state)
{
	rig_accept(PLAIN);
	rig_write("never");
	tcp_conn_abort(rig.conn);
	struct out *o = rig_out();
	assert_int_equal(o->flags, RST | ACK);
	assert_int_equal(o->seq, 1);
	assert_int_equal(rig.n_closed, 0);
	assert_int_equal(tcp_stack_n_conns(rig.stack), 0);
	assert_int_equal(rig.chunks.n_used, 0);
	NO_OUT();
}

static void we_close(void)
{
	tcp_conn_shutdown(rig.conn);
	rig_skip();
	IN(.flags = ACK | FIN, .seq = 1, .ack = 2);
	rig_skip();
	assert_int_equal(rig.stack->tws.n_used, 1);
}

// TCP-93
static void time_wait_acknowledges_a_repeated_fin_and_waits_anew(void **state)
{
	rig_accept(PLAIN);
	we_close();
	rig_after_ms(50000);
	IN(.flags = ACK | FIN, .seq = 1, .ack = 2);
	struct out *o = rig_out();
	assert_int_equal(o->flags, ACK);
	assert_int_equal(o->seq, 2);
	assert_int_equal(o->ack, 2);
	rig_after_ms(59999);
	assert_int_equal(rig.stack->tws.n_used, 1);
	rig_after_ms(2);
	assert_int_equal(rig.stack->tws.n_used, 0);
}

// TCP-20, RFC 9293 3.9.1.1: the connection exists still.
static void a_flow_in_time_wait_is_not_opened_anew(void **state)
{
	static const struct tcp_conn_ops no_ops;
	struct tcp_flow flow = rig.flow;
	rig_accept(PLAIN);
	we_close();
	assert_null(tcp_connect(rig.stack, &flow, NS_PER_SECOND, &no_ops, NULL));
	rig_after_ms(60001);
	struct tcp_conn *c = tcp_connect(rig.stack, &flow, NS_PER_SECOND, &no_ops, NULL);
	assert_non_null(c);
	tcp_conn_abort(c);
}

// TCP-171, RFC 7323 B.2: with timestamps it may be, a second later.
static void a_flow_in_time_wait_with_timestamps_is_opened_after_a_second(void **state)
{
	static const struct tcp_conn_ops no_ops;
	struct tcp_opts ts = {.has_mss = true, .mss = MSS, .has_ts = true, .ts_val = 1000};
	struct tcp_flow flow = rig.flow;
	rig_accept(ts);
	tcp_conn_shutdown(rig.conn);
	uint32_t last_ts = rig_out()->opts.ts_val, last = rig.iss + 2;
	IN(.flags = ACK | FIN, .seq = 1, .ack = 2, .opts = {.has_ts = true, .ts_val = 1001});
	rig_skip();
	rig_after_ms(999);
	assert_null(tcp_connect(rig.stack, &flow, NS_PER_SECOND, &no_ops, NULL));
	rig_after_ms(1);
	assert_int_equal(rig.stack->tws.n_used, 1);
	struct tcp_conn *c = tcp_connect(rig.stack, &flow, NS_PER_SECOND, &no_ops, NULL);
	assert_non_null(c);
	assert_int_equal(rig.stack->tws.n_used, 0);
	assert_int_equal(rig_count(TCP_time_wait_reused), 1);
	struct out *o = rig_out();
	assert_int_equal(o->flags, SYN);
	assert_true(seq_lt(last, c->iss)); // beyond all of the old connection
	assert_true(seq_lt(last_ts, o->opts.ts_val));
	tcp_conn_abort(c);
}

// TCP-171: what the old connection's number was, the new one's is higher.
static void a_reused_flow_begins_above_the_old_numbers(void **state)
{
	static const struct tcp_conn_ops no_ops;
	struct tcp_opts ts = {.has_mss = true, .mss = MSS, .has_ts = true, .ts_val = 1000};
	struct tcp_flow flow = rig.flow;
	rig_accept(ts);
	tcp_conn_shutdown(rig.conn);
	rig_skip();
	IN(.flags = ACK | FIN, .seq = 1, .ack = 2, .opts = {.has_ts = true, .ts_val = 1001});
	rig_skip();
	rig_after_ms(5000);
	struct tcp_tw *tw = CONTAINER_OF(rig.stack->tw_order.next, struct tcp_tw, order);
	tw->snd_nxt += 1u << 30; // as after so much data
	uint32_t old = tw->snd_nxt;
	struct tcp_conn *c = tcp_connect(rig.stack, &flow, NS_PER_SECOND, &no_ops, NULL);
	assert_true(seq_lt(old, c->iss));
	tcp_conn_abort(c);
	rig_skip();
}

// TCP-94, RFC 1337.
static void time_wait_ignores_a_reset(void **state)
{
	rig_accept(PLAIN);
	we_close();
	IN(.flags = RST, .seq = 2);
	assert_int_equal(rig.stack->tws.n_used, 1);
	NO_OUT();
}

// TCP-93
static void time_wait_answers_strays_at_most_twice_a_second(void **state)
{
	rig_accept(PLAIN);
	we_close();
	for (unsigned i = 0; i < 100; i++)
		IN(.flags = ACK, .seq = 2, .ack = 2);
	rig_out();
	NO_OUT();
}

// TCP-95, RFC 9293 3.6.1, MAY-2.
static void a_syn_beyond_the_old_connection_ends_time_wait(void **state)
{
	rig_accept(PLAIN);
	we_close();
	uint32_t old = rig.stack->tws.n_used ? rig.iss + 2 : 0;
	IN(.flags = SYN, .seq = 1, .opts = PLAIN); // not beyond: their FIN was 1
	assert_int_equal(rig.stack->tws.n_used, 1);
	rig_skip();
	IN(.flags = SYN, .seq = 3, .opts = PLAIN);
	assert_int_equal(rig.stack->tws.n_used, 0);
	struct out *o = rig_out();
	assert_int_equal(o->flags, SYN | ACK);
	assert_true(seq_lt(old, rig.iss)); // RFC 6191 2
	assert_int_equal(rig_count(TCP_time_wait_reused), 1);
}

// TCP-95, RFC 6191 2: a newer timestamp is enough, whatever the sequence number.
static void a_newer_timestamp_ends_time_wait(void **state)
{
	struct tcp_opts ts = {.has_mss = true, .mss = MSS, .has_ts = true, .ts_val = 1000};
	rig_accept(ts);
	tcp_conn_shutdown(rig.conn);
	rig_skip();
	IN(.flags = ACK | FIN, .seq = 1, .ack = 2, .opts = {.has_ts = true, .ts_val = 1001});
	rig_skip();
	ts.ts_val = 1000; // older
	IN(.flags = SYN, .seq = 5000, .opts = ts);
	assert_int_equal(rig.stack->tws.n_used, 1);
	rig_skip();
	ts.ts_val = 1002;
	IN(.flags = SYN, .seq = 0x80000000, .opts = ts);
	assert_int_equal(rig.stack->tws.n_used, 0);
	assert_int_equal(rig_out()->flags, SYN | ACK);
}

// TH-45, TCP-92
static void the_oldest_time_wait_makes_room(void **state)
{
	for (uint16_t port = 1; port <= 6; port++) {
		rig.flow.remote_port = port;
		rig_accept(PLAIN);
		tcp_conn_shutdown(rig.conn);
		rig_skip();
		IN(.flags = ACK | FIN, .seq = 1, .ack = 2);
		rig_skip();
	}
	assert_int_equal(rig.stack->tws.n_used, 4);
	assert_int_equal(rig_count(TCP_time_wait_evicted), 2);
	IN(.flags = ACK, .seq = 2, .ack = 2, .from = 2); // gone: nowhere
	assert_int_equal(rig_out()->flags, RST);
	IN(.flags = ACK | FIN, .seq = 1, .ack = 2, .from = 3); // still here
	assert_int_equal(rig_out()->flags, ACK);
}

// In FIN-WAIT-2, and let go there.
static void let_go(struct tcp_opts opts)
{
	rig_accept(opts);
	tcp_conn_shutdown(rig.conn);
	rig_skip();
	opts = (struct tcp_opts){.has_ts = opts.has_ts, .ts_val = opts.ts_val + 1};
	IN(.flags = ACK, .seq = 1, .ack = 2, .opts = opts);
	assert_true(tcp_conn_let_go(rig.conn));
	rig.conn = NULL;
	assert_int_equal(tcp_stack_n_conns(rig.stack), 0);
	assert_int_equal(rig.stack->tws.n_used, 1);
	assert_int_equal(rig_count(TCP_let_go), 1);
	NO_OUT();
}

static void tcp_215_who_is_let_go_hears_nothing_and_may_end_later(void **state)
{
	let_go(PLAIN);
	rig_after_ms(50000);
	NO_OUT();
	IN(.flags = ACK | FIN, .seq = 1, .ack = 2);
	struct out *o = rig_out();
	assert_int_equal(o->flags, ACK);
	assert_int_equal(o->seq, 2);
	assert_int_equal(o->ack, 2);
	IN(.flags = ACK | FIN, .seq = 1, .ack = 2); // our ACK was lost
	assert_int_equal(rig_out()->ack, 2);
	rig_after_ms(59999);
	assert_int_equal(rig.stack->tws.n_used, 1);
	rig_after_ms(2);
	assert_int_equal(rig.stack->tws.n_used, 0);
}

static void tcp_215_likewise_with_timestamps(void **state)
{
	struct tcp_opts ts = {.has_mss = true, .mss = MSS, .has_ts = true, .ts_val = 1000};
	let_go(ts);
	IN(.flags = ACK | FIN, .seq = 1, .ack = 2, .opts = {.has_ts = true, .ts_val = 1007});
	struct out *o = rig_out();
	assert_int_equal(o->ack, 2);
	assert_int_equal(o->opts.ts_ecr, 1007);
	assert_int_equal(rig_count(TCP_rsts_out), 0);
}

// Whether an end comes with it or not.
static void tcp_216_data_for_one_that_was_let_go_is_reset(void **state)
{
	for (int has_fin = 0; has_fin < 2; has_fin++) {
		rig_restart();
		let_go(PLAIN);
		IN(.flags = ACK | (has_fin ? FIN : 0), .seq = 1, .ack = 2, .data = "more");
		struct out *o = rig_out();
		assert_int_equal(o->flags, RST);
		assert_int_equal(o->seq, 2);
		assert_int_equal(rig.stack->tws.n_used, 0);
		assert_int_equal(rig_count(TCP_drop_let_go), 1);
	}
}

static void tcp_216_what_cannot_be_the_peers_changes_nothing(void **state)
{
	let_go(PLAIN);
	IN(.flags = ACK, .seq = 1, .ack = 9, .data = "more"); // nothing of ours was that far
	IN(.flags = ACK | FIN, .seq = 5, .ack = 2); // there is a hole before it
	IN(.flags = ACK, .seq = 0, .ack = 2, .data = "k"); // a probe
	rig_after_ms(1000);
	for (struct out *o; (o = rig_peek()); rig_out())
		assert_int_equal(o->flags, ACK);
	assert_int_equal(rig.stack->tws.n_used, 1);
	assert_int_equal(rig_count(TCP_rsts_out), 0);
}

static void tcp_215_who_has_not_taken_all_is_aborted(void **state)
{
	rig_accept(PLAIN);
	rig_write("last words");
	tcp_conn_shutdown(rig.conn);
	rig_skip();
	IN(.flags = ACK, .seq = 1, .ack = 11); // but for FIN
	assert_false(tcp_conn_let_go(rig.conn));
	rig.conn = NULL;
	assert_int_equal(rig_out()->flags & RST, RST);
	assert_int_equal(rig.stack->tws.n_used, 0);
	assert_int_equal(rig_count(TCP_aborted), 1);
}

static void without_time_wait_records_the_end_is_the_end(void **state)
{
	rig.conf.max_time_wait = 0;
	rig_restart();
	rig_accept(PLAIN);
	tcp_conn_shutdown(rig.conn);
	rig_skip();
	IN(.flags = ACK | FIN, .seq = 1, .ack = 2);
	assert_int_equal(rig_out()->ack, 2);
	expect_closed(TCP_CLOSE_DONE, 0);
}

static void shutdown_before_the_handshake_sends_fin_after_it(void **state)
{
	rig_begin_connect(NS_PER_SECOND);
	rig_write("one shot");
	tcp_conn_shutdown(rig.conn);
	NO_OUT();
	IN(.flags = SYN | ACK, .seq = 0, .ack = 1, .opts = PLAIN);
	struct out *o = rig_out();
	assert_int_equal(o->flags, ACK | PSH | FIN);
	assert_int_equal(o->len, 8);
}

RUN_SUITE("tcp/close", CASE(we_close_first), CASE(they_close_first), CASE(both_close_in_one_turn),
	CASE(both_close_at_once), CASE(fin_and_its_ack_may_come_together),
	CASE(receiving_goes_on_after_our_fin), CASE(a_lost_fin_is_sent_again_with_its_data),
	CASE(fin_waits_for_the_queue), CASE(bytes_that_the_owner_has_not_read_survive_the_close),
	CASE(an_abort_resets_and_says_nothing),
	CASE(time_wait_acknowledges_a_repeated_fin_and_waits_anew),
	CASE(a_flow_in_time_wait_is_not_opened_anew),
	CASE(a_flow_in_time_wait_with_timestamps_is_opened_after_a_second),
	CASE(a_reused_flow_begins_above_the_old_numbers), CASE(time_wait_ignores_a_reset),
	CASE(time_wait_answers_strays_at_most_twice_a_second),
	CASE(a_syn_beyond_the_old_connection_ends_time_wait),
	CASE(a_newer_timestamp_ends_time_wait), CASE(the_oldest_time_wait_makes_room),
	CASE(tcp_215_who_is_let_go_hears_nothing_and_may_end_later),
	CASE(tcp_215_likewise_with_timestamps), CASE(tcp_215_who_has_not_taken_all_is_aborted),
	CASE(tcp_216_data_for_one_that_was_let_go_is_reset),
	CASE(tcp_216_what_cannot_be_the_peers_changes_nothing),
	CASE(without_time_wait_records_the_end_is_the_end),
	CASE(shutdown_before_the_handshake_sends_fin_after_it))
