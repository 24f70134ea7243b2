// SPDX-License-Identifier: Apache-2.0
// Bad bootstrap files: each is refused with a text that names the file, the field and what is wrong
// with it (BT-*). JSON's own errors have their place in the file instead of a field.
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "tests/support/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SERVER "{'server_uri':'s','channel_creds':[{'type':'insecure'}]}"
#define SERVERS(x) "{'xds_servers':[" x "]}"
#define SERVER_WITH(x) SERVERS("{'server_uri':'s','channel_creds':[{'type':'insecure'}]," x "}")
#define CREDS(x) SERVERS("{'server_uri':'s','channel_creds':[" x "]}")
#define TLS(x) CREDS("{'type':'tls','config':{" x "}}")
#define TOP(x) "{'xds_servers':[" SERVER "]," x "}"
#define NODE(x) TOP("'node':{" x "}")
#define LOCALITY(x) NODE("'locality':{" x "}")
#define AUTHORITY(x) TOP("'authorities':{'a':{" x "}}")
#define AUTHORITY_SERVER(x) AUTHORITY("'xds_servers':[" x "]")
#define AUTHORITY_TLS(x)                                                                           \
	AUTHORITY_SERVER("{'server_uri':'s','channel_creds':[{'type':'tls','config':{" x "}}]}")
#define TEMPLATE "client_listener_resource_name_template"

#define CRED0 "xds_servers[0].channel_creds[0]"
#define TLS0 CRED0 ".config"
#define NO_CREDS                                                                                   \
	"xds_servers[0].channel_creds: no entry of a supported type (insecure, google_default, "   \
	"tls)"
#define BOTH "certificate_file and private_key_file must be set both or not at all"
#define DURATION "refresh_interval: must be a duration like \"600s\""
#define PROVIDER(x) TOP("'certificate_providers':{'p':" x "}")
#define FILES(x) PROVIDER("{'plugin_name':'file_watcher','config':{" x "}}")
#define PROV "certificate_providers[\"p\"]"
#define AUTH "authorities[\"a\"]"

struct row {
	const char *json; // ' stands for "
	const char *why; // after "bootstrap b.json: "
};

static void check_rows(const struct row *rows, size_t n, bool exact)
{
	static const char PREFIX[] = "bootstrap b.json: ";
	for (size_t i = 0; i < n; i++) {
		char *json = strdup(rows[i].json);
		assert_non_null(json);
		for (char *p = json; *p; p++)
			if (*p == '\'')
				*p = '"';
		struct xds_bootstrap *b = NULL;
		struct lb_err err = {""};
		int rc = xds_bootstrap_parse(json, strlen(json), "b.json", &b, &err);
		free(json);
		if (rc != -EINVAL || b)
			fail_msg("%s: returned %d", rows[i].json, rc);
		size_t len = strlen(rows[i].why) + (exact ? 1 : 0);
		if (strncmp(err.text, PREFIX, strlen(PREFIX)) != 0 ||
			strncmp(err.text + strlen(PREFIX), rows[i].why, len) != 0)
			fail_msg("%s: \"%s\"", rows[i].json, err.text);
	}
}
#define CHECK_ROWS(...)                                                                            \
	static const struct row rows[] = {__VA_ARGS__};                                            \
	check_rows(rows, sizeof(rows) / sizeof(rows[0]), true)

// clang-format off
static void bt_01_text_that_is_no_json_is_refused_with_its_place(void **state)
{
	static const struct row rows[] = {
		{"", "line 1 column "},
		{" ", "line 1 column "},
		{"{", "line 1 column 1: "},
		{"{\n'a':\n}", "line 3 column 1: "},
		{"{'a':1,}", "line 1 column 8: "},
		{"{'a':1 'b':2}", "line 1 column "},
		{"{\n\n'a':nul}", "line 3 column "},
		{"{'xds_servers':[", "line 1 column "},
		{SERVERS(SERVER) "x", "line 1 column "},
		{SERVERS(SERVER) "{}", "line 1 column "},
		{"{'a':1,'a':2}", "line 1 column "},
		{TOP("'node':{},'node':{}"), "line 1 column "},
		{TOP("'authorities':{'a':{},'a':{}}"), "line 1 column "},
		{SERVERS("{'server_uri':'a\\u0000b'}"), "line 1 column "},
		{SERVERS("{'server_uri':'\xff'}"), "line 1 column "},
		{SERVERS("{'server_uri':'\\ud800'}"), "line 1 column "},
		{"// c\n{}", "line 1 column "},
		{"7", "line 1 column "},
		{"'text'", "line 1 column "},
	};
	check_rows(rows, sizeof(rows) / sizeof(rows[0]), false);
}

