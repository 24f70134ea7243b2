// SPDX-License-Identifier: Apache-2.0
// Which socket listeners are accepted and which are refused with what words (gRFC A36), and what
// their filter chains become. Names of rows end with what C-core and grpc-go say, if they differ.
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "ctrl/res/tls.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/type.h"
#include "lb/route/chain_match.h"
#include "tests/support/check.h"
#include "tests/support/res_json.h"
#include "tests/unit/ctrl/res/decode.h"
#include "tests/unit/ctrl/res/json.h"
#include "tests/unit/ctrl/res/rows.h"

#define OF_CHAINS(list) SOCKET_LISTENER(",'filterChains':[" list "]")
#define MATCHED(match) "{" CHAIN_FILTERS ",'filterChainMatch':{" match "}}"
#define ONE(match) OF_CHAINS(MATCHED(match))
#define TWO(a, b) OF_CHAINS(MATCHED(a) "," MATCHED(b))
#define DEFAULT(chain) SOCKET_LISTENER(",'defaultFilterChain':{" chain "}")
#define HCM_OF(hcm) OF_CHAINS("{" CHAIN_OF(hcm) "}")
#define HTTP(filters) HCM_OF(RDS ",'httpFilters':[" filters "]")
#define AT(address) "{'name':'l','address':" address ",'filterChains':[{" CHAIN_FILTERS "}]}"
#define SOCKET(fields) AT("{'socketAddress':{" fields "}}")
#define OF_MORE(address)                                                                           \
	SOCKET_LISTENER(",'filterChains':[{" CHAIN_FILTERS                                         \
			"}],'additionalAddresses':[{'address':" address "}]")
#define RANGE(ip, len) "{'addressPrefix':'" ip "','prefixLen':" len "}"
#define TO(ranges) "'prefixRanges':[" ranges "]"
#define FROM(ranges) "'sourcePrefixRanges':[" ranges "]"
#define C0 "=filter_chains[0]: "
#define F0 C0 "filters[0]: "
#define M0 C0 "filter_chain_match: "
#define NO_ONE "filters: there is not exactly one, an HttpConnectionManager"
#define SAME "=filter_chains[1] matches the same as filter_chains[0]"
#define HCM_ANY ANY(HCM_TYPE, "," RDS ",'httpFilters':[" ROUTER "]")

static void addresses(void **state)
{
	static const struct res_row rows[] = {
		{"A36-01 a socket listener", ONE("")},
		{"A36-01 with an api_listener, which counts",
			"{'name':'l','address':{'pipe':{'path':'/"
			"x'}},'apiListener':{'apiListener':" ANY(
				HCM_TYPE, "," RDS ",'httpFilters':[" ROUTER "]") "}}"},
		{"A36-02 a pipe", AT("{'pipe':{'path':'/x'}}"), "=address: no socket_address"},
		{"A36-02 an internal address",
			AT("{'envoyInternalAddress':{'serverListenerName':'x'}}"),
			"=address: no socket_address"},
		{"A36-02 no kind of address", AT("{}"), "=address: no socket_address"},
		{"A36-02 UDP; grpc-go: ACK",
			SOCKET("'address':'0.0.0.0','portValue':1,'protocol':'UDP'"),
			"=address: protocol: must be TCP"},
		{"A36-02 a large port; grpc-go: ACK",
			SOCKET("'address':'0.0.0.0','portValue':65536"),
			"=address: port_value: above 65535"},
		{"A36-02 no port", SOCKET("'address':'0.0.0.0'")},
		{"A36-02 a named port", SOCKET("'address':'0.0.0.0','namedPort':'http'")},
		{"A36-02 a name", SOCKET("'address':'host.test','portValue':1")},
		{"A36-02 an IPv6 address", SOCKET("'address':'::','portValue':1")},
		{"A36-70 additional_addresses",
			OF_MORE("{'socketAddress':{'address':'::1','portValue':2}}")},
		{"A36-70 that is no IP address",
			OF_MORE("{'socketAddress':{'address':'x.test','portValue':2}}")},
		{"A36-70 a pipe; C-core, grpc-go: ACK", OF_MORE("{'pipe':{'path':'/x'}}"),
			"=additional_addresses[0].address: no socket_address"},
		{"A36-70 UDP; C-core, grpc-go: ACK",
			OF_MORE("{'socketAddress':{'address':'::1','protocol':'UDP'}}"),
			"=additional_addresses[0].address: protocol: must be TCP"},
		{"A36-70 a port above 65535; C-core, grpc-go: ACK",
			OF_MORE("{'socketAddress':{'address':'::1','portValue':65536}}"),
			"=additional_addresses[0].address: port_value: above 65535"},
		{"A36-03 use_original_dst",
			SOCKET_LISTENER(",'useOriginalDst':true,'filterChains':[" MATCHED("") "]"),
			"=use_original_dst: is not supported"},
		{"A36-03 use_original_dst false",
			SOCKET_LISTENER(
				",'useOriginalDst':false,'filterChains':[" MATCHED("") "]")},
		{"A36-04 listener_filters; grpc-go: NACK",
			SOCKET_LISTENER(
				",'listenerFilters':[{'name':'x'}],'filterChains':[" MATCHED(
					"") "]")},
		{"A36-05 no chain at all", SOCKET_LISTENER(""),
			"=neither filter_chains nor default_filter_chain"},
		{"A36-05 the default one alone", DEFAULT(CHAIN_FILTERS)},
		{"A36-05 one that never matches alone; grpc-go: NACK", ONE("'destinationPort':1")},
	};
	RUN_ROWS(&res_type_listener, rows);
}

