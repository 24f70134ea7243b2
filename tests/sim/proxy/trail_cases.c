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

static struct lb_failure last(const struct world *w)
{
	struct lb_failure f = {0};
	uint64_t n = lb_failures_count(w->link->failures);
	assert_true(n > 0 && lb_failures_read(w->link->failures, n - 1, &f));
	return f;
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

static void ops_50_answers_of_backends_get_no_id(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *a = ask(w, KIND_ECHO, 10);
	finish(w);
	assert_ok(w, a);
	assert_string_equal(a->request_id, "");
	assert_int_equal(lb_failures_count(w->link->failures), 0);
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
	cmocka_unit_test(ops_50_answers_of_backends_get_no_id),
	cmocka_unit_test(ops_50_requests_that_are_refused_at_once_have_an_id),
	cmocka_unit_test(ops_51_the_clients_id_is_known_however_far_it_came),
	cmocka_unit_test(ops_51_a_route_that_serves_no_more_has_no_name),
	cmocka_unit_test(ops_52_each_attempt_is_told_with_its_end),
	cmocka_unit_test(ops_52_answers_that_were_retried_are_told),
	cmocka_unit_test(ops_52_of_many_attempts_the_last_ones_stay))
