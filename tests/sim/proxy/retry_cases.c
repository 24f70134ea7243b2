// SPDX-License-Identifier: Apache-2.0
// Retries, one situation a test (RT-03..RT-13).
#include "lb/cluster.h"
#include "lb/pick/cause.h"
#include "lb/pick/leaf_picker.h"
#include "lb/pick/link.h"
#include "lb/snapshot.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#include <string.h>

// Of the wire both ways, and the wheel's tick.
#define SLACK (5 * MS)

static const struct lb_route_policy unavailable = {
	.retry = {
		.statuses = 1u << 14, .max_attempts = 3, .base_ns = 100 * MS, .max_ns = 150 * MS}};

static struct world *world_with(const struct lb_route_policy *policy)
{
	struct world *w = ready_world(NULL);
	control_set_policy(&w->control, ROUTE_ONE, policy);
	return w;
}

static const struct seen *seen(const struct world *w, const struct ask *a)
{
	return &w->seen[a->id];
}

// Between attempt n and the one before, both counted from 0.
static uint64_t wait_ns(const struct world *w, const struct ask *a, uint32_t n)
{
	assert_true(seen(w, a)->n > n);
	return seen(w, a)->attempts[n].at_ns - seen(w, a)->attempts[n - 1].at_ns;
}

// RT-03
static void rt_03_the_last_attempts_status_is_the_clients(void **state)
{
	struct world *w = world_with(&unavailable);
	struct ask *a = ask_with(w, KIND_ECHO, 5000, NULL, "9 status 14");
	struct ask *saved = ask_with(w, KIND_ECHO, 5000, NULL, "2 status 14");
	finish(w);
	assert_reply(a, 14);
	assert_int_equal(seen(w, a)->n, 3);
	assert_ok(w, saved);
	assert_int_equal(seen(w, saved)->n, 3);
	assert_int_equal(world_counter(w, "retries"), 4);
	assert_int_equal(world_counter(w, "retries_exhausted"), 1);
	assert_int_equal(world_ended(w, LB_CAUSE_OK), 2); // the backend's own answer
	world_free(w);
}

// RT-05
static void rt_05_waits_grow_from_base_to_max_with_jitter(void **state)
{
	struct world *w = world_with(&unavailable);
	uint64_t least = UINT64_MAX, most = 0;
	for (int i = 0; i < 40; i++) {
		struct ask *a = ask_with(w, KIND_ECHO, 10, NULL, "2 status 14");
		finish(w);
		assert_ok(w, a);
		uint64_t first = wait_ns(w, a, 1), second = wait_ns(w, a, 2);
		assert_in_range(first, 80 * MS, 120 * MS + SLACK);
		assert_in_range(second, 120 * MS, 180 * MS + SLACK);
		least = first < least ? first : least;
		most = first > most ? first : most;
	}
	assert_true(least < 90 * MS && most > 110 * MS);
	world_free(w);
}

// RT-06
static void rt_06_response_headers_commit(void **state)
{
	struct lb_route_policy all = unavailable;
	all.retry.statuses = 1u << 1 | 1u << 4 | 1u << 8 | 1u << 13 | 1u << 14;
	struct world *w = world_with(&all);
	struct ask *reset = ask(w, KIND_RESET_LATE, H2_CANCEL);
	struct ask *stalled = ask(w, KIND_STALL, 15);
	world_run(w, 100 * MS);
	assert_true(reset->closed && !reset->got_end);
	backend_abort_conns(&w->backends[0]);
	backend_abort_conns(&w->backends[1]);
	finish(w);
	assert_true(stalled->closed && stalled->received == 15);
	assert_int_equal(stalled->grpc_status, 14);
	assert_int_equal(seen(w, reset)->n, 1);
	assert_int_equal(seen(w, stalled)->n, 1);
	assert_int_equal(world_counter(w, "retries"), 0);
	world_free(w);
}

// RT-06: what is kept of a body has a bound, beyond which the attempt stands.
static void rt_06_a_full_replay_buffer_commits(void **state)
{
	struct world *w = world_with(&unavailable);
	struct ask *fits = ask_with(w, KIND_ECHO, 64 << 10, NULL, "2 late 14");
	struct ask *over = ask_with(w, KIND_ECHO, (64 << 10) + 1, NULL, "2 late 14");
	struct ask *trailers = world_ask(w, "one", KIND_ECHO, 30000);
	trailers->request_trailers = true;
	trailers->fail = "2 late 14";
	client_ask(&w->clients[0], trailers);
	finish(w);
	assert_ok(w, fits);
	assert_int_equal(seen(w, fits)->n, 3);
	assert_reply(over, 14);
	assert_int_equal(seen(w, over)->n, 1);
	assert_ok(w, trailers);
	assert_int_equal(world_counter(w, "retries_abandoned"), 1);
	world_free(w);
}

