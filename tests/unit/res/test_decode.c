// SPDX-License-Identifier: Apache-2.0
// Which resources are accepted and which are refused with what words: one row a rule.
#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "ctrl/xds/type.h"
#include "tests/support/check.h"
#include "tests/support/res_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
	const char *rule;
	const char *json;
	const char *why; // part of the refusal; NULL = accepted
};

static void run_row(const struct xds_type *type, const struct row *row)
{
	size_t len;
	uint8_t *bytes = res_bytes_from_json(type, row->json, &len);
	struct xds_decoded d = {0};
	type->decode(bytes, len, &d);
	free(bytes);
	if (row->why && d.res)
		fail_msg("%s: accepted: %s", row->rule, row->json);
	if (row->why && !strstr(d.err.text, row->why))
		fail_msg("%s: \"%s\" does not say \"%s\"", row->rule, d.err.text, row->why);
	if (!row->why && !d.res)
		fail_msg("%s: refused: %s", row->rule, d.err.text);
	if (!row->why)
		assert_string_equal(d.err.text, "");
	if (d.name && d.res)
		assert_string_equal(d.name, d.res->name);
	xds_res_put(d.res);
	free(d.name);
}

#define RUN_ROWS(type, rows)                                                                       \
	for (size_t i = 0; i < sizeof(rows) / sizeof((rows)[0]); i++)                              \
		run_row(type, &(rows)[i]);

#define HCM                                                                                        \
	"'@type':'type.googleapis.com/"                                                            \
	"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager'"
#define ROUTER_TYPE "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"
#define ROUTER "{'name':'router','typedConfig':{'@type':'" ROUTER_TYPE "'}}"
#define COOKIE_TYPE                                                                                \
	"type.googleapis.com/envoy.extensions.http.stateful_session.cookie.v3."                    \
	"CookieBasedSessionState"
#define RDS "'rds':{'configSource':{'ads':{}},'routeConfigName':'r'}"
#define LISTENER(hcm) "{'name':'l','apiListener':{'apiListener':{" HCM "," hcm "}}}"
#define FILTERS(list) LISTENER(RDS ",'httpFilters':[" list "]")

