// SPDX-License-Identifier: Apache-2.0
#include "lb/base/log.h"
#include "lb/leaf/ejection.h"
#include "lb/member/member.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/lb/fake_node.h"
#include "tests/unit/lb/world.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define N 32

struct fixture {
	struct world world;
	struct lb_member_env member_env;
	struct lb_member *members[N];
	struct lb_ejection *ejection;
	struct lb_outlier_conf conf;
	uint64_t n_ok[N], n_failed[N]; // counted since the last harvest
	uint32_t n_harvests;
	struct lb_ejection_env env;
	struct lb_outlier_counts counts[LB_OUTLIER_N];
};

static void harvest(void *ctx, uint32_t member, uint64_t *ret_ok, uint64_t *ret_failed)
{
	struct fixture *f = ctx;
	*ret_ok = f->n_ok[member];
	*ret_failed = f->n_failed[member];
	f->n_ok[member] = f->n_failed[member] = 0;
	f->n_harvests++;
}

static void init(struct fixture *f)
{
	*f = (struct fixture){.conf = {.interval_ns = 10 * WORLD_S,
				      .base_ejection_ns = 30 * WORLD_S,
				      .max_ejection_ns = 300 * WORLD_S,
				      .max_ejection_percent = 50,
				      .stdev_factor = 1900,
				      .threshold_percent = 85,
				      .failure_percentage = {true, 100, 5, 50}}};
	world_init(&f->world, 1, 1);
	f->member_env = (struct lb_member_env){f->world.connectivity, 250 * WORLD_MS};
	for (uint32_t i = 0; i < N; i++) {
		struct ip_port a = world_addr(i);
		f->members[i] = lb_member_new(&f->member_env, i, &a, 1);
	}
	f->env = (struct lb_ejection_env){
		f->world.wheel, &f->world.rand, harvest, f, f->counts, "blue"};
	f->ejection = lb_ejection_new(&f->env);
	assert_non_null(f->ejection);
}

static void fini(struct fixture *f)
{
	lb_ejection_free(f->ejection);
	for (uint32_t i = 0; i < N; i++)
		lb_member_put(f->members[i]);
	world_fini(&f->world);
}

// The members first .. first + n - 1.
static void update(
	struct fixture *f, const struct lb_outlier_conf *conf, uint32_t first, uint32_t n)
{
	lb_ejection_configure(f->ejection, conf);
	assert_int_equal(lb_ejection_update(f->ejection, f->members + first, n), 0);
}

// As many requests as counts for everybody; those of member i fail.
static void load(struct fixture *f, uint32_t i)
{
	for (uint32_t k = 0; k < N; k++) {
		f->n_ok[k] = k == i ? 0 : 100;
		f->n_failed[k] = k == i ? 100 : 0;
	}
}

static bool is_ejected(struct fixture *f, uint32_t i)
{
	return lb_member_is_ejected(f->members[i]);
}

// A50-E14: what operators are told of an ejection, and of the next sweep.
static void an_ejection_is_told_with_its_end(void **state)
{
	struct fixture f;
	struct lb_ejection_record r;
	struct fake_dump d;
	init(&f);
	update(&f, &f.conf, 0, 10);
	fake_dump_init(&d);
	d.base.enter(&d.base, "od", "");
	lb_ejection_dump(f.ejection, &d.base);
	assert_string_equal(d.text, "od sweep_ms=10000");
	assert_true(lb_ejection_find(f.ejection, f.members[3], &r));
	assert_int_equal(r.multiplier, 0);
	assert_int_equal(r.left_ns, 0);
	assert_false(lb_ejection_find(f.ejection, f.members[10], &r));
	load(&f, 3);
	world_pass(&f.world, 10 * WORLD_S);
	world_pass(&f.world, 4 * WORLD_S);
	assert_true(is_ejected(&f, 3));
	assert_true(lb_ejection_find(f.ejection, f.members[3], &r));
	assert_int_equal(r.multiplier, 1);
	assert_in_range(r.left_ns, 26 * WORLD_S - WORLD_MS, 26 * WORLD_S + WORLD_MS);
	assert_true(lb_ejection_find(f.ejection, f.members[9], &r));
	assert_int_equal(r.multiplier, 0);
	world_pass(&f.world, 30 * WORLD_S);
	assert_true(is_ejected(&f, 3)); // until the next sweep
	assert_true(lb_ejection_find(f.ejection, f.members[3], &r));
	assert_int_equal(r.left_ns, 0);
	world_pass(&f.world, 6 * WORLD_S);
	assert_false(is_ejected(&f, 3));
	fini(&f);
}

