// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config.h"

#include "ctrl/base/whole_file.h"
#include "ctrl/conf/config_check.h"
#include "ctrl/conf/config_frontend.h"
#include "ctrl/conf/config_numbers.h"
#include "ctrl/conf/config_scalars.h"
#include "ctrl/conf/config_schema.h"
#include "lb/pick/limits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// cyaml tells what is wrong only through its log: the first line is the reason, the backtrace that
// follows goes from the inner field to the outer one, each with its line.

enum complaint_kind {
	COMPLAINT_OTHER, // has its reason
	COMPLAINT_WORD, // value is none of the words that the field takes
	COMPLAINT_NUMBER, // value is no number that the field takes
	COMPLAINT_COUNT, // the list has too few or too many entries, as the reason says
};
struct complaint {
	enum complaint_kind kind;
	char reason[160];
	char value[64];
	char field[160]; // "ports[0].mtu", built from the inside out
	int line; // of the innermost field; 0 = unknown
};

static void complaint_put_field(struct complaint *c, const char *part, bool is_index)
{
	char old[sizeof(c->field)];
	memcpy(old, c->field, sizeof(old));
	const char *dot = old[0] && old[0] != '[' ? "." : "";
	snprintf(c->field, sizeof(c->field), is_index ? "[%s]%s%s" : "%s%s%s", part, dot, old);
}

static void complaint_take_trace(struct complaint *c, const char *text)
{
	int line = 0;
	unsigned index;
	char name[64];
	if (sscanf(text, " in mapping field '%63[^']' (line: %d", name, &line) >= 1) {
		// A missing field is noticed after the last one that is there, which is innocent.
		bool innocent = !c->line && strncmp(c->reason, "Missing", 7) == 0;
		if (!innocent)
			complaint_put_field(c, name, false);
	} else if (sscanf(text, " in sequence entry '%u' (line: %d", &index, &line) >= 1) {
		// A list that is too long or too short is noticed at an entry, which is innocent.
		bool innocent = !c->line && c->kind == COMPLAINT_COUNT;
		snprintf(name, sizeof(name), "%u", index ? index - 1 : 0); // cyaml counts from 1
		if (!innocent)
			complaint_put_field(c, name, true);
	} else if (sscanf(text, " in mapping (line: %d", &line) != 1) {
		return;
	}
	if (!c->line)
		c->line = line;
}

// What libcyaml calls by the names of C's types. The value stands between quotes, and may be empty.
static bool complaint_take_value(
	struct complaint *c, const char *text, const char *start, enum complaint_kind kind)
{
	size_t len = strlen(start);
	if (strncmp(text, start, len) != 0)
		return false;
	const char *end = strrchr(text + len, '\'');
	int n = (int)(end ? (size_t)(end - text) - len : strlen(text + len));
	snprintf(c->value, sizeof(c->value), "%.*s", n, text + len);
	c->kind = kind;
	return true;
}

static bool complaint_take_length(struct complaint *c, const char *text)
{
	unsigned n, bound;
	if (sscanf(text, "Excessive entries (%u max", &bound) == 1) {
		snprintf(c->reason, sizeof(c->reason), "more than %u of them", bound);
		c->kind = COMPLAINT_COUNT;
	} else if (sscanf(text, "Insufficient entries (%u of %u min", &n, &bound) == 2) {
		snprintf(
			c->reason, sizeof(c->reason), "%u of them, and %u are the least", n, bound);
		c->kind = COMPLAINT_COUNT;
	} else if (sscanf(text, "STRING length < %u", &bound) == 1) {
		snprintf(c->reason, sizeof(c->reason), "the text has less than %u bytes", bound);
	} else if (sscanf(text, "STRING length > %u", &bound) == 1) {
		snprintf(c->reason, sizeof(c->reason), "the text has more than %u bytes", bound);
	} else {
		return false;
	}
	return true;
}

static void complaint_take_reason(struct complaint *c, const char *text)
{
	char kind[16];
	if (complaint_take_length(c, text) ||
		complaint_take_value(c, text, "Invalid uint64_t value: '", COMPLAINT_NUMBER) ||
		complaint_take_value(c, text, "Invalid UINT value: '", COMPLAINT_NUMBER) ||
		complaint_take_value(c, text, "Invalid INT value: '", COMPLAINT_WORD)) // an enum's
		return;
	if (sscanf(text, "Expecting %15[A-Z], got event: ", kind) == 1)
		snprintf(c->reason, sizeof(c->reason), "must be a %s",
			strcmp(kind, "SEQUENCE") == 0  ? "list"
			: strcmp(kind, "MAPPING") == 0 ? "mapping"
						       : "single value");
	else if (strcmp(text, "libyaml: found character that cannot start any token") == 0)
		snprintf(c->reason, sizeof(c->reason), "%s (a tab? YAML is indented by spaces)",
			text);
	else
		snprintf(c->reason, sizeof(c->reason), "%s", text);
}

