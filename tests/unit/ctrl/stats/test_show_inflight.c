// SPDX-License-Identifier: Apache-2.0
// `show requests` and `show conns`: the words they take, what workers are asked, and what is made
// of their answers.
#include "ctrl/assemble/workers.h"
#include "ctrl/stats/endpoint_clusters.h"
#include "ctrl/stats/inflight_ask.h"
#include "ctrl/stats/inflight_handle.h"
#include "lb/base/twheel.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/stats/inflight_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *handle_of(uint64_t began_ns)
{
	static char text[INFLIGHT_HANDLE_MAX];
	const struct lb_inflight_handle h = {.began_ns = began_ns, .slot = 5};
	return inflight_handle_print(LB_INFLIGHT_REQUESTS, &h, text);
}

// OPS-60, OPS-61
static void requests_are_told_with_all_that_workers_say_the_oldest_first(void **state)
{
	struct world *w = *state;
	let_pass(w, 10 * NS_PER_SECOND);
	uint64_t now_ns = twheel_now(w->wheel);
	struct stats_follow *follow = begin("show requests json");
	assert_null(look(follow));
	struct lb_inflight *f = expect_question(w);
	assert_int_equal(f->query.kind, LB_INFLIGHT_REQUESTS);
	assert_int_equal(f->query.limit, 100);
	assert_int_equal(f->query.frontend, LB_INFLIGHT_ANY);
	assert_int_equal(f->query.cluster, LB_INFLIGHT_ANY);
	assert_null(look(follow));
	f->n_all = 7;
	tell_request(f, now_ns - NS_PER_SECOND);
	tell_request(f, now_ns - 4 * NS_PER_SECOND);
	lb_inflight_done(f);
	json_t *data = end(follow);
	json_t *expected = json_pack("{sf ss ss ss ss ss ss ss ss si ss ss si si si ss si ss}",
		"age_s", 4.0, "state", "sent", "frontend", "api", "client", "10.81.0.1:5000",
		"method", "GET", "authority", "a.example", "path", "/slow\n", "virtual_host", "any",
		"route", "canary", "route_index", 3, "cluster", "blue", "endpoint", "10.0.0.1:80",
		"attempts", 2, "bytes_in", 10, "bytes_out", 20, "id", "my id", "worker", 0,
		"handle", handle_of(now_ns - 4 * NS_PER_SECOND));
	json_t *rows = json_object_get(data, "requests");
	assert_true(json_equal(json_array_get(rows, 0), expected));
	assert_int_equal(json_array_size(rows), 2);
	assert_int_equal(json_integer_value(json_object_get(data, "in_flight")), 7);
	assert_int_equal(json_integer_value(json_object_get(data, "matching")), 2);
	assert_int_equal(json_integer_value(json_object_get(data, "shown")), 2);
	assert_int_equal(json_array_size(json_object_get(data, "silent_workers")), 0);
	json_decref(expected);
	json_decref(data);
	follow = begin("show requests");
	assert_null(look(follow));
	tell_request(expect_question(w), now_ns);
	lb_inflight_done(w->link->inflight);
	char *text = look(follow);
	assert_non_null(strstr(text, "requests:\n  age_s"));
	assert_non_null(strstr(text, "/slow\\n"));
	assert_null(strstr(text, "\n\n"));
	free(text);
	follow->free(follow);
}

