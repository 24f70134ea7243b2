// SPDX-License-Identifier: Apache-2.0
// Which actions and policies of routes are accepted, which are refused with what words, and which
// routes are ignored (A28-V*, A28-W*, A31-*, HP-*, RT-*, AR-*).
#include "ctrl/res/route.h"
#include "ctrl/xds/type.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/res/json.h"
#include "tests/unit/ctrl/res/rows.h"

#define NO_TLS "virtual host \"v\": require_tls is ignored: requests in the clear are served"
#define UNSUPPORTED ROUTE_0_WARNS "its action is not supported: requests that match it fail"

static void actions(void **state)
{
	static const struct res_row rows[] = {
		{"A28-V02 cluster_header", ACTION("'clusterHeader':'x'"),
			.ignored = "cluster_header is not supported"},
		{"A28-V02 no specifier", ACTION(""),
			.ignored = "no cluster specifier that is known"},
		{"A28-V02 inline plugin", ACTION("'inlineClusterSpecifierPlugin':{}"),
			.ignored = "inline_cluster_specifier_plugin is not supported"},
		{"A28-V03 match is checked before the specifier",
			ROUTE("'connectMatcher':{}", "'route':{'clusterHeader':'x'}"),
			ROUTE_0 "match: connect_matcher: not supported"},
		{"A28-V04 redirect", ROUTE("'prefix':'/'", "'redirect':{'hostRedirect':'x'}"),
			.warning = UNSUPPORTED},
		{"A28-V04 direct_response",
			ROUTE("'prefix':'/'", "'directResponse':{'status':200}"),
			.warning = UNSUPPORTED},
		{"A28-V04 filter_action", ROUTE("'prefix':'/'", "'filterAction':{}"),
			.warning = UNSUPPORTED},
		{"A28-V04 non_forwarding_action", ROUTE("'prefix':'/'", "'nonForwardingAction':{}"),
			.warning = UNSUPPORTED},
		{"A28-V04 no action", VHOST("'*'", "{'match':{'prefix':'/'}}"),
			.warning = UNSUPPORTED},
		{"A28-R06 cluster_not_found_response_code is not read",
			WITH("'clusterNotFoundResponseCode':'NOT_FOUND'")},
		{"A31-T06 timeout is not read", WITH("'timeout':'-15s'")},
		{"TH-98 idle_timeout", WITH("'idleTimeout':'315576000000s'")},
		{"TH-98 idle_timeout of 0", WITH("'idleTimeout':'0s'")},
		{"TH-98 negative idle_timeout", WITH("'idleTimeout':'-3s'"),
			ROUTE_0 "route: idle_timeout: seconds must be in [0, 315576000000]"},
		{"TH-98 is checked though the route will be ignored",
			ACTION("'idleTimeout':'-0.5s'"),
			"route: idle_timeout: nanos must be in [0, 999999999]"},
		{"A28-V08 max_stream_duration",
			WITH("'maxStreamDuration':{'maxStreamDuration':'315576000000s',"
			     "'grpcTimeoutHeaderMax':'0.999999999s'}")},
		{"A28-V08 negative max_stream_duration",
			WITH("'maxStreamDuration':{'maxStreamDuration':'-1s'}"),
			ROUTE_0 "route: max_stream_duration: max_stream_duration: seconds must be "
				"in [0, 315576000000]"},
		{"A28-V08 negative nanoseconds",
			WITH("'maxStreamDuration':{'maxStreamDuration':'-0.5s'}"),
			ROUTE_0 "route: max_stream_duration: max_stream_duration: nanos must be in "
				"[0, 999999999]"},
		{"A28-V08 negative grpc_timeout_header_max",
			WITH("'maxStreamDuration':{'grpcTimeoutHeaderMax':'-1s'}"),
			ROUTE_0 "route: max_stream_duration: grpc_timeout_header_max: seconds must "
				"be in [0, 315576000000]"},
		{"A31-T06 grpc_timeout_header_offset is not read",
			WITH("'maxStreamDuration':{'grpcTimeoutHeaderOffset':'-1s'}")},
		{"A28-V08 is checked though the route will be ignored",
			ACTION("'maxStreamDuration':{'maxStreamDuration':'-1s'}"),
			"route: max_stream_duration"},
		{"AR-02 auto_host_rewrite", WITH("'autoHostRewrite':true")},
		{"AR-05 host_rewrite_literal", WITH("'hostRewriteLiteral':'x'"),
			.warning = ROUTE_0_WARNS
			"route.host_rewrite_literal and host_rewrite_header are ignored"},
		{"AR-05 host_rewrite_header", WITH("'hostRewriteHeader':'x'"),
			.warning = ROUTE_0_WARNS
			"route.host_rewrite_literal and host_rewrite_header are ignored"},
		{"CL-07 prefix_rewrite", WITH("'prefixRewrite':'/x'"),
			.warning =
				ROUTE_0_WARNS "route.prefix_rewrite and regex_rewrite are ignored"},
		{"request_mirror_policies of a route",
			WITH("'requestMirrorPolicies':[{'cluster':'x'}]"),
			.warning = ROUTE_0_WARNS "route.request_mirror_policies are ignored"},
		{"request_mirror_policies of a virtual host",
			VHOST_AND("'*'", "", ",'requestMirrorPolicies':[{'cluster':'x'}]"),
			.warning = "virtual host \"v\": request_mirror_policies are ignored"},
		{"request_mirror_policies of all",
			"{'name':'r','requestMirrorPolicies':[{'cluster':'x'}]}",
			.warning = "request_mirror_policies are ignored"},
		{"require_tls NONE", VHOST_AND("'*'", "", ",'requireTls':'NONE'")},
		{"require_tls ALL", VHOST_AND("'*'", "", ",'requireTls':'ALL'"), .warning = NO_TLS},
		{"require_tls EXTERNAL_ONLY", VHOST_AND("'*'", "", ",'requireTls':'EXTERNAL_ONLY'"),
			.warning = NO_TLS},
	};
	RUN_ROWS(&res_type_route_config, rows);
}

