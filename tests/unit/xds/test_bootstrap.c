// SPDX-License-Identifier: Apache-2.0
// Bootstrap files: what is read, what is ignored, and what errors say (xds-client.md §5).
#include "ctrl/xds/bootstrap.h"
#include "tests/support/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *json_of(const char *text)
{
	char *json = strdup(text);
	assert_non_null(json);
	for (char *p = json; *p; p++)
		if (*p == '\'')
			*p = '"';
	return json;
}

static struct xds_bootstrap *parse(const char *text)
{
	char *json = json_of(text);
	struct xds_bootstrap *b = NULL;
	struct lb_err err = {""};
	if (xds_bootstrap_parse(json, strlen(json), "b.json", &b, &err))
		fail_msg("%s: %s", text, err.text);
	free(json);
	return b;
}

#define SERVER "{'server_uri':'s:1','channel_creds':[{'type':'insecure'}]}"
#define SERVERS "'xds_servers':[" SERVER "]"

static void plain_bootstrap_has_defaults(void **state)
{
	struct xds_bootstrap *b = parse("{" SERVERS "}");
	assert_int_equal(b->n_servers, 1);
	assert_string_equal(b->servers[0].uri, "s:1");
	assert_int_equal(b->servers[0].creds, XDS_CREDS_INSECURE);
	assert_string_equal(b->node_id, "");
	assert_string_equal(b->listener_template, "%s"); // BT-10
	assert_null(b->server_listener_template);
	assert_null(b->metadata);
	xds_bootstrap_free(b);
}

static void everything_known_is_read_and_the_rest_ignored(void **state)
{
	struct xds_bootstrap *b = parse("{'xds_servers':["
					"{'server_uri':'a:1','channel_creds':[{'type':'alien'},"
					"{'type':'tls','config':{'ca_certificate_file':'/ca',"
					"'certificate_file':'/c','private_key_file':'/k',"
					"'refresh_interval':'1.5s','new':1}}],'server_features':"
					"['xds_v3','fail_on_data_errors','trusted_xds_server',7,"
					"{'x':1}],'unknown':[]}," SERVER "],"
					"'node':{'id':'n','cluster':'c','locality':{'region':'r',"
					"'zone':'z','sub_zone':'s'},'metadata':{'k':'v'},"
					"'user_agent_name':'x','client_features':['y']},"
					"'client_default_listener_resource_name_template':'l/%s',"
					"'certificate_providers':{'i':{}},'future':null,"
					"'authorities':{'auth':{},'other':{'xds_servers':[" SERVER
					"],'client_listener_resource_name_template':"
					"'xdstp://other/x/%s'}}}");
	assert_int_equal(b->n_servers, 2); // BT-03: in order
	const struct xds_server_conf *s = &b->servers[0];
	assert_string_equal(s->uri, "a:1");
	assert_int_equal(s->creds, XDS_CREDS_TLS); // BT-04: the first known one
	assert_string_equal(s->ca_file, "/ca");
	assert_string_equal(s->cert_file, "/c");
	assert_string_equal(s->key_file, "/k");
	assert_int_equal(s->refresh_ns, 1500000000);
	assert_true(s->fail_on_data_errors); // BT-06
	assert_true(s->trusted);
	assert_false(s->timer_is_transient_error);
	assert_string_equal(b->node_id, "n"); // BT-07
	assert_string_equal(b->sub_zone, "s");
	assert_non_null(b->metadata);
	assert_int_equal(b->n_authorities, 2); // BT-09
	const struct xds_authority_conf *a = &b->authorities[0];
	assert_string_equal(a->name, "auth");
	assert_string_equal(
		a->listener_template, "xdstp://auth/envoy.config.listener.v3.Listener/%s");
	assert_int_equal(a->n_servers, 0);
	assert_int_equal(b->authorities[1].n_servers, 1);
	xds_bootstrap_free(b);
}

