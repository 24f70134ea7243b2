// SPDX-License-Identifier: Apache-2.0
// Each allocation of each decoder is failed once: the resource is refused and nothing leaks.
#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/types.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/type.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/support/res_json.h"
#include "tests/unit/ctrl/res/cluster_json.h"

#include <stdlib.h>

#define FAULT STRUCT_ANY(TYPED_STRUCT, FAULT_TYPE, "'abort':{'grpcStatus':5}")
#define SESSION                                                                                    \
	ANY(SESSION_TYPE, ",'sessionState':{'typedConfig':" ANY(                                   \
				  COOKIE_TYPE, ",'cookie':{'name':'c','path':'/'}") "}")

static struct xds_res *decode(const struct xds_type *type, const uint8_t *bytes, size_t len)
{
	static char name[] = "p";
	static struct xds_cert_provider_conf provider = {.name = name};
	static const struct xds_bootstrap bootstrap = {
		.cert_providers = &provider, .n_cert_providers = 1};
	struct xds_decoded d = {.bootstrap = &bootstrap};
	type->decode(bytes, len, &d);
	free(d.name);
	return d.res;
}

static void each_allocation_may_fail(void **state)
{
	static const char *const JSON[RES_N_TYPES] = {
		"{'name':'c','type':'EDS','edsClusterConfig':{'edsConfig':{'ads':{}}},"
		"'loadBalancingPolicy':{'policies':[{'typedExtensionConfig':{'name':'x',"
		"'typedConfig':{'@type':'type.googleapis.com/envoy.extensions."
		"load_balancing_policies.round_robin.v3.RoundRobin'}}}]},"
		"'upstreamConfig':{'name':'u','typedConfig':{'@type':'type.googleapis.com/"
		"envoy.extensions.upstreams.http.v3.HttpProtocolOptions'}}}",
		"{'clusterName':'e','endpoints':[{'locality':{'zone':'z'},'loadBalancingWeight':4,"
		"'lbEndpoints':[{'endpoint':{'address':{'socketAddress':{'address':'10.0.0.7',"
		"'portValue':82}}}}]}],'policy':{'dropOverloads':[{'category':'c',"
		"'dropPercentage':{'numerator':5}}]}}",
		LISTENER("'routeConfig':{'name':'rc','virtualHosts':[{'name':'v','domains':['x']}]"
			 "},'httpFilters':[{'name':'x','isOptional':true,'typedConfig':" ANY(
				 ROUND_ROBIN_TYPE, "") "},{'name':'f','typedConfig':" FAULT
						       "},{'name':'s','typedConfig':" SESSION
						       "}," ROUTER "]"),
		"{'name':'r','clusterSpecifierPlugins':[{'isOptional':true,'extension':"
		"{'name':'p','typedConfig':" ANY(ROUND_ROBIN_TYPE,
			"") "}}],'virtualHosts':["
			    "{'name':'v','domains':['x'],'retryPolicy':{'retryOn':'internal,5xx'},'"
			    "routes':["
			    "{'match':{'safeRegex':{'regex':'/a|/b'},'tlsContext':{},'headers':["
			    "{'name':'x','rangeMatch':{'end':3}},"
			    "{'name':'y','stringMatch':{'safeRegex':{'regex':'c+'}}}]},"
			    "'route':{'weightedClusters':{'clusters':[{'name':'a','weight':"
			    "9," OVERRIDES(
				    "'f':" FAULT) "}]},'hashPolicy':[{'header':{'headerName':'h'}},"
						  "{}]}," OVERRIDES("'s':" ANY(FILTER_CONFIG_TYPE,
							  ",'config':" ANY(PER_ROUTE_TYPE,
								  ",'disabled':true"))) "},"
											"{'match':{"
											"'path':'/"
											"','"
											"queryParam"
											"eters':[{}"
											"]},'route'"
											":{'"
											"cluster':'"
											"b'}},"
											"{'match':{"
											"'path':'/"
											"'},'route'"
											":{'"
											"clusterSpe"
											"cifierPlug"
											"in':'p'}},"
											"{'match':{"
											"'path':'/"
											"'},'route'"
											":{'"
											"cluster':'"
											"b'}}]}]}",
	};
	for (unsigned t = 0; t < RES_N_TYPES; t++) {
		size_t len;
		uint8_t *bytes = res_bytes_from_json(res_types[t], JSON[t], &len);
		// Regular expressions are remembered: what RE2 allocates is not failed here.
		struct xds_res *r = decode(res_types[t], bytes, len);
		assert_non_null(r);
		xds_res_put(r);
		ALLOC_FAIL_EACH(r = decode(res_types[t], bytes, len), !r, xds_res_put(r));
		free(bytes);
	}
}

