// SPDX-License-Identifier: Apache-2.0
// Bootstrap files: what is read, what is ignored, and what errors say (BT-*).
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/variants/params.h"
#include "lb/base/ip.h"
#include "tests/support/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

static void bt_10_plain_bootstrap_has_defaults(void **state)
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

static void bt_02_everything_known_is_read_and_the_rest_ignored(void **state)
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
					"'future':null,"
					"'authorities':{'auth':{},'other':{'xds_servers':[" SERVER
					"],'client_listener_resource_name_template':"
					"'xdstp://other/x/%s'}}}");
	assert_int_equal(b->n_servers, 2); // BT-03: in order
	const struct xds_server_conf *s = &b->servers[0];
	assert_string_equal(s->uri, "a:1");
	assert_int_equal(s->creds, XDS_CREDS_TLS); // BT-04: the first known one
	assert_string_equal(s->files.ca, "/ca");
	assert_string_equal(s->files.cert, "/c");
	assert_string_equal(s->files.key, "/k");
	assert_int_equal(s->files.refresh_ns, 1500000000);
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

static void bt_05_empty_tls_config_is_legal(void **state)
{
	struct xds_bootstrap *b = parse(
		"{'xds_servers':[{'server_uri':'s','channel_creds':[{'type':'tls'}]}]}"); // BT-05
	assert_int_equal(b->servers[0].creds, XDS_CREDS_TLS);
	assert_null(b->servers[0].files.ca);
	assert_int_equal(b->servers[0].files.refresh_ns, 600000000000);
	xds_bootstrap_free(b);
}

static void bt_11_call_creds_are_skipped(void **state)
{
	struct xds_bootstrap *b = parse(
		"{'xds_servers':[{'server_uri':'ads','channel_creds':[{'type':'insecure'}],"
		"'call_creds':[{'type':'jwt_token_file','config':{'jwt_token_file':7}},7]}]}");
	assert_int_equal(b->n_servers, 1);
	assert_int_equal(b->servers[0].creds, XDS_CREDS_INSECURE);
	xds_bootstrap_free(b);
}

// TLS-100
static void certificate_providers_have_their_files(void **state)
{
	struct xds_bootstrap *b = parse(
		"{" SERVERS ",'certificate_providers':{'id':{'plugin_name':'file_watcher','config':"
		"{'certificate_file':'/c','private_key_file':'/k','ca_certificate_file':'/ca',"
		"'refresh_interval':'60s','new':1},'new':2},"
		"'map':{'plugin_name':'file_watcher','config':{'spiffe_trust_bundle_map_file':'/"
		"m'}}}}");
	assert_int_equal(b->n_cert_providers, 2);
	const struct xds_cert_provider_conf *p = xds_bootstrap_find_provider(b, "id");
	assert_non_null(p);
	assert_string_equal(p->files.cert, "/c");
	assert_string_equal(p->files.key, "/k");
	assert_string_equal(p->files.ca, "/ca");
	assert_null(p->files.spiffe);
	assert_int_equal(p->files.refresh_ns, 60000000000);
	p = xds_bootstrap_find_provider(b, "map");
	assert_non_null(p);
	assert_string_equal(p->files.spiffe, "/m");
	assert_null(p->files.cert);
	assert_int_equal(p->files.refresh_ns, 600000000000);
	assert_null(xds_bootstrap_find_provider(b, "other"));
	xds_bootstrap_free(b);
}

// TLS-255
static void files_are_read_once_a_second_at_most(void **state)
{
	static const struct {
		const char *interval;
		uint64_t refresh_ns;
	} rows[] = {{"0s", 1000000000}, {"0.000000001s", 1000000000}, {"0.999999999s", 1000000000},
		{"1s", 1000000000}, {"1.000000001s", 1000000001}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[1024];
		snprintf(text, sizeof(text),
			"{'xds_servers':[{'server_uri':'ads','channel_creds':[{'type':'tls','"
			"config':"
			"{'refresh_interval':'%s'}}]}],'certificate_providers':{'p':{'plugin_name':"
			"'file_watcher','config':{'ca_certificate_file':'/"
			"ca','refresh_interval':'%s'}}"
			"}}",
			rows[i].interval, rows[i].interval);
		struct xds_bootstrap *b = parse(text);
		assert_int_equal(b->servers[0].files.refresh_ns, rows[i].refresh_ns);
		assert_int_equal(b->cert_providers[0].files.refresh_ns, rows[i].refresh_ns);
		xds_bootstrap_free(b);
	}
}