// OPS-62
static void connections_are_told_with_their_frontend_or_all_clusters(void **state)
{
	struct world *w = *state;
	struct stats_follow *follow = begin("show conns json");
	assert_null(look(follow));
	struct lb_inflight *f = expect_question(w);
	assert_false(f->query.by_endpoint);
	tell_conn(f, 1, LB_INFLIGHT_ANY);
	tell_conn(f, 2, ids[0]);
	tell_conn(f, 3, ids[1]);
	lb_inflight_done(f);
	json_t *data = end(follow);
	static const char *const wanted[][3] = {
		{"client", "web", ""}, {"backend", "", "blue"}, {"backend", "", "blue, green"}};
	for (size_t i = 0; i < 3; i++) {
		json_t *row = json_array_get(json_object_get(data, "connections"), i);
		assert_string_equal(json_string_value(json_object_get(row, "side")), wanted[i][0]);
		assert_string_equal(
			json_string_value(json_object_get(row, "frontend")), wanted[i][1]);
		assert_string_equal(
			json_string_value(json_object_get(row, "cluster")), wanted[i][2]);
		assert_string_equal(json_string_value(json_object_get(row, "http")), "2");
		assert_string_equal(json_string_value(json_object_get(row, "tls")), "1.3");
		assert_true(json_real_value(json_object_get(row, "rtt_ms")) == 1.5);
		assert_int_equal(json_integer_value(json_object_get(row, "retransmits")), 3);
	}
	json_decref(data);
}

#define N_SHARING 500
#define N_ROWS 1000

// Which the set-up's clusters have, too.
static void let_clusters_share_the_endpoints(struct world *w)
{
	static char texts[N_SHARING][8];
	static const char *names[N_SHARING + 2] = {"blue", "green"};
	static struct res_endpoints *lists[N_SHARING + 2];
	static const struct told_locality here = {"", "", "", 1, inflight_backends, 2};
	static const struct told_priority priority = {&here, 1};
	for (int i = 0; i < N_SHARING; i++) {
		snprintf(texts[i], sizeof(texts[i]), "c%03d", i);
		names[i + 2] = texts[i];
	}
	for (int i = 0; i < N_SHARING + 2; i++)
		lists[i] = endpoints_of(&priority, 1);
	apply(w, &inflight_vhost, names, lists, N_SHARING + 2);
	for (int i = 0; i < N_SHARING + 2; i++)
		xds_res_put(&lists[i]->base);
	turns(w, 1);
}

static uint32_t n_commas(const char *text)
{
	uint32_t n = 0;
	for (; *text; text++)
		n += *text == ',';
	return n;
}

// OPS-62: hundreds of clusters may share their endpoints, and anybody may ask.
static void of_many_clusters_some_are_named(void **state)
{
	struct world *w = *state;
	let_clusters_share_the_endpoints(w);
	struct stats_follow *follow = begin("show conns limit=1000 json");
	assert_null(look(follow));
	struct lb_inflight *f = expect_question(w);
	for (uint64_t i = 0; i < N_ROWS; i++)
		tell_conn(f, i, ids[i % 2]);
	lb_inflight_done(f);
	json_t *data = end(follow), *row;
	json_t *rows = json_object_get(data, "connections");
	size_t i;
	assert_int_equal(json_array_size(rows), N_ROWS);
	json_array_foreach(rows, i, row)
	{
		const char *text = json_string_value(json_object_get(row, "cluster"));
		size_t len = strlen(text);
		assert_int_equal(n_commas(text), ENDPOINT_CLUSTERS_NAMED);
		assert_true(len > 5 && strcmp(text + len - 5, ", ...") == 0);
		assert_non_null(strstr(text, "blue, "));
	}
	json_decref(data);
}

static struct lb_inflight_query *query_of(struct world *w, const char *command)
{
	struct stats_follow *follow = begin(command);
	assert_null(look(follow));
	struct lb_inflight *f = expect_question(w);
	lb_inflight_done(f);
	json_decref(end(follow));
	return &f->query;
}

