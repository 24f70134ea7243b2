// SPDX-License-Identifier: Apache-2.0
// A56-P*, A75-G* and A37-G* as timelines: which priority serves when, and who is connected when.
#include "tests/sim/balance/sim.h"
#include "tests/support/check.h"

static const struct lb_policy_spec ring = {
	.kind = LB_POLICY_RING_HASH, .ring_hash = {.min_size = 64, .max_size = 64}};

// A56-P01
static void lower_priority_is_not_connected_while_the_first_serves(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	sim_update(s, "a: 0 1; b: 2 3; c: 4");
	sim_run(s, 3600 * SIM_S);
	sim_expect(s, "0.000 syn 0\n"
		      "0.000 syn 1\n"
		      "0.000 CONNECTING\n"
		      "0.000 queue\n"
		      "0.002 READY\n"
		      "0.002 P0\n");
	sim_free(s);
}

// A56-P04: and so on down the list, without waiting.
static void refused_priorities_are_left_at_once(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	sim_set(s, 0, SIM_REFUSES);
	sim_set(s, 1, SIM_REFUSES);
	sim_update(s, "a: 0; b: 1; c: 2; d: 3");
	sim_run(s, 500 * SIM_MS);
	sim_expect(s, "0.000 syn 0\n"
		      "0.000 CONNECTING\n"
		      "0.000 queue\n"
		      "0.001 syn 1\n"
		      "0.002 syn 2\n"
		      "0.004 READY\n"
		      "0.004 P2\n");
	sim_free(s);
}

// A56-P03, A56-P05, A56-P09: its attempt goes on all the while, and ends after 20 s (BO-02).
static void silent_priority_has_10_seconds_and_returns_when_it_answers(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	sim_set(s, 0, SIM_SILENT);
	sim_update(s, "a: 0; b: 1");
	sim_run_to(s, 15 * SIM_S);
	sim_set(s, 0, SIM_UP);
	struct sim_request *r = sim_begin(s, 0);
	sim_start(s, r);
	sim_run_to(s, 60 * SIM_S);
	sim_expect(s, "0.000 syn 0\n"
		      "0.000 CONNECTING\n"
		      "0.000 queue\n"
		      "10.000 syn 1\n"
		      "10.002 READY\n"
		      "10.002 P1\n"
		      "20.001 syn 0\n"
		      "20.003 P0\n");
	assert_int_equal(r->outcome, SIM_SENT); // finishes where it began
	assert_int_equal(r->address, 1);
	assert_true(sim_is_connected(s, 0, 1));
	sim_free(s);
}

// A56-P03, A56-P06: P0 has served and is lost, so it gets its time again although P1 is READY;
// when it is over P1 serves without a handshake (A56-P08).
static void lost_priority_has_10_seconds_again_although_the_next_is_ready(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	sim_set(s, 0, SIM_REFUSES);
	sim_update(s, "a: 0; b: 1");
	sim_run(s, 500 * SIM_MS);
	sim_set(s, 0, SIM_UP);
	sim_run_to(s, 100 * SIM_S);
	sim_expect(s, "0.000 syn 0\n"
		      "0.000 CONNECTING\n"
		      "0.000 queue\n"
		      "0.001 syn 1\n"
		      "0.003 READY\n"
		      "0.003 P1\n"
		      "1.082 syn 0\n"
		      "1.084 P0\n");
	sim_set(s, 0, SIM_SILENT);
	sim_reset(s, 0);
	sim_run_to(s, 119 * SIM_S);
	sim_expect(s, "100.000 syn 0\n"
		      "100.000 CONNECTING\n"
		      "100.001 queue\n"
		      "110.000 READY\n"
		      "110.000 P1\n");
	sim_free(s);
}

// A56-P06: a failing priority that tries again gets no time for it.
static void failing_priority_gets_no_time_for_its_attempts(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	sim_set(s, 0, SIM_REFUSES);
	sim_update(s, "a: 0; b: 1");
	sim_run(s, 500 * SIM_MS);
	sim_set(s, 0, SIM_SILENT);
	sim_forget(s);
	sim_run_to(s, 15 * SIM_S);
	assert_string_equal(s->label, "P1");
	assert_int_equal(sim_count_syns(s, 0), 2); // the second one hangs
	sim_free(s);
}

