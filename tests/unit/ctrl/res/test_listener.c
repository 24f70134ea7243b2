// SPDX-License-Identifier: Apache-2.0
// Which listeners are accepted and which are refused with what words, filters apart
// (CL-02; A31-*, FLT-10).
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/type.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/res/decode.h"
#include "tests/unit/ctrl/res/json.h"
#include "tests/unit/ctrl/res/rows.h"

#define NO_ADS "=api_listener: rds: config_source is neither ads nor self"
#define NO_ROUTES "=api_listener: neither rds nor route_config"

static void listeners(void **state)
{
	static const struct res_row rows[] = {
		{"CL-02 rds over ads", ROUTED(RDS)},
		{"CL-02 rds over self",
			ROUTED("'rds':{'configSource':{'self':{}},'routeConfigName':'r'}")},
		{"CL-02 rds without a name", ROUTED("'rds':{'configSource':{'ads':{}}}"),
			"=api_listener: rds: no route_config_name"},
		{"CL-02 rds from a file",
			ROUTED("'rds':{'configSource':{'path':'/x'},'routeConfigName':'r'}"),
			NO_ADS},
		{"CL-02 rds without a source", ROUTED("'rds':{'routeConfigName':'r'}"), NO_ADS},
		{"CL-02 scoped routes", ROUTED("'scopedRoutes':{'name':'s'}"), NO_ROUTES},
		{"CL-02 no routes at all", LISTENER("'httpFilters':[" ROUTER "]"), NO_ROUTES},
		{"CL-02 inline routes", ROUTED("'routeConfig':{'name':'r','virtualHosts':[]}")},
		{"CL-02 bad inline routes", ROUTED("'routeConfig':{'virtualHosts':[{'name':'v'}]}"),
			"=api_listener: route_config: virtual host \"v\": no domains"},
		{"CL-02 something else in api_listener",
			"{'name':'l','apiListener':{'apiListener':" ANY(ROUTER_TYPE, "") "}}",
			"=api_listener: \"" URL ROUTER_TYPE "\" is not an HttpConnectionManager"},
		{"CL-02 empty api_listener", "{'name':'l','apiListener':{}}",
			"=api_listener: empty"},
		{"DM-08 socket listener",
			"{'name':'l','address':{'socketAddress':{'address':'0.0.0.0','portValue':1}"
			"}}"},
		{"neither", "{'name':'l'}", "=neither api_listener nor address"},
		{"A31-T01 max_stream_duration",
			ROUTED(RDS ",'commonHttpProtocolOptions':{'maxStreamDuration':'10s'}")},
		{"A28-V08 bad max_stream_duration",
			ROUTED(RDS ",'commonHttpProtocolOptions':{'maxStreamDuration':'-1s'}"),
			"=api_listener: common_http_protocol_options.max_stream_duration: seconds "
			"must be in [0, 315576000000]"},
		{"A31-T06 idle_timeout, request_timeout and the rest are not read",
			ROUTED(RDS ",'commonHttpProtocolOptions':{'idleTimeout':'-1s'},"
				   "'requestTimeout':'-1s'")},
		{"TH-98 stream_idle_timeout", ROUTED(RDS ",'streamIdleTimeout':'300s'")},
		{"TH-98 negative stream_idle_timeout", ROUTED(RDS ",'streamIdleTimeout':'-1s'"),
			"=api_listener: stream_idle_timeout: seconds must be in [0, 315576000000]"},
		{"FLT-10 xff_num_trusted_hops", ROUTED(RDS ",'xffNumTrustedHops':1"),
			"=api_listener: xff_num_trusted_hops: must be 0"},
		{"FLT-10 xff_num_trusted_hops 0", ROUTED(RDS ",'xffNumTrustedHops':0")},
		{"FLT-10 original_ip_detection_extensions",
			ROUTED(RDS ",'originalIpDetectionExtensions':[{'name':'x'}]"),
			"=api_listener: original_ip_detection_extensions: must be empty"},
	};
	RUN_ROWS(&res_type_listener, rows);
}

// gRFC A81: inline routes are the listener's server's.
static void inline_routes_know_who_sent_them(void **state)
{
	static const struct xds_server_conf trusted = {.trusted = true};
	struct xds_res *r = res_decode(
		&res_type_listener, ROUTED("'routeConfig':{'name':'r','virtualHosts':[]}"));
	const struct res_listener *l = res_listener_from(r);
	assert_false(xds_res_is_trusted(&l->routes->base));
	xds_res_set_server(r, &trusted);
	assert_true(xds_res_is_trusted(r));
	assert_true(xds_res_is_trusted(&l->routes->base));
	xds_res_put(r);
}

RUN_SUITE("res/listener", cmocka_unit_test(listeners),
	cmocka_unit_test(inline_routes_know_who_sent_them))
