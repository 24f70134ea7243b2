// SPDX-License-Identifier: Apache-2.0
// Which endpoints are accepted and which are refused with what words: one row a rule (A27-V01 to
// A27-V06, A55-V07, A27-V08, A27-V09, CL-05 to CL-07).
#include "ctrl/res/endpoints.h"
#include "ctrl/xds/type.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/res/rows.h"

#define SOCKET(ip, port) "'socketAddress':{'address':'" ip "','portValue':" port "}"
#define ADDRESS(ip, port) "'address':{" SOCKET(ip, port) "}"
#define EP(ip, port) "{'endpoint':{" ADDRESS(ip, port) "}}"
#define EP_AND(ip, more) "{'endpoint':{" ADDRESS(ip, "80") "}," more "}"
#define HOST_AND(ip, more) "{'endpoint':{" ADDRESS(ip, "80") "," more "}}"
#define ALSO(ip, port) "{" ADDRESS(ip, port) "}"
#define NAMED(locality, weight, priority, endpoints)                                               \
	"{'locality':{" locality "},'loadBalancingWeight':" weight ",'priority':" priority         \
	",'lbEndpoints':[" endpoints "]}"
#define LOCALITY(zone, weight, priority, endpoints)                                                \
	NAMED("'zone':'" zone "'", weight, priority, endpoints)
#define CLA(list) "{'clusterName':'e','endpoints':[" list "]}"
#define ONE(endpoint) CLA(LOCALITY("a", "1", "0", endpoint))
#define TWO(first, second) CLA(LOCALITY("a", "1", "0", first) "," LOCALITY("b", "1", "1", second))
#define POLICY(x) "{'clusterName':'e','policy':{" x "}}"
#define DROP(x) POLICY("'dropOverloads':[" x "]")
#define FIRST "=endpoints[0]: lb_endpoints[0]: "
#define TOO_MUCH "4294967295"

// A27-V01, A27-V09.
static void priorities(void **state)
{
	static const struct res_row rows[] = {
		{"A27-V09 no localities", CLA(""), NULL},
		{"A27-V09 only localities without weight", CLA(LOCALITY("a", "0", "0", "")), NULL},
		{"CL-06 locality without endpoints", ONE(""), NULL},
		{"an empty resource", "{}", NULL},
		{"A27-V01 two priorities", TWO("", ""), NULL},
		{"A27-V01 two priorities in another order",
			CLA(LOCALITY("a", "1", "1", "") "," LOCALITY("a", "1", "0", "")), NULL},
		{"A27-V01 priorities that take turns",
			CLA(LOCALITY("a", "1", "1", "") "," LOCALITY(
				"a", "1", "0", "") "," LOCALITY("b", "1", "1", "") "," LOCALITY("b",
				"1", "0", "")),
			NULL},
		{"A27-V01 gap", CLA(LOCALITY("a", "1", "0", "") "," LOCALITY("a", "1", "2", "")),
			"=priority 1 is missing"},
		{"A27-V01 gap, the other way round",
			CLA(LOCALITY("a", "1", "2", "") "," LOCALITY("a", "1", "0", "")),
			"=priority 1 is missing"},
		{"A27-V01 two gaps",
			CLA(LOCALITY("a", "1", "0", "") "," LOCALITY(
				"a", "1", "2", "") "," LOCALITY("a", "1", "4", "")),
			"=priority 1 is missing"},
		{"A27-V01 no priority 0", CLA(LOCALITY("a", "1", "1", "")),
			"=priority 0 is missing"},
		{"A27-V01 priority 0 has only weight 0",
			CLA(LOCALITY("a", "0", "0", "") "," LOCALITY("b", "1", "1", "")),
			"=priority 0 is missing"},
		{"A27-V01 a priority between has only weight 0",
			CLA(LOCALITY("a", "1", "0", "") "," LOCALITY(
				"b", "0", "1", "") "," LOCALITY("c", "1", "2", "")),
			"=priority 1 is missing"},
		{"A27-V01 a priority has no weight",
			CLA("{'locality':{}}," LOCALITY("b", "1", "1", "")),
			"=priority 0 is missing"},
		{"A27-V01 a gap among those without weight",
			CLA(LOCALITY("a", "1", "0", "") "," LOCALITY("b", "0", "7", "")), NULL},
		{"A27-V01 the last number",
			CLA(LOCALITY("a", "1", "0", "") "," LOCALITY("b", "1", TOO_MUCH, "")),
			"=priority 1 is missing"},
		{"A27-V01 as many as localities, and a gap",
			CLA(LOCALITY("a", "1", "0", "") "," LOCALITY(
				"b", "1", "0", "") "," LOCALITY("c", "1", "2", "")),
			"=priority 1 is missing"},
		{"CL-05 weight 0 is skipped, whatever is in it",
			CLA(LOCALITY("a", "0", "9", EP("nonsense", "0"))), NULL},
		{"CL-05 no weight is skipped",
			CLA("{'locality':{},'lbEndpoints':[" EP("nonsense", "0") "]}"), NULL},
		{"CL-05 weight 0 needs no locality", CLA("{'loadBalancingWeight':0}"), NULL},
		{"CL-05 addresses of skipped localities do not count",
			CLA(LOCALITY("a", "1", "0", EP("10.0.0.1", "80")) "," LOCALITY(
				"b", "0", "0", EP("10.0.0.1", "80"))),
			NULL},
		{"CL-05 skipped localities may be there twice",
			CLA(LOCALITY("a", "0", "0", "") "," LOCALITY(
				"a", "1", "0", "") "," LOCALITY("a", "0", "0", "")),
			NULL},
	};
	RUN_ROWS(&res_type_endpoints, rows);
}

