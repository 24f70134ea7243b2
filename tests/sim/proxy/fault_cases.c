// SPDX-License-Identifier: Apache-2.0
// Injected faults, one situation a test (gRFC A33; FI-01..FI-08, FLT-05, FLT-06).
#include "lb/pick/access.h"
#include "lb/pick/cause.h"
#include "lb/pick/link.h"
#include "lb/route/filter.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

// Of the wire both ways, and the wheel's tick.
#define SLACK (5 * MS)

static struct lb_filter fault(const char *name)
{
	return (struct lb_filter){.name = str_from(name),
		.kind = LB_FILTER_FAULT,
		.fault = {.delay_numerator = 100,
			.delay_denominator = 100,
			.abort_numerator = 100,
			.abort_denominator = 100,
			.max_active = UINT32_MAX}};
}

static struct lb_filter delay(const char *name, uint64_t ns)
{
	struct lb_filter f = fault(name);
	f.fault.delay = LB_DELAY_FIXED;
	f.fault.delay_ns = ns;
	return f;
}

static struct lb_filter abort_with(const char *name, enum lb_fault_abort kind, uint32_t status)
{
	struct lb_filter f = fault(name);
	f.fault.abort = kind;
	f.fault.abort_status = status;
	return f;
}

static void set_filters(struct world *w, const struct lb_filter *list, uint32_t n)
{
	control_set_filters(&w->control, 0, list, n, LB_NO_TIMEOUT, 0);
}

static struct world *world_with(struct lb_filter f)
{
	struct world *w = ready_world(NULL);
	set_filters(w, &f, 1);
	return w;
}

static const struct seen *seen(const struct world *w, const struct ask *a)
{
	return &w->seen[a->id];
}

static uint32_t active(const struct world *w)
{
	return w->shared->active_faults;
}

static struct ask *ask_field(struct world *w, enum kind kind, const char *name, const char *value)
{
	struct ask *a = world_ask(w, "one", kind, 0);
	a->extra[0] = (struct field){.name = str_from(name), .value = str_from(value)};
	client_ask(&w->clients[0], a);
	return a;
}

static void fi_01_nothing_goes_upstream_until_the_delay_ends(void **state)
{
	struct world *w = world_with(delay("f", 500 * MS));
	struct ask *small = ask(w, KIND_ECHO, 0), *large = ask(w, KIND_ECHO, 150000);
	struct ask *plain = ask(w, KIND_PLAIN, 1000);
	world_run(w, 450 * MS);
	assert_int_equal(w->link->endpoints[0].active + w->link->endpoints[1].active, 0);
	assert_int_equal(w->n_served, 0);
	assert_int_equal(active(w), 3);
	finish(w);
	assert_ok(w, small);
	assert_ok(w, large);
	assert_int_equal(plain->http_status, 200);
	assert_int_equal(plain->received, 1000);
	for (int i = 0; i < 3; i++)
		assert_in_range(seen(w, &w->asks[i])->attempts[0].at_ns - w->asks[i].begun_ns,
			500 * MS, 500 * MS + SLACK);
	assert_int_equal(world_counter(w, "fault_delays"), 3);
	assert_int_equal(active(w), 0);
	world_free(w);
}

// FI-01, FI-06: only where header_delay is configured.
static void fi_01_headers_say_how_long(void **state)
{
	struct lb_filter f = fault("f");
	struct world *w = world_with(f);
	struct ask *unasked = ask_field(w, KIND_ECHO, "x-envoy-fault-delay-request", "300");
	finish(w);
	assert_in_range(took_ns(unasked), 0, SLACK);
	f.fault.delay = LB_DELAY_HEADER;
	set_filters(w, &f, 1);
	struct ask *with = ask_field(w, KIND_ECHO, "x-envoy-fault-delay-request", "300");
	struct ask *without = ask(w, KIND_ECHO, 0);
	finish(w);
	assert_in_range(took_ns(with), 300 * MS, 300 * MS + SLACK);
	assert_in_range(took_ns(without), 0, SLACK);
	world_free(w);
}

