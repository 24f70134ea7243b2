// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/row_query.h"

#include "ctrl/stats/row_order.h"
#include "lb/base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum comparison { EQUAL, NOT_EQUAL, AT_MOST, AT_LEAST, BELOW, ABOVE, HOLDS };

// The longer ones first.
static const struct {
	const char *text;
	enum comparison op;
} operators[] = {{"!=", NOT_EQUAL}, {"<=", AT_MOST}, {">=", AT_LEAST}, {"=", EQUAL}, {"<", BELOW},
	{">", ABOVE}, {"~", HOLDS}};
#define N_OPERATORS (sizeof(operators) / sizeof(operators[0]))

struct condition {
	char *column; // owned
	char *value; // owned
	enum comparison op;
	bool has_number; // the value is one
	double number;
};

struct row_query {
	struct condition list[ROW_QUERY_MAX];
	uint32_t n;
	char *sort; // owned
	bool descends;
	uint64_t limit;
	uint32_t seen; // bits: some row has the condition's column
	uint32_t worded; // bits: above or below what is no number
	uint32_t unordered; // bits: of these, what some row has in a number's place
	bool seen_sort;
	json_t *columns; // owned: the names that rows have, while one that is named was not seen
};

struct row_query *row_query_new(void)
{
	struct row_query *q = calloc(1, sizeof(*q));
	if (!q)
		return NULL;
	q->columns = json_object();
	if (q->columns)
		return q;
	free(q);
	return NULL;
}

void row_query_free(struct row_query *q)
{
	if (!q)
		return;
	for (uint32_t i = 0; i < q->n; i++) {
		free(q->list[i].column);
		free(q->list[i].value);
	}
	free(q->sort);
	json_decref(q->columns);
	free(q);
}

// The grammar.

static size_t column_len(const char *word)
{
	return strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_");
}

static int find_operator(const char *text)
{
	for (size_t i = 0; i < N_OPERATORS; i++)
		if (strncmp(text, operators[i].text, strlen(operators[i].text)) == 0)
			return (int)i;
	return -1;
}

bool row_query_is_condition(const char *word)
{
	size_t len = column_len(word);
	return len > 0 && find_operator(word + len) >= 0;
}

static int add_sort(struct row_query *q, const char *value, struct lb_err *err)
{
	bool descends = value[0] == '-';
	const char *column = value + descends;
	if (q->sort)
		return lb_err_set(err, "duplicate sort");
	if (!column[0] || column[column_len(column)])
		return lb_err_set(err, "sort: '%s' is neither a column nor -COLUMN", value);
	q->descends = descends;
	q->sort = strdup(column);
	return q->sort ? 0 : -ENOMEM;
}

static int add_limit(struct row_query *q, const char *value, struct lb_err *err)
{
	if (q->limit)
		return lb_err_set(err, "duplicate limit");
	if (str_number(str_from(value), UINT32_MAX, &q->limit) && q->limit)
		return 0;
	return lb_err_set(err, "limit: '%s' is not a number from 1 to %" PRIu32, value, UINT32_MAX);
}

static bool is_order(enum comparison op)
{
	return op == AT_MOST || op == AT_LEAST || op == BELOW || op == ABOVE;
}

int row_query_add(struct row_query *q, const char *word, struct lb_err *err)
{
	size_t len = column_len(word);
	int found = find_operator(word + len);
	if (len == 0 || found < 0)
		return lb_err_set(err, "'%s' is not a condition", word);
	enum comparison op = operators[found].op;
	const char *value = word + len + strlen(operators[found].text);
	if (op == EQUAL && strncmp(word, "sort=", 5) == 0)
		return add_sort(q, value, err);
	if (op == EQUAL && strncmp(word, "limit=", 6) == 0)
		return add_limit(q, value, err);
	if (q->n == ROW_QUERY_MAX)
		return lb_err_set(err, "more than %d conditions", ROW_QUERY_MAX);
	struct condition *c = &q->list[q->n++]; // freed with the query, whole or not
	char *end;
	c->op = op;
	c->column = strndup(word, len);
	c->value = strdup(value);
	c->number = strtod(value, &end);
	c->has_number = end != value && !*end && isfinite(c->number);
	if (!c->has_number && is_order(op))
		q->worded |= UINT32_C(1) << (q->n - 1);
	return c->column && c->value ? 0 : -ENOMEM;
}