// A27-V02, A27-V03, A27-V05.
static void localities(void **state)
{
	static const struct res_row rows[] = {
		{"A27-V02 locality twice",
			CLA(LOCALITY("a", "1", "0", "") "," LOCALITY("a", "1", "0", "")),
			"=endpoints[1]: locality /a/ is a duplicate"},
		{"A27-V02 locality twice, of other weight",
			CLA(LOCALITY("a", "1", "0", "") "," LOCALITY("b", "1", "0",
				"") "," LOCALITY("a", "2", "0", EP("10.0.0.1", "80"))),
			"=endpoints[2]: locality /a/ is a duplicate"},
		{"A27-V02 locality twice, all parts",
			CLA(NAMED("'region':'r','zone':'z','subZone':'s'", "1", "0", "") "," NAMED(
				"'region':'r','zone':'z','subZone':'s'", "1", "0", "")),
			"=endpoints[1]: locality r/z/s is a duplicate"},
		{"A27-V02 the nameless locality twice",
			CLA(NAMED("", "1", "0", "") "," NAMED("'region':''", "1", "0", "")),
			"=endpoints[1]: locality // is a duplicate"},
		{"A27-V02 locality twice in the second priority",
			CLA(LOCALITY("a", "1", "0", "") "," LOCALITY(
				"a", "1", "1", "") "," LOCALITY("a", "1", "1", "")),
			"=endpoints[2]: locality /a/ is a duplicate"},
		{"A27-V02 locality in two priorities",
			CLA(LOCALITY("a", "1", "0", "") "," LOCALITY("a", "1", "1", "")), NULL},
		{"A27-V02 the same text in another part",
			CLA(NAMED("'region':'x'", "1", "0", "") "," NAMED("'zone':'x'", "1", "0",
				"") "," NAMED("'subZone':'x'", "1", "0", "")),
			NULL},
		{"A27-V02 the same text, divided otherwise",
			CLA(NAMED("'region':'ab','zone':'c'", "1", "0", "") "," NAMED(
				"'region':'a','zone':'bc'", "1", "0", "")),
			NULL},
		{"A27-V02 case counts",
			CLA(LOCALITY("a", "1", "0", "") "," LOCALITY("A", "1", "0", "")), NULL},
		{"A27-V03 just 2^32-1",
			CLA(LOCALITY("a", "4294967294", "0", "") "," LOCALITY("b", "1", "0", "")),
			NULL},
		{"A27-V03 above",
			CLA(LOCALITY("a", TOO_MUCH, "0", "") "," LOCALITY("b", "1", "0", "")),
			"=priority 0: locality weights add up to 4294967296"},
		{"A27-V03 above in the second priority",
			CLA(LOCALITY("a", "1", "0", "") "," LOCALITY(
				"a", TOO_MUCH, "1", "") "," LOCALITY("b", TOO_MUCH, "1", "")),
			"=priority 1: locality weights add up to 8589934590"},
		{"A27-V03 each priority by itself",
			CLA(LOCALITY("a", TOO_MUCH, "0", "") "," LOCALITY("b", TOO_MUCH, "1", "")),
			NULL},
		{"A27-V05 no locality", CLA("{'loadBalancingWeight':1,'lbEndpoints':[]}"),
			"=endpoints[0]: no locality"},
		{"A27-V05 no locality after a skipped one",
			CLA("{}," LOCALITY("a", "1", "0", "") ",{'loadBalancingWeight':1}"),
			"=endpoints[2]: no locality"},
		{"A27-V05 a locality without names", CLA(NAMED("", "1", "0", "")), NULL},
		{"CL-07 what is not read of a locality",
			CLA("{'locality':{},'loadBalancingWeight':1,'proximity':7,'metadata':"
			    "{'filterMetadata':{'istio':{'a':[1,{'b':null}]}}}}"),
			NULL},
	};
	RUN_ROWS(&res_type_endpoints, rows);
}

