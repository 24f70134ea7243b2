// SPDX-License-Identifier: Apache-2.0
#include "lb/route/filter.h"
#include "lb/route/rbac.h"
#include "lb/route/route.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#define FAULT(filter_name, status)                                                                 \
	{                                                                                          \
		.name = STR(filter_name), .kind = LB_FILTER_FAULT, .fault = {                      \
			.abort = LB_ABORT_HTTP,                                                    \
			.abort_status = (status)                                                   \
		}                                                                                  \
	}
#define LEVEL(list_of_filters)                                                                     \
	(struct lb_filter_overrides)                                                               \
	{                                                                                          \
		(list_of_filters), sizeof(list_of_filters) / sizeof((list_of_filters)[0])          \
	}

static const struct lb_filter chain_filters[] = {FAULT("a", 1), FAULT("b", 1), FAULT("c", 1),
	FAULT("d", 1),
	{.name = STR("s"),
		.kind = LB_FILTER_SESSION,
		.session = {true, STR("cookie"), STR("/path"), 9}}};

static void chain_copies_all_that_it_is_given(void **state)
{
	char name[] = "fault", cookie[] = "c", path[] = "/";
	const struct lb_rbac_rules nobody = {.action = LB_RBAC_ALLOW};
	const struct lb_rbac_conf conf = {.rules = &nobody};
	struct lb_filter list[] = {
		{.name = {name, 5}, .kind = LB_FILTER_FAULT, .fault = {.abort_status = 503}},
		{.name = {name, 1},
			.kind = LB_FILTER_SESSION,
			.session = {true, {cookie, 1}, {path, 1}, 7}},
		{.name = {name, 2}, .kind = LB_FILTER_RBAC, .rbac.conf = &conf}};
	const struct lb_listener_timeouts timeouts = {42, {43, 44}};
	struct lb_filter_chain *c = NULL;
	ALLOC_FAIL_EACH(c = lb_filter_chain_new(list, 3, &timeouts), !c, (void)0);
	name[0] = cookie[0] = path[0] = 'x';
	list[0].fault.abort_status = 0;
	assert_int_equal(c->n, 3);
	assert_null(c->filters[2].rbac.conf);
	assert_non_null(c->filters[2].rbac.compiled);
	assert_int_equal(c->timeouts.max_ns, 42);
	assert_int_equal(c->timeouts.idle_ns[1], 44);
	assert_true(str_eq(c->filters[0].name, STR("fault")));
	assert_int_equal(c->filters[0].fault.abort_status, 503);
	assert_true(str_eq(c->filters[1].name, STR("f")));
	assert_true(str_eq(c->filters[1].session.cookie, STR("c")));
	assert_true(str_eq(c->filters[1].session.path, STR("/")));
	assert_int_equal(c->filters[1].session.ttl_s, 7);
	assert_ptr_equal(lb_filter_chain_get(c), c);
	lb_filter_chain_put(c);
	lb_filter_chain_put(c);
	lb_filter_chain_put(NULL);
	c = lb_filter_chain_new(NULL, 0, &lb_no_listener_timeouts);
	assert_int_equal(c->n, 0);
	lb_filter_chain_put(c);
}

// FLT-06, FLT-07: the most specific one counts whole, by name; names of no filter do no harm.
static void most_specific_override_of_the_name_counts(void **state)
{
	static const struct lb_filter vhost[] = {
		FAULT("a", 2), FAULT("b", 2), FAULT("c", 2), FAULT("x", 2)};
	static const struct lb_filter route[] = {FAULT("b", 3), FAULT("a", 3)};
	static const struct lb_filter cluster[] = {FAULT("a", 4), FAULT("y", 4)};
	struct lb_filter_chain *c = lb_filter_chain_new(chain_filters, 5, &lb_no_listener_timeouts);
	const struct lb_route_policy policy = {.overrides = LEVEL(route)};
	const struct lb_filter_overrides of_vhost = LEVEL(vhost), of_cluster = LEVEL(cluster);
	const struct lb_route_result result = {
		.policy = &policy, .cluster_overrides = &of_cluster, .vhost_overrides = &of_vhost};
	static const uint32_t expected[] = {4, 3, 2, 1};
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(
			lb_filter_effective(c, i, &result)->fault.abort_status, expected[i]);
	assert_ptr_equal(lb_filter_effective(c, 4, &result), &c->filters[4]);
	lb_filter_chain_put(c);
}