// RT-06: a large body is sent again only while others don't need the memory.
static void rt_06_scarce_memory_commits(void **state)
{
	struct world_conf conf = world_conf_default(9);
	conf.n_clients = 1;
	conf.n_backends = 2;
	conf.n_chunks = 600;
	conf.client_buffer = 0;
	struct world *w = ready_world(&conf);
	control_set_policy(&w->control, ROUTE_ONE, &unavailable);
	// Most of these are of a cluster without backends, where each upload holds a window.
	for (int i = 0; i < 16; i++)
		client_ask(&w->clients[0], world_ask(w, "two", KIND_HANG, 60000));
	world_run(w, SECOND);
	assert_in_range(world_chunks_used(w), 320, 500);
	struct ask *large = ask_with(w, KIND_ECHO, 20000, NULL, "2 late 14");
	struct ask *small = ask_with(w, KIND_ECHO, 5000, NULL, "2 late 14");
	world_run(w, 2 * SECOND);
	assert_reply(large, 14);
	assert_ok(w, small);
	for (uint32_t i = 0; i < w->n_asks; i++)
		client_cancel(&w->asks[i]);
	finish(w);
	world_run(w, SECOND);
	assert_int_equal(world_chunks_used(w), 0);
	world_free(w);
}

// RT-07
static void rt_07_only_listed_statuses_are_retried(void **state)
{
	static const struct {
		const char *fail;
		int status; // as clients read it
		int http; // 0 = 200
	} rows[] = {
		{"1 status 1", 1},
		{"1 status 4", 4},
		{"1 status 8", 8},
		{"1 status 13", 13},
		{"1 status 14", 14},
		{"1 status 5", 5},
		{"1 status 0", 0},
		{"1 reset 8", 1}, // HX-19
		{"1 reset 11", 8},
		{"1 reset 12", 7},
		{"1 reset 2", 13},
		{"1 reset 0", 13},
		{"1 lose 0", 14},
		{"1 http 503", 14, 503}, // gRPC's mapping of what has no grpc-status
		{"1 http 404", 12, 404},
	};
	static const int listed[] = {1, 4, 8, 13, 14, 0};
	for (size_t i = 0; i < sizeof(listed) / sizeof(listed[0]); i++) {
		struct lb_route_policy policy = unavailable;
		policy.retry.statuses = listed[i] ? 1u << listed[i] : 0;
		struct world *w = world_with(&policy);
		for (size_t j = 0; j < sizeof(rows) / sizeof(rows[0]); j++) {
			struct ask *a = ask_with(w, KIND_ECHO, 100, NULL, rows[j].fail);
			finish(w);
			if (listed[i] && rows[j].status == listed[i]) {
				assert_ok(w, a);
				assert_int_equal(seen(w, a)->n, 2);
			} else {
				assert_int_equal(seen(w, a)->n, 1);
				int http = rows[j].http;
				assert_int_equal(a->http_status, http ? http : 200);
				// Else it is for the client to read it from the other.
				assert_int_equal(a->grpc_status, http ? -1 : rows[j].status);
				if (strstr(rows[j].fail, "reset"))
					assert_non_null(strstr(a->message, " (RST_STREAM "));
			}
		}
		world_free(w);
	}
}