// A27-V04, A55-V07.
static void addresses_that_are_there_twice(void **state)
{
	static const struct res_row rows[] = {
		{"A27-V04 in a locality", ONE(EP("10.0.0.1", "80") "," EP("10.0.0.1", "80")),
			"=endpoints[0]: lb_endpoints[1]: 10.0.0.1:80 is a duplicate"},
		{"A27-V04 in two localities",
			CLA(LOCALITY("a", "1", "0", EP("10.0.0.1", "80")) "," LOCALITY(
				"b", "1", "0", EP("10.0.0.1", "80"))),
			"=endpoints[1]: lb_endpoints[0]: 10.0.0.1:80 is a duplicate"},
		{"A27-V04 in two priorities",
			TWO(EP("10.0.0.2", "80") "," EP("10.0.0.1", "80"), EP("10.0.0.1", "80")),
			"=endpoints[1]: lb_endpoints[0]: 10.0.0.1:80 is a duplicate"},
		{"A27-V04 after a skipped locality",
			CLA("{}," LOCALITY(
				"a", "1", "0", EP("10.0.0.1", "80") "," EP("10.0.0.1", "80"))),
			"=endpoints[1]: lb_endpoints[1]: 10.0.0.1:80 is a duplicate"},
		// Shunt's order is not that of EDS.
		{"A27-V04 by the place in EDS, whatever the priority and health",
			CLA(LOCALITY("a", "1", "1",
				EP_AND("10.0.0.1", "'healthStatus':'DRAINING'") "," EP(
					"10.0.0.2", "80")) "," LOCALITY("b", "1", "0",
				EP("10.0.0.3", "80") "," EP_AND(
					"10.0.0.1", "'healthStatus':'UNHEALTHY'"))),
			"=endpoints[1]: lb_endpoints[1]: 10.0.0.1:80 is a duplicate"},
		{"A27-V04 other port", ONE(EP("10.0.0.1", "80") "," EP("10.0.0.1", "81")), NULL},
		{"A27-V04 ports with the same low byte",
			ONE(EP("10.0.0.1", "80") "," EP("10.0.0.1", "336")), NULL},
		{"A27-V04 IPv6 in two spellings",
			ONE(EP("fd00::1", "80") "," EP("FD00:0::1", "80")),
			"=endpoints[0]: lb_endpoints[1]: [fd00::1]:80 is a duplicate"},
		{"A27-V04 IPv4 as IPv6", ONE(EP("10.0.0.1", "80") "," EP("::ffff:10.0.0.1", "80")),
			"=endpoints[0]: lb_endpoints[1]: 10.0.0.1:80 is a duplicate"},
		{"A27-V04 IPv4 in the last bytes of another IPv6",
			ONE(EP("10.0.0.1", "80") "," EP("::10.0.0.1", "80")), NULL},
		{"A27-V04 as another's additional address",
			ONE(EP("10.0.0.1", "80") "," HOST_AND(
				"10.0.0.2", "'additionalAddresses':[" ALSO("10.0.0.1", "80") "]")),
			"=endpoints[0]: lb_endpoints[1]: 10.0.0.1:80 is a duplicate"},
		{"A27-V04 as an additional address of one before",
			ONE(HOST_AND("10.0.0.2", "'additionalAddresses':[" ALSO("10.0.0.1",
							 "80") "]") "," EP("10.0.0.1", "80")),
			"=endpoints[0]: lb_endpoints[1]: 10.0.0.1:80 is a duplicate"},
		{"A27-V04 as its own additional address",
			ONE(HOST_AND("10.0.0.2", "'additionalAddresses':[" ALSO("10.0.0.1",
							 "80") "," ALSO("10.0.0.2", "80") "]")),
			"=endpoints[0]: lb_endpoints[0]: 10.0.0.2:80 is a duplicate"},
		{"A27-V04 two additional addresses",
			ONE(HOST_AND("10.0.0.2", "'additionalAddresses':[" ALSO("fd00::1",
							 "80") "," ALSO("fd00::1", "80") "]")),
			"=endpoints[0]: lb_endpoints[0]: [fd00::1]:80 is a duplicate"},
		{"A55-V07 on an unhealthy endpoint",
			ONE(EP("10.0.0.1", "80") "," EP_AND("10.0.0.1", "'healthStatus':2")),
			"=endpoints[0]: lb_endpoints[1]: 10.0.0.1:80 is a duplicate"},
		{"A55-V07 on two that time out",
			ONE(EP_AND("10.0.0.1", "'healthStatus':4") "," EP_AND(
				"10.0.0.1", "'healthStatus':4")),
			"=endpoints[0]: lb_endpoints[1]: 10.0.0.1:80 is a duplicate"},
		{"A55-V07 on a draining endpoint",
			ONE(EP_AND("10.0.0.1", "'healthStatus':'DRAINING'") "," EP(
				"10.0.0.1", "80")),
			"=endpoints[0]: lb_endpoints[1]: 10.0.0.1:80 is a duplicate"},
	};
	RUN_ROWS(&res_type_endpoints, rows);
}

