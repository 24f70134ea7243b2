// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/tcp/rig.h"

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

RUN_SUITE("tcp/undo", CASE(the_windows_before_a_loss_come_back),
	CASE(a_loss_that_is_settled_stays_one))