// TLS-162, TLS-224
static void a_provider_without_what_is_wanted_is_named_with_it(void **state)
{
	struct xds_bootstrap *b =
		parse("{" SERVERS ",'certificate_providers':{'own':{'plugin_name':'file_watcher',"
		      "'config':{'certificate_file':'/c','private_key_file':'/k'}},"
		      "'ca':{'plugin_name':'file_watcher','config':{'ca_certificate_file':'/a'}},"
		      "'map':{'plugin_name':'file_watcher','config':{"
		      "'spiffe_trust_bundle_map_file':'/m'}}}}");
	struct lb_err err = {};
	assert_int_equal(xds_bootstrap_check_provider(b, "own", XDS_CERT_OWN, &err), 0);
	assert_int_equal(xds_bootstrap_check_provider(b, "ca", XDS_CERT_CA, &err), 0);
	assert_int_equal(xds_bootstrap_check_provider(b, "map", XDS_CERT_CA, &err), 0);
	assert_int_equal(xds_bootstrap_check_provider(b, "own", XDS_CERT_CA, &err), -EINVAL);
	assert_string_equal(err.text, "certificate provider \"own\" has no ca_certificate_file");
	assert_int_equal(xds_bootstrap_check_provider(b, "ca", XDS_CERT_OWN, &err), -EINVAL);
	assert_string_equal(err.text, "certificate provider \"ca\" has no certificate_file");
	assert_int_equal(xds_bootstrap_check_provider(b, "x", XDS_CERT_OWN, &err), -EINVAL);
	assert_string_equal(err.text,
		"no certificate provider \"x\" in the bootstrap, as this process last read it");
	xds_bootstrap_free(b);
}

// OPS-328: within a loop that must answer.
static void ops_328_it_is_read_again_from_a_regular_file_alone(void **state)
{
	char folder[] = "/tmp/shunt-bootstrap-XXXXXX", config[64], path[64];
	char *json = json_of("{" SERVERS "}");
	struct xds_bootstrap *b = NULL;
	struct lb_err err = {""};
	assert_non_null(mkdtemp(folder));
	snprintf(config, sizeof(config), "%s/shunt.yaml", folder);
	snprintf(path, sizeof(path), "%s/bootstrap.json", folder);
	assert_int_equal(xds_bootstrap_load_again(config, &b, &err), -EINVAL);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(mkfifo(path, 0600), 0); // of which nobody writes anything
	assert_int_equal(xds_bootstrap_load_again(config, &b, &err), 0);
	assert_null(b);
	unlink(path);
	FILE *f = fopen(path, "w");
	assert_true(f && fputs(json, f) >= 0 && fclose(f) == 0);
	assert_int_equal(xds_bootstrap_load_again(config, &b, &err), 0);
	assert_string_equal(b->servers[0].uri, "s:1");
	xds_bootstrap_free(b);
	setenv("GRPC_XDS_BOOTSTRAP_CONFIG", json, 1);
	assert_int_equal(xds_bootstrap_load_again(config, &b, &err), 0);
	unsetenv("GRPC_XDS_BOOTSTRAP_CONFIG");
	assert_null(b);
	unlink(path);
	rmdir(folder);
	free(json);
}

static void tp2_b01_parameters_are_of_their_authority_alone(void **state)
{
	struct xds_bootstrap *b = parse("{" SERVERS ",'dynamic_parameters':{'v':'v1','env':'prod'},"
					"'node':{'metadata':{'zone':'z'}},'authorities':{"
					"'a':{'dynamic_parameters':{'env':''}},'b':{}}}");
	char text[64];
	xds_params_print(b->params, text, sizeof(text));
	assert_string_equal(text, "{env=prod, v=v1}");
	xds_params_print(b->authorities[0].params, text, sizeof(text));
	assert_string_equal(text, "{env=\"\"}");
	assert_null(b->authorities[1].params); // nothing is inherited
	xds_bootstrap_free(b);
}

static void tp2_b03_no_parameters_and_empty_ones_are_the_same(void **state)
{
	struct xds_bootstrap *b = parse("{" SERVERS ",'dynamic_parameters':{}}");
	assert_null(b->params);
	xds_bootstrap_free(b);
}

