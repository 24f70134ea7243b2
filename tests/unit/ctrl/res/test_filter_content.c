// SPDX-License-Identifier: Apache-2.0
// What decoded filters and overrides hold.
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "ctrl/xds/type.h"
#include "lb/base/time.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/res/decode.h"
#include "tests/unit/ctrl/res/json.h"

static void assert_str(struct str s, const char *wanted)
{
	if (!str_eq(s, str_from(wanted)))
		fail_msg("\"%.*s\" is not \"%s\"", (int)s.len, s.p, wanted);
}

// A listener with one filter beside the router, and the filter.
static const struct lb_filter *decode_filter(const char *json, struct xds_res **ret)
{
	*ret = res_decode(&res_type_listener, json);
	const struct res_listener *l = res_listener_from(*ret);
	assert_int_equal(l->n_filters, 1);
	assert_str(l->filters[0].name, "f");
	return &l->filters[0];
}

static const struct lb_filter *decode_override(const char *json, struct xds_res **ret)
{
	*ret = res_decode(&res_type_route_config, json);
	const struct lb_filter_overrides *o =
		&res_route_config_from(*ret)->vhosts[0].routes[0].policy->overrides;
	assert_int_equal(o->n, 1);
	assert_str(o->list[0].name, "f");
	return &o->list[0];
}

// FLT-02, FLT-03, FLT-05.
static void chains_keep_their_order_without_the_router_and_what_is_dropped(void **state)
{
	struct xds_res *res = res_decode(&res_type_listener,
		FILTERS("{'name':'s','typedConfig':" ANY(SESSION_TYPE,
			"") "},{'name':'x','isOptional':true},"
			    "{'name':'f','typedConfig':" ANY(FAULT_TYPE, "") "}," ROUTER));
	const struct res_listener *l = res_listener_from(res);
	assert_int_equal(l->n_filters, 2);
	assert_str(l->filters[0].name, "s");
	assert_int_equal(l->filters[0].kind, LB_FILTER_SESSION);
	assert_str(l->filters[1].name, "f");
	assert_int_equal(l->filters[1].kind, LB_FILTER_FAULT);
	xds_res_put(res);
}

#define FAULT(fields) FILTER(ANY(FAULT_TYPE, "," fields))

static void faults_are_kept_as_configured(void **state)
{
	struct xds_res *res;
	const struct lb_fault *f = &decode_filter(FILTER(ANY(FAULT_TYPE, "")), &res)->fault;
	assert_int_equal(f->delay, LB_DELAY_NONE);
	assert_int_equal(f->abort, LB_ABORT_NONE);
	assert_int_equal(f->max_active, UINT32_MAX);
	xds_res_put(res);

	f = &decode_filter(FAULT("'delay':{'fixedDelay':'1.5s','percentage':{'numerator':7,"
				 "'denominator':'MILLION'}},'abort':{'httpStatus':503,'percentage':"
				 "{'numerator':429497,'denominator':'TEN_THOUSAND'}},"
				 "'maxActiveFaults':3"),
		&res)
	             ->fault;
	assert_int_equal(f->delay, LB_DELAY_FIXED);
	assert_true(f->delay_ns == 1500000000);
	assert_int_equal(f->delay_numerator, 7);
	assert_int_equal(f->delay_denominator, 1000000);
	assert_int_equal(f->abort, LB_ABORT_HTTP);
	assert_int_equal(f->abort_status, 503);
	assert_int_equal(f->abort_numerator, 429497);
	assert_int_equal(f->abort_denominator, 10000);
	assert_int_equal(f->max_active, 3);
	xds_res_put(res);

	f = &decode_filter(FAULT("'delay':{'headerDelay':{}},'abort':{'headerAbort':{},"
				 "'percentage':{'numerator':50}},'maxActiveFaults':0"),
		&res)
	             ->fault;
	assert_int_equal(f->delay, LB_DELAY_HEADER);
	assert_int_equal(f->delay_numerator, 0); // no percentage: never
	assert_int_equal(f->delay_denominator, 100);
	assert_int_equal(f->abort, LB_ABORT_HEADER);
	assert_int_equal(f->abort_numerator, 50);
	assert_int_equal(f->abort_denominator, 100);
	assert_int_equal(f->max_active, 0); // FI-08: off
	xds_res_put(res);
}

static void a_grpc_status_beyond_16_is_unknown(void **state) // FI-05
{
	static const struct {
		const char *json;
		uint32_t status;
	} rows[] = {
		{FAULT("'abort':{'grpcStatus':0}"), 0},
		{FAULT("'abort':{'grpcStatus':16}"), 16},
		{FAULT("'abort':{'grpcStatus':17}"), 2},
		{FAULT("'abort':{'grpcStatus':4294967295}"), 2},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xds_res *res;
		const struct lb_fault *f = &decode_filter(rows[i].json, &res)->fault;
		assert_int_equal(f->abort, LB_ABORT_GRPC);
		assert_int_equal(f->abort_status, rows[i].status);
		xds_res_put(res);
	}
}

