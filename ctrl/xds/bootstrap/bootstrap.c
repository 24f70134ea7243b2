// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/bootstrap/bootstrap.h"

#include "ctrl/base/whole_file.h"
#include "ctrl/xds/bootstrap/fields.h"
#include "ctrl/xds/variants/params.h"
#include "lb/base/check.h"

#include <jansson.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int text_default(char **ret, const char *value)
{
	if (!*ret)
		*ret = strdup(value);
	return *ret ? 0 : -ENOMEM;
}

static void server_fini(struct xds_server_conf *s)
{
	free(s->uri);
	xds_cert_files_fini(&s->files);
}

// gRFC A65.
static int read_tls(
	const json_t *config, const char *at, struct xds_server_conf *s, struct lb_err *err)
{
	int rc = xds_cert_files_read(config, at, &s->files, err);
	// libgrpc knows no such map, and must not give way to the system's roots in silence.
	if (!rc && s->files.spiffe)
		rc = xds_field_err(err, at, "spiffe_trust_bundle_map_file", "is not supported");
	return rc;
}

bool xds_server_conf_eq(const struct xds_server_conf *a, const struct xds_server_conf *b)
{
	return strcmp(a->uri, b->uri) == 0 && a->creds == b->creds &&
	       xds_cert_files_eq(&a->files, &b->files) &&
	       a->ignore_resource_deletion == b->ignore_resource_deletion &&
	       a->fail_on_data_errors == b->fail_on_data_errors &&
	       a->timer_is_transient_error == b->timer_is_transient_error &&
	       a->trusted == b->trusted;
}

// The first entry of a type we know wins (BT-04).
static int read_creds(
	const json_t *list, const char *at, struct xds_server_conf *s, struct lb_err *err)
{
	if (!json_is_array(list))
		return xds_field_err(err, at, "channel_creds", "must be an array");
	size_t i;
	const json_t *entry;
	json_array_foreach(list, i, entry)
	{
		char here[128];
		snprintf(here, sizeof(here), "%s.channel_creds[%zu]", at, i);
		const char *type = json_string_value(json_object_get(entry, "type"));
		if (!type)
			return xds_field_err(err, here, "type", "must be a string");
		if (strcmp(type, "insecure") == 0) {
			s->creds = XDS_CREDS_INSECURE;
			return 0;
		}
		if (strcmp(type, "google_default") == 0) {
			s->creds = XDS_CREDS_GOOGLE_DEFAULT;
			return 0;
		}
		if (strcmp(type, "tls") == 0) {
			s->creds = XDS_CREDS_TLS;
			strncat(here, ".config", sizeof(here) - strlen(here) - 1);
			return read_tls(json_object_get(entry, "config"), here, s, err);
		}
	}
	return xds_field_err(err, at, "channel_creds",
		"no entry of a supported type (insecure, google_default, tls)");
}

static int read_features(
	const json_t *list, const char *at, struct xds_server_conf *s, struct lb_err *err)
{
	if (!list)
		return 0;
	if (!json_is_array(list))
		return xds_field_err(err, at, "server_features", "must be an array");
	const struct {
		const char *name;
		bool *flag;
	} known[] = {
		{"ignore_resource_deletion", &s->ignore_resource_deletion},
		{"fail_on_data_errors", &s->fail_on_data_errors},
		{"resource_timer_is_transient_error", &s->timer_is_transient_error},
		{"trusted_xds_server", &s->trusted},
	};
	size_t i;
	const json_t *entry;
	json_array_foreach(list, i, entry)
	{
		const char *name =
			json_string_value(entry); // other JSON values are ignored (BT-06)
		for (size_t k = 0; name && k < sizeof(known) / sizeof(known[0]); k++)
			if (strcmp(name, known[k].name) == 0)
				*known[k].flag = true;
	}
	return 0;
}

static int read_server(
	const json_t *o, const char *at, struct xds_server_conf *s, struct lb_err *err)
{
	if (!json_is_object(o))
		return lb_err_set(err, "%s: must be an object", at);
	s->files.refresh_ns = XDS_CERT_DEFAULT_REFRESH_NS;
	int rc = xds_field_text(o, at, "server_uri", &s->uri, err);
	if (!rc && (!s->uri || !*s->uri))
		rc = xds_field_err(err, at, "server_uri", "must be a non-empty string");
	if (!rc)
		rc = read_creds(json_object_get(o, "channel_creds"), at, s, err);
	if (!rc)
		rc = read_features(json_object_get(o, "server_features"), at, s, err);
	return rc;
}

