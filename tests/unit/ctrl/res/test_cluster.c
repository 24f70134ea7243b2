// SPDX-License-Identifier: Apache-2.0
// Which clusters are accepted, with which warnings, and which are refused with what words: one row
// a rule. Their policies are test_policy.c's.
#include "ctrl/res/cluster.h"
#include "ctrl/xds/type.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/res/cluster_json.h"
#include "tests/unit/ctrl/res/decode.h"
#include "tests/unit/ctrl/res/rows.h"

static void where_endpoints_come_from(void **state)
{
#define EDS_FROM(source) CLUSTER("'type':'EDS','edsClusterConfig':{'edsConfig':{" source "}}")
#define NO_EDS "=eds_cluster_config: eds_config is neither ads nor self"
	static const struct res_row rows[] = {
		{"CL-03 EDS over ads", CLUSTER(FROM_EDS), NULL},
		{"CL-03 EDS over self", EDS_FROM("'self':{}"), NULL},
		{"CL-03 EDS from a file", EDS_FROM("'path':'/x'"), NO_EDS},
		{"CL-03 EDS from nowhere", EDS_FROM(""), NO_EDS},
		{"CL-03 EDS without eds_config", CLUSTER("'type':'EDS','edsClusterConfig':{}"),
			NO_EDS},
		{"CL-03 EDS without config", CLUSTER("'type':'EDS'"), NO_EDS},
		{"CL-03 STATIC", CLUSTER("'type':'STATIC'"), "=type: STATIC is not supported"},
		{"CL-03 no type is STATIC", CLUSTER("'lbPolicy':'ROUND_ROBIN'"),
			"=type: STATIC is not supported"},
		{"CL-03 STRICT_DNS", CLUSTER("'type':'STRICT_DNS'"),
			"=type: STRICT_DNS is not supported"},
		{"CL-03 ORIGINAL_DST", CLUSTER("'type':'ORIGINAL_DST'"),
			"=type: ORIGINAL_DST is not supported"},
		{"CL-03 a number that is no type", CLUSTER("'type':77"),
			"=type: unknown is not supported"},
		{"CL-04 service_name",
			CLUSTER("'type':'EDS','edsClusterConfig':{'edsConfig':{'ads':{}},"
				"'serviceName':'s'}"),
			NULL},
		{"CL-04 xdstp cluster without a service name",
			"{'name':'xdstp://a/envoy.config.cluster.v3.Cluster/c'," FROM_EDS "}",
			"=eds_cluster_config: a cluster named xdstp: needs a service_name"},
		{"CL-04 xdstp cluster with one",
			"{'name':'xdstp://a/envoy.config.cluster.v3.Cluster/c','type':'EDS',"
			"'edsClusterConfig':{'edsConfig':{'ads':{}},'serviceName':'s'}}",
			NULL},
	};
	RUN_ROWS(&res_type_cluster, rows);
}

// A37-D01.
static void names_in_dns(void **state)
{
#define ASSIGNMENT "=load_assignment: "
#define ENDPOINT_0 ASSIGNMENT "lb_endpoints[0]: "
#define SOCKET_0 ENDPOINT_0 "socket_address: "
#define NAMED(hostname)                                                                            \
	CLUSTER(DNS_AT("'endpoint':{" SOCKET(                                                      \
		"'address':'a','portValue':1") ",'hostname':'" hostname "'}"))
	static const struct res_row rows[] = {
		{"name and port", CLUSTER(DNS("'address':'svc.example','portValue':80")), NULL},
		{"an address in place of a name", CLUSTER(DNS("'address':'::1','portValue':80")),
			NULL},
		{"highest port", CLUSTER(DNS("'address':'a','portValue':65535")), NULL},
		{"no load_assignment", CLUSTER("'type':'LOGICAL_DNS'"),
			ASSIGNMENT "a LOGICAL_DNS cluster needs one"},
		{"no locality", CLUSTER(DNS_OF("")),
			ASSIGNMENT "endpoints: must be one locality, not 0"},
		{"two localities", CLUSTER(DNS_OF("'endpoints':[{},{}]")),
			ASSIGNMENT "endpoints: must be one locality, not 2"},
		{"no endpoint", CLUSTER(DNS_OF("'endpoints':[{}]")),
			ASSIGNMENT "endpoints[0]: lb_endpoints: must be one, not 0"},
		{"two endpoints", CLUSTER(DNS_OF("'endpoints':[{'lbEndpoints':[{},{}]}]")),
			ASSIGNMENT "endpoints[0]: lb_endpoints: must be one, not 2"},
		{"empty endpoint", CLUSTER(DNS_AT("")), ENDPOINT_0 "no endpoint"},
		{"endpoint by name", CLUSTER(DNS_AT("'endpointName':'x'")),
			ENDPOINT_0 "no endpoint"},
		{"no address", CLUSTER(DNS_AT("'endpoint':{}")), ENDPOINT_0 "no socket_address"},
		{"empty address", CLUSTER(DNS_AT("'endpoint':{'address':{}}")),
			ENDPOINT_0 "no socket_address"},
		{"pipe", CLUSTER(DNS_AT("'endpoint':{'address':{'pipe':{'path':'/x'}}}")),
			ENDPOINT_0 "no socket_address"},
		{"nothing in the socket address", CLUSTER(DNS("")), SOCKET_0 "no address"},
		{"empty name", CLUSTER(DNS("'address':'','portValue':80")), SOCKET_0 "no address"},
		{"no port", CLUSTER(DNS("'address':'a'")), SOCKET_0 "no port_value"},
		{"named port", CLUSTER(DNS("'address':'a','namedPort':'http'")),
			SOCKET_0 "no port_value"},
		{"port 0", CLUSTER(DNS("'address':'a','portValue':0")),
			SOCKET_0 "port_value: must be in [1, 65535]"},
		{"port too large", CLUSTER(DNS("'address':'a','portValue':65536")),
			SOCKET_0 "port_value: must be in [1, 65535]"},
		{"custom resolver",
			CLUSTER(DNS("'address':'a','portValue':80,'resolverName':'dns'")),
			SOCKET_0 "resolver_name: must be empty"},
		{"AR-01 host name", NAMED("pod.svc:8080"), NULL},
		{"AR-01 host name that is not an authority", NAMED("u@a"),
			ENDPOINT_0 "hostname: \"u@a\" is not an authority"},
		{"weight, locality, health of the endpoint are ignored",
			CLUSTER(DNS_OF(
				"'endpoints':[{'priority':7,'loadBalancingWeight':0,"
				"'lbEndpoints':[{'healthStatus':'UNHEALTHY','endpoint':{" SOCKET(
					"'address':'a','portValue':1") "}}]}]")),
			NULL},
		{"load_assignment beside EDS is ignored",
			CLUSTER(FROM_EDS ",'loadAssignment':{'endpoints':[{},{}]}"), NULL},
	};
	RUN_ROWS(&res_type_cluster, rows);
}

