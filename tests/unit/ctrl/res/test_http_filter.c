// SPDX-License-Identifier: Apache-2.0
// Which HTTP filters and overrides of them are accepted and which are refused with what words
// (FLT-*, FI-*, SA-*).
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "ctrl/xds/type.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/res/json.h"
#include "tests/unit/ctrl/res/rows.h"

#define OPTIONAL ",'isOptional':true"
#define UNKNOWN ANY(COOKIE_TYPE, "")

static void chains(void **state)
{
	static const struct res_row rows[] = {
		{"FLT-01 no filters", FILTERS(""),
			"=api_listener: http_filters: there is no router"},
		{"FLT-01 filter without a name",
			FILTERS("{'typedConfig':" ANY(ROUTER_TYPE, "") "}"),
			"=api_listener: http_filters[0]: no name"},
		{"FLT-01 dropped filter without a name", FILTERS("{'isOptional':true}," ROUTER),
			"=api_listener: http_filters[0]: no name"},
		{"FLT-01 one name twice", FILTERS("{'name':'router','isOptional':true}," ROUTER),
			"=api_listener: http_filters: the name \"router\" is a duplicate"},
		{"FLT-02 unknown filter", FILTER(UNKNOWN),
			FILTER_F "type \"" URL COOKIE_TYPE "\" is not supported"},
		{"FLT-02 unknown optional filter", FILTER_AND(UNKNOWN, OPTIONAL),
			.warning = "http filter \"f\": type \"" URL COOKIE_TYPE
				   "\" is not supported, and the filter optional: left out"},
		{"FLT-02 filter without config", FILTERS("{'name':'f'}," ROUTER),
			FILTER_F "no typed_config"},
		{"FLT-02 optional filter without config",
			FILTERS("{'name':'f','isOptional':true}," ROUTER)},
		{"FLT-02 filter by discovery", FILTERS("{'name':'f','configDiscovery':{}}," ROUTER),
			FILTER_F "no typed_config"},
		{"FLT-02 known type with bad config, though optional",
			FILTER_AND(ANY(FAULT_TYPE, ",'abort':{'httpStatus':1}"), OPTIONAL),
			FILTER_F "abort: http_status: 1 is not in [200, 600)"},
		{"FLT-03 router, then an unknown optional one",
			FILTERS(ROUTER ",{'name':'f','isOptional':true}")},
		{"FLT-03 only an unknown optional one", FILTERS("{'name':'f','isOptional':true}"),
			"=api_listener: http_filters: there is no router"},
		{"FLT-03 no router at the end",
			FILTERS("{'name':'f','typedConfig':" ANY(FAULT_TYPE, "") "}"),
			"=api_listener: http_filters: there is no router"},
		{"FLT-03 two routers",
			FILTERS("{'name':'f','typedConfig':" ANY(ROUTER_TYPE, "") "}," ROUTER),
			"=api_listener: http_filters: the router is not the last one"},
		{"FLT-03 a filter behind the router",
			FILTERS(ROUTER ",{'name':'f','typedConfig':" ANY(FAULT_TYPE, "") "}"),
			"=api_listener: http_filters: the router is not the last one"},
		{"FLT-04 router as TypedStruct",
			FILTERS("{'name':'r','typedConfig':" STRUCT_ANY(
				TYPED_STRUCT, ROUTER_TYPE, "'dynamicStats':true") "}")},
		{"FLT-04 router as old TypedStruct",
			FILTERS("{'name':'r','typedConfig':" STRUCT_ANY(
				OLD_TYPED_STRUCT, ROUTER_TYPE, "") "}")},
		{"FLT-04 fault as TypedStruct",
			FILTER(STRUCT_ANY(TYPED_STRUCT, FAULT_TYPE,
				"'abort':{'grpc_status':5,'percentage':{'numerator':7}}"))},
		{"FLT-04 bad fault as TypedStruct",
			FILTER(STRUCT_ANY(TYPED_STRUCT, FAULT_TYPE, "'abort':{'httpStatus':99}")),
			FILTER_F "abort: http_status: 99 is not in [200, 600)"},
		{"FLT-04 no fault at all as TypedStruct",
			FILTER(STRUCT_ANY(TYPED_STRUCT, FAULT_TYPE, "'abort':7")),
			FILTER_F "abort: not an object"},
		{"FLT-04 TypedStruct without a value",
			FILTER(ANY(TYPED_STRUCT, ",'typeUrl':'" URL FAULT_TYPE "'"))},
		{"FLT-04 TypedStruct of an unknown type",
			FILTER(STRUCT_ANY(TYPED_STRUCT, COOKIE_TYPE, "")),
			FILTER_F "type \"" URL COOKIE_TYPE "\" is not supported"},
		{"FLT-04 TypedStruct of no type", FILTER(ANY(TYPED_STRUCT, "")),
			FILTER_F "type \"\" is not supported"},
		{"FLT-08 override's type as a filter", FILTER(ANY(PER_ROUTE_TYPE, "")),
			FILTER_F "type \"" URL PER_ROUTE_TYPE "\" is one for overrides"},
		{"FLT-09 router's fields are ignored",
			FILTERS("{'name':'r','typedConfig':" ANY(
				ROUTER_TYPE, ",'suppressEnvoyHeaders':true") "}")},
		{"FLT-09 disabled filter",
			FILTER_AND(ANY(FAULT_TYPE, ",'abort':{'httpStatus':503}"),
				",'disabled':true")},
		{"FLT-09 disabled router",
			FILTERS("{'name':'f','disabled':true,'typedConfig':" ANY(
				ROUTER_TYPE, "") "}"),
			FILTER_F "disabled: the router cannot be disabled"},
	};
	RUN_ROWS(&res_type_listener, rows);
}

