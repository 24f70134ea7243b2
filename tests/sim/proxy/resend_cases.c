// SPDX-License-Identifier: Apache-2.0
// Requests that are sent again though no policy asks for it, one situation a test (RT-11, RT-13;
// RFC 9110 9.2.2).
#include "lb/cluster.h"
#include "lb/member/connectivity.h"
#include "lb/pick/cause.h"
#include "lb/pick/link.h"
#include "lb/pick/picker.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

// Of the wire both ways, and the wheel's tick.
#define SLACK (5 * MS)

static struct world *world_of(uint32_t n_clients, uint32_t n_backends, uint32_t backend_streams)
{
	struct world_conf conf = world_conf_default(5);
	conf.n_clients = n_clients;
	conf.n_backends = n_backends;
	conf.backend_streams = backend_streams;
	struct world *w = world_new(&conf);
	use_backends(w, (1u << n_backends) - 1);
	for (uint32_t i = 0; i < n_clients; i++)
		world_open_client(w, i, 0);
	world_run(w, 20 * MS);
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

static void assert_answered(const struct ask *a)
{
	assert_true(a->closed && a->got_end && !a->broken);
	assert_int_equal(a->http_status, 200);
	assert_int_equal(a->grpc_status, -1);
	assert_int_equal(a->received, a->kind == KIND_HEAD ? 0 : a->size);
}

static void assert_failed(const struct ask *a)
{
	assert_true(a->closed && a->got_end);
	assert_int_equal(a->http_status, 503);
}

static uint64_t sum_of_members(const struct world *w, size_t offset)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < w->control.n_members; i++)
		sum += *(const uint64_t *)((const char *)&w->link->members[i] + offset);
	return sum;
}
#define MEMBERS(w, counter) sum_of_members(w, offsetof(struct lb_member_counters, counter))

// Nor is it sent sooner for having waited until its backend had a stream left.
static void a_refused_request_rests_where_streams_are_scarce(void **state)
{
	struct world_conf conf = world_conf_default(5);
	conf.n_clients = 1;
	conf.n_backends = 1;
	conf.backend_streams = conf.max_conns_per_endpoint = 1;
	struct world *w = ready_world(&conf);
	use_backends(w, 1);
	ask(w, KIND_PLAIN, 100);
	struct ask *a = ask_with(w, KIND_PLAIN, 100, NULL, "4 reset 7");
	for (int i = 0; i < 200; i++) {
		ask(w, KIND_PLAIN, 100);
		world_run(w, 2 * MS);
	}
	finish(w);
	assert_answered(a);
	for (uint32_t n = 2; n <= 4; n++)
		assert_true(wait_ns(w, a, n) >= 40 * MS);
	world_free(w);
}

static void a_refused_plain_request_is_sent_until_it_is_taken(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *a = ask_with(w, KIND_PLAIN, 100, NULL, "5 reset 7");
	struct ask *post = world_ask(w, "one", KIND_PLAIN, 3000);
	post->method = "POST";
	post->has_body = true;
	post->fail = "2 reset 7";
	client_ask(&w->clients[0], post);
	finish(w);
	assert_answered(a);
	assert_answered(post);
	assert_int_equal(seen(w, a)->n, 6);
	assert_int_equal(seen(w, post)->n, 3);
	assert_in_range(wait_ns(w, a, 1), 0, SLACK); // another one may be better off
	assert_in_range(wait_ns(w, a, 2), 40 * MS, 60 * MS + SLACK);
	assert_in_range(wait_ns(w, a, 3), 80 * MS, 120 * MS + SLACK);
	assert_in_range(wait_ns(w, a, 5), 200 * MS, 300 * MS + SLACK);
	assert_int_equal(world_counter(w, "transparent_retries"), 7);
	assert_int_equal(world_ended(w, LB_CAUSE_OK), 2);
	// Each attempt counts, and a refusal says nothing about the backend.
	assert_int_equal(MEMBERS(w, issued), 9);
	assert_int_equal(MEMBERS(w, ok), 2);
	assert_int_equal(MEMBERS(w, unjudged), 7);
	world_free(w);
}

