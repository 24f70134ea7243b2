// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/bootstrap.h"

#include <jansson.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S 1000000000ull
#define DEFAULT_REFRESH_NS (600 * NS_PER_S)

// Field readers. `at` names the object that holds the field, "" = the top level; errors read
// "xds_servers[0].server_uri: …".
static int field_err(struct lb_err *err, const char *at, const char *field, const char *why)
{
	return lb_err_set(err, "%s%s%s: %s", at, *at ? "." : "", field, why);
}

// Copies a string into *ret, which keeps its value when the field is absent.
static int read_text(
	const json_t *o, const char *at, const char *field, char **ret, struct lb_err *err)
{
	const json_t *v = json_object_get(o, field);
	if (!v)
		return 0;
	if (!json_is_string(v))
		return field_err(err, at, field, "must be a string");
	if (strlen(json_string_value(v)) != json_string_length(v))
		return field_err(err, at, field, "must not hold a NUL");
	char *copy = strdup(json_string_value(v));
	if (!copy)
		return -ENOMEM;
	free(*ret);
	*ret = copy;
	return 0;
}

static int text_default(char **ret, const char *value)
{
	if (!*ret)
		*ret = strdup(value);
	return *ret ? 0 : -ENOMEM;
}

// Duration as protobuf writes it in JSON: "600s", "1.5s"; up to nine decimals, not negative.
static int read_duration(
	const json_t *o, const char *at, const char *field, uint64_t *ret_ns, struct lb_err *err)
{
	static const char WHY[] = "must be a duration like \"600s\"";
	const json_t *v = json_object_get(o, field);
	if (!v)
		return 0;
	const char *p = json_string_value(v);
	if (!p || *p < '0' || *p > '9')
		return field_err(err, at, field, WHY);
	uint64_t s = 0, ns = 0;
	for (; *p >= '0' && *p <= '9'; p++) {
		s = s * 10 + (uint64_t)(*p - '0');
		if (s > 315576000000ull) // the largest Duration (WF-02)
			return field_err(err, at, field, "is too long");
	}
	if (*p == '.') {
		uint64_t unit = NS_PER_S / 10;
		if (p[1] < '0' || p[1] > '9')
			return field_err(err, at, field, WHY);
		for (p++; *p >= '0' && *p <= '9' && unit; p++, unit /= 10)
			ns += (uint64_t)(*p - '0') * unit;
	}
	if (strcmp(p, "s") != 0)
		return field_err(err, at, field, WHY);
	// 2^64 ns are 584 years; a longer refresh is "never" either way.
	*ret_ns = s > UINT64_MAX / NS_PER_S - 1 ? UINT64_MAX : s * NS_PER_S + ns;
	return 0;
}

static void server_fini(struct xds_server_conf *s)
{
	free(s->uri);
	free(s->ca_file);
	free(s->cert_file);
	free(s->key_file);
}

// gRFC A65.
static int read_tls(
	const json_t *config, const char *at, struct xds_server_conf *s, struct lb_err *err)
{
	if (config && !json_is_object(config))
		return lb_err_set(err, "%s: must be an object", at);
	int rc = read_text(config, at, "ca_certificate_file", &s->ca_file, err);
	if (!rc)
		rc = read_text(config, at, "certificate_file", &s->cert_file, err);
	if (!rc)
		rc = read_text(config, at, "private_key_file", &s->key_file, err);
	if (!rc)
		rc = read_duration(config, at, "refresh_interval", &s->refresh_ns, err);
	if (!rc && !s->cert_file != !s->key_file)
		rc = lb_err_set(err,
			"%s: certificate_file and private_key_file must be set both or not at all",
			at);
	return rc;
}

// The first entry of a type we know wins (BT-04).
static int read_creds(
	const json_t *list, const char *at, struct xds_server_conf *s, struct lb_err *err)
{
	if (!json_is_array(list))
		return field_err(err, at, "channel_creds", "must be an array");
	size_t i;
	const json_t *entry;
	json_array_foreach(list, i, entry)
	{
		char here[128];
		snprintf(here, sizeof(here), "%s.channel_creds[%zu]", at, i);
		const char *type = json_string_value(json_object_get(entry, "type"));
		if (!type)
			return field_err(err, here, "type", "must be a string");
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
	return field_err(err, at, "channel_creds",
		"no entry of a supported type (insecure, google_default, tls)");
}

static int read_features(
	const json_t *list, const char *at, struct xds_server_conf *s, struct lb_err *err)
{
	if (!list)
		return 0;
	if (!json_is_array(list))
		return field_err(err, at, "server_features", "must be an array");
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
	s->refresh_ns = DEFAULT_REFRESH_NS;
	int rc = read_text(o, at, "server_uri", &s->uri, err);
	if (!rc && (!s->uri || !*s->uri))
		rc = field_err(err, at, "server_uri", "must be a non-empty string");
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
		return lb_err_set(err, "%s: must be an array", at);
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
		int rc = read_text(texts[i].in, texts[i].at, texts[i].field, texts[i].out, err);
		if (!rc)
			rc = text_default(texts[i].out, "");
		if (rc)
			return rc;
	}
	return 0;
}