static void bt_03_servers_are_a_list_of_uris_that_is_not_empty(void **state)
{
	CHECK_ROWS(
		{"[]", "must be a JSON object"},
		{"[{}]", "must be a JSON object"},
		{"{}", "xds_servers: is missing"},
		{"{'XDS_SERVERS':[" SERVER "]}", "xds_servers: is missing"},
		{"{'xds_servers':null}", "xds_servers: must be an array"},
		{"{'xds_servers':{}}", "xds_servers: must be an array"},
		{"{'xds_servers':'s'}", "xds_servers: must be an array"},
		{"{'xds_servers':" SERVER "}", "xds_servers: must be an array"},
		{"{'xds_servers':[]}", "xds_servers: must not be empty"},
		{SERVERS("null"), "xds_servers[0]: must be an object"},
		{SERVERS("7"), "xds_servers[0]: must be an object"},
		{SERVERS("'s'"), "xds_servers[0]: must be an object"},
		{SERVERS("[]"), "xds_servers[0]: must be an object"},
		{SERVERS("{}"), "xds_servers[0].server_uri: must be a non-empty string"},
		{SERVERS("{'server_uri':''}"),
			"xds_servers[0].server_uri: must be a non-empty string"},
		{SERVERS("{'server_uri':7}"), "xds_servers[0].server_uri: must be a string"},
		{SERVERS("{'server_uri':null}"), "xds_servers[0].server_uri: must be a string"},
		{SERVERS("{'server_uri':['s']}"), "xds_servers[0].server_uri: must be a string"},
		{SERVERS(SERVER ",7"), "xds_servers[1]: must be an object"},
		{SERVERS(SERVER ",{}"), "xds_servers[1].server_uri: must be a non-empty string"},
		{SERVERS(SERVER "," SERVER ",{'server_uri':true}"),
			"xds_servers[2].server_uri: must be a string"});
}

static void bt_04_one_kind_of_credentials_must_be_known(void **state)
{
	CHECK_ROWS(
		{SERVERS("{'server_uri':'s'}"), "xds_servers[0].channel_creds: must be an array"},
		{SERVERS("{'server_uri':'s','channel_creds':null}"),
			"xds_servers[0].channel_creds: must be an array"},
		{SERVERS("{'server_uri':'s','channel_creds':'insecure'}"),
			"xds_servers[0].channel_creds: must be an array"},
		{SERVERS("{'server_uri':'s','channel_creds':{'type':'insecure'}}"),
			"xds_servers[0].channel_creds: must be an array"},
		{SERVERS(SERVER ",{'server_uri':'s'}"),
			"xds_servers[1].channel_creds: must be an array"},
		{CREDS(""), NO_CREDS},
		{CREDS("{'type':'alien'}"), NO_CREDS},
		{CREDS("{'type':'alts'},{'type':'xds'}"), NO_CREDS},
		{CREDS("{'type':''}"), NO_CREDS},
		{CREDS("{'type':'TLS'}"), NO_CREDS},
		{CREDS("7"), CRED0 ".type: must be a string"},
		{CREDS("'tls'"), CRED0 ".type: must be a string"},
		{CREDS("null"), CRED0 ".type: must be a string"},
		{CREDS("{}"), CRED0 ".type: must be a string"},
		{CREDS("{'type':7}"), CRED0 ".type: must be a string"},
		{CREDS("{'type':null}"), CRED0 ".type: must be a string"},
		{CREDS("{'config':{}}"), CRED0 ".type: must be a string"},
		{CREDS("{'type':'alien'},{}"),
			"xds_servers[0].channel_creds[1].type: must be a string"});
}