static void aggregates(void **state)
{
	static const struct res_row rows[] = {
		{"A37 children", CLUSTER(OF("'a','b','a'")), NULL},
		{"A37-G04 none", CLUSTER(OF("")), "=cluster_type: clusters: must not be empty"},
		{"a child without a name", CLUSTER(OF("'a',''")),
			"=cluster_type: clusters[1]: is empty"},
		{"CL-03 no typed_config", CLUSTER("'clusterType':{'name':'x'}"),
			"=cluster_type: no typed_config"},
		{"CL-03 another type", CLUSTER(CUSTOM(ANY(ROUTER_TYPE, ""))),
			"=cluster_type: \"" URL ROUTER_TYPE "\" is not supported"},
		{"CL-03 TypedStruct",
			CLUSTER(CUSTOM(
				STRUCT_ANY(TYPED_STRUCT, AGGREGATE_TYPE, "'clusters':['a']"))),
			"=cluster_type: \"" URL TYPED_STRUCT "\" is not supported"},
		{"A75-G06 its own policy has no effect",
			CLUSTER(OF("'a'") ",'lbPolicy':'RING_HASH'"), NULL},
		{"A75-G07 CLUSTER_PROVIDED", CLUSTER(OF("'a'") ",'lbPolicy':'CLUSTER_PROVIDED'"),
			NULL},
		{"A75-G07 in its newer form",
			CLUSTER(OF("'a'") ",'loadBalancingPolicy':" LIST(
				UNKNOWN "," ENTRY(ANY(PROVIDED_TYPE, "")))),
			NULL},
		{"A75-G07 CLUSTER_PROVIDED is for aggregates alone",
			EDS_AND("'lbPolicy':'CLUSTER_PROVIDED'"),
			"=lb_policy: CLUSTER_PROVIDED is not supported"},
		{"A75-G07 likewise in its newer form", BALANCED(ENTRY(ANY(PROVIDED_TYPE, ""))),
			"=load_balancing_policy: no supported policy"},
		{"A75-G06 but a policy that is wrong is", CLUSTER(OF("'a'") ",'lbPolicy':'MAGLEV'"),
			"=lb_policy: MAGLEV is not supported"},
	};
	RUN_ROWS(&res_type_cluster, rows);
}

static void load_reports(void **state)
{
	static const struct res_row rows[] = {
		{"CL-03 lrs_server self", EDS_AND("'lrsServer':{'self':{}}"), NULL},
		{"CL-03 lrs_server ads", EDS_AND("'lrsServer':{'ads':{}}"),
			"=lrs_server: is not self"},
		{"CL-03 lrs_server empty", EDS_AND("'lrsServer':{}"), "=lrs_server: is not self"},
		{"A85 metrics", EDS_AND("'lrsReportEndpointMetrics':['cpu_utilization','x']"),
			NULL},
	};
	RUN_ROWS(&res_type_cluster, rows);
}

