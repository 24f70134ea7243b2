// SPDX-License-Identifier: Apache-2.0
// Numbers of rows, and what is remembered with them.
#include "ctrl/stats/haproxy_ids.h"
#include "lb/base/time.h"
#include "tests/support/check.h"

#include <stdio.h>

// OPS-112
static void each_row_of_a_listing_is_taken_once_and_keeps_its_number(void **state)
{
	struct haproxy_ids *s = haproxy_ids_new();
	uint64_t first = haproxy_ids_begin(s);
	uint32_t a = haproxy_ids_take(s, first, "one", "a")->number;
	uint32_t b = haproxy_ids_take(s, first, "two", "a")->number;
	assert_int_not_equal(a, b);
	assert_null(haproxy_ids_take(s, first, "one", "a"));
	haproxy_ids_end(s, first, 2);
	uint64_t second = haproxy_ids_begin(s);
	assert_int_equal(haproxy_ids_take(s, second, "two", "a")->number, b);
	assert_int_equal(haproxy_ids_take(s, second, "one", "a")->number, a);
	haproxy_ids_end(s, second, 2);
	haproxy_ids_free(s);
}

static void take_many(struct haproxy_ids *s, unsigned from, unsigned n, bool is_whole)
{
	char name[32];
	uint64_t listing = haproxy_ids_begin(s);
	for (unsigned i = from; i < from + n; i++) {
		snprintf(name, sizeof(name), "%u", i);
		assert_int_not_equal(haproxy_ids_take(s, listing, "in", name)->number, 0);
	}
	haproxy_ids_end(s, listing, is_whole ? n : UINT32_MAX);
}

static uint32_t number_of(struct haproxy_ids *s, const char *name)
{
	uint64_t listing = haproxy_ids_begin(s);
	uint32_t ret = haproxy_ids_take(s, listing, "in", name)->number;
	haproxy_ids_end(s, listing, UINT32_MAX);
	return ret;
}

// OPS-112: those that come back after that get numbers that nobody had.
static void rows_that_went_are_forgotten_once_they_are_many(void **state)
{
	struct haproxy_ids *s = haproxy_ids_new();
	take_many(s, 0, 10000, true);
	uint32_t before = number_of(s, "7");
	take_many(s, 20000, 10, false); // of a part, which says nothing of the others
	assert_int_equal(number_of(s, "7"), before);
	uint64_t other = haproxy_ids_begin(s); // whoever is at it may hold some
	take_many(s, 20000, 10, true);
	haproxy_ids_end(s, other, UINT32_MAX);
	assert_int_equal(number_of(s, "7"), before);
	take_many(s, 20000, 10, true);
	assert_true(number_of(s, "7") > 10010);
	haproxy_ids_free(s);
}

static void a_reading_knows_rate_and_mean(void **state)
{
	struct haproxy_reading r = {0};
	haproxy_reading_take(&r, 0, 0, NS_PER_SECOND);
	assert_true(!r.has_rate && !r.has_mean);
	haproxy_reading_take(&r, 30, 600, 3 * NS_PER_SECOND);
	assert_true(r.has_rate && r.has_mean);
	assert_int_equal(r.per_s, 15);
	assert_int_equal(r.mean, 20);
	haproxy_reading_take(&r, 99, 999, 3 * NS_PER_SECOND + 1); // too soon
	assert_int_equal(r.per_s, 15);
	haproxy_reading_take(&r, 30, 600, 5 * NS_PER_SECOND); // nothing since
	assert_int_equal(r.per_s, 0);
	assert_int_equal(r.mean, 20);
	haproxy_reading_take(&r, 2, 20, 7 * NS_PER_SECOND); // another one by that name
	assert_int_equal(r.per_s, 0);
	haproxy_reading_take(&r, 4, 80, 8 * NS_PER_SECOND);
	assert_int_equal(r.per_s, 2);
	assert_int_equal(r.mean, 30);
}

// A row that is told the first time has a mean of all that it counted.
static void the_first_reading_has_a_mean_at_once(void **state)
{
	struct haproxy_reading r = {0};
	haproxy_reading_take(&r, 4, 80, 9 * NS_PER_SECOND);
	assert_true(r.has_mean && !r.has_rate);
	assert_int_equal(r.mean, 20);
}

RUN_SUITE("ctrl/haproxy_ids",
	cmocka_unit_test(each_row_of_a_listing_is_taken_once_and_keeps_its_number),
	cmocka_unit_test(rows_that_went_are_forgotten_once_they_are_many),
	cmocka_unit_test(a_reading_knows_rate_and_mean),
	cmocka_unit_test(the_first_reading_has_a_mean_at_once))
