// SPDX-License-Identifier: Apache-2.0
// Which listeners are accepted and which are refused with what words, filters apart
// (CL-02; A31-*, FLT-10).
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/type.h"
#include "envoy/config/listener/v3/listener.pb-c.h"
#include "proto/wire.h"
#include "tests/support/check.h"
#include "tests/support/res_json.h"
#include "tests/unit/ctrl/res/decode.h"
#include "tests/unit/ctrl/res/json.h"
#include "tests/unit/ctrl/res/rows.h"

#include <stdlib.h>
#include <string.h>

#define NO_ADS "=api_listener: rds: config_source is neither ads nor self"
#define NO_ROUTES "=api_listener: neither rds nor route_config"

static void listeners(void **state)
{
	static const struct res_row rows[] = {
		{"CL-02 rds over ads", ROUTED(RDS)},
		{"CL-02 rds over self",
			ROUTED("'rds':{'configSource':{'self':{}},'routeConfigName':'r'}")},
		{"CL-02 rds without a name", ROUTED("'rds':{'configSource':{'ads':{}}}"),
			"=api_listener: rds: no route_config_name"},
		{"CL-02 rds from a file",
			ROUTED("'rds':{'configSource':{'path':'/x'},'routeConfigName':'r'}"),
			NO_ADS},
		{"CL-02 rds without a source", ROUTED("'rds':{'routeConfigName':'r'}"), NO_ADS},
		{"CL-02 scoped routes", ROUTED("'scopedRoutes':{'name':'s'}"), NO_ROUTES},
		{"CL-02 no routes at all", LISTENER("'httpFilters':[" ROUTER "]"), NO_ROUTES},
		{"CL-02 inline routes", ROUTED("'routeConfig':{'name':'r','virtualHosts':[]}")},
		{"CL-02 bad inline routes", ROUTED("'routeConfig':{'virtualHosts':[{'name':'v'}]}"),
			"=api_listener: route_config: virtual host \"v\": no domains"},
		{"CL-02 something else in api_listener",
			"{'name':'l','apiListener':{'apiListener':" ANY(ROUTER_TYPE, "") "}}",
			"=api_listener: \"" URL ROUTER_TYPE "\" is not an HttpConnectionManager"},
		{"CL-02 empty api_listener", "{'name':'l','apiListener':{}}",
			"=api_listener: empty"},
		{"neither", "{'name':'l'}", "=neither api_listener nor address"},
		{"A31-T01 max_stream_duration",
			ROUTED(RDS ",'commonHttpProtocolOptions':{'maxStreamDuration':'10s'}")},
		{"A28-V08 bad max_stream_duration",
			ROUTED(RDS ",'commonHttpProtocolOptions':{'maxStreamDuration':'-1s'}"),
			"=api_listener: common_http_protocol_options.max_stream_duration: seconds "
			"must be in [0, 315576000000]"},
		{"A31-T06 idle_timeout, request_timeout and the rest are not read",
			ROUTED(RDS ",'commonHttpProtocolOptions':{'idleTimeout':'-1s'},"
				   "'requestTimeout':'-1s'")},
		{"TH-98 stream_idle_timeout", ROUTED(RDS ",'streamIdleTimeout':'300s'")},
		{"TH-98 negative stream_idle_timeout", ROUTED(RDS ",'streamIdleTimeout':'-1s'"),
			"=api_listener: stream_idle_timeout: seconds must be in [0, 315576000000]"},
		{"FLT-10 xff_num_trusted_hops", ROUTED(RDS ",'xffNumTrustedHops':1"),
			"=api_listener: xff_num_trusted_hops: must be 0"},
		{"FLT-10 xff_num_trusted_hops 0", ROUTED(RDS ",'xffNumTrustedHops':0")},
		{"FLT-10 original_ip_detection_extensions",
			ROUTED(RDS ",'originalIpDetectionExtensions':[{'name':'x'}]"),
			"=api_listener: original_ip_detection_extensions: must be empty"},
		{"HX-60 an unknown way with client certificates",
			ROUTED(RDS ",'forwardClientCertDetails':5"),
			"=api_listener: forward_client_cert_details: unknown value 5"},
		{"HX-60 what a certificate tells",
			ROUTED(RDS ",'setCurrentClientCertDetails':{'subject':true,'uri':true}")},
		{"HX-60 what a certificate cannot tell",
			ROUTED(RDS ",'setCurrentClientCertDetails':{'cert':true}"), NULL,
			"set_current_client_cert_details: cert and chain are ignored"},
	};
	RUN_ROWS(&res_type_listener, rows);
}

