// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/render.h"

#include "proto/wire.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_COLUMNS 64

json_t *render_str(struct str text)
{
	const uint8_t *p = (const uint8_t *)text.p;
	size_t left = text.len, len = 0;
	char *valid = malloc(3 * left + 1);
	if (!valid)
		return NULL;
	while (left) {
		size_t n = proto_utf8_len(p, left);
		memcpy(valid + len, n ? (const char *)p : "\uFFFD", n ? n : 3);
		len += n ? n : 3;
		p += n ? n : 1;
		left -= n ? n : 1;
	}
	json_t *string = json_stringn_nocheck(valid, len);
	free(valid);
	return string;
}

json_t *render_string(const char *text)
{
	return text ? render_str(str_from(text)) : json_null();
}

// Servers choose these texts: a line break would end an answer early or forge one, and terminals
// obey the control characters of C0 and C1 (U+0080 to U+009F).
static void print_string(FILE *out, const char *text, bool doubles_quotes)
{
	for (const uint8_t *c = (const uint8_t *)text; *c; c++) {
		bool is_c1 = c[0] == 0xc2 && c[1] <= 0x9f;
		if (*c == '\n')
			fputs("\\n", out);
		else if (*c < ' ' || *c == 0x7f)
			fprintf(out, "\\x%02x", *c);
		else if (is_c1)
			fprintf(out, "\\x%02x", *++c);
		else if (*c == '"' && doubles_quotes)
			fputs("\"\"", out);
		else
			fputc(*c, out);
	}
}

void render_print(FILE *out, const char *text)
{
	print_string(out, text, false);
}

static void print_scalar(FILE *out, const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_STRING:
		print_string(out, json_string_value(v), false);
		break;
	case JSON_INTEGER:
		fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
		break;
	case JSON_REAL:
		fprintf(out, "%.2f", json_real_value(v));
		break;
	case JSON_TRUE:
		fputs("yes", out);
		break;
	case JSON_FALSE:
		fputs("no", out);
		break;
	default:
		fputs("-", out);
	}
}

// RFC 4180, 2.6 and 2.7.
void render_print_csv(FILE *out, const char *text)
{
	bool is_quoted = text[0] == '#' || strpbrk(text, ",\""); // '#' begins a comment
	if (is_quoted)
		fputc('"', out);
	print_string(out, text, is_quoted);
	if (is_quoted)
		fputc('"', out);
}

static void print_csv_cell(FILE *out, const json_t *v)
{
	if (json_is_string(v))
		render_print_csv(out, json_string_value(v));
	else
		print_scalar(out, v);
}

// In characters: bytes that continue one take no room.
static int scalar_width(const json_t *v)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	if (!f)
		return 0;
	print_scalar(f, v);
	fclose(f);
	int width = 0;
	for (size_t i = 0; i < len; i++)
		width += (text[i] & 0xc0) != 0x80;
	free(text);
	return width;
}

static bool is_nested(const json_t *v)
{
	return json_is_object(v) || json_is_array(v);
}

static void print_cell(FILE *out, const json_t *v, int width, bool last)
{
	int used = 1;
	if (v) {
		print_scalar(out, v);
		used = scalar_width(v);
	} else {
		fputc('-', out);
	}
	if (!last)
		fprintf(out, "%*s", width - used + 2, "");
}

// Rows are objects; the first one names the columns. Nested members do not fit a cell: left to
// json.
static void print_table(FILE *out, const json_t *rows, const char *indent)
{
	const char *names[MAX_COLUMNS];
	int widths[MAX_COLUMNS];
	size_t n = 0, i;
	const char *key;
	const json_t *row;
	json_t *value;
	json_object_foreach(json_array_get(rows, 0), key, value)
	{
		if (is_nested(value) || n == MAX_COLUMNS)
			continue;
		names[n] = key;
		widths[n] = (int)strlen(key);
		json_array_foreach(rows, i, row)
		{
			const json_t *cell = json_object_get(row, key);
			int width = cell && !is_nested(cell) ? scalar_width(cell) : 1;
			widths[n] = width > widths[n] ? width : widths[n];
		}
		n++;
	}
	fputs(indent, out);
	for (size_t c = 0; c < n; c++)
		fprintf(out, "%-*s%s", c + 1 < n ? widths[c] + 2 : 0, names[c],
			c + 1 < n ? "" : "\n");
	json_array_foreach(rows, i, row)
	{
		fputs(indent, out);
		for (size_t c = 0; c < n; c++)
			print_cell(out, json_object_get(row, names[c]), widths[c], c + 1 == n);
		fputc('\n', out);
	}
}

static void print_list(FILE *out, const json_t *list, const char *indent)
{
	size_t i;
	const json_t *item;
	if (json_is_object(json_array_get(list, 0))) {
		print_table(out, list, indent);
		return;
	}
	json_array_foreach(list, i, item)
	{
		fputs(indent, out);
		print_scalar(out, item);
		fputc('\n', out);
	}
}

// The tree is our own and at most four deep.
static void print_object(FILE *out, json_t *object, const char *indent)
{
	const char *key;
	json_t *value;
	char deeper[16];
	snprintf(deeper, sizeof(deeper), "%s  ", indent);
	json_object_foreach(object, key, value)
	{
		if (!is_nested(value)) {
			fprintf(out, "%s%s: ", indent, key);
			print_scalar(out, value);
			fputc('\n', out);
			continue;
		}
		bool empty = json_is_array(value) ? json_array_size(value) == 0
		                                  : json_object_size(value) == 0;
		fprintf(out, "%s%s:%s\n", indent, key, empty ? " none" : "");
		if (json_is_object(value))
			print_object(out, value, deeper);
		else if (!empty)
			print_list(out, value, deeper);
	}
}

char *render_text(json_t *tree)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	if (!out)
		return NULL;
	if (json_is_object(tree))
		print_object(out, tree, "");
	else if (json_array_size(tree) > 0)
		print_list(out, tree, "");
	else
		fputs("none\n", out);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

char *render_json(json_t *tree)
{
	char *line = json_dumps(tree, JSON_COMPACT);
	if (!line)
		return NULL;
	char *text = NULL;
	int n = asprintf(&text, "%s\n", line);
	free(line);
	return n < 0 ? NULL : text;
}

char *render_csv(const json_t *rows, const char *const *columns)
{
	char *text = NULL;
	size_t len = 0, i;
	const json_t *row;
	FILE *out = open_memstream(&text, &len);
	if (!out)
		return NULL;
	fputs("# ", out);
	for (size_t c = 0; columns[c]; c++)
		fprintf(out, "%s,", columns[c]);
	fputc('\n', out);
	json_array_foreach(rows, i, row)
	{
		for (size_t c = 0; columns[c]; c++) {
			const json_t *cell = json_object_get(row, columns[c]);
			if (cell)
				print_csv_cell(out, cell);
			fputc(',', out);
		}
		fputc('\n', out);
	}
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