// A56-P08
static void unused_priority_keeps_its_connections_15_minutes(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	sim_set(s, 0, SIM_SILENT);
	sim_update(s, "a: 0; b: 1 2");
	sim_run_to(s, 15 * SIM_S);
	sim_set(s, 0, SIM_UP);
	sim_run_to(s, 30 * SIM_S);
	assert_string_equal(s->label, "P0"); // since 20.003
	sim_forget(s);
	sim_run_to(s, (20 + 15 * 60) * SIM_S);
	assert_int_equal(sim_n_connections(s, 1) + sim_n_connections(s, 2), 2);
	sim_run_to(s, (21 + 15 * 60) * SIM_S);
	assert_int_equal(sim_n_connections(s, 1) + sim_n_connections(s, 2), 0);
	sim_expect(s, "");
	sim_set(s, 0, SIM_REFUSES); // made anew
	sim_reset(s, 0);
	sim_run(s, 100 * SIM_MS);
	sim_expect(s, "921.000 syn 0\n"
		      "921.000 CONNECTING\n"
		      "921.001 syn 1\n"
		      "921.001 syn 2\n"
		      "921.001 queue\n"
		      "921.003 READY\n"
		      "921.003 P1\n");
	sim_free(s);
}

// A56-P02: an IDLE priority keeps the requests, which wake it, although the next one is READY.
static void idle_priority_is_as_good_as_a_ready_one(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	s->leaves[0].config.spec = &ring;
	sim_set(s, 0, SIM_REFUSES);
	sim_update(s, "a: 0; b: 1");
	sim_run(s, 500 * SIM_MS);
	sim_set(s, 0, SIM_UP);
	sim_run_to(s, 10 * SIM_S);
	sim_expect(s, "0.000 IDLE\n"
		      "0.000 syn 0\n"
		      "0.000 CONNECTING\n"
		      "0.000 queue\n"
		      "0.001 IDLE\n"
		      "0.001 syn 1\n"
		      "0.001 CONNECTING\n"
		      "0.003 READY\n"
		      "0.003 P1\n"
		      "1.082 syn 0\n"
		      "1.084 P0\n");
	s->probes = false;
	sim_reset(s, 0);
	sim_run_to(s, 60 * SIM_S);
	s->probes = true;
	sim_run(s, 500 * SIM_MS);
	sim_run(s, 500 * SIM_MS);
	sim_expect(s, "10.000 IDLE\n"
		      "60.500 syn 0\n"
		      "60.500 CONNECTING\n"
		      "60.500 queue\n"
		      "60.502 READY\n"
		      "60.502 P0\n");
	assert_int_equal(sim_n_connections(s, 1), 1);
	sim_free(s);
}

// A56-P07, ERR-01: nobody serves and one still tries: requests wait. All fail: the last one tells.
static void requests_wait_for_the_first_that_tries_and_fail_with_the_last(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	sim_set(s, 0, SIM_REFUSES);
	sim_set(s, 1, SIM_SILENT);
	sim_set(s, 2, SIM_REFUSES);
	sim_update(s, "a: 0; b: 1; c: 2");
	sim_run_to(s, 30 * SIM_S);
	sim_expect(s, "0.000 syn 0\n"
		      "0.000 CONNECTING\n"
		      "0.000 queue\n"
		      "0.001 syn 1\n"
		      "1.082 syn 0\n"
		      "2.696 syn 0\n"
		      "5.332 syn 0\n"
		      "9.250 syn 0\n"
		      "10.001 syn 2\n"
		      "10.859 syn 2\n"
		      "12.185 syn 2\n"
		      "14.624 syn 2\n"
		      "16.321 syn 0\n"
		      "19.322 syn 2\n"
		      "20.001 TRANSIENT_FAILURE\n"
		      "20.001 fail: cluster orders: none of 1 endpoints is usable, last "
		      "error: 10.0.0.2:80: refused\n"
		      "20.002 syn 1\n"
		      "27.010 syn 2\n"
		      "27.024 syn 0\n");
	sim_free(s);
}