#define SOCKET_WITH(list)                                                                          \
	SOCKET_LISTENER(",'filterChains':[{" CHAIN_FILTERS "}],'listenerFilters':[" list "]")
#define PROXY_TYPE "envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol"
#define INSPECTOR_TYPE "envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector"
#define INSPECTOR(fields) "{'name':'t','typedConfig':" ANY(INSPECTOR_TYPE, fields) "}"
#define PROXY(fields) "{'name':'p','typedConfig':" ANY(PROXY_TYPE, fields) "}"
#define STRUCT_OF(wrapper, type, fields)                                                           \
	SOCKET_WITH("{'name':'s','typedConfig':" STRUCT_ANY(wrapper, type, fields) "}")

static bool proxy_protocol_of(const char *json)
{
	struct xds_res *r = res_decode(&res_type_listener, json);
	assert_non_null(r);
	bool p = res_listener_from(r)->socket->filters.proxy_protocol;
	xds_res_put(r);
	return p;
}

static bool keeps(const char *json, uint8_t type)
{
	struct xds_res *r = res_decode(&res_type_listener, json);
	bool k = tlv_types_have(&res_listener_from(r)->socket->filters.passed, type);
	xds_res_put(r);
	return k;
}

// PP-12
static void a_socket_listener_may_want_proxy_headers(void **state)
{
	static const struct res_row rows[] = {
		{"both versions", SOCKET_WITH(PROXY("")), NULL},
		{"rules", SOCKET_WITH(PROXY(",'rules':[{'tlvType':1}]")), NULL,
			"proxy_protocol: rules are ignored"},
		{"PP-21 TLVs", SOCKET_WITH(PROXY(",'passThroughTlvs':{}")), NULL},
		{"PP-21 another match of TLVs",
			SOCKET_WITH(PROXY(",'passThroughTlvs':{'matchType':7}")),
			"=listener_filters[0]: pass_through_tlvs: match_type: 7 is not known"},
		{"PP-21 no type of a TLV",
			SOCKET_WITH(PROXY(",'passThroughTlvs':{'tlvType':[256]}")),
			"=listener_filters[0]: pass_through_tlvs: tlv_type[0]: must be below 256"},
		{"without", SOCKET_WITH(PROXY(",'allowRequestsWithoutProxyProtocol':true")),
			"=listener_filters[0]: allow_requests_without_proxy_protocol: is not "
			"supported, since clients could then name any address"},
		{"a version less", SOCKET_WITH(PROXY(",'disallowedVersions':['V1']")), NULL,
			"proxy_protocol: disallowed_versions: the frontend's versions count"},
		{"WF-04 without, as TypedStruct",
			STRUCT_OF(TYPED_STRUCT, PROXY_TYPE,
				"'allowRequestsWithoutProxyProtocol':true"),
			"=listener_filters[0]: allow_requests_without_proxy_protocol: is not "
			"supported, since clients could then name any address"},
		{"two of them", SOCKET_WITH(PROXY("") "," PROXY("")),
			"=listener_filters[1]: a second proxy_protocol"},
		{"others", SOCKET_WITH("{},{'name':'x','typedConfig':" ANY(ROUTER_TYPE, "") "}"),
			NULL},
	};
	RUN_ROWS(&res_type_listener, rows);
	assert_false(proxy_protocol_of(SOCKET_WITH("{}")));
	assert_true(proxy_protocol_of(SOCKET_WITH("{}," PROXY(""))));
	assert_true(proxy_protocol_of(STRUCT_OF(TYPED_STRUCT, PROXY_TYPE, "")));
	assert_true(proxy_protocol_of(STRUCT_OF(OLD_TYPED_STRUCT, PROXY_TYPE, "")));
	assert_false(keeps(SOCKET_WITH(PROXY("")), 2));
	assert_true(keeps(SOCKET_WITH(PROXY(",'passThroughTlvs':{}")), 2));
	static const char some[] =
		SOCKET_WITH(PROXY(",'passThroughTlvs':{'matchType':'INCLUDE','tlvType':[224]}"));
	assert_true(keeps(some, 224));
	assert_false(keeps(some, 2));
}

