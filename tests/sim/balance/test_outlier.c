// SPDX-License-Identifier: Apache-2.0
// A50-E* as timelines: who is ejected at which sweep, and who comes back, over thousands of
// virtual minutes.
#include "tests/sim/balance/sim.h"
#include "tests/support/check.h"

static struct sim *new_with(uint32_t n_workers, uint32_t max_percent)
{
	struct sim *s = sim_new(n_workers, 1);
	struct sim_leaf *l = &s->leaves[0];
	l->outlier = (struct lb_outlier_conf){.interval_ns = 10 * SIM_S,
		.base_ejection_ns = 30 * SIM_S,
		.max_ejection_ns = 300 * SIM_S,
		.max_ejection_percent = max_percent,
		.threshold_percent = 85,
		.failure_percentage = {true, 100, 2, 10}};
	l->config.outlier = &l->outlier;
	s->load_ns = 50 * SIM_MS;
	s->probes = false;
	return s;
}

static bool is_ejected(const struct sim *s, uint32_t address)
{
	struct ip_port a = plan_address(address);
	struct lb_affinity_host h;
	assert_true(lb_affinity_map_find(sim_layer(s)->affinity, &a, &h));
	return h.state->is_barred;
}

// Runs on and writes down, at the begin of each second, when this one goes and comes.
static void watch_to(struct sim *s, uint32_t address, uint64_t seconds)
{
	if (sim_now(s) % SIM_S == 0)
		sim_run(s, 10 * SIM_MS); // workers hear of a sweep right after it
	bool was = is_ejected(s, address);
	while (sim_now(s) < seconds * SIM_S) {
		sim_run_to(s, sim_now(s) + SIM_S);
		if (is_ejected(s, address) == was)
			continue;
		was = !was;
		sim_write(s, was ? "%u out" : "%u in", address);
	}
}

// A50-E05, A50-E08, A50-E14, A50-E15: sweeps are at 10, 20, …; out at 10 for more than 30 s, so in
// at 50, and out again at the very next sweep, each time 30 s longer, up to 300.
static void failing_endpoint_goes_and_comes_at_sweeps(void **state)
{
	(void)state;
	struct sim *s = new_with(1, 50);
	s->hosts[1].fails_percent = 100;
	sim_update(s, "a: 0 1 2 3");
	watch_to(s, 1, 1000);
	sim_expect(s, "0.000 syn 0\n"
		      "0.000 syn 1\n"
		      "0.000 syn 2\n"
		      "0.000 syn 3\n"
		      "0.000 CONNECTING\n"
		      "0.002 READY\n"
		      "10.010 1 out\n"
		      "50.010 1 in\n"
		      "60.010 1 out\n"
		      "130.010 1 in\n"
		      "140.010 1 out\n"
		      "240.010 1 in\n"
		      "250.010 1 out\n"
		      "380.010 1 in\n"
		      "390.010 1 out\n"
		      "550.010 1 in\n"
		      "560.010 1 out\n"
		      "750.010 1 in\n"
		      "760.010 1 out\n"
		      "980.010 1 in\n"
		      "990.010 1 out\n");
	// A50-E16: connected all the while, and serves at once when it is back.
	assert_int_equal(sim_count_syns(s, 1), 1);
	s->hosts[1].fails_percent = 0;
	watch_to(s, 1, 2000);
	sim_expect(s, "1240.010 1 in\n");
	assert_int_equal(sim_count_syns(s, 1), 1);
	sim_free(s);
}

// A50-E15: the multiplier falls by one each sweep that it is not ejected.
static void well_behaved_endpoint_is_forgiven(void **state)
{
	(void)state;
	struct sim *s = new_with(1, 50);
	s->hosts[1].fails_percent = 100;
	sim_update(s, "a: 0 1 2 3");
	watch_to(s, 1, 900);
	while (!is_ejected(s, 1))
		sim_run(s, SIM_S);
	s->hosts[1].fails_percent = 0;
	while (is_ejected(s, 1))
		sim_run(s, SIM_S);
	sim_run(s, 400 * SIM_S);
	sim_forget(s);
	s->hosts[1].fails_percent = 100;
	uint64_t begin = sim_now(s) / SIM_S;
	s->hosts[1].fails_percent = 100;
	sim_run_to(s, (begin + 20) * SIM_S);
	assert_true(is_ejected(s, 1)); // for the first 30 s only: the fourth sweep from there
	s->hosts[1].fails_percent = 0;
	sim_run_to(s, (begin + 60) * SIM_S);
	assert_false(is_ejected(s, 1));
	sim_free(s);
}

