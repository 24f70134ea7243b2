// SPDX-License-Identifier: Apache-2.0
// What access logs are told of requests, one situation a test (OPS-30..OPS-34, OPS-40).
#include "lb/pick/access_set.h"
#include "lb/pick/failures.h"
#include "lb/pick/link.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

static const struct lb_access_filter all = {.sample = LB_ACCESS_SAMPLE_ALL};
static const struct lb_access_filter errors = {.causes = UINT32_MAX, .min_status = 500};

static struct world *logged_world(const struct lb_access_filter *filter)
{
	struct world_conf conf = world_conf_default(7);
	conf.n_clients = 1;
	conf.n_backends = 2;
	conf.log = filter;
	return ready_world(&conf);
}

static void next(struct world *w, struct lb_access_record *ret)
{
	world_run(w, SECOND);
	assert_true(spsc_read(&w->link->access->ring, ret));
}

static void assert_none_left(const struct world *w)
{
	assert_true(spsc_is_empty(&w->link->access->ring));
}

static void assert_text(
	const struct lb_access_record *a, enum lb_access_text which, const char *text)
{
	char got[512];
	struct str s = lb_access_get(a, which);
	snprintf(got, sizeof(got), "%.*s", (int)s.len, s.p);
	assert_string_equal(got, text);
}

static void assert_path(const struct lb_access_record *a, const struct ask *of)
{
	char end[32], path[512];
	struct str s = lb_access_get(a, LB_ACCESS_PATH);
	snprintf(path, sizeof(path), "%.*s", (int)s.len, s.p);
	snprintf(end, sizeof(end), "/%u/%u", of->id, of->size);
	assert_int_equal(strncmp(path, "/", 1), 0);
	assert_string_equal(path + strlen(path) - strlen(end), end);
}

static void ops_30_a_call_is_told_with_all_that_is_known(void **state)
{
	struct world *w = logged_world(&all);
	struct ask *a = world_ask(w, "one", KIND_ECHO, 1000);
	a->extra[0] = (struct field){.name = STR("user-agent"), .value = STR("tester/1")};
	a->extra[1] = (struct field){.name = STR("x-request-id"), .value = STR("my-id")};
	a->extra[2] = (struct field){.name = STR("traceparent"), .value = STR("00-ab")};
	client_ask(&w->clients[0], a);
	finish(w);
	assert_ok(w, a);
	assert_string_equal(a->request_id, "");
	struct lb_access_record r;
	next(w, &r);
	assert_none_left(w);
	assert_text(&r, LB_ACCESS_METHOD, "POST");
	assert_text(&r, LB_ACCESS_AUTHORITY, "calls.test");
	assert_text(&r, LB_ACCESS_USER_AGENT, "tester/1");
	assert_text(&r, LB_ACCESS_REQUEST_ID, "my-id");
	assert_text(&r, LB_ACCESS_TRACEPARENT, "00-ab");
	assert_text(&r, LB_ACCESS_CLUSTER, "zero");
	assert_path(&r, a);
	assert_int_equal(r.brief.status, 200);
	assert_int_equal(r.brief.grpc_status, 0);
	assert_int_equal(r.brief.cause, LB_CAUSE_OK);
	assert_int_equal(r.body_in, 1000);
	assert_int_equal(r.body_out, 1000);
	assert_int_equal(r.n_attempts, 1);
	assert_true(r.backend.ip.b[14] == 2 && r.client.ip.b[14] == 0 && r.client.port);
	assert_true(r.brief.began_ns <= r.received_ns && r.received_ns <= r.brief.ended_ns);
	assert_true(r.answered_ns > r.brief.began_ns && r.answered_ns <= r.brief.ended_ns);
	world_free(w);
}

static void ops_31_only_what_fails_is_told(void **state)
{
	struct world *w = logged_world(&errors);
	struct lb_access_record r;
	for (int i = 0; i < 20; i++)
		ask(w, i % 2 ? KIND_ECHO : KIND_PLAIN, 10);
	finish(w);
	world_run(w, SECOND);
	assert_none_left(w);
	struct ask *a = ask_with(w, KIND_ECHO, 10, NULL, "9 status 5");
	finish(w);
	assert_int_equal(a->grpc_status, 5);
	next(w, &r);
	assert_int_equal(r.brief.grpc_status, 5);
	assert_int_equal(r.brief.cause, LB_CAUSE_OK);
	assert_path(&r, a);
	struct ask *lost = ask_with(w, KIND_ECHO, 10, NULL, "9 lose 0");
	finish(w);
	next(w, &r);
	assert_int_equal(r.brief.cause, LB_CAUSE_UPSTREAM_LOST);
	assert_int_equal(r.brief.grpc_status, lost->grpc_status);
	assert_text(&r, LB_ACCESS_CLUSTER, "zero");
	assert_path(&r, lost);
	assert_none_left(w);
	world_free(w);
}

