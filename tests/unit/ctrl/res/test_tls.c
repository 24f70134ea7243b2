// SPDX-License-Identifier: Apache-2.0
// TLS contexts of clusters and listeners: what is read, and what is refused as gRPC refuses it
// (TLS-120 to TLS-129). A cluster that asks for TLS is refused in the end, whatever it has: its row
// is "good" if nothing else is said of it.
#include "ctrl/res/cluster.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/tls.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "envoy/config/cluster/v3/cluster.pb-c.h"
#include "envoy/config/listener/v3/listener.pb-c.h"
#include "tests/support/check.h"
#include "tests/support/res_json.h"
#include "tests/unit/ctrl/res/cluster_json.h"
#include "tests/unit/ctrl/res/rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TLS_TYPE "envoy.extensions.transport_sockets.tls.v3."
#define UP(fields)                                                                                 \
	",'transportSocket':{'typedConfig':" ANY(TLS_TYPE "UpstreamTlsContext", fields) "}"
#define CLUSTER_TLS(fields) "{'name':'c'," FROM_EDS UP(fields) "}"
#define COMMON(fields) ",'commonTlsContext':{" fields "}"
#define VALIDATION(fields) COMMON("'validationContext':{" fields "}")
#define INSTANCE(name) "{'instanceName':'" name "','certificateName':'x'}"
#define CA "'caCertificateProviderInstance':" INSTANCE("p")
#define TRUST(more) CLUSTER_TLS(VALIDATION(CA more))
#define OWN "'tlsCertificateProviderInstance':" INSTANCE("p")

#define GOOD NULL
#define TS "=transport_socket: "
#define CTC TS "common_tls_context: "
#define VC CTC "validation_context: "
#define NO "is not supported"
#define NO_PROVIDER(name) "instance_name: no certificate provider \"" name "\" in the bootstrap"

static void what_clusters_trust(void **state)
{
	static const struct res_row rows[] = {
		{"TLS-122 no context", CLUSTER_TLS(""), CTC "no CA certificates configured"},
		{"TLS-122 empty context", CLUSTER_TLS(COMMON("")),
			CTC "no CA certificates configured"},
		{"TLS-122 no CA", CLUSTER_TLS(VALIDATION("")), CTC "no CA certificates configured"},
		{"TLS-122 a CA of a file alone",
			CLUSTER_TLS(VALIDATION("'trustedCa':{'filename':'/ca'}")),
			CTC "no CA certificates configured"},
		{"TLS-122 provider", TRUST(""), GOOD},
		{"TLS-122 provider beside a file", TRUST(",'trustedCa':{'filename':'/ca'}"), GOOD},
		{"TLS-121 unknown provider",
			CLUSTER_TLS(VALIDATION("'caCertificateProviderInstance':" INSTANCE("q"))),
			VC "ca_certificate_provider_instance: " NO_PROVIDER("q")},
		{"TLS-121 provider without a name",
			CLUSTER_TLS(VALIDATION("'caCertificateProviderInstance':{}")),
			VC "ca_certificate_provider_instance: " NO_PROVIDER("")},
		{"TLS-124 system roots", CLUSTER_TLS(VALIDATION("'systemRootCerts':{}")), GOOD,
			"transport_socket: system_root_certs without names to match: any "
			"certificate of a public authority is accepted"},
		{"TLS-124 provider goes before system roots", TRUST(",'systemRootCerts':{}"), GOOD},
		{"TLS-122 combined",
			CLUSTER_TLS(COMMON("'combinedValidationContext':{"
					   "'defaultValidationContext':{" CA "}}")),
			GOOD},
		{"TLS-122 combined, but nothing in it",
			CLUSTER_TLS(COMMON("'combinedValidationContext':{}")),
			CTC "no CA certificates configured"},
		{"TLS-121 combined, unknown provider",
			CLUSTER_TLS(
				COMMON("'combinedValidationContext':{'defaultValidationContext':{"
				       "'caCertificateProviderInstance':" INSTANCE("q") "}}")),
			CTC "combined_validation_context: default_validation_context: "
			    "ca_certificate_provider_instance: " NO_PROVIDER("q")},
		{"TLS-126 combined, the old field",
			CLUSTER_TLS(
				COMMON("'combinedValidationContext':{"
				       "'validationContextCertificateProviderInstance':" INSTANCE(
					       "p") "}")),
			GOOD},
		{"TLS-126 combined, the old field, unknown",
			CLUSTER_TLS(
				COMMON("'combinedValidationContext':{"
				       "'validationContextCertificateProviderInstance':" INSTANCE(
					       "q") "}")),
			CTC "combined_validation_context: "
			    "validation_context_certificate_provider_instance: " NO_PROVIDER("q")},
		{"TLS-123 SDS",
			CLUSTER_TLS(COMMON("'validationContextSdsSecretConfig':{'name':'x'}")),
			CTC "validation_context_sds_secret_config: " NO},
	};
	RUN_ROWS(&res_type_cluster, rows);
}