static void filters(void **state)
{
	static const struct res_row rows[] = {
		{"A36-06 no filter", OF_CHAINS("{}"), C0 NO_ONE},
		{"A36-06 two HttpConnectionManagers; grpc-go: ACK",
			OF_CHAINS("{'filters':[{'name':'a','typedConfig':" HCM_ANY
				  "},{'name':'b','typedConfig':" HCM_ANY "}]}"),
			C0 NO_ONE},
		{"A36-06 no filter in the default chain", DEFAULT("'name':'d'"),
			"=default_filter_chain: " NO_ONE},
		{"A36-06 something else",
			OF_CHAINS("{'filters':[{'typedConfig':" ANY(ROUTER_TYPE, "") "}]}"),
			F0 "\"" URL ROUTER_TYPE "\" is not an HttpConnectionManager"},
		{"A36-06 a TypedStruct",
			OF_CHAINS("{'filters':[{'typedConfig':" STRUCT_ANY(
				TYPED_STRUCT, HCM_TYPE, "") "}]}"),
			F0 "\"" URL TYPED_STRUCT "\" is not an HttpConnectionManager"},
		{"A36-06 no config", OF_CHAINS("{'filters':[{'name':'hcm'}]}"),
			F0 "no typed_config"},
		{"A36-06 a config by discovery",
			OF_CHAINS("{'filters':[{'configDiscovery':{'typeUrls':['x']}}]}"),
			F0 "no typed_config"},
		{"A36-06 no name; grpc-go: NACK",
			OF_CHAINS("{'filters':[{'typedConfig':" HCM_ANY "}]}")},
		{"A36-07 a bad chain that never matches; grpc-go: ACK",
			OF_CHAINS(MATCHED("") ",{'filterChainMatch':{'destinationPort':1}}"),
			"=filter_chains[1]: " NO_ONE},
		{"A36-08 no router", HTTP(""), F0 "http_filters: there is no router"},
		{"A36-08 no routes", HCM_OF("'httpFilters':[" ROUTER "]"),
			F0 "neither rds nor route_config"},
		{"A36-08 rds from a file",
			HCM_OF("'rds':{'configSource':{'path':'/x'},'routeConfigName':'r'},"
			       "'httpFilters':[" ROUTER "]"),
			F0 "rds: config_source is neither ads nor self"},
		{"A36-08 inline routes",
			HCM_OF("'routeConfig':{'name':'r'},'httpFilters':[" ROUTER "]")},
		{"A36-08 bad inline routes",
			HCM_OF("'routeConfig':{'virtualHosts':[{'name':'v'}]},'httpFilters':"
			       "[" ROUTER "]"),
			F0 "route_config: virtual host \"v\": no domains"},
		{"A36-08 bad inline routes of the default chain",
			DEFAULT(CHAIN_OF("'routeConfig':{'virtualHosts':[{'name':'v'}]},"
					 "'httpFilters':[" ROUTER "]")),
			"=default_filter_chain: filters[0]: route_config: virtual host \"v\": no "
			"domains"},
		{"A36-08 a bad duration",
			HCM_OF(RDS ",'commonHttpProtocolOptions':{'maxStreamDuration':'-1s'},"
				   "'httpFilters':[" ROUTER "]"),
			F0 "common_http_protocol_options.max_stream_duration: seconds must be in "
			   "[0, 315576000000]"},
		{"A36-08 xff_num_trusted_hops; C-core: NACK",
			HCM_OF(RDS ",'xffNumTrustedHops':1,'httpFilters':[" ROUTER "]")},
		{"A36-09 faults, which gRPC's servers do not know",
			HTTP("{'name':'f','typedConfig':" ANY(FAULT_TYPE, "") "}," ROUTER)},
		{"A36-09 sessions, likewise",
			HTTP("{'name':'f','typedConfig':" ANY(SESSION_TYPE, "") "}," ROUTER)},
		{"A36-09 a filter that nobody knows",
			HTTP("{'name':'f','typedConfig':" ANY(FILTER_CONFIG_TYPE, "") "}," ROUTER),
			F0 "http filter \"f\": type \"" URL FILTER_CONFIG_TYPE
			   "\" is not supported"},
	};
	RUN_ROWS(&res_type_listener, rows);
}