// BT-09.
static int read_authority(
	const char *name, const json_t *o, struct xds_authority_conf *a, struct lb_err *err)
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
		rc = read_text(o, at, FIELD, &a->listener_template, err);
	if (!rc)
		rc = text_default(&a->listener_template, template);
	if (!rc && strncmp(a->listener_template, prefix, strlen(prefix)) != 0)
		rc = lb_err_set(err, "%s.%s: must start with %s", at, FIELD, prefix);
	const json_t *servers = json_object_get(o, "xds_servers");
	if (!rc && servers) {
		strncat(at, ".xds_servers", sizeof(at) - strlen(at) - 1);
		rc = read_servers(servers, at, &a->servers, &a->n_servers, err);
	}
	free(prefix);
	free(template);
	return rc;
}

static int read_authorities(json_t *o, struct xds_bootstrap *b, struct lb_err *err)
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
		int rc = read_authority(name, value, &b->authorities[b->n_authorities++], err);
		if (rc)
			return rc;
	}
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
		rc = read_text(o, "", "client_default_listener_resource_name_template",
			&b->listener_template, err);
	if (!rc)
		rc = text_default(&b->listener_template, "%s");
	if (!rc)
		rc = read_text(o, "", "server_listener_resource_name_template",
			&b->server_listener_template, err);
	if (!rc)
		rc = read_authorities(json_object_get(o, "authorities"), b, err);
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

int xds_bootstrap_load_file(const char *path, struct xds_bootstrap **ret, struct lb_err *err)
{
	FILE *f = fopen(path, "re");
	if (!f)
		return lb_err_set(err, "bootstrap %s: %s", path, strerror(errno));
	char *text = NULL;
	size_t len = 0;
	FILE *memory = open_memstream(&text, &len);
	int rc = memory ? 0 : -ENOMEM;
	char chunk[4096];
	size_t n;
	while (!rc && (n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		if (fwrite(chunk, 1, n, memory) != n)
			rc = -ENOMEM;
	if (!rc && ferror(f))
		rc = lb_err_set(err, "bootstrap %s: %s", path, strerror(errno));
	fclose(f);
	if (memory && fclose(memory) != 0 && !rc)
		rc = -ENOMEM;
	if (!rc)
		rc = xds_bootstrap_parse(text, len, path, ret, err);
	free(text);
	return rc;
}

int xds_bootstrap_load(struct xds_bootstrap **ret, struct lb_err *err)
{
	const char *path = getenv("GRPC_XDS_BOOTSTRAP");
	if (path && *path)
		return xds_bootstrap_load_file(path, ret, err);
	const char *text = getenv("GRPC_XDS_BOOTSTRAP_CONFIG");
	if (text && *text)
		return xds_bootstrap_parse(
			text, strlen(text), "GRPC_XDS_BOOTSTRAP_CONFIG", ret, err);
	return lb_err_set(err,
		"bootstrap: neither GRPC_XDS_BOOTSTRAP (a path) nor GRPC_XDS_BOOTSTRAP_CONFIG "
		"(the JSON itself) is set");
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
	}
	free(b->authorities);
	json_decref(b->metadata);
	free(b->node_id);
	free(b->node_cluster);
	free(b->region);
	free(b->zone);
	free(b->sub_zone);
	free(b->listener_template);
	free(b->server_listener_template);
	free(b);
}

// What FE-06 leaves bare in an xdstp: name: RFC 3986 path characters.
static bool is_path_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-._~!$&'()*+,;=:@/", c));
}

// Replaces each "%s" of the template by the endpoint part of the target.
static char *expand(const char *template, const char *endpoint)
{
	bool encode = strncmp(template, "xdstp:", 6) == 0;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	if (!f)
		return NULL;
	for (const char *p = template; *p; p++) {
		if (p[0] != '%' || p[1] != 's') {
			fputc(*p, f);
			continue;
		}
		p++;
		for (const char *e = endpoint; *e; e++)
			if (!encode || is_path_char(*e))
				fputc(*e, f);
			else
				fprintf(f, "%%%02X", (unsigned char)*e);
	}
	bool failed = ferror(f);
	if (fclose(f) != 0 || failed) {
		free(text);
		return NULL;
	}
	return text;
}

int xds_bootstrap_listener_name(
	const struct xds_bootstrap *b, const char *target, char **ret, struct lb_err *err)
{
	const char *template = b->listener_template;
	const char *endpoint = target;
	if (strncmp(target, "xds:", 4) == 0) {
		endpoint = target + 4;
		if (strncmp(endpoint, "//", 2) == 0) {
			const char *authority = endpoint + 2;
			size_t len = strcspn(authority, "/");
			endpoint = authority + len;
			template = len ? NULL : template;
			for (uint32_t i = 0; !template && i < b->n_authorities; i++)
				if (strlen(b->authorities[i].name) == len &&
					strncmp(b->authorities[i].name, authority, len) == 0)
					template = b->authorities[i].listener_template;
			if (!template)
				return lb_err_set(err,
					"target %s: authority %.*s is not in the bootstrap", target,
					(int)len, authority);
		}
		endpoint += *endpoint == '/';
	}
	if (!*endpoint)
		return lb_err_set(err, "target \"%s\": names no service", target);
	char *name = expand(template, endpoint);
	if (!name)
		return -ENOMEM;
	*ret = name;
	return 0;
}