static void what_clusters_must_not_ask_for(void **state)
{
	static const struct res_row rows[] = {
		{"TLS-123 spki", TRUST(",'verifyCertificateSpki':['x']"),
			VC "verify_certificate_spki: " NO},
		{"TLS-123 hash", TRUST(",'verifyCertificateHash':['x']"),
			VC "verify_certificate_hash: " NO},
		{"TLS-123 timestamps", TRUST(",'requireSignedCertificateTimestamp':true"),
			VC "require_signed_certificate_timestamp: " NO},
		{"TLS-123 no timestamps", TRUST(",'requireSignedCertificateTimestamp':false"),
			GOOD},
		{"TLS-123 CRL", TRUST(",'crl':{'filename':'/x'}"), VC "crl: " NO},
		{"TLS-123 validator", TRUST(",'customValidatorConfig':{'name':'x'}"),
			VC "custom_validator_config: " NO},
		{"TLS-123 parameters", CLUSTER_TLS(COMMON("'tlsParams':{}")),
			CTC "tls_params: " NO},
		{"TLS-123 handshaker", CLUSTER_TLS(COMMON("'customHandshaker':{'name':'x'}")),
			CTC "custom_handshaker: " NO},
		{"TLS-123 certificates",
			CLUSTER_TLS(COMMON("'validationContext':{" CA "},'tlsCertificates':[{}]")),
			CTC "tls_certificates: " NO},
		{"TLS-123 certificates by SDS",
			CLUSTER_TLS(COMMON("'validationContext':{" CA
					   "},'tlsCertificateSdsSecretConfigs':[{'name':'x'}]")),
			CTC "tls_certificate_sds_secret_configs: " NO},
		{"TLS-123 certificates beside a provider's",
			CLUSTER_TLS(COMMON(
				"'validationContext':{" CA "}," OWN ",'tlsCertificates':[{}]")),
			GOOD},
		{"TLS-121 our certificate",
			CLUSTER_TLS(COMMON("'validationContext':{" CA "}," OWN)), GOOD},
		{"TLS-121 our certificate of nobody",
			CLUSTER_TLS(COMMON("'validationContext':{" CA
					   "},'tlsCertificateProviderInstance':" INSTANCE("q"))),
			CTC "tls_certificate_provider_instance: " NO_PROVIDER("q")},
		{"TLS-126 our certificate by the old field",
			CLUSTER_TLS(COMMON(
				"'validationContext':{" CA
				"},'tlsCertificateCertificateProviderInstance':" INSTANCE("p"))),
			GOOD},
		{"TLS-126 our certificate by the old field, unknown",
			CLUSTER_TLS(COMMON(
				"'validationContext':{" CA
				"},'tlsCertificateCertificateProviderInstance':" INSTANCE("q"))),
			CTC "tls_certificate_certificate_provider_instance: " NO_PROVIDER("q")},
		{"TLS-127 ALPN and renegotiation are ignored",
			CLUSTER_TLS(COMMON("'validationContext':{" CA
					   "},'alpnProtocols':['x']") ",'allowRenegotiation':true"),
			GOOD},
	};
	RUN_ROWS(&res_type_cluster, rows);
}