static void matches(void **state)
{
	static const struct res_row rows[] = {
		{"A36-11 a name for a prefix", ONE(TO(RANGE("x.test", "8"))),
			M0 "prefix_ranges[0]: address_prefix: \"x.test\" is not an IP address"},
		{"A36-11 an empty prefix", ONE(TO("{}")),
			M0 "prefix_ranges[0]: address_prefix: \"\" is not an IP address"},
		{"A36-11 a name for a source's prefix",
			ONE(FROM(RANGE("10.0.0.0", "8") "," RANGE("y", "8"))),
			M0 "source_prefix_ranges[1]: address_prefix: \"y\" is not an IP address"},
		{"A36-11 of a chain that never matches",
			ONE("'destinationPort':1," TO(RANGE("x", "8"))),
			M0 "prefix_ranges[0]: address_prefix: \"x\" is not an IP address"},
		{"A36-11 of the default chain",
			DEFAULT(CHAIN_FILTERS ",'filterChainMatch':{" TO(RANGE("x", "8")) "}"),
			"=default_filter_chain: filter_chain_match: prefix_ranges[0]: "
			"address_prefix: \"x\" is not an IP address"},
		{"A36-11 a prefix that is too long is whole; grpc-go: NACK",
			TWO(TO(RANGE("10.0.0.1", "33")), TO(RANGE("10.0.0.1", "32"))), SAME},
		{"A36-11 likewise of IPv6; grpc-go: NACK",
			TWO(TO(RANGE("fd00::1", "200")), TO(RANGE("fd00::1", "128"))), SAME},
		{"A36-11 no length is 0",
			TWO(TO("{'addressPrefix':'10.0.0.1'}"), TO(RANGE("0.0.0.0", "0"))), SAME},
		{"A36-11 0 bits of two families",
			TWO(TO(RANGE("0.0.0.0", "0")), TO(RANGE("::", "0")))},
		{"A36-11 0 bits are not no prefix", TWO(TO(RANGE("0.0.0.0", "0")), "")},
		{"A36-12 two without match", TWO("", ""), SAME},
		{"A36-12 low bits do not count",
			TWO(TO(RANGE("10.1.2.3", "8")), TO(RANGE("10.0.0.0", "8"))), SAME},
		{"A36-12 other lengths",
			TWO(TO(RANGE("10.0.0.0", "8")), TO(RANGE("10.0.0.0", "9")))},
		{"A36-12 one of several prefixes",
			TWO(TO(RANGE("10.0.0.0", "8") "," RANGE("11.0.0.0", "8")),
				TO(RANGE("12.0.0.0", "8") "," RANGE("11.0.0.0", "8"))),
			SAME},
		{"A36-12 the same source",
			TWO(FROM(RANGE("10.0.0.0", "8")), FROM(RANGE("10.0.0.0", "8"))), SAME},
		{"A36-12 the same source in other destinations",
			TWO(FROM(RANGE("10.0.0.0", "8")),
				FROM(RANGE("10.0.0.0", "8")) "," TO(RANGE("10.0.0.0", "8")))},
		{"A36-12 the same type", TWO("'sourceType':'EXTERNAL'", "'sourceType':'EXTERNAL'"),
			SAME},
		{"A36-12 other types", TWO("'sourceType':'EXTERNAL'", "'sourceType':'ANY'")},
		{"A36-12 the same port", TWO("'sourcePorts':[1,2]", "'sourcePorts':[2,3]"), SAME},
		{"A36-12 other ports", TWO("'sourcePorts':[1,2]", "'sourcePorts':[3,4]")},
		{"A36-12 a port twice", ONE("'sourcePorts':[7,7]"),
			"=filter_chains[0] matches the same as filter_chains[0]"},
		{"A36-12 port 0 is any", TWO("'sourcePorts':[0]", ""), SAME},
		{"A36-12 the default chain's match does not count",
			SOCKET_LISTENER(",'filterChains':[" MATCHED(
				"") "],'defaultFilterChain':" MATCHED(""))},
		{"A36-14 a port that is none", ONE("'sourcePorts':[65536]")},
		{"A36-15 an unknown type", ONE("'sourceType':3"), M0 "source_type: unknown"},
		{"A36-41 some direct peers",
			ONE("'directSourcePrefixRanges':[" RANGE("10.0.0.0", "8") "]"),
			.warning = "filter_chain_match: direct_source_prefix_ranges are ignored"},
		{"A36-41 other direct peers",
			TWO("'directSourcePrefixRanges':[" RANGE("10.0.0.0", "8") "]",
				"'directSourcePrefixRanges':[" RANGE("11.0.0.0", "8") "]"),
			SAME},
		{"A36-24 destination_port", TWO("'destinationPort':1", "'destinationPort':1")},
		{"A36-24 destination_port 0 is none", TWO("'destinationPort':0", ""), SAME},
		{"A36-25 server_names", TWO("'serverNames':['a']", "'serverNames':['a']")},
		{"A36-25 TLS", TWO("'transportProtocol':'tls'", "'transportProtocol':'tls'")},
		{"A36-25 raw_buffer",
			TWO("'transportProtocol':'raw_buffer'", "'transportProtocol':'raw_buffer'"),
			SAME},
		{"A36-25 raw_buffer beside none", TWO("'transportProtocol':'raw_buffer'", "")},
		{"A36-25 raw_buffer behind none", TWO("", "'transportProtocol':'raw_buffer'")},
		{"A36-25 two behind raw_buffer",
			OF_CHAINS(MATCHED("'transportProtocol':'raw_buffer'") "," MATCHED(
				"") "," MATCHED(""))},
		{"A36-25 two before raw_buffer",
			OF_CHAINS(MATCHED("") "," MATCHED("") "," MATCHED(
				"'transportProtocol':'raw_buffer'")),
			SAME},
		{"A36-25 application_protocols",
			TWO("'applicationProtocols':['h2']", "'applicationProtocols':['h2']")},
	};
	RUN_ROWS(&res_type_listener, rows);
}

