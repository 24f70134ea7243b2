// SPDX-License-Identifier: Apache-2.0
// What clients are told of a request that fails, and what is kept of it for the operator.
#include "lb/pick/cause.h"
#include "lb/pick/drop.h"
#include "lb/pick/failures.h"
#include "lb/pick/link.h"
#include "lb/route/filter.h"
#include "lb/route/rbac.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

static void prepare_drop(struct world *w)
{
	w->control.leaves[0].drops[0] = (struct lb_drop_category){"first", LB_DROP_ALL};
	w->control.leaves[0].n_drops = 1;
	control_update(&w->control, 0);
}

static void prepare_full(struct world *w)
{
	w->control.leaves[0].max_requests = 0;
	control_update(&w->control, 0);
}

static void prepare_nobody(struct world *w)
{
	use_backends(w, 0);
}

static void prepare_silence(struct world *w)
{
	for (uint32_t i = 0; i < w->conf.n_backends; i++)
		backend_close(&w->backends[i]);
	use_backends(w, 0xc); // addresses that nobody has
	w->frontends[0].wait_for_ready = LB_WAIT_ALWAYS;
}

static void prepare_fault(struct world *w)
{
	const struct lb_filter f = {.name = STR("chaos"),
		.kind = LB_FILTER_FAULT,
		.fault = {.abort = LB_ABORT_HTTP,
			.abort_status = 503,
			.abort_numerator = 100,
			.abort_denominator = 100,
			.max_active = UINT32_MAX}};
	control_set_filters(&w->control, 0, &f, 1, LB_NO_TIMEOUT, 0);
}

static void prepare_denial(struct world *w)
{
	static const struct lb_rbac_rules nobody = {.action = LB_RBAC_ALLOW};
	static const struct lb_rbac_conf conf = {.rules = &nobody};
	const struct lb_filter f = {
		.name = STR("access"), .kind = LB_FILTER_RBAC, .rbac.conf = &conf};
	control_set_filters(&w->control, 0, &f, 1, LB_NO_TIMEOUT, 0);
}

// One way to fail for each cause of which a client hears.
static const struct row {
	enum lb_cause cause;
	const char *route;
	enum kind kind;
	uint32_t size;
	const char *timeout, *fail;
	bool huge;
	void (*prepare)(struct world *);
	const char *detail; // part of what the operator is told
} rows[] = {
	{LB_CAUSE_NO_ROUTE, "nowhere", KIND_ECHO, 0, .detail = "no route matches"},
	{LB_CAUSE_NO_ROUTE, "nowhere", KIND_PLAIN, 0, .detail = "no route matches"},
	{LB_CAUSE_NO_ACTION, "unsupported", KIND_ECHO, 0, .detail = "action is unsupported"},
	{LB_CAUSE_NO_HEALTHY, "down", KIND_ECHO, 0, .detail = "cluster two: 100% broken"},
	{LB_CAUSE_NO_HEALTHY, "down", KIND_PLAIN, 0, .detail = "cluster two: 100% broken"},
	{LB_CAUSE_NO_HEALTHY, "one", KIND_ECHO, 0, .prepare = prepare_nobody, .detail = "zero"},
	{LB_CAUSE_UPSTREAM_RESET, "one", KIND_RESET, 2,
		.detail = ": the backend reset the stream (RST_STREAM 2)"},
	{LB_CAUSE_UPSTREAM_LOST, "one", KIND_ECHO, 10, .fail = "9 lose 0",
		.detail = ": the backend's connection was lost"},
	{LB_CAUSE_UPSTREAM_TOO_LARGE, "one", KIND_TRAILERS_ONLY, 18000,
		.detail = "header or trailers are too large"},
	{LB_CAUSE_OVERFLOW, "one", KIND_ECHO, 0, .prepare = prepare_full,
		.detail = "cluster zero: circuit breaker drop: 0 requests"},
	{LB_CAUSE_OVERFLOW, "one", KIND_PLAIN, 0, .prepare = prepare_full,
		.detail = "cluster zero: circuit breaker drop: 0 requests"},
	{LB_CAUSE_DROPPED, "one", KIND_ECHO, 0, .prepare = prepare_drop,
		.detail = "cluster zero: EDS-configured drop: first"},
	{LB_CAUSE_DROPPED, "one", KIND_PLAIN, 0, .prepare = prepare_drop,
		.detail = "cluster zero: EDS-configured drop: first"},
	{LB_CAUSE_TIMEOUT, "one", KIND_HANG, 0, .timeout = "50m", .detail = "deadline exceeded"},
	{LB_CAUSE_TIMEOUT, "one", KIND_STALL, 150, .timeout = "50m",
		.detail = "deadline exceeded"}, // in trailers
	{LB_CAUSE_TIMEOUT, "one", KIND_ECHO, 0, .timeout = "60S", .prepare = prepare_silence,
		.detail = "deadline exceeded; last error: cluster zero: "},
	{LB_CAUSE_CLIENT_PROTOCOL, "one", KIND_PLAIN, 0, .huge = true,
		.detail = "request header fields too large"},
	{LB_CAUSE_FAULT, "one", KIND_ECHO, 0, .prepare = prepare_fault, .detail = "fault injected"},
	{LB_CAUSE_FAULT, "one", KIND_PLAIN, 0, .prepare = prepare_fault,
		.detail = "fault injected"},
	{LB_CAUSE_DENIED, "one", KIND_ECHO, 0, .prepare = prepare_denial,
		.detail = "filter access: no policy allows it"},
	{LB_CAUSE_DENIED, "one", KIND_PLAIN, 0, .prepare = prepare_denial,
		.detail = "filter access: no policy allows it"},
};

