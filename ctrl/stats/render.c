// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/render.h"

#include "ctrl/base/printout.h"
#include "ctrl/stats/render_table.h"
#include "proto/wire.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

// "1.5s", "2m05s", "3h12m", "5d02h".
static void print_duration(FILE *out, double s)
{
	long whole = (long)s;
	if (s < 60)
		fprintf(out, "%.*fs", s < 10 ? 2 : 1, s);
	else if (s < 3600)
		fprintf(out, "%ldm%02lds", whole / 60, whole % 60);
	else if (s < 86400)
		fprintf(out, "%ldh%02ldm", whole / 3600, whole / 60 % 60);
	else
		fprintf(out, "%ldd%02ldh", whole / 86400, whole / 3600 % 24);
}

// "812B", "1.5KiB", "3.2GiB".
static void print_bytes(FILE *out, double n)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
	size_t i = 0;
	for (; n >= 1024 && i + 1 < sizeof(units) / sizeof(units[0]); i++)
		n /= 1024;
	fprintf(out, "%.*f%s", i ? 1 : 0, n, units[i]);
}

static bool counts_bytes(const char *key)
{
	static const char *const others[] = {"cwnd", "waiting"}; // of connections
	size_t len = strlen(key);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(key, others[i]) == 0)
			return true;
	return strncmp(key, "bytes", 5) == 0 || (len > 6 && strcmp(key + len - 6, "_bytes") == 0);
}

// Numbers that people would have to divide, by what their names say they are. False = no such one.
static bool print_with_unit(FILE *out, const char *key, double x)
{
	size_t len = strlen(key);
	bool is_duration =
		(len > 2 && strcmp(key + len - 2, "_s") == 0) || strcmp(key, "seconds_left") == 0;
	if (!(x >= 0) || x >= (double)INT64_MAX)
		return false;
	if (is_duration)
		print_duration(out, x);
	else if (counts_bytes(key))
		print_bytes(out, x);
	else
		return false;
	return true;
}

void render_scalar(FILE *out, const char *unit_of, const json_t *v)
{
	if (unit_of && json_is_number(v) && print_with_unit(out, unit_of, json_number_value(v)))
		return;
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
		render_scalar(out, NULL, v);
}

static bool is_nested(const json_t *v)
{
	return json_is_object(v) || json_is_array(v);
}

// False = out of memory.
static bool print_table(FILE *out, const json_t *rows, const char *indent, bool human)
{
	struct render_table table;
	size_t n = json_array_size(rows), n_taken = 0;
	char **cells = calloc(n, sizeof(*cells));
	render_table_init(&table, human);
	while (cells && n_taken < n &&
		(cells[n_taken] = render_table_take(&table, json_array_get(rows, n_taken))))
		n_taken++;
	bool is_whole = cells && n_taken == n;
	if (is_whole)
		render_table_print_names(&table, out, indent);
	for (size_t i = 0; i < n_taken; i++) {
		if (is_whole)
			render_table_print(&table, out, indent, cells[i]);
		free(cells[i]);
	}
	free(cells);
	render_table_fini(&table);
	return is_whole;
}

// Likewise, and so the next two.
static bool print_list(FILE *out, const json_t *list, const char *indent, bool human)
{
	size_t i;
	const json_t *item;
	if (json_is_object(json_array_get(list, 0)))
		return print_table(out, list, indent, human);
	json_array_foreach(list, i, item)
	{
		fputs(indent, out);
		render_scalar(out, NULL, item);
		fputc('\n', out);
	}
	return true;
}

// The tree is our own and at most four deep.
static bool print_object(FILE *out, json_t *object, const char *indent, bool human)
{
	const char *key;
	json_t *value;
	char deeper[16];
	bool is_whole = true;
	snprintf(deeper, sizeof(deeper), "%s  ", indent);
	json_object_foreach(object, key, value)
	{
		if (!is_nested(value)) {
			fprintf(out, "%s%s: ", indent, key);
			render_scalar(out, human ? key : NULL, value);
			fputc('\n', out);
			continue;
		}
		bool empty = json_is_array(value) ? json_array_size(value) == 0
		                                  : json_object_size(value) == 0;
		fprintf(out, "%s%s:%s\n", indent, key, empty ? " none" : "");
		if (json_is_object(value))
			is_whole &= print_object(out, value, deeper, human);
		else if (!empty)
			is_whole &= print_list(out, value, deeper, human);
	}
	return is_whole;
}

char *render_text(json_t *tree, bool human)
{
	bool is_whole = true;
	struct printout p;
	FILE *out = printout_begin(&p);
	if (!out)
		return NULL;
	if (json_is_object(tree))
		is_whole = print_object(out, tree, "", human);
	else if (json_array_size(tree) > 0)
		is_whole = print_list(out, tree, "", human);
	else
		fputs("none\n", out);
	char *text = printout_end(&p);
	if (is_whole)
		return text;
	free(text);
	return NULL;
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
	size_t i;
	const json_t *row;
	struct printout p;
	FILE *out = printout_begin(&p);
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
	return printout_end(&p);
}