static struct lb_inspector inspector_of(const char *json)
{
	struct xds_res *r = res_decode(&res_type_listener, json);
	assert_non_null(r);
	struct lb_inspector i = res_listener_from(r)->socket->filters.tls_inspector;
	xds_res_put(r);
	return i;
}

#define OUT_OF_RANGE "max_client_hello_size: must be in [256, 16384]"
#define MAX(value) ",'maxClientHelloSize':" value
#define FIRST(value) ",'initialReadBufferSize':" value
#define CLOSES ",'closeConnectionOnClientHelloParsingErrors':true"

static void a_socket_listener_may_have_an_inspector(void **state)
{
	static const struct res_row rows[] = {
		{"A36-38 the inspector", SOCKET_WITH(INSPECTOR("")), NULL},
		{"A36-38 how it reads", SOCKET_WITH(INSPECTOR(FIRST("256"))), NULL},
		{"A36-38 how it reads at most", SOCKET_WITH(INSPECTOR(FIRST("65536"))), NULL},
		{"TLS-221 it reads too little", SOCKET_WITH(INSPECTOR(FIRST("255"))),
			"=listener_filters[0]: initial_read_buffer_size: must be in [256, 65536]"},
		{"TLS-221 it reads too much", SOCKET_WITH(INSPECTOR(FIRST("65537"))),
			"=listener_filters[0]: initial_read_buffer_size: must be in [256, 65536]"},
		{"A36-38 fingerprints", SOCKET_WITH(INSPECTOR(",'enableJa4Fingerprinting':true")),
			NULL, "tls_inspector: enable_ja4_fingerprinting is ignored"},
		{"A36-40 a good hello is demanded", SOCKET_WITH(INSPECTOR(CLOSES)), NULL},
		{"TLS-221 the largest bound", SOCKET_WITH(INSPECTOR(MAX("16384"))), NULL},
		{"TLS-221 the smallest one", SOCKET_WITH(INSPECTOR(MAX("256"))), NULL},
		{"TLS-221 a larger one", SOCKET_WITH("{}," INSPECTOR(MAX("16385"))),
			"=listener_filters[1]: " OUT_OF_RANGE},
		{"TLS-221 a smaller one", SOCKET_WITH(INSPECTOR(MAX("255"))),
			"=listener_filters[0]: " OUT_OF_RANGE},
		{"TLS-221 none is allowed", SOCKET_WITH(INSPECTOR(MAX("0"))),
			"=listener_filters[0]: " OUT_OF_RANGE},
		{"WF-04 none is allowed, as TypedStruct",
			STRUCT_OF(TYPED_STRUCT, INSPECTOR_TYPE, "'maxClientHelloSize':0"),
			"=listener_filters[0]: " OUT_OF_RANGE},
		{"WF-04 no inspector at all, as TypedStruct",
			STRUCT_OF(TYPED_STRUCT, INSPECTOR_TYPE, "'maxClientHelloSize':{}"),
			"=listener_filters[0]: tls_inspector: maxClientHelloSize: not a number"},
	};
	RUN_ROWS(&res_type_listener, rows);
	assert_false(inspector_of(SOCKET_WITH("{}")).on);
	struct lb_inspector i = inspector_of(SOCKET_WITH("{}," INSPECTOR("")));
	assert_true(i.on && !i.closes && !i.max_hello);
	i = inspector_of(SOCKET_WITH(
		INSPECTOR(CLOSES MAX("1000")) "," INSPECTOR(MAX("999")) "," INSPECTOR("")));
	assert_true(i.on && i.closes);
	assert_int_equal(i.max_hello, 999);
	i = inspector_of(STRUCT_OF(TYPED_STRUCT, INSPECTOR_TYPE, "'maxClientHelloSize':998"));
	assert_true(i.on);
	assert_int_equal(i.max_hello, 998);
}

static struct lb_forwarding forwarding_of(const char *json)
{
	struct xds_res *r = res_decode(&res_type_listener, json);
	assert_non_null(r);
	struct lb_forwarding f = res_listener_from(r)->forwarding;
	xds_res_put(r);
	return f;
}

