// SPDX-License-Identifier: Apache-2.0
// Which virtual hosts and route matches are accepted, which are refused with what words, and which
// routes are ignored (A28-P*, RX-*, A28-H*, A28-O*, A28-V*, VH-*, SM-*).
#include "ctrl/res/route.h"
#include "ctrl/xds/type.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/res/json.h"
#include "tests/unit/ctrl/res/rows.h"

static void virtual_hosts(void **state)
{
	static const struct res_row rows[] = {
		{"A28-V05 no virtual hosts", "{'name':'r'}"},
		{"A28-V05 no routes", VHOST("'*'", "")},
		{"A28-V05 all routes ignored",
			VHOST("'*'",
				"{'match':{'prefix':'/','queryParameters':[{'name':'q'}]}," TO_C
				"}"),
			.ignored = "match.query_parameters is not supported"},
		{"VH-07 no domains", VHOST("", ""), "=virtual host \"v\": no domains"},
		{"VH-07 empty domain", VHOST("'a',''", ""),
			"=virtual host \"v\": domains: an empty domain"},
		{"VH-07 star in the middle", VHOST("'a*b'", ""),
			"=virtual host \"v\": domains: \"a*b\": '*' may stand only at the start or "
			"the end"},
		{"VH-07 stars at both ends", VHOST("'*a*','**'", "")},
		{"VH-07 wildcards", VHOST("'*.a','a.*','*','a','a:*','A.','[::1]:80'", "")},
		{"VH-08 one domain in two virtual hosts",
			"{'name':'r','virtualHosts':[{'name':'v','domains':['a','a']},"
			"{'name':'w','domains':['A']}]}"},
		{"VH-06 ignore_port_in_host_matching",
			"{'name':'r','ignorePortInHostMatching':true}"},
		{"A28-V07 unused virtual hosts are checked too",
			"{'name':'r','virtualHosts':[{'name':'v','domains':['a']},"
			"{'name':'w','domains':['b'],'routes':[{}]}]}",
			"=virtual host \"w\": route 0: no match"},
		{"A28-V07 the route is named",
			VHOST("'*'",
				"{'match':{'prefix':''}," TO_C "},{'name':'second','match':{}}"),
			"=virtual host \"v\": route 1 \"second\": match: no path specifier"},
		{"A28-R04 two equal routes", VHOST("'*'", "{'match':{'prefix':''}," TO_C
							  "},{'match':{'prefix':''}," TO_C "}")},
		{"FLT-09 overrides of the route configuration",
			"{'name':'r','typedPerFilterConfig':{'f':" ANY(COOKIE_TYPE, "") "}}",
			.warning = "typed_per_filter_config of the route configuration is ignored"},
		{"header edits of the route configuration",
			"{'name':'r','requestHeadersToRemove':['x']}",
			.warning = "request_headers_to_… and response_headers_to_… are ignored"},
		{"header edits of a virtual host",
			VHOST_AND("'*'", "", ",'requestHeadersToAdd':[{'header':{'key':'x'}}]"),
			.warning = "virtual host \"v\": request_headers_to_… and "
				   "response_headers_to_… are ignored"},
		{"header edits of a route",
			ROUTE("'prefix':''", TO_C ",'responseHeadersToRemove':['x']"),
			.warning = ROUTE_0_WARNS "request_headers_to_… and response_headers_to_… "
						 "are ignored"},
	};
	RUN_ROWS(&res_type_route_config, rows);
}

static void paths(void **state)
{
	static const struct res_row rows[] = {
		{"A28-P01 prefix", MATCH("'prefix':'/a'")},
		{"A28-P01 empty prefix", MATCH("'prefix':''")},
		{"A28-P02 path", MATCH("'path':'/a'")},
		{"A28-P02 safe_regex", MATCH("'safeRegex':{'regex':'/a|/b'}")},
		{"A28-P03 no path specifier", MATCH("'caseSensitive':true"),
			ROUTE_0 "match: no path specifier"},
		{"A28-P04 case", MATCH("'prefix':'/a','caseSensitive':false")},
		{"A28-P04 case of a regex does not count",
			MATCH("'safeRegex':{'regex':'a'},'caseSensitive':false")},
		{"A28-P07 no method's path", MATCH("'prefix':'/healthz'")},
		{"A28-P07 no leading slash", MATCH("'path':'a/b/c'")},
		{"A28-P08 connect_matcher", MATCH("'connectMatcher':{}"),
			ROUTE_0 "match: connect_matcher: not supported"},
		{"A28-P08 path_separated_prefix", MATCH("'pathSeparatedPrefix':'/a'"),
			ROUTE_0 "match: path_separated_prefix: not supported"},
		{"A28-P08 path_match_policy", MATCH("'pathMatchPolicy':{'name':'x'}"),
			ROUTE_0 "match: path_match_policy: not supported"},
		{"A28-V01 no match", VHOST("'*'", "{" TO_C "}"), ROUTE_0 "no match"},
	};
	RUN_ROWS(&res_type_route_config, rows);
}

