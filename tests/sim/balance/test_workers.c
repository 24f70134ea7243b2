// SPDX-License-Identifier: Apache-2.0
// Q-* and MC-*: several workers with connections, places and generators of their own.
// Shares pass a chi-squared test at p > 0.001, for each worker and for all of them together.
#include "tests/sim/balance/sim.h"
#include "tests/support/check.h"

#define N_WORKERS 4

static const struct lb_policy_spec ring = {
	.kind = LB_POLICY_RING_HASH, .ring_hash = {.min_size = 1024, .max_size = 4096}};
static const struct lb_policy_spec least = {
	.kind = LB_POLICY_LEAST_REQUEST, .least_request = {.choice_count = 2}};
static const struct lb_policy_spec weighted = {.kind = LB_POLICY_WEIGHTED_ROUND_ROBIN,
	.wrr = {.update_ns = SIM_S, .expiration_ns = 180 * SIM_S, .error_penalty = 1}};

// Exceeded once in a thousand times, by degrees of freedom.
static const double limits[] = {0, 10.83, 13.82, 16.27, 18.47, 20.52, 22.46, 24.32, 26.12, 27.88};

static double chi_squared(const uint32_t *n, const double *share, uint32_t n_classes)
{
	double sum = 0, x = 0;
	for (uint32_t i = 0; i < n_classes; i++)
		sum += n[i];
	for (uint32_t i = 0; i < n_classes; i++)
		x += (n[i] - sum * share[i]) * (n[i] - sum * share[i]) / (sum * share[i]);
	return x;
}

static struct sim *new_quiet(uint64_t seed, const struct lb_policy_spec *spec)
{
	struct sim *s = sim_new(N_WORKERS, seed);
	s->probes = false;
	if (spec)
		s->leaves[0].config.spec = spec;
	return s;
}

// Each worker asks until it is connected to all of n.
static void warm_up(struct sim *s, uint32_t n)
{
	sim_run(s, SIM_S);
	for (uint32_t i = 0; i < 40 * n; i++) {
		for (uint32_t k = 0; k < N_WORKERS; k++)
			sim_once(s, k);
		sim_run(s, 10 * SIM_MS);
	}
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(sim_n_connections(s, i), N_WORKERS);
}

static void assert_shares(struct sim *s, uint32_t n_picks, const double *share, uint32_t n)
{
	uint32_t all[10] = {0};
	for (uint32_t k = 0; k < N_WORKERS; k++) {
		uint32_t own[10] = {0};
		for (uint32_t i = 0; i < n_picks; i++)
			own[sim_once(s, k)]++;
		assert_true(chi_squared(own, share, n) < limits[n - 1]);
		for (uint32_t i = 0; i < n; i++)
			all[i] += own[i];
	}
	assert_true(chi_squared(all, share, n) < limits[n - 1]);
}

// MC-08, WT-10: weights 1, 2, 3 and 4 of localities.
static void localities_get_their_shares_on_each_worker_and_together(void **state)
{
	(void)state;
	struct sim *s = new_quiet(5, NULL);
	sim_update(s, "a*1: 0, b*2: 1, c*3: 2, d*4: 3");
	warm_up(s, 4);
	assert_shares(s, 100000, (const double[]){0.1, 0.2, 0.3, 0.4}, 4);
	sim_free(s);
}

// MC-08, A48-01: idle ones share equally.
static void least_request_shares_equally_on_each_worker_and_together(void **state)
{
	(void)state;
	struct sim *s = new_quiet(6, &least);
	sim_update(s, "a: 0 1 2 3 4");
	warm_up(s, 5);
	assert_shares(s, 100000, (const double[]){0.2, 0.2, 0.2, 0.2, 0.2}, 5);
	sim_free(s);
}

