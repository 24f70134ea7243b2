// SPDX-License-Identifier: Apache-2.0
// RR-*, RH-*, PF-* and BO-* as timelines: who is asked to connect, when, and how often.
#include "lb/base/time.h"
#include "tests/sim/balance/sim.h"
#include "tests/support/check.h"

#include <math.h>
#include <stdio.h>

static const struct lb_policy_spec ring = {
	.kind = LB_POLICY_RING_HASH, .ring_hash = {.min_size = 64, .max_size = 64}};
static const struct lb_policy_spec first = {.kind = LB_POLICY_PICK_FIRST};

// The n-th SYN to an address, in seconds.
static double syn_at(const struct sim *s, uint32_t address, uint32_t n)
{
	for (uint32_t i = 0; i < s->n_syns; i++)
		if (s->syns[i].address == address && n-- == 0)
			return (double)s->syns[i].at_ns / (double)NS_PER_SECOND;
	fail_msg("no such SYN to %u", address);
	return 0;
}

static const double delays[] = {
	1, 1.6, 2.56, 4.096, 6.554, 10.486, 16.777, 26.844, 42.95, 68.72, 109.95, 120, 120};
#define N_DELAYS (sizeof(delays) / sizeof(delays[0]))

// BO-01: 1, 1.6, 2.56, 4.1, 6.6, 10.5, 16.8, 26.8, 43, 68.7, 110, 120 s, each ±20 %.
static void refusing_backend_is_tried_at_the_documented_distances(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct sim *s = sim_new(1, seed);
		sim_set(s, 0, SIM_REFUSES);
		sim_update(s, "a: 0");
		sim_run(s, 900 * SIM_S);
		for (uint32_t i = 0; i < N_DELAYS; i++) {
			double distance = syn_at(s, 0, i + 1) - syn_at(s, 0, i);
			assert_true(distance >= 0.8 * delays[i]);
			assert_true(distance <= 1.2 * delays[i] + 0.005); // ticks
		}
		sim_free(s);
	}
}

// TH-67, RR-01, paced: hosts that never answer hold up the others for a moment only.
static void paced_backends_are_connected_one_after_the_other(void **state)
{
	(void)state;
	struct sim *s = sim_new_paced(1, 1, 2, 8);
	for (uint32_t i = 0; i < 4; i++)
		sim_set(s, i, SIM_SILENT);
	sim_update(s, "a: 0 1 2 3, b: 4 5 6 7 8 9");
	assert_int_equal(s->n_syns, 2);
	sim_run(s, 5 * SIM_S);
	assert_int_equal(s->n_syns, 10);
	for (uint32_t i = 4; i < 10; i++)
		assert_int_equal(sim_n_connections(s, i), 1);
	sim_run(s, 14 * SIM_S);
	assert_int_equal(s->n_syns, 10);
	for (uint32_t i = 0; i < 4; i++)
		sim_set(s, i, SIM_UP);
	sim_run(s, 10 * SIM_S); // others follow
	assert_int_equal(s->n_syns, 14);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(sim_n_connections(s, i), 1);
	sim_free(s);
}

// As many attempts as may be are to hosts that never answer: what a request expedites may be one
// more, and finds the one that serves.
static void request_gets_an_attempt_that_others_wait_for(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct sim *s = sim_new_paced(1, seed, 4, 4);
		for (uint32_t i = 0; i < 4; i++)
			sim_set(s, i, SIM_SILENT);
		sim_update(s, "a: 0 1 2 3 4");
		sim_run(s, 3 * SIM_S);
		assert_int_equal(s->n_syns, 4);
		struct sim_request *r = sim_begin(s, 0);
		sim_start(s, r);
		sim_run(s, 50 * SIM_MS);
		assert_int_equal(r->outcome, SIM_SENT);
		assert_int_equal(r->address, 4);
		sim_end(s, r);
		sim_free(s);
	}
}

// Requests may wait for hours while nobody answers: it is no use to look again and again whom they
// could expedite.
static void cluster_that_has_enough_young_attempts_rests(void **state)
{
	(void)state;
	struct sim *s = sim_new_paced(1, 1, 32, 64);
	s->probes = false;
	for (uint32_t i = 0; i < 44; i++)
		sim_set(s, i, SIM_SILENT);
	sim_update(s, "a: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21, "
		      "b: 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43");
	assert_int_equal(s->n_syns, 32);
	assert_in_range(lb_leaf_expedite(s->leaf), 8, 44);
	uint32_t n_syns = s->n_syns;
	assert_in_range(n_syns, 32, 40);
	sim_run(s, 990 * SIM_MS);
	assert_int_equal(lb_leaf_expedite(s->leaf), 0);
	assert_int_equal(s->n_syns, n_syns);
	sim_run(s, 10 * SIM_MS); // some of them may be old
	assert_in_range(lb_leaf_expedite(s->leaf), 8, 44);
	assert_int_equal(lb_leaf_expedite(s->leaf), 0);
	sim_free(s);
}