// Its fields are told whatever became of them: too long for the request itself, or with a body that
// is too long to be kept.
static void ops_33_long_heads_and_long_bodies_lose_nothing(void **state)
{
	static char cookie[4000];
	memset(cookie, 'c', sizeof(cookie));
	const struct field extra = {.name = STR("x-pad"), .value = {cookie, sizeof(cookie)}};
	for (int i = 0; i < 4; i++) {
		struct world *w = logged_world(&errors);
		struct lb_access_record r;
		struct ask *a = world_ask(w, "one", KIND_HANG, i & 1 ? 60000 : 10);
		a->timeout = "500m";
		if (i & 2)
			a->extra[0] = extra;
		client_ask(&w->clients[0], a);
		finish(w);
		assert_reply(a, 4);
		next(w, &r);
		assert_int_equal(r.brief.cause, LB_CAUSE_TIMEOUT);
		assert_text(&r, LB_ACCESS_AUTHORITY, "calls.test");
		assert_path(&r, a);
		assert_none_left(w);
		world_free(w);
	}
}

static void ops_34_replies_of_our_own_carry_an_id(void **state)
{
	struct world *w = logged_world(&errors);
	struct lb_access_record r;
	char last[40] = "";
	const enum kind kinds[] = {KIND_ECHO, KIND_PLAIN, KIND_ECHO};
	for (int i = 0; i < 3; i++) {
		struct ask *a = world_ask(w, "nowhere", kinds[i], 0);
		if (i == 2)
			a->extra[0] =
				(struct field){.name = STR("x-request-id"), .value = STR("mine")};
		client_ask(&w->clients[0], a);
		finish(w);
		next(w, &r);
		assert_int_equal(r.brief.cause, LB_CAUSE_NO_ROUTE);
		assert_text(&r, LB_ACCESS_REQUEST_ID, a->request_id);
		if (i == 2)
			assert_string_equal(a->request_id, "mine");
		else
			assert_true(strlen(a->request_id) == 36 && a->request_id[14] == '4');
		assert_string_not_equal(a->request_id, last);
		snprintf(last, sizeof(last), "%s", a->request_id);
	}
	world_free(w);
}

// In the line, in the answer and where `why` looks.
static void ops_276_a_backends_failure_has_one_id_everywhere(void **state)
{
	for (int i = 0; i < 3; i++) {
		struct world *w = logged_world(&errors);
		struct lb_access_record r;
		struct lb_failure kept;
		for (unsigned b = 0; i == 2 && b < w->conf.n_backends; b++)
			w->backends[b].request_id = "backends";
		struct ask *a = world_ask(w, "one", KIND_ECHO, 10);
		if (i == 1)
			a->extra[0] =
				(struct field){.name = STR("x-request-id"), .value = STR("mine")};
		a->fail = "1 status 14";
		client_ask(&w->clients[0], a);
		finish(w);
		next(w, &r);
		assert_int_equal(r.brief.grpc_status, 14);
		assert_text(&r, LB_ACCESS_REQUEST_ID, a->request_id);
		assert_true(lb_failures_read(w->link->failed_answers, 0, &kept));
		assert_string_equal(kept.id, a->request_id);
		if (i)
			assert_string_equal(kept.id, i == 1 ? "mine" : "backends");
		world_free(w);
	}
}

static void requests_above_the_limit_are_told(void **state)
{
	struct world_conf conf = world_conf_default(7);
	conf.n_clients = 1;
	conf.n_backends = 2;
	conf.max_requests = 4;
	conf.log = &errors;
	struct world *w = ready_world(&conf);
	for (int i = 0; i < 4; i++)
		ask_with(w, KIND_HANG, 0, "500m", NULL);
	struct ask *over = ask(w, KIND_ECHO, 0);
	finish_of(w, over);
	struct lb_access_record r;
	assert_true(spsc_read(&w->link->access->ring, &r));
	assert_int_equal(r.brief.cause, LB_CAUSE_OVERLOAD);
	assert_text(&r, LB_ACCESS_REQUEST_ID, over->request_id);
	assert_path(&r, over);
	finish(w);
	world_free(w);
}

