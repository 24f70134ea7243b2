// SPDX-License-Identifier: Apache-2.0
// Rates between two looks.
#include "ctrl/doctor/counts.h"
#include "lb/base/time.h"
#include "tests/support/check.h"

static struct counts_row row_of(const char *name, uint64_t at_s, uint64_t requests, uint64_t failed)
{
	return (struct counts_row){.name = (char *)(uintptr_t)name,
		.at_ns = at_s * NS_PER_SECOND,
		.requests = requests,
		.ok = requests - failed,
		.failed = failed};
}

static void since(struct counts *before, const char *name, uint64_t at_s, uint64_t requests,
	uint64_t failed, double ret[2])
{
	const struct counts_row row = row_of(name, at_s, requests, failed);
	counts_since(before, &row, &ret[0], &ret[1]);
}

static void add(
	struct counts *c, const char *name, uint64_t at_s, uint64_t requests, uint64_t failed)
{
	const struct counts_row row = row_of(name, at_s, requests, failed);
	assert_int_equal(counts_add(c, &row), 0);
}

static void rates_are_those_of_the_time_between(void **state)
{
	struct counts before = {.n = 0};
	double r[2];
	add(&before, "b", 10, 100, 3);
	add(&before, "d", 10, 0, 0);
	since(&before, "a", 14, 7, 0, r); // a new one
	assert_true(r[0] == -1 && r[1] == -1);
	since(&before, "b", 14, 120, 5, r);
	assert_true(r[0] == 5 && r[1] == 0.5);
	since(&before, "c", 14, 7, 0, r);
	assert_true(r[0] == -1);
	since(&before, "d", 14, 0, 0, r);
	assert_true(r[0] == 0 && r[1] == 0);
	since(&before, "e", 14, 1, 1, r);
	assert_true(r[0] == -1);
	counts_fini(&before);
}

static void what_was_made_anew_has_no_rate_yet(void **state)
{
	struct counts before = {.n = 0};
	double r[2];
	add(&before, "a", 10, 100, 3);
	since(&before, "a", 12, 50, 3, r);
	assert_true(r[0] == -1 && r[1] == -1);
	before.at = 0;
	since(&before, "a", 10, 200, 3, r); // no time has passed
	assert_true(r[0] == -1);
	before.rows[0].bad = 20;
	struct counts_row row = row_of("a", 12, 200, 3);
	for (row.bad = 19; row.bad <= 20; row.bad++) {
		before.at = 0;
		counts_since(&before, &row, &r[0], &r[1]);
		assert_true(r[0] == (row.bad < 20 ? -1 : 50) && r[1] == (row.bad < 20 ? -1 : 0));
	}
	before.at = 0;
	row = row_of("a", 12, 200, 110); // 90 of ok, which were 97
	row.bad = 20;
	assert_null(counts_find(&before, &row));
	counts_fini(&before);
}

// Workers are in order of their numbers.
static void numbers_follow_each_other_as_they_did(void **state)
{
	static const char *const names[] = {"0", "1", "2", "9", "10", "11"};
	struct counts before = {.n = 0};
	double r[2];
	for (int i = 0; i < 6; i++)
		add(&before, names[i], 1, 0, 0);
	for (int i = 0; i < 6; i++) {
		since(&before, names[i], 2, (uint64_t)i, 0, r);
		assert_true(r[0] == i);
	}
	counts_fini(&before);
}

// OPS-278
static void answers_of_backends_that_blame_them_are_failures_and_each_request_is_one(void **state)
{
	struct counts before = {.n = 0};
	double r[2];
	add(&before, "a", 10, 100, 3);
	struct counts_row row = row_of("a", 12, 200, 23); // of which we answered 20 with 503
	row.bad = 60;
	counts_since(&before, &row, &r[0], &r[1]);
	assert_true(r[0] == 50 && r[1] == 40);
	counts_fini(&before);
}

RUN_SUITE("ctrl/doctor/counts", cmocka_unit_test(rates_are_those_of_the_time_between),
	cmocka_unit_test(what_was_made_anew_has_no_rate_yet),
	cmocka_unit_test(answers_of_backends_that_blame_them_are_failures_and_each_request_is_one),
	cmocka_unit_test(numbers_follow_each_other_as_they_did))
