// SPDX-License-Identifier: Apache-2.0
// health_checks: what is accepted and refused, and what becomes of it (AHC-01, AHC-09, AHC-10).
#include "ctrl/res/cluster.h"
#include "ctrl/xds/type.h"
#include "lb/base/time.h"
#include "lb/pick/check.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/res/cluster_json.h"
#include "tests/unit/ctrl/res/decode.h"
#include "tests/unit/ctrl/res/rows.h"

#define CHECKS(list) EDS_AND("'healthChecks':[" list "]")
#define TIMES "'timeout':'1s','interval':'5s',"
#define THRESHOLDS "'unhealthyThreshold':3,'healthyThreshold':2,"
#define CHECK_OF(x) "{" TIMES THRESHOLDS x "}"
#define TCP_OF(x) "'tcpHealthCheck':{" x "}"
#define HTTP_OF(x) "'httpHealthCheck':{'path':'/'" x "}"
#define GRPC_OF(x) "'grpcHealthCheck':{" x "}"
#define TCP(x) CHECKS(CHECK_OF(TCP_OF(x)))
#define HTTP(x) CHECKS(CHECK_OF(HTTP_OF(x)))
#define GRPC(x) CHECKS(CHECK_OF(GRPC_OF(x)))
#define S NS_PER_SECOND

