// SPDX-License-Identifier: Apache-2.0
// Who waits, what the control thread hears of it, and what it hears of backends' load, one
// situation a test (Q-*, A58-*, MC-05, MC-17; gRFC A31, A58, A64).
#include "lb/base/base64.h"
#include "lb/pick/cause.h"
#include "lb/pick/link.h"
#include "lb/pick/metrics.h"
#include "lb/policy/policy_spec.h"
#include "lb/route/hash_policy.h"
#include "lb/route/route.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

static struct control_leaf *zero(struct world *w)
{
	return &w->control.leaves[0];
}

static const struct lb_route_policy retries = {
	.retry = {.statuses = 1u << 14, .max_attempts = 3, .base_ns = MS, .max_ns = MS}};

// Both backends are dead, and the cluster says so.
static struct world *failing_world(enum lb_wait_for_ready wait)
{
	struct world *w = a_world();
	w->frontends[0].wait_for_ready = wait;
	backend_unlisten(&w->backends[0]);
	backend_unlisten(&w->backends[1]);
	use_backends(w, 0x3);
	open_client(w);
	world_run(w, 50 * MS);
	return w;
}

static void heal(struct world *w)
{
	for (int i = 0; i < 2; i++) {
		backend_fini(&w->backends[i]);
		backend_open(&w->backends[i], &w->wire.hosts[HOST_BACKENDS], w->backends[i].address,
			&w->backend_conf);
	}
}

static struct ask *ask_to_wait(struct world *w, enum kind kind, const char *value)
{
	struct ask *a = world_ask(w, "one", kind, 10);
	a->extra[0] = (struct field){.name = STR(ASK_TO_WAIT), .value = str_from(value)};
	client_ask(&w->clients[0], a);
	return a;
}

// Q-01, A28-R05: only what fails fails.
static void q_01_nobody_waits_for_a_failing_cluster_unasked(void **state)
{
	struct world *w = failing_world(LB_WAIT_NEVER);
	struct ask *a = ask(w, KIND_ECHO, 10), *said = ask_to_wait(w, KIND_ECHO, "true");
	finish(w);
	assert_reply(a, 14);
	assert_reply(said, 14);
	assert_non_null(strstr(a->message, "zero")); // ERR-01
	assert_int_equal(world_ended(w, LB_CAUSE_NO_HEALTHY), 2);
	world_free(w);
}

// all of them, plain ones too, and none counts as a failed attempt.
static void q_00_all_wait_where_the_frontend_says_so(void **state)
{
	struct world *w = failing_world(LB_WAIT_ALWAYS);
	control_set_policy(&w->control, ROUTE_ONE, &retries);
	struct ask *a = ask(w, KIND_ECHO, 10), *plain = ask(w, KIND_PLAIN, 10);
	world_run(w, 30 * SECOND);
	assert_false(a->closed || plain->closed);
	assert_int_equal(w->link->clusters[0].queued, 2);
	assert_int_equal(world_counter(w, "retries"), 0);
	heal(w);
	finish(w);
	assert_ok(w, a);
	assert_int_equal(plain->http_status, 200);
	world_free(w);
}

// `true` alone says so, and no backend hears of it, at no attempt.
static void q_00_header_says_who_waits_and_is_not_forwarded(void **state)
{
	struct world *w = failing_world(LB_WAIT_HEADER);
	control_set_policy(&w->control, ROUTE_ONE, &retries);
	struct ask *waits = ask_to_wait(w, KIND_ECHO, "true");
	struct ask *plain = ask_to_wait(w, KIND_PLAIN, "true");
	struct ask *no = ask_to_wait(w, KIND_ECHO, "1"), *silent = ask(w, KIND_ECHO, 10);
	world_run(w, SECOND);
	assert_reply(no, 14);
	assert_reply(silent, 14);
	assert_false(waits->closed || plain->closed);
	heal(w);
	finish(w);
	assert_ok(w, waits);
	assert_int_equal(plain->http_status, 200);
	struct ask *again = world_ask(w, "one", KIND_ECHO, 10);
	again->extra[0] = (struct field){.name = STR(ASK_TO_WAIT), .value = STR("true")};
	again->fail = "1 status 14";
	client_ask(&w->clients[0], again);
	no = ask_to_wait(w, KIND_ECHO, "no");
	finish(w);
	assert_ok(w, again);
	assert_ok(w, no);
	assert_int_equal(w->seen[again->id].n, 2);
	for (uint32_t i = 0; i < w->n_asks; i++)
		for (uint32_t j = 0; j < w->seen[i].n; j++)
			assert_false(w->seen[i].attempts[j].was_asked_to_wait);
	// Elsewhere it is a field as any other.
	w->frontends[0].wait_for_ready = LB_WAIT_NEVER;
	struct ask *other = ask_to_wait(w, KIND_ECHO, "true");
	finish(w);
	assert_true(w->seen[other->id].attempts[0].was_asked_to_wait);
	world_free(w);
}