#define INSPECTOR                                                                                  \
	",'listenerFilters':[{'name':'tls','typedConfig':" ANY(                                    \
		"envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector", "") "}]"
#define INSPECTED(a, b) SOCKET_LISTENER(",'filterChains':[" MATCHED(a) "," MATCHED(b) "]" INSPECTOR)

static void matches_by_a_hello(void **state)
{
	static const struct res_row rows[] = {
		{"A36-38 names", INSPECTED("'serverNames':['a','*.a']", "'serverNames':['b']")},
		{"A36-38 protocols",
			INSPECTED("'applicationProtocols':['h2']", "'transportProtocol':'tls'")},
		{"A36-39 the same name",
			INSPECTED("'serverNames':['a']", "'serverNames':['b','a']"), SAME},
		{"A36-39 the same name in another case",
			INSPECTED("'serverNames':['a']", "'serverNames':['A']"), SAME},
		{"A36-39 the same protocol",
			INSPECTED("'applicationProtocols':['h2']", "'applicationProtocols':['h2']"),
			SAME},
		{"A36-39 TLS twice",
			INSPECTED("'transportProtocol':'tls'", "'transportProtocol':'tls'"), SAME},
		{"A36-39 an asterisk alone", INSPECTED("'serverNames':['a','*']", ""),
			M0 "server_names[1]: an asterisk, but not \"*.\" at the beginning"},
		{"A36-39 an asterisk within a label", INSPECTED("'serverNames':['*a.test']", ""),
			M0 "server_names[0]: an asterisk, but not \"*.\" at the beginning"},
		{"A36-39 one behind a name", INSPECTED("'serverNames':['a.*']", ""),
			M0 "server_names[0]: an asterisk, but not \"*.\" at the beginning"},
		{"A36-39 a second asterisk", INSPECTED("'serverNames':['*.*.test']", "")},
		{"A36-25 an asterisk without the inspector", ONE("'serverNames':['*']")},
	};
	RUN_ROWS(&res_type_listener, rows);
}

