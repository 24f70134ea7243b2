// SPDX-License-Identifier: Apache-2.0
#include "lb/base/time.h"
#include "lb/pick/orca.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <math.h>

#define S NS_PER_SECOND

static const struct lb_orca_conf conf = {1.0, 10 * S, 180 * S};

static bool report(
	struct lb_orca_table *t, double qps, double eps, double app, double cpu, uint64_t now_ns)
{
	const struct lb_orca_report r = {qps, eps, app, cpu};
	return lb_orca_report(t, 7, &r, now_ns);
}

static bool is_near(double a, double b)
{
	return fabs(a - b) < 1e-4 * b;
}

// A58-01
static void weight_is_requests_over_utilization_and_failures(void **state)
{
	(void)state;
	struct lb_orca_table *t = lb_orca_table_new();
	struct lb_orca_conf now = {1.0, 0, 180 * S};
	assert_true(report(t, 100, 0, 0, 0.5, S));
	assert_true(is_near(lb_orca_weight(t, 7, &now, S), 200));
	assert_true(report(t, 100, 0, 0.25, 0.5, S)); // the application's word counts first
	assert_true(is_near(lb_orca_weight(t, 7, &now, S), 400));
	assert_true(report(t, 100, 10, 0, 0.4, S));
	assert_true(is_near(lb_orca_weight(t, 7, &now, S), 100 / 0.5));
	now.error_penalty = 6;
	assert_true(is_near(lb_orca_weight(t, 7, &now, S), 100));
	assert_true(report(t, 100, 0, -1, 1.5, S));
	assert_true(is_near(lb_orca_weight(t, 7, &now, S), 100 / 1.5));
	lb_orca_table_free(t);
}

// A58-03: asked without changing anything.
static void a_look_tells_why_there_is_no_weight(void **state)
{
	(void)state;
	struct lb_orca_table *t = lb_orca_table_new();
	double weight = -1;
	assert_int_equal(lb_orca_look(t, 7, &conf, S, &weight), LB_ORCA_NONE);
	assert_true(weight == 0);
	assert_true(report(t, 100, 0, 0, 0.5, S));
	assert_int_equal(lb_orca_look(t, 7, &conf, 10 * S, &weight), LB_ORCA_BLACKOUT);
	assert_int_equal(lb_orca_look(t, 7, &conf, 11 * S, &weight), LB_ORCA_WEIGHT);
	assert_true(is_near(weight, 200));
	assert_int_equal(lb_orca_look(t, 7, &conf, 181 * S, &weight), LB_ORCA_EXPIRED);
	assert_true(weight == 0);
	assert_true(report(t, 100, 0, 0, 0.5, 182 * S));
	assert_int_equal(lb_orca_look(t, 7, &conf, 182 * S, &weight), LB_ORCA_WEIGHT);
	lb_orca_table_free(t);
}

// A58-01
static void report_without_requests_or_utilization_is_ignored(void **state)
{
	(void)state;
	struct lb_orca_table *t = lb_orca_table_new();
	assert_true(report(t, 100, 0, 0, 0.5, 0));
	const double bad[][2] = {{0, 0.5}, {-1, 0.5}, {NAN, 0.5}, {100, 0}, {100, -1}, {100, NAN},
		{INFINITY, 0.5}, {100, INFINITY}};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(report(t, bad[i][0], 0, 0, bad[i][1], 170 * S));
	assert_true(is_near(lb_orca_weight(t, 7, &conf, 179 * S), 200));
	assert_true(lb_orca_weight(t, 7, &conf, 180 * S) == 0); // its age is the good report's
	assert_true(report(t, 100, NAN, NAN, 0.5, 200 * S)); // the rest of it is good
	assert_true(is_near(lb_orca_weight(t, 7, &conf, 210 * S), 200));
	lb_orca_table_free(t);
}

// A58-03
static void weight_is_unused_until_blackout_is_over(void **state)
{
	(void)state;
	struct lb_orca_table *t = lb_orca_table_new();
	assert_true(lb_orca_weight(t, 7, &conf, 0) == 0);
	assert_true(report(t, 100, 0, 0, 0.5, 5 * S));
	assert_true(lb_orca_weight(t, 7, &conf, 5 * S) == 0);
	assert_true(report(t, 100, 0, 0, 0.25, 14 * S)); // does not start it anew
	assert_true(lb_orca_weight(t, 7, &conf, 15 * S - 1) == 0);
	assert_true(is_near(lb_orca_weight(t, 7, &conf, 15 * S), 400));
	lb_orca_table_free(t);
}