static void what_names_servers_may_have(void **state)
{
#define SANS(list) TRUST(",'matchSubjectAltNames':[" list "]")
#define TYPED(list) TRUST(",'matchTypedSubjectAltNames':[" list "]")
#define SAN(i) VC "match_subject_alt_names[" #i "]: "
#define TYPED_SAN(i) VC "match_typed_subject_alt_names[" #i "]: "
	static const struct res_row rows[] = {
		{"TLS-125 all kinds",
			SANS("{'exact':'a'},{'prefix':'a'},{'suffix':'a'},"
			     "{'contains':'a','ignoreCase':true},{'safeRegex':{'regex':'a.*'}}"),
			GOOD},
		{"TLS-125 exact may be empty", SANS("{'exact':''}"), GOOD},
		{"TLS-125 no pattern", SANS("{'exact':'a'},{}"), SAN(1) "no pattern"},
		{"TLS-125 empty prefix", SANS("{'prefix':''}"), SAN(0) "prefix: empty"},
		{"TLS-125 empty suffix", SANS("{'suffix':''}"), SAN(0) "suffix: empty"},
		{"TLS-125 empty part", SANS("{'contains':''}"), SAN(0) "contains: empty"},
		{"TLS-125 bad pattern", SANS("{'safeRegex':{'regex':'('}}"), "safe_regex: "},
		{"TLS-125 pattern without case",
			SANS("{'safeRegex':{'regex':'a'},'ignoreCase':true}"),
			SAN(0) "ignore_case: not with safe_regex"},
		{"TLS-125 custom", SANS("{'custom':{'name':'x'}}"), SAN(0) "custom: not supported"},
		{"TLS-125 typed",
			TYPED("{'sanType':'DNS','matcher':{'exact':'a'}},"
			      "{'sanType':'URI','matcher':{'prefix':'spiffe://a/'}},"
			      "{'sanType':'EMAIL','matcher':{'exact':'a'}},"
			      "{'sanType':'IP_ADDRESS','matcher':{'exact':'10.0.0.1'}}"),
			GOOD},
		{"TLS-125 typed of no type", TYPED("{'matcher':{'exact':'a'}}"),
			TYPED_SAN(0) "san_type: SAN_TYPE_UNSPECIFIED is not supported"},
		{"TLS-125 typed of another name",
			TYPED("{'sanType':'OTHER_NAME','oid':'1.2','matcher':"
			      "{'exact':'a'}}"),
			TYPED_SAN(0) "san_type: OTHER_NAME is not supported"},
		{"TLS-125 typed without matcher", TYPED("{'sanType':'DNS'}"),
			TYPED_SAN(0) "no matcher"},
		{"TLS-125 typed, empty prefix", TYPED("{'sanType':'DNS','matcher':{'prefix':''}}"),
			TYPED_SAN(0) "prefix: empty"},
		{"TLS-125 typed ones hide the others",
			TRUST(",'matchTypedSubjectAltNames':["
			      "{'sanType':'DNS','matcher':{'exact':'a'}}],'matchSubjectAltNames':[{"
			      "}]"),
			GOOD},
	};
	RUN_ROWS(&res_type_cluster, rows);
}

static void tls_129_sni_has_a_length(void **state)
{
	char name[300], json[1024];
	for (size_t len = 255; len <= 256; len++) {
		memset(name, 'a', len);
		name[len] = '\0';
		snprintf(json, sizeof(json), CLUSTER_TLS(VALIDATION(CA) ",'sni':'%s'"), name);
		const struct res_row row = {
			"TLS-129", json, len > 255 ? TS "sni: is longer than 255 bytes" : GOOD};
		res_rows_run(&res_type_cluster, &row, 1);
	}
}

#define CHAIN(fields)                                                                              \
	"{" CHAIN_FILTERS                                                                          \
	",'transportSocket':{'typedConfig':" ANY(TLS_TYPE "DownstreamTlsContext", fields) "}}"
#define LISTENER_TLS(fields)                                                                       \
	SOCKET_LISTENER(",'filterChains':[{" CHAIN_FILTERS                                         \
			",'filterChainMatch':{'sourcePorts':[1]}}," CHAIN(fields) "]")
#define FC "=filter_chains[1]: transport_socket: "
#define NO_CLIENT_CA "common_tls_context: validation context: no ca_certificate_provider_instance"

