// SPDX-License-Identifier: Apache-2.0
#include "lb/base/time.h"
#include "tests/support/check.h"
#include "tools/fleet-sim/clients.h"

#define N_HOSTS 10
#define N_CONNECTIONS 50000
#define AGE_S 600

static uint64_t pass(struct clients *c, uint32_t until_s)
{
	return clients_pass(c, NULL, until_s * NS_PER_SECOND);
}

// FL-52: after an age and its jitter, hosts that came have their share, and not much sooner.
static void hosts_that_came_have_their_share_after_an_age(void **state)
{
	(void)state;
	const struct fleet_conf conf = {1, N_HOSTS, N_CONNECTIONS, TIER_TRACKED};
	bool is_up[N_HOSTS];
	uint32_t counts[N_HOSTS];
	uint64_t n_passed = 0;
	struct fleet_cut cut;
	for (int i = 0; i < N_HOSTS; i++)
		is_up[i] = i != 9;
	struct fleet *f = fleet_new(&conf, is_up);
	struct clients *c = clients_new(f, AGE_S);
	f->is_up[9] = true;
	assert_true(fleet_change(f, &cut));
	assert_int_equal(cut.n_lost + cut.n_cut, 0);
	fleet_count(f, counts);
	assert_int_equal(counts[9], 0);
	n_passed += pass(c, AGE_S / 2);
	fleet_count(f, counts);
	assert_in_range(
		counts[9], N_CONNECTIONS / N_HOSTS * 45 / 100, N_CONNECTIONS / N_HOSTS * 56 / 100);
	assert_in_range(n_passed, N_CONNECTIONS * 48 / 100, N_CONNECTIONS * 53 / 100);
	n_passed += pass(c, AGE_S * 11 / 10);
	fleet_count(f, counts);
	assert_in_range(
		counts[9], N_CONNECTIONS / N_HOSTS * 94 / 100, N_CONNECTIONS / N_HOSTS * 106 / 100);
	assert_true(n_passed >= N_CONNECTIONS); // each of them once at least
	clients_free(c);
	fleet_free(f);
}

// A life begins anew with a connection.
static void who_connected_for_another_reason_begins_anew(void **state)
{
	(void)state;
	static const uint32_t times[] = {1, 256}; // that each connects again
	for (size_t k = 0; k < sizeof(times) / sizeof(times[0]); k++) {
		const uint32_t n = N_CONNECTIONS / times[k];
		const struct fleet_conf conf = {1, N_HOSTS, n, TIER_TRACKED};
		struct fleet *f = fleet_new(&conf, NULL);
		struct clients *c = clients_new(f, AGE_S);
		for (uint32_t i = 0; i < n * times[k]; i++)
			fleet_reconnect(f, i % n);
		assert_int_equal(pass(c, 1), 0);
		assert_int_equal(pass(c, AGE_S * 9 / 10), 0);
		assert_int_equal(pass(c, AGE_S * 11 / 10), n);
		clients_free(c);
		fleet_free(f);
	}
}

static void who_does_not_age_stays(void **state)
{
	(void)state;
	const struct fleet_conf conf = {1, N_HOSTS, N_CONNECTIONS, TIER_TRACKED};
	struct fleet *f = fleet_new(&conf, NULL);
	struct clients *c = clients_new(f, 0);
	assert_int_equal(pass(c, 1000 * AGE_S), 0);
	for (uint32_t i = 0; i < N_CONNECTIONS; i++)
		assert_int_equal(f->attempts[i], 0);
	clients_free(c);
	fleet_free(f);
}

RUN_SUITE("fleet-sim/clients", cmocka_unit_test(hosts_that_came_have_their_share_after_an_age),
	cmocka_unit_test(who_connected_for_another_reason_begins_anew),
	cmocka_unit_test(who_does_not_age_stays))