static void who_cannot_begin_yet_is_not_taken_up_for_a_request(void **state)
{
	(void)state;
	struct sim *s = sim_new_paced(1, 1, 4, 4);
	s->probes = false;
	for (uint32_t i = 0; i < 20; i++)
		sim_set(s, i, SIM_SILENT);
	sim_update(s, "a: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19");
	assert_int_equal(s->n_syns, 4); // four wait, the others are put off
	const struct lb_endpoint_table *t = lb_connectivity_endpoints(s->connectivity);
	assert_int_equal(lb_endpoint_table_count(t), 8);
	assert_int_not_equal(lb_leaf_expedite(s->leaf), 0);
	assert_int_equal(s->n_syns, 5); // a quarter more
	for (int i = 0; i < 20; i++)
		assert_int_equal(lb_leaf_expedite(s->leaf), 0);
	assert_in_range(lb_endpoint_table_count(t), 8, 9);
	sim_free(s);
}

static void cluster_all_of_whose_endpoints_have_a_backoff_rests(void **state)
{
	(void)state;
	struct sim *s = sim_new_paced(1, 1, 4, 4);
	s->probes = false;
	sim_aggregate(s, 2, (const char *const[]){"leaf0", "leaf1"});
	for (uint32_t i = 0; i < 20; i++)
		sim_set(s, i, i < 4 ? SIM_REFUSES : SIM_SILENT);
	sim_update_leaf(s, 0, "a: 0 1 2 3");
	sim_run(s, 10 * SIM_MS);
	sim_update_leaf(s, 1, "a: 10 11 12 13 14 15 16 17 18 19");
	struct lb_leaf *leaf = lb_aggregate_leaf(s->aggregate, "leaf0");
	assert_int_equal(s->n_syns, 8);
	assert_int_equal(lb_leaf_expedite(leaf), 4);
	sim_run(s, 500 * SIM_MS);
	assert_int_equal(lb_leaf_expedite(leaf), 0); // the others wait on
	assert_int_equal(s->n_syns, 8);
	sim_run(s, 700 * SIM_MS);
	uint32_t n = s->n_syns; // some of leaf1 were there first
	assert_int_not_equal(lb_leaf_expedite(leaf), 0);
	assert_int_not_equal(s->n_syns, n);
	sim_free(s);
}

// RR-01: hosts that never answer are tried again and again, and keep nobody from a first attempt.
static void each_backend_has_an_attempt_while_others_fail_for_ever(void **state)
{
	(void)state;
	struct sim *s = sim_new_paced(1, 1, 2, 4);
	s->probes = false;
	for (uint32_t i = 0; i < 48; i++)
		sim_set(s, i, SIM_SILENT);
	sim_update(s, "a: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23, "
		      "b: 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47");
	sim_run(s, 1200 * SIM_S);
	for (uint32_t i = 0; i < 48; i++)
		assert_int_not_equal(sim_count_syns(s, i), 0);
	sim_free(s);
}

// BO-02: an attempt has 20 s, and the distance is that of their starts.
static void silent_backend_is_given_20_seconds_an_attempt(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 3);
	sim_set(s, 0, SIM_SILENT);
	sim_update(s, "a: 0");
	sim_run(s, 600 * SIM_S);
	for (uint32_t i = 0; i < 10; i++) {
		double distance = syn_at(s, 0, i + 1) - syn_at(s, 0, i);
		assert_true(distance >= fmax(20, 0.8 * delays[i]));
		assert_true(distance <= fmax(20, 1.2 * delays[i]) + 0.005);
	}
	sim_free(s);
}