static void fields_are_checked(void **state)
{
#define AT "=health_checks[0]: "
#define HTTP_AT AT "http_health_check: "
#define RANGES(name, start, end) HTTP(",'" name "':[{'start':" start ",'end':" end "}]")
#define RANGE "{'start':500,'end':501}"
#define RANGES_4 RANGE "," RANGE "," RANGE "," RANGE
#define RANGES_16 RANGES_4 "," RANGES_4 "," RANGES_4 "," RANGES_4
#define RANGES_64 RANGES_16 "," RANGES_16 "," RANGES_16 "," RANGES_16
#define ADDED(fields) HTTP(",'requestHeadersToAdd':[{" fields "}]")
	static const struct res_row rows[] = {
		{"nothing in it", CHECKS("{}"), AT "timeout: must be set"},
		{"AHC-09 two", CHECKS(CHECK_OF(TCP_OF("")) "," CHECK_OF(TCP_OF(""))),
			"=health_checks: must be one, not 2"},
		{"no interval", CHECKS("{'timeout':'1s'," THRESHOLDS TCP_OF("") "}"),
			AT "interval: must be set"},
		{"no unhealthy_threshold", CHECKS("{" TIMES "'healthyThreshold':1," TCP_OF("") "}"),
			AT "unhealthy_threshold: must be set"},
		{"no healthy_threshold", CHECKS("{" TIMES "'unhealthyThreshold':1," TCP_OF("") "}"),
			AT "healthy_threshold: must be set"},
		{"timeout 0", CHECKS("{'timeout':'0s','interval':'1s'," THRESHOLDS TCP_OF("") "}"),
			AT "timeout: must be above 0"},
		{"negative interval",
			CHECKS("{'timeout':'1s','interval':'-1s'," THRESHOLDS TCP_OF("") "}"),
			AT "interval: seconds must be in [0, 315576000000]"},
		{"no_traffic_interval 0", CHECKS(CHECK_OF("'noTrafficInterval':'0s'," TCP_OF(""))),
			AT "no_traffic_interval: must be above 0"},
		{"no kind", CHECKS("{" TIMES "'unhealthyThreshold':1,'healthyThreshold':1}"),
			AT "health_checker: must be set"},
		{"TCP that connects", TCP(""), NULL},
		{"TCP that sends",
			TCP("'send':{'text':'00fF'},'receive':[{'text':'0a'},{'binary':'AAE='}]"),
			NULL},
		{"TCP, odd digits", TCP("'send':{'text':'000'}"),
			AT "tcp_health_check: send: text: is not hexadecimal"},
		{"TCP, no digits", TCP("'receive':[{'text':'0a'},{'text':'0g'}]"),
			AT "tcp_health_check: receive[1]: text: is not hexadecimal"},
		{"TCP, empty payload", TCP("'send':{}"), AT "tcp_health_check: send: is empty"},
		{"HTTP", HTTP(""), NULL},
		{"HTTP without a path", CHECKS(CHECK_OF("'httpHealthCheck':{}")),
			HTTP_AT "path: \"\" is not a path"},
		{"HTTP, a path with a blank", CHECKS(CHECK_OF("'httpHealthCheck':{'path':'/a b'}")),
			HTTP_AT "path: \"/a b\" is not a path"},
		{"HTTP, host", HTTP(",'host':'a b'"), HTTP_AT "host: \"a b\" is not an authority"},
		{"HTTP, statuses", RANGES("expectedStatuses", "100", "600"), NULL},
		{"HTTP, statuses too low", RANGES("expectedStatuses", "99", "200"),
			HTTP_AT "expected_statuses[0]: must be in [100, 600)"},
		{"HTTP, statuses too high", RANGES("retriableStatuses", "200", "601"),
			HTTP_AT "retriable_statuses[0]: must be in [100, 600)"},
		{"HTTP, no status", RANGES("expectedStatuses", "200", "200"),
			HTTP_AT "expected_statuses[0]: must be in [100, 600)"},
		{"HTTP, 64 ranges of statuses", HTTP(",'retriableStatuses':[" RANGES_64 "]"), NULL},
		{"HTTP, 65 ranges of statuses",
			HTTP(",'retriableStatuses':[" RANGES_64 "," RANGE "]"),
			HTTP_AT "retriable_statuses: has more than 64 entries"},
		{"HTTP, method", HTTP(",'method':'HEAD'"), NULL},
		{"HTTP, CONNECT", HTTP(",'method':'CONNECT'"),
			HTTP_AT "method: CONNECT is not supported"},
		{"AHC-02 HTTP/1", HTTP(",'codecClientType':'HTTP1'"), NULL},
		{"AHC-02 HTTP/2", HTTP(",'codecClientType':'HTTP2'"), NULL},
		{"AHC-02 HTTP/3", HTTP(",'codecClientType':'HTTP3'"),
			HTTP_AT "codec_client_type: HTTP3 is not supported"},
		{"HTTP, a field", ADDED("'header':{'key':'X-A','value':'b'}"), NULL},
		{"HTTP, a field of the connection", ADDED("'header':{'key':'Host','value':'b'}"),
			HTTP_AT "request_headers_to_add: [0]: header: \"Host\" cannot be sent"},
		{"HTTP, a field without a name", ADDED(""),
			HTTP_AT "request_headers_to_add: [0]: header: \"\" cannot be sent"},
		{"HTTP, a value with a line's end", ADDED("'header':{'key':'a','value':'b\\nc'}"),
			HTTP_AT
			"request_headers_to_add: [0]: header: the value of a cannot be sent"},
		{"HTTP, a substitution", ADDED("'header':{'key':'a','value':'%START_TIME%'}"),
			HTTP_AT
			"request_headers_to_add: [0]: header: the value of a cannot be sent"},
		{"ENV-04 name of the service", HTTP(",'serviceNameMatcher':{'exact':'x'}"), NULL,
			"health_checks: service_name_matcher is ignored"},
		{"gRPC", GRPC(""), NULL},
		{"gRPC, authority", GRPC("'authority':'u@x'"),
			AT "grpc_health_check: authority: \"u@x\" is not an authority"},
		{"AHC-09 custom", CHECKS(CHECK_OF("'customHealthCheck':{'name':'redis'}")), NULL,
			"health_checks: custom_health_check is ignored"},
		{"ENV-04 tls_options", CHECKS(CHECK_OF("'tlsOptions':{}," TCP_OF(""))), NULL,
			"health_checks: tls_options is ignored"},
		{"ENV-04 transport_socket_match_criteria",
			CHECKS(CHECK_OF("'transportSocketMatchCriteria':{}," TCP_OF(""))), NULL,
			"health_checks: transport_socket_match_criteria is ignored"},
		{"AHC-10 an aggregate",
			CLUSTER(OF("'a'") ",'healthChecks':[" CHECK_OF(TCP_OF("")) "]"), NULL,
			"health_checks are ignored: the cluster is an aggregate"},
		{"AHC-10 pick_first",
			CLUSTER(FROM_EDS ",'loadBalancingPolicy':" LIST(
				PICK_FIRST) ",'healthChecks':[" CHECK_OF(TCP_OF("")) "]"),
			NULL, "health_checks are ignored: the policy is pick_first"},
	};
	RUN_ROWS(&res_type_cluster, rows);
}