static void listeners(void **state)
{
	static const struct row rows[] = {
		{"CL-02 rds over ads", FILTERS(ROUTER), NULL},
		{"CL-02 rds over self",
			LISTENER("'rds':{'configSource':{'self':{}},'routeConfigName':'r'},"
				 "'httpFilters':[" ROUTER "]"),
			NULL},
		{"CL-02 rds without a name",
			LISTENER("'rds':{'configSource':{'ads':{}}},'httpFilters':[" ROUTER "]"),
			"no route_config_name"},
		{"CL-02 rds from a file",
			LISTENER("'rds':{'configSource':{'path':'/x'},'routeConfigName':'r'},"
				 "'httpFilters':[" ROUTER "]"),
			"neither ads nor self"},
		{"CL-02 rds without a source",
			LISTENER("'rds':{'routeConfigName':'r'},'httpFilters':[" ROUTER "]"),
			"neither ads nor self"},
		{"CL-02 scoped routes",
			LISTENER("'scopedRoutes':{'name':'s'},'httpFilters':[" ROUTER "]"),
			"neither rds nor route_config"},
		{"CL-02 no routes at all", LISTENER("'httpFilters':[" ROUTER "]"),
			"neither rds nor route_config"},
		{"CL-02 inline routes",
			LISTENER("'routeConfig':{'name':'r','virtualHosts':[]},"
				 "'httpFilters':[" ROUTER "]"),
			NULL},
		{"CL-02 bad inline routes",
			LISTENER("'routeConfig':{'virtualHosts':[{'name':'v'}]},"
				 "'httpFilters':[" ROUTER "]"),
			"route_config: virtual host \"v\": no domains"},
		{"CL-02 something else in api_listener",
			"{'name':'l','apiListener':{'apiListener':{'@type':'" ROUTER_TYPE "'}}}",
			"no HttpConnectionManager"},
		{"CL-02 empty api_listener", "{'name':'l','apiListener':{}}",
			"api_listener: empty"},
		{"DM-08 socket listener",
			"{'name':'l','address':{'socketAddress':{'address':'0.0.0.0','portValue':1}"
			"}}",
			NULL},
		{"neither", "{'name':'l'}", "neither api_listener nor address"},
		{"FLT-01 no filters", FILTERS(""), "there is no router"},
		{"FLT-01 filter without a name",
			FILTERS("{'typedConfig':{'@type':'" ROUTER_TYPE "'}}"), "no name"},
		{"FLT-01 one name twice", FILTERS("{'name':'router','isOptional':true}," ROUTER),
			"\"router\" is there twice"},
		{"FLT-02 unknown filter",
			FILTERS("{'name':'x','typedConfig':{'@type':'" COOKIE_TYPE "'}}," ROUTER),
			"http filter \"x\": type \"" COOKIE_TYPE "\" is not supported"},
		{"FLT-02 unknown optional filter",
			FILTERS("{'name':'x','isOptional':true,"
				"'typedConfig':{'@type':'" COOKIE_TYPE "'}}," ROUTER),
			NULL},
		{"FLT-02 filter without config", FILTERS("{'name':'x'}," ROUTER),
			"no typed_config"},
		{"FLT-03 router, then an unknown optional one",
			FILTERS(ROUTER ",{'name':'x','isOptional':true,"
				       "'typedConfig':{'@type':'" COOKIE_TYPE "'}}"),
			NULL},
		{"FLT-03 only an unknown optional one",
			FILTERS("{'name':'x','isOptional':true,"
				"'typedConfig':{'@type':'" COOKIE_TYPE "'}}"),
			"there is no router"},
		{"FLT-03 two routers",
			FILTERS("{'name':'first','typedConfig':{'@type':'" ROUTER_TYPE
				"'}}," ROUTER),
			"not the last one"},
		{"FLT-04 router as TypedStruct",
			FILTERS("{'name':'r','typedConfig':{'@type':"
				"'type.googleapis.com/xds.type.v3.TypedStruct',"
				"'typeUrl':'" ROUTER_TYPE "'}}"),
			NULL},
		{"FLT-04 router as udpa TypedStruct",
			FILTERS("{'name':'r','typedConfig':{'@type':"
				"'type.googleapis.com/udpa.type.v1.TypedStruct',"
				"'typeUrl':'" ROUTER_TYPE "'}}"),
			NULL},
		{"FLT-10 xff_num_trusted_hops",
			LISTENER(RDS ",'xffNumTrustedHops':1,'httpFilters':[" ROUTER "]"),
			"xff_num_trusted_hops"},
		{"FLT-10 original_ip_detection_extensions",
			LISTENER(RDS ",'originalIpDetectionExtensions':[{'name':'x'}],"
				     "'httpFilters':[" ROUTER "]"),
			"original_ip_detection_extensions"},
	};
	RUN_ROWS(&res_type_listener, rows);
}

#define VHOST(domains, routes)                                                                     \
	"{'name':'r','virtualHosts':[{'name':'v','domains':[" domains "],'routes':[" routes "]}]}"
#define ROUTE(match, action) VHOST("'*'", "{'match':{" match "}," action "}")
#define TO_C "'route':{'cluster':'c'}"
#define WEIGHTED(x) ROUTE("'prefix':''", "'route':{'weightedClusters':{" x "}}")