// MC-09: k * n picks give each k on one worker, within one of it in any window, and the union
// within one a worker.
static void rotation_is_even_on_each_worker_and_together(void **state)
{
	(void)state;
	struct sim *s = new_quiet(7, NULL);
	sim_update(s, "a: 0 1 2 3 4 5 6");
	warm_up(s, 7);
	uint32_t all[7] = {0};
	for (uint32_t k = 0; k < N_WORKERS; k++) {
		uint32_t own[7] = {0};
		for (uint32_t i = 0; i < 7 * 1000 + 3; i++)
			own[sim_once(s, k)]++;
		for (uint32_t i = 0; i < 7; i++) {
			assert_in_range(own[i], 1000, 1001);
			all[i] += own[i];
		}
	}
	for (uint32_t i = 0; i < 7; i++)
		assert_in_range(all[i], 4000, 4000 + N_WORKERS);
	sim_free(s);
}

// MC-10: a pick after each of a thousand swaps is uniform, on each worker and together.
static void swaps_of_snapshots_favour_nobody(void **state)
{
	(void)state;
	struct sim *s = new_quiet(8, NULL);
	const double equal[] = {0.2, 0.2, 0.2, 0.2, 0.2};
	uint32_t n[N_WORKERS][5] = {0}, all[5] = {0};
	sim_update(s, "a: 0 1 2 3 4");
	warm_up(s, 5);
	for (int i = 0; i < 1000; i++) {
		sim_update(s, i % 2 ? "a: 0 1 2 3 4" : "a*2: 0 1 2 3 4");
		sim_run(s, 15 * SIM_MS);
		for (uint32_t k = 0; k < N_WORKERS; k++) {
			uint32_t at = sim_once(s, k);
			n[k][at]++;
			all[at]++;
		}
	}
	for (uint32_t k = 0; k < N_WORKERS; k++)
		assert_true(chi_squared(n[k], equal, 5) < limits[4]);
	assert_true(chi_squared(all, equal, 5) < limits[4]);
	sim_free(s);
}

// MC-11, A58-05: 200 : 100 : 100 : none, which stands for the mean; each worker and all of them
// within one in a hundred.
static void reported_weights_share_the_picks_of_all_workers(void **state)
{
	(void)state;
	struct sim *s = new_quiet(9, &weighted);
	sim_update(s, "a: 0 1 2 3");
	warm_up(s, 4);
	static const double qps[] = {200, 100, 100};
	for (uint32_t i = 0; i < 3; i++) {
		struct ip_port a = plan_address(i);
		struct lb_affinity_host h;
		const struct lb_orca_report r = {.qps = qps[i], .cpu_utilization = 1};
		assert_true(lb_affinity_map_find(sim_layer(s)->affinity, &a, &h));
		assert_true(lb_orca_report(s->orca, h.member, &r, twheel_now(s->wheel)));
	}
	sim_run(s, SIM_S + 20 * SIM_MS); // one update period
	static const double share[] = {0.375, 0.1875, 0.1875, 0.25};
	uint32_t all[4] = {0};
	for (uint32_t k = 0; k < N_WORKERS; k++) {
		uint32_t own[4] = {0};
		for (int i = 0; i < 16000; i++)
			own[sim_once(s, k)]++;
		for (uint32_t i = 0; i < 4; i++) {
			assert_float_equal(own[i] / 16000.0, share[i], 0.01 * share[i]);
			all[i] += own[i];
		}
	}
	for (uint32_t i = 0; i < 4; i++)
		assert_float_equal(all[i] / 64000.0, share[i], 0.01 * share[i]);
	sim_free(s);
}