// BO-03: a connection without SETTINGS is none.
static void only_settings_end_the_backoff(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 4);
	sim_set(s, 0, SIM_MUTE);
	sim_update(s, "a: 0");
	sim_run(s, 300 * SIM_S);
	assert_true(syn_at(s, 0, 9) - syn_at(s, 0, 8) > 30);
	assert_string_equal(s->label,
		"fail: cluster orders: none of 1 endpoints is usable, last error: "
		"10.0.0.0:80: no SETTINGS");
	sim_set(s, 0, SIM_UP);
	sim_run(s, 150 * SIM_S);
	assert_string_equal(s->label, "P0");
	uint32_t n = sim_count_syns(s, 0);
	sim_set(s, 0, SIM_REFUSES);
	sim_reset(s, 0);
	sim_run(s, 100 * SIM_S);
	assert_true(syn_at(s, 0, n + 1) - syn_at(s, 0, n) <= 1.21); // from the start again
	sim_free(s);
}

// BO-04, MC-07: over all workers; who has no connection asks nobody while it fails.
static void dead_backend_sees_no_more_attempts_of_four_workers_than_of_one(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct sim *s = sim_new(4, seed);
		s->load_ns = 10 * SIM_MS;
		sim_update(s, "a: 0 1");
		sim_run(s, 5 * SIM_S);
		for (uint32_t i = 0; i < 4; i++)
			assert_true(sim_is_connected(s, i, 0));
		uint32_t n = sim_count_syns(s, 0);
		sim_set(s, 0, SIM_REFUSES);
		sim_reset(s, 0);
		sim_run(s, 300 * SIM_S);
		for (uint32_t i = 0; i < 8; i++) {
			double distance = syn_at(s, 0, n + i + 1) - syn_at(s, 0, n + i);
			assert_true(distance >= 0.8 * delays[i]);
			assert_true(distance <= 1.2 * delays[i] + 0.005);
		}
		// Success frees the others: within one request of theirs each has its own again.
		sim_set(s, 0, SIM_UP);
		sim_run(s, 150 * SIM_S);
		for (uint32_t i = 0; i < 4; i++)
			assert_true(sim_is_connected(s, i, 0));
		sim_free(s);
	}
}

// RR-01, RR-03: eager, and reconnects unasked.
static void round_robin_connects_all_and_keeps_them(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	sim_update(s, "a: 0 1 2");
	sim_run(s, 5 * SIM_S);
	sim_reset(s, 1);
	sim_run(s, SIM_S);
	sim_goaway(s, 2);
	sim_run(s, SIM_S);
	sim_expect(s, "0.000 syn 0\n"
		      "0.000 syn 1\n"
		      "0.000 syn 2\n"
		      "0.000 CONNECTING\n"
		      "0.000 queue\n"
		      "0.002 READY\n"
		      "0.002 P0\n"
		      "5.000 syn 1\n"
		      "6.000 syn 2\n");
	sim_free(s);
}

// PF-02, PF-03, PF-04
static void addresses_are_tried_a_quarter_second_apart_and_the_first_wins(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	s->leaves[0].config.spec = &first;
	s->hosts[0].settings_ns = 600 * SIM_MS; // late, but the first one
	sim_set(s, 1, SIM_SILENT);
	s->hosts[2].settings_ns = 200 * SIM_MS;
	sim_update(s, "a: 0 1 2 3");
	sim_run(s, 2 * SIM_S);
	sim_expect(s, "0.000 syn 0\n"
		      "0.000 CONNECTING\n"
		      "0.000 queue\n"
		      "0.250 syn 1\n"
		      "0.500 syn 2\n"
		      "0.601 READY\n"
		      "0.601 P0\n");
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(sim_n_connections(s, i), i == 0);
	sim_free(s);
}

// PF-02: a failure has the next one tried at once.
static void refused_address_is_left_at_once(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	s->leaves[0].config.spec = &first;
	sim_set(s, 0, SIM_REFUSES);
	sim_set(s, 1, SIM_REFUSES);
	sim_update(s, "a: 0 1 2");
	sim_run(s, 2 * SIM_S);
	sim_expect(s, "0.000 syn 0\n"
		      "0.000 CONNECTING\n"
		      "0.000 queue\n"
		      "0.001 syn 1\n"
		      "0.002 syn 2\n"
		      "0.004 READY\n"
		      "0.004 P0\n");
	sim_free(s);
}

