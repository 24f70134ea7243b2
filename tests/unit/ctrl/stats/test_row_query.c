// SPDX-License-Identifier: Apache-2.0
// Which rows conditions choose, and in which order.
#include "ctrl/stats/row_query.h"
#include "lb/base/rand.h"
#include "tests/support/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char ROWS[] =
	"[{\"id\":1,\"name\":\"blue\",\"n\":10,\"x\":1.5,\"up\":true,\"why\":null},"
	"{\"id\":2,\"name\":\"green\",\"n\":9,\"x\":-2,\"up\":false,\"why\":\"a=b\"},"
	"{\"id\":3,\"name\":\"blue-2\",\"n\":100,\"x\":1.25,\"up\":true,\"why\":\"\"},"
	"{\"id\":4,\"name\":\"\",\"n\":9,\"x\":3,\"up\":false,\"nested\":{},\"leaf\":\"l\"}]";

static struct row_query *query_of(const char *words, struct lb_err *err, int *ret)
{
	struct row_query *q = row_query_new();
	char copy[512];
	char *save = NULL;
	snprintf(copy, sizeof(copy), "%s", words);
	*ret = 0;
	for (char *w = strtok_r(copy, " ", &save); w && !*ret; w = strtok_r(NULL, " ", &save)) {
		assert_true(row_query_is_condition(w));
		*ret = row_query_add(q, w, err);
	}
	return q;
}

// The ids of the rows that are told, or the error.
static char *ids_of(const char *words, const char *json)
{
	static char text[512];
	struct lb_err err = {.text = ""};
	int ret;
	struct row_query *q = query_of(words, &err, &ret);
	json_t *tree = json_loads(json, 0, NULL), *row;
	assert_non_null(tree);
	size_t i, len = 0;
	text[0] = 0;
	if (ret == 0)
		ret = row_query_apply(q, &tree, &err);
	json_array_foreach(tree, i, row) len += (size_t)snprintf(text + len, sizeof(text) - len,
		"%s%d", i ? " " : "", (int)json_integer_value(json_object_get(row, "id")));
	if (ret)
		snprintf(text, sizeof(text), "%s", err.text);
	json_decref(tree);
	row_query_free(q);
	return text;
}

