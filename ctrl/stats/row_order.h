// SPDX-License-Identifier: Apache-2.0
// The rows of a listing that are told, in order of a column: a heap whose top is the last of them,
// so that no more are kept than are told, and which becomes a sorted array in small steps. Nulls
// come first, then no and yes, numbers, and texts by their bytes; equal rows keep their order.
// Thread: ctrl.
#pragma once

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct row_order_row {
	json_t *cell; // owned: what it is sorted by; NULL = none
	uint64_t number; // in the order in which rows came
	void *item;
};

struct row_order {
	const char *column; // borrowed; NULL = in the order in which rows come
	bool descends;
	size_t limit; // rows; 0 = all
	void (*drop)(void *item);
	struct row_order_row *rows;
	size_t n;
	// Inside:
	uint32_t room;
	size_t n_heap; // heaped: all while rows come, fewer and fewer while they are sorted
	uint64_t n_seen;
};

// drop frees the items that are not told after all.
void row_order_init(struct row_order *, const char *column, bool descends, size_t limit,
	void (*drop)(void *item));
void row_order_fini(struct row_order *); // drops all items that are left (not NULL)
// Whether a row that comes now would be among those that are told, for now.
bool row_order_wants(const struct row_order *, const json_t *row);
// Takes the item of such a row, and drops one if there are more than the limit. 0, or -ENOMEM: the
// item is dropped.
[[nodiscard]] int row_order_add(struct row_order *, const json_t *row, void *item);
// A small step of sorting. True = all is sorted.
bool row_order_step(struct row_order *);
// The item of a sorted row, index < n, which is the caller's then.
void *row_order_take(struct row_order *, size_t index);