static struct xds_res *decode(const char *json, const struct lb_check **ret)
{
	struct xds_res *r = res_decode(&res_type_cluster, json);
	*ret = ((const struct res_cluster *)r)->check;
	return r;
}

static void assert_text(struct str s, const char *text)
{
	assert_true(str_eq(s, str_from(text)));
}

static void unset_fields_have_envoys_defaults(void **state)
{
	const struct lb_check *c;
	struct xds_res *r = decode(CLUSTER(FROM_EDS), &c);
	assert_null(c);
	xds_res_put(r);

	r = decode(HTTP(""), &c);
	assert_int_equal(c->kind, LB_CHECK_HTTP);
	assert_true(c->keeps_connection);
	assert_int_equal(c->timeout_ns, S);
	assert_int_equal(c->interval_ns, 5 * S);
	assert_int_equal(c->unhealthy_interval_ns, 5 * S);
	assert_int_equal(c->unhealthy_edge_ns, 5 * S);
	assert_int_equal(c->healthy_edge_ns, 5 * S);
	assert_int_equal(c->no_traffic_ns, 60 * S);
	assert_int_equal(c->no_traffic_healthy_ns, 60 * S);
	assert_int_equal(c->initial_jitter_ns + c->jitter_ns + c->jitter_percent, 0);
	assert_int_equal(c->unhealthy_threshold, 3);
	assert_int_equal(c->healthy_threshold, 2);
	assert_text(c->method, "GET");
	assert_text(c->path, "/");
	assert_text(c->authority, "c"); // the cluster's name
	assert_int_equal(c->n_fields, 1);
	assert_text(c->fields[0].name, "user-agent");
	assert_text(c->fields[0].value, "Shunt/HC");
	assert_true(lb_status_is_in(c->expected, 200));
	assert_false(lb_status_is_in(c->expected, 201) || lb_status_is_in(c->expected, 199));
	assert_false(lb_status_is_in(c->retriable, 503));
	xds_res_put(r);
}

static void set_times_are_kept(void **state)
{
	const struct lb_check *c;
	struct xds_res *r =
		decode(CHECKS(CHECK_OF("'reuseConnection':false,'unhealthyInterval':'6s',"
				       "'unhealthyEdgeInterval':'7s','healthyEdgeInterval':'8s',"
				       "'noTrafficInterval':'9s','noTrafficHealthyInterval':'10s',"
				       "'initialJitter':'0.5s','intervalJitter':'0.25s',"
				       "'intervalJitterPercent':15," GRPC_OF(""))),
			&c);
	assert_false(c->keeps_connection);
	assert_int_equal(c->unhealthy_interval_ns, 6 * S);
	assert_int_equal(c->unhealthy_edge_ns, 7 * S);
	assert_int_equal(c->healthy_edge_ns, 8 * S);
	assert_int_equal(c->no_traffic_ns, 9 * S);
	assert_int_equal(c->no_traffic_healthy_ns, 10 * S);
	assert_int_equal(c->initial_jitter_ns, S / 2);
	assert_int_equal(c->jitter_ns, S / 4);
	assert_int_equal(c->jitter_percent, 15);
	xds_res_put(r);
	r = decode(
		CHECKS("{'timeout':'315576000000s','interval':'315576000000s'," THRESHOLDS TCP_OF(
			"") "}"),
		&c);
	assert_int_equal(c->timeout_ns, 24 * 3600 * S);
	assert_int_equal(c->interval_ns, UINT64_MAX);
	xds_res_put(r);
}