//
static void q_02_deadline_quotes_the_last_error(void **state)
{
	struct world *w = failing_world(LB_WAIT_ALWAYS);
	struct ask *a = ask_with(w, KIND_ECHO, 10, "300m", NULL);
	finish(w);
	assert_reply(a, 4);
	assert_non_null(strstr(a->message, "deadline exceeded; last error: "));
	assert_non_null(strstr(a->message, "zero"));
	assert_non_null(strstr(a->message, "10.0.2."));
	assert_int_equal(world_ended(w, LB_CAUSE_TIMEOUT), 1);
	assert_int_equal(w->link->clusters[0].queued, 0);
	world_free(w);
	// ERR-01: a timer alone is no reason, and there is no other yet.
	w = a_world();
	open_client(w);
	a = ask_with(w, KIND_ECHO, 10, "300m", NULL);
	finish(w);
	assert_reply(a, 4);
	assert_string_equal(a->message, "deadline exceeded while waiting for a backend");
	world_free(w);
}

// MC-17: one turn finds a deadline passed and a snapshot that would serve everybody.
static void mc_17_expired_requests_leave_before_the_next_pick(void **state)
{
	struct world *w = a_world();
	control_set_endpoints(&w->control, 1, HOST_BACKENDS, 0x1); // has it connected
	open_client(w);
	world_run(w, 20 * MS);
	struct ask *late = ask_with(w, KIND_ECHO, 10, "100m", NULL);
	struct ask *in_time = ask_with(w, KIND_ECHO, 10, "500m", NULL);
	world_run(w, 50 * MS);
	assert_int_equal(w->link->clusters[0].queued, 2);
	w->wire.now_ns += 100 * MS; // and no turn
	use_backends(w, 0x1);
	finish(w);
	assert_reply(late, 4);
	assert_int_equal(w->seen[late->id].n, 0);
	assert_ok(w, in_time);
	world_free(w);
}

// A31-R12, A31-R11
static void a31_r12_nobody_waits_for_a_deleted_cluster(void **state)
{
	struct world *w = failing_world(LB_WAIT_ALWAYS);
	struct ask *a = ask(w, KIND_ECHO, 10);
	world_run(w, SECOND);
	assert_false(a->closed);
	control_leave(&w->control, 0);
	finish(w);
	assert_reply(a, 14);
	assert_int_equal(world_ended(w, LB_CAUSE_NO_HEALTHY), 1);
	world_free(w);
	// One that serves goes on for those that chose it.
	w = a_world();
	w->frontends[0].wait_for_ready = LB_WAIT_ALWAYS;
	open_client(w);
	a = ask(w, KIND_ECHO, 10);
	world_run(w, 20 * MS);
	control_leave(&w->control, 0);
	world_run(w, 20 * MS);
	assert_false(a->closed);
	use_backends(w, 0x1);
	finish(w);
	assert_ok(w, a);
	world_free(w);
}

// Q-06 holds for those, too.
static void q_06_waiting_for_ready_is_bounded(void **state)
{
	struct world_conf conf = world_conf_default(3);
	conf.n_clients = 1;
	conf.max_queued = 5;
	struct world *w = world_new(&conf);
	w->frontends[0].wait_for_ready = LB_WAIT_ALWAYS;
	use_backends(w, 0);
	open_client(w);
	for (int i = 0; i < 8; i++)
		ask(w, KIND_ECHO, 10);
	world_run(w, 100 * MS);
	assert_int_equal(world_ended(w, LB_CAUSE_OVERFLOW), 3);
	assert_int_equal(w->link->clusters[0].queued, 5);
	world_free(w);
}