static void tp2_b02_metadata_becomes_parameters_if_asked_for(void **state)
{
#define TRANSLATED(x)                                                                              \
	"{" SERVERS ",'node':{'metadata':{'env':'test','zone':'z','n':1,'o':{}}},"                 \
	"'dynamic_parameters':{'env':'prod'},'node_metadata_as_dynamic_parameters':" x ","         \
	"'authorities':{'a':{'dynamic_parameters':{'v':'1'}}}}"
	struct xds_bootstrap *b = parse(TRANSLATED("true"));
	char text[64];
	xds_params_print(b->params, text, sizeof(text)); // explicit ones win; others are no texts
	assert_string_equal(text, "{env=prod, zone=z}");
	xds_params_print(b->authorities[0].params, text, sizeof(text));
	assert_string_equal(text, "{env=test, v=1, zone=z}");
	assert_non_null(b->metadata); // it is still sent
	xds_bootstrap_free(b);
	b = parse(TRANSLATED("false"));
	xds_params_print(b->params, text, sizeof(text));
	assert_string_equal(text, "{env=prod}");
	xds_bootstrap_free(b);
}

static void fe_07_servers_are_the_same_by_uri_credentials_and_features(void **state)
{
#define ONE(x) "{'server_uri':'s','channel_creds':[{'type':'tls','config':{" x "}}]}"
	struct xds_bootstrap *b = parse("{'xds_servers':[" ONE("") "," ONE(
		"'new':1") "," SERVER
			   "," ONE("'ca_certificate_file':'/ca'") "," ONE(
				   "'refresh_interval':'1s'") ","
							      "{'server_uri':'s','channel_creds':[{"
							      "'type':'tls'}],"
							      "'server_features':['fail_on_data_"
							      "errors']},"
							      "{'server_uri':'s','channel_creds':[{"
							      "'type':'alien'},{'type':'tls'}],"
							      "'server_features':['xds_v3','alien']"
							      "}]}");
	static const bool same[] = {true, true, false, false, false, false, true};
	assert_int_equal(b->n_servers, 7);
	for (uint32_t i = 0; i < b->n_servers; i++)
		assert_int_equal(xds_server_conf_eq(&b->servers[0], &b->servers[i]), same[i]);
	xds_bootstrap_free(b);
}

static void write_bootstrap(const char *path, const char *node)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	char *json = json_of("{" SERVERS ",'node':{'id':'%s'}}");
	fprintf(f, json, node);
	fclose(f);
	free(json);
}

static void assert_node(const char *config, const char *id)
{
	struct xds_bootstrap *b = NULL;
	struct lb_err err = {""};
	if (xds_bootstrap_load(config, &b, &err))
		fail_msg("%s: %s", id, err.text);
	assert_string_equal(b->node_id, id);
	xds_bootstrap_free(b);
}

static void assert_no_bootstrap(const char *config, const char *why)
{
	struct xds_bootstrap *b = NULL;
	struct lb_err err = {""};
	assert_int_equal(xds_bootstrap_load(config, &b, &err), -EINVAL);
	if (!strstr(err.text, why))
		fail_msg("%s: %s", why, err.text);
}

static void bt_01_a_named_file_comes_before_inline_text_and_that_before_the_file_beside(
	void **state)
{
	char folder[] = "/tmp/shunt-bootstrap-XXXXXX", config[64], beside[64], path[64];
	assert_non_null(mkdtemp(folder));
	snprintf(config, sizeof(config), "%s/shunt.yaml", folder);
	snprintf(beside, sizeof(beside), "%s/bootstrap.json", folder);
	snprintf(path, sizeof(path), "%s/named", folder);
	write_bootstrap(path, "from file");
	write_bootstrap(beside, "beside");
	char *json = json_of("{" SERVERS ",'node':{'id':'inline'}}");
	setenv("GRPC_XDS_BOOTSTRAP", path, 1);
	setenv("GRPC_XDS_BOOTSTRAP_CONFIG", json, 1);
	free(json);
	assert_node(config, "from file");
	unlink(path);
	assert_no_bootstrap(config, "named: No such file");
	setenv("GRPC_XDS_BOOTSTRAP", folder, 1);
	assert_no_bootstrap(config, folder);
	unsetenv("GRPC_XDS_BOOTSTRAP");
	assert_node(config, "inline");
	unsetenv("GRPC_XDS_BOOTSTRAP_CONFIG");
	assert_node(config, "beside");

	unlink(beside);
	assert_no_bootstrap(config, "/bootstrap.json: No such file");
	assert_no_bootstrap(config, "GRPC_XDS_BOOTSTRAP");
	assert_no_bootstrap("shunt.yaml", "bootstrap bootstrap.json:");
	rmdir(folder);
}

