// SPDX-License-Identifier: Apache-2.0
// A75-O*, A55-O* as timelines: whom sessions reach, whose connections they keep, and how long.
#include "tests/sim/balance/sim.h"
#include "tests/support/check.h"

// Whom a request with a cookie for these addresses is sent to now; UINT32_MAX = it waits or fails.
static uint32_t once_bound(struct sim *s, uint32_t n, const uint32_t *addresses)
{
	struct sim_request *r = sim_begin(s, 0);
	for (uint32_t i = 0; i < n; i++)
		sim_bind(r, addresses[i]);
	sim_start(s, r);
	uint32_t address = r->outcome == SIM_SENT ? r->address : UINT32_MAX;
	sim_end(s, r);
	return address;
}

static uint32_t once_with(struct sim *s, uint32_t address)
{
	return once_bound(s, 1, &address);
}

// One more second, within which a request with this cookie came to its end.
static uint32_t served_with(struct sim *s, uint32_t address)
{
	struct sim_request *r = sim_begin(s, 0);
	sim_bind(r, address);
	sim_start(s, r);
	sim_run(s, SIM_S);
	uint32_t served = r->outcome == SIM_SENT ? r->address : UINT32_MAX;
	sim_end(s, r);
	return served;
}

static struct sim *new_with(uint64_t idle_ns)
{
	struct sim *s = sim_new(1, 1);
	s->leaves[0].config.idle_timeout_ns = idle_ns;
	return s;
}

// A75-O08, A75-O15, A75-O16: used at 2 s with a timeout of 20 s it is swept past at 20 and ends at
// 25.
static void connection_for_a_session_ends_with_the_second_sweep(void **state)
{
	(void)state;
	struct sim *s = new_with(20 * SIM_S);
	sim_update(s, "a: 0; b: 1");
	sim_run_to(s, 2 * SIM_S);
	sim_forget(s);
	assert_int_equal(served_with(s, 1), 1);
	sim_expect(s, "2.000 syn 1\n");
	sim_run_to(s, 25 * SIM_S - SIM_MS);
	assert_int_equal(sim_n_connections(s, 1), 1);
	sim_run_to(s, 25 * SIM_S + SIM_GRACE + SIM_MS);
	assert_int_equal(sim_n_connections(s, 1), 0);
	assert_int_equal(once_with(s, 1), UINT32_MAX); // asked for anew
	sim_run(s, SIM_S);
	assert_int_equal(sim_n_connections(s, 1), 1);
	sim_free(s);
}

// A75-O12: requests without the session move nothing, and those with it do.
static void only_requests_of_sessions_keep_a_connection(void **state)
{
	(void)state;
	struct sim *s = new_with(20 * SIM_S);
	sim_update(s, "a: 0; b: 1");
	assert_int_equal(served_with(s, 1), 1);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(once_with(s, 1), 1);
		sim_run(s, 10 * SIM_S);
		assert_int_equal(sim_n_connections(s, 1), 1);
	}
	sim_run(s, 26 * SIM_S);
	assert_int_equal(sim_n_connections(s, 1), 0);
	sim_free(s);
}

// A55-O01, A75-O05, A75-O06, A75-O07, A75-O09
static void first_ready_address_serves_and_idle_or_connecting_ones_are_waited_for(void **state)
{
	(void)state;
	struct sim *s = new_with(3600 * SIM_S);
	s->probes = false;
	sim_set(s, 3, SIM_REFUSES);
	sim_set(s, 4, SIM_SILENT);
	sim_update(s, "a: 0 1 3; b: 2 4");
	sim_run_to(s, SIM_S / 2);
	const uint32_t late[] = {4, 2, 1, 0}; // the first that is READY, whatever comes before
	assert_int_equal(once_bound(s, 4, late), 1);
	for (int i = 0; i < 10; i++)
		assert_in_range(once_with(s, 3), 0, 1); // TRANSIENT_FAILURE: the child picks
	for (int i = 0; i < 10; i++)
		assert_in_range(once_with(s, 77), 0, 1); // nobody's
	assert_int_equal(once_with(s, 4), UINT32_MAX); // A75-O08: waits though the child is READY
	assert_int_equal(once_with(s, 4), UINT32_MAX); // A75-O07
	assert_int_equal(sim_count_syns(s, 4), 1); // A75-O20
	sim_set(s, 4, SIM_REFUSES);
	sim_run(s, 25 * SIM_S);
	assert_in_range(once_with(s, 4), 0, 1); // it fails
	sim_free(s);
}