static struct ask *fail_by(struct world *w, const struct row *row)
{
	if (row->prepare)
		row->prepare(w);
	world_run(w, 20 * MS);
	struct ask *a = world_ask(w, row->route, row->kind, row->size);
	a->timeout = row->timeout;
	a->fail = row->fail;
	a->huge = row->huge;
	client_ask(&w->clients[0], a);
	finish(w);
	assert_int_equal(world_ended(w, row->cause), 1);
	return a;
}

static void assert_tells_nothing(const char *message)
{
	static const char *const secrets[] = {"10.", "zero", "one:", "two", "first", "cluster"};
	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
		if (strstr(message, secrets[i]))
			fail_msg("\"%s\" tells of \"%s\"", message, secrets[i]);
}

static void assert_kept(const struct world *w, const struct row *row)
{
	struct lb_failure kept;
	assert_int_equal(lb_failures_count(w->link->failures), 1);
	assert_true(lb_failures_read(w->link->failures, 0, &kept));
	assert_int_equal(kept.cause, row->cause);
	assert_int_equal(kept.frontend, 0);
	assert_true(kept.at_ns > 0 && kept.at_ns <= w->wire.now_ns);
	if (!strstr(kept.text, row->detail))
		fail_msg("\"%s\" does not say \"%s\"", kept.text, row->detail);
	bool is_routed = row->cause != LB_CAUSE_NO_ROUTE && row->cause != LB_CAUSE_NO_ACTION &&
	                 row->cause != LB_CAUSE_CLIENT_PROTOCOL;
	bool is_down = strcmp(row->route, "down") == 0;
	assert_string_equal(kept.cluster, !is_routed ? "" : is_down ? "two" : "zero");
	bool was_sent = is_routed && !row->prepare && !is_down;
	assert_int_equal(kept.has_backend, was_sent);
	if (was_sent) {
		char address[IP_PORT_TEXT_MAX];
		assert_non_null(strstr(ip_port_print(&kept.backend, address), "10.0.2."));
	}
}

static void th_95_strangers_learn_the_cause_and_the_operator_the_rest(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *w = ready_world(NULL);
		w->frontends[0].reply_details = false;
		struct ask *a = fail_by(w, &rows[i]);
		assert_string_equal(a->message, lb_cause_info(rows[i].cause)->text);
		assert_tells_nothing(a->message);
		assert_string_equal(a->cause, "");
		assert_kept(w, &rows[i]);
		world_free(w);
	}
}

static void th_95_trusted_clients_learn_all(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *w = ready_world(NULL);
		struct ask *a = fail_by(w, &rows[i]);
		char said[sizeof(a->message)];
		size_t n = 0;
		for (const char *p = a->message; *p; p += strncmp(p, "%25", 3) ? 1 : 3)
			said[n++] = *p;
		said[n] = 0;
		if (!strstr(said, rows[i].detail))
			fail_msg("\"%s\" does not say \"%s\"", said, rows[i].detail);
		assert_string_equal(a->cause, lb_cause_info(rows[i].cause)->name);
		assert_kept(w, &rows[i]);
		world_free(w);
	}
}

static void th_95_why_a_frontend_is_not_configured_is_no_clients_business(void **state)
{
	struct world *w = a_world();
	w->frontends[2].reply_details = false;
	world_open_client(w, 0, 2);
	while (!w->clients[0].up)
		world_run(w, MS);
	struct ask *grpc = ask(w, KIND_ECHO, 0), *plain = ask(w, KIND_PLAIN, 0);
	finish(w);
	const char *text = lb_cause_info(LB_CAUSE_NO_CONFIG)->text;
	assert_string_equal(grpc->message, text);
	assert_string_equal(plain->message, text);
	struct lb_failure kept;
	assert_true(lb_failures_read(w->link->failures, 1, &kept));
	assert_string_equal(kept.text, "not configured");
	assert_int_equal(kept.frontend, 2);
	world_free(w);
}