static void times_of_connections(void **state)
{
#define HTTP_OPTIONS(more)                                                                         \
	EDS_AND("'typedExtensionProtocolOptions':{'x':" ANY(                                       \
		"envoy.extensions.upstreams.http.v3.HttpProtocolOptions", more) "}")
#define KEEPALIVE(fields)                                                                          \
	HTTP_OPTIONS(                                                                              \
		",'explicitHttpConfig':{'http2ProtocolOptions':{'connectionKeepalive':{" fields    \
		"}}}")
#define KEEPALIVE_TEXT                                                                             \
	"=typed_extension_protocol_options: http2_protocol_options: connection_keepalive: "
#define TCP_KEEPALIVE(fields) EDS_AND("'upstreamConnectionOptions':{'tcpKeepalive':{" fields "}}")
	static const struct res_row rows[] = {
		{"CL-09 connect_timeout", EDS_AND("'connectTimeout':'0.25s'"), NULL},
		{"CL-09 connect_timeout of 0", EDS_AND("'connectTimeout':'0s'"),
			"=connect_timeout: must be 1 ms at least"},
		{"CL-09 connect_timeout below 0", EDS_AND("'connectTimeout':'-1s'"),
			"=connect_timeout: seconds must be in [0, 315576000000]"},
		{"CL-09 keepalive", KEEPALIVE("'interval':'30s','timeout':'5s'"), NULL},
		{"CL-09 keepalive without interval", KEEPALIVE("'timeout':'5s'"), NULL},
		{"CL-09 keepalive without timeout", KEEPALIVE("'interval':'30s'"),
			KEEPALIVE_TEXT "timeout: must be set"},
		{"CL-09 timeout of 0", KEEPALIVE("'timeout':'0s'"),
			KEEPALIVE_TEXT "timeout: must be 1 ms at least"},
		{"CL-09 interval of less than 1 ms",
			KEEPALIVE("'interval':'0.0009s','timeout':'1s'"),
			KEEPALIVE_TEXT "interval: must be 1 ms at least"},
		{"CL-09 interval below 0", KEEPALIVE("'interval':'-1s','timeout':'1s'"),
			KEEPALIVE_TEXT "interval: seconds must be in [0, 315576000000]"},
		{"CL-09 connection_idle_interval",
			KEEPALIVE("'timeout':'1s','connectionIdleInterval':'1s'"), NULL,
			"connection_keepalive: connection_idle_interval is ignored"},
		{"CL-09 connection_idle_interval of 0",
			KEEPALIVE("'timeout':'1s','connectionIdleInterval':'0s'"),
			KEEPALIVE_TEXT "connection_idle_interval: must be 1 ms at least"},
		{"CL-09 tcp_keepalive", TCP_KEEPALIVE("'keepaliveTime':10"), NULL},
		{"CL-09 tcp_keepalive of the system", TCP_KEEPALIVE(""), NULL},
		{"CL-09 tcp_keepalive's probes", TCP_KEEPALIVE("'keepaliveProbes':3"), NULL,
			"tcp_keepalive: keepalive_probes and keepalive_interval are ignored"},
	};
	RUN_ROWS(&res_type_cluster, rows);
}

