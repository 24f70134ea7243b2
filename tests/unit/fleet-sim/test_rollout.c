// SPDX-License-Identifier: Apache-2.0
#include "tests/support/check.h"
#include "tools/fleet-sim/clients.h"
#include "tools/fleet-sim/rollout.h"

#define N_HOSTS 40
#define N_CONNECTIONS 40000
#define N_WAVES 10

static struct rollout run(enum tier_kind kind, uint32_t age_s)
{
	const struct fleet_conf fleet = {1, N_HOSTS, N_CONNECTIONS, kind};
	const struct rollout_conf conf = {.farewell = {1, 100, 30, 20},
		.n_waves = N_WAVES,
		.wave_s = 600,
		.lame_duck_s = 2,
		.start_s = 5};
	struct rollout r;
	struct fleet *f = fleet_new(&fleet, NULL);
	struct clients *c = clients_new(f, age_s);
	assert_true(rollout_run(f, c, &conf, &r));
	for (uint32_t i = 0; i < N_HOSTS; i++)
		assert_true(f->is_up[i]);
	clients_free(c);
	fleet_free(f);
	return r;
}

// All clients of a host leave before it does; whether others are cut is the tier's doing.
static void all_are_sent_away_and_the_tier_decides_who_is_cut(void **state)
{
	(void)state;
	for (int kind = 0; kind < TIER_N; kind++) {
		struct rollout r = run((enum tier_kind)kind, 0);
		assert_true(r.n_moved >= N_CONNECTIONS);
		// Who comes back again and again: hardly anybody.
		assert_true(r.n_unheard < N_CONNECTIONS / 1000);
	}
	assert_int_equal(run(TIER_TRACKED, 0).n_cut, 0);
	uint64_t n_maglev = run(TIER_MAGLEV, 0).n_cut;
	assert_true(n_maglev > 0);
	assert_true(run(TIER_RESILIENT, 0).n_cut > n_maglev);
	assert_true(run(TIER_MODULO, 0).n_cut > 10 * (uint64_t)N_CONNECTIONS);
}

// FL-156: a wave is a tenth of all hosts, and for four of 600 seconds says nothing.
static void who_ages_into_a_host_that_is_silent_waits_and_is_not_lost(void **state)
{
	(void)state;
	struct rollout r = run(TIER_TRACKED, 600);
	double expected = (double)N_CONNECTIONS * N_WAVES * 4 / 600 / N_WAVES;
	assert_true((double)r.n_unheard > expected * 0.5 && (double)r.n_unheard < expected * 1.5);
	assert_int_equal(r.n_cut, 0);
}

// Waves pile clients up on those whose turn is still to come; an age levels it meanwhile.
static void an_age_levels_what_waves_pile_up(void **state)
{
	(void)state;
	struct rollout piled = run(TIER_TRACKED, 0), levelled = run(TIER_TRACKED, 300);
	// (1 + 1/9)^9 = 2.58: each wave leaves its clients to the others alike.
	assert_true(piled.most_share > 2.4 && piled.most_share < 3.0);
	assert_true(piled.last_share < 0.01);
	assert_true(levelled.most_share < 1.4);
	assert_true(levelled.last_share > 0.9 && levelled.last_share < 1.2);
}

static void of_nobody_who_was_moved_no_part_is_cut(void **state)
{
	(void)state;
	const struct rollout none = {0}, some = {.n_moved = 8, .n_streams_cut = 2};
	assert_true(rollout_part_cut(&none) == 0); // which not a number is not
	assert_true(rollout_part_cut(&some) == 0.25);
}

RUN_SUITE("fleet-sim/rollout", cmocka_unit_test(all_are_sent_away_and_the_tier_decides_who_is_cut),
	cmocka_unit_test(who_ages_into_a_host_that_is_silent_waits_and_is_not_lost),
	cmocka_unit_test(an_age_levels_what_waves_pile_up),
	cmocka_unit_test(of_nobody_who_was_moved_no_part_is_cut))
