// SPDX-License-Identifier: Apache-2.0
// Aligned columns of rows that come one by one: the first one names the columns, each widens them,
// and at the end they are printed.
// Thread: ctrl.
#pragma once

#include <jansson.h>

#include <stdbool.h>
#include <stdio.h>

#define RENDER_MAX_COLUMNS 64

struct render_table {
	bool human; // durations and bytes with units
	char *names[RENDER_MAX_COLUMNS]; // owned
	int widths[RENDER_MAX_COLUMNS]; // in characters
	int n;
};

void render_table_init(struct render_table *, bool human);
void render_table_fini(struct render_table *);
// The row's cells, for render_table_print(); from malloc. Nested members do not fit a cell: left to
// JSON. NULL = out of memory.
char *render_table_take(struct render_table *, const json_t *row);
void render_table_print_names(const struct render_table *, FILE *, const char *indent);
void render_table_print(const struct render_table *, FILE *, const char *indent, const char *cells);
