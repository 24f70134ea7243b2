// SPDX-License-Identifier: Apache-2.0
#include "ctrl/check_dump.h"

#include "ctrl/base/slice.h"
#include "ctrl/res/types.h"
#include "ctrl/stats/render.h"
#include "ctrl/xds/client.h"
#include "ctrl/xds/protocol.h"
#include "ctrl/xds/response.h"
#include "ctrl/xds/state/state_dir.h"
#include "envoy/service/discovery/v3/discovery.pb-c.h"
#include "google/protobuf/any.pb-c.h"
#include "proto/json.h"
#include "proto/registry.h"
#include "proto/wire.h"

#include <jansson.h>

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_PATH 4096

typedef Google__Protobuf__Any any_message;
typedef Envoy__Service__Discovery__V3__Resource wrapper_message;

struct dump {
	const struct xds_bootstrap *bootstrap;
	char file[MAX_PATH]; // that is being read
	char place[128]; // in it; "" = it is one resource
	const char *name; // of the resource, as far as JSON tells; NULL = unknown
	json_t *seen; // owned; its keys are types and names
	uint64_t n_resources, n_faults, n_others;
};

// One line, whatever a name or a text has in it.
static void tell(const struct dump *d, const char *kind, const char *label, const char *name,
	const char *text)
{
	printf("%s: ", kind);
	render_print(stdout, d->file);
	printf(": %s%s%s", d->place, d->place[0] ? ": " : "", label);
	if (name) {
		printf(" \"");
		render_print(stdout, name);
		printf("\"");
	}
	printf(": ");
	render_print(stdout, text);
	printf("\n");
}

static void fault(struct dump *d, const char *label, const char *name, const char *text)
{
	d->n_faults++;
	tell(d, "fault", label, name, text);
}

static void on_left_out(void *ctx, const char *text)
{
	struct dump *d = ctx;
	tell(d, "note", "resource", d->name, text);
}

// One resource.

static const struct xds_type *type_of(struct str url)
{
	for (unsigned i = 0; i < RES_N_TYPES; i++)
		if (str_eq(url, str_from(res_types[i]->url)))
			return res_types[i];
	return NULL;
}

// A server that lists a resource twice in one response is refused, too.
static bool is_again(struct dump *d, const struct xds_type *type, const char *name)
{
	json_t *names = json_object_get(d->seen, type->label);
	if (!names && json_object_set_new(d->seen, type->label, names = json_object()) != 0)
		return false;
	if (json_object_get(names, name))
		return true;
	json_object_set_new(names, name, json_true()); // no UTF-8: refused for that already
	return false;
}

// is_variant: there may be several of its name.
static void check_resource(
	struct dump *d, const char *type_url, const uint8_t *bytes, size_t len, bool is_variant)
{
	const struct xds_type *type = type_of(str_from(type_url));
	struct xds_decoded decoded = {.err = {.text = ""}, .bootstrap = d->bootstrap};
	if (!type) {
		d->n_others++; // a server may have it for others
		return;
	}
	d->n_resources++;
	type->decode(bytes, len, &decoded);
	if (!decoded.res)
		fault(d, type->label, decoded.name ? decoded.name : d->name,
			decoded.err.text[0] ? decoded.err.text : "out of memory");
	else if (!is_variant && is_again(d, type, decoded.res->name))
		fault(d, type->label, decoded.res->name, "is listed more than once");
	xds_res_put(decoded.res);
	free(decoded.name);
}

// JSON.

static void check_wrapped(struct dump *d, const any_message *any)
{
	struct lb_err err = {.text = ""};
	wrapper_message *m = proto_unpack(&envoy__service__discovery__v3__resource__descriptor,
		any->value.data, any->value.len, &err);
	if (!m || !m->resource)
		fault(d, "resource", d->name, m ? "resource: missing" : err.text);
	else
		check_resource(d, m->resource->type_url, m->resource->value.data,
			m->resource->value.len, m->resource_name);
	proto_free(m);
}

// Of a type that is not compiled in nothing but its name counts: it would not be read either when
// it came from a server. Returns 0 or -1.
static int empty_unknown(json_t *value)
{
	json_t *child, *url = json_object_get(value, "@type");
	const char *text = json_string_value(url), *key;
	size_t i;
	if (text && !json_object_get(value, "@raw") && !proto_registry_find(str_from(text))) {
		json_incref(url);
		json_object_clear(value);
		return json_object_set_new(value, "@type", url) ||
		       json_object_set_new(value, "@raw", json_string(""));
	}
	json_object_foreach(value, key, child) if (empty_unknown(child)) return -1;
	json_array_foreach(value, i, child) if (empty_unknown(child)) return -1;
	return 0;
}

static json_t *member(json_t *object, const char *name, const char *camel_name)
{
	json_t *value = json_object_get(object, name);
	return value ? value : json_object_get(object, camel_name);
}

static void check_any(struct dump *d, json_t *value)
{
	const struct proto_json_scope scope = {.left_out = on_left_out, .ctx = d};
	struct lb_err err = {.text = ""};
	ProtobufCMessage *m = NULL;
	json_t *name = json_object_get(value, "name");
	name = json_incref(name ? name : member(value, "cluster_name", "clusterName"));
	d->name = json_string_value(name); // also when it is emptied
	char *text =
		empty_unknown(value) ? NULL : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	if (!text || proto_json_parse_in(&scope, &google__protobuf__any__descriptor, text,
			     strlen(text), &m, &err)) {
		fault(d, "resource", d->name, err.text[0] ? err.text : "out of memory");
	} else {
		const any_message *any = (const any_message *)m;
		if (proto_any_is(
			    any->type_url, &envoy__service__discovery__v3__resource__descriptor))
			check_wrapped(d, any);
		else if (any->type_url[0])
			check_resource(d, any->type_url, any->value.data, any->value.len, false);
		else
			fault(d, "resource", d->name, "@type: missing");
	}
	free(text);
	proto_free(m);
	d->name = NULL;
	json_decref(name);
}