#define AT FIRST "endpoint.address: "
#define SOCKET_OF(x) ONE("{'endpoint':{'address':{'socketAddress':{" x "}}}}")

// A27-V05.
static void link_local_addresses(void **state)
{
	static const struct res_row rows[] = {
		{"A27-V05 link-local IPv6", ONE(EP("fe80::1", "80")),
			AT "fe80::1: link-local, without a zone"},
		{"A27-V05 the last link-local IPv6", ONE(EP("febf:ffff::1", "80")),
			AT "febf:ffff::1: link-local, without a zone"},
		{"A27-V05 IPv6 beside link-local", ONE(EP("fec0::1", "80") "," EP("fe7f::1", "80")),
			NULL},
		{"A27-V05 additional link-local address",
			ONE(HOST_AND(
				"10.0.0.2", "'additionalAddresses':[" ALSO("fe80::2", "81") "]")),
			FIRST "endpoint.additional_addresses[0]: "
			      "fe80::2: link-local, without a zone"},
	};
	RUN_ROWS(&res_type_endpoints, rows);
}

static void addresses(void **state)
{
#define MORE(list) ONE(HOST_AND("10.0.0.2", "'additionalAddresses':[" list "]"))
#define ALSO_5(ip)                                                                                 \
	ALSO(ip, "1") "," ALSO(ip, "2") "," ALSO(ip, "3") "," ALSO(ip, "4") "," ALSO(ip, "5")
#define ALSO_20(n)                                                                                 \
	ALSO_5("10.1." n ".1")                                                                     \
	"," ALSO_5("10.1." n ".2") "," ALSO_5("10.1." n ".3") "," ALSO_5("10.1." n ".4")
#define ALSO_60 ALSO_20("1") "," ALSO_20("2") "," ALSO_20("3")
#define ALSO_3 ALSO("::1", "1") "," ALSO("::1", "2") "," ALSO("::1", "3")
#define MORE_AT FIRST "endpoint.additional_addresses[1]: "
	static const struct res_row rows[] = {
		{"A27-V05 IPv4", ONE(EP("10.0.0.1", "80")), NULL},
		{"A27-V05 IPv6", ONE(EP("fd00::1", "80")), NULL},
		{"A27-V05 the last port", ONE(EP("10.0.0.1", "65535")), NULL},
		{"A27-V05 no endpoint", ONE("{}"), FIRST "no endpoint"},
		{"A27-V05 endpoint name", ONE("{'endpointName':'x'}"), FIRST "no endpoint"},
		{"A27-V05 the second one has no endpoint", ONE(EP("10.0.0.1", "80") ",{}"),
			"=endpoints[0]: lb_endpoints[1]: no endpoint"},
		{"A27-V05 no address", ONE("{'endpoint':{}}"), AT "no socket_address"},
		{"A27-V05 an empty address", ONE("{'endpoint':{'address':{}}}"),
			AT "no socket_address"},
		{"A27-V05 pipe", ONE("{'endpoint':{'address':{'pipe':{'path':'/x'}}}}"),
			AT "no socket_address"},
		{"A27-V05 internal address",
			ONE("{'endpoint':{'address':{'envoyInternalAddress':{}}}}"),
			AT "no socket_address"},
		{"A27-V05 an empty socket address", SOCKET_OF(""), AT "\"\" is not an IP address"},
		{"A27-V05 no IP", SOCKET_OF("'portValue':80"), AT "\"\" is not an IP address"},
		{"A27-V05 no port", SOCKET_OF("'address':'10.0.0.1'"),
			AT "10.0.0.1: no port_value"},
		{"A27-V05 named port", SOCKET_OF("'address':'10.0.0.1','namedPort':'http'"),
			AT "10.0.0.1: no port_value"},
		{"A27-V05 port 0", ONE(EP("10.0.0.1", "0")), AT "10.0.0.1: port 0"},
		{"A27-V05 port too large", ONE(EP("10.0.0.1", "65536")), AT "10.0.0.1: port 65536"},
		{"A27-V05 port far too large", ONE(EP("10.0.0.1", TOO_MUCH)),
			AT "10.0.0.1: port 4294967295"},
		{"A27-V05 name", ONE(EP("localhost", "80")),
			AT "\"localhost\" is not an IP address"},
		{"A27-V05 with a port", ONE(EP("10.0.0.1:80", "80")),
			AT "\"10.0.0.1:80\" is not an IP address"},
		{"A27-V05 IPv6 in brackets", ONE(EP("[fd00::1]", "80")),
			AT "\"[fd00::1]\" is not an IP address"},
		{"A27-V05 IPv6 with a zone", ONE(EP("fe80::1%eth0", "80")),
			AT "\"fe80::1%eth0\" is not an IP address"},
		{"A27-V05 part too large", ONE(EP("10.0.0.256", "80")),
			AT "\"10.0.0.256\" is not an IP address"},
		{"A27-V05 part with a leading zero", ONE(EP("10.0.0.01", "80")),
			AT "\"10.0.0.01\" is not an IP address"},
		{"A27-V05 three parts", ONE(EP("10.0.1", "80")),
			AT "\"10.0.1\" is not an IP address"},
		{"A27-V05 five parts", ONE(EP("1.2.3.4.5", "80")),
			AT "\"1.2.3.4.5\" is not an IP address"},
		{"A27-V05 an empty part", ONE(EP("1..3.4", "80")),
			AT "\"1..3.4\" is not an IP address"},
		{"A27-V05 a trailing dot", ONE(EP("1.2.3.4.", "80")),
			AT "\"1.2.3.4.\" is not an IP address"},
		{"A27-V05 a blank", ONE(EP(" 1.2.3.4", "80")),
			AT "\" 1.2.3.4\" is not an IP address"},
		{"A27-V05 a network", ONE(EP("10.0.0.0/8", "80")),
			AT "\"10.0.0.0/8\" is not an IP address"},
		{"A27-V05 hexadecimal", ONE(EP("0x0a000001", "80")),
			AT "\"0x0a000001\" is not an IP address"},
		{"A27-V05 IPv6 with two gaps", ONE(EP("1::2::3", "80")),
			AT "\"1::2::3\" is not an IP address"},
		{"A27-V05 a long text is cut",
			ONE(EP("0123456789012345678901234567890123456789012345678901234567890123xy"
			       "z",
				"80")),
			AT "\"0123456789012345678901234567890123456789012345678901234567890123\""
			   " is not an IP address"},
		{"A27-V05 beyond ASCII", ONE(EP("10.0.0.\xc2\xb9", "80")),
			AT "\"10.0.0.\xc2\xb9\" is not an IP address"},
		{"CL-07 what is not read of a socket address",
			SOCKET_OF("'protocol':'UDP','address':'10.0.0.1','portValue':80,"
				  "'resolverName':'x','ipv4Compat':true"),
			NULL},
		{"A27-V05 additional addresses",
			MORE(ALSO("10.0.0.1", "80") "," ALSO("fd00::1", "81")), NULL},
		{"64 addresses", MORE(ALSO_60 "," ALSO_3), NULL},
		{"65 addresses", MORE(ALSO_60 "," ALSO_3 "," ALSO("::1", "4")),
			FIRST "endpoint.additional_addresses: more than 64 addresses"},
		{"A27-V05 additional address without an address",
			MORE(ALSO("10.0.0.1", "80") ",{}"), MORE_AT "no socket_address"},
		{"A27-V05 additional address that is a pipe",
			MORE(ALSO("10.0.0.1", "80") ",{'address':{'pipe':{'path':'/x'}}}"),
			MORE_AT "no socket_address"},
		{"A27-V05 additional address that is a name",
			MORE(ALSO("10.0.0.1", "80") "," ALSO("x.test", "80")),
			MORE_AT "\"x.test\" is not an IP address"},
		{"A27-V05 additional address without port",
			MORE(ALSO("10.0.0.1",
				"80") ",{'address':{'socketAddress':{'address':'::1'}}}"),
			MORE_AT "::1: no port_value"},
		{"A27-V05 additional address of port 0",
			MORE(ALSO("10.0.0.1", "80") "," ALSO("10.0.0.3", "0")),
			MORE_AT "10.0.0.3: port 0"},
	};
	RUN_ROWS(&res_type_endpoints, rows);
}