// a delay is waiting, too.
static void delayed_requests_have_a_bound(void **state)
{
	struct world_conf conf = world_conf_default(7);
	conf.n_clients = 1;
	conf.max_queued = 2;
	struct world *w = ready_world(&conf);
	const struct lb_filter f = delay("f", 500 * MS);
	set_filters(w, &f, 1);
	struct ask *delayed[2] = {ask(w, KIND_ECHO, 100), ask(w, KIND_ECHO, 100)};
	struct ask *over = ask(w, KIND_ECHO, 100);
	world_run(w, 100 * MS);
	assert_reply(over, 14);
	assert_string_equal(over->message, "too many requests are waiting");
	assert_int_equal(world_ended(w, LB_CAUSE_OVERFLOW), 1);
	assert_int_equal(world_counter(w, "requests_paused"), 2);
	assert_int_equal(w->link->clusters[0].queued, 2);
	assert_int_equal(active(w), 2);
	client_cancel(delayed[1]);
	finish(w);
	assert_ok(w, delayed[0]);
	assert_int_equal(w->link->clusters[0].queued, 0);
	world_free(w);
}

// FI-02: once the delay is over, and not a byte upstream.
static void fi_02_abort_comes_after_the_delay(void **state)
{
	struct lb_filter f = abort_with("f", LB_ABORT_GRPC, 9);
	f.fault.delay = LB_DELAY_FIXED;
	f.fault.delay_ns = 200 * MS;
	struct world *w = world_with(f);
	struct ask *a = ask(w, KIND_ECHO, 30000);
	world_run(w, 190 * MS);
	assert_false(a->closed);
	finish(w);
	assert_reply(a, 9);
	assert_string_equal(a->message, "fault injected");
	assert_in_range(took_ns(a), 200 * MS, 200 * MS + SLACK);
	assert_int_equal(seen(w, a)->n, 0);
	assert_int_equal(world_ended(w, LB_CAUSE_FAULT), 1);
	assert_int_equal(world_counter(w, "fault_aborts"), 1);
	assert_int_equal(active(w), 0);
	world_free(w);
}

static void fi_04_http_statuses_are_mapped_for_grpc_alone(void **state)
{
	static const int rows[][2] = {{400, 13}, {431, 13}, {401, 16}, {403, 7}, {404, 12},
		{429, 14}, {502, 14}, {503, 14}, {504, 14}, {200, 2}, {204, 2}, {304, 2}, {418, 2},
		{500, 2}, {599, 2}};
	struct world *w = ready_world(NULL);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_filter f = abort_with("f", LB_ABORT_HTTP, (uint32_t)rows[i][0]);
		set_filters(w, &f, 1);
		struct ask *grpc = ask(w, KIND_ECHO, 0), *plain = ask(w, KIND_PLAIN, 0);
		struct ask *head = ask(w, KIND_HEAD, 0);
		finish(w);
		assert_reply(grpc, rows[i][1]);
		assert_int_equal(plain->http_status, rows[i][0]);
		assert_int_equal(plain->grpc_status, -1);
		assert_true(plain->got_end && head->got_end);
		bool bodiless = rows[i][0] == 204 || rows[i][0] == 304;
		assert_int_equal(plain->received, bodiless ? 0 : strlen("fault injected"));
		assert_int_equal(head->received, 0);
	}
	assert_int_equal(w->n_served, 0);
	world_free(w);
}

static void fi_05_grpc_statuses_come_as_they_are(void **state)
{
	static const uint32_t rows[] = {0, 1, 7, 16};
	struct world *w = ready_world(NULL);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_filter f = abort_with("f", LB_ABORT_GRPC, rows[i]);
		set_filters(w, &f, 1);
		struct ask *grpc = ask(w, KIND_ECHO, 0), *plain = ask(w, KIND_PLAIN, 0);
		finish(w);
		assert_reply(grpc, (int)rows[i]);
		assert_in_range(took_ns(grpc), 0, SLACK);
		assert_int_equal(plain->http_status, 200); // as from Envoy
	}
	assert_int_equal(w->n_served, 0);
	assert_int_equal(world_ended(w, LB_CAUSE_FAULT), 8);
	world_free(w);
}