// A50-E05, A50-E16
static void failing_member_is_ejected_at_the_end_of_the_interval(void **state)
{
	struct fixture f;
	init(&f);
	update(&f, &f.conf, 0, 10);
	load(&f, 3);
	world_pass(&f.world, 10 * WORLD_S - WORLD_MS);
	assert_false(is_ejected(&f, 3));
	world_pass(&f.world, WORLD_MS);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(is_ejected(&f, i), i == 3);
	assert_int_equal(lb_member_state(f.members[3]), LB_TRANSIENT_FAILURE);
	assert_int_equal(lb_member_raw_state(f.members[3]), LB_IDLE);
	assert_int_equal(lb_ejection_n_ejected(f.ejection), 1);
	fini(&f);
}

// A50-E14: the first sweep later than 30 s after the ejection.
static void ejected_member_returns_after_its_time(void **state)
{
	struct fixture f;
	init(&f);
	update(&f, &f.conf, 0, 10);
	load(&f, 3);
	world_pass(&f.world, 10 * WORLD_S);
	world_pass(&f.world, 40 * WORLD_S - WORLD_MS);
	assert_true(is_ejected(&f, 3));
	world_pass(&f.world, WORLD_MS);
	assert_false(is_ejected(&f, 3));
	fini(&f);
}

// A50-E01
static void end_lets_everybody_back(void **state)
{
	struct fixture f;
	init(&f);
	update(&f, &f.conf, 0, 10);
	load(&f, 3);
	world_pass(&f.world, 10 * WORLD_S);
	lb_ejection_end(f.ejection);
	assert_false(is_ejected(&f, 3));
	lb_ejection_free(f.ejection);
	f.ejection = lb_ejection_new(&f.env);
	// The multiplier is zero: after an ejection anew it is 30 s again.
	update(&f, &f.conf, 0, 10);
	load(&f, 3);
	world_pass(&f.world, 10 * WORLD_S);
	assert_true(is_ejected(&f, 3));
	world_pass(&f.world, 40 * WORLD_S);
	assert_false(is_ejected(&f, 3));
	fini(&f);
}

// A50-E01
static void counters_start_afresh_when_an_algorithm_comes(void **state)
{
	struct fixture f;
	init(&f);
	load(&f, 3);
	update(&f, &f.conf, 0, 10);
	world_pass(&f.world, 10 * WORLD_S);
	assert_false(is_ejected(&f, 3));
	fini(&f);
}

// A50-E17
static void changed_interval_counts_from_the_start_of_the_current_one(void **state)
{
	struct fixture f;
	init(&f);
	update(&f, &f.conf, 0, 10);
	load(&f, 3);
	world_pass(&f.world, 4 * WORLD_S);
	f.conf.interval_ns = 6 * WORLD_S;
	update(&f, &f.conf, 0, 10);
	world_pass(&f.world, 2 * WORLD_S - WORLD_MS);
	assert_false(is_ejected(&f, 3));
	world_pass(&f.world, WORLD_MS);
	assert_true(is_ejected(&f, 3));
	fini(&f);
}