static uint32_t chain_for(const struct res_socket *s, const char *remote)
{
	struct ip_addr local;
	struct ip_port from = {.port = 1};
	assert_true(ip_parse("10.9.9.9", &local) && ip_parse(remote, &from.ip));
	return lb_chain_match_find(s->match, &local, &from, &(struct lb_chain_hello){.tls = false});
}

// A36-33
static void each_chain_is_a_listener_of_its_own(void **state)
{
	static const struct xds_server_conf trusted = {.trusted = true};
#define INLINE CHAIN_OF("'routeConfig':{'name':'q'},'httpFilters':[" ROUTER "]")
#define LIST(name, last)                                                                           \
	SOCKET_LISTENER(",'filterChains':[" MATCHED(FROM(                                          \
		RANGE("10.0.0.0", "8"))) ",{'name':'" name "'," INLINE                             \
					 ",'filterChainMatch':{" FROM(RANGE("10.1.0.0",            \
						 "16")) "}}],'defaultFilterChain':{" last "}")
	struct xds_res *r = res_decode(&res_type_listener, LIST("n", CHAIN_FILTERS));
	struct xds_res *other = res_decode(&res_type_listener, LIST("m", CHAIN_FILTERS));
	const struct res_listener *l = res_listener_from(r);
	const struct res_socket *s = l->socket, *o = res_listener_from(other)->socket;
	assert_false(l->is_api);
	assert_string_equal(s->host, "0.0.0.0");
	assert_int_equal(s->address.port, 1);
	assert_true(s->is_ip && s->has_default);
	assert_int_equal(s->n_chains, 2);
	assert_string_equal(s->chains[0].http->rds_name, "r");
	assert_string_equal(s->chains[1].http->routes->base.name, "q");
	assert_true(s->chains[2].http->is_api);
	assert_true(s->chains[2].http->forwarding.on); // HX-50
	assert_null(s->chains[0].tls);
	assert_true(xds_res_eq(&s->chains[0].http->base, &o->chains[0].http->base));
	assert_false(xds_res_eq(&s->chains[1].http->base, &o->chains[1].http->base));
	assert_int_equal(chain_for(s, "10.1.0.1"), 1);
	assert_int_equal(chain_for(s, "10.2.0.1"), 0);
	assert_int_equal(chain_for(s, "11.2.0.1"), LB_NO_CHAIN);
	xds_res_set_server(r, &trusted);
	assert_true(xds_res_is_trusted(&s->chains[1].http->routes->base));
	xds_res_put(other);
	xds_res_put(r);
}

RUN_SUITE("res/chain", cmocka_unit_test(addresses), cmocka_unit_test(filters),
	cmocka_unit_test(matches), cmocka_unit_test(matches_by_a_hello),
	cmocka_unit_test(each_chain_is_a_listener_of_its_own))
