// SPDX-License-Identifier: Apache-2.0
// Which rows of a listing are told, and in which order: `cluster=blue state!=READY sort=-requests
// limit=20` (docs/stats.md, OPS-120). Rows are JSON objects, whose members are the columns; those
// that are objects or arrays themselves are none.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>

#define ROW_QUERY_MAX 16 // conditions

struct row_query; // zero conditions let everything by

struct row_query *row_query_new(void); // NULL = out of memory
void row_query_free(struct row_query *); // NULL is fine

// Whether a word has the form of a condition: a column, an operator (= != < > <= >= ~), a value.
bool row_query_is_condition(const char *word);
// Adds the condition. 0, -EINVAL or -ENOMEM with reterr.
[[nodiscard]] int row_query_add(struct row_query *, const char *word, struct lb_err *reterr);

bool row_query_is_empty(const struct row_query *);
bool row_query_has_conditions(const struct row_query *); // and not an order or a limit alone
// Whether a row is told. It also learns which columns there are. NULL query: yes.
bool row_query_matches(struct row_query *, const json_t *row);
// Once all rows were shown to row_query_matches(): 0, or -EINVAL and an error that names the first
// column that none of them has, and those that they have. Without any row there is no error.
[[nodiscard]] int row_query_check(const struct row_query *, struct lb_err *reterr);

const char *row_query_sort(const struct row_query *); // the column; NULL = as rows come
bool row_query_descends(const struct row_query *);
size_t row_query_limit(const struct row_query *); // rows of each table; 0 = all
void row_query_bound(struct row_query *, size_t limit); // if it has no limit

// Chooses and sorts the rows of an answer: those of an array, or of each array of rows in an
// object, where a table without a column that a condition names has none left. 0, or -EINVAL or
// -ENOMEM with reterr; *tree is then as good as lost, but still the caller's.
[[nodiscard]] int row_query_apply(struct row_query *, json_t **tree, struct lb_err *reterr);
