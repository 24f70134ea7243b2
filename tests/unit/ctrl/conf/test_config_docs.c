// SPDX-License-Identifier: Apache-2.0
// docs/config.md, the reference of shunt.yaml: each option that is read has one row there, with the
// type, default, range and reload that the code has, and no row speaks of anything else.
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_numbers.h"
#include "ctrl/conf/config_schema.h"
#include "ctrl/conf/reload.h"
#include "lb/base/err.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_ROWS 160
#define MAX_ROW 512

// Each begins a row of the table: "| `ports[].mtu` | number, bytes | `1500` | 576 to 9000 | no |".
struct rows {
	char text[MAX_ROWS][MAX_ROW];
	unsigned n;
};

static const char *const least_config = "ports: [{device: net_tap0, addresses: [10.0.0.1/8]}]\n"
					"frontends: [{name: a, address: 10.0.0.1, port: 80}]\n"
					"xds: {}\n"
					"sessions: {}\n"
					"csds: {listen: 127.0.0.1:1}\n"
					"metrics: {listen: 127.0.0.1:2}\n";

static struct config *load_least(void)
{
	char path[] = "/tmp/shunt-config-XXXXXX";
	struct lb_err err = {.text = ""};
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, least_config, strlen(least_config)), strlen(least_config));
	close(fd);
	struct config *c = config_load(path, &err);
	unlink(path);
	assert_string_equal(err.text, "");
	return c;
}

static const struct config_number *number_of(const char *path)
{
	for (unsigned i = 0; i < CONFIG_N_NUMBERS; i++)
		if (strcmp(config_numbers[i].path, path) == 0)
			return &config_numbers[i];
	fail_msg("%s: a number that ctrl/conf/config_numbers.c does not know", path);
	return NULL;
}

static const char *word_of(const cyaml_schema_value_t *v, int64_t value)
{
	for (uint32_t i = 0; i < v->enumeration.count; i++)
		if (v->enumeration.strings[i].val == value)
			return v->enumeration.strings[i].str;
	return "?";
}

static void put_type(char *to, const char *path, const cyaml_schema_value_t *v)
{
	if (v->type == CYAML_STRING)
		strcpy(to, "text");
	else if (v->type == CYAML_BOOL)
		strcpy(to, "boolean");
	else if (v->type == CYAML_ENUM)
		strcpy(to, "word");
	else if (v->type == CYAML_UINT && number_of(path)->unit[0])
		sprintf(to, "number, %s", number_of(path)->unit);
	else if (v->type == CYAML_UINT)
		strcpy(to, "number");
	else if (v->sequence.entry->type == CYAML_MAPPING)
		strcpy(to, "list of mappings");
	else
		sprintf(to, "list of %s",
			v->sequence.entry->type == CYAML_STRING ? "texts" : "numbers");
}

static void put_range(char *to, const char *path, const cyaml_schema_value_t *v)
{
	if (v->type == CYAML_STRING) {
		sprintf(to, "%u to %u bytes", v->string.min, v->string.max);
	} else if (v->type == CYAML_BOOL) {
		strcpy(to, "`true`, `false`");
	} else if (v->type == CYAML_UINT) {
		sprintf(to, "%u to %u", number_of(path)->least, number_of(path)->most);
	} else if (v->type == CYAML_SEQUENCE) {
		sprintf(to, "%u to %u entries", v->sequence.min, v->sequence.max);
	} else {
		for (uint32_t i = 0; i < v->enumeration.count; i++)
			to += sprintf(to, "%s`%s`", i ? ", " : "", v->enumeration.strings[i].str);
	}
}

// at: where the loaded configuration has it; NULL = it is in a mapping that is absent.
static void put_default(char *to, const char *path, const cyaml_schema_value_t *v,
	const uint8_t *at, const struct config *c)
{
	const char *text = NULL;
	uint32_t value = 0;
	if (v->type == CYAML_STRING && at)
		memcpy(&text, at, sizeof(text));
	if (v->type == CYAML_ENUM || v->type == CYAML_BOOL)
		if (at && !(v->flags & CYAML_FLAG_POINTER))
			memcpy(&value, at, v->data_size);
	if (strcmp(path, "log.level") == 0)
		value = c->log_level;
	if (strcmp(path, "retries.idempotent") == 0)
		value = c->retry_idempotent;
	if (strncmp(path, "frontends[].proxy_protocol.v", 28) == 0)
		value = true;
	if (strcmp(path, "vips[].arp") == 0)
		value = true;
	if (strcmp(path, "ports[].device") == 0)
		text = NULL; // the file's, which could have a bond instead
	if (strcmp(path, "workers") == 0)
		strcpy(to, "the last core that the process may use");
	else if (v->type == CYAML_UINT)
		sprintf(to, "`%u`", number_of(path)->fallback);
	else if (v->type == CYAML_ENUM)
		sprintf(to, "`%s`", word_of(v, value));
	else if (v->type == CYAML_BOOL)
		sprintf(to, "`%s`", value ? "true" : "false");
	else if (text)
		sprintf(to, "`%s`", text);
	else
		strcpy(to, "none");
}

static const uint8_t *pointee(const uint8_t *at)
{
	const uint8_t *to;
	memcpy(&to, at, sizeof(to));
	return to;
}

static void add_fields(struct rows *, const char *prefix, const cyaml_schema_field_t *,
	const uint8_t *at, const struct config *);