#define SESSION(state) FILTER(ANY(SESSION_TYPE, ",'sessionState':{'typedConfig':" state "}"))

static void sessions_are_kept_as_configured(void **state)
{
	struct xds_res *res;
	const struct lb_session *s = // SA-01: does nothing
		&decode_filter(FILTER(ANY(SESSION_TYPE, "")), &res)->session;
	assert_false(s->enabled);
	xds_res_put(res);

	s = &decode_filter(SESSION(ANY(COOKIE_TYPE, ",'cookie':{'name':'c'}")), &res)->session;
	assert_true(s->enabled);
	assert_str(s->cookie, "c");
	assert_str(s->path, "");
	assert_true(s->ttl_s == 0);
	xds_res_put(res);

	s = &decode_filter(SESSION(ANY(COOKIE_TYPE, ",'cookie':{'name':'sid','path':'/a',"
						    "'ttl':'3600.9s'}")),
		&res)
	             ->session;
	assert_str(s->cookie, "sid");
	assert_str(s->path, "/a");
	assert_true(s->ttl_s == 3600);
	xds_res_put(res);
}

static void a_typed_struct_stands_for_the_message_it_names(void **state) // FLT-04
{
	struct xds_res *res;
	const struct lb_filter *f =
		decode_filter(FILTER(STRUCT_ANY(TYPED_STRUCT, FAULT_TYPE,
				      "'abort':{'grpc_status':5,'percentage':{'numerator':7,"
				      "'denominator':'MILLION'}},'max_active_faults':3")),
			&res);
	assert_int_equal(f->kind, LB_FILTER_FAULT);
	assert_int_equal(f->fault.abort, LB_ABORT_GRPC);
	assert_int_equal(f->fault.abort_status, 5);
	assert_int_equal(f->fault.abort_numerator, 7);
	assert_int_equal(f->fault.abort_denominator, 1000000);
	assert_int_equal(f->fault.max_active, 3);
	xds_res_put(res);

	f = decode_filter(SESSION(STRUCT_ANY(OLD_TYPED_STRUCT, COOKIE_TYPE,
				  "'cookie':{'name':'c','ttl':'5s'}")),
		&res);
	assert_true(f->session.enabled);
	assert_true(f->session.ttl_s == 5);
	xds_res_put(res);
}

#define WRAPPED(any, more) OVERRIDE(ANY(FILTER_CONFIG_TYPE, ",'config':" any more))
#define ABORT_503 ANY(FAULT_TYPE, ",'abort':{'httpStatus':503}")

// FLT-09: overrides may switch it on, with what the listener has configured.
static void a_disabled_filter_keeps_its_configuration(void **state)
{
	struct xds_res *res;
	const struct lb_filter *f = decode_filter(FILTER_AND(ABORT_503, ",'disabled':true"), &res);
	assert_true(f->disabled);
	assert_int_equal(f->fault.abort_status, 503);
	xds_res_put(res);
	f = decode_filter(FILTER(ABORT_503), &res);
	assert_false(f->disabled);
	xds_res_put(res);
}

