// SPDX-License-Identifier: Apache-2.0
// show metrics: the xDS client's metrics of gRFC A78 and A88 (CS-09), in the text
// form of Prometheus. There is one client for all frontends, so that grpc.target would say nothing.
#include "ctrl/res/types.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"
#include "ctrl/xds/bootstrap/name.h"
#include "ctrl/xds/federation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct metric {
	const char *name, *kind, *help;
};

static const struct metric connected = {"grpc_xds_client_connected", "gauge",
	"Whether or not the xDS client currently has a working ADS stream to the xDS server."};
static const struct metric failures = {"grpc_xds_client_server_failure_total", "counter",
	"Times that the xDS server went from healthy to unhealthy."};
static const struct metric valid = {"grpc_xds_client_resource_updates_valid_total", "counter",
	"Resources received that were considered valid, changed or not."};
static const struct metric invalid = {"grpc_xds_client_resource_updates_invalid_total", "counter",
	"Resources received that were considered invalid."};
static const struct metric resources = {
	"grpc_xds_client_resources", "gauge", "Number of xDS resources."};

// One sample; takes the labels. Rows of one metric stand together.
static void add(json_t *rows, const struct metric *m, json_t *labels, uint64_t value)
{
	json_t *row = json_object();
	show_set_text(row, "name", m->name);
	show_set_text(row, "type", m->kind);
	show_set_text(row, "help", m->help);
	json_object_set_new(row, "labels", labels);
	show_set_u64(row, "value", value);
	json_array_append_new(rows, row);
}

static json_t *of_server(const struct xds_server_info *i)
{
	json_t *labels = json_object();
	show_set_text(labels, "grpc_xds_server", i->uri);
	return labels;
}

// "envoy.config.listener.v3.Listener"
static void set_type(json_t *labels, const struct xds_type *type)
{
	const char *slash = strrchr(type->url, '/');
	show_set_text(labels, "grpc_xds_resource_type", slash ? slash + 1 : type->url);
}

struct rows {
	json_t *connected, *failures, *valid, *invalid;
};

static void add_server(void *ctx, const struct xds_server_info *i)
{
	struct rows *r = ctx;
	add(r->connected, &connected, of_server(i), i->connected);
	add(r->failures, &failures, of_server(i), i->n_failures);
	for (uint32_t t = 0; t < RES_N_TYPES; t++) {
		json_t *labels = of_server(i);
		set_type(labels, res_types[t]);
		add(r->valid, &valid, json_copy(labels), i->updates[t].n_valid);
		add(r->invalid, &invalid, labels, i->updates[t].n_invalid);
	}
}

enum cache_state {
	REQUESTED,
	ACKED,
	DOES_NOT_EXIST,
	DOES_NOT_EXIST_BUT_CACHED,
	NACKED,
	NACKED_BUT_CACHED,
	RECEIVED_ERROR,
	RECEIVED_ERROR_BUT_CACHED,
	TIMEOUT,
	N_CACHE_STATES
};
static const char *const cache_states[N_CACHE_STATES] = {"requested", "acked", "does_not_exist",
	"does_not_exist_but_cached", "nacked", "nacked_but_cached", "received_error",
	"received_error_but_cached", "timeout"};

static enum cache_state cache_state(const struct xds_entry_info *e)
{
	switch (e->status) {
	case XDS_STATUS_ACKED:
		return ACKED;
	case XDS_STATUS_DOES_NOT_EXIST:
		return e->res ? DOES_NOT_EXIST_BUT_CACHED : DOES_NOT_EXIST;
	case XDS_STATUS_NACKED:
		return e->res ? NACKED_BUT_CACHED : NACKED;
	case XDS_STATUS_RECEIVED_ERROR:
		return e->res ? RECEIVED_ERROR_BUT_CACHED : RECEIVED_ERROR;
	case XDS_STATUS_TIMEOUT:
		return TIMEOUT;
	case XDS_STATUS_REQUESTED:
		break;
	}
	return REQUESTED;
}

struct authority {
	struct authority *next;
	char *name; // owned; NULL = old-style names
	uint64_t n[RES_N_TYPES][N_CACHE_STATES];
};

