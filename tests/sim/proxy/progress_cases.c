// SPDX-License-Identifier: Apache-2.0
// Requests of which nothing moves, one situation a test: which limit holds for whom, what counts as
// progress, and how they end (TH-98, dataplane/proxy/progress.h).
#include "lb/pick/cause.h"
#include "lb/pick/link.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#include <string.h>

#define LIMIT (300 * SECOND) // what shunt.yaml says without a word
#define SLACK (105 * MS) // of a look, and of the wire both ways
#define NONE LB_NO_TIMEOUT

static void assert_took(const struct ask *a, uint64_t ns)
{
	assert_in_range(took_ns(a), ns, ns + SLACK);
}

static void mute_backends(struct world *w)
{
	for (uint32_t i = 0; i < w->conf.n_backends; i++)
		w->backends[i].mute = true;
}

static struct ask *ask_plain(struct world *w, enum kind kind, bool open_ended)
{
	struct ask *a = world_ask(w, "one", kind, 10);
	a->open_ended = open_ended;
	client_ask(&w->clients[0], a);
	return a;
}

static void send_byte(struct ask *a)
{
	assert_true(h2_stream_send_data(a->stream, (const uint8_t *)"b", 1, false));
	a->client->host->due = true;
}

static struct lb_member_counters counted(const struct world *w)
{
	struct lb_member_counters sum = {0};
	for (uint32_t i = 0; i < w->control.n_members; i++) {
		sum.failed += w->link->members[i].failed;
		sum.unjudged += w->link->members[i].unjudged;
	}
	return sum;
}

static void th_98_a_plain_request_that_gets_no_answer_ends_with_504(void **state)
{
	struct world *w = ready_world(NULL);
	mute_backends(w);
	struct ask *a = ask_plain(w, KIND_PLAIN, false);
	world_run(w, LIMIT + SLACK);
	assert_int_equal(a->http_status, 504);
	assert_string_equal(a->message, "nothing of it moved for 300 s");
	assert_string_equal(a->cause, "stream_idle");
	assert_took(a, LIMIT);
	assert_int_equal(world_ended(w, LB_CAUSE_STREAM_IDLE), 1);
	assert_int_equal(counted(w).failed, 1); // it had the whole request
	finish(w);
	world_free(w);
}

static void th_98_one_that_still_owes_its_body_ends_with_408(void **state)
{
	struct world *w = ready_world(NULL);
	mute_backends(w);
	struct ask *a = ask_plain(w, KIND_PLAIN, true);
	world_run(w, LIMIT + SLACK);
	assert_int_equal(a->http_status, 408);
	assert_took(a, LIMIT);
	assert_int_equal(world_ended(w, LB_CAUSE_STREAM_IDLE), 1);
	assert_int_equal(counted(w).unjudged, 1);
	finish(w);
	world_free(w);
}

static void th_98_an_answer_under_way_ends_with_a_reset(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *a = ask_plain(w, KIND_STALL_PLAIN, false);
	world_run(w, LIMIT + SLACK);
	assert_int_equal(a->http_status, 200);
	assert_true(a->closed && a->by_peer && !a->got_end);
	assert_int_equal(a->code, H2_CANCEL);
	assert_took(a, LIMIT);
	assert_int_equal(counted(w).unjudged, 1);
	finish(w);
	world_free(w);
}

static void th_98_waiting_for_a_backend_is_no_progress(void **state)
{
	struct world *w = a_world();
	open_client(w);
	struct ask *a = ask_plain(w, KIND_PLAIN, false);
	world_run(w, LIMIT + SLACK);
	assert_int_equal(a->http_status, 504);
	assert_took(a, LIMIT);
	assert_int_equal(w->link->clusters[0].queued, 0);
	finish(w);
	world_free(w);
}

// A body that trickles may do so: each byte is progress, as to Envoy and nginx.
static void th_98_each_byte_of_a_body_is_progress(void **state)
{
	struct world *w = ready_world(NULL);
	mute_backends(w);
	struct ask *a = ask_plain(w, KIND_PLAIN, true), *silent = ask_plain(w, KIND_PLAIN, true);
	for (int i = 0; i < 4; i++) {
		world_run(w, LIMIT - SECOND);
		assert_false(a->closed);
		send_byte(a);
	}
	assert_took(silent, LIMIT); // its neighbor does not keep it
	world_run(w, LIMIT + SLACK);
	assert_took(a, 4 * (LIMIT - SECOND) + LIMIT);
	assert_int_equal(world_ended(w, LB_CAUSE_STREAM_IDLE), 2);
	finish(w);
	world_free(w);
}

// gRPC's streams may be silent for hours, unless a limit is configured.
static void th_98_grpc_has_no_limit_by_default(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *silent = ask(w, KIND_HANG, 0), *stalled = ask(w, KIND_STALL, 15);
	world_run(w, 4 * 3600 * SECOND);
	assert_false(silent->closed || stalled->closed);
	client_cancel(silent);
	client_cancel(stalled);
	finish(w);
	world_free(w);
}

