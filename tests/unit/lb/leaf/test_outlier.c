// SPDX-License-Identifier: Apache-2.0
#include "lb/base/time.h"
#include "lb/leaf/outlier.h"
#include "tests/support/check.h"

#define S NS_PER_SECOND
#define N 200

struct fixture {
	struct lb_outlier_conf conf;
	struct lb_outlier_host hosts[N];
	uint32_t n;
	struct rand rand;
	uint64_t now_ns;
	struct lb_outlier_counts counts[LB_OUTLIER_N];
};

static struct fixture rates(uint32_t n)
{
	struct fixture f = {
		.conf = {.interval_ns = 10 * S,
			.base_ejection_ns = 30 * S,
			.max_ejection_ns = 300 * S,
			.max_ejection_percent = 10,
			.stdev_factor = 1900,
			.threshold_percent = 85,
			.success_rate = {true, 100, 5, 100},
			.failure_percentage = {false, 100, 5, 50}},
		.n = n,
	};
	rand_init(&f.rand, 1);
	for (uint32_t i = 0; i < n; i++)
		f.hosts[i].n_ok = 100;
	return f;
}

static struct fixture failures(uint32_t n)
{
	struct fixture f = rates(n);
	f.conf.success_rate.enabled = false;
	f.conf.failure_percentage.enabled = true;
	return f;
}

static void set(struct fixture *f, uint32_t i, uint64_t n_ok, uint64_t n_failed)
{
	f->hosts[i].n_ok = n_ok;
	f->hosts[i].n_failed = n_failed;
}

static uint32_t sweep(struct fixture *f)
{
	f->now_ns += f->conf.interval_ns;
	lb_outlier_sweep(&f->conf, f->hosts, f->n, f->now_ns, &f->rand, f->counts);
	uint32_t n = 0;
	for (uint32_t i = 0; i < f->n; i++)
		n += f->hosts[i].ejected;
	return n;
}

static void quiet(struct fixture *f)
{
	for (uint32_t i = 0; i < f->n; i++)
		set(f, i, 0, 0);
}

// A50-E07: 4 x 100 % and 1 x 99 % give a mean of 99.8, a deviation of 0.4 and a cut of 99.04.
static void one_slightly_worse_of_five_is_ejected_by_success_rate(void **state)
{
	struct fixture f = rates(5);
	f.conf.max_ejection_percent = 20;
	set(&f, 3, 99, 1);
	assert_int_equal(sweep(&f), 1);
	assert_true(f.hosts[3].ejected);
	struct fixture four = rates(4); // A50-E06: too few
	four.conf.max_ejection_percent = 100;
	set(&four, 3, 0, 100);
	assert_int_equal(sweep(&four), 0);
}

static void equal_rates_eject_nobody_since_only_below_the_cut_counts(void **state) // A50-E07
{
	struct fixture f = rates(10);
	for (uint32_t i = 0; i < 10; i++)
		set(&f, i, 10, 90);
	assert_int_equal(sweep(&f), 0);
}

static void hosts_without_volume_are_no_candidates(void **state) // A50-E06
{
	struct fixture f = rates(6);
	f.conf.max_ejection_percent = 100;
	set(&f, 0, 0, 99); // below request_volume
	assert_int_equal(sweep(&f), 0);
	set(&f, 0, 0, 100);
	set(&f, 1, 50, 0);
	assert_int_equal(sweep(&f), 1); // five candidates are left
	assert_true(f.hosts[0].ejected);
	quiet(&f);
	set(&f, 1, 0, 100);
	assert_int_equal(sweep(&f), 1); // one candidate is too few
}

// A50-E08: 85.0 % survives a threshold of 85, and a threshold of 100 never fires.
static void failure_percentage_ejects_only_above_the_threshold(void **state)
{
	struct fixture f = failures(5);
	f.conf.max_ejection_percent = 100;
	set(&f, 0, 15, 85);
	set(&f, 1, 14, 86);
	assert_int_equal(sweep(&f), 1);
	assert_true(f.hosts[1].ejected);
	struct fixture never = failures(5);
	never.conf.threshold_percent = 100;
	never.conf.max_ejection_percent = 100;
	set(&never, 0, 0, 1000);
	assert_int_equal(sweep(&never), 0);
}