// A50-E09, A75-E11, A75-T03: one of ten at 10 %; all of a priority's fall within 100 %.
static void share_of_ejected_endpoints_is_bounded_over_all_priorities(void **state)
{
	(void)state;
	struct sim *s = new_with(1, 10);
	for (uint32_t i = 0; i < 5; i++)
		s->hosts[i].fails_percent = 100;
	sim_update(s, "a: 0 1 2 3 4; b: 5 6 7 8 9 10 11 12 13 14");
	sim_run_to(s, 15 * SIM_S);
	uint32_t n = 0;
	for (uint32_t i = 0; i < 15; i++)
		n += is_ejected(s, i);
	assert_int_equal(n, 2); // of 15
	s->leaves[0].outlier.max_ejection_percent = 100;
	sim_update(s, "a: 0 1 2 3 4; b: 5 6 7 8 9 10 11 12 13 14");
	sim_run_to(s, 25 * SIM_S);
	assert_int_equal(s->n_served[5] > 0, 1); // the priority failed over
	uint32_t before = 0, after = 0;
	for (uint32_t i = 0; i < 5; i++)
		before += s->n_served[i];
	sim_run_to(s, 29 * SIM_S);
	for (uint32_t i = 0; i < 5; i++)
		after += s->n_served[i];
	assert_int_equal(after, before);
	sim_free(s);
}

// MC-15: four workers with a quarter of the volume each reach it together; out for all of them.
static void workers_requests_count_together(void **state)
{
	(void)state;
	struct sim *s = new_with(4, 50);
	s->load_ns = 100 * SIM_MS;
	s->leaves[0].outlier.failure_percentage.request_volume = 20; // of about 25 in 10 s
	s->hosts[1].fails_percent = 100;
	sim_update(s, "a: 0 1 2 3");
	sim_run_to(s, 20 * SIM_S + SIM_GRACE);
	assert_true(is_ejected(s, 1));
	uint32_t n = s->n_served[1];
	sim_run_to(s, 30 * SIM_S);
	assert_int_equal(s->n_served[1], n);
	sim_free(s);
}

// A50-E06: too few requests are no reason.
static void endpoint_without_volume_stays(void **state)
{
	(void)state;
	struct sim *s = new_with(1, 50);
	s->leaves[0].outlier.failure_percentage.request_volume = 100;
	s->hosts[1].fails_percent = 100;
	sim_update(s, "a: 0 1 2 3");
	watch_to(s, 1, 3600);
	assert_false(is_ejected(s, 1));
	sim_free(s);
}

// A50-E07: success rate finds the one below the others.
static void success_rate_finds_the_odd_one(void **state)
{
	(void)state;
	struct sim *s = new_with(1, 50);
	s->leaves[0].outlier.failure_percentage.enabled = false;
	s->leaves[0].outlier.success_rate = (struct lb_outlier_algorithm){true, 100, 5, 20};
	s->leaves[0].outlier.stdev_factor = 1900;
	s->hosts[2].fails_percent = 60;
	sim_update(s, "a: 0 1 2 3 4");
	watch_to(s, 2, 45);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(is_ejected(s, i), i == 2);
	sim_expect(s, "0.000 syn 0\n"
		      "0.000 syn 1\n"
		      "0.000 syn 2\n"
		      "0.000 syn 3\n"
		      "0.000 syn 4\n"
		      "0.000 CONNECTING\n"
		      "0.002 READY\n"
		      "10.010 2 out\n");
	sim_free(s);
}