// MC-08, A27-I01: 10 % of a million are dropped to ±0.1 %.
static void tenth_of_the_requests_is_dropped(void **state)
{
	(void)state;
	static const struct lb_drop_category tenth = {"throttle", 100000};
	struct sim *s = new_quiet(10, NULL);
	s->leaves[0].config.drops = &tenth;
	s->leaves[0].config.n_drops = 1;
	sim_update(s, "a: 0");
	warm_up(s, 1);
	const double shares[] = {0.1, 0.9};
	uint32_t all[2] = {0};
	for (uint32_t k = 0; k < N_WORKERS; k++) {
		uint32_t own[2] = {0};
		for (int i = 0; i < 250000; i++)
			own[sim_once(s, k) != UINT32_MAX]++;
		assert_true(chi_squared(own, shares, 2) < limits[1]);
		all[0] += own[0];
		all[1] += own[1];
	}
	assert_float_equal(all[0] / 1e6, 0.1, 0.001);
	sim_free(s);
}

// MC-02, MC-03, MC-04: a worker that loses its connections serves by the next one that it opens,
// and nobody else notices.
static void one_workers_loss_moves_no_priority(void **state)
{
	(void)state;
	struct sim *s = new_quiet(11, NULL);
	sim_update(s, "a: 0 1 2; b: 3");
	warm_up(s, 3);
	sim_forget(s);
	for (uint32_t i = 0; i < 3; i++)
		sim_reset_at(s, 2, i);
	struct sim_request *r = sim_begin(s, 2);
	sim_start(s, r);
	assert_int_equal(r->outcome, SIM_WAITS); // never UNAVAILABLE for this
	assert_in_range(sim_once(s, 1), 0, 2);
	sim_run(s, SIM_S);
	assert_int_equal(r->outcome, SIM_SENT);
	assert_in_range(r->address, 0, 2);
	assert_int_equal(sim_count_syns(s, 3), 0);
	assert_int_equal(s->state, LB_READY);
	sim_free(s);
}

// MC-04, MC-06: meanwhile others serve, and each has its share again within a second.
static void reconnecting_worker_gives_each_its_share_within_a_second(void **state)
{
	(void)state;
	struct sim *s = new_quiet(12, NULL);
	s->hosts[1].settings_ns = 300 * SIM_MS;
	sim_update(s, "a: 0 1 2 3");
	warm_up(s, 4);
	sim_reset_at(s, 3, 1);
	for (int i = 0; i < 30; i++) { // while it connects
		uint32_t at = sim_once(s, 3);
		assert_in_range(at, 0, 3);
		assert_int_not_equal(at, 1);
		sim_run(s, 5 * SIM_MS);
	}
	sim_run(s, SIM_S);
	uint32_t n[4] = {0};
	for (int i = 0; i < 4000; i++)
		n[sim_once(s, 3)]++;
	for (int i = 0; i < 4; i++)
		assert_in_range(n[i], 999, 1001);
	sim_free(s);
}

// MC-05, MC-13: the same endpoint on every worker, for which it waits where it must.
static void hash_names_the_same_endpoint_on_every_worker(void **state)
{
	(void)state;
	struct sim *s = new_quiet(13, &ring);
	sim_update(s, "a: 0 1 2 3 4 5 6 7 8 9");
	for (uint64_t hash = 1; hash < 200; hash++) {
		uint32_t at[N_WORKERS];
		for (uint32_t k = 0; k < N_WORKERS; k++) {
			struct sim_request *r = sim_begin(s, k);
			r->hash = (struct lb_pick_hash){hash * 0x9e3779b97f4a7c15, true};
			sim_start(s, r);
			sim_run(s, 10 * SIM_MS);
			assert_int_equal(r->outcome, SIM_SENT);
			at[k] = r->address;
			assert_int_equal(at[k], at[0]);
			sim_end(s, r);
		}
	}
	sim_free(s);
}