// A58-03
static void expiry_and_return_to_ready_start_blackout_anew(void **state)
{
	(void)state;
	struct lb_orca_table *t = lb_orca_table_new();
	assert_true(report(t, 100, 0, 0, 0.5, 0));
	assert_true(lb_orca_weight(t, 7, &conf, 180 * S - 1) > 0);
	assert_true(lb_orca_weight(t, 7, &conf, 180 * S) == 0);
	assert_true(report(t, 100, 0, 0, 0.5, 200 * S));
	assert_true(lb_orca_weight(t, 7, &conf, 210 * S - 1) == 0);
	assert_true(lb_orca_weight(t, 7, &conf, 210 * S) > 0);
	lb_orca_restart(t, 7);
	assert_true(lb_orca_weight(t, 7, &conf, 220 * S) == 0);
	assert_true(report(t, 100, 0, 0, 0.5, 230 * S));
	assert_true(lb_orca_weight(t, 7, &conf, 240 * S - 1) == 0);
	assert_true(lb_orca_weight(t, 7, &conf, 240 * S) > 0);
	lb_orca_forget(t, 7);
	assert_true(lb_orca_weight(t, 7, &conf, 240 * S) == 0);
	lb_orca_table_free(t);
}

static void members_know_nothing_of_each_other(void **state)
{
	(void)state;
	struct lb_orca_table *t = lb_orca_table_new();
	assert_true(report(t, 100, 0, 0, 0.5, 0));
	const struct lb_orca_report r = {300, 0, 0, 0.5};
	assert_true(lb_orca_report(t, 100000, &r, 0));
	assert_true(is_near(lb_orca_weight(t, 7, &conf, 10 * S), 200));
	assert_true(is_near(lb_orca_weight(t, 100000, &conf, 10 * S), 600));
	assert_true(lb_orca_weight(t, 99999, &conf, 10 * S) == 0);
	lb_orca_forget(t, 1u << 31);
	lb_orca_restart(t, 1u << 31);
	lb_orca_table_free(t);
}

static void report_without_memory_is_lost(void **state)
{
	(void)state;
	struct lb_orca_table *t = NULL;
	ALLOC_FAIL_EACH(t = lb_orca_table_new(), !t, (void)0);
	alloc_fail_arm(0);
	bool taken = report(t, 100, 0, 0, 0.5, 0);
	assert_true(taken == !alloc_fail_disarm());
	assert_true(report(t, 100, 0, 0, 0.5, 0));
	lb_orca_table_free(t);
}

// FL-17
static void a_report_is_passed_on_with_its_age(void **state)
{
	struct lb_orca_table *t = lb_orca_table_new(), *other = lb_orca_table_new();
	struct lb_orca_bequest b;
	double weight;
	lb_orca_bequeath(t, 7, 500 * S, &b);
	assert_true(b.qps == 0);
	assert_false(lb_orca_inherit(other, 7, &b, false, 500 * S));
	assert_true(report(t, 100, 0, 0, 0.5, 500 * S));
	lb_orca_bequeath(t, 7, 508 * S, &b);
	assert_true(lb_orca_inherit(other, 7, &b, false, 1008 * S));
	assert_int_equal(lb_orca_look(other, 7, &conf, 1009 * S, &weight), LB_ORCA_BLACKOUT);
	assert_int_equal(lb_orca_look(other, 7, &conf, 1010 * S, &weight), LB_ORCA_WEIGHT);
	assert_true(is_near(weight, 200));
	assert_int_equal(lb_orca_look(other, 7, &conf, 1180 * S, &weight), LB_ORCA_EXPIRED);
	assert_false(lb_orca_inherit(other, 7, &b, false, 1008 * S)); // it has one
	assert_true(lb_orca_inherit(other, 8, &b, false, 3 * S)); // older than all time
	lb_orca_table_free(t);
	lb_orca_table_free(other);
}

// FL-17, A58-03
static void a_member_that_is_coming_is_not_restarted_by_that(void **state)
{
	struct lb_orca_table *t = lb_orca_table_new();
	const struct lb_orca_bequest b = {100, 0, 0.5F, S, true, 60 * S};
	double weight;
	assert_true(lb_orca_inherit(t, 7, &b, true, 100 * S));
	lb_orca_restart(t, 7);
	assert_int_equal(lb_orca_look(t, 7, &conf, 100 * S, &weight), LB_ORCA_WEIGHT);
	lb_orca_restart(t, 7);
	assert_int_equal(lb_orca_look(t, 7, &conf, 100 * S, &weight), LB_ORCA_BLACKOUT);
	lb_orca_table_free(t);
}

RUN_SUITE("lb/orca", cmocka_unit_test(a_report_is_passed_on_with_its_age),
	cmocka_unit_test(a_member_that_is_coming_is_not_restarted_by_that),
	cmocka_unit_test(weight_is_requests_over_utilization_and_failures),
	cmocka_unit_test(a_look_tells_why_there_is_no_weight),
	cmocka_unit_test(report_without_requests_or_utilization_is_ignored),
	cmocka_unit_test(weight_is_unused_until_blackout_is_over),
	cmocka_unit_test(expiry_and_return_to_ready_start_blackout_anew),
	cmocka_unit_test(members_know_nothing_of_each_other),
	cmocka_unit_test(report_without_memory_is_lost))