// A56-P10, UPD-03: what is no longer named goes with its connections, at once.
static void priority_that_is_no_longer_named_is_dropped_at_once(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	sim_set(s, 0, SIM_REFUSES);
	sim_update(s, "a: 0; b: 1 2");
	sim_run_to(s, 500 * SIM_MS);
	sim_set(s, 0, SIM_UP);
	sim_run_to(s, 5 * SIM_S);
	assert_int_equal(sim_n_connections(s, 1) + sim_n_connections(s, 2), 2);
	sim_forget(s);
	// The connection that another child of the leaf takes over goes on.
	sim_update(s, "a: 0 2");
	sim_run(s, 100 * SIM_MS);
	assert_int_equal(sim_n_connections(s, 1), 0);
	assert_int_equal(sim_n_connections(s, 2), 1);
	sim_expect(s, "");
	sim_free(s);
}

// A56-P11, A74-C03, A74-C04, UPD-02: names follow localities; nobody reconnects.
static void priorities_that_swap_localities_keep_their_connections(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	sim_set(s, 0, SIM_SILENT);
	sim_update(s, "a: 0 1; b: 2 3");
	sim_set(s, 1, SIM_UP);
	sim_run_to(s, 5 * SIM_S);
	sim_forget(s);
	sim_update(s, "b: 2 3; a: 0 1");
	sim_run(s, SIM_S);
	sim_expect(s, "5.000 syn 2\n"
		      "5.000 syn 3\n"
		      "5.000 CONNECTING\n"
		      "5.000 queue\n"
		      "5.002 READY\n"
		      "5.002 P0\n");
	sim_update(s, "a: 0 1; b: 2 3");
	sim_run(s, SIM_S);
	sim_expect(s, "");
	sim_free(s);
}

// A56-P12
static void update_makes_one_choice(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	sim_set(s, 0, SIM_REFUSES);
	sim_update(s, "a: 0; b: 1; c: 2");
	sim_run(s, 500 * SIM_MS);
	uint64_t version = s->version;
	sim_update(s, "a: 0 4; b: 1 5; c: 2 6");
	assert_int_equal(s->version, version + 1);
	sim_free(s);
}

// A56-P13, A74-C08, ERR-01
static void cluster_without_endpoints_fails_with_its_note(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	s->leaves[0].config.note = "EDS orders-eds: no localities";
	sim_update(s, "");
	sim_run(s, SIM_S);
	sim_expect(s, "0.000 TRANSIENT_FAILURE\n"
		      "0.000 fail: cluster orders: no locality has usable endpoints (EDS "
		      "orders-eds: no localities)\n");
	sim_free(s);
}

static const char *const two_leaves[] = {"leaf0", "leaf1"};

// A75-G09
static void next_leaf_serves_while_the_first_fails_and_no_longer(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	sim_update_leaf(s, 0, "a: 0");
	sim_update_leaf(s, 1, "a: 10");
	sim_aggregate(s, 2, two_leaves);
	sim_run_to(s, 5 * SIM_S);
	sim_expect(s, "0.000 syn 0\n"
		      "0.000 CONNECTING\n"
		      "0.000 queue\n"
		      "0.002 READY\n"
		      "0.002 leaf0 P0\n");
	sim_set(s, 0, SIM_REFUSES);
	sim_reset(s, 0);
	sim_run(s, 500 * SIM_MS);
	sim_expect(s, "5.000 syn 0\n"
		      "5.000 CONNECTING\n"
		      "5.001 syn 10\n"
		      "5.001 queue\n"
		      "5.003 READY\n"
		      "5.003 leaf1 P0\n");
	sim_set(s, 0, SIM_UP);
	sim_run(s, 5 * SIM_S);
	assert_string_equal(s->label, "leaf0 P0");
	sim_forget(s);
	// Another order: leaves keep what they have.
	static const char *const other[] = {"leaf1", "leaf0", "leaf2"};
	sim_update_leaf(s, 2, "a: 20");
	sim_aggregate(s, 3, other);
	sim_run(s, SIM_S);
	sim_expect(s, "10.500 leaf1 P0\n");
	sim_free(s);
}