// A50-E17
static void shortened_interval_that_is_over_already_is_swept_at_once(void **state)
{
	struct fixture f;
	init(&f);
	update(&f, &f.conf, 0, 10);
	load(&f, 3);
	world_pass(&f.world, 4 * WORLD_S);
	f.conf.interval_ns = 3 * WORLD_S;
	update(&f, &f.conf, 0, 10);
	world_pass(&f.world, WORLD_MS);
	assert_true(is_ejected(&f, 3));
	f.n_harvests = 0;
	world_pass(&f.world, 3 * WORLD_S - 2 * WORLD_MS);
	assert_int_equal(f.n_harvests, 0);
	world_pass(&f.world, 2 * WORLD_MS);
	assert_int_equal(f.n_harvests, 10);
	fini(&f);
}

// A50-E17
static void other_changes_do_not_move_the_sweep(void **state)
{
	struct fixture f;
	init(&f);
	update(&f, &f.conf, 0, 10);
	load(&f, 3);
	for (int i = 0; i < 9; i++) {
		world_pass(&f.world, WORLD_S);
		f.conf.threshold_percent = 80 + (uint32_t)i;
		update(&f, &f.conf, 0, 10 + (uint32_t)i % 2);
	}
	world_pass(&f.world, WORLD_S);
	assert_true(is_ejected(&f, 3));
	fini(&f);
}

// A50-E04, A50-E14
static void record_is_kept_over_updates_in_any_order(void **state)
{
	struct fixture f;
	init(&f);
	update(&f, &f.conf, 0, 10);
	load(&f, 3);
	world_pass(&f.world, 10 * WORLD_S);
	struct lb_member *list[6] = {f.members[12], f.members[3], f.members[1], f.members[11],
		f.members[0], f.members[30]};
	assert_int_equal(lb_ejection_update(f.ejection, list, 6), 0);
	assert_true(is_ejected(&f, 3));
	world_pass(&f.world, 40 * WORLD_S);
	assert_false(is_ejected(&f, 3));
	fini(&f);
}

// A50-E18
static void what_was_counted_for_a_removed_member_is_ignored(void **state)
{
	struct fixture f;
	init(&f);
	update(&f, &f.conf, 0, 10);
	update(&f, &f.conf, 4, 10);
	load(&f, 3);
	world_pass(&f.world, 9 * WORLD_S);
	update(&f, &f.conf, 0, 10); // the number is in use again
	world_pass(&f.world, WORLD_S);
	assert_false(is_ejected(&f, 3));
	load(&f, 3);
	world_pass(&f.world, 10 * WORLD_S);
	assert_true(is_ejected(&f, 3));
	fini(&f);
}

// A75-E11: idle ones count too: of 4 with requests one may go, as there are 16 beside them.
static void members_without_requests_count_in_the_total(void **state)
{
	struct fixture f;
	init(&f);
	f.conf.max_ejection_percent = 10;
	f.conf.failure_percentage.minimum_hosts = 1;
	update(&f, &f.conf, 0, 20);
	for (uint32_t i = 0; i < 4; i++)
		f.n_failed[i] = 100;
	world_pass(&f.world, 10 * WORLD_S);
	assert_int_equal(lb_ejection_n_ejected(f.ejection), 2);
	fini(&f);
}

static void largest_interval_does_not_overflow(void **state)
{
	struct fixture f;
	init(&f);
	f.conf.interval_ns = UINT64_MAX;
	update(&f, &f.conf, 0, 10);
	f.n_harvests = 0;
	world_pass(&f.world, 10 * WORLD_S);
	assert_int_equal(f.n_harvests, 0);
	fini(&f);
}

static void each_allocation_that_fails_leaves_it_as_before(void **state)
{
	struct fixture f;
	struct lb_ejection *e = NULL;
	bool failed = true;
	init(&f);
	ALLOC_FAIL_EACH(e = lb_ejection_new(&f.env), !e, lb_ejection_free(e));
	update(&f, &f.conf, 0, 10);
	load(&f, 3);
	world_pass(&f.world, 10 * WORLD_S);
	for (size_t nth = 0; failed && alloc_fail_works(); nth++) {
		struct lb_ejection_record record;
		alloc_fail_arm(nth);
		int err = lb_ejection_update(f.ejection, f.members + 3, 10);
		failed = alloc_fail_disarm();
		assert_int_equal(err, failed ? -ENOMEM : 0);
		assert_true(is_ejected(&f, 3));
		assert_int_equal(lb_ejection_find(f.ejection, f.members[0], &record), failed);
	}
	fini(&f);
}