static void routes(void **state)
{
	static const struct row rows[] = {
		{"plain", ROUTE("'prefix':'/'", TO_C), NULL},
		{"V05 no virtual hosts", "{'name':'r'}", NULL},
		{"V05 no routes", VHOST("'*'", ""), NULL},
		{"VH-07 no domains", VHOST("", ""), "virtual host \"v\": no domains"},
		{"VH-07 empty domain", VHOST("'a',''", ""), "an empty domain"},
		{"VH-07 star in the middle", VHOST("'a*b'", ""), "only at the start or the end"},
		{"VH-07 stars at both ends", VHOST("'*a*','**'", ""), NULL},
		{"V01 no match", VHOST("'*'", "{" TO_C "}"), "route 0: no match"},
		{"P03 no path specifier", ROUTE("'caseSensitive':true", TO_C), "no path specifier"},
		{"P08 connect_matcher", ROUTE("'connectMatcher':{}", TO_C), "connect_matcher"},
		{"P08 path_separated_prefix", ROUTE("'pathSeparatedPrefix':'/a'", TO_C),
			"path_separated_prefix"},
		{"P08 path_match_policy", ROUTE("'pathMatchPolicy':{'name':'x'}", TO_C),
			"path_match_policy"},
		{"O06 query_parameters, with a bad matcher beside",
			ROUTE("'connectMatcher':{},'queryParameters':[{'name':'q'}]", TO_C), NULL},
		{"O07 grpc is ignored", ROUTE("'prefix':'/','grpc':{}", TO_C), NULL},
		{"O08 tls_context is ignored", ROUTE("'prefix':'/','tlsContext':{}", TO_C), NULL},
		{"V02 cluster_header", ROUTE("'prefix':'/'", "'route':{'clusterHeader':'x'}"),
			NULL},
		{"V02 no specifier", ROUTE("'prefix':'/'", "'route':{}"), NULL},
		{"V03 match is checked before the specifier",
			ROUTE("'connectMatcher':{}", "'route':{'clusterHeader':'x'}"),
			"connect_matcher"},
		{"V04 redirect", ROUTE("'prefix':'/'", "'redirect':{'hostRedirect':'x'}"), NULL},
		{"V04 no action", VHOST("'*'", "{'match':{'prefix':'/'}}"), NULL},
		{"V06 plugin without plugin support",
			ROUTE("'prefix':'/'", "'route':{'clusterSpecifierPlugin':'p'}"), NULL},
		{"V07 unused virtual hosts are checked too",
			"{'name':'r','virtualHosts':[{'name':'v','domains':['a']},"
			"{'name':'w','domains':['b'],'routes':[{}]}]}",
			"virtual host \"w\": route 0"},
		{"V08 duration",
			ROUTE("'prefix':'/'", "'route':{'cluster':'c','maxStreamDuration':"
					      "{'maxStreamDuration':'-1s'}}"),
			"max_stream_duration: seconds"},
		{"W05 empty cluster name", ROUTE("'prefix':'/'", "'route':{'cluster':''}"),
			"no name"},
		{"W04 no clusters", WEIGHTED("'clusters':[]"), "no clusters"},
		{"W04 all zero", WEIGHTED("'clusters':[{'name':'a','weight':0}]"), "add up to 0"},
		{"W04 some zero",
			WEIGHTED("'clusters':[{'name':'a','weight':0},{'name':'b','weight':7}]"),
			NULL},
		{"W05 no weight", WEIGHTED("'clusters':[{'name':'a'}]"), "[0]: no weight"},
		{"W05 no name", WEIGHTED("'clusters':[{'weight':1}]"), "[0]: no cluster name"},
		{"W03 just 2^32-1",
			WEIGHTED("'clusters':[{'name':'a','weight':4294967294},"
				 "{'name':'b','weight':1}]"),
			NULL},
		{"W03 above 2^32-1",
			WEIGHTED("'clusters':[{'name':'a','weight':4294967295},"
				 "{'name':'b','weight':1}]"),
			"add up to 4294967296"},
		{"D6 total_weight equal",
			WEIGHTED("'clusters':[{'name':'a','weight':9}],'totalWeight':9"), NULL},
		{"D6 total_weight unequal",
			WEIGHTED("'clusters':[{'name':'a','weight':9}],'totalWeight':100"),
			"total_weight is 100"},
		{"W07 a cluster twice",
			WEIGHTED("'clusters':[{'name':'a','weight':9},{'name':'a','weight':1}]"),
			NULL},
		{"CL-07 what we do not know is skipped",
			ROUTE("'prefix':'/'", "'route':{'cluster':'c','prefixRewrite':'/x',"
					      "'timeout':'3s','hashPolicy':[{}]}"),
			NULL},
	};
	RUN_ROWS(&res_type_route_config, rows);
}

