// SPDX-License-Identifier: Apache-2.0
// What is kept of requests that fail, without any log, one situation a test (OPS-50..OPS-52).
#include "lb/pick/failures.h"
#include "lb/pick/link.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

static const struct lb_route_policy retries = {
	.retry = {
		.statuses = 1u << 14, .max_attempts = 4, .base_ns = 100 * MS, .max_ns = 100 * MS}};

static const struct field my_id = {.name = STR("x-request-id"), .value = STR("my-id")};

static struct lb_failure last_of(const struct lb_failures *in)
{
	struct lb_failure f = {0};
	uint64_t n = lb_failures_count(in);
	assert_true(n > 0 && lb_failures_read(in, n - 1, &f));
	return f;
}

static struct lb_failure last(const struct world *w)
{
	return last_of(w->link->failures);
}

static void assert_path(const struct lb_failure *f, const struct ask *of)
{
	char end[32];
	int len = snprintf(end, sizeof(end), "/%u/%u", of->id, of->size);
	assert_true(strlen(f->path) > (size_t)len);
	assert_string_equal(f->path + strlen(f->path) - (size_t)len, end);
}

static struct ask *ask_as(struct world *w, enum kind kind, uint32_t size, const char *fail)
{
	struct ask *a = world_ask(w, "one", kind, size);
	a->extra[0] = my_id;
	a->fail = fail;
	client_ask(&w->clients[0], a);
	return a;
}

static void ops_50_a_reply_has_the_id_under_which_it_is_kept(void **state)
{
	struct world *w = ready_world(NULL);
	char before[40] = "";
	const enum kind kinds[] = {KIND_ECHO, KIND_PLAIN, KIND_ECHO};
	for (int i = 0; i < 3; i++) {
		struct ask *a = world_ask(w, "nowhere", kinds[i], 0);
		if (i == 2)
			a->extra[0] = my_id;
		client_ask(&w->clients[0], a);
		finish(w);
		const struct lb_failure f = last(w);
		assert_string_equal(f.id, a->request_id);
		if (i == 2)
			assert_string_equal(f.id, "my-id");
		else
			assert_true(strlen(f.id) == 36 && f.id[14] == '4');
		assert_string_not_equal(f.id, before);
		snprintf(before, sizeof(before), "%s", f.id);
		assert_path(&f, a);
		assert_string_equal(f.authority, "calls.test");
		assert_string_equal(f.vhost, "any");
		assert_string_equal(f.route, "");
		assert_int_equal(f.route_index, UINT32_MAX);
		assert_int_equal(f.n_attempts, 0);
	}
	world_free(w);
}

static void ops_276_answers_that_do_not_fail_get_no_id(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *a = ask(w, KIND_ECHO, 10), *b = ask(w, KIND_TRAILERS_ONLY, 0); // NOT_FOUND
	struct ask *c = ask_with(w, KIND_PLAIN, 10, NULL, "1 http 404");
	finish(w);
	assert_ok(w, a);
	assert_int_equal(b->grpc_status, 5);
	assert_int_equal(c->http_status, 404);
	assert_string_equal(a->request_id, "");
	assert_string_equal(b->request_id, "");
	assert_string_equal(c->request_id, "");
	assert_int_equal(lb_failures_count(w->link->failures), 0);
	assert_int_equal(lb_failures_count(w->link->failed_answers), 0);
	world_free(w);
}

static const struct failing {
	enum kind kind;
	const char *fail;
	uint16_t http_status;
	uint8_t grpc_status;
	bool in_body; // the status came before a body
} failing[] = {
	{KIND_ECHO, "1 status 14", 200, 14},
	{KIND_ECHO, "1 trailer 13", 0, 13},
	{KIND_ECHO, "1 http 503", 503, 14},
	{KIND_ECHO, "1 http 404", 404, 12},
	{KIND_ECHO, "1 page 502", 502, 14},
	{KIND_ECHO, "1 page 200", 0, 2, true}, // what its client makes of it
	{KIND_PLAIN, "1 http 500", 500, LB_FAILURE_NO_GRPC},
};