static void what_listeners_have(void **state)
{
	static const struct res_row rows[] = {
		{"TLS-128 a certificate", LISTENER_TLS(COMMON(OWN)), NULL},
		{"TLS-128 and CAs", LISTENER_TLS(COMMON(OWN ",'validationContext':{" CA "}")),
			NULL},
		{"TLS-128 and clients must have one",
			LISTENER_TLS(COMMON(OWN ",'validationContext':{" CA
						"}") ",'requireClientCertificate':true"),
			NULL},
		{"TLS-128 clients must have one, of nobody",
			LISTENER_TLS(COMMON(OWN) ",'requireClientCertificate':true"),
			FC "require_client_certificate: no certificate provider for validation"},
		{"TLS-128 and validates them by nobody's CAs",
			LISTENER_TLS(COMMON(OWN ",'validationContext':{}")), FC NO_CLIENT_CA},
		{"TLS-128 and by a file's, which it cannot",
			LISTENER_TLS(COMMON(
				OWN ",'validationContext':{'trustedCa':{'filename':'/ca'}}")),
			FC NO_CLIENT_CA},
		{"TLS-128 likewise, combined",
			LISTENER_TLS(COMMON(OWN
				",'combinedValidationContext':{'defaultValidationContext':{}}")),
			FC NO_CLIENT_CA},
		{"TLS-128 by the older field's, combined",
			LISTENER_TLS(COMMON(
				OWN ",'combinedValidationContext':{'defaultValidationContext':{},"
				    "'validationContextCertificateProviderInstance':" INSTANCE(
					    "p") "}")),
			NULL},
		{"TLS-128 combined of nothing",
			LISTENER_TLS(COMMON(OWN ",'combinedValidationContext':{}")), NULL},
		{"TLS-128 they need not",
			LISTENER_TLS(COMMON(OWN) ",'requireClientCertificate':false"), NULL},
		{"TLS-128 no context", LISTENER_TLS(""),
			FC "common_tls_context: no tls_certificate_provider_instance"},
		{"TLS-128 no certificate", LISTENER_TLS(VALIDATION(CA)),
			FC "common_tls_context: no tls_certificate_provider_instance"},
		{"TLS-121 a certificate of nobody",
			LISTENER_TLS(COMMON("'tlsCertificateProviderInstance':" INSTANCE("q"))),
			FC
			"common_tls_context: tls_certificate_provider_instance: " NO_PROVIDER("q")},
		{"TLS-128 system roots",
			LISTENER_TLS(COMMON(OWN ",'validationContext':{'systemRootCerts':{}}")),
			FC "common_tls_context: system_root_certs: not for servers"},
		{"TLS-128 names of clients",
			LISTENER_TLS(COMMON(OWN ",'validationContext':{" CA
						",'matchSubjectAltNames':[{'exact':'a'}]}")),
			FC "common_tls_context: match_subject_alt_names: not for servers"},
		{"TLS-128 SNI", LISTENER_TLS(COMMON(OWN) ",'requireSni':true"),
			FC "require_sni: " NO},
		{"TLS-128 no SNI", LISTENER_TLS(COMMON(OWN) ",'requireSni':false"), NULL},
		{"TLS-128 stapling", LISTENER_TLS(COMMON(OWN) ",'ocspStaplePolicy':'MUST_STAPLE'"),
			FC "ocsp_staple_policy: " NO},
		{"TLS-128 lenient stapling",
			LISTENER_TLS(COMMON(OWN) ",'ocspStaplePolicy':'LENIENT_STAPLING'"), NULL},
		{"TLS-128 a context for clusters",
			SOCKET_LISTENER(",'filterChains':[{" CHAIN_FILTERS
					",'transportSocket':{'typedConfig':" ANY(
						TLS_TYPE "UpstreamTlsContext", "") "}}]"),
			"=filter_chains[0]: transport_socket: \"" URL TLS_TYPE
			"UpstreamTlsContext\" is not supported"},
		{"TLS-128 no config",
			SOCKET_LISTENER(
				",'filterChains':[{" CHAIN_FILTERS ",'transportSocket':{}}]"),
			"=filter_chains[0]: transport_socket: no typed_config"},
		{"TLS-128 of the default chain",
			SOCKET_LISTENER(",'defaultFilterChain':" CHAIN("")),
			"=default_filter_chain: transport_socket: common_tls_context: no "
			"tls_certificate_provider_instance"},
	};
	RUN_ROWS(&res_type_listener, rows);
}

// Content

typedef int (*read_fn)(struct res_reader *, const struct Envoy__Config__Core__V3__TransportSocket *,
	const struct res_tls **);

// A context that is read, with its reader; n_warnings of it.
static const struct res_tls *read_context(struct lb_arena *arena,
	const struct Envoy__Config__Core__V3__TransportSocket *s, read_fn read,
	uint32_t *n_warnings)
{
	struct lb_err err = {""};
	struct res_reader rd = {.arena = arena, .err = &err, .bootstrap = &res_rows_bootstrap};
	const struct res_tls *tls;
	if (read(&rd, s, &tls))
		fail_msg("%s", err.text);
	*n_warnings = rd.n_warnings;
	return tls;
}