// FE-06
static void fe_05_targets_become_listener_names_by_the_template(void **state)
{
	struct xds_bootstrap *b =
		parse("{" SERVERS ",'client_default_listener_resource_name_template':'pre/%s',"
		      "'authorities':{'auth':{},"
		      "'wrong':{'client_listener_resource_name_template':'xdstp://wrong/x/%s'},"
		      "'canon':{'client_listener_resource_name_template':"
		      "'xdstp://canon/envoy.config.listener.v3.Listener/x?b=1&a=%s'}}}");
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
		{"xds://canon/w%eb",
			"xdstp://canon/envoy.config.listener.v3.Listener/x?a=w%25eb&b=1"},
		{"xds://wrong/web", NULL}, // FE-02: a name of another type
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

// A36-36
static void a_place_stands_for_the_listener_of_the_servers_template(void **state)
{
#define TEMPLATE(t) "{" SERVERS ",'server_listener_resource_name_template':'" t "'}"
	static const struct {
		const char *bootstrap, *listener, *ip, *name; // NULL = refused
	} rows[] = {
		{TEMPLATE("grpc/server?a=%s"), NULL, "0.0.0.0", "grpc/server?a=0.0.0.0:80"},
		{TEMPLATE("grpc/server?a=%s"), NULL, "::", "grpc/server?a=[::]:80"},
		{TEMPLATE("%s and %s"), NULL, "10.0.0.1", "10.0.0.1:80 and 10.0.0.1:80"},
		{TEMPLATE("fixed"), NULL, "10.0.0.1", "fixed"},
		{TEMPLATE("%s"), "mine", "10.0.0.1", "mine"},
		{"{" SERVERS "}", "mine", "10.0.0.1", "mine"},
		{"{" SERVERS "}", NULL, "10.0.0.1", NULL},
		{TEMPLATE("xdstp://x/no.such.Type/%s"), NULL, "10.0.0.1", NULL},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xds_bootstrap *b = parse(rows[i].bootstrap);
		struct lb_err err = {""};
		struct ip_port place = {.port = 80};
		char *name = NULL;
		assert_true(ip_parse(rows[i].ip, &place.ip));
		int rc = xds_bootstrap_server_listener_name(
			b, rows[i].listener, &place, &name, &err);
		assert_int_equal(rc, rows[i].name ? 0 : -EINVAL);
		if (rows[i].name)
			assert_string_equal(name, rows[i].name);
		else
			assert_true(*err.text);
		free(name);
		xds_bootstrap_free(b);
	}
}

RUN_SUITE("xds/bootstrap", cmocka_unit_test(bt_10_plain_bootstrap_has_defaults),
	cmocka_unit_test(a_place_stands_for_the_listener_of_the_servers_template),
	cmocka_unit_test(bt_02_everything_known_is_read_and_the_rest_ignored),
	cmocka_unit_test(bt_05_empty_tls_config_is_legal),
	cmocka_unit_test(bt_11_call_creds_are_skipped),
	cmocka_unit_test(certificate_providers_have_their_files),
	cmocka_unit_test(files_are_read_once_a_second_at_most),
	cmocka_unit_test(a_provider_without_what_is_wanted_is_named_with_it),
	cmocka_unit_test(ops_328_it_is_read_again_from_a_regular_file_alone),
	cmocka_unit_test(tp2_b01_parameters_are_of_their_authority_alone),
	cmocka_unit_test(tp2_b03_no_parameters_and_empty_ones_are_the_same),
	cmocka_unit_test(tp2_b02_metadata_becomes_parameters_if_asked_for),
	cmocka_unit_test(fe_07_servers_are_the_same_by_uri_credentials_and_features),
	cmocka_unit_test(
		bt_01_a_named_file_comes_before_inline_text_and_that_before_the_file_beside),
	cmocka_unit_test(fe_05_targets_become_listener_names_by_the_template))