static void each_allocation_of_each_kind_of_cluster_may_fail(void **state)
{
#define CHECKED(how)                                                                               \
	EDS_AND("'healthChecks':[{'timeout':'1s','interval':'1s','unhealthyThreshold':1,"          \
		"'healthyThreshold':1," how "}]")
	static const char *const JSON[] = {
		CLUSTER(OF("'a','b'") ",'lbPolicy':'CLUSTER_PROVIDED'"),
		CLUSTER(DNS_AT(
			"'endpoint':{" SOCKET("'address':'a','portValue':1") ",'hostname':'h'"
									     "}")),
		EDS_AND("'lbPolicy':'RING_HASH'"),
		EDS_AND("'lbPolicy':'LEAST_REQUEST','leastRequestLbConfig':"
			"{'activeRequestBias':{},'slowStartConfig':{}}"),
		BALANCED(UNKNOWN "," ENTRY(STRUCT_ANY(TYPED_STRUCT, "x", "'a':1")) "," WRR(
			ENTRY(ANY(WEIGHTED_TYPE, ",'metricNamesForComputingUtilization':['a'],"
						 "'errorUtilizationPenalty':2")))),
		BALANCED(ENTRY(STRUCT_ANY(TYPED_STRUCT, "xds_wrr_locality_experimental",
			"'childPolicy':[{'ring_hash_experimental':{'minRingSize':5,"
			"'requestHashHeader':'X'}}]"))),
		EDS_AND("'lrsServer':{'self':{}},'lrsReportEndpointMetrics':['a','b'],"
			"'outlierDetection':{'interval':'0s','consecutive5xx':1},"
			"'circuitBreakers':{'thresholds':[{'maxRetries':1}]},'transportSocket'"
			":{'typedConfig':" ANY(SOCKETS "raw_buffer.v3.RawBuffer", "") "}"),
		EDS_AND("'transportSocket':{'typedConfig':" ANY(SOCKETS
			"http_11_proxy.v3.Http11ProxyUpstreamTransport",
			",'transportSocket':{'typedConfig':" ANY(SOCKETS
				"proxy_protocol.v3.ProxyProtocolUpstreamTransport",
				",'allowUnspecifiedAddress':true,'config':{'version':'V2',"
				"'addedTlvs':[{'type':1,'value':'YQ=='}]},"
				"'transportSocket':{'typedConfig':" ANY(
					SOCKETS "raw_buffer.v3.RawBuffer", "") "}") "}") "}"),
		CHECKED("'tcpHealthCheck':{'send':{'text':'00'},'receive':[{'text':'01'}]}"),
		CHECKED("'grpcHealthCheck':{'serviceName':'a','initialMetadata':[{'header':"
			"{'key':'k','value':'v'}}]}"),
		CHECKED("'tlsOptions':{},'httpHealthCheck':{'path':'/','method':'HEAD',"
			"'send':{'binary':'AAE='},'retriableStatuses':[{'start':500,'end':501}],"
			"'requestHeadersToAdd':[{'header':{'key':'k','value':'v'}}]}"),
	};
	for (size_t i = 0; i < sizeof(JSON) / sizeof(JSON[0]); i++) {
		size_t len;
		uint8_t *bytes = res_bytes_from_json(&res_type_cluster, JSON[i], &len);
		struct xds_res *r;
		ALLOC_FAIL_EACH(r = decode(&res_type_cluster, bytes, len), !r, xds_res_put(r));
		free(bytes);
	}
}