// MC-17, Q-01, Q-04, Q-06: what waits is picked again, in order, with each snapshot and each of its
// worker's connections; what is too old has left before.
static void waiting_requests_are_picked_anew_in_order(void **state)
{
	(void)state;
	struct sim *s = new_quiet(14, NULL);
	s->leaves[0].config.max_requests = 2;
	sim_set(s, 0, SIM_SILENT);
	sim_update(s, "a: 0");
	struct sim_request *r[4];
	for (int i = 0; i < 4; i++) {
		r[i] = sim_begin(s, 0);
		if (i == 0)
			r[i]->deadline_ns = twheel_now(s->wheel) + 100 * SIM_MS;
		sim_start(s, r[i]);
		sim_run(s, SIM_MS);
	}
	sim_update(s, "a: 0 1");
	sim_run(s, 50 * SIM_MS);
	// The first two fill the limit, the others are refused: order of arrival.
	assert_int_equal(r[0]->outcome, SIM_SENT);
	assert_int_equal(r[1]->outcome, SIM_SENT);
	assert_int_equal(r[2]->outcome, SIM_REFUSED);
	assert_int_equal(r[3]->outcome, SIM_REFUSED);
	sim_free(s);
}

// PF-05: a failing cluster fails requests unless they wait for readiness; a deadline
// ends these, too.
static void only_who_waits_for_ready_outlives_a_failure(void **state)
{
	(void)state;
	struct sim *s = new_quiet(15, NULL);
	sim_set(s, 0, SIM_REFUSES);
	sim_update(s, "a: 0");
	sim_run(s, 10 * SIM_MS);
	struct sim_request *fast = sim_begin(s, 0), *patient = sim_begin(s, 1),
			   *late = sim_begin(s, 1);
	patient->waits_for_ready = late->waits_for_ready = true;
	late->deadline_ns = twheel_now(s->wheel) + 100 * SIM_MS;
	sim_start(s, fast);
	sim_start(s, patient);
	sim_start(s, late);
	assert_int_equal(fast->outcome, SIM_FAILED);
	assert_string_equal(fast->text,
		"cluster orders: none of 1 endpoints is usable, last error: "
		"10.0.0.0:80: refused"); // ERR-01
	sim_set(s, 0, SIM_UP);
	sim_run(s, 200 * SIM_MS);
	assert_string_equal(late->text, "deadline exceeded");
	sim_run(s, 5 * SIM_S);
	assert_int_equal(patient->outcome, SIM_SENT);
	sim_free(s);
}

// A27-I03, A27-I04, A32-I05, A32-I06: drops and refusals end a request that would wait, and are
// drawn once.
static void drops_and_refusals_do_not_wait(void **state)
{
	(void)state;
	static const struct lb_drop_category half = {"half", 500000};
	struct sim *s = new_quiet(16, NULL);
	s->leaves[0].config.drops = &half;
	s->leaves[0].config.n_drops = 1;
	sim_set(s, 0, SIM_SILENT);
	sim_update(s, "a: 0");
	uint32_t n_dropped = 0, n_waiting = 0;
	for (int i = 0; i < 1000; i++) {
		struct sim_request *r = sim_begin(s, 0);
		r->waits_for_ready = true;
		sim_start(s, r);
		n_dropped += r->outcome == SIM_DROPPED;
	}
	assert_in_range(n_dropped, 430, 570);
	for (int i = 0; i < 20; i++) // picked again and again
		sim_update(s, i % 2 ? "a: 0" : "a: 0 1");
	for (int i = 0; i < 1000; i++)
		n_waiting += s->requests[i].outcome == SIM_WAITS;
	assert_int_equal(n_waiting, 1000 - n_dropped);
	s->leaves[0].config.max_requests = 0;
	sim_update(s, "a: 0");
	struct sim_request *r = sim_begin(s, 0);
	r->waits_for_ready = true;
	r->dropped.drawn_for = 2; // of this leaf: has had its draw
	sim_start(s, r);
	assert_int_equal(r->outcome, SIM_REFUSED);
	sim_free(s);
}

