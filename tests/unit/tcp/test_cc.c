// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/tcp/rig.h"

// TCP-130
static void cubic_is_the_default(void **state)
{
	rig.conf.congestion = NULL;
	rig_restart();
	rig_accept(PLAIN);
	assert_ptr_equal(tcp_cc_ops(rig.conn), &tcp_cc_cubic);
}

// TCP-139
static void a_mark_takes_a_fifth_of_what_is_in_flight(void **state)
{
	struct tcp_cc cc;
	tcp_cc_reno.init(&cc, MSS);
	tcp_cc_reno.on_ecn(&cc, MSS, 10 * MSS);
	assert_int_equal(cc.cwnd, 8 * MSS);
	assert_int_equal(cc.ssthresh, 8 * MSS);
}

static void marks_leave_two_segments(void **state)
{
	struct tcp_cc cc;
	tcp_cc_reno.init(&cc, MSS);
	tcp_cc_reno.on_ecn(&cc, MSS, MSS);
	assert_int_equal(cc.cwnd, 2 * MSS);
}

RUN_SUITE("tcp/cc", CASE(cubic_is_the_default), CASE(a_mark_takes_a_fifth_of_what_is_in_flight),
	CASE(marks_leave_two_segments))