static void each_allocation_of_a_listener_with_tls_may_fail(void **state)
{
	size_t len;
	uint8_t *bytes = res_bytes_from_json(&res_type_listener,
		"{'name':'l','address':{'socketAddress':{'address':'0.0.0.0','portValue':1}},"
		"'filterChains':[{" CHAIN_FILTERS
		",'filterChainMatch':{'sourcePorts':[1],'prefixRanges':[{'addressPrefix':'::'}]}},"
		"{" CHAIN_OF(
			"'routeConfig':{'name':'q'},'httpFilters':[" ROUTER
			"]") ",'transportSocket':{'typedConfig':" ANY("envoy.extensions.transport_"
								      "sockets.tls.v3."
								      "DownstreamTlsContext",
			",'commonTlsContext':{'tlsCertificateProviderInstance':{'instanceName':'p'}"
			","
			"'validationContext':{'caCertificateProviderInstance':{'instanceName':'p'}}"
			"}") "}}]}",
		&len);
	struct xds_res *r;
	ALLOC_FAIL_EACH(r = decode(&res_type_listener, bytes, len), !r, xds_res_put(r));
	free(bytes);
}

static void each_allocation_of_access_control_may_fail(void **state)
{
	size_t len;
	uint8_t *bytes = res_bytes_from_json(&res_type_listener,
		FILTER(ANY(HTTP_FILTERS "rbac.v3.RBAC",
			",'rules':{'policies':{'b':{'permissions':[{'urlPath':{'path':{'exact':"
			"'/'}}},{'andRules':{'rules':[{'any':true},{'header':{'name':'K',"
			"'presentMatch':true}}]}}],'principals':[{'notId':{'sourceIp':{"
			"'addressPrefix':'::1'}}}]},'a':{}}},'shadowRules':{}")),
		&len);
	struct xds_res *r;
	ALLOC_FAIL_EACH(r = decode(&res_type_listener, bytes, len), !r, xds_res_put(r));
	free(bytes);
}

// More localities and drops than there is room for at first, further addresses, host names.
static void each_allocation_of_endpoints_with_everything_may_fail(void **state)
{
#define SOCKET_AT(ip) "'address':{'socketAddress':{'address':'" ip "','portValue':80}}"
#define FULL(n)                                                                                    \
	"{'locality':{'region':'r','zone':'z" n "'},'loadBalancingWeight':1,'lbEndpoints':["       \
	"{'endpoint':{" SOCKET_AT("10.0.0." n) ",'hostname':'h','additionalAddresses':["           \
					       "{" SOCKET_AT("fd00::1" n) "},{" SOCKET_AT(         \
						       "fd00::2" n) "}]},'metadata':{"             \
								    "'filterMetadata':{'envoy.lb'" \
								    ":{'hash_key':'k'}}}}]}"
#define PART(n) "{'category':'c" n "','dropPercentage':{'numerator':5}}"
#define NINE(x)                                                                                    \
	x("1") "," x("2") "," x("3") "," x("4") "," x("5") "," x("6") "," x("7") "," x("8") "," x( \
		"9")
	static const char JSON[] = "{'clusterName':'e','endpoints':[" NINE(
		FULL) "],'policy':{'dropOverloads':[" NINE(PART) "]}}";
	size_t len;
	uint8_t *bytes = res_bytes_from_json(&res_type_endpoints, JSON, &len);
	struct xds_res *r = decode(&res_type_endpoints, bytes, len);
	assert_non_null(r);
	xds_res_put(r);
	ALLOC_FAIL_EACH(r = decode(&res_type_endpoints, bytes, len), !r, xds_res_put(r));
	free(bytes);
}

static void each_allocation_of_the_endpoint_of_a_name_may_fail(void **state)
{
	const struct ip_port list[] = {{ip_from_v4(1), 80}, {ip_from_v4(2), 80}};
	struct res_endpoints *e;
	ALLOC_FAIL_EACH(e = res_endpoints_of_addresses("c", list, 2, "h"), !e,
		xds_res_put(e ? &e->base : NULL));
}

RUN_SUITE("res/memory", cmocka_unit_test(each_allocation_may_fail),
	cmocka_unit_test(each_allocation_of_each_kind_of_cluster_may_fail),
	cmocka_unit_test(each_allocation_of_a_listener_with_tls_may_fail),
	cmocka_unit_test(each_allocation_of_access_control_may_fail),
	cmocka_unit_test(each_allocation_of_endpoints_with_everything_may_fail),
	cmocka_unit_test(each_allocation_of_the_endpoint_of_a_name_may_fail))
