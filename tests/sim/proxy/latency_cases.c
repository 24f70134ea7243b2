// SPDX-License-Identifier: Apache-2.0
// How long requests took, what they were answered with, and how large their bodies were, one
// situation a test (OPS-01..OPS-05, OPS-226).
#include "lb/pick/cause.h"
#include "lb/pick/link.h"
#include "lb/route/filter.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

// Of the wire both ways, the wheel's tick, and turns.
#define SLACK (8 * MS)

static uint64_t count_of(const struct histogram *h)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < HISTOGRAM_N; i++)
		n += h->counts[i];
	return n;
}

static const struct lb_frontend_times *frontend(const struct world *w)
{
	return &w->link->frontends[0];
}

// Of the only cluster that had requests.
static const struct lb_cluster_times *cluster(const struct world *w)
{
	const struct lb_cluster_times *found = NULL;
	for (uint32_t i = 0; i < LB_MAX_CLUSTERS; i++) {
		if (!counter_read(&w->link->clusters[i].started))
			continue;
		assert_null(found);
		found = &w->link->times[i];
	}
	assert_non_null(found);
	return found;
}

static void assert_times(const struct world *w, uint64_t request_ns, uint64_t attempt_ns)
{
	const struct lb_cluster_times *c = cluster(w);
	uint64_t added_ns = request_ns - attempt_ns;
	assert_int_equal(count_of(&c->request), 1);
	assert_int_equal(count_of(&c->added), 1);
	assert_in_range(c->request.sum_ns, request_ns, request_ns + SLACK);
	assert_in_range(c->attempt.sum_ns + SLACK, attempt_ns, attempt_ns + 2 * SLACK);
	assert_in_range(c->added.sum_ns, added_ns, added_ns + SLACK);
	assert_int_equal(frontend(w)->request.sum_ns, c->request.sum_ns);
	assert_int_equal(frontend(w)->added.sum_ns, c->added.sum_ns);
}

// OPS-01, OPS-02
static void ops_02_time_at_the_backend_is_not_added(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *a = ask_with(w, KIND_HANG, 0, "2S", NULL);
	finish(w);
	assert_reply(a, 4);
	world_run(w, SECOND);
	assert_int_equal(count_of(&cluster(w)->attempt), 1);
	assert_times(w, 2 * SECOND, 2 * SECOND);
	world_free(w);
}

// OPS-03
static void ops_03_a_delay_before_the_backend_is_added(void **state)
{
	struct lb_filter f = {.name = STR("delay"),
		.kind = LB_FILTER_FAULT,
		.fault = {.delay_numerator = 100,
			.delay_denominator = 100,
			.abort_denominator = 100,
			.max_active = UINT32_MAX,
			.delay = LB_DELAY_FIXED,
			.delay_ns = 3 * SECOND}};
	struct world *w = ready_world(NULL);
	control_set_filters(&w->control, 0, &f, 1, LB_NO_TIMEOUT, 0);
	struct ask *a = ask(w, KIND_ECHO, 10);
	finish(w);
	assert_ok(w, a);
	world_run(w, SECOND);
	assert_times(w, 3 * SECOND, 0);
	world_free(w);
}

// OPS-02, OPS-03
static void ops_03_waits_between_attempts_are_added(void **state)
{
	const struct lb_route_policy policy = {.retry = {.statuses = 1u << 14,
						       .max_attempts = 3,
						       .base_ns = 100 * MS,
						       .max_ns = 100 * MS}};
	struct world *w = ready_world(NULL);
	control_set_policy(&w->control, ROUTE_ONE, &policy);
	struct ask *a = ask_with(w, KIND_ECHO, 10, NULL, "2 status 14");
	finish(w);
	assert_ok(w, a);
	world_run(w, SECOND);
	const struct lb_cluster_times *c = cluster(w);
	assert_int_equal(count_of(&c->attempt), 3);
	assert_int_equal(count_of(&c->request), 1);
	assert_in_range(c->added.sum_ns, 160 * MS, 240 * MS + SLACK);
	assert_in_range(c->attempt.sum_ns, 0, 3 * SLACK);
	assert_int_equal(c->answers[LB_ANSWER_GRPC + 0], 1);
	assert_int_equal(c->answers[LB_ANSWER_GRPC + 14], 0); // no client saw it
	world_free(w);
}

// OPS-03: the whole answer lies here for 5 s.
static void ops_03_a_client_that_takes_its_time_adds_nothing(void **state)
{
	struct world *w = ready_world(NULL);
	w->clients[0].slow = true;
	struct ask *a = ask(w, KIND_DOWNLOAD, 65535 + 20000);
	world_run(w, 5 * SECOND);
	w->clients[0].slow = false;
	client_resume(&w->clients[0], a);
	finish(w);
	assert_ok(w, a);
	world_run(w, SECOND);
	assert_in_range(cluster(w)->request.sum_ns, 5 * SECOND, 5 * SECOND + SLACK);
	assert_in_range(cluster(w)->added.sum_ns, 0, SLACK);
	world_free(w);
}