static void ops_31_a_sample_is_as_large_as_asked_for(void **state)
{
	static const struct lb_access_filter some = {
		.sample = LB_ACCESS_SAMPLE_ALL / 4, .min_status = 600};
	struct world *w = logged_world(&some);
	for (int i = 0; i < 1000; i++) {
		ask(w, KIND_ECHO, 0);
		if (i % 20 == 19)
			finish(w);
	}
	world_run(w, SECOND);
	uint32_t n = 0;
	struct lb_access_record r;
	while (spsc_read(&w->link->access->ring, &r))
		n++;
	assert_in_range(n, 180, 320);
	world_free(w);
}

// The errors of a listener for one log, all of its requests for another.
static struct lb_access_set *two_logs(uint64_t of_errors, uint64_t of_all)
{
	static const struct lb_access_test bad = {.kind = LB_ACCESS_GRPC, .value = 0x1fffe};
	const struct lb_access_log logs[] = {{of_errors, &bad}, {of_all, NULL}};
	struct lb_access_set *s = lb_access_set_new(logs, 2);
	assert_non_null(s);
	return s;
}

static void ops_40_a_request_is_told_to_the_logs_that_its_listener_has_at_its_end(void **state)
{
	struct world_conf conf = world_conf_default(7);
	conf.n_clients = 1;
	conf.n_backends = 2;
	conf.listeners_log = true;
	struct world *w = ready_world(&conf);
	struct lb_access_record r;
	ask(w, KIND_ECHO, 10);
	finish(w);
	world_run(w, SECOND);
	assert_none_left(w); // it has none so far
	struct lb_access_set *first = two_logs(2, 4), *second = two_logs(8, 16);
	control_set_logs(&w->control, 0, first);
	struct ask *good = ask(w, KIND_ECHO, 10);
	finish(w);
	next(w, &r);
	assert_int_equal(r.logs, 4);
	assert_path(&r, good);
	ask_with(w, KIND_ECHO, 10, NULL, "9 status 5");
	finish(w);
	next(w, &r);
	assert_int_equal(r.logs, 2 | 4);
	struct ask *slow = ask_with(w, KIND_HANG, 10, "1S", NULL);
	world_run(w, SECOND / 20);
	control_set_logs(&w->control, 0, second);
	finish(w);
	next(w, &r);
	assert_int_equal(r.logs, 8 | 16);
	assert_path(&r, slow);
	control_set_logs(&w->control, 0, NULL);
	ask_with(w, KIND_ECHO, 10, NULL, "9 status 5");
	finish(w);
	world_run(w, SECOND);
	assert_none_left(w);
	assert_int_equal(first->n_refs, 1);
	lb_access_set_put(first);
	lb_access_set_put(second);
	world_free(w);
}

static void ops_40_the_log_of_shunt_yaml_is_told_with_its_own_filter_beside_others(void **state)
{
	struct world *w = logged_world(&errors);
	struct lb_access_record r;
	struct lb_access_set *s = two_logs(2, 4);
	control_set_logs(&w->control, 0, s);
	lb_access_set_put(s);
	ask(w, KIND_ECHO, 10);
	finish(w);
	next(w, &r);
	assert_int_equal(r.logs, 4);
	ask_with(w, KIND_ECHO, 10, NULL, "9 status 5");
	finish(w);
	next(w, &r);
	assert_int_equal(r.logs, LB_ACCESS_OWN | 2 | 4);
	assert_none_left(w);
	world_free(w);
}

RUN_SUITE("proxy/access", cmocka_unit_test(ops_30_a_call_is_told_with_all_that_is_known),
	cmocka_unit_test(ops_31_only_what_fails_is_told),
	cmocka_unit_test(ops_33_long_heads_and_long_bodies_lose_nothing),
	cmocka_unit_test(ops_34_replies_of_our_own_carry_an_id),
	cmocka_unit_test(ops_276_a_backends_failure_has_one_id_everywhere),
	cmocka_unit_test(requests_above_the_limit_are_told),
	cmocka_unit_test(ops_40_a_request_is_told_to_the_logs_that_its_listener_has_at_its_end),
	cmocka_unit_test(ops_40_the_log_of_shunt_yaml_is_told_with_its_own_filter_beside_others),
	cmocka_unit_test(ops_31_a_sample_is_as_large_as_asked_for))
