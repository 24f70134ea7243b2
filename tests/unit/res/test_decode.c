// SPDX-License-Identifier: Apache-2.0
// Which endpoints are accepted and which are refused with what words: one row a rule.
#include "ctrl/res/endpoints.h"
#include "ctrl/xds/type.h"
#include "tests/support/check.h"
#include "tests/unit/res/rows.h"

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
	static const struct res_row rows[] = {
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
#define HOST(name) "{'endpoint':{" ADDRESS("10.0.0.2", "80") ",'hostname':'" name "'}}"
		{"AR-01 host name", ONE(HOST("Pod_1.svc.local:8080")), NULL},
		{"AR-01 IPv6 as host name", ONE(HOST("[fd00::1]:80")), NULL},
		{"AR-01 no host name", ONE(HOST("")), NULL},
		{"AR-01 host name with a line's end", ONE(HOST("a\\r\\nx: y")),
			"lb_endpoints[0]: endpoint.hostname: \"a\r\nx: y\" is no authority"},
		{"AR-01 host name with a blank", ONE(HOST("a b")), "\"a b\" is no authority"},
		{"AR-01 host name with user", ONE(HOST("u@a")), "\"u@a\" is no authority"},
		{"AR-01 host name with a path", ONE(HOST("a/b")), "\"a/b\" is no authority"},
		{"AR-01 host name beyond ASCII", ONE(HOST("\xc3\xa4")), "is no authority"},
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

RUN_SUITE("res/decode", cmocka_unit_test(endpoints))