// OPS-05
static void ops_05_answers_count_by_status_or_class(void **state)
{
	struct world *w = ready_world(NULL);
	ask(w, KIND_ECHO, 10);
	ask(w, KIND_TRAILERS_ONLY, 10); // status 5
	ask(w, KIND_PLAIN, 10);
	ask_with(w, KIND_HANG, 0, "1S", NULL);
	ask(w, KIND_RESET_LATE, 2); // trailers of the proxy's own
	struct ask *cancelled = ask(w, KIND_HANG, 10);
	world_run(w, 100 * MS);
	client_cancel(cancelled);
	finish(w);
	world_run(w, SECOND);
	const uint64_t *answers = frontend(w)->answers;
	uint64_t n = 0;
	for (int i = 0; i < LB_N_ANSWERS; i++)
		n += answers[i];
	assert_int_equal(n, 6);
	assert_int_equal(answers[LB_ANSWER_GRPC + 0], 1);
	assert_int_equal(answers[LB_ANSWER_GRPC + 5], 1);
	assert_int_equal(answers[LB_ANSWER_GRPC + 4], 1);
	assert_int_equal(answers[LB_ANSWER_HTTP + 1], 1); // 2xx
	assert_true(answers[LB_ANSWER_NONE] >= 1);
	assert_int_equal(count_of(&frontend(w)->request), 6);
	assert_int_equal(frontend(w)->ended[LB_CAUSE_TIMEOUT], 1);
	assert_int_equal(frontend(w)->ended[LB_CAUSE_CLIENT_RESET], 1);
	world_free(w);
}

// OPS-277: our own answers and what is cut have a cause, and are no backend's.
static void ops_277_bad_is_what_a_backend_answered_to_the_end_and_nothing_else(void **state)
{
	struct world *w = ready_world(NULL);
	ask(w, KIND_ECHO, 10);
	ask_with(w, KIND_PLAIN, 10, NULL, "1 http 404");
	ask_with(w, KIND_PLAIN, 10, NULL, "1 http 503");
	ask_with(w, KIND_ECHO, 10, NULL, "1 status 14");
	ask_with(w, KIND_HANG, 0, "1S", NULL); // status 4
	client_ask(&w->clients[0], world_ask(w, "nowhere", KIND_ECHO, 10)); // status 14
	ask_with(w, KIND_PLAIN, 10, NULL, "1 cut 503");
	struct ask *left = ask_with(w, KIND_PLAIN, 10, NULL, "1 stall 503");
	world_run(w, 100 * MS);
	client_cancel(left);
	finish(w);
	world_run(w, SECOND);
	const struct lb_frontend_times *f = frontend(w);
	assert_int_equal(f->ended[LB_CAUSE_OK], 4);
	assert_int_equal(f->ended[LB_CAUSE_UPSTREAM_RESET], 1);
	assert_int_equal(f->ended[LB_CAUSE_CLIENT_RESET], 1);
	assert_int_equal(f->answers[LB_ANSWER_HTTP + 4], 3);
	uint64_t own = f->answers[LB_ANSWER_GRPC + 4] + f->answers[LB_ANSWER_GRPC + 14] - 1;
	assert_int_equal(own, 2);
	assert_int_equal(f->bad, 2);
	assert_int_equal(cluster(w)->bad, 2);
	world_free(w);
}

// OPS-270
static void ops_270_a_virtual_host_counts_its_requests_and_no_others(void **state)
{
	struct world *w = ready_world(NULL);
	const struct lb_vhost_counters *v = &w->link->vhosts[CONTROL_VHOST];
	control_count_vhosts(&w->control);
	ask(w, KIND_ECHO, 10);
	ask(w, KIND_TRAILERS_ONLY, 10);
	ask(w, KIND_PLAIN, 10);
	client_ask(&w->clients[0], world_ask(w, "nowhere", KIND_PLAIN, 10)); // no route of it
	finish(w);
	struct ask *hanging = ask(w, KIND_HANG, 10);
	world_run(w, SECOND);
	assert_int_equal(v->started, 5);
	assert_int_equal(count_of(&v->request), 4);
	client_cancel(hanging);
	finish(w);
	world_run(w, SECOND);
	const struct lb_frontend_times *f = frontend(w);
	assert_memory_equal(v->ended, f->ended, sizeof(v->ended));
	assert_memory_equal(v->answers, f->answers, sizeof(v->answers));
	assert_memory_equal(&v->request, &f->request, sizeof(v->request));
	assert_int_equal(v->ended[LB_CAUSE_NO_ROUTE], 1);
	assert_int_equal(v->ended[LB_CAUSE_CLIENT_RESET], 1);
	for (uint16_t i = 0; i <= LB_MAX_COUNTED_VHOSTS; i++)
		if (i != CONTROL_VHOST)
			assert_int_equal(
				w->link->vhosts[i].started + w->link->vhosts[i].ended[0], 0);
	world_free(w);
}