#define PLUGINS(list, name)                                                                        \
	"{'name':'r','clusterSpecifierPlugins':[" list "],'virtualHosts':[{'name':'v',"            \
	"'domains':['*'],'routes':[{'match':{'prefix':'/'},"                                       \
	"'route':{'clusterSpecifierPlugin':'" name "'}}]}]}"
#define PLUGIN(name, more)                                                                         \
	"{'extension':{'name':'" name "','typedConfig':" ANY(COOKIE_TYPE, "") "}" more "}"
#define OPTIONAL ",'isOptional':true"

static void plugins(void **state)
{
	static const struct res_row rows[] = {
		{"A28-V06 not declared", PLUGINS("", "p"),
			ROUTE_0 "route: cluster_specifier_plugin: \"p\" is not declared"},
		{"A28-V06 unknown type", PLUGINS(PLUGIN("p", ""), "p"),
			"=cluster_specifier_plugins[0]: type \"" URL COOKIE_TYPE
			"\" is not supported"},
		{"A28-V06 unknown type, not used", PLUGINS(PLUGIN("p", ""), "q"),
			"cluster_specifier_plugins[0]: type"},
		{"A28-V06 optional", PLUGINS(PLUGIN("p", OPTIONAL), "p"),
			.ignored = "its cluster_specifier_plugin is optional and not supported"},
		{"A28-V06 another one is optional", PLUGINS(PLUGIN("p", OPTIONAL), "q"),
			ROUTE_0 "route: cluster_specifier_plugin: \"q\" is not declared"},
		{"A28-V06 one name twice",
			PLUGINS(PLUGIN("p", OPTIONAL) "," PLUGIN("p", OPTIONAL), "p"),
			"=cluster_specifier_plugins[1]: the name \"p\" is a duplicate"},
		{"A28-V06 no extension", PLUGINS("{'isOptional':true}", "p"),
			"=cluster_specifier_plugins[0]: no extension"},
		{"A28-V06 no name", PLUGINS(PLUGIN("", OPTIONAL), "p"),
			"=cluster_specifier_plugins[0]: extension.name: empty"},
		{"A28-V06 no typed_config",
			PLUGINS("{'extension':{'name':'p'},'isOptional':true}", "p"),
			"=cluster_specifier_plugins[0]: no extension.typed_config"},
	};
	RUN_ROWS(&res_type_route_config, rows);
}

#define IN_WEIGHTED ROUTE_0 "route: weighted_clusters: "

