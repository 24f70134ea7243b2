// SPDX-License-Identifier: Apache-2.0
// Rates and times between two answers.
#include "tests/support/check.h"
#include "tools/shuntctl/rates.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static json_t *row(const char *kind, const char *name, int requests, int failed, const char *ended,
	const char *times)
{
	char text[1024];
	snprintf(text, sizeof(text),
		"{\"kind\":\"%s\",\"name\":\"%s\",\"state\":\"READY\",\"requests\":%d,\"failed\":%"
		"d,"
		"\"active\":3,\"queued\":null,\"busy_percent\":null,\"ended\":{%s},\"times\":[%s]}",
		kind, name, requests, failed, ended, times);
	json_t *made = json_loads(text, 0, NULL);
	assert_non_null(made);
	return made;
}

static void near_to(double is, double should)
{
	if (fabs(is - should) > 1e-6 * (1 + fabs(should)))
		fail_msg("%f, not %f", is, should);
}

static void ops_126_rates_are_what_came_in_between(void **state)
{
	json_t *before = json_pack("[o o]",
		row("frontend", "web", 1000, 10, "\"ok\":990,\"timeout\":10", ""),
		row("cluster", "blue", 500, 5, "", ""));
	json_t *now = json_pack("[o o]",
		row("frontend", "web", 1600, 40, "\"ok\":1560,\"timeout\":30,\"denied\":10", ""),
		row("cluster", "blue", 700, 5, "", ""));
	struct rates r;
	assert_true(rates_init(&r, before, now, 2));
	near_to(r.total.requests_s, 300);
	near_to(r.total.errors_s, 15);
	assert_int_equal(r.n_causes, 2); // ok is none
	assert_string_equal(r.causes[0].name, "timeout");
	near_to(r.causes[0].per_s, 10);
	assert_string_equal(r.causes[1].name, "denied");
	near_to(r.causes[1].per_s, 5);
	assert_int_equal(r.n_clusters, 1);
	near_to(r.clusters[0].requests_s, 100);
	assert_int_equal(r.clusters[0].active, 3);
	rates_fini(&r);
	json_decref(before);
	json_decref(now);
}

// {"kind", "name", requests, ok, failed, bad, ended: {ok, no_healthy}}
static json_t *answered(const char *kind, int ok, int failed, int bad)
{
	return json_pack("{ss ss si si si si s{si si}}", "kind", kind, "name", "a", "requests",
		ok + failed, "ok", ok, "failed", failed, "bad", bad, "ended", "ok", ok,
		"no_healthy", failed);
}

static void ops_278_answers_that_blame_the_server_are_errors_and_each_request_is_one(void **state)
{
	json_t *before = json_pack(
		"[o o]", answered("frontend", 1000, 500, 0), answered("cluster", 1000, 500, 0));
	json_t *now = json_pack(
		"[o o]", answered("frontend", 1100, 520, 60), answered("cluster", 1100, 520, 0));
	struct rates r;
	assert_true(rates_init(&r, before, now, 2));
	near_to(r.total.errors_s, 40);
	assert_int_equal(r.n_causes, 2);
	assert_string_equal(r.causes[0].name, "answered");
	near_to(r.causes[0].per_s, 30);
	assert_string_equal(r.causes[1].name, "no_healthy");
	near_to(r.causes[1].per_s, 10);
	near_to(r.clusters[0].errors_s, 10);
	rates_fini(&r);
	json_decref(before);
	json_decref(now);
}

static void ops_126_times_are_of_what_ended_in_between(void **state)
{
	// 100 more between 1 and 2 ms, 100 more between 4 and 8 ms; the slow ones were before.
	json_t *before = json_pack(
		"[o]", row("frontend", "web", 50, 0, "", "[1000,2000,10],[50000,100000,900]"));
	json_t *now =
		json_pack("[o]", row("frontend", "web", 250, 0, "",
					 "[1000,2000,110],[4000,8000,100],[50000,100000,900]"));
	struct rates r;
	assert_true(rates_init(&r, before, now, 1));
	near_to(r.total.p50_us, 2000);
	near_to(r.total.p99_us, 4000 + 4000 * 0.98);
	rates_fini(&r);
	json_decref(before);
	json_decref(now);
}

static void what_has_no_bound_is_its_least(void **state)
{
	json_t *before = json_pack("[o]", row("frontend", "web", 0, 0, "", ""));
	json_t *now = json_pack("[o]", row("frontend", "web", 5, 0, "", "[60000000,null,5]"));
	struct rates r;
	assert_true(rates_init(&r, before, now, 1));
	near_to(r.total.p50_us, 60e6);
	rates_fini(&r);
	json_decref(before);
	json_decref(now);
}

static void without_an_answer_before_there_is_no_rate(void **state)
{
	json_t *now = json_pack("[o o]", row("frontend", "web", 5, 1, "\"timeout\":1", "[1,2,5]"),
		row("worker", "0", 5, 1, "", ""));
	struct rates r;
	assert_true(rates_init(&r, NULL, now, 0));
	near_to(r.total.requests_s, 0);
	assert_true(r.total.p50_us < 0);
	assert_int_equal(r.n_causes, 0);
	assert_int_equal(r.n_workers, 1);
	assert_int_equal(r.total.active, 3);
	rates_fini(&r);
	assert_true(rates_init(&r, NULL, NULL, 0)); // nobody ever answered
	rates_fini(&r);
	json_decref(now);
}

// Another daemon, or a cluster that went and came: what was counted is gone.
static void who_begins_anew_has_no_rate_at_first(void **state)
{
	json_t *before = json_pack("[o]", row("cluster", "blue", 500, 5, "", "[1,2,500]"));
	json_t *now = json_pack("[o]", row("cluster", "blue", 20, 0, "", "[1,2,20]"));
	struct rates r;
	assert_true(rates_init(&r, before, now, 1));
	near_to(r.clusters[0].requests_s, 0);
	assert_true(r.clusters[0].p99_us < 0);
	rates_fini(&r);
	json_decref(before);
	json_decref(now);
	before = json_pack("[o]", answered("cluster", 1000, 0, 20));
	now = json_pack("[o]", answered("cluster", 1500, 0, 19));
	assert_true(rates_init(&r, before, now, 1));
	near_to(r.clusters[0].requests_s, 0);
	near_to(r.clusters[0].errors_s, 0);
	rates_fini(&r);
	json_decref(before);
	json_decref(now);
}

// What is no answer of ours.
static void other_json_does_no_harm(void **state)
{
	static const char *const texts[] = {"[]", "[1,null,\"a\"]", "[{}]",
		"[{\"kind\":5,\"name\":[],\"times\":{},\"ended\":[]}]",
		"[{\"kind\":\"frontend\",\"times\":[[],[1],[\"a\",\"b\",\"c\"],5]}]", "{}"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		json_t *rows = json_loads(texts[i], 0, NULL);
		struct rates r;
		assert_non_null(rows);
		assert_true(rates_init(&r, rows, rows, 1));
		rates_fini(&r);
		json_decref(rows);
	}
}

RUN_SUITE("shuntctl/rates", cmocka_unit_test(ops_126_rates_are_what_came_in_between),
	cmocka_unit_test(ops_278_answers_that_blame_the_server_are_errors_and_each_request_is_one),
	cmocka_unit_test(ops_126_times_are_of_what_ended_in_between),
	cmocka_unit_test(what_has_no_bound_is_its_least),
	cmocka_unit_test(without_an_answer_before_there_is_no_rate),
	cmocka_unit_test(who_begins_anew_has_no_rate_at_first),
	cmocka_unit_test(other_json_does_no_harm))