static void ops_276_a_backends_failure_has_the_id_under_which_it_is_kept(void **state)
{
	for (unsigned i = 0; i < 2 * sizeof(failing) / sizeof(failing[0]); i++) {
		const struct failing *f = &failing[i / 2];
		struct world *w = ready_world(NULL);
		struct ask *a = world_ask(w, "one", f->kind, 10);
		if (i % 2)
			a->extra[0] = my_id;
		a->fail = f->fail;
		client_ask(&w->clients[0], a);
		finish(w);
		const struct lb_failure kept = last_of(w->link->failed_answers);
		assert_int_equal(lb_failures_count(w->link->failures), 0);
		assert_int_equal(lb_failures_count(w->link->failed_answers), 1);
		if (!f->in_body)
			assert_string_equal(kept.id, a->request_id);
		if (i % 2)
			assert_string_equal(kept.id, "my-id");
		else
			assert_true(strlen(kept.id) == 36 && kept.id[14] == '4');
		assert_path(&kept, a);
		assert_int_equal(kept.cause, LB_CAUSE_OK);
		assert_int_equal(kept.http_status, f->http_status);
		assert_int_equal(kept.grpc_status, f->grpc_status);
		assert_string_equal(kept.cluster, "zero");
		assert_string_equal(kept.route, "first");
		assert_true(kept.has_backend);
		assert_int_equal(kept.n_attempts, 1);
		assert_int_equal(kept.attempts[0].cause, LB_CAUSE_OK);
		world_free(w);
	}
}

// What becomes of the rest of an answer has the id that its head has, whoever gave it.
static void ops_276_an_answer_of_failure_that_breaks_off_has_one_id(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct world *w = ready_world(NULL);
		for (unsigned b = 0; i && b < w->conf.n_backends; b++)
			w->backends[b].request_id = "backends";
		struct ask *a = world_ask(w, "one", KIND_PLAIN, 10);
		a->fail = "1 cut 503";
		client_ask(&w->clients[0], a);
		finish(w);
		const struct lb_failure answer = last_of(w->link->failed_answers), cut = last(w);
		assert_int_equal(answer.http_status, 503);
		assert_int_equal(cut.cause, LB_CAUSE_UPSTREAM_RESET);
		if (i)
			assert_string_equal(a->request_id, "backends");
		assert_string_equal(answer.id, a->request_id);
		assert_string_equal(cut.id, a->request_id);
		assert_int_equal(cut.n_attempts, 1);
		world_free(w);
	}
}

// With what came to nothing before, of which the oldest goes where there is room for five.
static void ops_276_a_failure_after_others_is_the_last_attempt(void **state)
{
	struct lb_route_policy many = retries;
	many.retry.max_attempts = 7;
	many.retry.max_ns = 10 * SECOND;
	struct world *w = ready_world(NULL);
	control_set_policy(&w->control, ROUTE_ONE, &many);
	struct ask *a = ask_as(w, KIND_ECHO, 10, "20 status 14");
	finish(w);
	assert_int_equal(a->grpc_status, 14);
	const struct lb_failure f = last_of(w->link->failed_answers);
	assert_int_equal(lb_failures_count(w->link->failed_answers), 1);
	assert_string_equal(f.id, "my-id");
	assert_int_equal(f.n_attempts, 7);
	assert_int_equal(f.n_kept, LB_FAILURE_ATTEMPTS);
	for (int i = 1; i < LB_FAILURE_ATTEMPTS; i++)
		assert_true(f.attempts[i].after_us > f.attempts[i - 1].after_us);
	world_free(w);
}