static void a_request_by_http_is_as_the_resource_says(void **state)
{
	const struct lb_check *c;
	struct xds_res *r = decode(
		HTTP(",'host':'h:1','method':'POST','send':{'text':'616263'},"
		     "'receive':[{'text':'6f6b'}],"
		     "'expectedStatuses':[{'start':204,'end':205}],"
		     "'retriableStatuses':[{'start':500,'end':505}],"
		     "'requestHeadersToAdd':[{'header':{'key':'X-Check','value':'1'}},"
		     "{'header':{'key':'User-Agent','value':'me'}},"
		     "{'header':{'key':'x-check','value':'2'},'appendAction':'ADD_IF_ABSENT'},"
		     "{'header':{'key':'x-gone','value':'3'}},{'header':{'key':'x-empty'}}],"
		     "'requestHeadersToRemove':['X-Gone','absent']"),
		&c);
	assert_text(c->authority, "h:1");
	assert_text(c->method, "POST");
	assert_text(c->body, "abc");
	assert_int_equal(c->n_receive, 1);
	assert_text(c->receive[0], "ok");
	assert_true(lb_status_is_in(c->expected, 204));
	assert_false(lb_status_is_in(c->expected, 200));
	assert_true(lb_status_is_in(c->retriable, 504));
	assert_false(lb_status_is_in(c->retriable, 505));
	assert_int_equal(c->n_fields, 2);
	assert_text(c->fields[0].name, "x-check");
	assert_text(c->fields[0].value, "1");
	assert_text(c->fields[1].name, "user-agent");
	assert_text(c->fields[1].value, "me");
	xds_res_put(r);
}

#define FIELD(name, value, rest) "{'header':{'key':'" name "','value':'" value "'}" rest "}"
#define AS(x) ",'appendAction':'" x "'"

static void fields_of_one_name_are_added_as_their_actions_say(void **state)
{
	static const char *const values[] = {"1", "2", "5", "7", "9"};
	const struct lb_check *c;
	struct xds_res *r = decode(
		HTTP(",'requestHeadersToRemove':['user-agent'],'requestHeadersToAdd':[" FIELD("a",
			"1", "") "," FIELD("A", "2", "") "," FIELD("b", "3", "") "," FIELD("b", "4",
			"") "," FIELD("b", "5", AS("OVERWRITE_IF_EXISTS_OR_ADD")) "," FIELD("c",
			"6", AS("OVERWRITE_IF_EXISTS")) "," FIELD("d", "7",
			AS("ADD_IF_ABSENT")) "," FIELD("e", "8", "") "," FIELD("e", "9",
			",'append':false") "]"),
		&c);
	assert_int_equal(c->n_fields, 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_text(c->fields[i].value, values[i]);
	xds_res_put(r);
}

static void a_request_by_grpc_names_its_service(void **state)
{
	static const char with_name[] = "\0\0\0\0\5\n\3a.B", without[] = "\0\0\0\0";
	const struct lb_check *c;
	struct xds_res *r = decode(GRPC("'serviceName':'a.B','authority':'x',"
					"'initialMetadata':[{'header':{'key':'k','value':'v'}}]"),
		&c);
	assert_int_equal(c->kind, LB_CHECK_GRPC);
	assert_text(c->method, "POST");
	assert_text(c->path, "/grpc.health.v1.Health/Check");
	assert_text(c->authority, "x");
	assert_true(str_eq(c->body, (struct str){with_name, sizeof(with_name) - 1}));
	assert_int_equal(c->n_fields, 4);
	assert_text(c->fields[1].value, "application/grpc");
	assert_text(c->fields[3].name, "k");
	xds_res_put(r);
	r = decode(GRPC(""), &c);
	assert_true(str_eq(c->body, (struct str){without, sizeof(without)}));
	xds_res_put(r);
}

static void blocks_are_found_one_after_the_other(void **state)
{
	const struct lb_check *c;
	struct xds_res *r =
		decode(TCP("'send':{'text':'50'},'receive':[{'text':'6162'},{'text':'6263'}]"), &c);
	assert_int_equal(c->kind, LB_CHECK_TCP);
	assert_false(c->keeps_connection);
	assert_text(c->body, "P");
	assert_true(lb_check_finds(c, STR("xabxxbcx")));
	assert_true(lb_check_finds(c, STR("abbc")));
	assert_false(lb_check_finds(c, STR("abc")));
	assert_false(lb_check_finds(c, STR("bcab")));
	assert_false(lb_check_finds(c, STR("")));
	xds_res_put(r);
}

RUN_SUITE("res/health_check", cmocka_unit_test(fields_are_checked),
	cmocka_unit_test(unset_fields_have_envoys_defaults), cmocka_unit_test(set_times_are_kept),
	cmocka_unit_test(a_request_by_http_is_as_the_resource_says),
	cmocka_unit_test(fields_of_one_name_are_added_as_their_actions_say),
	cmocka_unit_test(a_request_by_grpc_names_its_service),
	cmocka_unit_test(blocks_are_found_one_after_the_other))