// A55-O02, A55-O03, A75-O04
static void draining_endpoint_serves_its_sessions_alone(void **state)
{
	(void)state;
	struct sim *s = new_with(3600 * SIM_S);
	s->leaves[0].config.session_health |= 1 << LB_LEAF_DRAINING;
	s->load_ns = 10 * SIM_MS;
	sim_update(s, "a: 0 1 2");
	sim_run_to(s, 5 * SIM_S);
	assert_int_equal(once_with(s, 1), 1);
	sim_update(s, "a: 0 1d 2d");
	uint32_t n[] = {s->n_served[1], s->n_served[2]};
	sim_run(s, 10 * SIM_S);
	assert_int_equal(s->n_served[1], n[0]);
	assert_int_equal(s->n_served[2], n[1]);
	assert_int_equal(sim_n_connections(s, 1), 1); // a session used it
	assert_int_equal(sim_n_connections(s, 2), 0); // none did
	assert_int_equal(once_with(s, 1), 1);
	assert_int_equal(served_with(s, 2), 2); // a cookie may reconnect it
	s->leaves[0].config.session_health = 1 << LB_LEAF_HEALTHY;
	sim_update(s, "a: 0 1d 2d");
	sim_run(s, SIM_S);
	assert_int_equal(once_with(s, 1), 0);
	assert_int_equal(sim_n_connections(s, 1), 0);
	sim_free(s);
}

// A75-O13, A75-O14, A75-O19, UPD-02: endpoints that move out of use and back.
static void session_survives_moves_between_priorities_on_one_connection(void **state)
{
	(void)state;
	struct sim *s = new_with(3600 * SIM_S);
	sim_update(s, "a: 0 1 2; b: 3");
	sim_run_to(s, 5 * SIM_S);
	assert_int_equal(once_with(s, 1), 1);
	sim_forget(s);
	sim_update(s, "a: 0; b: 3 1 2");
	sim_run(s, SIM_S);
	assert_int_equal(sim_n_connections(s, 1), 1); // A75-O13
	assert_int_equal(sim_n_connections(s, 2), 0);
	assert_int_equal(once_with(s, 1), 1);
	sim_update(s, "a: 0 1 2; b: 3");
	sim_run(s, SIM_S);
	assert_int_equal(once_with(s, 1), 1);
	sim_expect(s,
		"6.000 syn 2\n"); // A75-O14: not a SYN to 1
	struct sim_request *r = sim_begin(s, 0);
	sim_bind(r, 1);
	sim_start(s, r);
	sim_update(s, "a: 0 2; b: 3"); // gone: its entry, too
	sim_run(s, SIM_S);
	assert_in_range(once_with(s, 1), 0, 2);
	assert_int_not_equal(once_with(s, 1), 1);
	assert_int_equal(r->outcome, SIM_SENT); // finishes
	assert_int_equal(sim_n_connections(s, 1), 1); // so long
	sim_end(s, r);
	sim_run(s, SIM_S);
	assert_int_equal(sim_n_connections(s, 1), 0);
	sim_free(s);
}

// UPD-03: taken up again while its streams finish, it is the same connection.
static void endpoint_that_returns_while_draining_keeps_its_connection(void **state)
{
	(void)state;
	struct sim *s = new_with(3600 * SIM_S);
	sim_update(s, "a: 0 1");
	sim_run_to(s, 5 * SIM_S);
	struct sim_request *r = sim_begin(s, 0);
	sim_bind(r, 1);
	sim_start(s, r);
	assert_int_equal(r->address, 1);
	sim_forget(s);
	sim_update(s, "a: 0");
	sim_run(s, 5 * SIM_S);
	sim_update(s, "a: 0 1");
	sim_run(s, 5 * SIM_S);
	assert_int_equal(r->outcome, SIM_SENT);
	assert_int_equal(sim_n_connections(s, 1), 1);
	sim_expect(s, "");
	sim_free(s);
}