// OPS-64
static void conditions_become_the_workers_question(void **state)
{
	struct world *w = *state;
	struct assembler_cluster_info green;
	assert_true(assembler_find_cluster(w->assembler, "green", &green));
	let_pass(w, 10 * NS_PER_SECOND);
	const struct lb_inflight_query *q = query_of(w,
		"show requests cluster=green frontend=api source=10.1.0.0/16 state=sent older=2.5 "
		"limit=7 json");
	assert_int_equal(q->cluster, green.id);
	assert_false(q->by_endpoint);
	assert_int_equal(q->frontend, 1);
	assert_true(q->has_source);
	assert_int_equal(q->source.bits, 16 + IP_V4_BITS);
	assert_int_equal(q->states, 1u << LB_REQUEST_sent);
	assert_int_equal(q->before_ns, twheel_now(w->wheel) - 2500 * NS_PER_MS);
	assert_int_equal(q->limit, 7);
	q = query_of(w, "show conns cluster=green source=fd00::1 state=idle older=99999 json");
	assert_true(q->by_endpoint);
	for (uint32_t id = 0; id < LB_MAX_ENDPOINTS; id++)
		assert_int_equal(q->endpoints[id / 64] >> id % 64 & 1, id == ids[1]);
	assert_int_equal(q->source.bits, 128);
	assert_int_equal(q->states, 1u << LB_CONN_idle);
	assert_int_equal(q->before_ns, 0);
	q = query_of(w, "show conns source=10.0.0.9 json");
	assert_int_equal(q->source.bits, 128);
	assert_int_equal(q->before_ns, UINT64_MAX);
}

// OPS-64
static void wrong_conditions_get_a_clear_error_and_nobody_is_asked(void **state)
{
	static const char *const wrong[][2] = {
		{"show requests cluster=red", "no cluster 'red', try show clusters"},
		{"show requests frontend=red", "no frontend is called 'red', try show info"},
		{"show conns source=10.0.0", "source: '10.0.0' is not an address"},
		{"show conns source=10.0.0.1/33", "source: '10.0.0.1/33' is not an address"},
		{"show conns source=10.0.0.1/", "source: '10.0.0.1/' is not an address"},
		{"show requests state=idle",
			"state: 'idle' is none of paused, picking, connecting, queued, sending, "
			"sent, answering, delivering"},
		{"show conns state=sent", "state: 'sent' is none of connecting, header"},
		{"show requests older=", "older: '' is not a number of seconds"},
		{"show requests older=-1", "older: '-1' is not a number"},
		{"show requests older=nan", "older: 'nan' is not a number"},
		{"show requests limit=0", "limit: '0' is not between 1 and 1000"},
		{"show requests limit=1001", "limit: '1001' is not between"},
		{"show requests limit=1 limit=2", "limit is given twice"},
		{"show requests colour", "unexpected argument 'colour'"},
		{"show requests colour=blue", "no column 'colour', there are age_s, state,"},
		{"show conns cluster!=blue sort=path", "no column 'path', there are age_s, "},
		{"show conns json json", "unexpected argument 'json'"}};
	struct world *w = *state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct stats_follow *follow = NULL;
		char *text = show_answer(show, &anybody, wrong[i][0], &follow);
		assert_null(follow);
		assert_int_equal(strncmp(text, "error: ", 7), 0);
		if (strncmp(text + 7, wrong[i][1], strlen(wrong[i][1])) != 0)
			fail_msg("%s: %s", wrong[i][0], text);
		free(text);
	}
	assert_true(spsc_is_empty(&w->link->commands));
}

// OPS-65
static void a_worker_that_says_nothing_is_left_out_and_named(void **state)
{
	struct world *w = *state;
	struct stats_follow *follow = begin("show requests json");
	assert_null(look(follow));
	struct lb_inflight *f = expect_question(w);
	let_pass(w, INFLIGHT_PATIENCE_NS - NS_PER_MS);
	assert_null(look(follow));
	let_pass(w, NS_PER_MS);
	json_t *data = end(follow);
	json_t *silent = json_object_get(data, "silent_workers");
	assert_int_equal(json_array_size(silent), 1);
	assert_int_equal(json_integer_value(json_array_get(silent, 0)), 0);
	json_decref(data);
	// It answers the old question before it gets the next one.
	follow = begin("show conns json");
	assert_null(look(follow));
	assert_true(spsc_is_empty(&w->link->commands));
	f->n_all = 99;
	lb_inflight_done(f);
	assert_null(look(follow));
	f = expect_question(w);
	assert_int_equal(f->query.kind, LB_INFLIGHT_CONNS);
	assert_int_equal(f->n_all, 0);
	lb_inflight_done(f);
	json_decref(end(follow));
}