static void connections(void **state)
{
#define OPTIONS_TYPE "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
#define UPSTREAM(any) EDS_AND("'upstreamConfig':{'name':'u','typedConfig':" any "}")
#define IDLE_FOR(duration)                                                                         \
	ANY(OPTIONS_TYPE, ",'commonHttpProtocolOptions':{'idleTimeout':" duration "}")
#define IDLE(duration) UPSTREAM(IDLE_FOR(duration))
#define TIMEOUT "common_http_protocol_options.idle_timeout: "
#define OPTION(key, any) EDS_AND("'typedExtensionProtocolOptions':{'" key "':" any "}")
#define TRANSPORT(any) EDS_AND("'transportSocket':{'name':'t','typedConfig':" any "}")
#define PLAIN ANY(SOCKETS "raw_buffer.v3.RawBuffer", "")
#define TLS ANY(SOCKETS "tls.v3.UpstreamTlsContext", "," ROOTS)
#define ROOTS "'commonTlsContext':{'validationContext':{'systemRootCerts':{}}}"
#define ANYBODY                                                                                    \
	"transport_socket: system_root_certs without names to match: any certificate of a public " \
	"authority is accepted"
#define PROXY_TYPE SOCKETS "http_11_proxy.v3.Http11ProxyUpstreamTransport"
#define PROXY ANY(PROXY_TYPE, "")
#define PROXY_OF(any) ANY(PROXY_TYPE, ",'transportSocket':{'name':'t','typedConfig':" any "}")
#define MATCHES(list) EDS_AND("'transportSocketMatches':[" list "]")
#define BY_MATCH(any) "{'name':'m','match':{},'transportSocket':{'name':'t','typedConfig':" any "}}"
	static const struct res_row rows[] = {
		{"A75-O17 idle_timeout", IDLE("'30s'"), NULL},
		{"A75-O17 none", UPSTREAM(ANY(OPTIONS_TYPE, "")), NULL},
		{"A75-O17 of 0", IDLE("'0s'"), NULL},
		{"A75-O17 the longest", IDLE("'315576000000s'"), NULL},
		{"A75-O17 negative", IDLE("'-1s'"),
			"=upstream_config: " TIMEOUT "seconds must be in [0, 315576000000]"},
		{"A75-O17 negative by a little", IDLE("'-0.5s'"),
			"=upstream_config: " TIMEOUT "nanos must be in [0, 999999999]"},
		{"A75-O17 negative in the other field", OPTION("x", IDLE_FOR("'-1s'")),
			"=typed_extension_protocol_options: " TIMEOUT
			"seconds must be in [0, 315576000000]"},
		{"A75-O17 another type in the other field", OPTION("x", ANY(ROUTER_TYPE, "")),
			NULL},
		{"CL-08 another type", UPSTREAM(ANY(ROUTER_TYPE, "")),
			"=upstream_config: is not an HttpProtocolOptions"},
		{"CL-08 TypedStruct", UPSTREAM(STRUCT_ANY(TYPED_STRUCT, OPTIONS_TYPE, "")),
			"=upstream_config: is not an HttpProtocolOptions"},
		{"CL-08 nothing", EDS_AND("'upstreamConfig':{'name':'u'}"),
			"=upstream_config: is not an HttpProtocolOptions"},
		{"plain transport", TRANSPORT(PLAIN), NULL},
		{"TLS", TRANSPORT(TLS), NULL, ANYBODY},
		{"TLS-217 TLS in a TypedStruct",
			TRANSPORT(STRUCT_ANY(
				TYPED_STRUCT, SOCKETS "tls.v3.UpstreamTlsContext", ROOTS)),
			NULL, ANYBODY},
		{"TLS-120 matches beside TLS are not left out silently",
			EDS_AND("'transportSocket':{'typedConfig':" TLS
				"},'transportSocketMatches':[" BY_MATCH(PLAIN) "]"),
			"=transport_socket_matches: are not supported beside TLS"},
		{"another transport", TRANSPORT(ANY(SOCKETS "tls.v3.DownstreamTlsContext", "")),
			"=transport_socket: \"" URL SOCKETS
			"tls.v3.DownstreamTlsContext\" is not supported"},
		{"HC-01 through proxies", TRANSPORT(PROXY), NULL},
		{"HC-01 through proxies, in a TypedStruct",
			TRANSPORT(STRUCT_ANY(TYPED_STRUCT, PROXY_TYPE, "")), NULL},
		{"HC-01 in plain text through proxies", TRANSPORT(PROXY_OF(PLAIN)), NULL},
		{"HC-01 TLS through proxies", TRANSPORT(PROXY_OF(TLS)), NULL, ANYBODY},
		{"HC-02 through proxies, and TLS that is wrong",
			TRANSPORT(PROXY_OF(ANY(SOCKETS "tls.v3.UpstreamTlsContext", ""))),
			"=transport_socket: transport_socket: common_tls_context: no CA "
			"certificates configured"},
		{"HC-02 one transport through proxies within the other", TRANSPORT(PROXY_OF(PROXY)),
			"=transport_socket: transport_socket: \"" URL PROXY_TYPE
			"\" is not supported"},
		{"HC-02 through proxies, without config",
			TRANSPORT(ANY(PROXY_TYPE, ",'transportSocket':{'name':'t'}")),
			"=transport_socket: transport_socket: no typed_config"},
		{"HC-03 matches beside proxies",
			EDS_AND("'transportSocket':{'typedConfig':" PROXY
				"},'transportSocketMatches':[" BY_MATCH(PLAIN) "]"),
			"=transport_socket_matches: are not supported beside "
			"Http11ProxyUpstreamTransport"},
		{"a transport without config", EDS_AND("'transportSocket':{'name':'tls'}"),
			"=transport_socket: no typed_config"},
		{"plain transports by match", MATCHES(BY_MATCH(PLAIN) "," BY_MATCH(PLAIN)), NULL},
		{"no transports to match", MATCHES(""), NULL},
		{"TLS by match, where all others are plain",
			MATCHES(BY_MATCH(PLAIN) "," BY_MATCH(TLS)),
			"=transport_socket_matches[1]: transport_socket: TLS is not supported "
			"here"},
		{"HC-03 through proxies by match", MATCHES(BY_MATCH(PROXY)),
			"=transport_socket_matches[0]: transport_socket: \"" URL SOCKETS
			"http_11_proxy.v3.Http11ProxyUpstreamTransport\" is not supported"},
		{"a match without config", MATCHES("{'name':'m','transportSocket':{'name':'tls'}}"),
			"=transport_socket_matches[0]: transport_socket: no typed_config"},
		{"a match without transport", MATCHES("{'name':'m'}"),
			"=transport_socket_matches[0]: no transport_socket"},
	};
	RUN_ROWS(&res_type_cluster, rows);
}