// FL-17, A50-E14: as long as it had still to go, by the multiplier that it had.
static void an_ejection_goes_on_at_another_process(void **state)
{
	struct fixture older, newer;
	struct lb_ejection_bequest b;
	init(&older);
	init(&newer);
	update(&older, &older.conf, 0, 10);
	load(&older, 3);
	world_pass(&older.world, 10 * WORLD_S);
	world_pass(&older.world, 14 * WORLD_S);
	lb_ejection_bequeath(older.ejection, older.members[4], &b);
	assert_true(!b.is_ejected && !b.multiplier);
	lb_ejection_bequeath(older.ejection, older.members[3], &b);
	assert_true(b.is_ejected && b.multiplier == 1);
	world_pass(&newer.world, 100 * WORLD_S);
	update(&newer, &newer.conf, 0, 10);
	assert_false(lb_ejection_inherit(newer.ejection, newer.members[11], &b));
	assert_true(lb_ejection_inherit(newer.ejection, newer.members[3], &b));
	assert_true(is_ejected(&newer, 3));
	assert_int_equal(lb_ejection_n_ejected(newer.ejection), 1);
	world_pass(&newer.world, 15 * WORLD_S);
	assert_true(is_ejected(&newer, 3));
	world_pass(&newer.world, 10 * WORLD_S);
	assert_false(is_ejected(&newer, 3));
	fini(&older);
	fini(&newer);
}

// What was logged, one line after the other.
static char told[8192];

static void on_line(
	void *ctx, uint64_t wall_ns, enum log_level level, const char *msg, const char *rest)
{
	size_t n = strlen(told);
	snprintf(told + n, sizeof(told) - n, "%s %s %s\n", log_level_name(level), msg, rest);
}

static uint32_t n_told(const char *text)
{
	uint32_t n = 0;
	for (const char *at = told; (at = strstr(at, text)); at++)
		n++;
	return n;
}

static void hear(struct fixture *f)
{
	told[0] = 0;
	log_set_level(LOG_LEVEL_ERROR); // the sink hears all the same
	log_set_sink(on_line, NULL);
	init(f);
}

static void hear_no_more(struct fixture *f)
{
	fini(f);
	log_set_sink(NULL, NULL);
}

static void ops_275_an_ejection_and_its_end_are_told(void **state)
{
	struct fixture f;
	char expected[512], address[IP_PORT_TEXT_MAX];
	hear(&f);
	ip_port_print(lb_member_address(f.members[3], 0), address);
	update(&f, &f.conf, 0, 10);
	load(&f, 3);
	world_pass(&f.world, 10 * WORLD_S);
	snprintf(expected, sizeof(expected),
		"warn endpoint ejected cluster=\"blue\" endpoint=%s by=failure_percentage "
		"for_s=30\n",
		address);
	assert_string_equal(told, expected);
	told[0] = 0;
	world_pass(&f.world, 30 * WORLD_S);
	assert_string_equal(told, "");
	world_pass(&f.world, 10 * WORLD_S);
	snprintf(expected, sizeof(expected),
		"info endpoint back from ejection cluster=\"blue\" endpoint=%s\n", address);
	assert_string_equal(told, expected);
	hear_no_more(&f);
}

static void ops_275_which_algorithm_ejected_is_told(void **state)
{
	struct fixture f;
	hear(&f);
	f.conf.success_rate = f.conf.failure_percentage;
	f.conf.base_ejection_ns = f.conf.max_ejection_ns = 500 * WORLD_MS;
	update(&f, &f.conf, 0, 10);
	load(&f, 3);
	world_pass(&f.world, 10 * WORLD_S);
	assert_int_equal(n_told(" by=success_rate for_s=0.5\n"), 1);
	assert_int_equal(n_told("\n"), 1);
	hear_no_more(&f);
}