// A50-E01, A50-E17: without algorithms everybody is back at once; a changed interval counts from
// the start of the current one.
static void changes_of_the_configuration_act_on_sweeps(void **state)
{
	(void)state;
	struct sim *s = new_with(1, 50);
	struct lb_outlier_conf *c = &s->leaves[0].outlier;
	s->hosts[1].fails_percent = 100;
	sim_update(s, "a: 0 1 2 3");
	watch_to(s, 1, 13);
	c->failure_percentage.enabled = false;
	sim_update(s, "a: 0 1 2 3");
	watch_to(s, 1, 16);
	c->failure_percentage.enabled = true;
	sim_update(s, "a: 0 1 2 3"); // counts from here: 26
	watch_to(s, 1, 18);
	c->interval_ns = 20 * SIM_S; // 36
	sim_update(s, "a: 0 1 2 3");
	watch_to(s, 1, 40);
	sim_expect(s, "0.000 syn 0\n"
		      "0.000 syn 1\n"
		      "0.000 syn 2\n"
		      "0.000 syn 3\n"
		      "0.000 CONNECTING\n"
		      "0.002 READY\n"
		      "10.010 1 out\n"
		      "14.010 1 in\n"
		      "37.010 1 out\n");
	sim_free(s);
}

// A50-E04, A50-E18: the record is the endpoint's over updates, and goes with it.
static void ejection_follows_the_endpoint(void **state)
{
	(void)state;
	struct sim *s = new_with(1, 50);
	s->hosts[1].fails_percent = 100;
	sim_update(s, "a: 0 1 2 3; b: 9");
	sim_run_to(s, 12 * SIM_S);
	assert_true(is_ejected(s, 1));
	sim_update(s, "a: 0 2 3; b: 1 9");
	assert_true(is_ejected(s, 1));
	sim_update(s, "a: 0 2 3");
	sim_run(s, SIM_S);
	sim_update(s, "a: 0 1 2 3");
	sim_run(s, SIM_S);
	assert_false(is_ejected(s, 1)); // another one, with the same address
	sim_free(s);
}

// A50-E05 to A50-E10, A75-E11, A50-E12 to A50-E16 over 5000 minutes of failures by chance: every
// change is at a sweep, never are more ejected than the share allows, and nobody reconnects for it.
static void weeks_of_failures_follow_the_rules(void **state)
{
	(void)state;
	struct sim *s = new_with(1, 30);
	s->load_ns = 200 * SIM_MS;
	s->leaves[0].outlier.failure_percentage.request_volume = 3;
	sim_update(s, "a: 0 1 2 3 4 5 6 7 8 9");
	sim_run_to(s, 5 * SIM_S);
	bool was[10] = {0};
	uint32_t n_changes = 0;
	while (sim_now(s) < 5000 * 60 * SIM_S) {
		sim_run(s, 10 * SIM_S); // at 5 after each sweep
		uint32_t n = 0;
		for (uint32_t i = 0; i < 10; i++) {
			n_changes += is_ejected(s, i) != was[i];
			was[i] = is_ejected(s, i);
			n += was[i];
			if (rand_below(&s->rand, 200) == 0)
				s->hosts[i].fails_percent = 100 - s->hosts[i].fails_percent;
		}
		assert_true(n <= 3);
	}
	assert_true(n_changes > 1000);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(sim_count_syns(s, i), 1);
	sim_free(s);
}

RUN_SUITE("sim/balance/outlier", cmocka_unit_test(failing_endpoint_goes_and_comes_at_sweeps),
	cmocka_unit_test(well_behaved_endpoint_is_forgiven),
	cmocka_unit_test(share_of_ejected_endpoints_is_bounded_over_all_priorities),
	cmocka_unit_test(workers_requests_count_together),
	cmocka_unit_test(endpoint_without_volume_stays),
	cmocka_unit_test(success_rate_finds_the_odd_one),
	cmocka_unit_test(changes_of_the_configuration_act_on_sweeps),
	cmocka_unit_test(ejection_follows_the_endpoint),
	cmocka_unit_test(weeks_of_failures_follow_the_rules))