#define FAULT(fields) FILTER(ANY(FAULT_TYPE, "," fields))
#define SELECTORS "fault: upstream_cluster, headers and downstream_nodes are ignored"

static void faults(void **state)
{
	static const struct res_row rows[] = {
		{"FI-01 nothing", FILTER(ANY(FAULT_TYPE, ""))},
		{"FI-01 fixed delay", FAULT("'delay':{'fixedDelay':'1.5s'}")},
		{"FI-01 negative delay", FAULT("'delay':{'fixedDelay':'-1s'}"),
			FILTER_F "delay: fixed_delay: seconds must be in [0, 315576000000]"},
		{"FI-01 header delay", FAULT("'delay':{'headerDelay':{}}")},
		{"FI-01 no kind of delay", FAULT("'delay':{'percentage':{'numerator':1}}")},
		{"FI-03 unknown denominator of a delay",
			FAULT("'delay':{'percentage':{'numerator':1,'denominator':4}}"),
			FILTER_F "delay: percentage: unknown denominator 4"},
		{"FI-03 unknown denominator of an abort",
			FAULT("'abort':{'percentage':{'numerator':1,'denominator':4}}"),
			FILTER_F "abort: percentage: unknown denominator 4"},
		{"FI-05 grpc_status 0", FAULT("'abort':{'grpcStatus':0}")},
		{"FI-05 grpc_status above 16", FAULT("'abort':{'grpcStatus':17}")},
		{"FI-06 header abort", FAULT("'abort':{'headerAbort':{}}")},
		{"FI-08 max_active_faults", FAULT("'maxActiveFaults':0")},
		{"FI-09 http_status 200", FAULT("'abort':{'httpStatus':200}")},
		{"FI-09 http_status 599", FAULT("'abort':{'httpStatus':599}")},
		{"FI-09 http_status 199", FAULT("'abort':{'httpStatus':199}"),
			FILTER_F "abort: http_status: 199 is not in [200, 600)"},
		{"FI-09 http_status 600", FAULT("'abort':{'httpStatus':600}"),
			FILTER_F "abort: http_status: 600 is not in [200, 600)"},
		{"FI-09 http_status 0", FAULT("'abort':{'httpStatus':0}"),
			FILTER_F "abort: http_status: 0 is not in [200, 600)"},
		{"FI-09 upstream_cluster", FAULT("'upstreamCluster':'c'"), .warning = SELECTORS},
		{"FI-09 headers", FAULT("'headers':[{}]"), .warning = SELECTORS},
		{"FI-09 downstream_nodes", FAULT("'downstreamNodes':['n']"), .warning = SELECTORS},
	};
	RUN_ROWS(&res_type_listener, rows);
}

#define SESSION(fields) FILTER(ANY(SESSION_TYPE, fields))
#define STATE(any) SESSION(",'sessionState':{'name':'s','typedConfig':" any "}")
#define COOKIE(fields) STATE(ANY(COOKIE_TYPE, ",'cookie':{" fields "}"))

