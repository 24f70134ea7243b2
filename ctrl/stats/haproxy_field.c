// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/haproxy_field.h"

#include "ctrl/stats/render.h"

#include <inttypes.h>

// What the letters of tags stand for, by place; not all of HAProxy's.
static const char *word_of(uint32_t place, char letter)
{
	static const struct {
		char letter;
		const char *word;
	} words[3][12] = {
		{{'M', "Metric"}, {'S', "Status"}, {'K', "Key"}, {'C', "Config"}, {'P', "Product"}},
		{{'G', "Gauge"}, {'L', "Limit"}, {'M', "Max"}, {'R', "Rate"}, {'C', "Counter"},
			{'D', "Duration"}, {'A', "Age"}, {'N', "Name"}, {'O', "Output"},
			{'a', "Avg"}},
		{{'P', "Process"}, {'S', "Service"}},
	};
	for (uint32_t i = 0; words[place][i].word; i++)
		if (words[place][i].letter == letter)
			return words[place][i].word;
	return "Unknown";
}

static const char *tags_of(const struct haproxy_row *r, uint32_t i)
{
	return r->values[i].tags ? r->values[i].tags : r->fields[i].tags;
}

static void print_json(FILE *out, const struct haproxy_row *r, uint32_t i)
{
	const struct haproxy_field *f = &r->fields[i];
	const struct haproxy_value *v = &r->values[i];
	fputc('{', out);
	if (r->object)
		fprintf(out, "\"objType\":\"%s\",\"proxyId\":%" PRIu32 ",\"id\":%" PRIu32 ",",
			r->object, r->iid, r->sid);
	fprintf(out, "\"field\":{\"pos\":%" PRIu32 ",\"name\":\"%s\"},\"processNum\":1,", i,
		f->name);
	const char *tags = tags_of(r, i);
	fprintf(out, "\"tags\":{\"origin\":\"%s\",\"nature\":\"%s\",\"scope\":\"%s\"},",
		word_of(0, tags[0]), word_of(1, tags[1]), word_of(2, tags[2]));
	fprintf(out, "\"value\":{\"type\":\"%s\",\"value\":", f->type);
	json_t *value = v->text ? render_string(v->text) : json_integer((json_int_t)v->number);
	if (!value || json_dumpf(value, out, JSON_ENCODE_ANY | JSON_COMPACT))
		fputs("null", out);
	json_decref(value);
	fputs("}}", out);
}

static void print_typed(FILE *out, const struct haproxy_row *r, uint32_t i)
{
	const struct haproxy_field *f = &r->fields[i];
	const struct haproxy_value *v = &r->values[i];
	if (r->object)
		fprintf(out, "%c.%" PRIu32 ".%" PRIu32 ".", r->object[0], r->iid, r->sid);
	fprintf(out, "%" PRIu32 ".%s.1:%s:%s:", i, f->name, tags_of(r, i), f->type);
	if (v->text)
		render_print(out, v->text);
	else
		fprintf(out, "%" PRIu64, v->number);
	fputc('\n', out);
}

static void print_pair(FILE *out, const struct haproxy_row *r, uint32_t i)
{
	const struct haproxy_value *v = &r->values[i];
	fprintf(out, "%s: ", r->fields[i].name);
	if (v->text)
		render_print(out, v->text);
	else
		fprintf(out, "%" PRIu64, v->number);
	fputc('\n', out);
}

// The column `-` ends those whose places are known.
static void print_csv(FILE *out, const struct haproxy_row *r)
{
	for (uint32_t i = 0; i < r->n; i++) {
		const struct haproxy_value *v = &r->values[i];
		if (v->text)
			render_print_csv(out, v->text);
		else if (v->is_set)
			fprintf(out, "%" PRIu64, v->number);
		fputc(',', out);
	}
	fputs("-,\n", out);
}

void haproxy_row_print(FILE *out, const struct haproxy_row *r, enum haproxy_form form)
{
	void (*const print[])(FILE *, const struct haproxy_row *, uint32_t) = {
		[HAPROXY_PLAIN] = print_pair,
		[HAPROXY_TYPED] = print_typed,
		[HAPROXY_JSON] = print_json,
	};
	if (form == HAPROXY_PLAIN && r->object) {
		print_csv(out, r);
		return;
	}
	bool is_json = form == HAPROXY_JSON;
	uint32_t n = 0;
	if (is_json)
		fputc('[', out);
	for (uint32_t i = 0; i < r->n; i++) {
		if (!r->values[i].is_set)
			continue;
		if (is_json && n++)
			fputc(',', out);
		print[form](out, r, i);
	}
	if (is_json)
		fputc(']', out);
}