// PF-05, ERR-01: requests wait until each has failed, and then all are tried side by side, each
// after its own backoff; newer addresses are asked for.
static void pick_first_fails_after_each_address_did_and_stays_so(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	s->leaves[0].config.spec = &first;
	sim_set(s, 0, SIM_REFUSES);
	sim_set(s, 1, SIM_SILENT);
	sim_update(s, "a: 0 1");
	sim_run_to(s, 20 * SIM_S);
	sim_expect(s, "0.000 syn 0\n"
		      "0.000 CONNECTING\n"
		      "0.000 queue\n"
		      "0.001 syn 1\n");
	assert_int_equal(s->n_resolutions, 0);
	sim_run_to(s, 40 * SIM_S);
	sim_expect(s, "20.001 syn 0\n"
		      "20.001 TRANSIENT_FAILURE\n"
		      "20.001 fail: cluster orders: none of 2 endpoints is usable, last "
		      "error: 10.0.0.1:80: connect timeout\n"
		      "20.002 syn 1\n"
		      "20.002 fail: cluster orders: none of 2 endpoints is usable, last "
		      "error: 10.0.0.0:80: refused\n"
		      "21.649 syn 0\n"
		      "24.411 syn 0\n"
		      "27.924 syn 0\n"
		      "33.354 syn 0\n");
	assert_in_range(s->n_resolutions, 2, 4); // one for two failures
	sim_set(s, 1, SIM_UP);
	sim_run_to(s, 60 * SIM_S);
	assert_string_equal(s->label, "P0");
	sim_free(s);
}

// PF-06
static void lost_pick_first_rests_until_a_request_comes(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	s->leaves[0].config.spec = &first;
	sim_update(s, "a: 0 1");
	sim_run_to(s, 5 * SIM_S);
	sim_forget(s);
	s->probes = false;
	sim_reset(s, 0);
	sim_run_to(s, 60 * SIM_S);
	sim_expect(s, "5.000 IDLE\n");
	assert_int_equal(s->n_resolutions, 1);
	struct sim_request *r = sim_begin(s, 0);
	sim_start(s, r);
	sim_run(s, SIM_S);
	assert_int_equal(r->outcome, SIM_SENT);
	sim_expect(s, "60.000 syn 0\n"
		      "60.000 CONNECTING\n"
		      "60.002 READY\n");
	sim_free(s);
}

// PF-07
static void new_list_keeps_the_connection_that_it_contains(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	s->leaves[0].config.spec = &first;
	sim_set(s, 0, SIM_REFUSES);
	sim_update(s, "a: 0 1");
	sim_run_to(s, 2 * SIM_S);
	assert_int_equal(sim_n_connections(s, 1), 1);
	sim_forget(s);
	sim_update(s, "a: 5 6 1");
	sim_run(s, 2 * SIM_S);
	sim_expect(s, ""); // PF-08 too: nothing has changed for requests
	sim_update(s, "a: 5 6");
	sim_run(s, 2 * SIM_S);
	sim_expect(s, "4.000 syn 5\n"
		      "4.000 CONNECTING\n"
		      "4.000 queue\n"
		      "4.002 READY\n"
		      "4.002 P0\n");
	assert_int_equal(sim_n_connections(s, 1), 0);
	sim_free(s);
}

// PF-08: an endpoint of two addresses whose first is dead is one unit with one connection.
static void endpoint_of_two_addresses_connects_by_the_second(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	sim_set(s, 0, SIM_SILENT);
	sim_update(s, "a: 0+1 2");
	sim_run(s, 2 * SIM_S);
	sim_expect(s, "0.000 syn 0\n"
		      "0.000 syn 2\n"
		      "0.000 CONNECTING\n"
		      "0.000 queue\n"
		      "0.002 READY\n"
		      "0.002 P0\n"
		      "0.250 syn 1\n");
	s->load_ns = 10 * SIM_MS;
	s->probes = false; // they take turns
	sim_run(s, 10 * SIM_S);
	assert_int_equal(s->n_served[0], 0);
	assert_in_range(s->n_served[1], 499, 502);
	assert_in_range(s->n_served[2], 499, 502);
	sim_forget(s);
	sim_update(s, "a: 1+0 2"); // the same endpoint
	sim_run(s, 2 * SIM_S);
	sim_expect(s, "");
	sim_free(s);
}

#define N_DUAL 24
#define N_ASKS 200