// What a client told by CSDS: what it has, and what it refused. A resource may be both.
static void check_csds(struct dump *d, json_t *configs)
{
	json_t *config, *entry;
	size_t i, k;
	json_array_foreach(configs, i, config)
	{
		json_t *entries = member(config, "generic_xds_configs", "genericXdsConfigs");
		json_array_foreach(entries, k, entry)
		{
			json_t *failure = member(entry, "error_state", "errorState");
			json_t *refused =
				member(failure, "failed_configuration", "failedConfiguration");
			json_t *value =
				refused ? refused : member(entry, "xds_config", "xdsConfig");
			snprintf(d->place, sizeof(d->place), "config[%zu].generic_xds_configs[%zu]",
				i, k);
			if (value)
				check_any(d, value);
		}
	}
}

static void check_json(struct dump *d)
{
	json_error_t error;
	json_t *value, *tree = json_load_file(d->file, JSON_REJECT_DUPLICATES, &error);
	size_t i;
	if (!tree) {
		snprintf(
			d->place, sizeof(d->place), "line %d, column %d", error.line, error.column);
		fault(d, "JSON", NULL, error.text);
	} else if (json_is_object(tree) && !json_object_get(tree, "@type") &&
		   json_object_get(tree, "config")) {
		check_csds(d, json_object_get(tree, "config"));
	} else if (json_is_object(tree)) {
		check_any(d, tree);
	}
	json_array_foreach(tree, i, value)
	{
		snprintf(d->place, sizeof(d->place), "[%zu]", i);
		check_any(d, value);
	}
	json_decref(tree);
}

// The file of state_dir.

static void check_part(
	struct dump *d, const struct xds_response *response, const struct xds_part *part)
{
	struct xds_open_part open;
	if (part->kind != XDS_PART_RESOURCE)
		return;
	int rc = xds_part_open(response, part, &open);
	snprintf(d->place, sizeof(d->place), "resources[%" PRIu32 "]", part->index);
	if (rc || open.err.text[0])
		fault(d, "resource", open.name, rc ? "out of memory" : open.err.text);
	else if (!open.is_heartbeat)
		check_resource(d, open.type_url, (const uint8_t *)open.bytes.p, open.bytes.len,
			true); // several servers may have one of this name
	xds_part_close(&open);
}

static void check_section(struct dump *d, const struct xds_state_section *section)
{
	struct slice whole = {.clock_ns = NULL};
	struct xds_response response;
	struct xds_part part;
	struct lb_err err = {.text = ""};
	xds_response_init(&response, &xds_protocol_delta.response, section->response);
	slice_begin(&whole);
	if (xds_response_read_head(&response, &whole, &err))
		fault(d, "section", NULL, err.text[0] ? err.text : "out of memory");
	else
		while (xds_response_next(&response, &part))
			check_part(d, &response, &part);
	xds_response_fini(&response);
}

static void check_state(struct dump *d, const char *folder)
{
	struct xds_state state = {.bytes = NULL};
	struct lb_err err = {.text = ""};
	if (xds_state_load(folder, &state, &err))
		fault(d, "state", NULL, err.text[0] ? err.text : "out of memory");
	for (size_t i = 0; i < state.n_sections; i++)
		check_section(d, &state.sections[i]);
	xds_state_fini(&state);
}

// Files.

static bool is_json(const char *name)
{
	size_t len = strlen(name);
	return name[0] != '.' && len > 5 && strcmp(name + len - 5, ".json") == 0;
}

static int is_wanted(const struct dirent *entry)
{
	return is_json(entry->d_name) || strcmp(entry->d_name, XDS_STATE_NAME) == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int check_folder(struct dump *d, const char *path, struct lb_err *err)
{
	struct dirent **entries;
	int n = scandir(path, &entries, is_wanted, by_name);
	if (n < 0)
		return lb_err_set(err, "%s: %s", path, strerror(errno));
	for (int i = 0; i < n; i++) {
		snprintf(d->file, sizeof(d->file), "%s/%s", path, entries[i]->d_name);
		d->place[0] = '\0';
		if (is_json(entries[i]->d_name))
			check_json(d);
		else
			check_state(d, path);
		free(entries[i]);
	}
	free(entries);
	return 0;
}

static int check_path(struct dump *d, const char *path, struct lb_err *err)
{
	struct stat st;
	if (strlen(path) + sizeof((struct dirent){0}.d_name) + 1 >= MAX_PATH)
		return lb_err_set(err, "the path is too long");
	if (stat(path, &st))
		return lb_err_set(err, "%s: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return check_folder(d, path, err);
	snprintf(d->file, sizeof(d->file), "%s", path);
	check_json(d);
	return 0;
}

int check_dump(const char *path, const struct xds_bootstrap *bootstrap, struct lb_err *reterr)
{
	struct dump d = {.bootstrap = bootstrap, .seen = json_object()};
	int rc = d.seen ? check_path(&d, path, reterr) : lb_err_set(reterr, "out of memory");
	json_decref(d.seen);
	if (rc)
		return -EINVAL;
	printf("%s: resources=%" PRIu64 " faults=%" PRIu64 " of_other_types=%" PRIu64 "\n", path,
		d.n_resources, d.n_faults, d.n_others);
	if (d.n_faults)
		lb_err_set(reterr, "%s: %" PRIu64 " faults", path, d.n_faults);
	else if (!d.n_resources)
		lb_err_set(reterr, "%s: there is no resource in it", path);
	return d.n_faults || !d.n_resources ? -EINVAL : 0;
}