// A75-I11: sessions pass drops and the breaker, and are counted.
static void sessions_pass_the_layers_above_them(void **state)
{
	(void)state;
	static const struct lb_drop_category all = {"all", LB_DROP_ALL};
	struct sim *s = new_quiet(17, NULL);
	sim_update(s, "a: 0 1");
	warm_up(s, 2);
	s->leaves[0].config.max_requests = 1;
	sim_update(s, "a: 0 1");
	struct sim_request *r[3];
	for (int i = 0; i < 3; i++) {
		if (i == 2) {
			s->leaves[0].config.drops = &all;
			s->leaves[0].config.n_drops = 1;
			sim_update(s, "a: 0 1");
		}
		r[i] = sim_begin(s, 0);
		sim_bind(r[i], 1);
		sim_start(s, r[i]);
	}
	assert_int_equal(r[0]->outcome, SIM_SENT);
	assert_int_equal(r[1]->outcome, SIM_REFUSED);
	assert_int_equal(r[2]->outcome, SIM_DROPPED);
	uint32_t member = r[0]->member;
	uint64_t n = s->workers[0].n_ok[member];
	sim_end(s, r[0]);
	assert_int_equal(s->workers[0].n_ok[member], n + 1);
	sim_free(s);
}

// ENV-01, ENV-02: one READY endpoint keeps all of its priority's requests, and with none they fail;
// nobody who is ejected gets any.
static void there_is_neither_spill_over_nor_panic(void **state)
{
	(void)state;
	struct sim *s = new_quiet(18, NULL);
	for (uint32_t i = 1; i < 10; i++)
		sim_set(s, i, SIM_REFUSES);
	sim_update(s, "a: 0 1 2 3 4 5 6 7 8 9; b: 10");
	sim_run(s, SIM_S);
	for (int i = 0; i < 1000; i++) {
		uint32_t at = sim_once(s, (uint32_t)i % N_WORKERS);
		assert_true(at == 0 || at == UINT32_MAX); // waits for its own connection
		sim_run(s, 5 * SIM_MS);
	}
	assert_int_equal(sim_count_syns(s, 10), 0);
	sim_free(s);
}

// ST-03, Q-03: GOAWAY takes the connection out of picks, its streams finish.
static void connection_that_goes_away_is_picked_no_more(void **state)
{
	(void)state;
	struct sim *s = new_quiet(19, NULL);
	sim_update(s, "a: 0 1");
	warm_up(s, 2);
	struct sim_request *r = sim_begin(s, 0);
	sim_bind(r, 1);
	sim_start(s, r);
	sim_set(s, 1, SIM_REFUSES);
	sim_goaway(s, 1);
	for (int i = 0; i < 10; i++)
		assert_int_equal(sim_once(s, 0), 0);
	assert_int_equal(r->outcome, SIM_SENT);
	sim_free(s);
}

RUN_SUITE("sim/balance/workers",
	cmocka_unit_test(localities_get_their_shares_on_each_worker_and_together),
	cmocka_unit_test(least_request_shares_equally_on_each_worker_and_together),
	cmocka_unit_test(rotation_is_even_on_each_worker_and_together),
	cmocka_unit_test(swaps_of_snapshots_favour_nobody),
	cmocka_unit_test(reported_weights_share_the_picks_of_all_workers),
	cmocka_unit_test(tenth_of_the_requests_is_dropped),
	cmocka_unit_test(one_workers_loss_moves_no_priority),
	cmocka_unit_test(reconnecting_worker_gives_each_its_share_within_a_second),
	cmocka_unit_test(hash_names_the_same_endpoint_on_every_worker),
	cmocka_unit_test(waiting_requests_are_picked_anew_in_order),
	cmocka_unit_test(only_who_waits_for_ready_outlives_a_failure),
	cmocka_unit_test(drops_and_refusals_do_not_wait),
	cmocka_unit_test(sessions_pass_the_layers_above_them),
	cmocka_unit_test(there_is_neither_spill_over_nor_panic),
	cmocka_unit_test(connection_that_goes_away_is_picked_no_more))