static void proxy_headers_to_backends(void **state)
{
#define HEADER_TYPE SOCKETS "proxy_protocol.v3.ProxyProtocolUpstreamTransport"
#define SOCKET_OF(any) "'transportSocket':{'name':'t','typedConfig':" any "}"
#define WITH_HEADER(fields) ANY(HEADER_TYPE, "," fields "," SOCKET_OF(PLAIN))
#define HEADED(config) TRANSPORT(WITH_HEADER("'config':{" config "}"))
#define TLVS(list) HEADED("'version':'V2','addedTlvs':[" list "]")
#define CONFIG "=transport_socket: config: "
#define PASSING(fields) HEADED("'version':'V2','passThroughTlvs':{" fields "}")
#define Y12 "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh"
#define OF_252 Y12 Y12 Y12 Y12 Y12 Y12 Y12 // bytes
#define TLV(type, value) "{'type':" type ",'value':'" value "'}"
#define OF_256(type) TLV(type, OF_252 "YQ==")
	static const struct res_row rows[] = {
		{"PP-20 version 1", HEADED("'version':'V1'"), NULL},
		{"PP-20 version 2", HEADED("'version':'V2'"), NULL},
		{"PP-20 no config", TRANSPORT(ANY(HEADER_TYPE, "," SOCKET_OF(PLAIN))), NULL},
		{"PP-20 in a TypedStruct",
			TRANSPORT(STRUCT_ANY(TYPED_STRUCT, HEADER_TYPE, SOCKET_OF(PLAIN))), NULL},
		{"PP-20 in front of TLS", TRANSPORT(ANY(HEADER_TYPE, "," SOCKET_OF(TLS))), NULL,
			ANYBODY},
		{"PP-15 behind a proxy",
			TRANSPORT(PROXY_OF(WITH_HEADER("'config':{'version':'V2'}"))), NULL},
		{"PP-15 in front of a proxy", TRANSPORT(ANY(HEADER_TYPE, "," SOCKET_OF(PROXY))),
			"=transport_socket: transport_socket: \"" URL PROXY_TYPE
			"\" is not supported"},
		{"PP-15 one in front of another",
			TRANSPORT(ANY(HEADER_TYPE, "," SOCKET_OF(WITH_HEADER("'config':{}")))),
			"=transport_socket: transport_socket: \"" URL HEADER_TYPE
			"\" is not supported"},
		{"PP-15 nothing inside", TRANSPORT(ANY(HEADER_TYPE, "")),
			"=transport_socket: no transport_socket"},
		{"PP-15 nothing inside, behind a proxy", TRANSPORT(PROXY_OF(ANY(HEADER_TYPE, ""))),
			"=transport_socket: transport_socket: no transport_socket"},
		{"PP-15 TLS that is wrong",
			TRANSPORT(ANY(HEADER_TYPE,
				"," SOCKET_OF(ANY(SOCKETS "tls.v3.UpstreamTlsContext", "")))),
			"=transport_socket: transport_socket: common_tls_context: no CA "
			"certificates configured"},
		{"PP-15 by match", MATCHES(BY_MATCH(WITH_HEADER("'config':{}"))),
			"=transport_socket_matches[0]: transport_socket: \"" URL HEADER_TYPE
			"\" is not supported"},
		{"PP-15 matches beside it",
			EDS_AND("'transportSocket':{'typedConfig':" WITH_HEADER(
				"'config':{}") "},'transportSocketMatches':[" BY_MATCH(PLAIN) "]"),
			"=transport_socket_matches: are not supported beside "
			"ProxyProtocolUpstreamTransport"},
		{"PP-16 another version", HEADED("'version':2"), CONFIG "version: 2 is not known"},
		{"PP-16 TLVs", TLVS(TLV("224", "YQ==") "," TLV("225", "YQ==")), NULL},
		{"PP-16 TLVs of 1024 bytes",
			TLVS(OF_256("1") "," OF_256("2") "," OF_256("3") "," OF_256("4")), NULL},
		{"PP-16 TLVs of 1025 bytes",
			TLVS(OF_256("1") "," OF_256("2") "," OF_256("3") "," TLV(
				"4", OF_252 "YWE=")),
			CONFIG "added_tlvs: have more than 1024 bytes"},
		{"PP-16 TLVs of far more",
			TLVS(OF_256("1") "," TLV("2", OF_252 OF_252 OF_252 OF_252 OF_252)),
			CONFIG "added_tlvs: have more than 1024 bytes"},
		{"PP-16 no type of a TLV", TLVS(TLV("256", "YQ==")),
			CONFIG "added_tlvs[0]: type: must be below 256"},
		{"PP-16 a TLV without value", TLVS(TLV("1", "YQ==") ",{'type':5}"),
			CONFIG "added_tlvs[1]: value: must not be empty"},
		{"PP-17 a TLV of a request", TLVS("{'type':1,'formatString':{'textFormat':'x'}}"),
			CONFIG "added_tlvs[0]: format_string: is not supported"},
		{"PP-21 clients' TLVs", HEADED("'version':'V2','passThroughTlvs':{}"), NULL},
		{"PP-21 some of them", PASSING("'matchType':'INCLUDE','tlvType':[2,255]"), NULL},
		{"PP-21 another match of them", PASSING("'matchType':2"),
			CONFIG "pass_through_tlvs: match_type: 2 is not known"},
		{"PP-21 no type of theirs", PASSING("'tlvType':[2,256]"),
			CONFIG "pass_through_tlvs: tlv_type[1]: must be below 256"},
		{"PP-21 a checksum of theirs", PASSING("'matchType':'INCLUDE','tlvType':[3]"), NULL,
			"pass_through_tlvs: tlv_type 3 is ignored: a header's checksum"},
		{"PP-21 theirs in version 1", HEADED("'passThroughTlvs':{}"), NULL,
			"TLVs are ignored: version 1 has none"},
		{"PP-16 a type twice", TLVS(TLV("9", "YQ==") "," TLV("9", "Yg==")), NULL},
		{"PP-16 TLVs of version 1", HEADED("'addedTlvs':[" TLV("9", "YQ==") "]"), NULL,
			"TLVs are ignored: version 1 has none"},
		{"PP-17 fields that Envoy does nothing with",
			TRANSPORT(WITH_HEADER("'allowUnspecifiedAddress':true")), NULL,
			"allow_unspecified_address and tlv_as_pool_key are ignored"},
	};
	RUN_ROWS(&res_type_cluster, rows);
}

