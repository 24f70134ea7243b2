// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/row_order.h"

#include "lb/base/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void row_order_init(struct row_order *o, const char *column, bool descends, size_t limit,
	void (*drop)(void *item))
{
	*o = (struct row_order){
		.column = column, .descends = descends, .limit = limit, .drop = drop};
}

static void drop_row(const struct row_order *o, const struct row_order_row *r)
{
	json_decref(r->cell);
	if (r->item)
		o->drop(r->item);
}

void row_order_fini(struct row_order *o)
{
	for (size_t i = 0; i < o->n; i++)
		drop_row(o, &o->rows[i]);
	free(o->rows);
}

static int rank(const json_t *cell)
{
	switch (cell ? json_typeof(cell) : JSON_NULL) {
	case JSON_STRING:
		return 4;
	case JSON_INTEGER:
	case JSON_REAL:
		return 3;
	case JSON_TRUE:
		return 2;
	case JSON_FALSE:
		return 1;
	default:
		return 0;
	}
}

static int compare_cells(const json_t *a, const json_t *b)
{
	int of_a = rank(a), of_b = rank(b);
	if (of_a != of_b)
		return of_a < of_b ? -1 : 1;
	if (json_is_string(a))
		return strcmp(json_string_value(a), json_string_value(b));
	if (json_is_integer(a) && json_is_integer(b))
		return (json_integer_value(a) > json_integer_value(b)) -
		       (json_integer_value(a) < json_integer_value(b));
	double x = json_number_value(a), y = json_number_value(b); // of no number 0
	return (x > y) - (x < y);
}

static bool is_before(
	const struct row_order *o, const struct row_order_row *a, const struct row_order_row *b)
{
	int order = o->column ? compare_cells(a->cell, b->cell) : 0;
	if (order)
		return o->descends ? order > 0 : order < 0;
	return a->number < b->number;
}

static void sink(struct row_order *o, size_t i)
{
	struct row_order_row row = o->rows[i];
	for (size_t child; (child = 2 * i + 1) < o->n_heap; i = child) {
		if (child + 1 < o->n_heap && is_before(o, &o->rows[child], &o->rows[child + 1]))
			child++;
		if (!is_before(o, &row, &o->rows[child]))
			break;
		o->rows[i] = o->rows[child];
	}
	o->rows[i] = row;
}

static void rise(struct row_order *o, size_t i)
{
	struct row_order_row row = o->rows[i];
	for (size_t parent; i > 0 && is_before(o, &o->rows[parent = (i - 1) / 2], &row); i = parent)
		o->rows[i] = o->rows[parent];
	o->rows[i] = row;
}

static struct row_order_row row_of(const struct row_order *o, const json_t *row, void *item)
{
	// The heap only counts references.
	json_t *cell = o->column ? json_object_get(row, o->column) : NULL;
	return (struct row_order_row){.cell = cell, .number = o->n_seen, .item = item};
}

bool row_order_wants(const struct row_order *o, const json_t *row)
{
	struct row_order_row r = row_of(o, row, NULL);
	return !o->limit || o->n < o->limit || is_before(o, &r, &o->rows[0]);
}

int row_order_add(struct row_order *o, const json_t *row, void *item)
{
	struct row_order_row r = row_of(o, row, item);
	o->n_seen++;
	bool is_full = o->limit && o->n == o->limit;
	if (!is_full && !grow(&o->rows, o->n, &o->room, sizeof(o->rows[0]))) {
		o->drop(item);
		return -ENOMEM;
	}
	json_incref(r.cell);
	if (is_full) {
		drop_row(o, &o->rows[0]);
		o->rows[0] = r;
		sink(o, 0);
		return 0;
	}
	o->rows[o->n++] = r;
	o->n_heap = o->n;
	rise(o, o->n - 1);
	return 0;
}

bool row_order_step(struct row_order *o)
{
	if (o->n_heap < 2)
		return true;
	struct row_order_row last = o->rows[0];
	o->rows[0] = o->rows[--o->n_heap];
	sink(o, 0);
	o->rows[o->n_heap] = last;
	return o->n_heap < 2;
}

void *row_order_take(struct row_order *o, size_t index)
{
	struct row_order_row *r = &o->rows[index];
	void *item = r->item;
	json_decref(r->cell);
	*r = (struct row_order_row){.item = NULL};
	return item;
}