// A27-V06, A55-V07, AR-01, RH-01.
static void what_endpoints_have(void **state)
{
#define HOST(name) HOST_AND("10.0.0.2", "'hostname':'" name "'")
#define WEIGHS(ip, weight) EP_AND(ip, "'loadBalancingWeight':" weight)
#define HOST_AT FIRST "endpoint.hostname: "
	static const struct res_row rows[] = {
		{"WF-03 no endpoint weight, which is not 0", ONE(EP("10.0.0.2", "80")), NULL},
		{"A27-V06 endpoint weight 0", ONE(WEIGHS("10.0.0.2", "0")),
			FIRST "load_balancing_weight: must not be 0"},
		{"A27-V06 weight 0 of one that is ignored",
			ONE(EP_AND("10.0.0.2", "'healthStatus':2,'loadBalancingWeight':0")),
			FIRST "load_balancing_weight: must not be 0"},
		{"A27-V06 weights that add up to 2^32-1",
			ONE(WEIGHS("10.0.0.2", "4294967294") "," EP("10.0.0.3", "80")), NULL},
		{"A27-V06 weights that add up too high",
			ONE(WEIGHS("10.0.0.2", TOO_MUCH) "," EP("10.0.0.3", "80")),
			"=endpoints[0]: endpoint weights add up to 4294967296"},
		{"A27-V06 weights that add up too high with one that is ignored",
			ONE(WEIGHS("10.0.0.2", TOO_MUCH) "," EP_AND(
				"10.0.0.3", "'healthStatus':2")),
			"=endpoints[0]: endpoint weights add up to 4294967296"},
		{"A27-V06 each locality by itself",
			TWO(WEIGHS("10.0.0.2", TOO_MUCH), WEIGHS("10.0.0.3", TOO_MUCH)), NULL},
		{"A55-V07 every health",
			ONE(EP_AND("10.0.0.1", "'healthStatus':0") "," EP_AND(
				"10.0.0.2", "'healthStatus':1") "," EP_AND("10.0.0.3",
				"'healthStatus':2") "," EP_AND("10.0.0.4",
				"'healthStatus':3") "," EP_AND("10.0.0.5",
				"'healthStatus':4") "," EP_AND("10.0.0.6", "'healthStatus':5")),
			NULL},
		{"A55-V07 a health that nobody knows", ONE(EP_AND("10.0.0.1", "'healthStatus':77")),
			NULL},
		{"A27-V05 one that is ignored needs an address, too",
			ONE("{'healthStatus':2,'endpoint':{}}"),
			FIRST "endpoint.address: no socket_address"},
		{"AR-01 host name", ONE(HOST("Pod_1.svc.local:8080")), NULL},
		{"AR-01 IPv6 as host name", ONE(HOST("[fd00::1]:80")), NULL},
		{"AR-01 no host name", ONE(HOST("")), NULL},
		{"AR-01 host name with a line's end", ONE(HOST("a\\r\\nx: y")),
			HOST_AT "\"a\r\nx: y\" is not an authority"},
		{"AR-01 host name with a blank", ONE(HOST("a b")),
			HOST_AT "\"a b\" is not an authority"},
		{"AR-01 host name with user", ONE(HOST("u@a")),
			HOST_AT "\"u@a\" is not an authority"},
		{"AR-01 host name with a path", ONE(HOST("a/b")),
			HOST_AT "\"a/b\" is not an authority"},
		{"AR-01 host name beyond ASCII", ONE(HOST("\xc3\xa4")),
			HOST_AT "\"\xc3\xa4\" is not an authority"},
		{"RH-01 hash key of any text",
			ONE(EP_AND("10.0.0.1", "'metadata':{'filterMetadata':{'envoy.lb':"
					       "{'hash_key':'a b/\xc3\xa4'}}}")),
			NULL},
		{"RH-01 hash key that is no string",
			ONE(EP_AND("10.0.0.1",
				"'metadata':{'filterMetadata':{'envoy.lb':{'hash_key':[1]}}}")),
			NULL},
		{"CL-07 what is not read of an endpoint",
			ONE(HOST_AND("10.0.0.1",
				"'healthCheckConfig':{'portValue':99999,'hostname':'a b',"
				"'disableActiveHealthCheck':true}")),
			NULL},
	};
	RUN_ROWS(&res_type_endpoints, rows);
}