// TH-68
static void a_request_that_all_refuse_ends_at_the_bound(void **state)
{
	static const uint32_t bounds[] = {1, 2, 8};
	for (int i = 0; i < 3; i++) {
		struct world_conf conf = world_conf_default(3);
		conf.n_clients = 1;
		conf.n_backends = 2;
		conf.max_attempts = bounds[i];
		struct world *w = ready_world(&conf);
		struct ask *a = ask_with(w, KIND_PLAIN, 100, NULL, "50 reset 7");
		finish(w);
		assert_failed(a);
		assert_int_equal(seen(w, a)->n, bounds[i]);
		assert_int_equal(world_counter(w, "transparent_retries"), bounds[i] - 1);
		assert_int_equal(world_counter(w, "transparent_retries_exhausted"), 1);
		assert_int_equal(world_ended(w, LB_CAUSE_UPSTREAM_RESET), 1);
		world_free(w);
	}
}

// A31-T08
static void the_deadline_ends_it_earlier(void **state)
{
	struct world *w = ready_world(NULL);
	const struct lb_route_policy limited = {.timeouts = {.has_max = true, .max_ns = 120 * MS}};
	control_set_policy(&w->control, ROUTE_ONE, &limited);
	struct ask *a = ask_with(w, KIND_PLAIN, 100, NULL, "50 reset 7");
	finish(w);
	assert_int_equal(a->http_status, 504);
	assert_in_range(took_ns(a), 120 * MS, 120 * MS + SLACK);
	assert_int_equal(world_counter(w, "deadlines_paused"), 1);
	world_free(w);
}

// With round robin that is the next one anyway.
static void whoever_refused_is_asked_last(void **state)
{
	static const struct lb_policy_spec round_robin = {.kind = LB_POLICY_ROUND_ROBIN};
	static const struct lb_policy_spec specs[] = {
		{.kind = LB_POLICY_WRR_LOCALITY, .child = &round_robin},
		{.kind = LB_POLICY_LEAST_REQUEST, .least_request = {.choice_count = 2}},
	};
	for (int i = 0; i < 2; i++) {
		struct world *w = world_of(1, 4, 100);
		w->control.leaves[0].spec = &specs[i];
		control_update(&w->control, 0);
		world_run(w, 50 * MS);
		uint32_t n_same = 0;
		for (int k = 0; k < 100; k++) {
			struct ask *a = ask_with(w, KIND_PLAIN, 100, NULL, "1 reset 7");
			ask(w, KIND_PLAIN, 100); // moves round robin on
			finish(w);
			assert_answered(a);
			const struct seen *s = seen(w, a);
			n_same += s->attempts[0].backend == s->attempts[1].backend;
		}
		assert_in_range(n_same, 0, 2); // least_request draws
		world_free(w);
	}
}

// A picker that has one backend for whoever asks first in an instant, and nobody for the rest.
static struct {
	const struct world *world;
	struct lb_cell first;
	struct lb_pick rest;
	uint64_t last_ns;
} fickle;

static const struct lb_cell *pick_fickle(const struct lb_picker *p, struct lb_pick_ctx *ctx)
{
	bool again = fickle.last_ns == fickle.world->wire.now_ns;
	fickle.last_ns = fickle.world->wire.now_ns;
	return again ? lb_pick_other(ctx, fickle.rest) : &fickle.first;
}

static struct lb_picker fickle_picker = {LB_PICKER_STATIC, pick_fickle, NULL};

// As those of localities by weight may say, or those of an aggregate whose parts fail.
static void whoever_refused_is_better_than_nobody(void **state)
{
	static const enum lb_pick_kind kinds[] = {LB_PICK_QUEUE, LB_PICK_FAIL};
	for (int i = 0; i < 2; i++) {
		struct world_conf conf = world_conf_default(5);
		conf.n_clients = 1;
		conf.n_workers = 2;
		struct world *w = ready_world(&conf);
		world_run(w, SECOND); // the cluster has said all that it had to say
		// Ids 0 and 1: the second one's anchor is the other worker.
		struct lb_endpoint_table *t = lb_connectivity_endpoints(w->control.connectivity);
		assert_int_equal(world_counter(w, "upstreams"), 1);
		fickle.world = w;
		fickle.first = (struct lb_cell){.endpoint = lb_endpoint_find(t, 0)};
		fickle.rest = (struct lb_pick){
			.kind = kinds[i], .text = "nobody is left", .want = lb_endpoint_find(t, 1)};
		struct lb_cluster *c = lb_cluster_new(0, "zero", LB_READY, &fickle_picker);
		assert_non_null(c);
		control_set_cluster(&w->control, c);
		lb_cluster_put(c);
		struct ask *a = ask_with(w, KIND_PLAIN, 100, NULL, "2 reset 7");
		world_run(w, SECOND);
		assert_answered(a);
		assert_int_equal(seen(w, a)->n, 3);
		assert_int_equal(w->backends[0].n_served, 1);
		assert_int_equal(w->backends[1].n_accepted, 1); // wanted it was
		control_update(&w->control, 0); // its own again
		world_free(w);
	}
}

