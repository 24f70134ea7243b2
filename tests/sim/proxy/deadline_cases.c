// SPDX-License-Identifier: Apache-2.0
// Deadlines of requests, one situation a test (A31-T01..A31-T10, A31-C05).
#include "dataplane/proxy/grpc_timeout.h"
#include "lb/pick/cause.h"
#include "lb/pick/link.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#include <string.h>

#define NONE LB_NO_TIMEOUT
// Of the wire both ways, and the wheel's tick.
#define SLACK (5 * MS)

static struct world *world_with(const struct lb_route_policy *policy, uint64_t listener_max_ns)
{
	struct world *w = ready_world(NULL);
	control_set_policy(&w->control, ROUTE_ONE, policy);
	control_set_filters(&w->control, 0, NULL, 0, listener_max_ns, 1);
	return w;
}

static void assert_took(const struct ask *a, uint64_t ns)
{
	assert_in_range(took_ns(a), ns, ns + SLACK);
}

struct row {
	struct lb_timeouts route;
	uint64_t listener_ns;
	const char *client;
	uint64_t expected_ns; // NONE = it hangs
};

static void check_row(const struct row *row)
{
	struct lb_route_policy policy = {.timeouts = row->route};
	struct world *w = world_with(&policy, row->listener_ns);
	struct ask *a = ask_with(w, KIND_HANG, 0, row->client, NULL);
	world_run(w, 25 * SECOND);
	if (row->expected_ns == NONE) {
		assert_false(a->closed);
		client_cancel(a);
		finish(w);
	} else {
		assert_reply(a, 4);
		assert_took(a, row->expected_ns);
		assert_int_equal(world_ended(w, LB_CAUSE_TIMEOUT), 1);
	}
	world_free(w);
}