static void bt_05_tls_configuration_is_whole_or_refused(void **state)
{
	CHECK_ROWS(
		{CREDS("{'type':'tls','config':[]}"), TLS0 ": must be an object"},
		{CREDS("{'type':'tls','config':7}"), TLS0 ": must be an object"},
		{CREDS("{'type':'tls','config':null}"), TLS0 ": must be an object"},
		{CREDS("{'type':'tls','config':'/ca'}"), TLS0 ": must be an object"},
		{CREDS("{'type':'x'},{'type':'tls','config':7}"),
			"xds_servers[0].channel_creds[1].config: must be an object"},
		{TLS("'ca_certificate_file':7"), TLS0 ".ca_certificate_file: must be a string"},
		{TLS("'ca_certificate_file':null"), TLS0 ".ca_certificate_file: must be a string"},
		{TLS("'ca_certificate_file':''"), TLS0 ".ca_certificate_file: must not be empty"},
		{TLS("'certificate_file':[],'private_key_file':'/k'"),
			TLS0 ".certificate_file: must be a string"},
		{TLS("'certificate_file':'','private_key_file':'/k'"),
			TLS0 ".certificate_file: must not be empty"},
		{TLS("'certificate_file':'/c','private_key_file':true"),
			TLS0 ".private_key_file: must be a string"},
		{TLS("'certificate_file':'/c','private_key_file':''"),
			TLS0 ".private_key_file: must not be empty"},
		{TLS("'certificate_file':'/c'"), TLS0 ": " BOTH},
		{TLS("'private_key_file':'/k'"), TLS0 ": " BOTH},
		{TLS("'ca_certificate_file':'/ca','private_key_file':'/k'"), TLS0 ": " BOTH},
		{TLS("'spiffe_trust_bundle_map_file':'/m'"),
			TLS0 ".spiffe_trust_bundle_map_file: is not supported"},
		{TLS("'refresh_interval':10"), TLS0 "." DURATION},
		{TLS("'refresh_interval':null"), TLS0 "." DURATION},
		{TLS("'refresh_interval':{'seconds':10}"), TLS0 "." DURATION},
		{TLS("'refresh_interval':''"), TLS0 "." DURATION},
		{TLS("'refresh_interval':'s'"), TLS0 "." DURATION},
		{TLS("'refresh_interval':'10'"), TLS0 "." DURATION},
		{TLS("'refresh_interval':'10m'"), TLS0 "." DURATION},
		{TLS("'refresh_interval':'10ms'"), TLS0 "." DURATION},
		{TLS("'refresh_interval':'10 s'"), TLS0 "." DURATION},
		{TLS("'refresh_interval':'10s '"), TLS0 "." DURATION},
		{TLS("'refresh_interval':' 10s'"), TLS0 "." DURATION},
		{TLS("'refresh_interval':'-1s'"), TLS0 "." DURATION},
		{TLS("'refresh_interval':'+1s'"), TLS0 "." DURATION},
		{TLS("'refresh_interval':'1.s'"), TLS0 "." DURATION},
		{TLS("'refresh_interval':'.5s'"), TLS0 "." DURATION},
		{TLS("'refresh_interval':'1.0000000000s'"), TLS0 "." DURATION},
		{TLS("'refresh_interval':'1e3s'"), TLS0 "." DURATION},
		{TLS("'refresh_interval':'315576000001s'"), TLS0 ".refresh_interval: is too long"},
		{TLS("'refresh_interval':'99999999999999999999s'"),
			TLS0 ".refresh_interval: is too long"});
}

static void bt_06_features_are_a_list(void **state)
{
	CHECK_ROWS(
		{SERVER_WITH("'server_features':{}"),
			"xds_servers[0].server_features: must be an array"},
		{SERVER_WITH("'server_features':'xds_v3'"),
			"xds_servers[0].server_features: must be an array"},
		{SERVER_WITH("'server_features':null"),
			"xds_servers[0].server_features: must be an array"},
		{SERVERS(SERVER ",{'server_uri':'s','channel_creds':[{'type':'insecure'}],"
		         "'server_features':7}"),
			"xds_servers[1].server_features: must be an array"});
}