static void sessions(void **state)
{
	static const struct res_row rows[] = {
		{"SA-01 no session_state", SESSION("")},
		{"SA-01 session_state without a config", SESSION(",'sessionState':{'name':'s'}"),
			FILTER_F "session_state: no typed_config"},
		{"SA-01 another type", STATE(ANY(ROUTER_TYPE, "")),
			FILTER_F "session_state: type \"" URL ROUTER_TYPE "\" is not supported"},
		{"SA-01 as TypedStruct",
			STATE(STRUCT_ANY(TYPED_STRUCT, COOKIE_TYPE, "'cookie':{'name':'c'}"))},
		{"SA-02 plain", COOKIE("'name':'c'")},
		{"SA-02 everything", COOKIE("'name':'c','path':'/a','ttl':'3600s'")},
		{"SA-02 no cookie", STATE(ANY(COOKIE_TYPE, "")),
			FILTER_F "session_state: no cookie"},
		{"SA-02 no name", COOKIE("'path':'/'"),
			FILTER_F "session_state: cookie.name: empty"},
		{"SA-02 ttl 0", COOKIE("'name':'c','ttl':'0s'")},
		{"SA-02 negative ttl", COOKIE("'name':'c','ttl':'-1s'"),
			FILTER_F "session_state: cookie.ttl: seconds must be in [0, 315576000000]"},
		{"SA-02 negative ttl below a second", COOKIE("'name':'c','ttl':'-0.1s'"),
			FILTER_F "session_state: cookie.ttl: nanos must be in [0, 999999999]"},
		{"SA-17 name that would end the field", COOKIE("'name':'c=1; Secure'"),
			FILTER_F
			"session_state: cookie.name: \"c=1; Secure\" is not a valid cookie name"},
		{"SA-17 name with a line's end", COOKIE("'name':'c\\r\\nx'"),
			"is not a valid cookie name"},
		{"SA-17 name that is no token", COOKIE("'name':'a/b'"),
			FILTER_F "session_state: cookie.name: \"a/b\" is not a valid cookie name"},
		{"SA-17 name beyond ASCII", COOKIE("'name':'\xc3\xa4'"),
			"is not a valid cookie name"},
		{"SA-17 name of all that a token may have", COOKIE("'name':'aZ09!#$%&*+-.^_`|~'")},
		{"SA-17 path with a blank inside", COOKIE("'name':'c','path':'/a b'")},
		{"SA-17 path that ends in a blank", COOKIE("'name':'c','path':'/ '"),
			FILTER_F "session_state: cookie.path: \"/ \" is not a valid cookie path"},
		{"SA-17 path that starts with a blank", COOKIE("'name':'c','path':' /'"),
			"is not a valid cookie path"},
		{"SA-17 path beyond ASCII", COOKIE("'name':'c','path':'/\xc3\xa4'"),
			"is not a valid cookie path"},
		{"SA-17 path that would end the field", COOKIE("'name':'c','path':'/; Secure'"),
			FILTER_F
			"session_state: cookie.path: \"/; Secure\" is not a valid cookie path"},
		{"SA-17 path with a line's end", COOKIE("'name':'c','path':'/\\n'"),
			"is not a valid cookie path"},
		{"SA-01 strict", SESSION(",'strict':true"),
			.warning = "stateful_session: strict is ignored"},
		{"SA-01 bad, though the filter is optional",
			FILTER_AND(ANY(SESSION_TYPE, ",'sessionState':{}"), OPTIONAL),
			FILTER_F "session_state: no typed_config"},
	};
	RUN_ROWS(&res_type_listener, rows);
}

#define WRAPPED(any, more) OVERRIDE(ANY(FILTER_CONFIG_TYPE, ",'config':" any more))
#define F ROUTE_0 "typed_per_filter_config[f]: "
#define BAD_FAULT ANY(FAULT_TYPE, ",'abort':{'httpStatus':1}")