// Connect requests.

static const struct lb_policy_spec ring = {
	.kind = LB_POLICY_RING_HASH, .ring_hash = {.min_size = 1024, .max_size = 4096}};
static const struct lb_hash_policy by_user = {.kind = LB_HASH_HEADER, .header = {"user", 4}};
static const struct lb_route_policy hashed = {.hash = &by_user, .n_hash = 1};

static struct world *ring_world(const struct world_conf *conf)
{
	struct world *w = world_new(conf);
	zero(w)->spec = &ring;
	control_set_policy(&w->control, ROUTE_ONE, &hashed);
	use_backends(w, (1u << conf->n_backends) - 1);
	open_client(w);
	world_run(w, 20 * MS);
	return w;
}

static struct ask *ask_user(struct world *w, const char *user)
{
	struct ask *a = world_ask(w, "one", KIND_ECHO, 10);
	a->extra[0] = (struct field){.name = STR("user"), .value = str_from(user)};
	client_ask(&w->clients[0], a);
	return a;
}

// RH-05, RH-04: nothing connects before a pick needs it, and many that need it say so once.
static void rh_05_connect_requests_are_told_once_a_member_and_snapshot(void **state)
{
	struct world_conf conf = world_conf_default(3);
	conf.n_clients = 1;
	struct world *w = ring_world(&conf);
	assert_int_equal(world_counter(w, "connects"), 0);
	w->control.deaf_to_connect_requests = true;
	for (int i = 0; i < 20; i++)
		ask_user(w, "alice");
	world_run(w, 50 * MS);
	assert_int_equal(w->control.n_connect_requests, 1);
	assert_int_equal(w->link->clusters[0].queued, 20);
	w->control.deaf_to_connect_requests = false;
	control_set_policy(&w->control, ROUTE_ONE, &hashed); // another snapshot
	finish(w);
	assert_int_equal(w->control.n_connect_requests, 2);
	assert_int_equal(world_counter(w, "connects"), 1);
	uint32_t at = w->seen[0].attempts[0].backend;
	for (uint32_t i = 0; i < 20; i++) {
		assert_ok(w, &w->asks[i]);
		assert_int_equal(w->seen[i].attempts[0].backend, at);
	}
	world_free(w);
}

// RH-10: what a waiting request hashes lies where its fields are stored, and is joined elsewhere.
static void rh_10_a_joined_header_that_waited_hashes_as_a_fresh_one(void **state)
{
	static const struct lb_policy_spec by_key = {.kind = LB_POLICY_RING_HASH,
		.ring_hash = {
			.min_size = 1024, .max_size = 4096, .request_hash_header = STR("x-key")}};
	struct world_conf conf = world_conf_default(3);
	conf.n_clients = 1;
	struct world *w = world_new(&conf);
	char values[8][2][400];
	zero(w)->spec = &by_key;
	use_backends(w, 0xf);
	open_client(w);
	for (int i = 0; i < 16; i++) {
		struct ask *a = world_ask(w, "one", KIND_ECHO, 10);
		for (int j = 0; j < 2; j++) {
			char *value = values[i % 8][j];
			memset(value, 'a' + i % 8, 400);
			a->extra[j] = (struct field){STR("x-key"), {value, j ? 300 : 400}, false};
		}
		client_ask(&w->clients[0], a);
		finish(w); // the first ones wait to be connected, the others do not
	}
	assert_true(w->control.n_connect_requests > 1);
	for (int i = 0; i < 8; i++)
		assert_int_equal(
			w->seen[i].attempts[0].backend, w->seen[i + 8].attempts[0].backend);
	world_free(w);
}