// Not even a request object is left for them.
static void th_95_requests_above_the_limit_are_told_no_more(void **state)
{
	struct world_conf conf = world_conf_default(7);
	conf.n_clients = 1;
	conf.n_backends = 2;
	conf.max_requests = 4;
	struct world *w = ready_world(&conf);
	w->frontends[0].reply_details = false;
	for (int i = 0; i < 4; i++)
		ask_with(w, KIND_HANG, 0, "500m", NULL);
	struct ask *over = ask(w, KIND_ECHO, 0);
	finish(w);
	assert_int_equal(world_ended(w, LB_CAUSE_OVERLOAD), 1);
	assert_string_equal(over->message, lb_cause_info(LB_CAUSE_OVERLOAD)->text);
	struct lb_failure kept;
	assert_true(lb_failures_read(w->link->failures, 0, &kept));
	assert_string_equal(kept.text, "too many live requests");
	world_free(w);
}

// TH-96: clients that hang up at will don't displace what the proxy has to tell.
static void what_the_client_ends_is_not_kept(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *a = ask(w, KIND_DOWNLOAD, 100000);
	a->cancel_after = 1000;
	ask(w, KIND_ECHO, 10);
	finish(w);
	assert_int_equal(world_ended(w, LB_CAUSE_CLIENT_RESET), 1);
	assert_int_equal(world_ended(w, LB_CAUSE_OK), 1);
	assert_int_equal(lb_failures_count(w->link->failures), 0);
	world_free(w);
}

// The wire delays all alike, so that what is sent at one instant comes in one turn, in that order.
static struct world *world_of_one_turn(void)
{
	struct world *w = ready_world(NULL);
	w->wire.jitter_ns = 0;
	use_backends(w, 1);
	world_run(w, 20 * MS);
	return w;
}

static void send_now(struct world *w)
{
	wire_step(&w->wire, w->wire.now_ns);
}

static const uint8_t ping_of_a_stream[17] = {0, 0, 8, 6, 0, 0, 0, 0, 1};

// OPS-50: it is not we who are out of memory.
static void a_body_behind_a_backends_error_is_not_an_overload(void **state)
{
	struct world *w = world_of_one_turn();
	struct ask *a = world_ask(w, "one", KIND_HANG, 0);
	a->open_ended = true;
	client_ask(&w->clients[0], a);
	world_run(w, 20 * MS);
	backend_say(&w->backends[0], ping_of_a_stream, sizeof(ping_of_a_stream));
	send_now(w);
	assert_true(h2_stream_send_data(a->stream, (const uint8_t *)"x", 1, false));
	w->clients[0].host->due = true;
	send_now(w);
	finish(w);
	assert_reply(a, 13);
	assert_int_equal(world_ended(w, LB_CAUSE_UPSTREAM_PROTOCOL), 1);
	assert_int_equal(world_ended(w, LB_CAUSE_OVERLOAD), 0);
	world_free(w);
}

// OPS-50: nor is an answer to a client that has just broken the protocol, whichever of the two
// connections is looked at first.
static void nor_is_an_answer_behind_a_clients_error(void **state)
{
	static const uint8_t ping[17] = {0, 0, 8, 6};
	static const uint8_t answer[10] = {0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88}; // :status 200
	for (int backend_first = 0; backend_first < 2; backend_first++) {
		struct world *w = world_of_one_turn();
		ask(w, KIND_HANG, 0);
		world_run(w, 20 * MS);
		if (backend_first)
			backend_say(&w->backends[0], ping, sizeof(ping));
		send_now(w);
		client_say(&w->clients[0], ping_of_a_stream, sizeof(ping_of_a_stream));
		send_now(w);
		backend_say(&w->backends[0], answer, sizeof(answer));
		send_now(w);
		finish(w);
		assert_int_equal(world_ended(w, LB_CAUSE_CLIENT_PROTOCOL), 1);
		assert_int_equal(world_ended(w, LB_CAUSE_OVERLOAD), 0);
		assert_int_equal(world_ended(w, LB_CAUSE_UPSTREAM_PROTOCOL), 0);
		world_free(w);
	}
}

RUN_SUITE("proxy/reply",
	cmocka_unit_test(th_95_strangers_learn_the_cause_and_the_operator_the_rest),
	cmocka_unit_test(th_95_trusted_clients_learn_all),
	cmocka_unit_test(th_95_why_a_frontend_is_not_configured_is_no_clients_business),
	cmocka_unit_test(th_95_requests_above_the_limit_are_told_no_more),
	cmocka_unit_test(what_the_client_ends_is_not_kept),
	cmocka_unit_test(a_body_behind_a_backends_error_is_not_an_overload),
	cmocka_unit_test(nor_is_an_answer_behind_a_clients_error))