static void the_context_of_a_cluster_is_kept_whole(void **state)
{
	size_t len;
	uint32_t n_warnings;
	struct lb_err err = {""};
	struct lb_arena arena = {0};
	uint8_t *bytes = res_bytes_from_json(&res_type_cluster,
		CLUSTER_TLS(COMMON(
			"'validationContext':{" CA
			",'matchTypedSubjectAltNames':[{'sanType':'URI','matcher':"
			"{'prefix':'spiffe://a/','ignoreCase':true}}]}," OWN) ",'sni':'s.example','"
									      "autoHostSni':true,'"
									      "autoSniSanValidation"
									      "':true"),
		&len);
	Envoy__Config__Cluster__V3__Cluster *m =
		proto_unpack(&envoy__config__cluster__v3__cluster__descriptor, bytes, len, &err);
	assert_non_null(m);
	const struct res_tls *t =
		read_context(&arena, m->transport_socket, res_tls_read_upstream, &n_warnings);
	proto_free(m);
	free(bytes);
	assert_string_equal(t->identity, "p");
	assert_string_equal(t->ca, "p");
	assert_false(t->system_roots);
	assert_string_equal(t->sni, "s.example");
	assert_true(t->auto_host_sni);
	assert_true(t->auto_sni_san_validation);
	assert_int_equal(t->max_sessions, RES_TLS_SESSIONS);
	assert_int_equal(t->n_sans, 1);
	assert_int_equal(t->sans[0].kinds, LB_SAN_URI);
	assert_int_equal(t->sans[0].match, LB_SAN_PREFIX);
	assert_true(t->sans[0].ignore_case);
	assert_true(str_eq(t->sans[0].text, STR("spiffe://a/")));
	assert_int_equal(n_warnings, 0);
	lb_arena_fini(&arena);
}

static uint32_t max_sessions(const char *more)
{
	size_t len;
	uint32_t n_warnings;
	struct lb_err err = {""};
	struct lb_arena arena = {0};
	char json[1024];
	snprintf(json, sizeof(json), CLUSTER_TLS(VALIDATION(CA) "%s"), more);
	uint8_t *bytes = res_bytes_from_json(&res_type_cluster, json, &len);
	Envoy__Config__Cluster__V3__Cluster *m =
		proto_unpack(&envoy__config__cluster__v3__cluster__descriptor, bytes, len, &err);
	assert_non_null(m);
	uint32_t n = read_context(&arena, m->transport_socket, res_tls_read_upstream, &n_warnings)
	                     ->max_sessions;
	proto_free(m);
	free(bytes);
	lb_arena_fini(&arena);
	return n;
}

static void tls_235_a_cluster_says_how_many_sessions_are_kept(void **state)
{
	assert_int_equal(max_sessions(""), 16);
	assert_int_equal(max_sessions(",'maxSessionKeys':0"), 0);
	assert_int_equal(max_sessions(",'maxSessionKeys':1"), 1);
	assert_int_equal(max_sessions(",'maxSessionKeys':4294967295"), RES_TLS_MAX_SESSIONS);
}

static uint32_t n_warnings_of(const char *json)
{
	size_t len;
	uint32_t n_warnings;
	struct lb_err err = {""};
	struct lb_arena arena = {0};
	uint8_t *bytes = res_bytes_from_json(&res_type_cluster, json, &len);
	Envoy__Config__Cluster__V3__Cluster *m =
		proto_unpack(&envoy__config__cluster__v3__cluster__descriptor, bytes, len, &err);
	assert_non_null(m);
	assert_true(read_context(&arena, m->transport_socket, res_tls_read_upstream, &n_warnings)
			    ->system_roots);
	proto_free(m);
	free(bytes);
	lb_arena_fini(&arena);
	return n_warnings;
}

static void tls_124_system_roots_without_names_are_warned_of(void **state)
{
#define ROOTS(more) VALIDATION("'systemRootCerts':{}" more)
	assert_int_equal(n_warnings_of(CLUSTER_TLS(ROOTS(""))), 1);
	assert_int_equal(
		n_warnings_of(CLUSTER_TLS(ROOTS(",'matchSubjectAltNames':[{'exact':'a'}]"))), 0);
	assert_int_equal(n_warnings_of(CLUSTER_TLS(ROOTS("") ",'autoSniSanValidation':true")), 0);
}

RUN_SUITE("res/tls", cmocka_unit_test(what_clusters_trust),
	cmocka_unit_test(what_clusters_must_not_ask_for),
	cmocka_unit_test(what_names_servers_may_have), cmocka_unit_test(tls_129_sni_has_a_length),
	cmocka_unit_test(what_listeners_have),
	cmocka_unit_test(the_context_of_a_cluster_is_kept_whole),
	cmocka_unit_test(tls_235_a_cluster_says_how_many_sessions_are_kept),
	cmocka_unit_test(tls_124_system_roots_without_names_are_warned_of))