static void a_filter_config_may_be_a_switch_alone(void **state) // FLT-09
{
	static const struct {
		const char *json;
		enum lb_filter_kind kind;
		bool disabled;
	} rows[] = {
		{WRAPPED(ABORT_503, ""), LB_FILTER_FAULT, false},
		{WRAPPED(ABORT_503, ",'disabled':true"), LB_FILTER_SWITCH, true},
		{WRAPPED("{}", ",'disabled':true"), LB_FILTER_SWITCH, true},
		{OVERRIDE(ANY(FILTER_CONFIG_TYPE, ",'disabled':true")), LB_FILTER_SWITCH, true},
		{WRAPPED("{}", ""), LB_FILTER_SWITCH, false},
		{WRAPPED("{}", ",'isOptional':true"), LB_FILTER_SWITCH, false},
		{OVERRIDE(STRUCT_ANY(TYPED_STRUCT, FILTER_CONFIG_TYPE, "'config':{}")),
			LB_FILTER_SWITCH, false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xds_res *res;
		const struct lb_filter *f = decode_override(rows[i].json, &res);
		assert_int_equal(f->kind, rows[i].kind);
		assert_int_equal(f->disabled, rows[i].disabled);
		xds_res_put(res);
	}
}

static void a_session_is_switched_off_or_replaced_by_a_route(void **state) // SA-19
{
	struct xds_res *res;
	const struct lb_filter *f =
		decode_override(OVERRIDE(ANY(PER_ROUTE_TYPE, ",'disabled':true")), &res);
	assert_int_equal(f->kind, LB_FILTER_SESSION);
	assert_false(f->session.enabled);
	xds_res_put(res);
	f = decode_override(OVERRIDE(ANY(PER_ROUTE_TYPE,
				    ",'statefulSession':{'sessionState':{'typedConfig':" ANY(
					    COOKIE_TYPE, ",'cookie':{'name':'c'}") "}}")),
		&res);
	assert_true(f->session.enabled);
	assert_str(f->session.cookie, "c");
	xds_res_put(res);
}

#define DELAY(seconds) ANY(FAULT_TYPE, ",'delay':{'fixedDelay':'" seconds "s'}")

static uint64_t delay_s(const struct lb_filter_overrides *o)
{
	assert_int_equal(o->n, 1);
	assert_str(o->list[0].name, "f");
	return o->list[0].fault.delay_ns / NS_PER_SECOND;
}

static void overrides_stand_at_three_levels(void **state) // FLT-06
{
	struct xds_res *res = res_decode(&res_type_route_config,
		VHOST_AND("'*'",
			"{'match':{'prefix':'/'},'route':{'weightedClusters':{'clusters':["
			"{'name':'a','weight':1," OVERRIDES(
				"'f':" DELAY("3")) "},"
						   "{'name':'b','weight':1}]}}," OVERRIDES(
							   "'f':" DELAY("2")) "}",
			"," OVERRIDES("'f':" DELAY("1"))));
	const struct res_vhost *v = &res_route_config_from(res)->vhosts[0];
	assert_int_equal(delay_s(&v->overrides), 1);
	assert_int_equal(delay_s(&v->routes[0].policy->overrides), 2);
	assert_int_equal(delay_s(&v->routes[0].clusters[0].overrides), 3);
	assert_int_equal(v->routes[0].clusters[1].overrides.n, 0);
	xds_res_put(res);
}

static void optional_overrides_of_unknown_type_are_dropped_alone(void **state) // FLT-08
{
	struct xds_res *res = res_decode(&res_type_route_config,
		ROUTE("'prefix':'/'", TO_C "," OVERRIDES("'x':" ANY(FILTER_CONFIG_TYPE,
					      ","
					      "'isOptional':true,'config':" ANY(
						      COOKIE_TYPE, "")) ",'f':" DELAY("9"))));
	assert_int_equal(
		delay_s(&res_route_config_from(res)->vhosts[0].routes[0].policy->overrides), 9);
	xds_res_put(res);
}

static void a_listeners_limit_of_0_is_none(void **state) // A31-T01, A31-T02
{
#define LIMIT(text) ROUTED(RDS ",'commonHttpProtocolOptions':{" text "}")
	static const struct {
		const char *json;
		uint64_t ns;
	} rows[] = {
		{ROUTED(RDS), LB_NO_TIMEOUT},
		{LIMIT("'idleTimeout':'3s'"), LB_NO_TIMEOUT},
		{LIMIT("'maxStreamDuration':'0s'"), LB_NO_TIMEOUT},
		{LIMIT("'maxStreamDuration':'10s'"), 10000000000},
		{LIMIT("'maxStreamDuration':'0.000000001s'"), 1},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xds_res *res = res_decode(&res_type_listener, rows[i].json);
		assert_true(res_listener_from(res)->max_stream_duration_ns == rows[i].ns);
		assert_int_equal(res_listener_from(res)->n_filters, 0);
		xds_res_put(res);
	}
}

// TH-98: 0 is a limit of its own, which says that there is none.
static void an_idle_timeout_of_0_is_not_an_absent_one(void **state)
{
	static const struct {
		const char *json;
		uint64_t ns;
	} rows[] = {
		{ROUTED(RDS), 0},
		{ROUTED(RDS ",'streamIdleTimeout':'0s'"), LB_NO_TIMEOUT},
		{ROUTED(RDS ",'streamIdleTimeout':'1.5s'"), 1500000000},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xds_res *res = res_decode(&res_type_listener, rows[i].json);
		assert_true(res_listener_from(res)->stream_idle_ns == rows[i].ns);
		xds_res_put(res);
	}
}

RUN_SUITE("res/filter_content", cmocka_unit_test(an_idle_timeout_of_0_is_not_an_absent_one),
	cmocka_unit_test(chains_keep_their_order_without_the_router_and_what_is_dropped),
	cmocka_unit_test(faults_are_kept_as_configured),
	cmocka_unit_test(a_grpc_status_beyond_16_is_unknown),
	cmocka_unit_test(sessions_are_kept_as_configured),
	cmocka_unit_test(a_typed_struct_stands_for_the_message_it_names),
	cmocka_unit_test(a_disabled_filter_keeps_its_configuration),
	cmocka_unit_test(a_filter_config_may_be_a_switch_alone),
	cmocka_unit_test(a_session_is_switched_off_or_replaced_by_a_route),
	cmocka_unit_test(overrides_stand_at_three_levels),
	cmocka_unit_test(optional_overrides_of_unknown_type_are_dropped_alone),
	cmocka_unit_test(a_listeners_limit_of_0_is_none))