// FI-06, FI-07
static void fi_06_headers_ask_for_aborts_where_that_is_configured(void **state)
{
	struct lb_filter f = fault("f");
	struct world *w = world_with(f);
	struct ask *unasked = ask_field(w, KIND_ECHO, "x-envoy-fault-abort-request", "503");
	finish(w);
	assert_ok(w, unasked);
	f.fault.abort = LB_ABORT_HEADER;
	set_filters(w, &f, 1);
	struct ask *http = ask_field(w, KIND_ECHO, "x-envoy-fault-abort-request", "404");
	struct ask *grpc = ask_field(w, KIND_ECHO, "x-envoy-fault-abort-grpc-request", "3");
	struct ask *without = ask(w, KIND_ECHO, 0);
	struct ask *never = world_ask(w, "one", KIND_ECHO, 0);
	never->extra[0] =
		(struct field){.name = STR("x-envoy-fault-abort-request"), .value = STR("503")};
	never->extra[1] = (struct field){
		.name = STR("x-envoy-fault-abort-request-percentage"), .value = STR("0")};
	client_ask(&w->clients[0], never);
	finish(w);
	assert_reply(http, 12);
	assert_reply(grpc, 3);
	assert_ok(w, without);
	assert_ok(w, never);
	world_free(w);
}

// FI-08: the rest passes untouched; each end makes room for another.
static void fi_08_at_the_limit_requests_pass_untouched(void **state)
{
	struct lb_filter f = delay("f", 300 * MS);
	f.fault.max_active = 2;
	struct world *w = world_with(f);
	for (int i = 0; i < 5; i++)
		ask(w, KIND_ECHO, 100);
	world_run(w, 20 * MS);
	for (int i = 0; i < 5; i++)
		assert_int_equal(w->asks[i].closed, i >= 2);
	assert_int_equal(active(w), 2);
	assert_int_equal(world_counter(w, "faults_over_limit"), 3);
	client_cancel(&w->asks[0]);
	world_run(w, 20 * MS);
	assert_int_equal(active(w), 1);
	struct ask *late = ask_with(w, KIND_ECHO, 100, "100m", NULL);
	world_run(w, 20 * MS);
	assert_int_equal(active(w), 2);
	world_run(w, 100 * MS); // its deadline is earlier than its delay
	assert_reply(late, 4);
	assert_int_equal(active(w), 1);
	finish(w);
	assert_ok(w, &w->asks[1]);
	assert_int_equal(active(w), 0);
	world_free(w);
}

// FI-08: the gauge is the process's: another worker's faults count.
static void fi_08_all_workers_share_the_gauge(void **state)
{
	struct lb_filter f = abort_with("f", LB_ABORT_GRPC, 9);
	f.fault.max_active = 3;
	struct world *w = world_with(f);
	w->shared->active_faults = 3; // another worker's
	struct ask *passes = ask(w, KIND_ECHO, 10);
	finish(w);
	assert_ok(w, passes);
	w->shared->active_faults = 2;
	struct ask *hit = ask(w, KIND_ECHO, 10);
	finish(w);
	assert_reply(hit, 9);
	assert_int_equal(active(w), 2);
	w->shared->active_faults = 0;
	world_free(w);
}

// FLT-05: an abort ends the chain; delays in front of it add up.
static void flt_05_filters_run_in_listed_order(void **state)
{
	struct world *w = ready_world(NULL);
	const struct lb_filter both[] = {delay("a", 100 * MS), delay("b", 200 * MS)};
	set_filters(w, both, 2);
	struct ask *a = ask(w, KIND_ECHO, 10);
	finish(w);
	assert_in_range(took_ns(a), 300 * MS, 300 * MS + SLACK);
	const struct lb_filter first[] = {abort_with("a", LB_ABORT_GRPC, 9), delay("b", 200 * MS),
		abort_with("c", LB_ABORT_GRPC, 8)};
	set_filters(w, first, 3);
	a = ask(w, KIND_ECHO, 10);
	finish(w);
	assert_reply(a, 9);
	assert_in_range(took_ns(a), 0, SLACK);
	world_free(w);
}

// FLT-06
static void flt_06_a_route_has_its_own(void **state)
{
	struct world *w = world_with(abort_with("f", LB_ABORT_GRPC, 9));
	const struct lb_filter own = abort_with("f", LB_ABORT_GRPC, 5), off = fault("f");
	struct lb_route_policy policy = {.overrides = {&own, 1}};
	control_set_policy(&w->control, ROUTE_ONE, &policy);
	struct ask *a = ask(w, KIND_ECHO, 0);
	finish(w);
	assert_reply(a, 5);
	policy.overrides.list = &off;
	control_set_policy(&w->control, ROUTE_ONE, &policy);
	a = ask(w, KIND_ECHO, 0);
	finish(w);
	assert_ok(w, a);
	world_free(w);
}