static void overrides(void **state)
{
	static const struct res_row rows[] = {
		{"FLT-06 of a route", OVERRIDE(ANY(FAULT_TYPE, ""))},
		{"FLT-06 bad one of a route", OVERRIDE(BAD_FAULT),
			F "abort: http_status: 1 is not in [200, 600)"},
		{"FLT-06 bad one of a virtual host",
			VHOST_AND("'*'", "", "," OVERRIDES("'f':" BAD_FAULT)),
			"=virtual host \"v\": typed_per_filter_config[f]: abort: http_status: 1 is "
			"not in [200, 600)"},
		{"FLT-06 bad one of a weighted cluster",
			WEIGHTED("'clusters':[{'name':'c','weight':1," OVERRIDES(
				"'f':" BAD_FAULT) "}]"),
			ROUTE_0 "route: weighted_clusters: clusters[0]: "
				"typed_per_filter_config[f]: abort: http_status: 1 is not in "
				"[200, 600)"},
		{"FLT-06 of a weighted cluster that is never picked",
			WEIGHTED("'clusters':[{'name':'a','weight':1},{'name':'c','weight':"
				 "0," OVERRIDES("'f':" BAD_FAULT) "}]"),
			"clusters[1]: typed_per_filter_config[f]"},
		{"FLT-06 of a route that is no forwarding one",
			ROUTE("'prefix':'/'", "'redirect':{}," OVERRIDES("'f':" BAD_FAULT)),
			F "abort: http_status: 1 is not in [200, 600)"},
		{"FLT-06 of a route that is ignored",
			ROUTE("'prefix':'/'",
				"'route':{'clusterHeader':'x'}," OVERRIDES("'f':" BAD_FAULT)),
			.ignored = "cluster_header is not supported"},
		{"FLT-07 no name",
			ROUTE("'prefix':'/'", TO_C "," OVERRIDES("'':" ANY(FAULT_TYPE, ""))),
			ROUTE_0 "typed_per_filter_config: an empty name"},
		{"FLT-07 name of no filter",
			ROUTE("'prefix':'/'", TO_C "," OVERRIDES("'nobody':" ANY(FAULT_TYPE, "")))},
		{"FLT-08 unknown type", OVERRIDE(UNKNOWN),
			F "type \"" URL COOKIE_TYPE "\" is not supported"},
		{"FLT-08 unknown type, wrapped", WRAPPED(UNKNOWN, ""),
			F "config: type \"" URL COOKIE_TYPE "\" is not supported"},
		{"FLT-08 unknown type, wrapped and optional", WRAPPED(UNKNOWN, OPTIONAL)},
		{"FLT-08 known type, wrapped", WRAPPED(ANY(FAULT_TYPE, ""), "")},
		{"FLT-08 bad config, wrapped and optional", WRAPPED(BAD_FAULT, OPTIONAL),
			F "config: abort: http_status: 1 is not in [200, 600)"},
		{"FLT-08 nothing wrapped", OVERRIDE(ANY(FILTER_CONFIG_TYPE, OPTIONAL)),
			F "config: empty"},
		{"FLT-09 disabled, nothing wrapped",
			OVERRIDE(ANY(FILTER_CONFIG_TYPE, ",'disabled':true"))},
		{"FLT-09 disabled, an empty one wrapped", WRAPPED("{}", ",'disabled':true")},
		{"FLT-09 disabled, an unknown one wrapped", WRAPPED(UNKNOWN, ",'disabled':true")},
		{"FLT-09 an empty one wrapped", WRAPPED("{}", "")},
		{"FLT-08 an empty one, not wrapped", OVERRIDE("{}"),
			F "type \"\" is not supported"},
		{"FLT-08 wrapped twice",
			WRAPPED(ANY(FILTER_CONFIG_TYPE, ",'config':" ANY(FAULT_TYPE, "")), ""),
			F "config: type \"" URL FILTER_CONFIG_TYPE "\" is not supported"},
		{"FLT-08 top-level type as override", OVERRIDE(ANY(SESSION_TYPE, "")),
			F "type \"" URL SESSION_TYPE "\" is not one for overrides"},
		{"FLT-08 top-level type as override, optional",
			WRAPPED(ANY(SESSION_TYPE, ""), OPTIONAL),
			F "config: type \"" URL SESSION_TYPE "\" is not one for overrides"},
		{"FLT-08 router as override", OVERRIDE(ANY(ROUTER_TYPE, "")),
			F "type \"" URL ROUTER_TYPE "\" is not one for overrides"},
		{"FLT-04 TypedStruct as override",
			OVERRIDE(STRUCT_ANY(TYPED_STRUCT, PER_ROUTE_TYPE, "'disabled':true"))},
		{"FLT-04 FilterConfig as TypedStruct",
			OVERRIDE(STRUCT_ANY(TYPED_STRUCT, FILTER_CONFIG_TYPE,
				"'is_optional':true,'config':{'@type':'" URL COOKIE_TYPE "'}"))},
		{"FLT-04 TypedStruct in a FilterConfig",
			WRAPPED(STRUCT_ANY(OLD_TYPED_STRUCT, FAULT_TYPE, ""), "")},
		{"FLT-09 disabled", WRAPPED(ANY(FAULT_TYPE, ""), ",'disabled':true")},
		{"SA-19 disabled", OVERRIDE(ANY(PER_ROUTE_TYPE, ",'disabled':true"))},
		{"SA-19 neither", OVERRIDE(ANY(PER_ROUTE_TYPE, ""))},
		{"SA-19 another session",
			OVERRIDE(ANY(PER_ROUTE_TYPE,
				",'statefulSession':{'sessionState':{'typedConfig':" ANY(
					COOKIE_TYPE, ",'cookie':{'name':'c'}") "}}"))},
		{"SA-19 another bad session",
			OVERRIDE(ANY(PER_ROUTE_TYPE, ",'statefulSession':{'sessionState':{}}")),
			F "stateful_session: session_state: no typed_config"},
	};
	RUN_ROWS(&res_type_route_config, rows);
}

RUN_SUITE("res/http_filter", cmocka_unit_test(chains), cmocka_unit_test(faults),
	cmocka_unit_test(sessions), cmocka_unit_test(overrides))