static void bt_07_the_node_has_texts_and_an_object_of_metadata(void **state)
{
	CHECK_ROWS(
		{TOP("'node':7"), "node: must be an object"},
		{TOP("'node':null"), "node: must be an object"},
		{TOP("'node':[]"), "node: must be an object"},
		{TOP("'node':'me'"), "node: must be an object"},
		{NODE("'id':7"), "node.id: must be a string"},
		{NODE("'id':null"), "node.id: must be a string"},
		{NODE("'id':{}"), "node.id: must be a string"},
		{NODE("'cluster':false"), "node.cluster: must be a string"},
		{NODE("'locality':7"), "node.locality: must be an object"},
		{NODE("'locality':'zone'"), "node.locality: must be an object"},
		{NODE("'locality':null"), "node.locality: must be an object"},
		{LOCALITY("'region':7"), "node.locality.region: must be a string"},
		{LOCALITY("'zone':[]"), "node.locality.zone: must be a string"},
		{LOCALITY("'sub_zone':null"), "node.locality.sub_zone: must be a string"},
		{NODE("'metadata':[]"), "node.metadata: must be an object"},
		{NODE("'metadata':null"), "node.metadata: must be an object"},
		{NODE("'metadata':'x'"), "node.metadata: must be an object"});
}

static void bt_09_authorities_name_their_own_listeners_and_servers(void **state)
{
	CHECK_ROWS(
		{TOP("'authorities':[]"), "authorities: must be an object"},
		{TOP("'authorities':null"), "authorities: must be an object"},
		{TOP("'authorities':'a'"), "authorities: must be an object"},
		{TOP("'authorities':{'a':7}"), AUTH ": must be an object"},
		{TOP("'authorities':{'a':null}"), AUTH ": must be an object"},
		{TOP("'authorities':{'a':[" SERVER "]}"), AUTH ": must be an object"},
		{TOP("'authorities':{'':7}"), "authorities[\"\"]: must be an object"},
		{TOP("'authorities':{'a':{},'b':7}"), "authorities[\"b\"]: must be an object"},
		{AUTHORITY("'" TEMPLATE "':7"), AUTH "." TEMPLATE ": must be a string"},
		{AUTHORITY("'" TEMPLATE "':null"), AUTH "." TEMPLATE ": must be a string"},
		{AUTHORITY("'" TEMPLATE "':''"), AUTH "." TEMPLATE ": must start with xdstp://a/"},
		{AUTHORITY("'" TEMPLATE "':'%s'"),
			AUTH "." TEMPLATE ": must start with xdstp://a/"},
		{AUTHORITY("'" TEMPLATE "':'xdstp://b/%s'"),
			AUTH "." TEMPLATE ": must start with xdstp://a/"},
		{AUTHORITY("'" TEMPLATE "':'xdstp://a%s'"),
			AUTH "." TEMPLATE ": must start with xdstp://a/"},
		{AUTHORITY("'" TEMPLATE "':'xdstp://ab/%s'"),
			AUTH "." TEMPLATE ": must start with xdstp://a/"},
		{TOP("'authorities':{'':{'" TEMPLATE "':'xdstp://a/%s'}}"),
			"authorities[\"\"]." TEMPLATE ": must start with xdstp:///"},
		{AUTHORITY("'xds_servers':{}"), AUTH ".xds_servers: must be an array"},
		{AUTHORITY("'xds_servers':null"), AUTH ".xds_servers: must be an array"},
		{AUTHORITY_SERVER("7"), AUTH ".xds_servers[0]: must be an object"},
		{AUTHORITY_SERVER("{}"),
			AUTH ".xds_servers[0].server_uri: must be a non-empty string"},
		{AUTHORITY_SERVER(SERVER ",{'server_uri':7}"),
			AUTH ".xds_servers[1].server_uri: must be a string"},
		{AUTHORITY_SERVER("{'server_uri':'s'}"),
			AUTH ".xds_servers[0].channel_creds: must be an array"},
		{AUTHORITY_TLS("'certificate_file':'/c'"),
			AUTH ".xds_servers[0].channel_creds[0].config: " BOTH},
		{AUTHORITY_TLS("'refresh_interval':'1'"),
			AUTH ".xds_servers[0].channel_creds[0].config." DURATION},
		{AUTHORITY_SERVER("{'server_uri':'s','channel_creds':[{'type':'insecure'}],"
		                  "'server_features':1}"),
			AUTH ".xds_servers[0].server_features: must be an array"});
}

static void bt_10_templates_of_listener_names_are_texts(void **state)
{
	CHECK_ROWS(
		{TOP("'client_default_listener_resource_name_template':7"),
			"client_default_listener_resource_name_template: must be a string"},
		{TOP("'client_default_listener_resource_name_template':null"),
			"client_default_listener_resource_name_template: must be a string"},
		{TOP("'server_listener_resource_name_template':7"),
			"server_listener_resource_name_template: must be a string"},
		{TOP("'server_listener_resource_name_template':{}"),
			"server_listener_resource_name_template: must be a string"});
}