#define REGEX(pattern) MATCH("'safeRegex':{'regex':'" pattern "'}")
#define BAD_REGEX "virtual host \"v\": route 0: match: safe_regex.regex: "

static void regular_expressions(void **state)
{
	static const struct res_row rows[] = {
		{"RX-02 engine", MATCH("'safeRegex':{'googleRe2':{},'regex':'a'}")},
		{"RX-03 unbalanced", REGEX("(a"), BAD_REGEX},
		{"RX-03 unbalanced unless it is wrapped", REGEX("a)|(?:b"), BAD_REGEX},
		{"RX-03 look-ahead", REGEX("a(?=b)"), BAD_REGEX},
		{"RX-03 look-behind", REGEX("(?<=a)b"), BAD_REGEX},
		{"RX-03 back-reference", REGEX("(a)\\\\1"), BAD_REGEX},
		{"RX-03 possessive", REGEX("a++"), BAD_REGEX},
		{"RX-03 atomic group", REGEX("(?>a)"), BAD_REGEX},
		{"RX-03 nothing to repeat", REGEX("*"), BAD_REGEX},
		{"RX-03 range upside down", REGEX("[b-a]"), BAD_REGEX},
		{"RX-04 repeat above 1000", REGEX("x{1001}"), BAD_REGEX},
		{"RX-04 nested repeats above 1000", REGEX("([^/]{1,255}/){1,32}"), BAD_REGEX},
		{"RX-04 \\Z", REGEX("a\\\\Z"), BAD_REGEX},
		{"RX-04 \\h", REGEX("\\\\h"), BAD_REGEX},
		{"RX-04 (?x)", REGEX("(?x)a b"), BAD_REGEX},
		{"RX-04 comment", REGEX("(?#c)a"), BAD_REGEX},
		{"RX-05 embedded anchors", REGEX("abc^def|a$b")},
		{"RX-05 ungreedy", REGEX("(?U)a+")},
		{"RX-05 any byte", REGEX("\\\\C")},
		{"RX-05 script", REGEX("\\\\p{Greek}\\\\x{263a}")},
		{"RX-05 too large for Hyperscan", REGEX("([a-z]|bc*d|xy?z){200}")},
		{"RX-05 unclosed quote", REGEX("\\\\Qa)")},
		{"RX-07 matches the empty text", REGEX("(x)?")},
		{"RX-07 inline flag", REGEX("(?i)/a")},
		{"RX-11 empty", REGEX("")},
		{"A28-H03 bad header regex", HEADER("'name':'x','safeRegexMatch':{'regex':'('}"),
			"virtual host \"v\": route 0: match: headers[0]: safe_regex_match.regex: "},
		{"SM-03 bad regex of a string matcher", STRING("'safeRegex':{'regex':'('}"),
			"virtual host \"v\": route 0: match: headers[0]: string_match: "
			"safe_regex.regex: "},
		{"A28-V03 regex is checked before the specifier",
			ROUTE("'safeRegex':{'regex':'('}", "'route':{'clusterHeader':'x'}"),
			BAD_REGEX},
		{"A28-V03 regex is checked before the action",
			ROUTE("'safeRegex':{'regex':'('}", "'redirect':{}"), BAD_REGEX},
		{"A28-O06 regex is not checked beside query_parameters",
			MATCH("'safeRegex':{'regex':'('},'queryParameters':[{'name':'q'}]"),
			.ignored = "match.query_parameters is not supported"},
	};
	RUN_ROWS(&res_type_route_config, rows);
}

#define HEADER_0 ROUTE_0 "match: headers[0]: "