struct row {
	uint64_t route_ns; // 0 = the listener's
	uint64_t listener_ns[2];
	uint64_t plain_ns, grpc_ns; // expected; NONE = they hang
};

static void check(const struct ask *a, uint64_t expected_ns)
{
	if (expected_ns == NONE)
		assert_false(a->closed);
	else
		assert_took(a, expected_ns);
}

static void check_row(const struct row *row)
{
	struct world *w = ready_world(NULL);
	struct lb_route_policy policy = {.timeouts = {.idle_ns = row->route_ns}};
	control_set_policy(&w->control, ROUTE_ONE, &policy);
	memcpy(w->control.idle_ns, row->listener_ns, sizeof(w->control.idle_ns));
	control_set_filters(&w->control, 0, NULL, 0, NONE, 1);
	mute_backends(w);
	struct ask *plain = ask_plain(w, KIND_PLAIN, false), *grpc = ask(w, KIND_HANG, 0);
	world_run(w, LIMIT);
	check(plain, row->plain_ns);
	check(grpc, row->grpc_ns);
	client_cancel(plain);
	client_cancel(grpc);
	finish(w);
	world_free(w);
}

static void th_98_the_routes_limit_beats_the_listeners(void **state)
{
	static const struct row rows[] = {
		{0, {NONE, NONE}, NONE, NONE},
		{0, {9 * SECOND, NONE}, 9 * SECOND, NONE},
		{0, {7 * SECOND, 7 * SECOND}, 7 * SECOND, 7 * SECOND},
		{20 * SECOND, {7 * SECOND, NONE}, 20 * SECOND, 20 * SECOND},
		{NONE, {7 * SECOND, 7 * SECOND}, NONE, NONE},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_row(&rows[i]);
}

static void th_98_grpc_gets_a_status(void **state)
{
	struct world *w = ready_world(NULL);
	struct lb_route_policy policy = {.timeouts = {.idle_ns = 5 * SECOND}};
	control_set_policy(&w->control, ROUTE_ONE, &policy);
	struct ask *unanswered = ask(w, KIND_HANG, 0);
	struct ask *answered = ask(w, KIND_STALL, 15);
	world_run(w, 5 * SECOND + SLACK);
	assert_reply(unanswered, 14);
	assert_true(answered->got_end); // in trailers, after a whole message
	assert_int_equal(answered->grpc_status, 14);
	assert_int_equal(answered->received, 15);
	finish(w);
	world_free(w);
}

// A look finds all of a client's requests, however many, and none before its time.
static void th_98_each_of_many_requests_has_its_own_time(void **state)
{
	enum { N = 60 };
	struct ask *asks[N];
	struct world *w = ready_world(NULL);
	mute_backends(w);
	for (int i = 0; i < N; i++) {
		asks[i] = ask_plain(w, KIND_PLAIN, i & 1);
		world_run(w, 100 * MS);
	}
	world_run(w, LIMIT + SLACK);
	for (int i = 0; i < N; i++)
		assert_took(asks[i], LIMIT);
	assert_int_equal(world_ended(w, LB_CAUSE_STREAM_IDLE), N);
	finish(w);
	world_free(w);
}

// A later request with a shorter limit doesn't wait for the longer one of those before it.
static void th_98_a_shorter_limit_ends_earlier(void **state)
{
	struct world *w = ready_world(NULL);
	mute_backends(w);
	struct ask *longer = ask_plain(w, KIND_PLAIN, false);
	world_run(w, 10 * SECOND);
	struct lb_route_policy policy = {.timeouts = {.idle_ns = 5 * SECOND}};
	control_set_policy(&w->control, ROUTE_ONE, &policy);
	struct ask *shorter = ask_plain(w, KIND_PLAIN, false);
	world_run(w, 5 * SECOND + SLACK);
	assert_took(shorter, 5 * SECOND);
	world_run(w, LIMIT);
	assert_took(longer, LIMIT); // what it was routed with stays
	finish(w);
	world_free(w);
}

RUN_SUITE("proxy/progress",
	cmocka_unit_test(th_98_a_plain_request_that_gets_no_answer_ends_with_504),
	cmocka_unit_test(th_98_one_that_still_owes_its_body_ends_with_408),
	cmocka_unit_test(th_98_an_answer_under_way_ends_with_a_reset),
	cmocka_unit_test(th_98_waiting_for_a_backend_is_no_progress),
	cmocka_unit_test(th_98_each_byte_of_a_body_is_progress),
	cmocka_unit_test(th_98_grpc_has_no_limit_by_default),
	cmocka_unit_test(th_98_the_routes_limit_beats_the_listeners),
	cmocka_unit_test(th_98_grpc_gets_a_status),
	cmocka_unit_test(th_98_each_of_many_requests_has_its_own_time),
	cmocka_unit_test(th_98_a_shorter_limit_ends_earlier))