#define SWITCH(filter_name, is_off)                                                                \
	{                                                                                          \
		.name = STR(filter_name), .kind = LB_FILTER_SWITCH, .disabled = (is_off)           \
	}
#define ON SWITCH("a", false)
#define OFF SWITCH("a", true)

// Of a virtual host, a route and a weighted cluster; 0 = the filter is disabled.
static uint32_t status_of(bool is_disabled, const struct lb_filter *vhost,
	const struct lb_filter *route, const struct lb_filter *cluster)
{
	struct lb_filter filter = FAULT("a", 1);
	filter.disabled = is_disabled;
	struct lb_filter_chain *c = lb_filter_chain_new(&filter, 1, &lb_no_listener_timeouts);
	const struct lb_route_policy policy = {.overrides = {route, route != NULL}};
	const struct lb_filter_overrides of_vhost = {vhost, vhost != NULL},
					 of_cluster = {cluster, cluster != NULL};
	const struct lb_route_result result = {
		.policy = &policy, .cluster_overrides = &of_cluster, .vhost_overrides = &of_vhost};
	const struct lb_filter *f = lb_filter_effective(c, 0, &result);
	uint32_t status = f ? f->fault.abort_status : 0;
	lb_filter_chain_put(c);
	return status;
}

static void most_specific_override_switches_and_the_most_specific_config_counts(void **state)
{
	static const struct lb_filter on = ON, off = OFF, fault = FAULT("a", 2),
				      other = SWITCH("b", true);
	assert_int_equal(status_of(false, NULL, NULL, NULL), 1);
	assert_int_equal(status_of(true, NULL, NULL, NULL), 0);
	assert_int_equal(status_of(true, NULL, &on, NULL), 1);
	assert_int_equal(status_of(true, NULL, &fault, NULL), 2); // what is configured is on
	assert_int_equal(status_of(false, NULL, &off, NULL), 0);
	assert_int_equal(status_of(false, NULL, &other, NULL), 1);
	assert_int_equal(status_of(false, &off, &on, NULL), 1);
	assert_int_equal(status_of(false, &on, &off, NULL), 0);
	assert_int_equal(status_of(false, &fault, NULL, &off), 0);
	assert_int_equal(status_of(false, &off, NULL, &fault), 2);
	assert_int_equal(status_of(true, &fault, &off, &on), 2);
}

// Decoders refuse a message of another filter's type; nothing here may read it as one all the same.
static void override_of_another_kind_is_none(void **state)
{
	static const struct lb_filter route[] = {FAULT("s", 3)};
	struct lb_filter_chain *c = lb_filter_chain_new(chain_filters, 5, &lb_no_listener_timeouts);
	const struct lb_route_policy policy = {.overrides = LEVEL(route)};
	const struct lb_filter_overrides none = {0};
	const struct lb_route_result result = {
		.policy = &policy, .cluster_overrides = &none, .vhost_overrides = &none};
	assert_ptr_equal(lb_filter_effective(c, 4, &result), &c->filters[4]);
	lb_filter_chain_put(c);
}

RUN_SUITE("lb/filter", cmocka_unit_test(chain_copies_all_that_it_is_given),
	cmocka_unit_test(most_specific_override_of_the_name_counts),
	cmocka_unit_test(most_specific_override_switches_and_the_most_specific_config_counts),
	cmocka_unit_test(override_of_another_kind_is_none))