// HC-04, HC-05: of any endpoint, and of a locality.
static void proxies(void **state)
{
#define PROXY_KEY "envoy.http11_proxy_transport_socket.proxy_address"
#define PROXY(address)                                                                             \
	"'metadata':{'typedFilterMetadata':{'" PROXY_KEY                                           \
	"':{'@type':'type.googleapis.com/envoy.config.core.v3.Address'" address "}}}"
#define EP_PROXY(address) ONE(EP_AND("10.0.0.1", PROXY(address)))
#define LOCALITY_PROXY(weight, address)                                                            \
	CLA("{'locality':{},'loadBalancingWeight':" weight "," PROXY(address) "}")
#define KEY_AT "metadata: typed_filter_metadata: " PROXY_KEY ": "
	static const struct res_row rows[] = {
		{"HC-04 a proxy", EP_PROXY("," SOCKET("10.0.0.9", "3128")), NULL},
		{"HC-04 a locality's proxy", LOCALITY_PROXY("1", "," SOCKET("fd00::9", "3128")),
			NULL},
		{"HC-05 nothing", EP_PROXY(""), FIRST KEY_AT "no socket_address"},
		{"HC-05 a pipe", EP_PROXY(",'pipe':{'path':'/x'}"),
			FIRST KEY_AT "no socket_address"},
		{"HC-05 no address", EP_PROXY(",'socketAddress':{'portValue':1}"),
			FIRST KEY_AT "\"\" is not an IP address"},
		{"HC-05 a name", EP_PROXY("," SOCKET("proxy.example", "3128")),
			FIRST KEY_AT "\"proxy.example\" is not an IP address"},
		{"HC-05 link-local", EP_PROXY("," SOCKET("fe80::1", "3128")),
			FIRST KEY_AT "fe80::1: link-local, without a zone"},
		{"HC-05 no port", EP_PROXY(",'socketAddress':{'address':'10.0.0.9'}"),
			FIRST KEY_AT "10.0.0.9: no port_value"},
		{"HC-05 port 0", EP_PROXY("," SOCKET("10.0.0.9", "0")),
			FIRST KEY_AT "10.0.0.9: port 0"},
		{"HC-05 a port beyond", EP_PROXY("," SOCKET("10.0.0.9", "65536")),
			FIRST KEY_AT "10.0.0.9: port 65536"},
		{"HC-05 a locality's", LOCALITY_PROXY("1", "," SOCKET("x", "1")),
			"=endpoints[0]: " KEY_AT "\"x\" is not an IP address"},
		{"HC-05 of an unhealthy endpoint",
			ONE(EP_AND("10.0.0.1", "'healthStatus':'UNHEALTHY'," PROXY(""))),
			FIRST KEY_AT "no socket_address"},
		{"CL-05 of a locality without weight", LOCALITY_PROXY("0", ""), NULL},
	};
	RUN_ROWS(&res_type_endpoints, rows);
}