static void where_there_is_one_endpoint_another_connection_is_used(void **state)
{
	struct world *w = world_of(1, 1, 100);
	struct ask *a = ask_with(w, KIND_PLAIN, 100, NULL, "1 reset 7");
	struct ask *other = ask(w, KIND_PLAIN, 100);
	finish(w);
	assert_answered(a);
	assert_answered(other);
	assert_int_equal(seen(w, a)->attempts[0].conn, 1);
	assert_int_equal(seen(w, a)->attempts[1].conn, 2);
	assert_in_range(wait_ns(w, a, 1), 20 * MS, 30 * MS + SLACK);
	struct ask *often = ask_with(w, KIND_PLAIN, 100, NULL, "7 reset 7");
	finish(w);
	assert_answered(often);
	for (uint32_t i = 1; i < 8; i++)
		assert_int_not_equal(
			seen(w, often)->attempts[i].conn, seen(w, often)->attempts[i - 1].conn);
	assert_int_equal(w->backends[0].n_accepted, 2);
	world_free(w);
}

// The same, when no other connection can be had.
static void the_same_connection_is_better_than_none(void **state)
{
	struct world *w = world_of(1, 1, 100);
	backend_unlisten(&w->backends[0]);
	struct ask *a = ask_with(w, KIND_PLAIN, 100, NULL, "3 reset 7");
	finish(w);
	assert_answered(a);
	assert_int_equal(seen(w, a)->n, 4);
	assert_int_equal(seen(w, a)->attempts[3].conn, 1);
	world_free(w);
}

// A backend that refuses whatever comes gets a bounded number of attempts at growing distances, and
// stops nobody else.
static void refusals_make_no_storm(void **state)
{
	struct world *w = world_of(1, 1, 100);
	for (int i = 0; i < 50; i++)
		ask_with(w, KIND_PLAIN, 0, NULL, "50 reset 7");
	world_run(w, 10 * MS);
	for (int i = 0; i < 50; i++)
		assert_int_equal(seen(w, &w->asks[i])->n, 1);
	struct ask *healthy = ask(w, KIND_PLAIN, 100);
	world_run(w, 10 * MS);
	assert_answered(healthy);
	finish(w);
	for (int i = 0; i < 50; i++) {
		assert_failed(&w->asks[i]);
		assert_int_equal(seen(w, &w->asks[i])->n, 8);
		assert_true(took_ns(&w->asks[i]) > 700 * MS);
	}
	assert_int_equal(w->backends[0].n_accepted, 2);
	world_free(w);
}

// Keeps `n` requests under way until `n_total` have begun.
static void keep_asking(struct world *w, enum kind kind, uint32_t n, uint32_t n_total)
{
	while (w->n_asks < n_total) {
		uint32_t live = 0;
		for (uint32_t i = 0; i < w->n_asks; i++)
			live += !w->asks[i].closed;
		for (; live < n && w->n_asks < n_total; live++)
			client_ask(&w->clients[w->n_asks % w->conf.n_clients],
				world_ask(w, "one", kind, 0));
		world_run(w, MS);
	}
	finish(w);
}

// HX-21: each connection takes but some of those that are on their way. The bound is met only
// because the one that waits longest goes first, before those that wait for a stream, too.
static void who_was_left_behind_goes_before_newcomers(void **state)
{
	static const struct {
		enum kind kind;
		uint32_t n, streams, leaves_after;
	} rows[] = {
		{KIND_PLAIN, 128, 128, 20}, {KIND_ECHO, 128, 128, 20}, {KIND_PLAIN, 180, 100, 25}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *w = world_of(4, 1, rows[i].streams);
		w->backends[0].leaves_after = rows[i].leaves_after;
		keep_asking(w, rows[i].kind, rows[i].n, 1000);
		for (uint32_t k = 0; k < w->n_asks; k++)
			assert_int_equal(w->asks[k].http_status, 200);
		assert_int_equal(world_ended(w, LB_CAUSE_OK), 1000);
		assert_true(world_counter(w, "upstream_goaways") >= 39);
		assert_true(world_counter(w, "transparent_retries") > 1000);
		assert_int_equal(world_counter(w, "transparent_retries_exhausted"), 0);
		assert_int_equal(MEMBERS(w, failed), 0);
		world_free(w);
	}
}