// A31-T01
static void a31_t01_the_routes_or_the_listeners_limit_or_the_client(void **state)
{
	static const struct row rows[] = {
		{{.has_max = true, .max_ns = 10 * SECOND}, NONE, "20S", 10 * SECOND},
		{{.has_max = true, .max_ns = 10 * SECOND}, NONE, NULL, 10 * SECOND},
		{{.has_max = true, .max_ns = 10 * SECOND}, 5 * SECOND, NULL, 10 * SECOND},
		{{0}, 5 * SECOND, "20S", 5 * SECOND}, {{0}, 5 * SECOND, NULL, 5 * SECOND},
		{{.has_max = true, .max_ns = 10 * SECOND}, NONE, "2500m", 2500 * MS}, // A31-T05
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_row(&rows[i]);
}

// A31-T02
static void a31_t02_a_limit_of_0_is_none(void **state)
{
	static const struct row rows[] = {
		{{.has_max = true}, 5 * SECOND, NULL, NONE},
		{{.has_max = true}, 5 * SECOND, "7S", 7 * SECOND},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_row(&rows[i]);
}

// A31-T03, A31-T04
static void a31_t03_t04_a_header_limit_hides_the_others(void **state)
{
	static const struct row rows[] = {
		{{.has_header_max = true, .has_max = true, .max_ns = SECOND}, SECOND, NULL, NONE},
		{{.has_header_max = true, .has_max = true, .max_ns = SECOND}, SECOND, "20S",
			20 * SECOND},
		{{.has_header_max = true, .header_max_ns = 10 * SECOND}, SECOND, "20S",
			10 * SECOND},
		{{.has_header_max = true, .header_max_ns = 10 * SECOND}, SECOND, NULL, 10 * SECOND},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_row(&rows[i]);
}

// Plain HTTP has no grpc-timeout to be limited: max_stream_duration stays.
static void a31_t03_plain_http_keeps_the_other_limits(void **state)
{
	struct lb_route_policy policy = {.timeouts = {.has_header_max = true,
						 .header_max_ns = 5 * SECOND,
						 .has_max = true,
						 .max_ns = 2 * SECOND}};
	struct world *w = world_with(&policy, NONE);
	struct ask *a = world_ask(w, "one", KIND_STALL_PLAIN, 10);
	a->timeout = "1S";
	client_ask(&w->clients[0], a);
	finish(w);
	assert_took(a, 2 * SECOND);
	world_free(w);
}

// A31-T06: nothing but what was asked for cuts a stream, silent or not.
static void a31_t06_no_default_cuts_a_stream(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *silent = ask(w, KIND_HANG, 0), *stalled = ask(w, KIND_STALL, 15);
	world_run(w, 900 * SECOND);
	assert_false(silent->closed || stalled->closed);
	client_cancel(silent);
	client_cancel(stalled);
	finish(w);
	world_free(w);
}

// A31-T07
static void a31_t07_waiting_for_a_backend_counts(void **state)
{
	struct world *w = a_world();
	open_client(w);
	struct ask *a = ask_with(w, KIND_ECHO, 1000, "2S", NULL);
	world_run(w, 3 * SECOND);
	assert_reply(a, 4);
	assert_took(a, 2 * SECOND);
	assert_int_equal(world_counter(w, "deadlines_queued"), 1);
	assert_int_equal(w->link->clusters[0].queued, 0);
	use_backends(w, 1);
	world_run(w, SECOND);
	assert_int_equal(w->seen[a->id].n, 0);
	world_free(w);
}

// A31-T07, HX-23: the backend is chosen, but allows no stream.
static void a31_t07_waiting_for_a_stream_counts(void **state)
{
	struct world_conf conf = world_conf_default(3);
	conf.n_clients = 1;
	conf.backend_streams = 0;
	struct world *w = world_new(&conf);
	use_backends(w, 1);
	open_client(w);
	world_run(w, 20 * MS);
	struct ask *a = ask_with(w, KIND_ECHO, 1000, "2S", NULL);
	world_run(w, 3 * SECOND);
	assert_reply(a, 4);
	assert_took(a, 2 * SECOND);
	world_free(w);
}

// A31-T07: one deadline for all attempts, the waits between them too.
static void a31_t07_retries_and_their_waits_count(void **state)
{
	struct lb_route_policy policy = {.retry = {.statuses = 1u << 14,
						 .max_attempts = 5,
						 .base_ns = SECOND,
						 .max_ns = SECOND}};
	struct world *w = world_with(&policy, NONE);
	struct ask *a = ask_with(w, KIND_ECHO, 100, "2S", "9 status 14");
	struct ask *b = ask_with(w, KIND_HANG, 0, "2S", "1 status 14");
	finish(w);
	assert_reply(a, 4);
	assert_took(a, 2 * SECOND);
	assert_in_range(w->seen[a->id].n, 2, 3);
	assert_reply(b, 4);
	assert_took(b, 2 * SECOND);
	assert_int_equal(world_counter(w, "deadlines_paused"), 1);
	assert_int_equal(world_counter(w, "deadlines_sent"), 1);
	world_free(w);
}

// A31-T08
static void a31_t08_before_the_answer_it_is_4_or_504_or_408(void **state)
{
	struct lb_route_policy policy = {.timeouts = {.has_max = true, .max_ns = SECOND}};
	struct world *w = world_with(&policy, NONE);
	struct ask *grpc = ask(w, KIND_HANG, 0);
	struct ask *upload = ask(w, KIND_HANG, 1 << 20); // its body cannot all be taken
	finish(w);
	assert_reply(grpc, 4);
	assert_string_equal(grpc->message, "deadline exceeded");
	assert_reply(upload, 4);
	assert_int_equal(upload->code, H2_NO_ERROR); // HX-15: the rest isn't wanted
	assert_int_equal(world_counter(w, "deadlines_sent"), 2);
	world_run(w, 20 * MS);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(w->seen[i].end_code, H2_CANCEL);
		assert_true(w->seen[i].ended_by_peer);
	}
	assert_int_equal(w->link->endpoints[0].active + w->link->endpoints[1].active, 0);
	world_free(w);
}

// A31-T08
static void a31_t08_plain_http_gets_504_or_408(void **state)
{
	struct lb_route_policy policy = {.timeouts = {.has_max = true, .max_ns = SECOND}};
	struct world *w = world_with(&policy, NONE);
	w->backends[0].mute = w->backends[1].mute = true;
	struct ask *whole = ask(w, KIND_PLAIN, 0), *head = ask(w, KIND_HEAD, 0);
	struct ask *part = world_ask(w, "one", KIND_PLAIN, 0);
	part->open_ended = true;
	client_ask(&w->clients[0], part);
	finish(w);
	assert_int_equal(whole->http_status, 504);
	assert_int_equal(whole->received, strlen("deadline exceeded"));
	assert_int_equal(head->http_status, 504);
	assert_int_equal(head->received, 0);
	assert_int_equal(part->http_status, 408);
	assert_int_equal(world_ended(w, LB_CAUSE_TIMEOUT), 3);
	world_free(w);
}

// A31-T08: after the response headers, by what of a message is out.
static void a31_t08_after_headers_it_is_trailers_or_a_reset(void **state)
{
	struct lb_route_policy policy = {.timeouts = {.has_max = true, .max_ns = SECOND}};
	struct world *w = world_with(&policy, NONE);
	static const uint32_t whole[] = {0, 15, 45}, cut[] = {1, 5, 14, 31};
	for (int i = 0; i < 3; i++) {
		struct ask *a = ask(w, KIND_STALL, whole[i]);
		finish(w);
		assert_true(a->got_end);
		assert_int_equal(a->http_status, 200);
		assert_int_equal(a->grpc_status, 4);
		assert_int_equal(a->received, whole[i]);
		assert_took(a, SECOND);
		world_run(w, 20 * MS);
		assert_int_equal(w->seen[a->id].end_code, H2_CANCEL);
	}
	for (int i = 0; i < 4; i++) {
		struct ask *a = ask(w, KIND_STALL, cut[i]);
		finish(w);
		assert_true(!a->got_end && a->by_peer);
		assert_int_equal(a->code, H2_CANCEL);
		assert_int_equal(a->received, cut[i]);
		assert_took(a, SECOND);
	}
	struct ask *plain = ask(w, KIND_STALL_PLAIN, 15);
	finish(w);
	assert_true(!plain->got_end && plain->by_peer);
	assert_int_equal(plain->code, H2_CANCEL);
	assert_int_equal(world_ended(w, LB_CAUSE_TIMEOUT), 8);
	assert_int_equal(world_counter(w, "deadlines_answered"), 8);
	world_free(w);
}

// Messages that wait for the client's window come before the trailers.
static void a31_t08_what_is_whole_is_delivered_first(void **state)
{
	struct lb_route_policy policy = {.timeouts = {.has_max = true, .max_ns = SECOND}};
	struct world *w = world_with(&policy, NONE);
	w->clients[0].slow = true;
	struct ask *a = ask(w, KIND_STALL, 90000);
	world_run(w, 2 * SECOND);
	assert_false(a->closed);
	assert_int_equal(world_ended(w, LB_CAUSE_TIMEOUT), 1);
	w->clients[0].slow = false;
	client_resume(&w->clients[0], a);
	finish(w);
	assert_true(a->got_end);
	assert_int_equal(a->grpc_status, 4);
	assert_int_equal(a->received, 90000);
	world_free(w);
}

// A31-T09
static void a31_t09_backends_see_the_time_that_is_left(void **state)
{
	struct lb_route_policy policy = {.timeouts = {.has_max = true, .max_ns = 10 * SECOND},
		.retry = {.statuses = 1u << 14,
			.max_attempts = 3,
			.base_ns = SECOND,
			.max_ns = SECOND}};
	struct world *w = world_with(&policy, NONE);
	struct ask *own = ask_with(w, KIND_ECHO, 10, "3S", "1 status 14");
	struct ask *capped = ask_with(w, KIND_ECHO, 10, "20S", NULL);
	struct ask *none = ask_with(w, KIND_ECHO, 10, NULL, NULL);
	finish(w);
	const struct seen *s = &w->seen[own->id];
	assert_ok(w, own);
	assert_string_equal(s->attempts[0].timeout, "3S");
	uint64_t left;
	assert_true(proxy_grpc_timeout_parse(str_from(s->attempts[1].timeout), &left));
	uint64_t spent = s->attempts[1].at_ns - s->attempts[0].at_ns;
	assert_in_range(left, 3 * SECOND - spent - SLACK, 3 * SECOND - spent + SLACK);
	assert_string_equal(w->seen[capped->id].attempts[0].timeout, "10000000u");
	assert_string_equal(w->seen[none->id].attempts[0].timeout, "10000000u");
	world_free(w);
}

// A31-T09: time spent in the queue is not there any more.
static void a31_t09_time_in_the_queue_is_taken_off(void **state)
{
	struct world *w = a_world();
	open_client(w);
	struct ask *a = ask_with(w, KIND_ECHO, 10, "5S", NULL);
	struct ask *free_of = ask(w, KIND_ECHO, 10);
	world_run(w, 2 * SECOND);
	use_backends(w, 1);
	finish(w);
	uint64_t left;
	assert_true(proxy_grpc_timeout_parse(str_from(w->seen[a->id].attempts[0].timeout), &left));
	assert_in_range(left, 3 * SECOND - 50 * MS, 3 * SECOND);
	assert_string_equal(w->seen[free_of->id].attempts[0].timeout, "");
	world_free(w);
}

// A31-T10
static void a31_t10_a_malformed_timeout_is_none_and_passes(void **state)
{
	struct world *w = ready_world(NULL);
	static const char *const rows[] = {"1s", "123456789n", "1", "x"};
	struct ask *asks[4];
	for (int i = 0; i < 4; i++)
		asks[i] = ask_with(w, KIND_HANG, 0, rows[i], NULL);
	world_run(w, 10 * SECOND);
	for (int i = 0; i < 4; i++) {
		assert_false(asks[i]->closed);
		assert_string_equal(w->seen[asks[i]->id].attempts[0].timeout, rows[i]);
		client_cancel(asks[i]);
	}
	finish(w);
	world_free(w);
}

static void a31_t10_a_timeout_of_0_is_over_at_once(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *a = ask_with(w, KIND_ECHO, 1000, "0S", NULL);
	finish(w);
	assert_reply(a, 4);
	assert_took(a, 0);
	assert_int_equal(w->seen[a->id].n, 0);
	world_free(w);
}

// The timers of those that end in time are gone with them: world_free() sees to what is left.
static void a_deadline_ends_with_its_request(void **state)
{
	struct world *w = ready_world(NULL);
	for (int i = 0; i < 50; i++)
		ask_with(w, i % 5 ? KIND_ECHO : KIND_RESET_LATE, i % 5 ? 3000 : 2, "1S", NULL);
	struct ask *cancelled = ask_with(w, KIND_HANG, 10, "1S", NULL);
	world_run(w, 100 * MS);
	client_cancel(cancelled);
	finish(w);
	for (int i = 0; i < 50; i++)
		if (i % 5)
			assert_ok(w, &w->asks[i]);
	world_run(w, 3 * SECOND);
	assert_int_equal(world_ended(w, LB_CAUSE_TIMEOUT), 0);
	world_free(w);
}

#define CASE(f) cmocka_unit_test(f)
RUN_SUITE("sim/proxy_deadline", CASE(a31_t01_the_routes_or_the_listeners_limit_or_the_client),
	CASE(a31_t02_a_limit_of_0_is_none), CASE(a31_t03_t04_a_header_limit_hides_the_others),
	CASE(a31_t03_plain_http_keeps_the_other_limits), CASE(a31_t06_no_default_cuts_a_stream),
	CASE(a31_t07_waiting_for_a_backend_counts), CASE(a31_t07_waiting_for_a_stream_counts),
	CASE(a31_t07_retries_and_their_waits_count),
	CASE(a31_t08_before_the_answer_it_is_4_or_504_or_408),
	CASE(a31_t08_plain_http_gets_504_or_408),
	CASE(a31_t08_after_headers_it_is_trailers_or_a_reset),
	CASE(a31_t08_what_is_whole_is_delivered_first),
	CASE(a31_t09_backends_see_the_time_that_is_left),
	CASE(a31_t09_time_in_the_queue_is_taken_off),
	CASE(a31_t10_a_malformed_timeout_is_none_and_passes),
	CASE(a31_t10_a_timeout_of_0_is_over_at_once), CASE(a_deadline_ends_with_its_request))