// A75-O18: nothing is kept, but what is waited for.
static void timeout_of_zero_keeps_only_what_is_waited_for(void **state)
{
	(void)state;
	struct sim *s = new_with(0);
	s->hosts[1].syn_ns = 12 * SIM_S; // several sweeps
	sim_update(s, "a: 0; b: 1");
	struct sim_request *r = sim_begin(s, 0);
	sim_bind(r, 1);
	sim_start(s, r);
	sim_run(s, 13 * SIM_S);
	assert_int_equal(r->outcome, SIM_SENT);
	assert_int_equal(r->address, 1);
	sim_end(s, r);
	sim_run(s, 6 * SIM_S);
	assert_int_equal(sim_n_connections(s, 1), 0);
	sim_free(s);
}

// A75-O21: sessions take nobody's turn.
static void sessions_do_not_move_the_rotation(void **state)
{
	(void)state;
	struct sim *s = new_with(3600 * SIM_S);
	s->probes = false;
	sim_update(s, "a: 0 1 2");
	sim_run_to(s, SIM_S);
	uint32_t at[3];
	for (int i = 0; i < 3; i++)
		at[i] = sim_once(s, 0);
	for (int i = 0; i < 300; i++) {
		for (int k = i % 5; k > 0; k--)
			assert_int_equal(once_with(s, 2), 2);
		assert_int_equal(sim_once(s, 0), at[i % 3]);
	}
	sim_free(s);
}

// MC-05, MC-16: a session's connection is each worker's own, its entry everybody's.
static void session_waits_for_its_own_workers_connection(void **state)
{
	(void)state;
	struct sim *s = sim_new(4, 1);
	s->leaves[0].config.idle_timeout_ns = 20 * SIM_S;
	sim_update(s, "a: 0; b: 1");
	sim_run_to(s, SIM_S);
	for (uint32_t i = 0; i < 4; i++) {
		struct sim_request *r = sim_begin(s, i);
		sim_bind(r, 1);
		sim_start(s, r);
		bool is_anchor = sim_is_connected(s, i, 1); // who was asked for the first one
		assert_int_equal(r->outcome, is_anchor ? SIM_SENT : SIM_WAITS);
		sim_run(s, 100 * SIM_MS);
		assert_int_equal(r->outcome, SIM_SENT);
		assert_int_equal(r->address, 1);
		sim_end(s, r);
	}
	assert_int_equal(sim_count_syns(s, 1), 4);
	struct sim_request *r = NULL;
	for (int i = 0; i < 10; i++) { // one worker's use keeps all of them
		r = sim_begin(s, 3);
		sim_bind(r, 1);
		sim_start(s, r);
		sim_end(s, r);
		sim_run(s, 10 * SIM_S);
	}
	assert_int_equal(sim_n_connections(s, 1), 4);
	sim_run(s, 26 * SIM_S);
	assert_int_equal(sim_n_connections(s, 1), 0);
	sim_free(s);
}

RUN_SUITE("sim/balance/session",
	cmocka_unit_test(connection_for_a_session_ends_with_the_second_sweep),
	cmocka_unit_test(only_requests_of_sessions_keep_a_connection),
	cmocka_unit_test(first_ready_address_serves_and_idle_or_connecting_ones_are_waited_for),
	cmocka_unit_test(draining_endpoint_serves_its_sessions_alone),
	cmocka_unit_test(session_survives_moves_between_priorities_on_one_connection),
	cmocka_unit_test(endpoint_that_returns_while_draining_keeps_its_connection),
	cmocka_unit_test(timeout_of_zero_keeps_only_what_is_waited_for),
	cmocka_unit_test(sessions_do_not_move_the_rotation),
	cmocka_unit_test(session_waits_for_its_own_workers_connection))
