// SPDX-License-Identifier: Apache-2.0
#include "tests/support/check.h"
#include "tools/fleet-sim/mesh.h"
#include "tools/fleet-sim/requests.h"
#include "tools/fleet-sim/spread.h"
#include "tools/fleet-sim/subsets.h"

#define N_MAX 5000

static uint32_t counts[N_MAX];

static struct requests_conf conf_of(enum requests_policy policy, uint32_t subset_size)
{
	return (struct requests_conf){.seed = 1,
		.n_hosts = 200,
		.n_workers = 4,
		.n_requests = 400000,
		.n_under_way = 100,
		.subset_size = subset_size,
		.policy = policy};
}

// Over n backends.
static void run(const struct requests_conf *c, uint32_t n)
{
	struct mesh *m = mesh_new(1, n, REQUESTS_LOCALITIES);
	assert_non_null(m);
	assert_true(requests_run(m, c, counts));
	mesh_free(m);
}

static struct spread spread(const struct requests_conf *c, uint32_t n)
{
	run(c, n);
	return spread_of(counts, n);
}

// Each request is at one backend, in each policy and with subsets of each size.
static void no_request_is_lost(void **state)
{
	(void)state;
	static const uint32_t sizes[] = {0, 200, 20, 3};
	for (int policy = 0; policy < REQUESTS_N; policy++) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			uint64_t sum = 0;
			struct requests_conf c = conf_of((enum requests_policy)policy, sizes[i]);
			c.n_requests = 19999; // no multiple of the hosts'
			run(&c, 400);
			for (uint32_t k = 0; k < 400; k++)
				sum += counts[k];
			assert_int_equal(sum, c.n_requests);
		}
	}
}

static void fewer_requests_than_hosts_are_sent_as_well(void **state)
{
	(void)state;
	struct requests_conf c = conf_of(REQUESTS_ROUND_ROBIN, 0);
	c.n_requests = c.n_hosts - 1;
	struct spread s = spread(&c, N_MAX);
	assert_true(s.mean * N_MAX > c.n_requests - 0.5 && s.mean * N_MAX < c.n_requests + 0.5);
}

// A host's requests are a fifth of a turn; nobody begins where others do.
static void fl_157_hosts_that_begin_anywhere_load_backends_alike(void **state)
{
	(void)state;
	struct requests_conf c = conf_of(REQUESTS_ROUND_ROBIN, 0);
	c.n_requests = 40000;
	struct spread s = spread(&c, 1000);
	assert_int_equal((int)s.mean, 40);
	assert_in_range(s.least, 15, 40);
	assert_in_range(s.most, 40, 65);
}

// What a backend gets is its number of hosts times the same.
static void fl_157_backends_have_the_load_of_the_subsets_that_they_are_in(void **state)
{
	(void)state;
	struct requests_conf c = conf_of(REQUESTS_ROUND_ROBIN, 20);
	const struct subsets_conf of_subsets = {c.seed, c.n_hosts, 1000, c.subset_size};
	struct subsets s;
	assert_true(subsets_run(&of_subsets, 0, &s));
	run(&c, 1000);
	for (uint32_t i = 0; i < 1000; i++) {
		uint32_t each = c.n_requests / c.n_hosts / c.subset_size;
		assert_in_range(
			counts[i], s.counts[i] * each * 90 / 100, s.counts[i] * each * 110 / 100);
	}
	subsets_free(&s);
}

// Reports tell what a backend can do, and not how many hosts it has.
static void weights_level_what_backends_can_do_and_not_what_subsets_give(void **state)
{
	(void)state;
	struct requests_conf c = conf_of(REQUESTS_ROUND_ROBIN, 0);
	c.is_uneven = true;
	struct spread blind = spread(&c, 200);
	c.policy = REQUESTS_WEIGHTED;
	struct spread weighted = spread(&c, 200);
	c.subset_size = 20;
	struct spread of_subsets = spread(&c, 1000);
	assert_true(blind.p99 / blind.mean > 1.3);
	assert_true(weighted.p99 / weighted.mean < 1.1);
	assert_true(of_subsets.p99 / of_subsets.mean > 1.8); // of 4 hosts each: 2.25
}

// RH-03: of 4096 places of the ring at most.
static void a_ring_leaves_out_who_finds_no_place_on_it(void **state)
{
	(void)state;
	struct requests_conf c = conf_of(REQUESTS_RING, 0);
	uint32_t n_none = 0;
	run(&c, N_MAX);
	for (uint32_t i = 0; i < N_MAX; i++)
		n_none += !counts[i];
	assert_in_range(n_none, N_MAX - 4096, N_MAX - 4000);
	assert_true(spread(&c, 100).least > 0);
}

// Of all a host may have one backend of a locality, with its whole weight.
static void a_subset_of_each_locality_spares_those_that_one_of_all_would_give_most(void **state)
{
	(void)state;
	struct requests_conf above = conf_of(REQUESTS_WRR_LOCALITY, 8),
			     below = conf_of(REQUESTS_IN_LOCALITY, 8);
	struct spread of_all = spread(&above, 400), of_each = spread(&below, 400);
	assert_true(of_each.most / of_each.mean < of_all.most / of_all.mean);
}

RUN_SUITE("fleet-sim/requests", cmocka_unit_test(no_request_is_lost),
	cmocka_unit_test(fewer_requests_than_hosts_are_sent_as_well),
	cmocka_unit_test(fl_157_hosts_that_begin_anywhere_load_backends_alike),
	cmocka_unit_test(fl_157_backends_have_the_load_of_the_subsets_that_they_are_in),
	cmocka_unit_test(weights_level_what_backends_can_do_and_not_what_subsets_give),
	cmocka_unit_test(a_ring_leaves_out_who_finds_no_place_on_it),
	cmocka_unit_test(a_subset_of_each_locality_spares_those_that_one_of_all_would_give_most))