// A50-E09, and A75-E11: all endpoints count in the total.
static void the_limit_is_looked_at_before_each_ejection(void **state)
{
	struct fixture f = failures(15);
	for (uint32_t i = 0; i < 10; i++)
		set(&f, i, 0, 100);
	assert_int_equal(sweep(&f), 2); // 1/15 is below 10 %
	assert_int_equal(sweep(&f), 2);
	struct fixture all = failures(15);
	all.conf.max_ejection_percent = 100;
	for (uint32_t i = 0; i < 15; i++)
		set(&all, i, 0, 100);
	assert_int_equal(sweep(&all), 15);
}

static void a_limit_of_zero_ejects_nobody(void **state) // A50-E10
{
	struct fixture f = failures(15);
	f.conf.max_ejection_percent = 0;
	set(&f, 0, 0, 100);
	assert_int_equal(sweep(&f), 0);
}

static void enforcement_of_one_percent_means_one_percent(void **state) // A50-E12
{
	uint32_t n_ejected = 0;
	struct fixture f = failures(N);
	f.conf.failure_percentage.enforcement_percent = 1;
	f.conf.max_ejection_percent = 100;
	for (uint32_t i = 0; i < N; i++)
		set(&f, i, 0, 100);
	for (int round = 0; round < 1000; round++) {
		n_ejected += sweep(&f);
		for (uint32_t i = 0; i < N; i++)
			f.hosts[i].ejected = false;
	}
	// 200000 draws of 1 %: four standard deviations are 178.
	assert_in_range(n_ejected, 2000 - 178, 2000 + 178);
	f.conf.failure_percentage.enforcement_percent = 0;
	assert_int_equal(sweep(&f), 0);
}

// A50-E13: one shared count, and nobody twice.
static void both_algorithms_share_the_limit_and_eject_a_host_once(void **state)
{
	struct fixture f = rates(20);
	f.conf.failure_percentage.enabled = true;
	set(&f, 0, 0, 100);
	set(&f, 1, 0, 100);
	set(&f, 2, 0, 100);
	assert_int_equal(sweep(&f), 2);
	assert_int_equal(f.hosts[0].multiplier, 1);
	uint64_t stamp = f.hosts[0].ejected_at_ns;
	assert_int_equal(sweep(&f), 2); // still as bad: no new stamp
	assert_true(f.hosts[0].ejected_at_ns == stamp);
	assert_int_equal(f.hosts[0].multiplier, 1);
}

// A50-E14: the first sweep with now > stamp + base * multiplier.
static void an_ejection_ends_at_the_first_sweep_after_its_time(void **state)
{
	struct fixture f = failures(5);
	f.conf.max_ejection_percent = 100;
	set(&f, 0, 0, 100);
	sweep(&f); // at 10 s, for 30 s
	quiet(&f);
	assert_int_equal(sweep(&f), 1);
	assert_int_equal(sweep(&f), 1);
	assert_int_equal(sweep(&f), 1); // 40 s: not yet later
	assert_int_equal(sweep(&f), 0); // 50 s
}

// A50-E15: the multiplier does not fall at the sweep that ends the ejection.
static void ejection_again_at_the_next_sweep_lasts_twice_as_long(void **state)
{
	struct fixture f = failures(5);
	f.conf.max_ejection_percent = 100;
	set(&f, 0, 0, 100);
	sweep(&f);
	quiet(&f);
	while (f.hosts[0].ejected)
		sweep(&f);
	assert_int_equal(f.hosts[0].multiplier, 1);
	for (uint32_t i = 1; i < 5; i++)
		set(&f, i, 100, 0);
	set(&f, 0, 0, 100);
	sweep(&f);
	assert_int_equal(f.hosts[0].multiplier, 2);
	quiet(&f);
	uint32_t n_sweeps = 0;
	while (f.hosts[0].ejected) {
		sweep(&f);
		n_sweeps++;
	}
	assert_int_equal(n_sweeps, 7); // later than 60 s
	sweep(&f);
	sweep(&f);
	sweep(&f);
	assert_int_equal(f.hosts[0].multiplier, 0);
}

