// SPDX-License-Identifier: Apache-2.0
// What operators are told of one connection.
#include "lb/pick/tcp_info.h"
#include "tests/unit/tcp/rig.h"

static struct lb_tcp_info told(void)
{
	struct lb_tcp_info i;
	tcp_conn_tell(rig.conn, &i);
	return i;
}

static void segments_sent_again_are_counted_for_their_connection(void **state)
{
	rig_accept(PLAIN);
	assert_int_equal(told().n_resent, 0);
	rig_write("a");
	rig_after_ms(1);
	assert_int_equal(told().in_flight, 1);
	rig_after_ms(750);
	uint32_t n_resent = told().n_resent;
	assert_in_range(n_resent, 2, 4);
	assert_int_equal(n_resent, rig_count(TCP_retransmits));
	IN(.flags = ACK, .seq = 1, .ack = 2);
	assert_int_equal(told().in_flight, 0);
	assert_int_equal(told().n_resent, n_resent);
	assert_int_equal(told().mss, MSS);
	assert_int_equal(told().cwnd, rig.conn->cc.cwnd);
}

// Sequence numbers have 32 bits, what an upload has brought has not.
static void bytes_received_are_counted_beyond_four_gibibytes(void **state)
{
	const uint64_t before = UINT32_MAX - 20000;
	rig_accept(PLAIN);
	assert_int_equal(told().n_received, 0);
	IN(.flags = ACK, .seq = 1, .ack = 1, .len = 1000);
	assert_int_equal(told().n_received, 1000);
	// So much had come when the connection was young.
	rig.conn->irs -= (uint32_t)before;
	uint32_t n = 1000;
	for (; n < 71000; n += 700) {
		assert_int_equal(told().n_received, before + n);
		IN(.flags = ACK, .seq = 1 + n, .ack = 1, .len = 700);
		rig_after_ms(300);
	}
	assert_true(told().n_received > UINT32_MAX);
	IN(.flags = ACK | FIN, .seq = 1 + n, .ack = 1);
	assert_int_equal(told().n_received, before + n);
}

static void nothing_has_come_before_the_handshake(void **state)
{
	rig_begin_connect(NS_PER_SECOND);
	assert_int_equal(told().n_received, 0);
	assert_int_equal(told().rtt_ns, 0);
}

// OPS-194: the names of RFC 9293 3.3.2.
static void the_state_is_told_by_its_name(void **state)
{
	rig_accept(PLAIN);
	assert_string_equal(told().state, "established");
	assert_string_equal(told().congestion, tcp_cc_reno.name);
	IN(.flags = ACK | FIN, .seq = 1, .ack = 1);
	assert_string_equal(told().state, "close_wait");
	tcp_conn_shutdown(rig.conn);
	rig_after_ms(1);
	assert_string_equal(told().state, "last_ack");
}

// OPS-194
static void our_fin_and_its_acknowledgement_are_two_states(void **state)
{
	rig_accept(PLAIN);
	tcp_conn_shutdown(rig.conn);
	rig_after_ms(1);
	assert_string_equal(told().state, "fin_wait_1");
	IN(.flags = ACK, .seq = 1, .ack = 2);
	assert_string_equal(told().state, "fin_wait_2");
}

// OPS-194
static void queues_and_windows_are_told(void **state)
{
	rig_accept(PLAIN);
	rig_write("abc");
	rig_after_ms(1);
	assert_int_equal(told().send_queue, 3);
	assert_int_equal(told().recv_queue, 0);
	assert_true(told().recv_window > 0);
	assert_int_equal(told().send_window, rig.conn->snd_wnd);
	assert_int_equal(told().ssthresh, UINT32_MAX);
	assert_int_equal(told().pace, 0); // so little is not held back
	assert_int_equal(told().n_backoff, 0);
	rig_after_ms(2000);
	assert_true(told().n_backoff > 0);
	assert_int_equal(told().rto_ns, rig.conn->rto_ns);
}

RUN_SUITE("tcp/info", CASE(segments_sent_again_are_counted_for_their_connection),
	CASE(bytes_received_are_counted_beyond_four_gibibytes),
	CASE(nothing_has_come_before_the_handshake), CASE(the_state_is_told_by_its_name),
	CASE(our_fin_and_its_acknowledgement_are_two_states), CASE(queues_and_windows_are_told))