// Endpoints with an address of either family, each second one with that of IPv4 first. One family
// gets no answer; hosts of the other one are 5 ms away at most, and have their SETTINGS as soon.
static struct sim *dual_world(uint64_t seed)
{
	struct sim *s = sim_new_paced(1 + (uint32_t)(seed / 2 % 4), seed, 1024, 2048);
	char plan[16 * N_DUAL] = "a:";
	s->leaves[0].config.spec = &ring;
	s->probes = false;
	for (uint32_t i = 0; i < N_DUAL; i++) {
		uint32_t v6 = PLAN_IP6 + i, live = seed % 2 ? i : v6;
		size_t n = strlen(plan);
		snprintf(plan + n, sizeof(plan) - n, " %u+%u", i % 2 ? i : v6, i % 2 ? v6 : i);
		sim_set(s, i + v6 - live, SIM_SILENT);
		s->hosts[live].syn_ns = 1 + rand_below(&s->rand, 5 * SIM_MS);
		s->hosts[live].settings_ns = 1 + rand_below(&s->rand, 5 * SIM_MS);
	}
	sim_update(s, plan);
	return s;
}

// PF-02 (RFC 8305 5): whoever asks first for an endpoint waits for the delay and for a connection,
// or for two where its worker needs one of its own; and each has its answer's first byte a round
// trip later.
static void answers_begin_within_300_ms_where_a_family_is_dark(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct sim *s = dual_world(seed);
		struct sim_request *asks[N_ASKS];
		uint64_t began_ns[N_ASKS];
		uint32_t n_late = 0;
		for (uint32_t i = 0; i < N_ASKS; i++) {
			asks[i] = sim_begin(s, i % s->n_workers);
			asks[i]->hash = (struct lb_pick_hash){rand_u64(&s->rand), true};
			asks[i]->lasts_ns = 3600 * SIM_S;
			began_ns[i] = twheel_now(s->wheel);
			sim_start(s, asks[i]);
			sim_run(s, rand_below(&s->rand, 10) * SIM_MS);
		}
		sim_run(s, 300 * SIM_MS);
		for (uint32_t i = 0; i < N_ASKS; i++) {
			const struct sim_request *r = asks[i];
			assert_int_equal(r->outcome, SIM_SENT);
			uint64_t sent_ns = r->end_ns - r->lasts_ns - began_ns[i];
			assert_in_range(sent_ns + s->hosts[r->address].syn_ns, 0, 300 * SIM_MS);
			n_late += sent_ns >= 250 * SIM_MS;
		}
		assert_in_range(n_late, N_DUAL / 4, N_DUAL);
		sim_free(s);
	}
}

static struct sim_request *with_hash(struct sim *s, uint32_t worker, uint64_t hash)
{
	struct sim_request *r = sim_begin(s, worker);
	r->hash = (struct lb_pick_hash){hash, true};
	sim_start(s, r);
	return r;
}

// RH-04, RH-05: nobody connects before a request needs it, and then the one that it needs.
static void ring_connects_whom_a_request_needs(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	s->leaves[0].config.spec = &ring;
	s->probes = false;
	sim_update(s, "a: 0 1 2");
	sim_run_to(s, 60 * SIM_S);
	sim_expect(s, "0.000 IDLE\n");
	struct sim_request *r = with_hash(s, 0, 1), *same;
	sim_run(s, SIM_S);
	assert_int_equal(r->outcome, SIM_SENT);
	assert_int_equal(s->n_syns, 1);
	same = with_hash(s, 0, 1);
	assert_int_equal(same->address, r->address);
	// RH-04: it fails, and the next one on the ring has its requests.
	uint32_t mine = r->address;
	sim_set(s, mine, SIM_REFUSES);
	sim_reset(s, mine);
	sim_run(s, SIM_S);
	sim_forget(s);
	struct sim_request *next = with_hash(s, 0, 1);
	assert_int_equal(next->outcome, SIM_WAITS);
	sim_run(s, SIM_S);
	assert_int_equal(next->outcome, SIM_SENT);
	assert_int_not_equal(next->address, mine);
	sim_free(s);
}

// RH-05: whom a request needs need not wait for attempts that none needs any more, though others of
// the ring serve.
static void ring_that_serves_connects_whom_else_a_request_needs(void **state)
{
	(void)state;
	struct sim *s = sim_new_paced(1, 1, 2, 2);
	s->leaves[0].config.spec = &ring;
	s->probes = false;
	sim_update(s, "a: 0 1 2 3");
	struct sim_request *r = with_hash(s, 0, 0);
	sim_run(s, SIM_S);
	assert_int_equal(r->outcome, SIM_SENT);
	for (uint32_t i = 0; i < 4; i++)
		sim_set(s, i, SIM_SILENT);
	uint64_t hash = 1;
	for (; s->n_syns < 3 && hash < 200; hash++)
		with_hash(s, 0, hash * UINT64_C(0x9e3779b97f4a7c15));
	for (uint32_t i = 0; i < 4; i++)
		sim_set(s, i, SIM_UP); // which is too late for two
	for (; s->n_syns < 4 && hash < 400; hash++)
		r = with_hash(s, 0, hash * UINT64_C(0x9e3779b97f4a7c15));
	assert_int_equal(s->n_syns, 4);
	assert_int_equal(r->outcome, SIM_WAITS);
	sim_run(s, 50 * SIM_MS);
	assert_int_equal(r->outcome, SIM_SENT);
	sim_free(s);
}