bool row_query_is_empty(const struct row_query *q)
{
	return q->n == 0 && !q->sort && !q->limit;
}

bool row_query_has_conditions(const struct row_query *q)
{
	return q->n > 0;
}

const char *row_query_sort(const struct row_query *q)
{
	return q->sort;
}

bool row_query_descends(const struct row_query *q)
{
	return q->descends;
}

size_t row_query_limit(const struct row_query *q)
{
	return q->limit;
}

void row_query_bound(struct row_query *q, size_t limit)
{
	if (!q->limit)
		q->limit = limit;
}

// Cells.

static bool is_column(const json_t *cell)
{
	return cell && !json_is_object(cell) && !json_is_array(cell);
}

// Below 0, 0 or above 0: a number beside a number, else both as texts.
static bool holds(enum comparison op, int order)
{
	switch (op) {
	case EQUAL:
		return order == 0;
	case NOT_EQUAL:
		return order != 0;
	case AT_MOST:
		return order <= 0;
	case AT_LEAST:
		return order >= 0;
	case BELOW:
		return order < 0;
	default:
		return order > 0;
	}
}

static bool number_matches(const struct condition *c, const json_t *cell)
{
	if (c->op == HOLDS) {
		char text[64];
		if (json_is_integer(cell))
			snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT,
				json_integer_value(cell));
		else
			snprintf(text, sizeof(text), "%.2f", json_real_value(cell));
		return strstr(text, c->value);
	}
	double x = json_number_value(cell);
	return c->has_number ? holds(c->op, (x > c->number) - (x < c->number)) : c->op == NOT_EQUAL;
}

// Yes, no and - as tables have them, and as JSON does.
static bool word_matches(const struct condition *c, const char *shown, const char *in_json)
{
	bool is_equal = strcmp(c->value, shown) == 0 || strcmp(c->value, in_json) == 0;
	return c->op == EQUAL ? is_equal : c->op == NOT_EQUAL && !is_equal;
}

static bool cell_matches(const struct condition *c, const json_t *cell)
{
	switch (cell ? json_typeof(cell) : JSON_NULL) {
	case JSON_STRING:
		return c->op == HOLDS ? strstr(json_string_value(cell), c->value) != NULL
		                      : holds(c->op, strcmp(json_string_value(cell), c->value));
	case JSON_INTEGER:
	case JSON_REAL:
		return number_matches(c, cell);
	case JSON_TRUE:
		return word_matches(c, "yes", "true");
	case JSON_FALSE:
		return word_matches(c, "no", "false");
	default:
		return word_matches(c, "-", "null");
	}
}

static bool all_are_seen(const struct row_query *q)
{
	return q->seen == (UINT32_C(1) << q->n) - 1 && (q->seen_sort || !q->sort);
}

static void learn(struct row_query *q, const json_t *row)
{
	const char *key;
	json_t *cell;
	for (uint32_t i = 0; i < q->n; i++)
		if (is_column(json_object_get(row, q->list[i].column)))
			q->seen |= UINT32_C(1) << i;
	q->seen_sort |= q->sort && is_column(json_object_get(row, q->sort));
	if (all_are_seen(q))
		return;
	// jansson's way to walk an object wants it to be changeable.
	json_object_foreach((json_t *)(uintptr_t)row, key, cell)
	{
		if (is_column(cell) && !json_object_get(q->columns, key))
			json_object_set_new(q->columns, key, json_null());
	}
}