static void weighted_clusters(void **state)
{
	static const struct res_row rows[] = {
		{"A28-W05 empty cluster name", ACTION("'cluster':''"),
			ROUTE_0 "route: cluster: no name"},
		{"A28-W04 no clusters", WEIGHTED("'clusters':[]"), IN_WEIGHTED "no clusters"},
		{"A28-W04 all zero", WEIGHTED("'clusters':[{'name':'a','weight':0}]"),
			IN_WEIGHTED "weights add up to 0"},
		{"A28-W04 some zero",
			WEIGHTED("'clusters':[{'name':'a','weight':0},{'name':'b','weight':7}]")},
		{"A28-W05 no weight", WEIGHTED("'clusters':[{'name':'a'}]"),
			IN_WEIGHTED "clusters[0]: no weight"},
		{"A28-W05 no name", WEIGHTED("'clusters':[{'weight':1}]"),
			IN_WEIGHTED "clusters[0]: no cluster name"},
		{"A28-W09 cluster_header is no name",
			WEIGHTED("'clusters':[{'clusterHeader':'x','weight':1}]"),
			IN_WEIGHTED "clusters[0]: no cluster name"},
		{"A28-W03 just 2^32-1", WEIGHTED("'clusters':[{'name':'a','weight':4294967294},"
						 "{'name':'b','weight':1}]")},
		{"A28-W03 above 2^32-1",
			WEIGHTED("'clusters':[{'name':'a','weight':4294967295},"
				 "{'name':'b','weight':1}]"),
			IN_WEIGHTED "weights add up to 4294967296"},
		{"A28-W03 any sum where total_weight is unset",
			WEIGHTED("'clusters':[{'name':'a','weight':7}]")},
		{"D6 total_weight equal",
			WEIGHTED("'clusters':[{'name':'a','weight':9}],'totalWeight':9")},
		{"D6 total_weight 0", WEIGHTED("'clusters':[{'name':'a','weight':9}],"
					       "'totalWeight':0")},
		{"total_weight unequal",
			WEIGHTED("'clusters':[{'name':'a','weight':9}],'totalWeight':100"),
			.warning = ROUTE_0_WARNS
			"route.weighted_clusters: total_weight is not the sum of the weights, "
			"which counts"},
		{"A28-W07 a cluster twice",
			WEIGHTED("'clusters':[{'name':'a','weight':9},{'name':'a','weight':1}]")},
	};
	RUN_ROWS(&res_type_route_config, rows);
}

#define HASH(policy) WITH("'hashPolicy':[" policy "]")
#define HASH_REWRITE(rewrite) HASH("{'header':{'headerName':'x','regexRewrite':{" rewrite "}}}")
#define HASH_0 ROUTE_0 "route: hash_policy[0]: "
#define NO_HASH ROUTE_0_WARNS "route.hash_policy: one of a kind that is not supported is ignored"

static void hash_policies(void **state)
{
	static const struct res_row rows[] = {
		{"HP-01 header", HASH("{'header':{'headerName':'x'}}")},
		{"HP-03 empty header_name", HASH("{'header':{}}"),
			HASH_0 "header.header_name: empty"},
		{"HP-03 regex_rewrite",
			HASH_REWRITE("'pattern':{'regex':'(a)b'},'substitution':'\\\\1'")},
		{"HP-03 regex_rewrite without a pattern", HASH_REWRITE("'substitution':'x'"),
			HASH_0 "header.regex_rewrite.pattern.regex: empty"},
		{"HP-03 regex_rewrite with an empty pattern", HASH_REWRITE("'pattern':{}"),
			HASH_0 "header.regex_rewrite.pattern.regex: empty"},
		{"HP-03 regex_rewrite with a bad pattern", HASH_REWRITE("'pattern':{'regex':'('}"),
			"route: hash_policy[0]: header.regex_rewrite: "},
		{"HP-03 regex_rewrite with a group that is not there",
			HASH_REWRITE("'pattern':{'regex':'a'},'substitution':'\\\\1'"),
			"route: hash_policy[0]: header.regex_rewrite: "},
		{"HP-03 the second of two", HASH("{'header':{'headerName':'x'}},{'header':{}}"),
			ROUTE_0 "route: hash_policy[1]: header.header_name: empty"},
		{"HP-05 terminal", HASH("{'header':{'headerName':'x'},'terminal':true}")},
		{"HP-07 cookie", HASH("{'cookie':{'name':'x'}}"), .warning = NO_HASH},
		{"HP-07 connection_properties", HASH("{'connectionProperties':{'sourceIp':true}}"),
			.warning = NO_HASH},
		{"HP-07 query_parameter", HASH("{'queryParameter':{'name':'q'}}"),
			.warning = NO_HASH},
		{"HP-07 unknown", HASH("{}"), .warning = NO_HASH},
		{"HP-07 another filter_state", HASH("{'filterState':{'key':'k'}}"),
			.warning = NO_HASH},
		{"HP-08 channel", HASH("{'filterState':{'key':'io.grpc.channel_id'}}")},
		{"A28-V03 is checked though the route will be ignored",
			ACTION("'hashPolicy':[{'header':{}}]"), HASH_0 "header.header_name: empty"},
	};
	RUN_ROWS(&res_type_route_config, rows);
}