// A6's one retry is for what was refused on the wire; each GOAWAY says that nothing was begun, and
// the sibling connections of a backend that leaves are leaving, too.
static void what_a_goaway_leaves_does_not_use_up_grpcs_retry(void **state)
{
	struct world *w = world_of(2, 1, 8);
	w->backends[0].leaves_after = 5;
	keep_asking(w, KIND_REFUSE_ONCE, 16, 200);
	for (uint32_t i = 0; i < w->n_asks; i++)
		assert_ok(w, &w->asks[i]);
	assert_true(world_counter(w, "transparent_retries") > 250);
	assert_int_equal(world_counter(w, "transparent_retries_exhausted"), 0);
	world_free(w);
}

// RFC 9110 9.2.2
static void safe_requests_survive_their_connection_once(void **state)
{
	static const char *const methods[] = {"GET", "HEAD", "OPTIONS", NULL};
	struct world *w = ready_world(NULL);
	uint32_t n = 0;
	for (; methods[n]; n++) {
		bool is_head = str_eq(str_from(methods[n]), STR("HEAD"));
		struct ask *a = world_ask(w, "one", is_head ? KIND_HEAD : KIND_PLAIN, 0);
		a->method = methods[n];
		a->fail = "1 lose 0";
		client_ask(&w->clients[0], a);
		finish(w);
		assert_answered(a);
		assert_int_equal(seen(w, a)->n, 2);
		assert_int_not_equal(
			seen(w, a)->attempts[0].backend, seen(w, a)->attempts[1].backend);
		world_run(w, 5 * SECOND);
	}
	assert_int_equal(world_counter(w, "idempotent_retries"), n);
	assert_int_equal(world_counter(w, "transparent_retries"), 0);
	assert_int_equal(MEMBERS(w, failed), n); // of those whose connections broke
	struct ask *twice = ask_with(w, KIND_PLAIN, 100, NULL, "2 lose 0");
	finish(w);
	assert_failed(twice);
	assert_int_equal(seen(w, twice)->n, 2);
	assert_int_equal(world_ended(w, LB_CAUSE_UPSTREAM_LOST), 1);
	world_free(w);
}

// As many as were on the way, in the order in which they came.
static void they_keep_their_order(void **state)
{
	struct world *w = world_of(1, 1, 100);
	world_run(w, 5 * SECOND); // it is made again at once
	w->backends[0].mute = true;
	for (int i = 0; i < 30; i++)
		ask(w, KIND_PLAIN, 10);
	world_run(w, 10 * MS);
	w->backends[0].mute = false;
	backend_abort_conns(&w->backends[0]);
	ask(w, KIND_PLAIN, 10);
	finish(w);
	for (uint32_t i = 0; i <= 30; i++) {
		assert_answered(&w->asks[i]);
		assert_int_equal(w->served[i], i);
	}
	assert_int_equal(world_counter(w, "idempotent_retries"), 31);
	world_free(w);
}

static void others_do_not(void **state)
{
	static const struct {
		const char *method, *fail;
	} rows[] = {
		{"POST", "1 lose 0"}, {"PUT", "1 lose 0"}, {"DELETE", "1 lose 0"},
		{"TRACE", "1 lose 0"}, {"get", "1 lose 0"},
		{"GET", "1 reset 2"}, // spoken of this one
		{"GET", "1 reset 8"}, {"GET", "1 hint 0"}, // an answer has begun
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *w = ready_world(NULL);
		struct ask *a = world_ask(w, "one", KIND_PLAIN, 100);
		a->method = rows[i].method;
		a->fail = rows[i].fail;
		client_ask(&w->clients[0], a);
		finish(w);
		assert_failed(a);
		assert_int_equal(seen(w, a)->n, 1);
		assert_int_equal(world_counter(w, "idempotent_retries"), 0);
		world_free(w);
	}
}

static void grpc_does_not_whatever_its_method(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *a = world_ask(w, "one", KIND_ECHO, 100);
	a->method = "GET";
	a->fail = "1 lose 0";
	client_ask(&w->clients[0], a);
	finish(w);
	assert_reply(a, 14);
	assert_int_equal(seen(w, a)->n, 1);
	world_free(w);
}