static void a_proxy_header_is_what_its_cluster_says(void **state)
{
	struct xds_res *r = res_decode(&res_type_cluster, CLUSTER(FROM_EDS));
	assert_int_equal(res_cluster_from(r)->header.version, 0);
	xds_res_put(r);
	r = res_decode(&res_type_cluster, HEADED(""));
	assert_int_equal(res_cluster_from(r)->header.version, 1);
	xds_res_put(r);
	r = res_decode(&res_type_cluster,
		TLVS(TLV("224", "YWI=") "," TLV("5", "Yw==") "," TLV("224", "eA==")));
	const struct res_cluster *c = res_cluster_from(r);
	assert_int_equal(c->header.version, 2);
	assert_null(c->tls);
	assert_true(str_eq(c->header.tlvs, STR("\xe0\0\2ab\5\0\1c\xe0\0\1x")));
	xds_res_put(r);
}

static uint32_t n_passed(const char *json)
{
	struct xds_res *r = res_decode(&res_type_cluster, json);
	const struct tlv_types *t = &res_cluster_from(r)->header.passed;
	uint32_t n = 0;
	for (unsigned type = 0; type < 256; type++)
		n += tlv_types_have(t, (uint8_t)type);
	xds_res_put(r);
	return n;
}

// PP-21: a type more or less each time; a checksum is never among them.
static void which_tlvs_of_clients_are_passed_on(void **state)
{
	assert_int_equal(n_passed(HEADED("'version':'V2'")), 0);
	assert_int_equal(n_passed(HEADED("'passThroughTlvs':{}")), 0);
	assert_int_equal(n_passed(PASSING("")), 255);
	assert_int_equal(n_passed(PASSING("'tlvType':[2]")), 255);
	assert_int_equal(n_passed(PASSING("'matchType':'INCLUDE'")), 0);
	assert_int_equal(n_passed(PASSING("'matchType':'INCLUDE','tlvType':[2,3,255,2]")), 2);
}

