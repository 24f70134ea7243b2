// SPDX-License-Identifier: Apache-2.0
// Rows that come in slices, and the answer that they make.
#include "ctrl/stats/listing.h"
#include "ctrl/stats/row_query.h"
#include "ctrl/stats/stats_server.h"
#include "lb/base/container_of.h"
#include "tests/support/check.h"

#include <event2/buffer.h>

#include <stdlib.h>
#include <string.h>

static uint64_t now_ns; // a tick is added by each look
static uint64_t ticking_clock(void)
{
	return now_ns += 1000;
}

// So many rows {"i": 0, "name": "n0"}, one a step.
struct numbers {
	struct listing_source source;
	int at, n;
	bool breaks; // out of memory in the middle
};
static unsigned n_freed;

static bool step(struct listing_source *source, struct listing *to)
{
	struct numbers *s = CONTAINER_OF(source, struct numbers, source);
	char name[16];
	if (s->at == s->n)
		return false;
	snprintf(name, sizeof(name), "n%d", s->at % 10);
	bool breaks = s->breaks && s->at == s->n / 2;
	listing_add(to, breaks ? NULL : json_pack("{si ss}", "i", s->at, "name", name));
	s->at++;
	return true;
}

static void numbers_free(struct listing_source *source)
{
	n_freed++;
	free(CONTAINER_OF(source, struct numbers, source));
}

static struct listing_source *numbers_new(int n)
{
	struct numbers *s = calloc(1, sizeof(*s));
	*s = (struct numbers){.source = {step, numbers_free}, .n = n};
	return &s->source;
}

static struct row_query *query_of(const char *first, const char *second)
{
	struct lb_err err;
	struct row_query *q = row_query_new();
	assert_int_equal(row_query_add(q, first, &err), 0);
	if (second)
		assert_int_equal(row_query_add(q, second, &err), 0);
	return q;
}

// The whole answer, and how many slices it took; from malloc.
static char *answer(struct listing_source *source, struct row_query *query, bool json,
	const struct slice *slice, unsigned *ret_slices)
{
	struct show show = {.conf = {.slice = *slice}};
	struct show_args args = {.json = json, .query = query};
	char *first = listing_answer(&show, &args, source);
	struct evbuffer *all = evbuffer_new();
	assert_non_null(first);
	assert_null(args.query);
	evbuffer_add(all, first, strlen(first));
	free(first);
	*ret_slices = 1;
	bool more = args.follow;
	while (more) {
		uint64_t before = now_ns;
		more = args.follow->more(args.follow, all);
		// A slice ends with the step that its time is over in.
		if (slice->clock_ns)
			assert_true(now_ns - before <= slice->len_ns + 3000);
		++*ret_slices;
	}
	if (args.follow)
		args.follow->free(args.follow);
	size_t len = evbuffer_get_length(all);
	char *text = calloc(1, len + 1);
	evbuffer_remove(all, text, len);
	evbuffer_free(all);
	return text;
}

static const struct slice whole;

static void a_short_answer_comes_at_once_and_aligned(void **state)
{
	unsigned n;
	char *text = answer(numbers_new(3), NULL, false, &whole, &n);
	assert_string_equal(text, "i  name\n0  n0\n1  n1\n2  n2\n");
	assert_int_equal(n, 1);
	free(text);
	text = answer(numbers_new(2), NULL, true, &whole, &n);
	assert_string_equal(text, "{\"schema_version\":1,\"data\":[{\"i\":0,\"name\":\"n0\"},{"
				  "\"i\":1,\"name\":\"n1\"}]}\n");
	free(text);
}

static void no_rows_are_none(void **state)
{
	unsigned n;
	char *text = answer(numbers_new(0), NULL, false, &whole, &n);
	assert_string_equal(text, "none\n");
	free(text);
	text = answer(numbers_new(0), NULL, true, &whole, &n);
	assert_string_equal(text, "{\"schema_version\":1,\"data\":[]}\n");
	free(text);
	text = answer(numbers_new(5), query_of("i>7", NULL), false, &whole, &n);
	assert_string_equal(text, "none\n");
	free(text);
}

static void ops_122_a_long_answer_is_made_in_slices(void **state)
{
	const struct slice slice = {.clock_ns = ticking_clock, .len_ns = 100 * 1000};
	unsigned n;
	char *text = answer(numbers_new(5000), query_of("sort=-i", "name=n3"), true, &slice, &n);
	json_t *whole_text = json_loads(text, 0, NULL), *rows = json_object_get(whole_text, "data");
	assert_int_equal(json_array_size(rows), 500);
	for (size_t i = 0; i < 500; i++)
		assert_int_equal(json_integer_value(json_object_get(json_array_get(rows, i), "i")),
			4993 - 10 * (int)i);
	// 5000 steps to gather, 500 to sort, 500 to print, 99 a slice.
	assert_in_range(n, 5500 / 100, 6500 / 95);
	json_decref(whole_text);
	free(text);
}

static void what_waits_for_a_reader_is_bounded(void **state)
{
	unsigned n;
	char *text = answer(numbers_new(100000), NULL, true, &whole, &n);
	assert_in_range(n, strlen(text) / (2 * STATS_FOLLOW_UNREAD), 1000);
	assert_true(n > 5);
	free(text);
}

static void an_unknown_column_is_told_in_place_of_rows(void **state)
{
	const struct slice slice = {.clock_ns = ticking_clock, .len_ns = 100 * 1000};
	unsigned n;
	char *text = answer(numbers_new(500), query_of("sort=x", NULL), false, &slice, &n);
	assert_string_equal(text, "error: no column 'x', there are i, name\n");
	free(text);
}

static void a_row_without_memory_is_no_answer(void **state)
{
	unsigned n;
	struct listing_source *source = numbers_new(10);
	CONTAINER_OF(source, struct numbers, source)->breaks = true;
	char *text = answer(source, NULL, true, &whole, &n);
	assert_string_equal(text, "error: out of memory\n");
	free(text);
}

// A client that goes in the middle.
static void all_is_freed_at_any_moment(void **state)
{
	const struct slice slice = {.clock_ns = ticking_clock, .len_ns = 50 * 1000};
	for (int turns = 0; turns < 12; turns++) {
		struct show show = {.conf = {.slice = slice}};
		struct show_args args = {.query = query_of("sort=i", NULL)};
		struct evbuffer *out = evbuffer_new();
		n_freed = 0;
		free(listing_answer(&show, &args, numbers_new(200)));
		assert_non_null(args.follow);
		for (int i = 0; i < turns && args.follow->more(args.follow, out);)
			i++;
		args.follow->free(args.follow);
		assert_int_equal(n_freed, 1);
		evbuffer_free(out);
	}
}

RUN_SUITE("ctrl/stats/listing", cmocka_unit_test(a_short_answer_comes_at_once_and_aligned),
	cmocka_unit_test(no_rows_are_none),
	cmocka_unit_test(ops_122_a_long_answer_is_made_in_slices),
	cmocka_unit_test(what_waits_for_a_reader_is_bounded),
	cmocka_unit_test(an_unknown_column_is_told_in_place_of_rows),
	cmocka_unit_test(a_row_without_memory_is_no_answer),
	cmocka_unit_test(all_is_freed_at_any_moment))