// RT-08: another pick in the same cluster, whatever the route's weights.
static void rt_08_each_attempt_picks_again_in_its_cluster(void **state)
{
	struct world_conf conf = world_conf_default(7);
	conf.n_clients = 1;
	struct world *w = world_new(&conf);
	control_set_endpoints(&w->control, 0, HOST_BACKENDS, 0x3);
	control_set_endpoints(&w->control, 1, HOST_BACKENDS, 0xc);
	open_client(w);
	world_run(w, 20 * MS);
	control_set_policy(&w->control, ROUTE_TWO, &unavailable);
	uint32_t by_cluster[2] = {0};
	for (int i = 0; i < 60; i++) {
		struct ask *a = world_ask(w, "two", KIND_ECHO, 10);
		a->fail = "2 status 14";
		client_ask(&w->clients[0], a);
		finish(w);
		assert_ok(w, a);
		const struct seen *s = seen(w, a);
		uint32_t cluster = (s->attempts[0].backend - 1u) / 2;
		by_cluster[cluster]++;
		for (int n = 1; n < 3; n++) {
			assert_int_equal((s->attempts[n].backend - 1u) / 2, cluster);
			// Round robin, and nothing else goes on.
			assert_int_not_equal(s->attempts[n].backend, s->attempts[n - 1].backend);
		}
	}
	assert_true(by_cluster[0] > 5 && by_cluster[1] > by_cluster[0]);
	assert_int_equal(w->link->clusters[0].started, by_cluster[0]);
	assert_int_equal(w->link->endpoints[0].active + w->link->endpoints[1].active, 0);
	assert_int_equal(w->link->endpoints[0].started + w->link->endpoints[1].started,
		3 * by_cluster[0]); // CB-04: each attempt counts
	world_free(w);
}

// RT-09
static void rt_09_later_attempts_say_how_many_came_before(void **state)
{
	struct world *w = world_with(&unavailable);
	struct ask *a = ask_with(w, KIND_ECHO, 10, NULL, "2 status 14");
	finish(w);
	assert_ok(w, a);
	assert_string_equal(seen(w, a)->attempts[0].previous, "");
	assert_string_equal(seen(w, a)->attempts[1].previous, "1");
	assert_string_equal(seen(w, a)->attempts[2].previous, "2");
	world_free(w);
}

// RT-10
static void rt_10_a_backend_says_how_long_to_wait(void **state)
{
	struct lb_route_policy policy = unavailable;
	policy.retry.max_attempts = 4;
	struct world *w = world_with(&policy);
	struct ask *at_once = ask_with(w, KIND_ECHO, 10, NULL, "1 status 14 0");
	struct ask *later = ask_with(w, KIND_ECHO, 10, NULL, "1 status 14 700");
	finish(w);
	assert_ok(w, at_once);
	assert_ok(w, later);
	assert_in_range(wait_ns(w, at_once, 1), 0, SLACK);
	assert_in_range(wait_ns(w, later, 1), 700 * MS, 700 * MS + SLACK);
	world_free(w);
}

// RT-10: the wait after a told one is the first one's again.
static void rt_10_then_the_backoff_begins_anew(void **state)
{
	struct lb_route_policy policy = unavailable;
	policy.retry.max_attempts = 5;
	policy.retry.max_ns = 10 * SECOND;
	struct world *w = world_with(&policy);
	struct ask *a = world_ask(w, "one", KIND_ECHO, 10);
	a->fail = "4 status 14 50@2"; // with the second one alone
	client_ask(&w->clients[0], a);
	finish(w);
	assert_ok(w, a);
	assert_in_range(wait_ns(w, a, 1), 80 * MS, 120 * MS + SLACK);
	assert_in_range(wait_ns(w, a, 2), 50 * MS, 50 * MS + SLACK);
	assert_in_range(wait_ns(w, a, 3), 80 * MS, 120 * MS + SLACK);
	assert_in_range(wait_ns(w, a, 4), 160 * MS, 240 * MS + SLACK);
	world_free(w);
}

// RT-10
static void rt_10_a_negative_or_odd_wait_forbids_retries(void **state)
{
	struct world *w = world_with(&unavailable);
	static const char *const rows[] = {"1 status 14 -1", "1 status 14 soon", "1 status 14 1.5",
		"1 status 14 +1", "1 status 14 0x10", "1 status 14 99999999999999"};
	for (size_t i = 0; i < 6; i++) {
		struct ask *a = ask_with(w, KIND_ECHO, 10, NULL, rows[i]);
		finish(w);
		assert_reply(a, 14);
		assert_int_equal(seen(w, a)->n, 1);
	}
	assert_int_equal(world_counter(w, "retries_forbidden"), 6);
	assert_int_equal(world_counter(w, "retries"), 0);
	world_free(w);
}

// RT-11, D12: once, at once, and without any policy.
static void rt_11_a_refused_request_is_sent_again_once(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *once = ask(w, KIND_REFUSE_ONCE, 100);
	struct ask *always = ask(w, KIND_REFUSE, 100);
	finish(w);
	assert_ok(w, once);
	assert_in_range(wait_ns(w, once, 1), 0, SLACK);
	assert_reply(always, 14);
	assert_int_equal(seen(w, always)->n, 2);
	assert_int_equal(world_counter(w, "transparent_retries"), 2);
	world_free(w);
}

