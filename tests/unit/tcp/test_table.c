// SPDX-License-Identifier: Apache-2.0
// Where a segment's connection is found: by its hash, or before that where one was found lately.
#include "tests/unit/tcp/rig.h"

#define N_CONNS 400u

static const struct tcp_conn_ops no_ops; // nothing is heard of connections that are aborted

static struct tcp_flow flow_of(unsigned i)
{
	return (struct tcp_flow){
		rig.flow.local, rig.flow.remote, (uint16_t)(1000 + i % 20), (uint16_t)(1 + i)};
}

static struct tcp_conn *found(unsigned i)
{
	struct tcp_flow flow = flow_of(i);
	uint32_t hash = 0;
	struct tcp_conn *c = tcp_conn_find(rig.stack, &flow, &hash);
	assert_int_equal(hash, tcp_flow_hash(rig.stack, &flow));
	return c;
}

static unsigned n_recent(void)
{
	unsigned n = 0;
	for (uint64_t i = 0; i < UINT64_C(1) << (64 - rig.stack->recent_shift); i++)
		n += rig.stack->recent[i] != NULL;
	return n;
}

static void a_connection_is_found_whoever_shares_its_place(void **state)
{
	struct tcp_conn *conns[N_CONNS];
	rig.conf.max_conns = N_CONNS;
	rig_restart();
	for (unsigned i = 0; i < N_CONNS; i++) {
		struct tcp_flow flow = flow_of(i);
		conns[i] = tcp_connect(rig.stack, &flow, TCP_S, &no_ops, NULL);
		assert_non_null(conns[i]);
	}
	assert_in_range(n_recent(), 1, N_CONNS - 1); // some share one
	for (unsigned i = 0; i < N_CONNS; i++)
		assert_ptr_equal(found(i), conns[i]);
	for (unsigned i = N_CONNS; i-- > 0;)
		assert_ptr_equal(found(i), conns[i]);
	for (unsigned i = 0; i < N_CONNS; i += 2)
		tcp_conn_abort(conns[i]);
	for (unsigned i = 0; i < N_CONNS; i++)
		assert_ptr_equal(found(i), i % 2 ? conns[i] : NULL);
	for (unsigned i = 1; i < N_CONNS; i += 2)
		tcp_conn_abort(conns[i]);
	assert_int_equal(n_recent(), 0);
}

// A control block that is taken again must not be found by what it was.
static void a_flow_that_ended_is_not_found_again(void **state)
{
	rig.conf.max_conns = 1;
	rig_restart();
	for (unsigned i = 0; i < 100; i++) {
		struct tcp_flow flow = flow_of(i);
		struct tcp_conn *c = tcp_connect(rig.stack, &flow, TCP_S, &no_ops, NULL);
		assert_ptr_equal(found(i), c);
		assert_null(found(i + 1));
		tcp_conn_abort(c);
		assert_null(found(i));
	}
}

RUN_SUITE("tcp/table", CASE(a_connection_is_found_whoever_shares_its_place),
	CASE(a_flow_that_ended_is_not_found_again))