// A75-G11
static void hanging_priority_starts_the_next_one_and_the_next_leaf_together(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	sim_set(s, 0, SIM_SILENT);
	s->hosts[1].syn_ns = 100 * SIM_MS; // slower than the other leaf
	sim_update_leaf(s, 0, "a: 0; b: 1");
	sim_update_leaf(s, 1, "a: 10");
	sim_aggregate(s, 2, two_leaves);
	sim_run_to(s, 15 * SIM_S);
	sim_expect(s, "0.000 syn 0\n"
		      "0.000 CONNECTING\n"
		      "0.000 queue\n"
		      "10.000 syn 10\n"
		      "10.000 syn 1\n"
		      "10.002 READY\n"
		      "10.002 leaf1 P0\n"
		      "10.101 leaf0 P1\n");
	sim_free(s);
}

// A75-G12
static void leaf_that_drops_everything_keeps_the_requests(void **state)
{
	(void)state;
	static const struct lb_drop_category all = {"maintenance", LB_DROP_ALL};
	struct sim *s = sim_new(1, 1);
	sim_set(s, 0, SIM_REFUSES);
	s->leaves[0].config.drops = &all;
	s->leaves[0].config.n_drops = 1;
	sim_update_leaf(s, 0, "a: 0");
	sim_update_leaf(s, 1, "a: 10");
	sim_aggregate(s, 2, two_leaves);
	sim_run_to(s, 900 * SIM_MS);
	sim_expect(s, "0.000 syn 0\n"
		      "0.000 READY\n"
		      "0.000 drop\n");
	assert_int_equal(sim_count_syns(s, 10), 0);
	sim_free(s);
}

// WT-07: its state stays what it was, but requests wait for what the update brings, as long as
// its handshake takes.
static void update_that_repairs_the_only_priority_fails_no_request(void **state)
{
	(void)state;
	static const char *const repaired[] = {"a: 2", "a: 0 2", "a: 0 1d 2"};
	for (size_t i = 0; i < 3; i++) {
		struct sim *s = sim_new(1, 1);
		sim_set(s, 0, SIM_REFUSES);
		s->hosts[2].syn_ns = 150 * SIM_MS;
		sim_update(s, i < 2 ? "a: 0" : "a: 0 1d 2d"); // d: policies don't use it
		sim_run(s, 500 * SIM_MS);
		assert_non_null(strstr(s->label, "fail"));
		sim_forget(s);
		sim_update(s, repaired[i]);
		sim_run(s, 300 * SIM_MS);
		sim_expect(s, "0.500 syn 2\n"
			      "0.500 queue\n"
			      "0.651 READY\n"
			      "0.651 P0\n");
		sim_free(s);
	}
}

// WT-07: the same, and the priority that serves goes with that update.
static void update_that_repairs_a_priority_and_takes_the_next_fails_no_request(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	sim_set(s, 0, SIM_REFUSES);
	s->hosts[2].syn_ns = 150 * SIM_MS;
	sim_update(s, "a: 0; b: 1");
	sim_run(s, 500 * SIM_MS);
	assert_string_equal(s->label, "P1");
	sim_forget(s);
	sim_update(s, "a: 2");
	sim_run(s, 300 * SIM_MS);
	sim_expect(s, "0.500 syn 2\n"
		      "0.500 TRANSIENT_FAILURE\n"
		      "0.500 queue\n"
		      "0.651 READY\n"
		      "0.651 P0\n");
	sim_free(s);
}

static void update_that_repairs_a_leaf_and_takes_the_next_fails_no_request(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	sim_set(s, 0, SIM_REFUSES);
	s->hosts[2].syn_ns = 150 * SIM_MS;
	sim_update_leaf(s, 0, "a: 0");
	sim_update_leaf(s, 1, "a: 10");
	sim_aggregate(s, 2, two_leaves);
	sim_run(s, 500 * SIM_MS);
	assert_string_equal(s->label, "leaf1 P0");
	sim_forget(s);
	sim_update_leaf(s, 0, "a: 2");
	sim_aggregate(s, 1, two_leaves);
	sim_run(s, 300 * SIM_MS);
	sim_expect(s, "0.500 syn 2\n"
		      "0.500 TRANSIENT_FAILURE\n"
		      "0.500 queue\n"
		      "0.651 READY\n"
		      "0.651 leaf0 P0\n");
	sim_free(s);
}