// `at` is the path of the array itself.
static int read_servers(const json_t *list, const char *at, struct xds_server_conf **ret,
	uint32_t *ret_n, struct lb_err *err)
{
	if (!json_is_array(list))
		return lb_err_set(err, list ? "%s: must be an array" : "%s: is missing", at);
	size_t n = json_array_size(list);
	if (n == 0)
		return 0;
	*ret = calloc(n, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	*ret_n = (uint32_t)n;
	for (size_t i = 0; i < n; i++) {
		char here[128];
		snprintf(here, sizeof(here), "%s[%zu]", at, i);
		int rc = read_server(json_array_get(list, i), here, &(*ret)[i], err);
		if (rc)
			return rc;
	}
	return 0;
}

static int read_node(const json_t *node, struct xds_bootstrap *b, struct lb_err *err)
{
	if (node && !json_is_object(node))
		return lb_err_set(err, "node: must be an object");
	const json_t *locality = json_object_get(node, "locality");
	if (locality && !json_is_object(locality))
		return lb_err_set(err, "node.locality: must be an object");
	json_t *metadata = json_object_get(node, "metadata");
	if (metadata && !json_is_object(metadata))
		return lb_err_set(err, "node.metadata: must be an object");
	b->metadata = json_incref(metadata);

	const struct {
		const json_t *in;
		const char *at, *field;
		char **out;
	} texts[] = {
		{node, "node", "id", &b->node_id},
		{node, "node", "cluster", &b->node_cluster},
		{locality, "node.locality", "region", &b->region},
		{locality, "node.locality", "zone", &b->zone},
		{locality, "node.locality", "sub_zone", &b->sub_zone},
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		int rc =
			xds_field_text(texts[i].in, texts[i].at, texts[i].field, texts[i].out, err);
		if (!rc)
			rc = text_default(texts[i].out, "");
		if (rc)
			return rc;
	}
	return 0;
}

// Whether node metadata is translated to dynamic parameters (TP2-B02): *ret is borrowed, NULL = no.
static int read_translation(
	const json_t *o, const struct xds_bootstrap *b, const json_t **ret, struct lb_err *err)
{
	static const char FIELD[] = "node_metadata_as_dynamic_parameters";
	const json_t *v = json_object_get(o, FIELD);
	if (v && !json_is_boolean(v))
		return xds_field_err(err, "", FIELD, "must be true or false");
	*ret = json_is_true(v) ? b->metadata : NULL;
	return 0;
}

// TP2-B01: neither inherited nor merged. metadata: NULL = not translated.
static int read_params(const json_t *o, const char *at, const json_t *metadata,
	struct xds_params **ret, struct lb_err *err)
{
	char here[128];
	snprintf(here, sizeof(here), "%s%sdynamic_parameters", at, *at ? "." : "");
	int rc = xds_params_from_json(json_object_get(o, "dynamic_parameters"), here, ret, err);
	if (rc || !metadata)
		return rc;
	struct xds_params *given = *ret;
	*ret = NULL;
	rc = xds_params_from_metadata(metadata, given, ret);
	xds_params_put(given);
	return rc;
}

// BT-09.
static int read_authority(const char *name, const json_t *o, const json_t *metadata,
	struct xds_authority_conf *a, struct lb_err *err)
{
	char at[128];
	snprintf(at, sizeof(at), "authorities[\"%.64s\"]", name);
	if (!json_is_object(o))
		return lb_err_set(err, "%s: must be an object", at);
	a->name = strdup(name);
	char *prefix = NULL, *template = NULL;
	if (asprintf(&prefix, "xdstp://%s/", name) < 0)
		return -ENOMEM;
	int rc = a->name ? 0 : -ENOMEM;
	if (!rc && asprintf(&template, "%senvoy.config.listener.v3.Listener/%%s", prefix) < 0) {
		template = NULL;
		rc = -ENOMEM;
	}
	static const char FIELD[] = "client_listener_resource_name_template";
	if (!rc)
		rc = xds_field_text(o, at, FIELD, &a->listener_template, err);
	if (!rc)
		rc = text_default(&a->listener_template, template);
	if (!rc && strncmp(a->listener_template, prefix, strlen(prefix)) != 0)
		rc = lb_err_set(err, "%s.%s: must start with %s", at, FIELD, prefix);
	free(prefix);
	free(template);
	if (!rc)
		rc = read_params(o, at, metadata, &a->params, err);
	const json_t *servers = json_object_get(o, "xds_servers");
	if (!rc && servers) {
		strncat(at, ".xds_servers", sizeof(at) - strlen(at) - 1);
		rc = read_servers(servers, at, &a->servers, &a->n_servers, err);
	}
	return rc;
}

static int read_authorities(
	json_t *o, const json_t *metadata, struct xds_bootstrap *b, struct lb_err *err)
{
	if (!o)
		return 0;
	if (!json_is_object(o))
		return lb_err_set(err, "authorities: must be an object");
	if (json_object_size(o) == 0)
		return 0;
	b->authorities = calloc(json_object_size(o), sizeof(*b->authorities));
	if (!b->authorities)
		return -ENOMEM;
	const char *name;
	json_t *value;
	json_object_foreach(o, name, value)
	{
		int rc = read_authority(
			name, value, metadata, &b->authorities[b->n_authorities++], err);
		if (rc)
			return rc;
	}
	return 0;
}

// A29.
static int read_providers(json_t *o, struct xds_bootstrap *b, struct lb_err *err)
{
	if (o && !json_is_object(o))
		return lb_err_set(err, "certificate_providers: must be an object");
	b->max_cert_providers = (uint32_t)json_object_size(o) + XDS_MORE_PROVIDERS;
	b->cert_providers = calloc(b->max_cert_providers, sizeof(*b->cert_providers));
	if (!b->cert_providers)
		return -ENOMEM;
	const char *name;
	json_t *value;
	json_object_foreach(o, name, value)
	{
		int rc = xds_cert_provider_read(
			value, name, &b->cert_providers[b->n_cert_providers++], err);
		if (rc)
			return rc;
	}
	return 0;
}

const struct xds_cert_provider_conf *xds_bootstrap_find_provider(
	const struct xds_bootstrap *b, const char *name)
{
	for (uint32_t i = 0; i < b->n_cert_providers; i++)
		if (strcmp(b->cert_providers[i].name, name) == 0)
			return &b->cert_providers[i];
	return NULL;
}

const struct xds_cert_provider_conf *xds_bootstrap_adopt_provider(
	struct xds_bootstrap *b, struct xds_bootstrap *from, uint32_t i)
{
	CHECK(b->n_cert_providers < b->max_cert_providers);
	struct xds_cert_provider_conf *p = &from->cert_providers[i];
	struct xds_cert_provider_conf *ret = &b->cert_providers[b->n_cert_providers++];
	*ret = *p;
	memmove(p, p + 1, (--from->n_cert_providers - i) * sizeof(*p));
	return ret;
}

int xds_bootstrap_check_provider(const struct xds_bootstrap *b, const char *name,
	enum xds_cert_part part, struct lb_err *err)
{
	const struct xds_cert_provider_conf *p = xds_bootstrap_find_provider(b, name);
	if (!p)
		return lb_err_set(err,
			"no certificate provider \"%.128s\" in the bootstrap, as this process "
			"last read it",
			name);
	if (part == XDS_CERT_CA && !p->files.ca && !p->files.spiffe)
		return lb_err_set(
			err, "certificate provider \"%.128s\" has no ca_certificate_file", name);
	if (part == XDS_CERT_OWN && !p->files.cert)
		return lb_err_set(
			err, "certificate provider \"%.128s\" has no certificate_file", name);
	return 0;
}

static int read_top(json_t *o, struct xds_bootstrap *b, struct lb_err *err)
{
	if (!json_is_object(o))
		return lb_err_set(err, "must be a JSON object");
	int rc = read_servers(
		json_object_get(o, "xds_servers"), "xds_servers", &b->servers, &b->n_servers, err);
	if (!rc && b->n_servers == 0)
		rc = lb_err_set(err, "xds_servers: must not be empty");
	if (!rc)
		rc = read_node(json_object_get(o, "node"), b, err);
	if (!rc)
		rc = xds_field_text(o, "", "client_default_listener_resource_name_template",
			&b->listener_template, err);
	if (!rc)
		rc = text_default(&b->listener_template, "%s");
	if (!rc)
		rc = xds_field_text(o, "", "server_listener_resource_name_template",
			&b->server_listener_template, err);
	const json_t *metadata = NULL;
	if (!rc)
		rc = read_translation(o, b, &metadata, err);
	if (!rc)
		rc = read_params(o, "", metadata, &b->params, err);
	if (!rc)
		rc = read_authorities(json_object_get(o, "authorities"), metadata, b, err);
	if (!rc)
		rc = read_providers(json_object_get(o, "certificate_providers"), b, err);
	return rc;
}

int xds_bootstrap_parse(const char *text, size_t len, const char *source,
	struct xds_bootstrap **ret, struct lb_err *err)
{
	json_error_t json_err;
	json_t *o = json_loadb(text, len, JSON_REJECT_DUPLICATES, &json_err);
	if (!o)
		return lb_err_set(err, "bootstrap %s: line %d column %d: %s", source, json_err.line,
			json_err.column, json_err.text);
	struct xds_bootstrap *b = calloc(1, sizeof(*b));
	int rc = b ? read_top(o, b, err) : -ENOMEM;
	json_decref(o);
	if (rc) {
		if (rc == -EINVAL)
			lb_err_within(err, "bootstrap %s", source);
		xds_bootstrap_free(b);
		return rc;
	}
	*ret = b;
	return 0;
}

static bool is_read_once(const char *path)
{
	struct stat s;
	return stat(path, &s) == 0 && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode);
}