static void nothing_is_sent_again_after_response_headers(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *a = ask(w, KIND_STALL_PLAIN, 10);
	world_run(w, 100 * MS);
	assert_int_equal(a->http_status, 200);
	backend_abort_conns(&w->backends[0]);
	backend_abort_conns(&w->backends[1]);
	finish(w);
	assert_true(a->closed && !a->got_end);
	assert_int_equal(seen(w, a)->n, 1);
	world_free(w);
}

// What is kept of a body has a bound, beyond which the attempt stands.
static void a_body_is_sent_again_if_it_was_kept(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *fits = world_ask(w, "one", KIND_PLAIN, 8 << 10);
	struct ask *over = world_ask(w, "one", KIND_PLAIN, (8 << 10) + 1);
	fits->has_body = over->has_body = true;
	fits->fail = "1 lose 0";
	client_ask(&w->clients[0], fits);
	finish(w);
	assert_answered(fits);
	assert_int_equal(seen(w, fits)->n, 2);
	world_run(w, 5 * SECOND);
	w->backends[0].mute = w->backends[1].mute = true;
	client_ask(&w->clients[0], over);
	world_run(w, SECOND);
	w->backends[0].mute = w->backends[1].mute = false;
	backend_abort_conns(&w->backends[0]);
	backend_abort_conns(&w->backends[1]);
	finish(w);
	assert_failed(over);
	assert_int_equal(seen(w, over)->n, 1);
	world_free(w);
}

static void it_can_be_switched_off(void **state)
{
	struct world_conf conf = world_conf_default(3);
	conf.n_clients = 1;
	conf.n_backends = 2;
	conf.no_idempotent_retry = true;
	struct world *w = ready_world(&conf);
	struct ask *lost = ask_with(w, KIND_PLAIN, 100, NULL, "1 lose 0");
	finish(w);
	assert_failed(lost);
	assert_int_equal(seen(w, lost)->n, 1);
	struct ask *refused = ask_with(w, KIND_PLAIN, 100, NULL, "3 reset 7");
	finish(w);
	assert_answered(refused);
	world_free(w);
}

// With many on their way, all but what the other one had begun to answer.
static void a_backends_death_loses_no_safe_request(void **state)
{
	struct world *w = world_of(2, 2, 100);
	for (int i = 0; i < 20; i++) {
		for (int k = 0; k < 30; k++)
			client_ask(&w->clients[k % 2], world_ask(w, "one", KIND_PLAIN, 100));
		world_run(w, (uint64_t)i * MS / 10);
		backend_close(&w->backends[i % 2]);
		world_run(w, 100 * MS);
		struct backend *b = &w->backends[i % 2];
		backend_fini(b);
		backend_open(b, &w->wire.hosts[HOST_BACKENDS], b->address, &w->backend_conf);
		world_run(w, 5 * SECOND);
	}
	finish(w);
	for (uint32_t i = 0; i < w->n_asks; i++) {
		const struct ask *a = &w->asks[i];
		if (a->n_informational == 0 || a->got_end)
			assert_answered(a);
	}
	assert_true(world_counter(w, "idempotent_retries") > 20);
	world_free(w);
}

#define CASE(f) cmocka_unit_test(f)
RUN_SUITE("sim/proxy_resend", CASE(a_refused_request_rests_where_streams_are_scarce),
	CASE(a_refused_plain_request_is_sent_until_it_is_taken),
	CASE(a_request_that_all_refuse_ends_at_the_bound), CASE(the_deadline_ends_it_earlier),
	CASE(whoever_refused_is_asked_last), CASE(whoever_refused_is_better_than_nobody),
	CASE(where_there_is_one_endpoint_another_connection_is_used),
	CASE(the_same_connection_is_better_than_none), CASE(refusals_make_no_storm),
	CASE(who_was_left_behind_goes_before_newcomers),
	CASE(what_a_goaway_leaves_does_not_use_up_grpcs_retry),
	CASE(safe_requests_survive_their_connection_once), CASE(they_keep_their_order),
	CASE(others_do_not), CASE(grpc_does_not_whatever_its_method),
	CASE(nothing_is_sent_again_after_response_headers),
	CASE(a_body_is_sent_again_if_it_was_kept), CASE(it_can_be_switched_off),
	CASE(a_backends_death_loses_no_safe_request))