// Never lost, however full the ring is.
static void connect_requests_outlast_a_full_ring(void **state)
{
	struct world_conf conf = world_conf_default(3);
	conf.n_clients = 1;
	conf.n_backends = 8;
	conf.n_events = 2;
	struct world *w = ring_world(&conf);
	w->control.deaf = true;
	char user[60][8];
	for (int i = 0; i < 60; i++) {
		snprintf(user[i], sizeof(user[i]), "u%d", i);
		ask_user(w, user[i]);
	}
	world_run(w, SECOND);
	assert_int_equal(w->link->clusters[0].queued, 60);
	assert_true(world_counter(w, "events_delayed") > 0);
	w->control.deaf = false;
	finish(w);
	for (uint32_t i = 0; i < 60; i++)
		assert_ok(w, &w->asks[i]);
	assert_int_equal(w->control.n_connect_requests, 8);
	assert_int_equal(world_counter(w, "connects"), 8);
	world_free(w);
}

// MC-05: an endpoint that another worker has connected is waited for, not replaced.
static void mc_05_a_hash_waits_for_this_workers_connection(void **state)
{
	struct world_conf conf = world_conf_default(3);
	conf.n_clients = 1;
	conf.n_workers = 2;
	struct world *w = ring_world(&conf);
	char user[40][8];
	for (int i = 0; i < 40; i++) {
		snprintf(user[i], sizeof(user[i]), "u%d", i);
		ask_user(w, user[i]);
	}
	finish(w);
	uint32_t served = 0;
	for (int i = 0; i < 40; i++) {
		struct ask *again = ask_user(w, user[i]);
		finish(w);
		assert_int_equal(
			w->seen[again->id].attempts[0].backend, w->seen[i].attempts[0].backend);
	}
	for (int i = 0; i < 4; i++)
		served += w->backends[i].n_served > 0;
	assert_int_equal(served, 4);
	world_free(w);
}

// Reports of load.

static const struct lb_policy_spec weighted = {.kind = LB_POLICY_WEIGHTED_ROUND_ROBIN,
	.wrr = {.blackout_ns = 0,
		.expiration_ns = 180 * SECOND,
		.update_ns = SECOND,
		.error_penalty = 1}};

static struct world *weighted_world(const char *first, const char *second)
{
	struct world *w = a_world();
	w->backends[0].report_field = w->backends[1].report_field = "endpoint-load-metrics";
	w->backends[0].report = first;
	w->backends[1].report = second;
	zero(w)->spec = &weighted;
	use_backends(w, 0x3);
	open_client(w);
	world_run(w, 20 * MS);
	return w;
}

// A58-01, A58-06: the backend that says it is three times as able gets three times as many.
static void a58_01_picks_follow_per_request_reports(void **state)
{
	struct world *w = weighted_world("TEXT rps_fractional=300,cpu_utilization=1",
		"TEXT rps_fractional=100,application_utilization=1");
	for (int i = 0; i < 4; i++) {
		struct ask *a = ask(w, i % 2 ? KIND_ECHO : KIND_TRAILERS_ONLY, 0);
		finish(w);
		assert_int_equal(a->n_reports, 1); // passed on
	}
	world_run(w, 3 * SECOND);
	uint32_t n = w->backends[0].n_served;
	for (int i = 0; i < 400; i++) {
		ask(w, KIND_ECHO, 1);
		finish(w);
	}
	assert_in_range(w->backends[0].n_served - n, 298, 302);
	world_free(w);
}

// The newest of a member's in a tenth of a second, and gRPC's own form.
static void reports_are_coalesced_and_the_newest_counts(void **state)
{
	struct world *w = weighted_world("TEXT rps_fractional=1,cpu_utilization=1", NULL);
	use_backends(w, 0x1);
	char newest[64];
	static const uint8_t report[] = {0x09, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f, // cpu 0.5
		0x31, 0, 0, 0, 0, 0, 0, 0x59, 0x40}; // 100 requests a second
	newest[base64_encode(report, sizeof(report), newest)] = '\0';
	world_run(w, 20 * MS);
	uint64_t begun = w->wire.now_ns;
	for (int i = 0; i < 50; i++) {
		if (i == 49) {
			w->backends[0].report_field = "endpoint-load-metrics-bin";
			w->backends[0].report = newest;
		}
		ask(w, KIND_ECHO, 1);
		world_run(w, 10 * MS);
	}
	finish(w);
	world_run(w, 200 * MS);
	uint32_t n = w->control.n_reports;
	assert_in_range(n, 5, 6); // at once, and then each tenth of half a second
	assert_in_range(w->control.reported_ns[0] - begun, 0, 30 * MS);
	for (uint32_t i = 1; i < n; i++)
		assert_true(w->control.reported_ns[i] - w->control.reported_ns[i - 1] >= 95 * MS);
	uint32_t id = w->control.last_report.member;
	assert_int_equal(w->link->members[id].issued, 50);
	assert_true(w->control.last_report.orca.qps == 100);
	assert_true(w->control.last_report.orca.cpu_utilization == 0.5);
	world_run(w, SECOND);
	assert_int_equal(w->control.n_reports, n); // silence says nothing
	world_free(w);
}

