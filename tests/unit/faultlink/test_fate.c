// SPDX-License-Identifier: Apache-2.0
#include "tests/support/check.h"
#include "tests/support/faultlink/fate.h"

#include <math.h>
#include <string.h>

#define N 100000

static void the_same_seed_draws_the_same_fates(void **state)
{
	struct faults how = {.loss = 0.1, .reorder = 0.1, .reorder_ns = 1000, .jitter_ns = 1000};
	struct fates a, b, other_seed, other_way;
	unsigned n_seed = 0, n_way = 0;
	fates_init(&a, 7, 0);
	fates_init(&b, 7, 0);
	fates_init(&other_seed, 8, 0);
	fates_init(&other_way, 7, 1);
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t where = fates_next(&a, &how).where;
		assert_int_equal(where, fates_next(&b, &how).where);
		n_seed += where == fates_next(&other_seed, &how).where;
		n_way += where == fates_next(&other_way, &how).where;
	}
	assert_int_equal(n_seed + n_way, 0);
}

static void one_fault_more_leaves_the_others_where_they_were(void **state)
{
	struct faults few = {.loss = 0.05, .reorder = 0.1, .reorder_ns = 1000}, more = few;
	struct fates a, b;
	more.duplicate = more.corrupt = 0.5;
	more.jitter_ns = 1000;
	fates_init(&a, 3, 0);
	fates_init(&b, 3, 0);
	for (unsigned i = 0; i < 1000; i++) {
		struct fate x = fates_next(&a, &few), y = fates_next(&b, &more);
		assert_int_equal(x.lost, y.lost);
		assert_int_equal(x.late_ns, y.late_ns);
	}
}

// Within four standard deviations of a binomial distribution.
static void assert_share(unsigned n, double p)
{
	assert_true(fabs(n - N * p) < 4 * sqrt(N * p * (1 - p)));
}

static void each_fault_is_as_frequent_as_asked_for(void **state)
{
	struct faults how = {
		.loss = 0.01,
		.corrupt = 0.02,
		.forge = 0.03,
		.duplicate = 0.04,
		.reorder = 0.05,
		.reorder_ns = 4000,
		.jitter_ns = 1000,
	};
	struct fates f;
	unsigned lost = 0, corrupt = 0, forged = 0, twice = 0, late = 0;
	double late_ns = 0, jitter_ns = 0;
	fates_init(&f, 1, 0);
	for (unsigned i = 0; i < N; i++) {
		struct fate x = fates_next(&f, &how);
		lost += x.lost;
		corrupt += x.corrupt;
		forged += x.forged;
		twice += x.twice;
		late += x.late_ns != 0;
		late_ns += (double)x.late_ns;
		jitter_ns += (double)x.jitter_ns;
		assert_true(x.late_ns < how.reorder_ns && x.jitter_ns < how.jitter_ns);
	}
	assert_share(lost, how.loss);
	assert_share(corrupt, how.corrupt);
	assert_share(forged, how.forge);
	assert_share(twice, how.duplicate);
	assert_share(late, how.reorder);
	assert_true(fabs(late_ns / late - 2000) < 100);
	assert_true(fabs(jitter_ns / N - 500) < 10);
}

static void bursts_are_as_long_and_as_frequent_as_asked_for(void **state)
{
	struct faults how = {.burst_begin = 0.01, .burst_end = 0.25};
	struct fates f;
	unsigned lost = 0, bursts = 0;
	bool before = false;
	fates_init(&f, 1, 0);
	for (unsigned i = 0; i < N; i++) {
		struct fate x = fates_next(&f, &how);
		assert_int_equal(x.lost, x.burst);
		lost += x.lost;
		bursts += x.lost && !before;
		before = x.lost;
	}
	assert_true(fabs((double)lost / bursts - 4) < 0.4); // 1 / 0.25
	assert_true(fabs((double)lost / N - 0.01 / 0.26) < 0.004);
}

static void without_faults_nothing_happens(void **state)
{
	struct faults how = {0};
	struct fates f;
	fates_init(&f, 1, 0);
	for (unsigned i = 0; i < 1000; i++) {
		struct fate x = fates_next(&f, &how);
		assert_false(x.lost || x.burst || x.corrupt || x.forged || x.twice);
		assert_int_equal(x.late_ns + x.jitter_ns, 0);
	}
}

RUN_SUITE("faultlink/fate", cmocka_unit_test(the_same_seed_draws_the_same_fates),
	cmocka_unit_test(one_fault_more_leaves_the_others_where_they_were),
	cmocka_unit_test(each_fault_is_as_frequent_as_asked_for),
	cmocka_unit_test(bursts_are_as_long_and_as_frequent_as_asked_for),
	cmocka_unit_test(without_faults_nothing_happens))