// BO-03: it is connected to again at once, each time; so the next one is not even made.
static void priority_that_loses_its_connection_each_second_serves_on(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	sim_update(s, "a: 0; b: 1");
	sim_run_to(s, SIM_S);
	sim_forget(s);
	for (int i = 0; i < 20; i++) {
		sim_reset(s, 0);
		sim_run(s, 3 * SIM_MS);
		assert_string_equal(s->label, "P0");
		sim_run(s, 997 * SIM_MS);
	}
	assert_int_equal(sim_count_syns(s, 0), 21);
	assert_int_equal(sim_count_syns(s, 1), 0);
	sim_free(s);
}

// A56-P08: who comes and goes is waited for as long as it takes to be refused, and the next one has
// kept its connection.
static void priority_that_comes_and_goes_lets_the_next_one_serve(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	sim_update(s, "a: 0; b: 1");
	for (int i = 0; i < 20; i++) {
		sim_set(s, 0, SIM_UP);
		sim_run(s, 10 * SIM_S);
		assert_string_equal(s->label, "P0");
		sim_set(s, 0, SIM_REFUSES);
		sim_reset(s, 0);
		sim_run(s, (i ? 2 : 4) * SIM_MS); // it had to be connected first
		assert_string_equal(s->label, "P1");
		sim_forget(s);
		sim_run(s, 2 * SIM_S);
		assert_null(strstr(s->log, "queue"));
	}
	assert_int_equal(sim_count_syns(s, 1), 1);
	sim_free(s);
}

// BO-04
static void nobody_waits_for_a_priority_that_hangs_up(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	sim_update(s, "a: 0; b: 1");
	sim_run(s, 10 * SIM_S);
	sim_set(s, 0, SIM_HANGS_UP);
	sim_reset(s, 0);
	sim_run(s, 5 * SIM_MS);
	assert_string_equal(s->label, "P1");
	sim_forget(s);
	sim_run(s, 100 * SIM_S);
	assert_null(strstr(s->log, "queue"));
	assert_string_equal(s->label, "P1");
	assert_in_range(sim_count_syns(s, 0), 80, 130);
	assert_int_equal(sim_count_syns(s, 1), 1);
	sim_free(s);
}

RUN_SUITE("sim/balance/priority",
	cmocka_unit_test(lower_priority_is_not_connected_while_the_first_serves),
	cmocka_unit_test(refused_priorities_are_left_at_once),
	cmocka_unit_test(silent_priority_has_10_seconds_and_returns_when_it_answers),
	cmocka_unit_test(lost_priority_has_10_seconds_again_although_the_next_is_ready),
	cmocka_unit_test(failing_priority_gets_no_time_for_its_attempts),
	cmocka_unit_test(unused_priority_keeps_its_connections_15_minutes),
	cmocka_unit_test(idle_priority_is_as_good_as_a_ready_one),
	cmocka_unit_test(requests_wait_for_the_first_that_tries_and_fail_with_the_last),
	cmocka_unit_test(priority_that_is_no_longer_named_is_dropped_at_once),
	cmocka_unit_test(priorities_that_swap_localities_keep_their_connections),
	cmocka_unit_test(update_makes_one_choice),
	cmocka_unit_test(cluster_without_endpoints_fails_with_its_note),
	cmocka_unit_test(next_leaf_serves_while_the_first_fails_and_no_longer),
	cmocka_unit_test(hanging_priority_starts_the_next_one_and_the_next_leaf_together),
	cmocka_unit_test(leaf_that_drops_everything_keeps_the_requests),
	cmocka_unit_test(update_that_repairs_the_only_priority_fails_no_request),
	cmocka_unit_test(update_that_repairs_a_priority_and_takes_the_next_fails_no_request),
	cmocka_unit_test(update_that_repairs_a_leaf_and_takes_the_next_fails_no_request),
	cmocka_unit_test(priority_that_loses_its_connection_each_second_serves_on),
	cmocka_unit_test(priority_that_comes_and_goes_lets_the_next_one_serve),
	cmocka_unit_test(nobody_waits_for_a_priority_that_hangs_up))