#define EDS "'type':'EDS','edsClusterConfig':{'edsConfig':{'ads':{}}}"
#define CLUSTER(x) "{'name':'c'," x "}"
#define POLICIES(list) CLUSTER(EDS ",'loadBalancingPolicy':{'policies':[" list "]}")
#define LB "type.googleapis.com/envoy.extensions.load_balancing_policies."
#define POLICY(config) "{'typedExtensionConfig':{'name':'x','typedConfig':{" config "}}}"
#define ROUND_ROBIN POLICY("'@type':'" LB "round_robin.v3.RoundRobin'")
#define PICK_FIRST POLICY("'@type':'" LB "pick_first.v3.PickFirst'")
#define WRR(list)                                                                                  \
	POLICY("'@type':'" LB "wrr_locality.v3.WrrLocality',"                                      \
	       "'endpointPickingPolicy':{'policies':[" list "]}")
#define OPTIONS_TYPE "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
#define UPSTREAM(config) CLUSTER(EDS ",'upstreamConfig':{'name':'u','typedConfig':{" config "}}")
#define IDLE(duration)                                                                             \
	UPSTREAM("'@type':'" OPTIONS_TYPE "','commonHttpProtocolOptions':{'idleTimeout':" duration \
		 "}")
#define TLS_TYPE "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"

static void clusters(void **state)
{
	static const struct row rows[] = {
		{"CL-03 EDS over ads", CLUSTER(EDS), NULL},
		{"CL-03 EDS over self",
			CLUSTER("'type':'EDS','edsClusterConfig':{'edsConfig':{'self':{}}}"), NULL},
		{"CL-03 EDS from a file",
			CLUSTER("'type':'EDS','edsClusterConfig':{'edsConfig':{'path':'/x'}}"),
			"neither ads nor self"},
		{"CL-03 EDS without config", CLUSTER("'type':'EDS'"), "neither ads nor self"},
		{"CL-03 STATIC", CLUSTER("'type':'STATIC'"), "STATIC is not supported"},
		{"CL-03 no type is STATIC", CLUSTER("'lbPolicy':'ROUND_ROBIN'"), "STATIC"},
		{"CL-03 STRICT_DNS", CLUSTER("'type':'STRICT_DNS'"), "STRICT_DNS is not supported"},
		{"not yet: LOGICAL_DNS", CLUSTER("'type':'LOGICAL_DNS'"),
			"LOGICAL_DNS is not supported yet"},
		{"not yet: aggregate",
			CLUSTER("'clusterType':{'name':'envoy.clusters.aggregate','typedConfig':"
				"{'@type':'type.googleapis.com/"
				"envoy.extensions.clusters.aggregate.v3.ClusterConfig',"
				"'clusters':['a']}}"),
			"is not supported yet"},
		{"CL-03 lrs_server self", CLUSTER(EDS ",'lrsServer':{'self':{}}"), NULL},
		{"CL-03 lrs_server ads", CLUSTER(EDS ",'lrsServer':{'ads':{}}"), "lrs_server"},
		{"CL-04 xdstp cluster without a service name",
			"{'name':'xdstp://a/envoy.config.cluster.v3.Cluster/c'," EDS "}",
			"needs a service_name"},
		{"A52 lb_policy LEAST_REQUEST", CLUSTER(EDS ",'lbPolicy':'LEAST_REQUEST'"),
			"LEAST_REQUEST is not supported yet"},
		{"A52 lb_policy MAGLEV", CLUSTER(EDS ",'lbPolicy':'MAGLEV'"),
			"MAGLEV is not supported"},
		{"A52 config beats the enum",
			CLUSTER(EDS ",'lbPolicy':'MAGLEV','loadBalancingPolicy':"
				    "{'policies':[" ROUND_ROBIN "]}"),
			NULL},
		{"A52 LOAD_BALANCING_POLICY_CONFIG without one",
			CLUSTER(EDS ",'lbPolicy':'LOAD_BALANCING_POLICY_CONFIG'"),
			"LOAD_BALANCING_POLICY_CONFIG is not supported"},
		{"A52 first supported one", POLICIES(PICK_FIRST "," WRR(ROUND_ROBIN)), NULL},
		{"A52 none supported", POLICIES(PICK_FIRST), "no supported policy"},
		{"A52 empty list", POLICIES(""), "no supported policy"},
		{"A52 supported but invalid", POLICIES(WRR(PICK_FIRST) "," ROUND_ROBIN),
			"wrr_locality: no supported policy"},
		{"A52 entry without config", POLICIES("{}"), "policies[0]: no typed_config"},
		{"A75 idle_timeout", IDLE("'30s'"), NULL},
		{"CL-08 negative idle_timeout", IDLE("'-1s'"), "idle_timeout: seconds"},
		{"CL-08 other type in upstream_config", UPSTREAM("'@type':'" ROUTER_TYPE "'"),
			"no HttpProtocolOptions"},
		{"TLS is not left out silently",
			CLUSTER(EDS ",'transportSocket':{'name':'tls','typedConfig':"
				    "{'@type':'" TLS_TYPE "','sni':'x'}}"),
			"TLS to backends is not supported yet"},
		{"CL-07 unsupported fields are ignored",
			CLUSTER(EDS ",'connectTimeout':'5s','healthChecks':[{}],"
				    "'perConnectionBufferLimitBytes':1"),
			NULL},
	};
	RUN_ROWS(&res_type_cluster, rows);
}