// The client's own is what it asks for; without one it is told the backend's as it is.
static void ops_276_an_id_of_the_backend_stays(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct world *w = ready_world(NULL);
		for (unsigned b = 0; b < w->conf.n_backends; b++)
			w->backends[b].request_id = "backends";
		struct ask *a = world_ask(w, "one", KIND_ECHO, 10);
		if (!i)
			a->extra[0] = my_id;
		a->fail = "1 status 14";
		client_ask(&w->clients[0], a);
		finish(w);
		assert_string_equal(a->request_id, "backends");
		assert_string_equal(last_of(w->link->failed_answers).id, i ? "backends" : "my-id");
		world_free(w);
	}
}

static void ops_276_a_failure_that_was_retried_is_none(void **state)
{
	struct world *w = ready_world(NULL);
	control_set_policy(&w->control, ROUTE_ONE, &retries);
	struct ask *a = ask_as(w, KIND_ECHO, 10, "1 status 14"); // tried again, and goes well
	finish(w);
	assert_ok(w, a);
	assert_int_equal(lb_failures_count(w->link->failed_answers), 0);
	world_free(w);
}

// Heads in the request itself and in chunks, bodies that are kept and that are too long for that;
// before the answer and in the middle of it.
static void ops_51_the_clients_id_is_known_however_far_it_came(void **state)
{
	static char cookie[4000];
	memset(cookie, 'c', sizeof(cookie));
	for (int i = 0; i < 8; i++) {
		struct world *w = ready_world(NULL);
		struct ask *a = world_ask(w, "one", i & 4 ? KIND_STALL : KIND_HANG, 3000);
		if (i & 1)
			a->size = 60000;
		a->timeout = "500m";
		a->extra[i & 2 ? 1 : 0] = my_id;
		if (i & 2)
			a->extra[0] = (struct field){
				.name = STR("x-pad"), .value = {cookie, sizeof(cookie)}};
		client_ask(&w->clients[0], a);
		finish(w);
		const struct lb_failure f = last(w);
		assert_int_equal(f.cause, LB_CAUSE_TIMEOUT);
		assert_string_equal(f.id, "my-id");
		assert_string_equal(f.method, "POST");
		assert_string_equal(f.authority, "calls.test");
		assert_path(&f, a);
		assert_string_equal(f.cluster, "zero");
		assert_string_equal(f.route, "first");
		assert_int_equal(f.route_index, 7);
		assert_int_equal(f.n_attempts, 1);
		assert_true(f.attempts[0].has_backend);
		assert_int_equal(f.attempts[0].cause, LB_CAUSE_TIMEOUT);
		assert_in_range(f.attempts[0].took_us, 480000, 520000);
		assert_in_range(f.at_ns - f.began_ns, 480 * MS, 520 * MS);
		world_free(w);
	}
}

static void ops_52_each_attempt_is_told_with_its_end(void **state)
{
	struct world *w = ready_world(NULL);
	control_set_policy(&w->control, ROUTE_ONE, &retries);
	struct ask *a = ask_as(w, KIND_ECHO, 10, "9 lose 0");
	finish(w);
	assert_string_equal(a->request_id, "my-id");
	const struct lb_failure f = last(w);
	assert_int_equal(f.n_attempts, 3); // the last pick failed
	for (int i = 0; i < f.n_kept; i++) {
		const struct lb_failure_attempt *t = &f.attempts[i];
		assert_int_equal(t->has_backend, i < (int)w->seen[a->id].n);
		assert_int_equal(
			t->cause, t->has_backend ? LB_CAUSE_UPSTREAM_LOST : LB_CAUSE_NO_HEALTHY);
		assert_int_equal(t->grpc_status, 14);
	}
	world_free(w);
}

static void ops_52_answers_that_were_retried_are_told(void **state)
{
	struct world *w = ready_world(NULL);
	control_set_policy(&w->control, ROUTE_ONE, &retries);
	struct ask *a = world_ask(w, "one", KIND_ECHO, 10);
	a->extra[0] = my_id;
	a->fail = "9 status 14";
	a->timeout = "150m";
	client_ask(&w->clients[0], a);
	finish(w);
	const struct lb_failure f = last(w);
	assert_int_equal(f.cause, LB_CAUSE_TIMEOUT);
	assert_in_range(f.n_attempts, 1, 2);
	assert_int_equal(f.attempts[0].cause, LB_CAUSE_OK);
	assert_int_equal(f.attempts[0].grpc_status, 14);
	world_free(w);
}