static void ops_120_conditions_choose_rows(void **state)
{
	static const struct {
		const char *words, *ids;
	} rows[] = {
		{"name=blue", "1"},
		{"name!=blue", "2 3 4"},
		{"name~blue", "1 3"},
		{"name=", "4"},
		{"name>blue", "2 3"},
		{"n=9", "2 4"},
		{"n=9.0", "2 4"},
		{"n!=9", "1 3"},
		{"n<10", "2 4"},
		{"n<=10", "1 2 4"},
		{"n>10", "3"},
		{"n>=10", "1 3"},
		{"n~0", "1 3"},
		{"n=nine", ""},
		{"n=nan", ""},
		{"n!=nine", "1 2 3 4"},
		{"x>1.3", "1 4"},
		{"x<0", "2"},
		{"up=yes", "1 3"},
		{"up=false", "2 4"},
		{"up!=yes", "2 4"},
		{"up~y", ""},
		{"why=-", "1 4"},
		{"why=a=b", "2"},
		{"why!=-", "2 3"},
		{"leaf=l", "4"},
		{"leaf!=l", "1 2 3"},
		{"n<50 up=yes name~blue", "1"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(ids_of(rows[i].words, ROWS), rows[i].ids) != 0)
			fail_msg("%s: %s", rows[i].words, ids_of(rows[i].words, ROWS));
}

static void ops_121_rows_are_sorted_and_limited(void **state)
{
	assert_string_equal(ids_of("sort=n", ROWS), "2 4 1 3"); // equal ones as they came
	assert_string_equal(ids_of("sort=-n", ROWS), "3 1 2 4");
	assert_string_equal(ids_of("sort=x", ROWS), "2 3 1 4");
	assert_string_equal(ids_of("sort=name", ROWS), "4 1 3 2");
	assert_string_equal(ids_of("sort=up", ROWS), "2 4 1 3");
	assert_string_equal(ids_of("sort=why", ROWS), "1 4 3 2"); // null first
	assert_string_equal(ids_of("limit=2", ROWS), "1 2");
	assert_string_equal(ids_of("sort=-n limit=1", ROWS), "3");
	assert_string_equal(ids_of("limit=3 sort=n n<100", ROWS), "2 4 1");
	assert_string_equal(ids_of("limit=100", ROWS), "1 2 3 4");
}

static void ops_120_an_unknown_column_is_an_error_that_lists_them(void **state)
{
	assert_string_equal(
		ids_of("foo=1", ROWS), "no column 'foo', there are id, name, n, x, up, why, leaf");
	assert_string_equal(ids_of("n=9 sort=foo", ROWS),
		"no column 'foo', there are id, name, n, x, up, why, leaf");
	// Nothing can be compared with what is nested, and it has no order.
	assert_non_null(strstr(ids_of("nested=1", ROWS), "no column 'nested'"));
	assert_string_equal(ids_of("foo=1", "[]"), ""); // nobody knows
}

static void ops_120_a_number_has_no_order_beside_a_word(void **state)
{
	assert_string_equal(ids_of("n<inf", ROWS), "n: 'inf' is not a number");
	assert_string_equal(ids_of("up=yes x>=10k", ROWS), "x: '10k' is not a number");
	assert_string_equal(ids_of("n>", ROWS), "n: '' is not a number");
	// Whatever the first row has, and whether others are there for it.
	static const char gaps[] = "[{\"id\":1,\"n\":null},{\"id\":2,\"n\":4}]";
	assert_string_equal(ids_of("n>10k", gaps), "n: '10k' is not a number");
	assert_string_equal(ids_of("id<2 n>10k", gaps), "n: '10k' is not a number");
}

static void ops_120_what_is_no_condition_is_refused(void **state)
{
	assert_string_equal(
		ids_of("limit=0", ROWS), "limit: '0' is not a number from 1 to 4294967295");
	assert_string_equal(ids_of("limit=1 limit=2", ROWS), "duplicate limit");
	assert_string_equal(ids_of("sort=n sort=x", ROWS), "duplicate sort");
	assert_string_equal(ids_of("sort=", ROWS), "sort: '' is neither a column nor -COLUMN");
	assert_string_equal(ids_of("sort=N", ROWS), "sort: 'N' is neither a column nor -COLUMN");
	assert_string_equal(
		ids_of("n>0 n>0 n>0 n>0 n>0 n>0 n>0 n>0 n>0 n>0 n>0 n>0 n>0 n>0 n>0 n>0 n>0", ROWS),
		"more than 16 conditions");
	static const char *const others[] = {
		"json", "blue", "", "=", "=1", "-w", "xdstp://a/b?c=d", "Blue=1", "a b=1", "10"};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(row_query_is_condition(others[i]));
}

static void sixteen_conditions_are_all_asked(void **state)
{
	assert_string_equal(
		ids_of("n>0 n>0 n>0 n>0 n>0 n>0 n>0 n>0 n>0 n>0 n>0 n>0 n>0 n>0 n>0 id=2", ROWS),
		"2");
}

static json_t *applied(const char *words, const char *json)
{
	struct lb_err err = {.text = ""};
	int ret;
	struct row_query *q = query_of(words, &err, &ret);
	json_t *tree = json_loads(json, 0, NULL);
	assert_int_equal(ret, 0);
	if (row_query_apply(q, &tree, &err))
		fail_msg("%s", err.text);
	row_query_free(q);
	return tree;
}

// An answer of several tables, as `show clusters` has it.
static void ops_120_a_table_without_the_column_has_no_rows_left(void **state)
{
	json_t *tree = applied("ready<2 limit=1",
		"{\"a\":[{\"ready\":1,\"id\":1},{\"ready\":2,\"id\":2},{\"ready\":0,\"id\":3}],"
		"\"b\":[{\"id\":7}],\"c\":5,\"d\":[],\"e\":[1,2]}");
	char *text = json_dumps(tree, JSON_COMPACT);
	assert_string_equal(
		text, "{\"a\":[{\"ready\":1,\"id\":1}],\"b\":[],\"c\":5,\"d\":[],\"e\":[1,2]}");
	free(text);
	json_decref(tree);
}

static int compare(const void *a, const void *b)
{
	const int *x = a, *y = b;
	return x[0] != y[0] ? (x[0] > y[0]) - (x[0] < y[0]) : x[1] - y[1];
}

// Against the C library's sort.
static void any_rows_come_in_order_whatever_the_limit(void **state)
{
	enum { N = 200 };
	struct rand rand;
	rand_init(&rand, 7);
	for (int round = 0; round < 200; round++) {
		int n = (int)rand_below(&rand, N), keys[N][2],
		    limit = (int)rand_below(&rand, N) + 1;
		json_t *rows = json_array();
		for (int i = 0; i < n; i++) {
			keys[i][0] = (int)rand_below(&rand, 50);
			keys[i][1] = i;
			json_array_append_new(rows, json_pack("{si si}", "k", keys[i][0], "i", i));
		}
		qsort(keys, (size_t)n, sizeof(keys[0]), compare);
		char words[64], *json = json_dumps(rows, 0);
		snprintf(words, sizeof(words), "sort=k limit=%d", limit);
		json_t *told = applied(words, json);
		assert_int_equal(json_array_size(told), n < limit ? n : limit);
		for (size_t i = 0; i < json_array_size(told); i++)
			assert_int_equal(
				json_integer_value(json_object_get(json_array_get(told, i), "i")),
				keys[i][1]);
		json_decref(told);
		json_decref(rows);
		free(json);
	}
}

RUN_SUITE("ctrl/stats/row_query", cmocka_unit_test(ops_120_conditions_choose_rows),
	cmocka_unit_test(ops_121_rows_are_sorted_and_limited),
	cmocka_unit_test(ops_120_an_unknown_column_is_an_error_that_lists_them),
	cmocka_unit_test(ops_120_a_number_has_no_order_beside_a_word),
	cmocka_unit_test(ops_120_what_is_no_condition_is_refused),
	cmocka_unit_test(sixteen_conditions_are_all_asked),
	cmocka_unit_test(ops_120_a_table_without_the_column_has_no_rows_left),
	cmocka_unit_test(any_rows_come_in_order_whatever_the_limit))
