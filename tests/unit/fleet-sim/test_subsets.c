// SPDX-License-Identifier: Apache-2.0
#include "tests/support/check.h"
#include "tools/fleet-sim/spread.h"
#include "tools/fleet-sim/subsets.h"

// As many connections as hosts times the size, spread as draws are, and a rollout moves
// little more than what it replaces.
static void connections_are_hosts_times_the_size(void **state)
{
	(void)state;
	const struct subsets_conf conf = {1, 500, 1000, 20};
	struct subsets s;
	uint64_t sum = 0;
	assert_true(subsets_run(&conf, 10, &s));
	for (uint32_t i = 0; i < conf.n_backends; i++)
		sum += s.counts[i];
	assert_int_equal(sum, 500 * 20);
	struct spread spread = spread_of(s.counts, conf.n_backends);
	assert_in_range(spread.p1, 2, 5); // Poisson's of 10
	assert_in_range(spread.p99, 16, 20);
	assert_in_range(s.n_moved, 60, 200); // 500 hosts, 20 in 1000 of 10, and those that come
	subsets_free(&s);
}

static void without_a_size_all_are_connected_to_all(void **state)
{
	(void)state;
	const struct subsets_conf conf = {1, 50, 300, 0};
	struct subsets s;
	assert_true(subsets_run(&conf, 3, &s));
	for (uint32_t i = 0; i < conf.n_backends; i++)
		assert_int_equal(s.counts[i], 50);
	assert_int_equal(s.n_moved, 50 * 3);
	subsets_free(&s);
}

RUN_SUITE("fleet-sim/subsets", cmocka_unit_test(connections_are_hosts_times_the_size),
	cmocka_unit_test(without_a_size_all_are_connected_to_all))