// A27-V08, WF-05.
static void drops(void **state)
{
#define PERCENT(x) DROP("{'category':'c','dropPercentage':{" x "}}")
#define GOOD_DROP "{'category':'c','dropPercentage':{'numerator':5}}"
#define DROP_AT "=policy.drop_overloads[0]: "
	static const struct res_row rows[] = {
		{"A27-V08 drop", DROP(GOOD_DROP), NULL},
		{"A27-V08 one category twice", DROP(GOOD_DROP "," GOOD_DROP), NULL},
		{"A27-V08 nothing of 100", PERCENT(""), NULL},
		{"WF-05 above 100 %", PERCENT("'numerator':4294967295"), NULL},
		{"A27-V08 of 10^4", PERCENT("'numerator':5,'denominator':'TEN_THOUSAND'"), NULL},
		{"A27-V08 of 10^6", PERCENT("'numerator':5,'denominator':'MILLION'"), NULL},
		{"A27-V08 without category", DROP("{'dropPercentage':{'numerator':5}}"),
			DROP_AT "no category"},
		{"A27-V08 of the empty category", DROP("{'category':'','dropPercentage':{}}"),
			DROP_AT "no category"},
		{"A27-V08 without percentage", DROP("{'category':'c'}"),
			DROP_AT "no drop_percentage"},
		{"A27-V08 nothing at all", DROP("{}"), DROP_AT "no category"},
		{"A27-V08 unknown denominator", PERCENT("'numerator':5,'denominator':9"),
			DROP_AT "drop_percentage: denominator 9"},
		{"A27-V08 the first number that is none", PERCENT("'denominator':3"),
			DROP_AT "drop_percentage: denominator 3"},
		{"A27-V08 negative denominator", PERCENT("'denominator':-1"),
			DROP_AT "drop_percentage: denominator -1"},
		{"A27-V08 the second one", DROP(GOOD_DROP ",{'category':'d'}"),
			"=policy.drop_overloads[1]: no drop_percentage"},
		{"A27-V08 without localities", DROP("{'category':'c'}"),
			DROP_AT "no drop_percentage"},
		{"CL-07 what is not read of a policy",
			POLICY("'overprovisioningFactor':0,'endpointStaleAfter':'-1s'"), NULL},
	};
	RUN_ROWS(&res_type_endpoints, rows);
}

RUN_SUITE("res/endpoints_rows", cmocka_unit_test(priorities), cmocka_unit_test(localities),
	cmocka_unit_test(addresses_that_are_there_twice), cmocka_unit_test(addresses),
	cmocka_unit_test(link_local_addresses), cmocka_unit_test(what_endpoints_have),
	cmocka_unit_test(proxies), cmocka_unit_test(drops))