// RT-11: not counted; a second refusal is a status like any other.
static void rt_11_refusals_are_free_once_and_then_count(void **state)
{
	struct world *w = world_with(&unavailable);
	struct ask *once = world_ask(w, "one", KIND_REFUSE_ONCE, 100);
	once->fail = "2 status 14";
	client_ask(&w->clients[0], once);
	struct ask *always = ask(w, KIND_REFUSE, 100);
	finish(w);
	assert_ok(w, once);
	assert_int_equal(seen(w, once)->n, 4);
	assert_string_equal(seen(w, once)->attempts[1].previous, "");
	assert_string_equal(seen(w, once)->attempts[3].previous, "2");
	assert_reply(always, 14);
	assert_int_equal(seen(w, always)->n, 4);
	assert_int_equal(seen(w, always)->n_delivered, 0);
	world_free(w);
}

// RT-10: who wants hours wants no retry; an hour is waited.
static void rt_10_a_told_wait_has_a_bound(void **state)
{
	struct world *w = world_with(&unavailable);
	struct ask *over = ask_with(w, KIND_ECHO, 100, NULL, "1 status 14 3600001");
	struct ask *ages = ask_with(w, KIND_ECHO, 100, NULL, "1 status 14 9000000000000");
	struct ask *hour = ask_with(w, KIND_ECHO, 100, NULL, "1 status 14 3600000");
	world_run(w, SECOND);
	assert_reply(over, 14);
	assert_reply(ages, 14);
	assert_int_equal(world_counter(w, "retries_forbidden"), 2);
	assert_false(hour->closed);
	assert_int_equal(world_counter(w, "requests_paused"), 1);
	client_cancel(hour);
	finish(w);
	world_free(w);
}

// Attempts with ten seconds between.
static const struct lb_route_policy slow = {.retry = {.statuses = 1u << 14,
						    .max_attempts = 3,
						    .base_ns = 10 * SECOND,
						    .max_ns = 10 * SECOND}};

// requests that wait for a time take as much as those that wait for a backend.
static void paused_requests_count_as_waiting_ones(void **state)
{
	struct world_conf conf = world_conf_default(3);
	conf.n_clients = 1;
	conf.max_queued = 2;
	struct world *w = ready_world(&conf);
	control_set_policy(&w->control, ROUTE_ONE, &slow);
	struct ask *asks[4];
	for (int i = 0; i < 4; i++)
		asks[i] = ask_with(w, KIND_ECHO, 100, NULL, "1 status 14");
	world_run(w, SECOND);
	assert_int_equal(world_counter(w, "requests_paused"), 2);
	assert_int_equal(world_counter(w, "requests_waiting"), 0);
	assert_int_equal(w->link->clusters[0].queued, 2);
	assert_int_equal(world_counter(w, "retries"), 2);
	assert_int_equal(world_counter(w, "retries_overflow"), 2);
	struct ask *straight = ask(w, KIND_ECHO, 100); // waits for nothing
	finish(w);
	assert_ok(w, straight);
	uint32_t n_ok = 0;
	for (int i = 0; i < 4; i++) {
		n_ok += asks[i]->grpc_status == 0;
		assert_true(asks[i]->grpc_status == 0 || asks[i]->grpc_status == 14);
	}
	assert_int_equal(n_ok, 2);
	assert_int_equal(w->link->clusters[0].queued, 0);
	world_free(w);
}

static struct lb_breaker *breaker_of(const struct world *w)
{
	const struct lb_cluster *c = lb_snapshot_cluster(w->control.snapshot, 0);
	return lb_leaf_layer(c->picker)->breaker;
}