static void reports_outlast_a_full_ring_and_bad_ones_are_counted(void **state)
{
	struct world_conf conf = world_conf_default(3);
	conf.n_clients = 1;
	conf.n_backends = 8;
	conf.n_events = 2;
	struct world *w = world_new(&conf);
	for (int i = 0; i < 8; i++) {
		w->backends[i].report_field = "endpoint-load-metrics";
		w->backends[i].report = "TEXT rps_fractional=10,cpu_utilization=1";
	}
	zero(w)->spec = &weighted;
	use_backends(w, 0xff);
	open_client(w);
	world_run(w, 100 * MS);
	w->control.deaf = true;
	for (int i = 0; i < 40; i++)
		ask(w, KIND_ECHO, 1);
	finish(w);
	world_run(w, 500 * MS);
	w->control.deaf = false;
	world_run(w, 500 * MS);
	assert_in_range(w->control.n_reports, 8, 16);
	w->backends[0].report = "JSON {}";
	for (int i = 0; i < 16; i++)
		ask(w, KIND_ECHO, 1);
	finish(w);
	assert_in_range(world_counter(w, "reports_bad"), 1, 3);
	world_free(w);
}

// Whoever did not ask hears nothing.
static void reports_nobody_wants_are_passed_on_alone(void **state)
{
	struct world *w = a_world();
	w->backends[0].report_field = "endpoint-load-metrics";
	w->backends[0].report = "TEXT rps_fractional=1,cpu_utilization=1";
	use_backends(w, 0x1);
	open_client(w);
	struct ask *a = ask(w, KIND_ECHO, 10);
	finish(w);
	world_run(w, SECOND);
	assert_int_equal(a->n_reports, 1);
	assert_int_equal(w->control.n_reports + w->control.n_metrics, 0);
	world_free(w);
}

static void expect_metric(
	const struct world *w, uint32_t i, uint32_t index, const char *name, double value)
{
	const struct lb_event *e = &w->control.metrics[i];
	assert_int_equal(e->metric.index, index);
	assert_int_equal(e->metric.list, 7);
	assert_string_equal(e->metric.name, name);
	assert_true(e->metric.value == value);
	assert_int_equal(e->load, 5);
}

static struct world *metrics_world(const char *report, const char *const *names, uint32_t n)
{
	struct world_conf conf = world_conf_default(3);
	conf.n_clients = 1;
	conf.n_backends = 1;
	conf.n_events = 64;
	struct world *w = world_new(&conf);
	w->backends[0].report_field = "endpoint-load-metrics";
	w->backends[0].report = report;
	zero(w)->load = 5;
	control_want_metrics(zero(w), names, n);
	use_backends(w, 0x1);
	open_client(w);
	return w;
}

#define LONG_NAME "named_metrics.a-name-that-is-too-long-for-an-event-to-the-control-thread"