static void empty_tls_config_is_legal(void **state)
{
	struct xds_bootstrap *b = parse(
		"{'xds_servers':[{'server_uri':'s','channel_creds':[{'type':'tls'}]}]}"); // BT-05
	assert_int_equal(b->servers[0].creds, XDS_CREDS_TLS);
	assert_null(b->servers[0].ca_file);
	assert_int_equal(b->servers[0].refresh_ns, 600000000000);
	xds_bootstrap_free(b);
}

static void errors_name_the_file_and_the_field(void **state)
{
#define CREDS(x) "{'xds_servers':[{'server_uri':'s','channel_creds':[" x "]}]}"
#define TLS(x) CREDS("{'type':'tls','config':{" x "}}")
	static const struct {
		const char *json, *why;
	} rows[] = {
		{"", "line 1"},
		{"{", "line 1 column 1"},
		{"{\n'a':\n}", "line 3"},
		{"[]", "must be a JSON object"},
		{"{}", "xds_servers: must be an array"}, // BT-03
		{"{'xds_servers':{}}", "xds_servers: must be an array"},
		{"{'xds_servers':[]}", "xds_servers: must not be empty"},
		{"{'xds_servers':[7]}", "xds_servers[0]: must be an object"},
		{"{'xds_servers':[{}]}", "xds_servers[0].server_uri: must be a non-empty"},
		{"{'xds_servers':[{'server_uri':''}]}", "xds_servers[0].server_uri"},
		{"{'xds_servers':[{'server_uri':7}]}", "xds_servers[0].server_uri: must be a str"},
		{"{'xds_servers':[{'server_uri':'a\\u0000b'}]}", "NUL"},
		{"{'xds_servers':[" SERVER ",{'server_uri':'s'}]}",
			"xds_servers[1].channel_creds: must be an array"},
		{CREDS(""), "no entry of a supported type"}, // BT-04
		{CREDS("{'type':'alien'}"), "no entry of a supported type"},
		{CREDS("{}"), "channel_creds[0].type: must be a string"},
		{TLS("'certificate_file':'/c'"), "set both or not at all"}, // BT-05
		{TLS("'private_key_file':'/k'"), "set both or not at all"},
		{TLS("'ca_certificate_file':7"), "config.ca_certificate_file: must be a string"},
		{TLS("'refresh_interval':'10m'"), "refresh_interval: must be a duration"},
		{TLS("'refresh_interval':10"), "refresh_interval: must be a duration"},
		{TLS("'refresh_interval':'-1s'"), "refresh_interval: must be a duration"},
		{TLS("'refresh_interval':'1.s'"), "refresh_interval: must be a duration"},
		{TLS("'refresh_interval':'999999999999s'"), "refresh_interval: is too long"},
		{CREDS("{'type':'tls','config':[]}"), "config: must be an object"},
		{"{" SERVERS ",'node':7}", "node: must be an object"},
		{"{" SERVERS ",'node':{'id':7}}", "node.id: must be a string"},
		{"{" SERVERS ",'node':{'locality':7}}", "node.locality: must be an object"},
		{"{" SERVERS ",'node':{'locality':{'zone':7}}}", "node.locality.zone"},
		{"{" SERVERS ",'node':{'metadata':[]}}", "node.metadata: must be an object"},
		{"{" SERVERS ",'authorities':[]}", "authorities: must be an object"},
		{"{" SERVERS ",'authorities':{'a':7}}", "authorities[\"a\"]: must be an object"},
		{"{" SERVERS ",'authorities':{'a':{'client_listener_resource_name_template':"
		 "'xdstp://b/%s'}}}",
			"must start with xdstp://a/"}, // BT-09
		{"{" SERVERS ",'authorities':{'a':{'xds_servers':[{}]}}}",
			"authorities[\"a\"].xds_servers[0].server_uri"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *json = json_of(rows[i].json);
		struct xds_bootstrap *b = NULL;
		struct lb_err err = {""};
		assert_int_equal(
			xds_bootstrap_parse(json, strlen(json), "b.json", &b, &err), -EINVAL);
		assert_null(b);
		if (!strstr(err.text, rows[i].why) || !strstr(err.text, "b.json"))
			fail_msg("%s: \"%s\"", rows[i].json, err.text);
		free(json);
	}
}

static void file_comes_before_inline_text_and_neither_is_an_error(void **state)
{
	char path[] = "/tmp/shunt-bootstrap-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	char *json = json_of("{" SERVERS ",'node':{'id':'from file'}}");
	assert_int_equal(write(fd, json, strlen(json)), (ssize_t)strlen(json));
	close(fd);
	free(json);
	json = json_of("{" SERVERS ",'node':{'id':'inline'}}");
	struct xds_bootstrap *b = NULL;
	struct lb_err err = {""};

	setenv("GRPC_XDS_BOOTSTRAP", path, 1); // BT-01
	setenv("GRPC_XDS_BOOTSTRAP_CONFIG", json, 1);
	assert_int_equal(xds_bootstrap_load(&b, &err), 0);
	assert_string_equal(b->node_id, "from file");
	xds_bootstrap_free(b);

	unlink(path);
	assert_int_equal(xds_bootstrap_load(&b, &err), -EINVAL);
	assert_non_null(strstr(err.text, path));
	assert_non_null(strstr(err.text, "No such file"));

	setenv("GRPC_XDS_BOOTSTRAP", "/tmp", 1);
	assert_int_equal(xds_bootstrap_load(&b, &err), -EINVAL);
	assert_non_null(strstr(err.text, "/tmp"));

	unsetenv("GRPC_XDS_BOOTSTRAP");
	assert_int_equal(xds_bootstrap_load(&b, &err), 0);
	assert_string_equal(b->node_id, "inline");
	xds_bootstrap_free(b);

	unsetenv("GRPC_XDS_BOOTSTRAP_CONFIG");
	assert_int_equal(xds_bootstrap_load(&b, &err), -EINVAL);
	assert_non_null(strstr(err.text, "GRPC_XDS_BOOTSTRAP"));
	free(json);
}

static void targets_become_listener_names_by_the_template(void **state)
{
	struct xds_bootstrap *b =
		parse("{" SERVERS ",'client_default_listener_resource_name_template':'pre/%s',"
		      "'authorities':{'auth':{}}}");
	static const struct {
		const char *target, *name; // NULL = refused
	} rows[] = {
		{"web", "pre/web"},
		{"a b/c", "pre/a b/c"}, // FE-06: raw in old-style names
		{"xds:web", "pre/web"},
		{"xds:///web", "pre/web"}, // FE-05
		{"xds:///a/b", "pre/a/b"},
		{"xds://auth/we b/%?",
			"xdstp://auth/envoy.config.listener.v3.Listener/we%20b/%25%3F"},
		{"xds://alien/web", NULL},
		{"xds://auth", NULL},
		{"xds:", NULL},
		{"", NULL},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *name = NULL;
		struct lb_err err = {""};
		int rc = xds_bootstrap_listener_name(b, rows[i].target, &name, &err);
		assert_int_equal(rc, rows[i].name ? 0 : -EINVAL);
		if (rows[i].name)
			assert_string_equal(name, rows[i].name);
		else
			assert_true(*err.text);
		free(name);
	}
	xds_bootstrap_free(b);
}

RUN_SUITE("xds/bootstrap", cmocka_unit_test(plain_bootstrap_has_defaults),
	cmocka_unit_test(everything_known_is_read_and_the_rest_ignored),
	cmocka_unit_test(empty_tls_config_is_legal),
	cmocka_unit_test(errors_name_the_file_and_the_field),
	cmocka_unit_test(file_comes_before_inline_text_and_neither_is_an_error),
	cmocka_unit_test(targets_become_listener_names_by_the_template))