// OPS-65
static void questions_wait_for_each_other(void **state)
{
	struct world *w = *state;
	struct stats_follow *first = begin("show requests limit=1 json");
	struct stats_follow *second = begin("show requests limit=2 json");
	struct stats_follow *third = begin("show requests limit=3 json");
	assert_null(look(first));
	assert_null(look(second));
	assert_int_equal(expect_question(w)->query.limit, 1);
	lb_inflight_done(w->link->inflight);
	assert_null(look(second));
	assert_true(spsc_is_empty(&w->link->commands));
	json_decref(end(first));
	assert_null(look(second));
	assert_int_equal(expect_question(w)->query.limit, 2);
	second->free(second); // whoever asked is gone
	assert_null(look(third));
	assert_true(spsc_is_empty(&w->link->commands));
	lb_inflight_done(w->link->inflight);
	assert_null(look(third));
	assert_int_equal(expect_question(w)->query.limit, 3);
	lb_inflight_done(w->link->inflight);
	json_decref(end(third));
}

static void assert_told_to_try_again(struct stats_follow *follow)
{
	char *text = look(follow);
	assert_non_null(text);
	assert_string_equal(text, "error: others are asking, try again\n");
	free(text);
	follow->free(follow);
}

// OPS-65: of workers that were not asked nothing is said.
static void who_waits_long_for_others_is_told_so(void **state)
{
	struct world *w = *state;
	struct stats_follow *first = begin("show requests json");
	assert_null(look(first));
	struct lb_inflight *f = expect_question(w);
	struct stats_follow *second = begin("show requests json");
	let_pass(w, 2 * NS_PER_SECOND);
	struct stats_follow *third = begin("show requests json");
	let_pass(w, INFLIGHT_QUEUE_NS - 2 * NS_PER_SECOND - NS_PER_MS);
	assert_null(look(second));
	let_pass(w, NS_PER_MS);
	assert_null(look(first));
	assert_null(look(third));
	assert_told_to_try_again(second);
	let_pass(w, INFLIGHT_PATIENCE_NS - INFLIGHT_QUEUE_NS);
	json_t *data = end(first);
	assert_int_equal(json_array_size(json_object_get(data, "silent_workers")), 1);
	json_decref(data);
	// The third one's time begins only now.
	assert_null(look(third));
	let_pass(w, INFLIGHT_PATIENCE_NS - NS_PER_MS);
	assert_null(look(third));
	lb_inflight_done(f); // at last
	assert_null(look(third));
	tell_request(expect_question(w), 0);
	f->n_all = 1;
	lb_inflight_done(f);
	data = end(third);
	assert_int_equal(json_array_size(json_object_get(data, "silent_workers")), 0);
	assert_int_equal(json_integer_value(json_object_get(data, "in_flight")), 1);
	json_decref(data);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, inflight_set_up, inflight_tear_down)

RUN_SUITE("ctrl/show_inflight", CASE(requests_are_told_with_all_that_workers_say_the_oldest_first),
	CASE(connections_are_told_with_their_frontend_or_all_clusters),
	CASE(of_many_clusters_some_are_named), CASE(conditions_become_the_workers_question),
	CASE(wrong_conditions_get_a_clear_error_and_nobody_is_asked),
	CASE(a_worker_that_says_nothing_is_left_out_and_named), CASE(questions_wait_for_each_other),
	CASE(who_waits_long_for_others_is_told_so))