// A31-T07, A31-T09
static void deadline_covers_the_delay(void **state)
{
	struct world *w = world_with(delay("f", 300 * MS));
	struct ask *over = ask_with(w, KIND_ECHO, 10, "200m", NULL);
	struct ask *rest = ask_with(w, KIND_ECHO, 10, "1000m", NULL);
	finish(w);
	assert_reply(over, 4);
	assert_in_range(took_ns(over), 200 * MS, 200 * MS + SLACK);
	assert_int_equal(seen(w, over)->n, 0);
	assert_int_equal(world_counter(w, "deadlines_paused"), 1);
	assert_ok(w, rest);
	unsigned left;
	char unit;
	assert_int_equal(sscanf(seen(w, rest)->attempts[0].timeout, "%u%c", &left, &unit), 2);
	uint64_t left_ns = left * (unit == 'm' ? MS : unit == 'u' ? MS / 1000 : 1);
	assert_in_range(left_ns, 700 * MS - SLACK, 700 * MS);
	world_free(w);
}

// One draw a request, not one an attempt.
static void retries_are_not_delayed_again(void **state)
{
	struct world *w = world_with(delay("f", 300 * MS));
	const struct lb_route_policy policy = {
		.retry = {.statuses = 1u << 14, .max_attempts = 3, .base_ns = MS, .max_ns = MS}};
	control_set_policy(&w->control, ROUTE_ONE, &policy);
	struct ask *a = ask_with(w, KIND_ECHO, 5000, NULL, "2 status 14");
	finish(w);
	assert_ok(w, a);
	assert_in_range(took_ns(a), 300 * MS, 300 * MS + 3 * SLACK);
	assert_int_equal(world_counter(w, "fault_delays"), 1);
	world_free(w);
}

// OPS-301: however it ended.
static void the_access_log_is_told_of_delays(void **state)
{
	static const struct lb_access_filter all = {.sample = LB_ACCESS_SAMPLE_ALL};
	struct world_conf conf = world_conf_default(7);
	struct lb_access_record r;
	conf.n_clients = 1;
	conf.log = &all;
	struct world *w = ready_world(&conf);
	const struct lb_filter filters[] = {
		delay("slow", 100 * MS), abort_with("stop", LB_ABORT_HTTP, 418)};
	for (uint32_t n = 0; n < 3; n++) {
		set_filters(w, filters, n);
		(void)ask(w, KIND_ECHO, 0);
		finish(w);
		world_run(w, SECOND);
		assert_true(spsc_read(&w->link->access->ring, &r));
		assert_int_equal(r.brief.delayed, n > 0);
		assert_int_equal(r.brief.cause, n == 2 ? LB_CAUSE_FAULT : LB_CAUSE_OK);
	}
	world_free(w);
}

RUN_SUITE("proxy/fault_cases", cmocka_unit_test(the_access_log_is_told_of_delays),
	cmocka_unit_test(fi_01_nothing_goes_upstream_until_the_delay_ends),
	cmocka_unit_test(fi_01_headers_say_how_long),
	cmocka_unit_test(delayed_requests_have_a_bound),
	cmocka_unit_test(fi_02_abort_comes_after_the_delay),
	cmocka_unit_test(fi_04_http_statuses_are_mapped_for_grpc_alone),
	cmocka_unit_test(fi_05_grpc_statuses_come_as_they_are),
	cmocka_unit_test(fi_06_headers_ask_for_aborts_where_that_is_configured),
	cmocka_unit_test(fi_08_at_the_limit_requests_pass_untouched),
	cmocka_unit_test(fi_08_all_workers_share_the_gauge),
	cmocka_unit_test(flt_05_filters_run_in_listed_order),
	cmocka_unit_test(flt_06_a_route_has_its_own), cmocka_unit_test(deadline_covers_the_delay),
	cmocka_unit_test(retries_are_not_delayed_again))