// CB-07: of ten that fail at once three are sent again; the others' failure is their answer.
static void cb_07_retries_in_sum_are_bounded(void **state)
{
	struct world_conf conf = world_conf_default(3);
	conf.n_clients = 1;
	struct world *w = ready_world(&conf);
	control_set_policy(&w->control, ROUTE_ONE, &slow);
	w->control.leaves[0].retry_budget = (struct lb_retry_budget){true, 0, 3};
	use_backends(w, 7);
	world_run(w, 20 * MS);
	struct ask *asks[10];
	for (int i = 0; i < 10; i++)
		asks[i] = ask_with(w, KIND_ECHO, 100, NULL, "1 status 14");
	world_run(w, SECOND);
	assert_int_equal(world_counter(w, "retries"), 3);
	assert_int_equal(world_counter(w, "retries_over_budget"), 7);
	assert_int_equal(lb_breaker_retrying(breaker_of(w)), 3); // while they wait
	finish(w);
	uint32_t n_ok = 0;
	for (int i = 0; i < 10; i++) {
		n_ok += asks[i]->grpc_status == 0;
		assert_true(asks[i]->grpc_status == 0 || asks[i]->grpc_status == 14);
	}
	assert_int_equal(n_ok, 3);
	assert_int_equal(lb_breaker_retrying(breaker_of(w)), 0);
	struct ask *next = ask_with(w, KIND_ECHO, 100, NULL, "1 status 14");
	finish(w);
	assert_ok(w, next); // there is room again
	world_free(w);
}

// CB-08: half of what is in flight, which are fewer with each that waits to be sent again, though
// the worker keeps their places.
static void cb_08_places_that_a_worker_keeps_allow_no_retries(void **state)
{
	struct world_conf conf = world_conf_default(3);
	conf.n_clients = 1;
	struct world *w = ready_world(&conf);
	control_set_policy(&w->control, ROUTE_ONE, &slow);
	w->control.leaves[0].retry_budget = (struct lb_retry_budget){true, 500000, 1};
	use_backends(w, 7);
	world_run(w, 20 * MS);
	for (int i = 0; i < 40; i++)
		ask_with(w, KIND_ECHO, 100, NULL, "1 status 14");
	world_run(w, SECOND);
	assert_in_range(world_counter(w, "retries"), 12, 15);
	finish(w);
	world_free(w);
}

// Requests that wait behind others for a backend that reads nothing, whose connection then ends.
static void end_before_all_is_sent(void (*end)(struct backend *))
{
	struct world *w = ready_world(NULL);
	use_backends(w, 1);
	world_run(w, 20 * MS);
	w->backends[0].deaf = true;
	struct ask *fill[2] = {ask(w, KIND_HANG, 60000), ask(w, KIND_HANG, 60000)};
	world_run(w, SECOND);
	struct ask *behind[3];
	for (int i = 0; i < 3; i++)
		behind[i] = ask(w, KIND_ECHO, 100);
	world_run(w, SECOND);
	assert_int_equal(w->link->endpoints[0].active, 5);
	use_backends(w, 3);
	world_run(w, 20 * MS);
	end(&w->backends[0]);
	finish(w);
	for (int i = 0; i < 2; i++)
		assert_reply(fill[i], 14); // some of it was sent
	for (int i = 0; i < 3; i++)
		assert_ok(w, behind[i]);
	assert_int_equal(world_counter(w, "transparent_retries"), 3);
	world_free(w);
}

// RT-11: what never left this host cannot have been seen.
static void rt_11_what_was_never_sent_goes_elsewhere(void **state)
{
	end_before_all_is_sent(backend_abort_conns);
}

// RT-11: FIN without GOAWAY, as of a server whose process ends.
static void rt_11_so_does_what_a_fin_comes_before(void **state)
{
	end_before_all_is_sent(backend_shut_conns);
}

// RT-12: a limit of ours is no status of a backend's.
static void rt_12_overflow_and_overload_are_not_retried(void **state)
{
	struct world_conf conf = world_conf_default(3);
	conf.n_clients = 1;
	conf.max_queued = 1;
	conf.max_requests = 3;
	struct world *w = world_new(&conf);
	control_set_policy(&w->control, ROUTE_ONE, &unavailable);
	open_client(w);
	struct ask *waits = ask(w, KIND_ECHO, 10), *overflows = ask(w, KIND_ECHO, 10);
	world_run(w, 100 * MS);
	assert_reply(overflows, 14);
	assert_in_range(took_ns(overflows), 0, SLACK);
	assert_int_equal(world_ended(w, LB_CAUSE_OVERFLOW), 1);
	assert_int_equal(world_counter(w, "retries"), 0);
	use_backends(w, 1);
	finish(w);
	assert_ok(w, waits);
	world_free(w);
}