struct count {
	struct authority *first;
	bool failed; // out of memory
};

// Takes the name. NULL = out of memory. There are not many, and names come authority by authority.
static struct authority *find_authority(struct count *c, char *name)
{
	struct authority *a = c->first;
	while (a && (!a->name != !name || (name && strcmp(a->name, name) != 0)))
		a = a->next;
	if (a) {
		free(name);
		return a;
	}
	a = calloc(1, sizeof(*a));
	if (!a) {
		free(name);
		return NULL;
	}
	*a = (struct authority){.next = c->first, .name = name};
	return c->first = a;
}

static void count_resource(void *ctx, const struct xds_entry_info *e)
{
	struct count *c = ctx;
	struct xds_name name = {NULL, NULL};
	if (xds_name_is_xdstp(e->name) && xds_name_parse(e->name, e->type->url, &name, NULL)) {
		c->failed = true;
		return;
	}
	struct authority *a = find_authority(c, name.authority);
	free(name.text);
	c->failed = c->failed || !a;
	for (uint32_t t = 0; a && t < RES_N_TYPES; t++)
		a->n[t][cache_state(e)] += res_types[t] == e->type;
}

static void add_resources(json_t *rows, const struct authority *a)
{
	for (uint32_t t = 0; t < RES_N_TYPES; t++) {
		for (int state = 0; state < N_CACHE_STATES; state++) {
			if (!a->n[t][state])
				continue;
			json_t *labels = json_object();
			show_set_text(labels, "grpc_xds_authority", a->name ? a->name : "#old");
			show_set_text(labels, "grpc_xds_cache_state", cache_states[state]);
			set_type(labels, res_types[t]);
			add(rows, &resources, labels, a->n[t][state]);
		}
	}
}

static void append(json_t *to, json_t *rows)
{
	json_array_extend(to, rows);
	json_decref(rows);
}

json_t *show_metrics(const struct show *s, struct show_args *args)
{
	struct rows r = {json_array(), json_array(), json_array(), json_array()};
	struct count c = {NULL, false};
	json_t *all = json_array();
	xds_federation_each_server(s->conf.xds, add_server, &r);
	xds_federation_each(s->conf.xds, count_resource, &c);
	append(all, r.connected);
	append(all, r.failures);
	append(all, r.valid);
	append(all, r.invalid);
	for (struct authority *a = c.first, *next; a; a = next) {
		next = a->next;
		add_resources(all, a);
		free(a->name);
		free(a);
	}
	if (!c.failed)
		return all;
	json_decref(all);
	return NULL;
}

// Prometheus knows no escapes but these: of other control characters it reads "\\x1b".
static void print_label(FILE *out, const char *value)
{
	for (const char *p = value; *p; p++) {
		unsigned char c = (unsigned char)*p;
		if (c == '\n')
			fputs("\\n", out);
		else if (c < ' ' || c == 0x7f)
			fprintf(out, "\\\\x%02x", c);
		else
			fprintf(out, c == '"' || c == '\\' ? "\\%c" : "%c", c);
	}
}

static void print_row(FILE *out, const json_t *row)
{
	const char *key;
	json_t *value;
	char between = '{';
	fputs(json_string_value(json_object_get(row, "name")), out);
	json_object_foreach(json_object_get(row, "labels"), key, value)
	{
		fprintf(out, "%c%s=\"", between, key);
		print_label(out, json_string_value(value));
		fputc('"', out);
		between = ',';
	}
	fprintf(out, "} %" JSON_INTEGER_FORMAT "\n",
		json_integer_value(json_object_get(row, "value")));
}

char *show_metrics_text(json_t *rows)
{
	char *text = NULL;
	size_t len = 0, i;
	json_t *row;
	const char *last = "";
	FILE *out = open_memstream(&text, &len);
	if (!out)
		return NULL;
	json_array_foreach(rows, i, row)
	{
		const char *name = json_string_value(json_object_get(row, "name"));
		if (strcmp(name, last) != 0)
			fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name,
				json_string_value(json_object_get(row, "help")), name,
				json_string_value(json_object_get(row, "type")));
		last = name;
		print_row(out, row);
	}
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}
