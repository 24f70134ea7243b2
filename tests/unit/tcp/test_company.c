// SPDX-License-Identifier: Apache-2.0
// Several stacks behind the same addresses, each of which hears every segment: what this one leaves
// to others (lb/base/company.h).
#include "lb/base/time.h"
#include "tests/unit/tcp/rig.h"

#define N_PORTS 2000

static const struct tcp_conn_ops no_ops;

static void fl_04_what_belongs_to_nothing_here_is_reset_only_by_one_who_is_alone(void **state)
{
	static const enum lb_company accompanied[] = {LB_FRONT, LB_BEHIND};
	for (unsigned i = 0; i < 2; i++) {
		tcp_stack_set_company(rig.stack, accompanied[i]);
		IN(.flags = ACK, .seq = 7, .ack = 9);
		IN(.flags = ACK | FIN, .seq = 7, .ack = 9);
		IN(.flags = SYN | ACK, .seq = 7, .ack = 9);
		NO_OUT();
		assert_int_equal(rig_count(TCP_drop_company), 3 * (i + 1));
	}
	tcp_stack_set_company(rig.stack, LB_ALONE);
	IN(.flags = ACK, .seq = 7, .ack = 9);
	assert_int_equal(rig_out()->flags, RST);
}

static void fl_04_the_one_in_front_refuses_a_port_that_nobody_serves(void **state)
{
	tcp_stack_set_company(rig.stack, LB_FRONT);
	IN(.flags = SYN, .seq = 0, .to = 81);
	assert_int_equal(rig_out()->flags, RST | ACK);
	rig_accept(PLAIN);
}

static void fl_03_one_behind_takes_nothing_new_and_goes_on_with_what_it_has(void **state)
{
	static const enum lb_company followed[] = {LB_BEHIND, LB_LAST};
	rig_accept(PLAIN);
	for (unsigned i = 0; i < 2; i++) {
		tcp_stack_set_company(rig.stack, followed[i]);
		IN(.flags = SYN, .seq = 0, .from = 4321, .opts = PLAIN);
		IN(.flags = SYN, .seq = 0, .from = 4321, .to = 81, .opts = PLAIN);
		NO_OUT();
	}
	rig.appetite = 5;
	IN(.flags = ACK | PSH, .seq = 1, .ack = 1, .data = "hello");
	assert_int_equal(rig.n_got, 5);
	rig_write("answer");
	assert_int_equal(rig_out()->len, 6);
}

static void fl_03_a_handshake_that_had_begun_before_is_ended(void **state)
{
	IN(.flags = SYN, .seq = 0, .opts = PLAIN);
	assert_int_equal(rig_out()->flags, SYN | ACK);
	tcp_stack_set_company(rig.stack, LB_BEHIND);
	IN(.flags = ACK, .seq = 1, .ack = 1);
	assert_non_null(rig.conn);
}

// FL-03: else it would acknowledge segments of a connection that the one in front has.
static void a_peer_that_opens_anew_is_not_answered_from_time_wait(void **state)
{
	rig_accept(PLAIN);
	tcp_conn_shutdown(rig.conn);
	rig_skip();
	(void)rig_peek();
	rig_skip();
	IN(.flags = ACK | FIN, .seq = 1, .ack = 2);
	rig_skip();
	(void)rig_peek();
	rig_skip();
	assert_int_equal(rig.stack->tws.n_used, 1);
	tcp_stack_set_company(rig.stack, LB_BEHIND);
	IN(.flags = SYN, .seq = 100000, .opts = PLAIN);
	assert_int_equal(rig.stack->tws.n_used, 0);
	IN(.flags = ACK, .seq = 100001, .ack = 1);
	NO_OUT();
}

static void fl_06_stacks_with_other_parts_choose_other_ports(void **state)
{
	static uint8_t seen[UINT16_MAX + 1];
	memset(seen, 0, sizeof(seen));
	for (uint32_t part = 0; part < 4; part++) {
		tcp_stack_set_ports(rig.stack, part, 4);
		for (unsigned i = 0; i < N_PORTS; i++) {
			struct tcp_flow flow = rig.flow;
			flow.local_port = 0;
			struct tcp_conn *c =
				tcp_connect(rig.stack, &flow, NS_PER_SECOND, &no_ops, NULL);
			assert_non_null(c);
			uint8_t *owner = &seen[tcp_conn_flow(c)->local_port];
			assert_true(!*owner || *owner == part + 1);
			*owner = (uint8_t)(part + 1);
			tcp_conn_abort(c);
		}
	}
}

RUN_SUITE("tcp/company", CASE(fl_04_what_belongs_to_nothing_here_is_reset_only_by_one_who_is_alone),
	CASE(fl_04_the_one_in_front_refuses_a_port_that_nobody_serves),
	CASE(fl_03_one_behind_takes_nothing_new_and_goes_on_with_what_it_has),
	CASE(fl_03_a_handshake_that_had_begun_before_is_ended),
	CASE(a_peer_that_opens_anew_is_not_answered_from_time_wait),
	CASE(fl_06_stacks_with_other_parts_choose_other_ports))