#define RETRY(policy) WITH("'retryPolicy':{" policy "}")
#define BACK_OFF(back_off) RETRY("'retryOn':'internal','retryBackOff':{" back_off "}")
#define RETRY_0 ROUTE_0 "route: retry_policy."
#define IGNORED_CONDITION ROUTE_0_WARNS "retry_policy.retry_on: ignored: 5xx"

static void retry_policies(void **state)
{
	static const struct res_row rows[] = {
		{"RT-01 all", RETRY("'retryOn':'cancelled,deadline-exceeded,internal,"
				    "resource-exhausted,unavailable'")},
		{"RT-01 blanks and case", RETRY("'retryOn':' Cancelled ,\\tINTERNAL '")},
		{"RT-01 others", RETRY("'retryOn':'5xx'"), .warning = IGNORED_CONDITION},
		{"RT-01 empty ones", RETRY("'retryOn':',,'")},
		{"RT-03 no number", RETRY("'retryOn':'internal'")},
		{"RT-03 none", RETRY("'retryOn':'internal','numRetries':0"),
			RETRY_0 "num_retries: must be above 0"},
		{"RT-03 none, with nothing to retry", RETRY("'numRetries':0"),
			RETRY_0 "num_retries: must be above 0"},
		{"RT-03 many", RETRY("'retryOn':'internal','numRetries':4294967295")},
		{"RT-04 both", BACK_OFF("'baseInterval':'1s','maxInterval':'1s'")},
		{"RT-04 base alone", BACK_OFF("'baseInterval':'1s'")},
		{"RT-04 longest base", BACK_OFF("'baseInterval':'315576000000s'")},
		{"RT-04 no base", BACK_OFF("'maxInterval':'1s'"),
			RETRY_0 "retry_back_off: base_interval: missing"},
		{"RT-04 base 0", BACK_OFF("'baseInterval':'0s'"),
			RETRY_0 "retry_back_off: base_interval: must be above 0"},
		{"RT-04 negative base", BACK_OFF("'baseInterval':'-1s'"),
			RETRY_0 "retry_back_off: base_interval: seconds must be in [0, "
				"315576000000]"},
		{"RT-04 max 0", BACK_OFF("'baseInterval':'1s','maxInterval':'0s'"),
			RETRY_0 "retry_back_off: max_interval: must be above 0"},
		{"RT-04 negative max", BACK_OFF("'baseInterval':'1s','maxInterval':'-0.1s'"),
			RETRY_0 "retry_back_off: max_interval: nanos must be in [0, 999999999]"},
		{"RT-04 max below base", BACK_OFF("'baseInterval':'2s','maxInterval':'1s'"),
			RETRY_0 "retry_back_off: max_interval: below base_interval"},
		{"RT-13 per_try_timeout and retriable_status_codes are not read",
			RETRY("'retryOn':'internal','perTryTimeout':'-1s',"
			      "'retriableStatusCodes':[500]")},
		{"RT-02 of a virtual host", VHOST_AND("'*'", "", ",'retryPolicy':{'numRetries':0}"),
			"=virtual host \"v\": retry_policy.num_retries: must be above 0"},
	};
	RUN_ROWS(&res_type_route_config, rows);
}

RUN_SUITE("res/route_action", cmocka_unit_test(actions), cmocka_unit_test(plugins),
	cmocka_unit_test(weighted_clusters), cmocka_unit_test(hash_policies),
	cmocka_unit_test(retry_policies))