static void add_field(struct rows *rows, const char *prefix, const cyaml_schema_field_t *f,
	const uint8_t *at, const struct config *c)
{
	char path[128], type[64], fallback[128], range[128];
	snprintf(path, sizeof(path), "%s%s", prefix, f->key);
	at = at ? at + f->data_offset : NULL;
	if (f->value.type == CYAML_MAPPING) {
		if (at)
			at = pointee(at);
		strcat(path, ".");
		add_fields(rows, path, f->value.mapping.fields, at, c);
		return;
	}
	put_type(type, path, &f->value);
	put_range(range, path, &f->value);
	if (f->value.flags & CYAML_FLAG_OPTIONAL)
		put_default(fallback, path, &f->value, at, c);
	else if (strlen(prefix) && !strstr(prefix, "[]."))
		sprintf(fallback, "required in `%.*s`", (int)strlen(prefix) - 1, prefix);
	else
		strcpy(fallback, "required");
	assert_true(rows->n < MAX_ROWS);
	snprintf(rows->text[rows->n++], MAX_ROW, "| `%s` | %s | %s | %s | %s |", path, type,
		fallback, range, reload_applies(path) ? "yes" : "no");
	if (f->value.type == CYAML_SEQUENCE && f->value.sequence.entry->type == CYAML_MAPPING) {
		if (at)
			at = pointee(at);
		strcat(path, "[].");
		add_fields(rows, path, f->value.sequence.entry->mapping.fields, at, c);
	}
}

static void add_fields(struct rows *rows, const char *prefix, const cyaml_schema_field_t *f,
	const uint8_t *at, const struct config *c)
{
	for (; f->key; f++)
		add_field(rows, prefix, f, at, c);
}

// What the code has.
static struct rows *make_rows(void)
{
	struct rows *rows = calloc(1, sizeof(*rows));
	struct config *c = load_least();
	assert_non_null(rows);
	assert_non_null(c);
	add_fields(rows, "", config_schema.mapping.fields, (const uint8_t *)c, c);
	config_free(c);
	return rows;
}

static bool has_option(const struct rows *rows, const char *line)
{
	size_t len = strcspn(line + 3, "`") + 4; // "| `name`"
	for (unsigned i = 0; i < rows->n; i++)
		if (strncmp(rows->text[i], line, len) == 0)
			return true;
	return false;
}

// What is wrong with the documentation; prints it. Rows stand at the beginnings of lines.
static unsigned count_wrong(const struct rows *rows, const char *docs)
{
	unsigned n = 0;
	for (unsigned i = 0; i < rows->n; i++) {
		char line[MAX_ROW + 2];
		snprintf(line, sizeof(line), "\n%s", rows->text[i]);
		const char *at = strstr(docs, line);
		if (at && !strstr(at + 1, line))
			continue;
		print_error("docs/config.md wants one row that begins: %s\n", rows->text[i]);
		n++;
	}
	for (const char *line = docs; (line = strstr(line, "\n| `")); line++) {
		if (has_option(rows, line + 1))
			continue;
		print_error("docs/config.md has a row of no option: %.60s\n", line + 1);
		n++;
	}
	return n;
}

static char *read_docs(void)
{
	FILE *f = fopen(DOCS, "r");
	assert_non_null(f);
	char *text = calloc(1, 1 << 20);
	assert_non_null(text);
	assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
	fclose(f);
	return text;
}

static void each_option_has_its_row_and_no_row_is_of_anything_else(void **state)
{
	struct rows *rows = make_rows();
	char *docs = read_docs();
	assert_int_equal(count_wrong(rows, docs), 0);
	free(docs);
	free(rows);
}

static void what_differs_in_the_documentation_is_noticed(void **state)
{
	static const struct {
		const char *piece, *instead;
	} rows[] = {
		{"\n| `idle` |", "\n| idle |"}, // no row
		{"\n| `idle` |", "\n| `idles` |"}, // no row, and one of no option
		{"\n| `idle` | word |", "\n| `idle` | text |"},
		{"\n| `drain_s` | number, seconds |", "\n| `drain_s` | number, minutes |"},
		{"| number, bytes | `1500` |", "| number, bytes | `1400` |"},
		{"| 576 to 9000 |", "| 575 to 9000 |"},
		{"| `info` | `error`, `warn`, `info`, `debug` |",
			"| `warn` | `error`, `warn`, `info`, `debug` |"},
		{"| `error`, `warn`, `info`, `debug` |", "| `error`, `warn`, `info` |"},
		{"| `error`, `warn`, `info`, `debug` | yes |",
			"| `error`, `warn`, `info`, `debug` | no |"},
	};
	struct rows *wanted = make_rows();
	char *docs = read_docs();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *at = strstr(docs, rows[i].piece);
		char *planted = NULL;
		assert_non_null(at);
		assert_true(asprintf(&planted, "%.*s%s%s", (int)(at - docs), docs, rows[i].instead,
				    at + strlen(rows[i].piece)) > 0);
		if (count_wrong(wanted, planted) == 0)
			fail_msg("not noticed: %s", rows[i].instead);
		free(planted);
	}
	char *twice = NULL;
	assert_true(asprintf(&twice, "%s%s", docs, strstr(docs, "\n| `idle` |")) > 0);
	assert_true(count_wrong(wanted, twice) > 0);
	free(twice);
	free(docs);
	free(wanted);
}

RUN_SUITE("ctrl/config_docs",
	cmocka_unit_test(each_option_has_its_row_and_no_row_is_of_anything_else),
	cmocka_unit_test(what_differs_in_the_documentation_is_noticed))