// Of many the last ones are kept, in their order.
static void ops_52_of_many_attempts_the_last_ones_stay(void **state)
{
	struct lb_route_policy many = retries;
	many.retry.max_attempts = 9;
	many.retry.max_ns = 10 * SECOND;
	struct world *w = ready_world(NULL);
	control_set_policy(&w->control, ROUTE_ONE, &many);
	struct ask *a = ask_as(w, KIND_ECHO, 10, "20 lose 0");
	finish(w);
	assert_reply(a, 14);
	const struct lb_failure f = last(w);
	assert_int_equal(f.n_attempts, 9);
	assert_int_equal(f.n_kept, LB_FAILURE_ATTEMPTS);
	for (int i = 1; i < LB_FAILURE_ATTEMPTS; i++)
		assert_true(f.attempts[i].after_us > f.attempts[i - 1].after_us);
	assert_true(f.attempts[0].after_us > 4 * 80000);
	world_free(w);
}

// The virtual host was replaced meanwhile: its names are another's.
static void ops_51_a_route_that_serves_no_more_has_no_name(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *a = world_ask(w, "one", KIND_HANG, 10);
	a->timeout = "500m";
	client_ask(&w->clients[0], a);
	world_run(w, 100 * MS);
	control_set_policy(&w->control, ROUTE_ONE, &retries);
	finish(w);
	const struct lb_failure f = last(w);
	assert_path(&f, a);
	assert_string_equal(f.vhost, "");
	assert_string_equal(f.route, "");
	assert_string_equal(f.cluster, "zero");
	world_free(w);
}

static void ops_50_requests_that_are_refused_at_once_have_an_id(void **state)
{
	struct world_conf conf = world_conf_default(7);
	conf.n_clients = 1;
	conf.n_backends = 2;
	conf.max_requests = 4;
	struct world *w = ready_world(&conf);
	for (int i = 0; i < 4; i++)
		ask_with(w, KIND_HANG, 0, "500m", NULL);
	struct ask *over = ask_as(w, KIND_ECHO, 0, NULL);
	finish_of(w, over);
	assert_string_equal(over->request_id, "my-id");
	const struct lb_failure f = last(w);
	assert_int_equal(f.cause, LB_CAUSE_OVERLOAD);
	assert_string_equal(f.id, "my-id");
	assert_path(&f, over);
	finish(w);
	world_free(w);
}

RUN_SUITE("proxy/trail", cmocka_unit_test(ops_50_a_reply_has_the_id_under_which_it_is_kept),
	cmocka_unit_test(ops_276_answers_that_do_not_fail_get_no_id),
	cmocka_unit_test(ops_276_a_backends_failure_has_the_id_under_which_it_is_kept),
	cmocka_unit_test(ops_276_an_answer_of_failure_that_breaks_off_has_one_id),
	cmocka_unit_test(ops_276_a_failure_after_others_is_the_last_attempt),
	cmocka_unit_test(ops_276_an_id_of_the_backend_stays),
	cmocka_unit_test(ops_276_a_failure_that_was_retried_is_none),
	cmocka_unit_test(ops_50_requests_that_are_refused_at_once_have_an_id),
	cmocka_unit_test(ops_51_the_clients_id_is_known_however_far_it_came),
	cmocka_unit_test(ops_51_a_route_that_serves_no_more_has_no_name),
	cmocka_unit_test(ops_52_each_attempt_is_told_with_its_end),
	cmocka_unit_test(ops_52_answers_that_were_retried_are_told),
	cmocka_unit_test(ops_52_of_many_attempts_the_last_ones_stay))