// ENV-02, ENV-04, A32-I05.
static void what_is_ignored(void **state)
{
#define LIMITS(fields) EDS_AND("'circuitBreakers':{'thresholds':[{" fields "}]}")
#define LIMIT(field) "circuit_breakers: " field " is ignored"
	static const struct res_row rows[] = {
		{"CL-07 fields that change nothing here",
			EDS_AND("'connectTimeout':'5s','perConnectionBufferLimitBytes':1,"
				"'http2ProtocolOptions':{},'dnsRefreshRate':'1s',"
				"'dnsLookupFamily':'V4_ONLY','altStatName':'x',"
				"'commonLbConfig':{'localityWeightedLbConfig':{}}"),
			NULL},
		{"requests per connection", EDS_AND("'maxRequestsPerConnection':5"), NULL,
			"max_requests_per_connection is ignored"},
		{"ENV-02 panic", EDS_AND("'commonLbConfig':{'healthyPanicThreshold':{'value':5}}"),
			NULL, "common_lb_config: healthy_panic_threshold is ignored"},
		{"ENV-02 no panic",
			EDS_AND("'commonLbConfig':{'healthyPanicThreshold':{'value':0}}"), NULL},
		{"max_requests", LIMITS("'maxRequests':0"), NULL},
		{"max_connections", LIMITS("'maxConnections':1"), NULL, LIMIT("max_connections")},
		{"ENV-04 max_pending_requests", LIMITS("'maxPendingRequests':1"), NULL,
			LIMIT("max_pending_requests")},
		{"CB-07 max_retries", LIMITS("'maxRetries':1"), NULL},
		{"max_connection_pools", LIMITS("'maxConnectionPools':1"), NULL,
			LIMIT("max_connection_pools")},
		{"CB-07 retry_budget", LIMITS("'retryBudget':{}"), NULL},
		{"CB-07 a budget of more than all",
			LIMITS("'retryBudget':{'budgetPercent':{'value':100.5}}"),
			"circuit_breakers: retry_budget: budget_percent 100.5 is not from 0 to "
			"100"},
		{"CB-07 a budget of less than none",
			LIMITS("'retryBudget':{'budgetPercent':{'value':-1}}"),
			"circuit_breakers: retry_budget: budget_percent -1 is not from 0 to 100"},
		{"CB-07 a budget that is no number",
			LIMITS("'retryBudget':{'budgetPercent':{'value':'NaN'}}"),
			"circuit_breakers: retry_budget: budget_percent nan is not from 0 to 100"},
		{"no limits", LIMITS("'maxConnections':4294967295,'maxRetries':4294967295"), NULL},
		{"the first threshold alone counts",
			EDS_AND("'circuitBreakers':{'thresholds':[{},{'maxRetries':1}]}"), NULL},
		{"priority HIGH", LIMITS("'priority':'HIGH','maxRetries':1"), NULL,
			"circuit_breakers: thresholds of priority HIGH are ignored"},
		{"a host's limits",
			EDS_AND("'circuitBreakers':{'perHostThresholds':[{'maxConnections':1}]}"),
			NULL, "circuit_breakers: per_host_thresholds are ignored"},
	};
	RUN_ROWS(&res_type_cluster, rows);
}

static void the_kind_says_where_endpoints_are(void **state)
{
	struct xds_res *r = res_decode(&res_type_cluster, CLUSTER(FROM_EDS));
	const struct res_cluster *c = res_cluster_from(r);
	assert_int_equal(c->kind, RES_CLUSTER_EDS);
	assert_string_equal(c->eds_name, "c"); // CL-04
	assert_string_equal(c->eds_service_name, ""); // LR-05
	xds_res_put(r);

	r = res_decode(&res_type_cluster,
		CLUSTER("'type':'EDS','edsClusterConfig':{'edsConfig':{'self':{}},"
			"'serviceName':'s'}"));
	c = res_cluster_from(r);
	assert_string_equal(c->eds_name, "s");
	assert_string_equal(c->eds_service_name, "s");
	xds_res_put(r);

	r = res_decode(&res_type_cluster,
		CLUSTER(DNS_AT("'endpoint':{" SOCKET(
			"'address':'svc.example','portValue':65535") ",'hostname':'h:1'}")));
	c = res_cluster_from(r);
	assert_int_equal(c->kind, RES_CLUSTER_LOGICAL_DNS);
	assert_string_equal(c->dns.host, "svc.example");
	assert_int_equal(c->dns.port, 65535);
	assert_string_equal(c->dns.hostname, "h:1");
	assert_string_equal(c->eds_service_name, "");
	xds_res_put(r);

	r = res_decode(&res_type_cluster, CLUSTER(OF("'b','a','b'")));
	c = res_cluster_from(r);
	assert_int_equal(c->kind, RES_CLUSTER_AGGREGATE);
	assert_int_equal(c->n_children, 3);
	assert_string_equal(c->children[0], "b");
	assert_string_equal(c->children[1], "a");
	assert_string_equal(c->children[2], "b");
	assert_false(c->is_provided);
	assert_non_null(c->spec);
	xds_res_put(r);
}