// again: within a loop.
static int load(const char *path, bool again, struct xds_bootstrap **ret, struct lb_err *err)
{
	struct whole_file file;
	if (again && is_read_once(path)) {
		*ret = NULL;
		return 0;
	}
	int rc = again ? whole_file_read(path, false, &file, err)
	               : whole_file_read_stream(path, &file, err);
	if (rc == -EINVAL)
		lb_err_within(err, "bootstrap %s", path);
	if (rc)
		return rc;
	rc = xds_bootstrap_parse(file.p, file.len, path, ret, err);
	whole_file_fini(&file);
	return rc;
}

int xds_bootstrap_load_file(const char *path, struct xds_bootstrap **ret, struct lb_err *err)
{
	return load(path, false, ret, err);
}

static int load_beside(
	const char *config, bool again, struct xds_bootstrap **ret, struct lb_err *err)
{
	const char *slash = strrchr(config, '/');
	char *path = NULL;
	if (asprintf(&path, "%.*sbootstrap.json", slash ? (int)(slash + 1 - config) : 0, config) <
		0)
		return -ENOMEM;
	int rc = access(path, F_OK) == 0
	                 ? load(path, again, ret, err)
	                 : lb_err_set(err,
				   "bootstrap %s: %s, and neither GRPC_XDS_BOOTSTRAP "
				   "(another path) nor GRPC_XDS_BOOTSTRAP_CONFIG "
				   "(the JSON itself) is set",
				   path, strerror(errno));
	free(path);
	return rc;
}