// RH-06, RH-07: two fail, and it goes on by itself; all fail: the first one's error.
static void failing_ring_looks_for_somebody_who_works(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	s->leaves[0].config.spec = &ring;
	s->probes = false;
	for (uint32_t i = 0; i < 4; i++)
		sim_set(s, i, SIM_REFUSES);
	sim_update(s, "a: 0 1 2 3");
	struct sim_request *r = with_hash(s, 0, 1);
	sim_run(s, 500 * SIM_MS);
	sim_expect(s, "0.000 IDLE\n"
		      "0.000 syn 3\n"
		      "0.000 CONNECTING\n"
		      "0.001 syn 0\n"
		      "0.001 syn 2\n"
		      "0.002 TRANSIENT_FAILURE\n"
		      "0.002 syn 1\n");
	assert_int_equal(r->outcome, SIM_FAILED);
	assert_non_null(strstr(r->text, "refused"));
	struct sim_request *later = with_hash(s, 0, 2);
	assert_int_equal(later->outcome, SIM_FAILED);
	sim_set(s, 2, SIM_UP);
	sim_run(s, 2 * SIM_S);
	assert_int_equal(s->state, LB_READY);
	sim_free(s);
}

// RH-06: a lost connection leaves it IDLE, and does not come back unasked (RH-05).
static void ring_that_loses_its_connection_is_idle(void **state)
{
	(void)state;
	struct sim *s = sim_new(1, 1);
	s->leaves[0].config.spec = &ring;
	s->probes = false;
	sim_update(s, "a: 0 1");
	struct sim_request *r = with_hash(s, 0, 1);
	sim_run(s, 5 * SIM_S);
	sim_reset(s, r->address);
	sim_run(s, 60 * SIM_S);
	sim_expect(s, "0.000 IDLE\n"
		      "0.000 syn 1\n"
		      "0.000 CONNECTING\n"
		      "0.002 READY\n"
		      "5.000 IDLE\n");
	sim_free(s);
}

RUN_SUITE("sim/balance/connect",
	cmocka_unit_test(refusing_backend_is_tried_at_the_documented_distances),
	cmocka_unit_test(paced_backends_are_connected_one_after_the_other),
	cmocka_unit_test(cluster_that_has_enough_young_attempts_rests),
	cmocka_unit_test(who_cannot_begin_yet_is_not_taken_up_for_a_request),
	cmocka_unit_test(cluster_all_of_whose_endpoints_have_a_backoff_rests),
	cmocka_unit_test(request_gets_an_attempt_that_others_wait_for),
	cmocka_unit_test(each_backend_has_an_attempt_while_others_fail_for_ever),
	cmocka_unit_test(silent_backend_is_given_20_seconds_an_attempt),
	cmocka_unit_test(only_settings_end_the_backoff),
	cmocka_unit_test(dead_backend_sees_no_more_attempts_of_four_workers_than_of_one),
	cmocka_unit_test(round_robin_connects_all_and_keeps_them),
	cmocka_unit_test(addresses_are_tried_a_quarter_second_apart_and_the_first_wins),
	cmocka_unit_test(refused_address_is_left_at_once),
	cmocka_unit_test(pick_first_fails_after_each_address_did_and_stays_so),
	cmocka_unit_test(lost_pick_first_rests_until_a_request_comes),
	cmocka_unit_test(new_list_keeps_the_connection_that_it_contains),
	cmocka_unit_test(endpoint_of_two_addresses_connects_by_the_second),
	cmocka_unit_test(answers_begin_within_300_ms_where_a_family_is_dark),
	cmocka_unit_test(ring_connects_whom_a_request_needs),
	cmocka_unit_test(ring_that_serves_connects_whom_else_a_request_needs),
	cmocka_unit_test(failing_ring_looks_for_somebody_who_works),
	cmocka_unit_test(ring_that_loses_its_connection_is_idle))
