// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config_diff.h"

#include "ctrl/conf/config.h"
#include "ctrl/conf/config_schema.h"
#include "lb/base/check.h"

#include <stdio.h>
#include <string.h>

struct walk {
	void (*fn)(void *ctx, const char *field);
	void *ctx;
	char path[256];
};

static void compare(
	struct walk *, const cyaml_schema_value_t *, const uint8_t *a, const uint8_t *b);

static uint64_t read_number(const uint8_t *at, uint32_t size)
{
	uint64_t n = 0;
	memcpy(&n, at, size);
	return n;
}

static const uint8_t *read_pointer(const uint8_t *at)
{
	const uint8_t *p;
	memcpy(&p, at, sizeof(p));
	return p;
}

static void tell(struct walk *w)
{
	w->fn(w->ctx, w->path);
}

// Goes down by one part of the path.
static void compare_part(struct walk *w, const char *part, const cyaml_schema_value_t *value,
	const uint8_t *a, const uint8_t *b)
{
	size_t len = strlen(w->path);
	const char *dot = len && part[0] != '[' ? "." : "";
	snprintf(w->path + len, sizeof(w->path) - len, "%s%s", dot, part);
	compare(w, value, a, b);
	w->path[len] = 0;
}

static void compare_list(
	struct walk *w, const cyaml_schema_field_t *f, const uint8_t *a, const uint8_t *b)
{
	const cyaml_schema_value_t *entry = f->value.sequence.entry;
	uint64_t n = read_number(a + f->count_offset, f->count_size);
	size_t len = strlen(w->path);
	char part[32];
	snprintf(w->path + len, sizeof(w->path) - len, "%s%s", len ? "." : "", f->key);
	if (n != read_number(b + f->count_offset, f->count_size)) {
		tell(w);
		n = 0;
	}
	uint32_t step = entry->flags & CYAML_FLAG_POINTER ? sizeof(void *) : entry->data_size;
	const uint8_t *in_a = read_pointer(a + f->data_offset);
	const uint8_t *in_b = read_pointer(b + f->data_offset);
	for (uint64_t i = 0; i < n; i++) {
		snprintf(part, sizeof(part), "[%u]", (unsigned)i);
		compare_part(w, part, entry, in_a + i * step, in_b + i * step);
	}
	w->path[len] = 0;
}

static void compare_fields(
	struct walk *w, const cyaml_schema_field_t *fields, const uint8_t *a, const uint8_t *b)
{
	for (const cyaml_schema_field_t *f = fields; f->key; f++)
		if (f->value.type == CYAML_SEQUENCE)
			compare_list(w, f, a, b);
		else
			compare_part(w, f->key, &f->value, a + f->data_offset, b + f->data_offset);
}

static void compare(
	struct walk *w, const cyaml_schema_value_t *value, const uint8_t *a, const uint8_t *b)
{
	if (value->flags & CYAML_FLAG_POINTER) {
		a = read_pointer(a);
		b = read_pointer(b);
		if (!a || !b) {
			if (a != b)
				tell(w);
			return;
		}
	}
	switch (value->type) {
	case CYAML_MAPPING:
		compare_fields(w, value->mapping.fields, a, b);
		return;
	case CYAML_STRING:
		if (strcmp((const char *)a, (const char *)b) != 0)
			tell(w);
		return;
	case CYAML_UINT:
	case CYAML_ENUM:
	case CYAML_BOOL:
		if (memcmp(a, b, value->data_size) != 0)
			tell(w);
		return;
	default:
		CHECK(!"the schema has no other types");
	}
}

void config_diff(const struct config *a, const struct config *b,
	void (*fn)(void *ctx, const char *field), void *ctx)
{
	struct walk w = {.fn = fn, .ctx = ctx};
	compare_fields(&w, config_schema.mapping.fields, (const uint8_t *)a, (const uint8_t *)b);
}

void config_diff_frontend(const struct config_frontend *a, const struct config_frontend *b,
	const char *path, void (*fn)(void *ctx, const char *field), void *ctx)
{
	struct walk w = {.fn = fn, .ctx = ctx};
	const cyaml_schema_field_t *f = config_schema.mapping.fields;
	snprintf(w.path, sizeof(w.path), "%s", path);
	while (strcmp(f->key, "frontends") != 0)
		f++;
	compare_fields(&w, f->value.sequence.entry->mapping.fields, (const uint8_t *)a,
		(const uint8_t *)b);
}