static void ops_275_the_end_of_outlier_detection_ends_ejections(void **state)
{
	struct fixture f;
	hear(&f);
	update(&f, &f.conf, 0, 10);
	load(&f, 3);
	world_pass(&f.world, 10 * WORLD_S);
	lb_ejection_end(f.ejection);
	assert_int_equal(n_told("endpoint back from ejection"), 1);
	assert_int_equal(n_told("\n"), 2);
	hear_no_more(&f);
}

// Of 32 that go at once 16 have lines, then one each ten seconds.
static void ops_275_many_ejections_are_a_number(void **state)
{
	struct fixture f;
	hear(&f);
	f.conf.max_ejection_percent = 100;
	update(&f, &f.conf, 0, N);
	for (uint32_t i = 0; i < N; i++)
		f.n_failed[i] = 100;
	world_pass(&f.world, 10 * WORLD_S);
	assert_int_equal(lb_ejection_n_ejected(f.ejection), N);
	assert_int_equal(n_told("endpoint ejected"), 16);
	assert_int_equal(n_told("warn more ejections cluster=\"blue\" ejected=16 back=0\n"), 1);
	assert_int_equal(n_told("\n"), 17);
	told[0] = 0;
	world_pass(&f.world, 40 * WORLD_S);
	assert_int_equal(lb_ejection_n_ejected(f.ejection), 0);
	assert_int_equal(n_told("endpoint back from ejection"), 4);
	assert_int_equal(n_told("warn more ejections cluster=\"blue\" ejected=0 back=28\n"), 1);
	assert_int_equal(n_told("\n"), 5);
	hear_no_more(&f);
}

// All of the members go and come back each second: in ten minutes a line each ten seconds, and a
// sum, beyond the 16 of the beginning.
static void ops_275_flapping_members_do_not_flood_the_log(void **state)
{
	struct fixture f;
	hear(&f);
	f.conf.max_ejection_percent = 100;
	f.conf.interval_ns = WORLD_S;
	f.conf.base_ejection_ns = f.conf.max_ejection_ns = 1;
	update(&f, &f.conf, 0, N);
	uint32_t n = 0;
	for (int i = 0; i < 600; i++) {
		for (uint32_t k = 0; k < N && i % 2 == 0; k++)
			f.n_failed[k] = 100;
		world_pass(&f.world, WORLD_S);
		n += n_told("\n");
		told[0] = 0;
	}
	assert_in_range(n, 100, 16 + 60 + 61);
	hear_no_more(&f);
}

RUN_SUITE("lb/ejection", cmocka_unit_test(an_ejection_goes_on_at_another_process),
	cmocka_unit_test(an_ejection_is_told_with_its_end),
	cmocka_unit_test(failing_member_is_ejected_at_the_end_of_the_interval),
	cmocka_unit_test(ejected_member_returns_after_its_time),
	cmocka_unit_test(end_lets_everybody_back),
	cmocka_unit_test(counters_start_afresh_when_an_algorithm_comes),
	cmocka_unit_test(changed_interval_counts_from_the_start_of_the_current_one),
	cmocka_unit_test(shortened_interval_that_is_over_already_is_swept_at_once),
	cmocka_unit_test(other_changes_do_not_move_the_sweep),
	cmocka_unit_test(record_is_kept_over_updates_in_any_order),
	cmocka_unit_test(what_was_counted_for_a_removed_member_is_ignored),
	cmocka_unit_test(members_without_requests_count_in_the_total),
	cmocka_unit_test(largest_interval_does_not_overflow),
	cmocka_unit_test(each_allocation_that_fails_leaves_it_as_before),
	cmocka_unit_test(ops_275_an_ejection_and_its_end_are_told),
	cmocka_unit_test(ops_275_which_algorithm_ejected_is_told),
	cmocka_unit_test(ops_275_the_end_of_outlier_detection_ends_ejections),
	cmocka_unit_test(ops_275_many_ejections_are_a_number),
	cmocka_unit_test(ops_275_flapping_members_do_not_flood_the_log))
