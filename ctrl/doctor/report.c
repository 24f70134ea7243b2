// SPDX-License-Identifier: Apache-2.0
#include "ctrl/doctor/report.h"

#include "ctrl/base/printout.h"
#include "proto/wire.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT 640

static const char *const severities[] = {
	[DOCTOR_NOTE] = "note", [DOCTOR_WARNING] = "warning", [DOCTOR_ERROR] = "error"};

const char *doctor_severity_name(enum doctor_severity s)
{
	return severities[s];
}

bool doctor_report_init(struct doctor_report *r)
{
	*r = (struct doctor_report){.findings = json_array(), .check = ""};
	return r->findings;
}

void doctor_report_fini(struct doctor_report *r)
{
	json_decref(r->findings);
}

// Texts have names and errors of others in them: of files, servers, resources.
static void clean(char *text)
{
	size_t left = strlen(text);
	for (uint8_t *p = (uint8_t *)text; left;) {
		size_t n = proto_utf8_len(p, left);
		bool is_c1 = n == 2 && p[0] == 0xc2 && p[1] <= 0x9f;
		size_t len = n ? n : 1;
		if (!n || is_c1 || *p < ' ' || *p == 0x7f)
			memset(p, n == 1 ? ' ' : '?', len);
		p += len;
		left -= len;
	}
}

static json_t *text_of(const char *fmt, va_list args)
{
	char text[MAX_TEXT];
	vsnprintf(text, sizeof(text), fmt, args);
	clean(text);
	return json_string(text);
}

static void count(struct doctor_report *r, enum doctor_severity s)
{
	r->n_errors += s == DOCTOR_ERROR;
	r->n_warnings += s == DOCTOR_WARNING;
	r->n_notes += s == DOCTOR_NOTE;
}

void doctor_report_begin(struct doctor_report *r, const char *check)
{
	r->check = check;
	r->n_of_check = 0;
	r->last = NULL;
}

void doctor_find(struct doctor_report *r, enum doctor_severity s, const char *fmt, ...)
{
	va_list args;
	count(r, s);
	r->last = NULL;
	if (r->n_of_check++ >= DOCTOR_MAX_OF_CHECK) {
		r->n_left_out++;
		return;
	}
	va_start(args, fmt);
	r->last = json_pack("{ss ss so ss}", "severity", severities[s], "check", r->check, "what",
		text_of(fmt, args), "fix", "");
	va_end(args);
	json_array_append_new(r->findings, r->last);
}

void doctor_fix(struct doctor_report *r, const char *fmt, ...)
{
	va_list args;
	if (!r->last)
		return;
	va_start(args, fmt);
	json_object_set_new(r->last, "fix", text_of(fmt, args));
	va_end(args);
}

// -1 = none is called so.
static int severity_of(const json_t *finding)
{
	const char *name = json_string_value(json_object_get(finding, "severity"));
	int s = DOCTOR_ERROR;
	while (s >= 0 && name && strcmp(severities[s], name) != 0)
		s--;
	return name ? s : -1;
}

bool doctor_report_add(struct doctor_report *r, const json_t *tree)
{
	const json_t *findings = json_object_get(tree, "findings");
	size_t i;
	json_t *finding;
	if (!json_is_array(findings))
		return false;
	json_array_foreach(findings, i, finding)
	{
		int s = severity_of(finding);
		if (s < 0)
			return false;
		count(r, (enum doctor_severity)s);
		json_array_append(r->findings, finding);
	}
	r->n_left_out += (unsigned)json_integer_value(json_object_get(tree, "left_out"));
	return true;
}

int doctor_report_status(const struct doctor_report *r)
{
	return r->n_errors ? 2 : r->n_warnings ? 1 : 0;
}

json_t *doctor_report_json(const struct doctor_report *r)
{
	json_t *rows = json_array(), *finding;
	for (int s = DOCTOR_ERROR; s >= DOCTOR_NOTE; s--) {
		size_t i;
		json_array_foreach(r->findings, i, finding) if (severity_of(finding) == s)
			json_array_append(rows, finding);
	}
	return json_pack("{si si si si si so}", "status", doctor_report_status(r), "errors",
		(int)r->n_errors, "warnings", (int)r->n_warnings, "notes", (int)r->n_notes,
		"left_out", (int)r->n_left_out, "findings", rows);
}

static void print_count(FILE *out, const json_t *tree, const char *key, const char *end)
{
	json_int_t n = json_integer_value(json_object_get(tree, key));
	// "1 error", of "errors"
	fprintf(out, "%" JSON_INTEGER_FORMAT " %.*s%s", n, (int)strlen(key) - (n == 1), key, end);
}

char *doctor_report_text(const json_t *tree)
{
	size_t i;
	const json_t *finding;
	struct printout p;
	FILE *out = printout_begin(&p);
	if (!out)
		return NULL;
	json_array_foreach(json_object_get(tree, "findings"), i, finding)
	{
		const char *fix = json_string_value(json_object_get(finding, "fix"));
		fprintf(out, "%-7s  %s%s%s\n",
			json_string_value(json_object_get(finding, "severity")),
			json_string_value(json_object_get(finding, "what")),
			fix && *fix ? "; fix: " : "", fix ? fix : "");
	}
	json_int_t left_out = json_integer_value(json_object_get(tree, "left_out"));
	if (left_out)
		fprintf(out, "and %" JSON_INTEGER_FORMAT " more\n", left_out);
	print_count(out, tree, "errors", ", ");
	print_count(out, tree, "warnings", ", ");
	print_count(out, tree, "notes", "\n");
	return printout_end(&p);
}