static void headers(void **state)
{
	static const struct res_row rows[] = {
		{"A28-H01 exact", HEADER("'name':'x','exactMatch':'a'")},
		{"A28-H01 exact and empty", HEADER("'name':'x','exactMatch':''")},
		{"A28-H02 prefix", HEADER("'name':'x','prefixMatch':'a'")},
		{"A28-H02 empty prefix", HEADER("'name':'x','prefixMatch':''"),
			HEADER_0 "prefix_match: empty"},
		{"A28-H02 suffix", HEADER("'name':'x','suffixMatch':'a'")},
		{"A28-H02 empty suffix", HEADER("'name':'x','suffixMatch':''"),
			HEADER_0 "suffix_match: empty"},
		{"A28-H02 contains", HEADER("'name':'x','containsMatch':'a'")},
		{"A28-H02 empty contains", HEADER("'name':'x','containsMatch':''"),
			HEADER_0 "contains_match: empty"},
		{"A28-H03 regex", HEADER("'name':'x','safeRegexMatch':{'regex':'a+'}")},
		{"A28-H04 range", HEADER("'name':'x','rangeMatch':{'start':-3,'end':7}")},
		{"A28-H04 empty range", HEADER("'name':'x','rangeMatch':{'start':7,'end':7}")},
		{"A28-H04 widest range",
			HEADER("'name':'x','rangeMatch':{'start':'-9223372036854775808',"
			       "'end':'9223372036854775807'}")},
		{"A28-H04 range upside down", HEADER("'name':'x','rangeMatch':{'start':8,'end':7}"),
			HEADER_0 "range_match: start 8 is above end 7"},
		{"A28-H05 present", HEADER("'name':'x','presentMatch':true")},
		{"A28-H05 absent", HEADER("'name':'x','presentMatch':false")},
		{"A28-H06 treat_missing_header_as_empty",
			HEADER("'name':'x','exactMatch':'','treatMissingHeaderAsEmpty':true"),
			.warning = ROUTE_0_WARNS
			"match.headers: treat_missing_header_as_empty is ignored"},
		{"A28-H07 invert", HEADER("'name':'x','exactMatch':'a','invertMatch':true")},
		{"A28-H10 binary header", HEADER("'name':'x-bin','presentMatch':true")},
		{"A28-H12 pseudo-header", HEADER("'name':':method','exactMatch':'GET'")},
		{"A28-H13 no name", HEADER("'exactMatch':'a'"), HEADER_0 "name: empty"},
		{"A28-H14 no specifier", HEADER("'name':'x'"), HEADER_0 "no match specifier"},
		{"A28-H14 no specifier, inverted", HEADER("'name':'x','invertMatch':true"),
			HEADER_0 "no match specifier"},
		{"A28-H14 the second of two",
			MATCH("'prefix':'/','headers':[{'name':'x','presentMatch':true},"
			      "{'name':'y'}]"),
			ROUTE_0 "match: headers[1]: no match specifier"},
		{"A28-V03 headers are checked before the specifier",
			ROUTE("'prefix':'/','headers':[{'name':'x'}]",
				"'route':{'clusterHeader':'x'}"),
			HEADER_0 "no match specifier"},
		{"SM-01 exact", STRING("'exact':'a'")},
		{"SM-01 exact and empty", STRING("'exact':''")},
		{"SM-01 prefix", STRING("'prefix':'a'")},
		{"SM-01 suffix", STRING("'suffix':'a'")},
		{"SM-01 contains", STRING("'contains':'a'")},
		{"SM-01 regex", STRING("'safeRegex':{'regex':'a'}")},
		{"SM-02 ignore_case", STRING("'prefix':'A','ignoreCase':true")},
		{"SM-03 no pattern", STRING(""), HEADER_0 "string_match: no pattern"},
		{"SM-03 no pattern but ignore_case", STRING("'ignoreCase':true"),
			HEADER_0 "string_match: no pattern"},
		{"SM-03 custom", STRING("'custom':{'name':'x'}"),
			HEADER_0 "string_match: custom: not supported"},
		{"SM-03 empty prefix", STRING("'prefix':''"),
			HEADER_0 "string_match: prefix: empty"},
		{"SM-03 empty suffix", STRING("'suffix':''"),
			HEADER_0 "string_match: suffix: empty"},
		{"SM-03 empty contains", STRING("'contains':''"),
			HEADER_0 "string_match: contains: empty"},
	};
	RUN_ROWS(&res_type_route_config, rows);
}

static void other_criteria(void **state)
{
	static const struct res_row rows[] = {
		{"A28-O01 fraction", FRACTION("'defaultValue':{'numerator':5},'runtimeKey':'k'")},
		{"A28-O02 beyond 100 %", FRACTION("'defaultValue':{'numerator':4294967295}")},
		{"A28-O05 unknown denominator",
			FRACTION("'defaultValue':{'numerator':5,'denominator':3}"),
			ROUTE_0 "match: runtime_fraction.default_value: unknown denominator 3"},
		{"A28-O05 no default_value", FRACTION("'runtimeKey':'k'"),
			ROUTE_0 "match: runtime_fraction: no default_value"},
		{"A28-O06 query_parameters, with a bad matcher beside",
			MATCH("'connectMatcher':{},'queryParameters':[{'name':'q'}]"),
			.ignored = "match.query_parameters is not supported"},
		{"A28-O07 grpc", MATCH("'prefix':'/','grpc':{}")},
		{"A28-O08 tls_context", MATCH("'prefix':'/','tlsContext':{'presented':true}"),
			.warning = ROUTE_0_WARNS "match.tls_context is ignored"},
	};
	RUN_ROWS(&res_type_route_config, rows);
}

RUN_SUITE("res/route_match", cmocka_unit_test(virtual_hosts), cmocka_unit_test(paths),
	cmocka_unit_test(regular_expressions), cmocka_unit_test(headers),
	cmocka_unit_test(other_criteria))