static void the_time_of_an_ejection_is_bounded_and_saturates(void **state) // A50-E14
{
	struct fixture f = failures(5);
	f.conf.max_ejection_percent = 100;
	f.hosts[0].multiplier = UINT32_MAX;
	set(&f, 0, 0, 100);
	sweep(&f);
	assert_true(f.hosts[0].multiplier == UINT32_MAX);
	quiet(&f);
	uint32_t n_sweeps = 0;
	while (f.hosts[0].ejected) {
		sweep(&f);
		n_sweeps++;
	}
	assert_int_equal(n_sweeps, 31); // later than 300 s
	f.conf.base_ejection_ns = f.conf.max_ejection_ns = UINT64_MAX;
	for (uint32_t i = 1; i < 5; i++)
		set(&f, i, 100, 0);
	set(&f, 0, 0, 100);
	sweep(&f);
	quiet(&f);
	assert_int_equal(sweep(&f), 1);
}

static void nothing_is_counted_unless_an_algorithm_is_on(void **state) // A50-E01
{
	struct fixture f = rates(5);
	assert_true(lb_outlier_counts(&f.conf));
	f.conf.success_rate.enabled = false;
	assert_false(lb_outlier_counts(&f.conf));
	f.conf.max_ejection_percent = 100;
	set(&f, 0, 0, 100);
	assert_int_equal(sweep(&f), 0);
}

// OPS-227
static void ops_227_outliers_count_by_what_found_them_and_what_became_of_them(void **state)
{
	struct fixture f = failures(15);
	const struct lb_outlier_counts *n = &f.counts[LB_OUTLIER_FAILURE_PERCENTAGE];
	for (uint32_t i = 0; i < 10; i++)
		set(&f, i, 0, 100);
	sweep(&f);
	assert_int_equal(n->enforced, 2);
	assert_int_equal(n->spared_by_limit, 8);
	sweep(&f);
	assert_int_equal(n->enforced, 2); // who is ejected already is none
	assert_int_equal(n->spared_by_limit, 16);
	quiet(&f);
	for (int i = 0; sweep(&f); i++)
		assert_true(i < 1000);
	assert_int_equal(n->enforced, 2); // an ejection that is over stays counted
	f.conf.failure_percentage.enforcement_percent = 0;
	for (uint32_t i = 0; i < 5; i++)
		set(&f, i, i ? 100 : 0, i ? 0 : 100);
	sweep(&f);
	assert_int_equal(n->spared_by_chance, 1);
	f.conf.success_rate.enabled = true;
	assert_int_equal(sweep(&f), 1);
	assert_int_equal(f.counts[LB_OUTLIER_SUCCESS_RATE].enforced, 1);
	assert_int_equal(n->enforced, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_slightly_worse_of_five_is_ejected_by_success_rate),
		cmocka_unit_test(equal_rates_eject_nobody_since_only_below_the_cut_counts),
		cmocka_unit_test(hosts_without_volume_are_no_candidates),
		cmocka_unit_test(failure_percentage_ejects_only_above_the_threshold),
		cmocka_unit_test(the_limit_is_looked_at_before_each_ejection),
		cmocka_unit_test(a_limit_of_zero_ejects_nobody),
		cmocka_unit_test(enforcement_of_one_percent_means_one_percent),
		cmocka_unit_test(both_algorithms_share_the_limit_and_eject_a_host_once),
		cmocka_unit_test(an_ejection_ends_at_the_first_sweep_after_its_time),
		cmocka_unit_test(ejection_again_at_the_next_sweep_lasts_twice_as_long),
		cmocka_unit_test(the_time_of_an_ejection_is_bounded_and_saturates),
		cmocka_unit_test(nothing_is_counted_unless_an_algorithm_is_on),
		cmocka_unit_test(ops_227_outliers_count_by_what_found_them_and_what_became_of_them),
	};
	return cmocka_run_group_tests_name("lb/outlier", tests, NULL, NULL);
}