#define ADDRESS(ip, port) "'address':{'socketAddress':{'address':'" ip "','portValue':" port "}}"
#define EP(ip, port) "{'endpoint':{" ADDRESS(ip, port) "}}"
#define LOCALITY(zone, weight, priority, endpoints)                                                \
	"{'locality':{'zone':'" zone "'},'loadBalancingWeight':" weight ",'priority':" priority    \
	",'lbEndpoints':[" endpoints "]}"
#define CLA(list) "{'clusterName':'e','endpoints':[" list "]}"
#define ONE(endpoint) CLA(LOCALITY("a", "1", "0", endpoint))
#define DROP(x) "{'clusterName':'e','policy':{'dropOverloads':[" x "]}}"

static void endpoints(void **state)
{
	static const struct row rows[] = {
		{"plain", ONE(EP("10.0.0.1", "80")), NULL},
		{"IPv6", ONE(EP("fd00::1", "80")), NULL},
		{"V09 no localities", CLA(""), NULL},
		{"CL-06 locality without endpoints", ONE(""), NULL},
		{"V01 two priorities in any order",
			CLA(LOCALITY("a", "1", "1", "") "," LOCALITY("a", "1", "0", "")), NULL},
		{"V01 gap", CLA(LOCALITY("a", "1", "0", "") "," LOCALITY("a", "1", "2", "")),
			"priority 1 is missing"},
		{"V01 no priority 0", CLA(LOCALITY("a", "1", "1", "")), "priority 0 is missing"},
		{"V01 priority 0 has only weight 0",
			CLA(LOCALITY("a", "0", "0", "") "," LOCALITY("b", "1", "1", "")),
			"priority 0 is missing"},
		{"V01 absurd priority",
			CLA(LOCALITY("a", "1", "0", "") "," LOCALITY("b", "1", "4294967295", "")),
			"priority 1 is missing"},
		{"CL-05 weight 0 is skipped, whatever is in it",
			CLA(LOCALITY("a", "0", "9", EP("nonsense", "0"))), NULL},
		{"CL-05 no weight is skipped",
			CLA("{'locality':{},'lbEndpoints':[" EP("nonsense", "0") "]}"), NULL},
		{"V02 locality twice",
			CLA(LOCALITY("a", "1", "0", "") "," LOCALITY("a", "1", "0", "")),
			"/a/ is there twice"},
		{"V02 locality in two priorities",
			CLA(LOCALITY("a", "1", "0", "") "," LOCALITY("a", "1", "1", "")), NULL},
		{"V03 just 2^32-1",
			CLA(LOCALITY("a", "4294967294", "0", "") "," LOCALITY("b", "1", "0", "")),
			NULL},
		{"V03 above",
			CLA(LOCALITY("a", "4294967295", "0", "") "," LOCALITY("b", "1", "0", "")),
			"add up to 4294967296"},
		{"V03 each priority by itself",
			CLA(LOCALITY("a", "4294967295", "0", "") "," LOCALITY(
				"b", "4294967295", "1", "")),
			NULL},
		{"V04 address twice in a locality",
			ONE(EP("10.0.0.1", "80") "," EP("10.0.0.1", "80")),
			"10.0.0.1:80 is there twice"},
		{"V04 address twice in two priorities",
			CLA(LOCALITY("a", "1", "0", EP("10.0.0.1", "80")) "," LOCALITY(
				"b", "1", "1", EP("10.0.0.1", "80"))),
			"is there twice"},
		{"V04 other port", ONE(EP("10.0.0.1", "80") "," EP("10.0.0.1", "81")), NULL},
		{"V04 as additional address",
			ONE(EP("10.0.0.1", "80") ",{'endpoint':{" ADDRESS("10.0.0.2",
				"80") ",'additionalAddresses':[{" ADDRESS("10.0.0.1", "80") "}]}}"),
			"10.0.0.1:80 is there twice"},
		{"V05 no locality", CLA("{'loadBalancingWeight':1,'lbEndpoints':[]}"),
			"no locality"},
		{"V05 no endpoint", ONE("{}"), "lb_endpoints[0]: no endpoint"},
		{"V05 no address", ONE("{'endpoint':{}}"), "no socket_address"},
		{"V05 pipe", ONE("{'endpoint':{'address':{'pipe':{'path':'/x'}}}}"),
			"no socket_address"},
		{"V05 no port",
			ONE("{'endpoint':{'address':{'socketAddress':{'address':'10.0.0.1'}}}}"),
			"no port_value"},
		{"V05 port too large", ONE(EP("10.0.0.1", "65536")), "port 65536"},
		{"V05 port 0", ONE(EP("10.0.0.1", "0")), "port 0"},
		{"V05 name", ONE(EP("localhost", "80")), "\"localhost\" is no IP address"},
		{"V05 additional address without an address",
			ONE("{'endpoint':{" ADDRESS(
				"10.0.0.2", "80") ",'additionalAddresses':[{}]}}"),
			"no socket_address"},
		{"V06 endpoint weight 0",
			ONE("{'loadBalancingWeight':0,'endpoint':{" ADDRESS("10.0.0.2", "80") "}}"),
			"load_balancing_weight"},
		{"V06 endpoint weights add up too high",
			ONE("{'loadBalancingWeight':4294967295,'endpoint':{" ADDRESS(
				"10.0.0.2", "80") "}}," EP("10.0.0.3", "80")),
			"endpoint weights add up to 4294967296"},
		{"V08 drop", DROP("{'category':'c','dropPercentage':{'numerator':5}}"), NULL},
		{"V08 drop without category", DROP("{'dropPercentage':{'numerator':5}}"),
			"drop_overloads[0]: no category"},
		{"V08 drop without percentage", DROP("{'category':'c'}"), "no drop_percentage"},
		{"V08 unknown denominator",
			DROP("{'category':'c','dropPercentage':{'numerator':5,'denominator':9}}"),
			"denominator 9"},
	};
	RUN_ROWS(&res_type_endpoints, rows);
}

RUN_SUITE("res/decode", cmocka_unit_test(listeners), cmocka_unit_test(routes),
	cmocka_unit_test(clusters), cmocka_unit_test(endpoints))
