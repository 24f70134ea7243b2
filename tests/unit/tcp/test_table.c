// SPDX-License-Identifier: Apache-2.0
// Where a segment's connection is found: by its hash, or before that where one was found lately.
// What its flow is hashed to, and what its control block begins with.
#include "lb/base/time.h"
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
		conns[i] = tcp_connect(rig.stack, &flow, NS_PER_SECOND, &no_ops, NULL);
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

static void a_connection_that_is_found_takes_its_place_back(void **state)
{
	struct tcp_conn *conns[N_CONNS];
	rig.conf.max_conns = N_CONNS;
	rig_restart();
	for (unsigned i = 0; i < N_CONNS; i++) {
		struct tcp_flow flow = flow_of(i);
		conns[i] = tcp_connect(rig.stack, &flow, NS_PER_SECOND, &no_ops, NULL);
	}
	for (unsigned i = N_CONNS / 2; i < N_CONNS; i++) // they came later, and have the places
		tcp_conn_abort(conns[i]);
	unsigned before = n_recent();
	for (unsigned i = 0; i < N_CONNS / 2; i++)
		assert_ptr_equal(found(i), conns[i]);
	assert_in_range(n_recent(), before + 1, N_CONNS / 2);
}

// A control block that is taken again must not be found by what it was.
static void a_flow_that_ended_is_not_found_again(void **state)
{
	rig.conf.max_conns = 1;
	rig_restart();
	for (unsigned i = 0; i < 100; i++) {
		struct tcp_flow flow = flow_of(i);
		struct tcp_conn *c = tcp_connect(rig.stack, &flow, NS_PER_SECOND, &no_ops, NULL);
		assert_ptr_equal(found(i), c);
		assert_null(found(i + 1));
		tcp_conn_abort(c);
		assert_null(found(i));
	}
}

static void a_control_block_that_is_taken_again_remembers_nothing(void **state)
{
	struct tcp_flow flow = flow_of(0);
	rig.conf.max_conns = 1;
	rig_restart();
	struct tcp_conn *old = tcp_connect(rig.stack, &flow, NS_PER_SECOND, &no_ops, NULL);
	old->ts_recent = old->rack_end = old->irs = old->fin_seq = 1;
	old->srtt_ns = old->challenge_ns = old->keepalive_ns = 1;
	old->user = old;
	tcp_conn_abort(old);
	struct tcp_conn *c = tcp_connect(rig.stack, &flow, NS_PER_SECOND, &no_ops, NULL);
	assert_ptr_equal(c, old);
	assert_int_equal(c->ts_recent | c->rack_end | c->irs | c->fin_seq, 0);
	assert_int_equal(c->srtt_ns | c->challenge_ns | c->keepalive_ns, 0);
	assert_null(c->user);
}

static void expect_others(const struct tcp_flow *a, const struct tcp_flow *b)
{
	struct tcp_start of_a = tcp_start_of(rig.stack, a), of_b = tcp_start_of(rig.stack, b);
	assert_int_not_equal(tcp_flow_hash(rig.stack, a), tcp_flow_hash(rig.stack, b));
	assert_int_not_equal(of_a.isn, of_b.isn);
	assert_int_not_equal(of_a.ts_offset, of_b.ts_offset);
	assert_int_not_equal(
		tcp_cookie_hash(rig.stack, a, 1, 2), tcp_cookie_hash(rig.stack, b, 1, 2));
}

// TCP-17, TCP-18, RFC 6528 3: both addresses and both ports.
static void all_of_a_flow_is_in_its_numbers(void **state)
{
	static const size_t bytes[] = {0, 7, 8, 12, 15}; // of an address
	for (unsigned v6 = 0; v6 < 2; v6++) {
		struct tcp_flow a = flow_of(0), b;
		if (v6)
			a.local.b[0] = a.remote.b[0] = 0xfd;
		for (size_t i = v6 ? 0 : 3; i < 5; i++) {
			b = a;
			b.local.b[bytes[i]] ^= 1;
			expect_others(&a, &b);
			b = a;
			b.remote.b[bytes[i]] ^= 1;
			expect_others(&a, &b);
		}
		b = a;
		b.local_port ^= 0x100;
		expect_others(&a, &b);
		b = a;
		b.remote_port ^= 0x100;
		expect_others(&a, &b);
	}
}

RUN_SUITE("tcp/table", CASE(a_connection_is_found_whoever_shares_its_place),
	CASE(a_connection_that_is_found_takes_its_place_back),
	CASE(a_flow_that_ended_is_not_found_again),
	CASE(a_control_block_that_is_taken_again_remembers_nothing),
	CASE(all_of_a_flow_is_in_its_numbers))