// A75-G07.
static void an_aggregate_may_leave_balancing_to_its_leaves(void **state)
{
	static const struct {
		const char *json;
		bool provided;
	} rows[] = {
		{CLUSTER(OF("'a'")), false},
		{CLUSTER(OF("'a'") ",'lbPolicy':'CLUSTER_PROVIDED'"), true},
		{CLUSTER(OF("'a'") ",'loadBalancingPolicy':" LIST(
			 UNKNOWN "," ENTRY(ANY(PROVIDED_TYPE, "")))),
			true},
		{CLUSTER(OF("'a'") ",'loadBalancingPolicy':" LIST(
			 ROUND_ROBIN "," ENTRY(ANY(PROVIDED_TYPE, "")))),
			false},
		// The newer field beats the older one.
		{CLUSTER(OF("'a'") ",'lbPolicy':'CLUSTER_PROVIDED','loadBalancingPolicy':" LIST(
			 ROUND_ROBIN)),
			false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xds_res *r = res_decode(&res_type_cluster, rows[i].json);
		assert_int_equal(res_cluster_from(r)->is_provided, rows[i].provided);
		xds_res_put(r);
	}
}

// A27-I10, A85.
static void load_is_reported_where_a_server_asks_for_it(void **state)
{
	struct xds_res *r = res_decode(&res_type_cluster, CLUSTER(FROM_EDS));
	assert_false(res_cluster_from(r)->reports_load);
	assert_int_equal(res_cluster_from(r)->n_metrics, 0);
	xds_res_put(r);

	r = res_decode(&res_type_cluster,
		EDS_AND("'lrsServer':{'self':{}},"
			"'lrsReportEndpointMetrics':['cpu_utilization','named_metrics.*']"));
	const struct res_cluster *c = res_cluster_from(r);
	assert_true(c->reports_load);
	assert_int_equal(c->n_metrics, 2);
	assert_string_equal(c->metrics[0], "cpu_utilization");
	assert_string_equal(c->metrics[1], "named_metrics.*");
	xds_res_put(r);
}

// A32-I05.
static void the_first_default_threshold_limits_requests(void **state)
{
#define BREAKERS(list) EDS_AND("'circuitBreakers':{'thresholds':[" list "]}")
	static const struct {
		const char *json;
		uint32_t max;
	} rows[] = {
		{CLUSTER(FROM_EDS), 1024},
		{EDS_AND("'circuitBreakers':{}"), 1024},
		{BREAKERS("{'maxRequests':0}"), 0},
		{BREAKERS("{'maxRequests':4294967295}"), UINT32_MAX},
		{BREAKERS("{'priority':'HIGH','maxRequests':1}"), 1024},
		{BREAKERS("{'priority':7,'maxRequests':1}"), 1024},
		{BREAKERS(
			 "{'priority':'HIGH','maxRequests':1},{'maxRequests':2},{'maxRequests':3}"),
			2},
		{BREAKERS("{},{'maxRequests':3}"), 1024},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xds_res *r = res_decode(&res_type_cluster, rows[i].json);
		assert_int_equal(res_cluster_from(r)->max_requests, rows[i].max);
		xds_res_put(r);
	}
}

static void cb_07_the_budget_of_retries_is_envoys(void **state)
{
	static const struct {
		const char *json;
		struct lb_retry_budget budget;
	} rows[] = {
		{CLUSTER(FROM_EDS), {false, 0, 0}},
		{BREAKERS("{'maxRetries':4294967295}"), {false, 0, 0}},
		{BREAKERS("{'maxRetries':0}"), {true, 0, 0}},
		{BREAKERS("{'maxRetries':7}"), {true, 0, 7}},
		{BREAKERS("{'retryBudget':{}}"), {true, 200000, 3}},
		{BREAKERS("{'retryBudget':{'budgetPercent':{'value':12.5},"
			  "'minRetryConcurrency':0},'maxRetries':7}"),
			{true, 125000, 0}},
		{BREAKERS("{},{'maxRetries':7}"), {false, 0, 0}},
		{BREAKERS("{'priority':'HIGH','maxRetries':7}"), {false, 0, 0}},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xds_res *r = res_decode(&res_type_cluster, rows[i].json);
		const struct lb_retry_budget *b = &res_cluster_from(r)->retry_budget;
		assert_int_equal(b->is_set, rows[i].budget.is_set);
		assert_int_equal(b->per_million, rows[i].budget.per_million);
		assert_int_equal(b->min_concurrency, rows[i].budget.min_concurrency);
		xds_res_put(r);
	}
}

static void everything_ignored_is_told_once(void **state)
{
	struct xds_res *r = res_decode(&res_type_cluster,
		EDS_AND("'healthChecks':[{'customHealthCheck':{'name':'x'}}],"
			"'maxRequestsPerConnection':5,"
			"'circuitBreakers':{'thresholds':["
			"{'maxConnections':1},{'maxConnections':1}]},"
			"'outlierDetection':{'consecutive5xx':1,'enforcingConsecutive5xx':1}"));
	const struct res_warnings *w = &res_cluster_from(r)->warnings;
	assert_int_equal(w->n, 4);
	for (uint32_t i = 0; i < w->n; i++)
		for (uint32_t k = 0; k < i; k++)
			assert_string_not_equal(w->list[i].text, w->list[k].text);
	xds_res_put(r);
}

RUN_SUITE("res/cluster", cmocka_unit_test(where_endpoints_come_from),
	cmocka_unit_test(names_in_dns), cmocka_unit_test(aggregates),
	cmocka_unit_test(load_reports), cmocka_unit_test(times_of_connections),
	cmocka_unit_test(connections), cmocka_unit_test(proxy_headers_to_backends),
	cmocka_unit_test(a_proxy_header_is_what_its_cluster_says),
	cmocka_unit_test(which_tlvs_of_clients_are_passed_on), cmocka_unit_test(what_is_ignored),
	cmocka_unit_test(the_kind_says_where_endpoints_are),
	cmocka_unit_test(an_aggregate_may_leave_balancing_to_its_leaves),
	cmocka_unit_test(load_is_reported_where_a_server_asks_for_it),
	cmocka_unit_test(the_first_default_threshold_limits_requests),
	cmocka_unit_test(cb_07_the_budget_of_retries_is_envoys),
	cmocka_unit_test(everything_ignored_is_told_once))