// A64, LR-10: each wanted value of each request, under its locality.
static void a64_values_for_load_reports_are_told_each(void **state)
{
	static const char *const names[] = {LONG_NAME, "cpu_utilization", "named_metrics.b"};
	struct world *w = metrics_world("TEXT named_metrics.a=1.5,cpu_utilization=0.25,eps=1,"
					"mem_utilization=0.5,named_metrics.b=-2," LONG_NAME "=1",
		names, 3);
	for (int i = 0; i < 2; i++) {
		ask(w, KIND_ECHO, 10);
		finish(w);
	}
	world_run(w, 100 * MS);
	assert_int_equal(w->control.n_metrics, 6);
	for (uint32_t i = 0; i < 6; i += 3) {
		expect_metric(w, i, LB_METRIC_NAMED + 1, "", -2);
		expect_metric(w, i + 1, LB_METRIC_NAMED, "", 1);
		expect_metric(w, i + 2, LB_METRIC_CPU, "", 0.25);
	}
	assert_int_equal(w->control.n_reports, 0); // round_robin asks for none
	assert_int_equal(world_counter(w, "metrics_lost"), 0);
	zero(w)->load = 0; // nobody to tell
	use_backends(w, 0x1);
	ask(w, KIND_ECHO, 10);
	finish(w);
	assert_int_equal(w->control.n_metrics, 6);
	world_free(w);
}

// A85: where all are wanted, they have names, of which one report may bring few.
static void a85_all_named_values_are_told_by_name_and_bounded(void **state)
{
	static const char *const names[] = {"named_metrics.*"};
	char report[8192] = "TEXT " LONG_NAME "=1";
	size_t len = strlen(report);
	for (int i = 0; i < 300; i++)
		len += (size_t)snprintf(
			report + len, sizeof(report) - len, ",named_metrics.m%d=%d", i, i);
	struct world *w = metrics_world(report, names, 1);
	ask(w, KIND_ECHO, 10);
	finish(w);
	world_run(w, 100 * MS);
	assert_int_equal(w->control.n_metrics, 15);
	for (uint32_t i = 0; i < 15; i++) {
		char name[8];
		snprintf(name, sizeof(name), "m%u", i);
		expect_metric(w, i, LB_METRIC_NONE, name, i);
	}
	// The long one, those behind the sixteenth, and once for those not looked at.
	assert_int_equal(world_counter(w, "metrics_lost"), 1 + 240 + 1);
	world_free(w);
}

// However much a backend reports, half of the ring is there for what becomes of endpoints.
static void values_leave_room_for_other_events(void **state)
{
	static const char *const names[] = {"named_metrics.*"};
	struct world *w = metrics_world("TEXT named_metrics.a=1,named_metrics.b=2", names, 1);
	ask(w, KIND_ECHO, 10);
	finish(w);
	world_run(w, 100 * MS);
	w->control.deaf = true;
	for (int i = 0; i < 50; i++) {
		ask(w, KIND_ECHO, 10);
		finish(w);
	}
	assert_int_equal(spsc_room(&w->link->events), 32);
	assert_int_equal(world_counter(w, "metrics_lost"), 100 - 32);
	w->control.deaf = false;
	world_run(w, 100 * MS);
	assert_int_equal(w->control.n_metrics, 2 + 32);
	world_free(w);
}

#define CASE(f) cmocka_unit_test(f)
RUN_SUITE("proxy/wait_cases", CASE(q_01_nobody_waits_for_a_failing_cluster_unasked),
	CASE(q_00_all_wait_where_the_frontend_says_so),
	CASE(q_00_header_says_who_waits_and_is_not_forwarded),
	CASE(q_02_deadline_quotes_the_last_error),
	CASE(mc_17_expired_requests_leave_before_the_next_pick),
	CASE(a31_r12_nobody_waits_for_a_deleted_cluster), CASE(q_06_waiting_for_ready_is_bounded),
	CASE(rh_05_connect_requests_are_told_once_a_member_and_snapshot),
	CASE(rh_10_a_joined_header_that_waited_hashes_as_a_fresh_one),
	CASE(connect_requests_outlast_a_full_ring),
	CASE(mc_05_a_hash_waits_for_this_workers_connection),
	CASE(a58_01_picks_follow_per_request_reports),
	CASE(reports_are_coalesced_and_the_newest_counts),
	CASE(reports_outlast_a_full_ring_and_bad_ones_are_counted),
	CASE(reports_nobody_wants_are_passed_on_alone),
	CASE(a64_values_for_load_reports_are_told_each),
	CASE(a85_all_named_values_are_told_by_name_and_bounded),
	CASE(values_leave_room_for_other_events))