static void tp2_b01_dynamic_parameters_are_texts(void **state)
{
	CHECK_ROWS(
		{TOP("'dynamic_parameters':7"), "dynamic_parameters: must be an object of strings"},
		{TOP("'dynamic_parameters':null"),
			"dynamic_parameters: must be an object of strings"},
		{TOP("'dynamic_parameters':['env']"),
			"dynamic_parameters: must be an object of strings"},
		{TOP("'dynamic_parameters':{'env':7}"),
			"dynamic_parameters[\"env\"]: must be a string"},
		{TOP("'dynamic_parameters':{'env':null}"),
			"dynamic_parameters[\"env\"]: must be a string"},
		{TOP("'dynamic_parameters':{'env':['prod']}"),
			"dynamic_parameters[\"env\"]: must be a string"},
		{TOP("'dynamic_parameters':{'a':'b','':{}}"),
			"dynamic_parameters[\"\"]: must be a string"},
		{AUTHORITY("'dynamic_parameters':'env=prod'"),
			AUTH ".dynamic_parameters: must be an object of strings"},
		{AUTHORITY("'dynamic_parameters':{'env':true}"),
			AUTH ".dynamic_parameters[\"env\"]: must be a string"});
}

static void tp2_b02_translation_of_metadata_is_on_or_off(void **state)
{
	CHECK_ROWS(
		{TOP("'node_metadata_as_dynamic_parameters':7"),
			"node_metadata_as_dynamic_parameters: must be true or false"},
		{TOP("'node_metadata_as_dynamic_parameters':'true'"),
			"node_metadata_as_dynamic_parameters: must be true or false"},
		{TOP("'node_metadata_as_dynamic_parameters':null"),
			"node_metadata_as_dynamic_parameters: must be true or false"});
}

// TLS-101, TLS-102
static void certificate_providers_are_whole_or_refused(void **state)
{
	CHECK_ROWS(
		{TOP("'certificate_providers':[]"), "certificate_providers: must be an object"},
		{PROVIDER("7"), PROV ": must be an object"},
		{PROVIDER("{}"), PROV ".plugin_name: must be a string"},
		{PROVIDER("{'plugin_name':7}"), PROV ".plugin_name: must be a string"},
		{PROVIDER("{'plugin_name':'mesh_ca','config':{}}"),
			PROV ".plugin_name: \"mesh_ca\" is not supported (file_watcher is)"},
		{PROVIDER("{'plugin_name':'file_watcher'}"),
			PROV ".config: at least one of certificate_file, ca_certificate_file and "
			     "spiffe_trust_bundle_map_file must be set"},
		{PROVIDER("{'plugin_name':'file_watcher','config':7}"),
			PROV ".config: must be an object"},
		{FILES("'certificate_file':'/c'"), PROV ".config: " BOTH},
		{FILES("'ca_certificate_file':'/ca','private_key_file':'/k'"),
			PROV ".config: " BOTH},
		{FILES("'ca_certificate_file':''"),
			PROV ".config.ca_certificate_file: must not be empty"},
		{FILES("'spiffe_trust_bundle_map_file':7"),
			PROV ".config.spiffe_trust_bundle_map_file: must be a string"},
		{FILES("'ca_certificate_file':'/ca','refresh_interval':60"),
			PROV ".config." DURATION});
}
// clang-format on

RUN_SUITE("xds/bootstrap_bad", cmocka_unit_test(certificate_providers_are_whole_or_refused),
	cmocka_unit_test(bt_01_text_that_is_no_json_is_refused_with_its_place),
	cmocka_unit_test(bt_03_servers_are_a_list_of_uris_that_is_not_empty),
	cmocka_unit_test(bt_04_one_kind_of_credentials_must_be_known),
	cmocka_unit_test(bt_05_tls_configuration_is_whole_or_refused),
	cmocka_unit_test(bt_06_features_are_a_list),
	cmocka_unit_test(bt_07_the_node_has_texts_and_an_object_of_metadata),
	cmocka_unit_test(bt_09_authorities_name_their_own_listeners_and_servers),
	cmocka_unit_test(bt_10_templates_of_listener_names_are_texts),
	cmocka_unit_test(tp2_b01_dynamic_parameters_are_texts),
	cmocka_unit_test(tp2_b02_translation_of_metadata_is_on_or_off))