static void complaint_log(cyaml_log_t level, void *ctx, const char *fmt, va_list args)
{
	struct complaint *c = ctx;
	char text[256];
	vsnprintf(text, sizeof(text), fmt, args);
	text[strcspn(text, "\n")] = 0;
	if (strcmp(text, "Load: Backtrace:") == 0) // the trace's title; some errors have no reason
		return;
	if (text[0] == ' ')
		complaint_take_trace(c, text);
	else if (!c->reason[0] && c->kind == COMPLAINT_OTHER && level >= CYAML_LOG_ERROR)
		complaint_take_reason(c, strncmp(text, "Load: ", 6) == 0 ? text + 6 : text);
}

static void complaint_list_choices(struct complaint *c)
{
	const char *dot = strrchr(c->field, '.'), *key = dot ? dot + 1 : c->field;
	int len = snprintf(c->reason, sizeof(c->reason), "'%s' is not one of", c->value);
	for (size_t i = 0; i < config_n_choices; i++)
		for (size_t k = 0;
			strcmp(config_choices[i].key, key) == 0 && k < config_choices[i].n; k++)
			len += snprintf(c->reason + len, sizeof(c->reason) - (size_t)len, "%s %s",
				k ? "," : "", config_choices[i].names[k].str);
}

static const cyaml_config_t cyaml_base = {
	.log_level = CYAML_LOG_WARNING,
	.log_fn = complaint_log,
	.mem_fn = cyaml_mem,
	.flags = CYAML_CFG_NO_ALIAS,
};

static void complaint_tell(
	struct complaint *c, const char *path, cyaml_err_t err, struct lb_err *reterr)
{
	char at[32] = "";
	if (c->kind == COMPLAINT_WORD)
		complaint_list_choices(c);
	if (c->kind == COMPLAINT_NUMBER)
		config_number_refuse(c->field, c->value, c->reason, sizeof(c->reason));
	if (c->line)
		snprintf(at, sizeof(at), ":%d", c->line);
	lb_err_set(reterr, "%s%s: %s%s%s", path, at, c->field, c->field[0] ? ": " : "",
		c->reason[0] ? c->reason : cyaml_strerror(err));
}

static struct config *parse(const char *path, const char *text, size_t len, struct lb_err *reterr)
{
	struct complaint complaint = {.line = 0};
	cyaml_config_t cyaml = cyaml_base;
	cyaml.log_ctx = &complaint;
	struct config *c = NULL;
	if (config_scalars_check(path, text, len, reterr))
		return NULL;
	cyaml_err_t err = cyaml_load_data(
		(const uint8_t *)text, len, &cyaml, &config_schema, (cyaml_data_t **)&c, NULL);
	if (err != CYAML_OK)
		complaint_tell(&complaint, path, err, reterr);
	else if (!c)
		lb_err_set(reterr, "%s: the file is empty", path);
	return err == CYAML_OK ? c : NULL;
}

struct config *config_load(const char *path, struct lb_err *reterr)
{
	struct whole_file file;
	if (whole_file_read_stream(path, &file, reterr)) {
		lb_err_within(reterr, "%s", path);
		return NULL;
	}
	struct config *c = parse(path, file.p, file.len, reterr);
	whole_file_fini(&file);
	if (c && config_check(c, reterr)) {
		lb_err_within(reterr, "%s", path);
		config_free(c);
		return NULL;
	}
	return c;
}

void config_free(struct config *c)
{
	if (!c)
		return;
	for (unsigned i = 0; i < c->n_ports; i++) {
		free(c->ports[i].address_ips);
		free(c->ports[i].address_lens);
	}
	for (unsigned i = 0; i < c->n_frontends; i++)
		if (c->frontends[i].proxy_protocol)
			free(c->frontends[i].proxy_protocol->prefixes);
	for (unsigned i = 0; i < c->n_frontends; i++) {
		config_frontend_free(c->frontends[i].next);
		c->frontends[i].next = NULL;
	}
	for (unsigned i = 0; i < c->n_past_names; i++)
		free(c->past_names[i]);
	free(c->past_names);
	free(c->dns_servers);
	struct complaint complaint = {.line = 0};
	cyaml_config_t cyaml = cyaml_base;
	cyaml.log_ctx = &complaint;
	cyaml_free(&cyaml, &config_schema, c, 0);
}

uint32_t config_n_serving(const struct config *c)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < c->n_frontends; i++)
		n += config_serves(c, i);
	return n;
}

int config_find_frontend(const struct config *c, const char *name, struct lb_err *err)
{
	for (unsigned i = 0; name && i < c->n_frontends; i++)
		if (config_serves(c, i) && strcmp(c->frontends[i].name, name) == 0)
			return (int)i;
	if (name)
		return lb_err_set(err, "no frontend is called '%s', try show info", name);
	unsigned n = config_n_serving(c), only = 0;
	if (n != 1)
		return lb_err_set(err, "there are %u frontends: choose one with --frontend", n);
	while (!config_serves(c, only))
		only++;
	return (int)only;
}