// HX-50
static void who_the_client_is_matters_where_the_listener_says_so(void **state)
{
	assert_false(forwarding_of(ROUTED(RDS)).on);
	assert_false(forwarding_of(ROUTED(RDS ",'setCurrentClientCertDetails':{'dns':true}")).on);
	struct lb_forwarding f = forwarding_of(ROUTED(RDS ",'useRemoteAddress':false"));
	assert_true(f.on && !f.use_remote_address && f.cert == LB_CERT_SANITIZE);
	f = forwarding_of(ROUTED(RDS ",'useRemoteAddress':true"));
	assert_true(f.on && f.use_remote_address && !f.skip_xff_append);
	f = forwarding_of(ROUTED(RDS ",'skipXffAppend':true"));
	assert_true(f.on && !f.use_remote_address && f.skip_xff_append);
	f = forwarding_of(ROUTED(RDS ",'forwardClientCertDetails':'SANITIZE_SET',"
				     "'setCurrentClientCertDetails':{'dns':true,'uri':true}"));
	assert_true(f.on && f.cert == LB_CERT_SANITIZE_SET);
	assert_true(f.cert_dns && f.cert_uri && !f.cert_subject);
}

// gRFC A81: inline routes are the listener's server's.
static void inline_routes_know_who_sent_them(void **state)
{
	static const struct xds_server_conf trusted = {.trusted = true};
	struct xds_res *r = res_decode(
		&res_type_listener, ROUTED("'routeConfig':{'name':'r','virtualHosts':[]}"));
	const struct res_listener *l = res_listener_from(r);
	assert_false(xds_res_is_trusted(&l->routes->base));
	xds_res_set_server(r, &trusted);
	assert_true(xds_res_is_trusted(r));
	assert_true(xds_res_is_trusted(&l->routes->base));
	xds_res_put(r);
}

// The listener of json, behind whose HttpConnectionManager these bytes follow.
static struct xds_res *with_more(const char *json, const char *more, size_t n_more)
{
	const ProtobufCMessageDescriptor *type = &envoy__config__listener__v3__listener__descriptor;
	size_t len;
	uint8_t *bytes = res_bytes_from_json(&res_type_listener, json, &len);
	Envoy__Config__Listener__V3__Listener *m = proto_unpack(type, bytes, len, NULL);
	free(bytes);
	ProtobufCBinaryData *hcm = &m->api_listener->api_listener->value;
	hcm->data = realloc(hcm->data, hcm->len + n_more);
	memcpy(hcm->data + hcm->len, more, n_more);
	hcm->len += n_more;
	assert_int_equal(proto_pack(&m->base, &bytes, &len), 0);
	proto_free(m);
	struct xds_res *r = res_decode_bytes(&res_type_listener, bytes, len);
	free(bytes);
	return r;
}
#define WITH_MORE(json, more) with_more(json, more, sizeof(more) - 1)

#define INLINE "'routeConfig':{'name':'r','virtualHosts':[{'name':'a','domains':['a']}]}"
#define HOST_B                                                                                     \
	"\x22\x08\x12\x06\x0a\x01"                                                                 \
	"b\x12\x01"                                                                                \
	"b" // route_config with a second host
#define RDS_S                                                                                      \
	"\x1a\x07\x0a\x02\x1a\x00\x12\x01"                                                         \
	"s" // rds

// CL-02: as protobuf merges pieces of a message, whose last member of a oneof counts.
static void inline_routes_in_pieces_are_one(void **state)
{
	struct xds_res *r = WITH_MORE(ROUTED(INLINE), HOST_B HOST_B);
	const struct res_listener *l = res_listener_from(r);
	assert_int_equal(l->routes->n_vhosts, 3);
	assert_string_equal(l->routes->base.name, "r");
	assert_null(l->rds_name);
	xds_res_put(r);
	r = WITH_MORE(ROUTED(INLINE), HOST_B RDS_S);
	assert_null(res_listener_from(r)->routes);
	assert_string_equal(res_listener_from(r)->rds_name, "s");
	xds_res_put(r);
	r = WITH_MORE(ROUTED(INLINE), RDS_S HOST_B);
	assert_int_equal(res_listener_from(r)->routes->n_vhosts, 1);
	assert_null(res_listener_from(r)->rds_name);
	xds_res_put(r);
}

RUN_SUITE("res/listener", cmocka_unit_test(listeners),
	cmocka_unit_test(a_socket_listener_may_want_proxy_headers),
	cmocka_unit_test(a_socket_listener_may_have_an_inspector),
	cmocka_unit_test(who_the_client_is_matters_where_the_listener_says_so),
	cmocka_unit_test(inline_routes_know_who_sent_them),
	cmocka_unit_test(inline_routes_in_pieces_are_one))
