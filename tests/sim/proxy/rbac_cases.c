// SPDX-License-Identifier: Apache-2.0
// Access control, one situation a test (gRFC A41; A41-13 to A41-15, A41-17).
#include "lb/pick/cause.h"
#include "lb/pick/link.h"
#include "lb/route/filter.h"
#include "lb/route/rbac.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#include <string.h>

static const struct lb_rbac_policy everybody = {
	.name = STR("everybody"), .rule = {.kind = LB_RBAC_ANY}};
static const struct lb_rbac_rules deny_all = {
	.action = LB_RBAC_DENY, .policies = &everybody, .n = 1};
static const struct lb_rbac_rules allow_all = {
	.action = LB_RBAC_ALLOW, .policies = &everybody, .n = 1};
static const struct lb_rbac_rules log_all = {.action = LB_RBAC_LOG, .policies = &everybody, .n = 1};

static struct lb_filter rbac(const char *name, const struct lb_rbac_conf *conf)
{
	return (struct lb_filter){
		.name = str_from(name), .kind = LB_FILTER_RBAC, .rbac.conf = conf};
}

static struct world *world_with(const struct lb_filter *list, uint32_t n)
{
	struct world *w = ready_world(NULL);
	control_set_filters(&w->control, 0, list, n, LB_NO_TIMEOUT, 0);
	return w;
}

static void a41_14_a_denied_request_reaches_no_backend(void **state)
{
	static const struct lb_rbac_conf conf = {.rules = &deny_all};
	const struct lb_filter f = rbac("f", &conf);
	struct world *w = world_with(&f, 1);
	struct ask *grpc = ask(w, KIND_ECHO, 0), *large = ask(w, KIND_ECHO, 150000);
	struct ask *plain = ask(w, KIND_PLAIN, 0);
	finish(w);
	assert_reply(grpc, 7);
	assert_string_equal(grpc->message, "filter f: policy everybody denies it");
	assert_reply(large, 7);
	assert_int_equal(plain->http_status, 403);
	assert_int_equal(w->n_served, 0);
	assert_int_equal(world_ended(w, LB_CAUSE_DENIED), 3);
	assert_int_equal(world_counter(w, "rbac_denied"), 3);
	assert_int_equal(world_counter(w, "rbac_allowed"), 0);
	world_free(w);
}

// A41-14: nor do filters behind; a delay before it is not waited for.
static void a41_14_a_denial_waits_for_no_delay(void **state)
{
	static const struct lb_rbac_conf conf = {.rules = &deny_all};
	const struct lb_filter list[] = {
		{.name = STR("slow"),
			.kind = LB_FILTER_FAULT,
			.fault = {.delay = LB_DELAY_FIXED,
				.delay_ns = 500 * MS,
				.delay_numerator = 100,
				.delay_denominator = 100,
				.max_active = UINT32_MAX}},
		rbac("f", &conf),
	};
	struct world *w = world_with(list, 2);
	struct ask *a = ask(w, KIND_ECHO, 0);
	finish(w);
	assert_reply(a, 7);
	assert_in_range(took_ns(a), 0, 100 * MS);
	assert_int_equal(w->shared->active_faults, 0);
	world_free(w);
}

static void a41_15_shadow_rules_and_logs_are_counted_alone(void **state)
{
	static const struct lb_rbac_conf shadow = {.rules = &allow_all, .shadow = &deny_all},
					 logs = {.rules = &log_all, .shadow = &allow_all};
	const struct lb_filter list[] = {rbac("f", &shadow), rbac("g", &logs)};
	struct world *w = world_with(list, 2);
	struct ask *a = ask(w, KIND_ECHO, 100);
	finish(w);
	assert_ok(w, a);
	assert_int_equal(world_counter(w, "rbac_allowed"), 1);
	assert_int_equal(world_counter(w, "rbac_denied"), 0);
	assert_int_equal(world_counter(w, "rbac_shadow_denied"), 1);
	assert_int_equal(world_counter(w, "rbac_shadow_allowed"), 1);
	assert_int_equal(world_counter(w, "rbac_logged"), 1);
	world_free(w);
}

static void a41_17_a_route_may_be_open(void **state)
{
	static const struct lb_rbac_conf closed = {.rules = &deny_all}, open = {.rules = NULL};
	const struct lb_filter f = rbac("f", &closed), none = rbac("f", &open);
	struct world *w = world_with(&f, 1);
	const struct lb_route_policy policy = {.overrides = {&none, 1}};
	struct ask *before = ask(w, KIND_ECHO, 100);
	finish(w);
	assert_reply(before, 7);
	control_set_policy(&w->control, ROUTE_ONE, &policy);
	struct ask *after = ask(w, KIND_ECHO, 100);
	finish(w);
	assert_ok(w, after);
	assert_int_equal(world_counter(w, "rbac_allowed"), 0); // it had nothing to say
	world_free(w);
}

// One of the client's and of our own address, and a port that is not ours.
static void a41_13_the_ends_of_the_connection_are_known(void **state)
{
	struct world *w = ready_world(NULL);
	const struct tcp_flow *flow = tcp_conn_flow(w->clients[0].tcp);
	const struct lb_rbac_rule ends[] = {
		{.kind = LB_RBAC_DIRECT_IP, .range = {flow->local, 128}},
		{.kind = LB_RBAC_SOURCE_IP, .range = {flow->local, 128}},
		{.kind = LB_RBAC_REMOTE_IP, .range = {flow->local, 128}},
		{.kind = LB_RBAC_DESTINATION_IP, .range = {flow->remote, 128}},
		{.kind = LB_RBAC_DESTINATION_PORT, .port = flow->remote_port},
	};
	struct lb_rbac_policy policy = {
		.name = STR("p"), .rule = {.kind = LB_RBAC_AND, .rules = ends, .n = 5}};
	const struct lb_rbac_rules rules = {.action = LB_RBAC_ALLOW, .policies = &policy, .n = 1};
	const struct lb_rbac_conf conf = {.rules = &rules};
	const struct lb_filter f = rbac("f", &conf);
	control_set_filters(&w->control, 0, &f, 1, LB_NO_TIMEOUT, 0);
	struct ask *a = ask(w, KIND_ECHO, 100);
	finish(w);
	assert_ok(w, a);
	world_free(w);
}

RUN_SUITE("proxy/rbac_cases", cmocka_unit_test(a41_14_a_denied_request_reaches_no_backend),
	cmocka_unit_test(a41_14_a_denial_waits_for_no_delay),
	cmocka_unit_test(a41_15_shadow_rules_and_logs_are_counted_alone),
	cmocka_unit_test(a41_17_a_route_may_be_open),
	cmocka_unit_test(a41_13_the_ends_of_the_connection_are_known))
