// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/render_table.h"

#include "ctrl/base/printout.h"
#include "ctrl/stats/render.h"

#include <stdlib.h>
#include <string.h>

#define GAP 2 // blanks between columns

void render_table_init(struct render_table *t, bool human)
{
	*t = (struct render_table){.human = human};
}

void render_table_fini(struct render_table *t)
{
	for (int i = 0; i < t->n; i++)
		free(t->names[i]);
}

static bool is_nested(const json_t *v)
{
	return json_is_object(v) || json_is_array(v);
}

// In characters: bytes that continue one take no room.
static int width_of(const char *text)
{
	int width = 0;
	for (; *text; text++)
		width += (*text & 0xc0) != 0x80;
	return width;
}

static void take_names(struct render_table *t, const json_t *row)
{
	const char *key;
	json_t *value;
	// jansson's way to walk an object wants it to be changeable.
	json_object_foreach((json_t *)(uintptr_t)row, key, value)
	{
		if (is_nested(value) || t->n == RENDER_MAX_COLUMNS)
			continue;
		char *name = strdup(key);
		if (!name)
			return;
		t->widths[t->n] = width_of(name);
		t->names[t->n++] = name;
	}
}

char *render_table_take(struct render_table *t, const json_t *row)
{
	struct printout p;
	if (!t->n)
		take_names(t, row);
	FILE *out = printout_begin(&p);
	if (!out)
		return NULL;
	for (int i = 0; i < t->n; i++) {
		const json_t *cell = json_object_get(row, t->names[i]);
		if (cell && !is_nested(cell))
			render_scalar(out, t->human ? t->names[i] : NULL, cell);
		else
			fputc('-', out);
		fputc('\0', out);
	}
	char *cells = printout_end(&p);
	const char *at = cells;
	for (int i = 0; at && i < t->n; i++, at += strlen(at) + 1) {
		int width = width_of(at);
		t->widths[i] = width > t->widths[i] ? width : t->widths[i];
	}
	return cells;
}

static void print_cell(const struct render_table *t, FILE *out, int i, const char *text)
{
	fputs(text, out);
	if (i + 1 < t->n)
		fprintf(out, "%*s", t->widths[i] - width_of(text) + GAP, "");
	else
		fputc('\n', out);
}

void render_table_print_names(const struct render_table *t, FILE *out, const char *indent)
{
	fputs(indent, out);
	for (int i = 0; i < t->n; i++)
		print_cell(t, out, i, t->names[i]);
}

void render_table_print(
	const struct render_table *t, FILE *out, const char *indent, const char *cells)
{
	fputs(indent, out);
	for (int i = 0; i < t->n; i++, cells += strlen(cells) + 1)
		print_cell(t, out, i, cells);
}