// RT-12's other side: a pick that fails is no drop, and gRPC tries again.
static void rt_12_failed_picks_are_retried(void **state)
{
	struct world *w = ready_world(NULL);
	control_set_policy(&w->control, ROUTE_DOWN, &unavailable);
	struct ask *grpc = world_ask(w, "down", KIND_ECHO, 1000);
	client_ask(&w->clients[0], grpc);
	struct ask *plain = world_ask(w, "down", KIND_PLAIN, 0);
	client_ask(&w->clients[0], plain);
	finish(w);
	assert_reply(grpc, 14);
	assert_string_equal(grpc->message, "cluster two: 100%25 broken");
	assert_in_range(took_ns(grpc), 200 * MS, 300 * MS + SLACK);
	assert_int_equal(plain->http_status, 503);
	assert_in_range(took_ns(plain), 0, SLACK);
	assert_int_equal(world_counter(w, "retries"), 2);
	struct ask *healed = world_ask(w, "down", KIND_ECHO, 1000);
	client_ask(&w->clients[0], healed);
	world_run(w, 50 * MS);
	control_set_endpoints(&w->control, 2, HOST_BACKENDS, 1);
	finish(w);
	assert_ok(w, healed);
	assert_int_equal(world_counter(w, "retries"), 3);
	world_free(w);
}

// RT-13: plain HTTP has none of these statuses.
static void rt_13_plain_http_is_not_retried(void **state)
{
	struct lb_route_policy all = unavailable;
	all.retry.statuses = 1u << 1 | 1u << 4 | 1u << 8 | 1u << 13 | 1u << 14;
	struct world *w = world_with(&all);
	static const char *const rows[] = {"1 http 503", "1 reset 2", "1 lose 0"};
	for (int i = 0; i < 3; i++) {
		struct ask *a = world_ask(w, "one", KIND_PLAIN, 0);
		a->method = "POST"; // not idempotent
		a->fail = rows[i];
		client_ask(&w->clients[0], a);
		finish(w);
		assert_int_equal(a->http_status, 503);
		assert_int_equal(seen(w, a)->n, 1);
	}
	world_free(w);
}

// HX-18: a client that leaves between two attempts ends it.
static void a_client_may_leave_during_the_wait(void **state)
{
	struct world *w = world_with(&unavailable);
	struct ask *a = ask_with(w, KIND_ECHO, 1000, NULL, "1 status 14");
	world_run(w, 20 * MS);
	assert_int_equal(seen(w, a)->n, 1);
	client_cancel(a);
	world_run(w, SECOND);
	assert_int_equal(seen(w, a)->n, 1);
	assert_int_equal(world_ended(w, LB_CAUSE_CLIENT_RESET), 1);
	assert_int_equal(world_chunks_used(w), 0);
	world_free(w);
}

// HX-24: the body goes on coming while the request waits, a window of it.
static void an_upload_goes_on_through_its_retries(void **state)
{
	struct world *w = world_with(&unavailable);
	struct ask *early = ask_with(w, KIND_ECHO, 60000, NULL, "2 status 14");
	finish(w);
	assert_ok(w, early);
	world_run(w, 100 * MS);
	assert_int_equal(world_chunks_used(w), 0);
	world_free(w);
}

#define CASE(f) cmocka_unit_test(f)
RUN_SUITE("sim/proxy_retry", CASE(rt_03_the_last_attempts_status_is_the_clients),
	CASE(rt_05_waits_grow_from_base_to_max_with_jitter), CASE(rt_06_response_headers_commit),
	CASE(rt_06_a_full_replay_buffer_commits), CASE(rt_06_scarce_memory_commits),
	CASE(rt_07_only_listed_statuses_are_retried),
	CASE(rt_08_each_attempt_picks_again_in_its_cluster),
	CASE(rt_09_later_attempts_say_how_many_came_before),
	CASE(rt_10_a_backend_says_how_long_to_wait), CASE(rt_10_then_the_backoff_begins_anew),
	CASE(rt_10_a_negative_or_odd_wait_forbids_retries),
	CASE(rt_11_a_refused_request_is_sent_again_once),
	CASE(rt_11_refusals_are_free_once_and_then_count),
	CASE(rt_11_what_was_never_sent_goes_elsewhere), CASE(rt_11_so_does_what_a_fin_comes_before),
	CASE(rt_10_a_told_wait_has_a_bound), CASE(paused_requests_count_as_waiting_ones),
	CASE(cb_07_retries_in_sum_are_bounded),
	CASE(cb_08_places_that_a_worker_keeps_allow_no_retries),
	CASE(rt_12_overflow_and_overload_are_not_retried), CASE(rt_12_failed_picks_are_retried),
	CASE(rt_13_plain_http_is_not_retried), CASE(a_client_may_leave_during_the_wait),
	CASE(an_upload_goes_on_through_its_retries))