// In a column of numbers a row may have none.
static void learn_order(struct row_query *q, const json_t *row)
{
	for (uint32_t i = 0; i < q->n; i++)
		if ((q->worded >> i & 1) && json_is_number(json_object_get(row, q->list[i].column)))
			q->unordered |= UINT32_C(1) << i;
}

bool row_query_matches(struct row_query *q, const json_t *row)
{
	if (!q)
		return true;
	if (!all_are_seen(q))
		learn(q, row);
	if (q->worded)
		learn_order(q, row);
	for (uint32_t i = 0; i < q->n; i++) {
		const json_t *cell = json_object_get(row, q->list[i].column);
		if (!cell_matches(&q->list[i], is_column(cell) ? cell : NULL))
			return false;
	}
	return true;
}

int row_query_check(const struct row_query *q, struct lb_err *err)
{
	for (uint32_t i = 0; i < q->n; i++)
		if (q->unordered >> i & 1)
			return lb_err_set(err, "%s: '%s' is not a number", q->list[i].column,
				q->list[i].value);
	const char *unknown = q->sort && !q->seen_sort ? q->sort : NULL;
	for (uint32_t i = q->n; i-- > 0;)
		if (!(q->seen >> i & 1))
			unknown = q->list[i].column;
	if (!unknown || json_object_size(q->columns) == 0)
		return 0;
	char list[sizeof(err->text)] = "";
	size_t len = 0;
	const char *key;
	json_t *none;
	json_object_foreach(q->columns, key, none)
	{
		if (len < sizeof(list))
			len += (size_t)snprintf(
				list + len, sizeof(list) - len, "%s%s", len ? ", " : "", key);
	}
	return lb_err_set(err, "no column '%s', there are %s", unknown, list);
}

// Whole answers.

static bool is_table(const json_t *array)
{
	return json_is_array(array) &&
	       (json_array_size(array) == 0 || json_is_object(json_array_get(array, 0)));
}

// A table that lacks a column of a condition: nothing of it is known to be as it says.
static bool has_columns(const struct row_query *q, const json_t *rows)
{
	for (uint32_t c = 0; c < q->n; c++) {
		bool found = false;
		for (size_t i = 0; i < json_array_size(rows) && !found; i++)
			found = is_column(
				json_object_get(json_array_get(rows, i), q->list[c].column));
		if (!found)
			return false;
	}
	return true;
}

static void drop_row(void *row)
{
	json_decref(row);
}

// Another array; NULL = out of memory.
static json_t *choose(struct row_query *q, json_t *rows)
{
	struct row_order order;
	row_order_init(&order, q->sort, q->descends, q->limit, drop_row);
	bool has_all = has_columns(q, rows), failed = false;
	size_t i;
	json_t *row;
	json_array_foreach(rows, i, row)
	{
		bool matches = row_query_matches(q, row);
		if (matches && has_all && row_order_wants(&order, row))
			failed |= row_order_add(&order, row, json_incref(row)) != 0;
	}
	while (!row_order_step(&order))
		;
	json_t *chosen = failed ? NULL : json_array();
	for (i = 0; chosen && i < order.n; i++)
		json_array_append_new(chosen, row_order_take(&order, i));
	row_order_fini(&order);
	return chosen;
}

int row_query_apply(struct row_query *q, json_t **tree, struct lb_err *err)
{
	const char *key;
	json_t *value, *chosen;
	if (row_query_is_empty(q))
		return 0;
	if (is_table(*tree)) {
		chosen = choose(q, *tree);
		if (!chosen)
			return -ENOMEM;
		json_decref(*tree);
		*tree = chosen;
		return row_query_check(q, err);
	}
	json_object_foreach(*tree, key, value)
	{
		if (!is_table(value))
			continue;
		chosen = choose(q, value);
		if (!chosen || json_object_set_new(*tree, key, chosen) != 0)
			return -ENOMEM;
	}
	return row_query_check(q, err);
}