static int find_and_load(
	const char *config, bool again, struct xds_bootstrap **ret, struct lb_err *err)
{
	*ret = NULL;
	const char *path = getenv("GRPC_XDS_BOOTSTRAP");
	if (path && *path)
		return load(path, again, ret, err);
	const char *text = getenv("GRPC_XDS_BOOTSTRAP_CONFIG");
	if (!text || !*text)
		return load_beside(config, again, ret, err);
	return again ? 0
	             : xds_bootstrap_parse(
			       text, strlen(text), "GRPC_XDS_BOOTSTRAP_CONFIG", ret, err);
}

int xds_bootstrap_load(const char *config, struct xds_bootstrap **ret, struct lb_err *err)
{
	return find_and_load(config, false, ret, err);
}

int xds_bootstrap_load_again(const char *config, struct xds_bootstrap **ret, struct lb_err *err)
{
	return find_and_load(config, true, ret, err);
}

void xds_bootstrap_free(struct xds_bootstrap *b)
{
	if (!b)
		return;
	for (uint32_t i = 0; i < b->n_servers; i++)
		server_fini(&b->servers[i]);
	free(b->servers);
	for (uint32_t i = 0; i < b->n_authorities; i++) {
		struct xds_authority_conf *a = &b->authorities[i];
		for (uint32_t k = 0; k < a->n_servers; k++)
			server_fini(&a->servers[k]);
		free(a->servers);
		free(a->name);
		free(a->listener_template);
		xds_params_put(a->params);
	}
	free(b->authorities);
	for (uint32_t i = 0; i < b->n_cert_providers; i++)
		xds_cert_provider_fini(&b->cert_providers[i]);
	free(b->cert_providers);
	json_decref(b->metadata);
	xds_params_put(b->params);
	free(b->node_id);
	free(b->node_cluster);
	free(b->region);
	free(b->zone);
	free(b->sub_zone);
	free(b->listener_template);
	free(b->server_listener_template);
	free(b);
}