// OPS-01: they end in one turn.
static void ops_01_each_request_of_a_client_that_leaves_is_counted_once(void **state)
{
	struct world *w = ready_world(NULL);
	for (int i = 0; i < 60; i++)
		ask(w, KIND_HANG, 0);
	world_run(w, 100 * MS);
	client_abort(&w->clients[0]);
	world_run(w, SECOND);
	assert_int_equal(frontend(w)->ended[LB_CAUSE_CLIENT_LOST], 60);
	assert_int_equal(count_of(&frontend(w)->request), 60);
	assert_int_equal(count_of(&cluster(w)->request), 60);
	assert_int_equal(count_of(&cluster(w)->attempt), 60);
	assert_int_equal(frontend(w)->answers[LB_ANSWER_NONE], 60);
	world_free(w);
}

static void assert_bodies(const struct world *w, uint64_t in, uint64_t out)
{
	assert_int_equal(frontend(w)->bodies.in, in);
	assert_int_equal(frontend(w)->bodies.out, out);
	assert_int_equal(cluster(w)->bodies.in, in);
	assert_int_equal(cluster(w)->bodies.out, out);
}

// OPS-226
static void ops_226_bodies_count_once_when_their_request_is_over(void **state)
{
	const struct lb_route_policy policy = {.retry = {.statuses = 1u << 14,
						       .max_attempts = 3,
						       .base_ns = 100 * MS,
						       .max_ns = 100 * MS}};
	struct world *w = ready_world(NULL);
	control_set_policy(&w->control, ROUTE_ONE, &policy);
	struct ask *echoed = ask_with(w, KIND_ECHO, 1000, NULL, "2 status 14"); // sent three times
	finish(w);
	assert_ok(w, echoed);
	world_run(w, SECOND);
	assert_bodies(w, echoed->sent, echoed->received);
	assert_true(echoed->sent >= 1000 && echoed->received >= 1000);
	struct ask *plain = ask(w, KIND_PLAIN, 70000);
	finish(w);
	struct ask *hanging = ask(w, KIND_HANG, 10);
	world_run(w, SECOND);
	uint64_t out = echoed->received + plain->received;
	assert_bodies(w, echoed->sent, out);
	client_cancel(hanging);
	finish(w);
	world_run(w, SECOND);
	assert_bodies(w, echoed->sent + hanging->sent, out);
	assert_true(plain->received == 70000 && hanging->sent == 10);
	world_free(w);
}

// OPS-226
static void ops_226_the_text_of_a_local_reply_is_a_body(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *a = world_ask(w, "nowhere", KIND_PLAIN, 10);
	client_ask(&w->clients[0], a);
	finish(w);
	world_run(w, SECOND);
	assert_int_equal(a->http_status, 404);
	assert_true(a->received);
	assert_int_equal(frontend(w)->bodies.out, a->received);
	world_free(w);
}

// OPS-230
static void ops_230_round_trips_are_sampled_by_side_once_a_second(void **state)
{
	struct world *w = ready_world(NULL);
	const struct histogram *clients = &w->link->client_round_trips;
	const struct histogram *backends = &w->link->backend_round_trips;
	struct ask *a = ask(w, KIND_ECHO, 1000);
	finish(w);
	assert_ok(w, a);
	uint64_t n = count_of(clients), m = count_of(backends);
	world_run(w, 10 * SECOND);
	n = count_of(clients) - n;
	m = count_of(backends) - m;
	uint64_t n_clients = counter_read(&w->link->counters.client_connections);
	assert_in_range(n, 9, 10 * n_clients);
	assert_true(m >= 9);
	uint64_t least_ns = 2 * w->wire.delay_ns;
	assert_true(clients->sum_ns / count_of(clients) >= least_ns);
	assert_true(backends->sum_ns / count_of(backends) >= least_ns);
	world_free(w);
}

#define CASE(f) cmocka_unit_test(f)
RUN_SUITE("sim/proxy_latency", CASE(ops_02_time_at_the_backend_is_not_added),
	CASE(ops_03_a_delay_before_the_backend_is_added),
	CASE(ops_03_waits_between_attempts_are_added),
	CASE(ops_03_a_client_that_takes_its_time_adds_nothing),
	CASE(ops_05_answers_count_by_status_or_class),
	CASE(ops_277_bad_is_what_a_backend_answered_to_the_end_and_nothing_else),
	CASE(ops_01_each_request_of_a_client_that_leaves_is_counted_once),
	CASE(ops_270_a_virtual_host_counts_its_requests_and_no_others),
	CASE(ops_226_bodies_count_once_when_their_request_is_over),
	CASE(ops_226_the_text_of_a_local_reply_is_a_body),
	CASE(ops_230_round_trips_are_sampled_by_side_once_a_second))
