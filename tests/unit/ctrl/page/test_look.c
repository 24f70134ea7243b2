// SPDX-License-Identifier: Apache-2.0
// What the status page says of traffic: the worst first, how much is left out, names as text.
#include "ctrl/base/events.h"
#include "ctrl/page/look_inside.h"
#include "ctrl/stats/show.h"
#include "lb/base/twheel.h"
#include "lb/pick/link.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/page/page_world.h"

#include <stdlib.h>
#include <string.h>

// One whole look. The text is from malloc; *past is taken, and what this look leaves comes there.
static char *look(const char *cluster, struct look_past **past)
{
	struct look *l = look_new(page_show, cluster, *past);
	size_t len;
	int more;
	assert_non_null(l);
	do
		more = look_step(l);
	while (more > 0);
	assert_int_equal(more, 0);
	char *text = look_take_text(l, &len), *title = look_take_title(l);
	assert_int_equal(strlen(text), len);
	assert_non_null(strstr(title, "Shunt"));
	assert_null(strchr(text, '\n'));
	look_past_free(*past);
	*past = look_take_past(l);
	look_free(l);
	free(title);
	return text;
}

static void expect(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in: %s", part, text);
}

// The part of the page with this id; good until the next call.
static const char *section(const char *text, const char *id)
{
	static char part[1 << 17];
	char begin[64];
	snprintf(begin, sizeof(begin), "<section id=\"%s\"", id);
	const char *from = strstr(text, begin), *to = from ? strstr(from, "</section>") : NULL;
	assert_non_null(to);
	snprintf(part, sizeof(part), "%.*s", (int)(to - from), from);
	return part;
}

static uint32_t count(const char *text, const char *part)
{
	uint32_t n = 0;
	for (const char *p = text; (p = strstr(p, part)); p++)
		n++;
	return n;
}

static void fail_one(struct world *w, const char *cluster, const char *id, const char *why)
{
	const struct lb_failure f = {.at_ns = twheel_now(w->wheel), .cause = LB_CAUSE_NO_HEALTHY};
	const struct str texts[LB_FAILURE_N_TEXTS] = {[LB_FAILURE_cluster] = str_from(cluster),
		[LB_FAILURE_text] = str_from(why),
		[LB_FAILURE_id] = str_from(id)};
	lb_failures_add(w->link->failures, &f, texts);
}

static void answer_one(struct world *w, const char *cluster, const char *id, const char *why)
{
	const struct lb_failure f = {.at_ns = twheel_now(w->wheel),
		.cause = LB_CAUSE_OK,
		.http_status = 502,
		.grpc_status = 14};
	const struct str texts[LB_FAILURE_N_TEXTS] = {[LB_FAILURE_cluster] = str_from(cluster),
		[LB_FAILURE_text] = str_from(why),
		[LB_FAILURE_id] = str_from(id)};
	lb_failures_add(w->link->failed_answers, &f, texts);
}

// OPS-170
static void ops_170_hostile_names_are_text_wherever_they_stand(void **state)
{
#define EVIL "<script>alert(1)</script>\" onclick='x' \n&"
	struct world *w = *state;
	struct look_past *past = NULL;
	const char *const names[] = {EVIL, "fine"};
	page_give(w, names, 2);
	fail_one(w, EVIL, EVIL, EVIL);
	answer_one(w, EVIL, EVIL, EVIL);
	events_add(page_events, 1, LOG_LEVEL_WARN, EVIL, EVIL);
	char *text = look(NULL, &past);
	assert_null(strstr(text, "<script"));
	assert_null(strstr(text, "onclick='"));
	assert_int_equal(
		count(text, "&lt;script&gt;alert(1)&lt;/script&gt;&quot; onclick=&#39;"), 9);
	expect(text, "href=\"/?cluster=%3Cscript%3Ealert%281%29%3C%2Fscript%3E%22%20onclick");
	free(text);
	text = look(EVIL, &past);
	assert_null(strstr(text, "<script"));
	free(text);
	look_past_free(past);
}

// OPS-171
static void ops_171_the_worst_come_first_and_the_rest_is_counted(void **state)
{
	struct world *w = *state;
	struct look_past *past = NULL;
	page_give_many(w, 120, "");
	page_count(w, "c005", 1000, 0);
	char *text = look(NULL, &past);
	const char *clusters = section(text, "clusters");
	expect(clusters, "120 in all, 0 with something wrong");
	expect(clusters, "70 more are not shown");
	assert_int_equal(count(clusters, "<tr role=\"row\" class"), LOOK_MAX_CLUSTERS);
	expect(clusters, "<td role=\"cell\" data-title=\"Requests/s\" class=\"n\">\u2013</td>");
	free(text);
	page_pass(w, 2000);
	page_count(w, "c005", 4000, 0);
	page_count(w, "c077", 20, 10);
	text = look(NULL, &past);
	clusters = section(text, "clusters");
	expect(clusters, "120 in all, 1 with something wrong");
	const char *first = strstr(clusters, "c077"), *second = strstr(clusters, "c005");
	assert_true(first && second && first < second && second < strstr(clusters, "c000"));
	expect(first, "data-title=\"Requests/s\" class=\"n\">10</td>");
	expect(first, "data-title=\"Failed/s\" class=\"n\">5.0</td>");
	expect(second, "data-title=\"Requests/s\" class=\"n\">2000</td>");
	free(text);
	look_past_free(past);
}

// OPS-278
static void ops_278_who_answers_that_it_fails_fails(void **state)
{
	struct world *w = *state;
	struct look_past *past = NULL;
	const char *const names[] = {"a", "sick", "z"};
	page_give(w, names, 3);
	free(look(NULL, &past));
	page_pass(w, 2000);
	page_count(w, "a", 100, 0);
	page_count(w, "sick", 20, 0);
	page_count_bad(w, "sick", 80);
	counter_add(&w->link->counters.frontend_requests[0], 200);
	counter_add(&w->link->frontends[0].ended[LB_CAUSE_OK], 200);
	counter_add(&w->link->frontends[0].bad, 80);
	char *text = look(NULL, &past);
	expect(text, "<dt>Failed/s</dt><dd>40</dd>");
	expect(section(text, "frontends"), "data-title=\"Failed/s\" class=\"n\">40</td>");
	const char *clusters = section(text, "clusters");
	expect(clusters, "3 in all, 1 with something wrong");
	const char *row = strstr(clusters, ">sick</a>");
	assert_true(row && row < strstr(clusters, ">a</a>"));
	expect(row, "data-title=\"Failed/s\" class=\"n\">40</td>");
	expect(row, "data-title=\"Failed in all\" class=\"n\">0</td>");
	expect(row, "data-title=\"Bad answers in all\" class=\"n\">80</td>");
	free(text);
	look_past_free(past);
}

// What came in all the time since is no finding of now. A page without JavaScript looks each 10 s.
static void ops_279_answers_since_a_look_of_long_ago_are_no_finding(void **state)
{
	struct world *w = *state;
	struct look_past *past = NULL;
	const char *const names[] = {"a"};
	page_give(w, names, 1);
	free(look(NULL, &past));
	for (unsigned s = 11; s <= 16; s += 5) {
		page_pass(w, s * 1000);
		struct look *l = look_new(page_show, NULL, past);
		assert_non_null(l);
		while (look_step(l) > 0)
			;
		assert_int_equal(l->live.before_clusters != NULL, s == 11);
		look_past_free(past);
		past = look_take_past(l);
		look_free(l);
	}
	look_past_free(past);
}

// OPS-171: of a little more or less nobody sees rows change places.
static void a_little_more_traffic_moves_no_row(void **state)
{
	struct world *w = *state;
	struct look_past *past = NULL;
	const char *const names[] = {"a", "b"};
	page_give(w, names, 2);
	free(look(NULL, &past));
	for (int round = 0; round < 4; round++) {
		page_pass(w, 1000);
		page_count(w, "a", 100 + 5 * (uint64_t)(round % 2), 0);
		page_count(w, "b", 103, 0);
		char *text = look(NULL, &past);
		const char *clusters = section(text, "clusters");
		assert_true(strstr(clusters, ">a</a>") < strstr(clusters, ">b</a>"));
		free(text);
	}
	look_past_free(past);
}

static void endpoints_that_fail_are_told_and_of_one_cluster_all(void **state)
{
	struct world *w = *state;
	struct look_past *past = NULL;
	const char *const names[] = {"a", "b"};
	page_give(w, names, 2);
	char *text = look(NULL, &past);
	expect(section(text, "endpoints"), "There are none");
	free(text);
	text = look("a", &past);
	assert_int_equal(count(section(text, "endpoints"), "10.0.0.1:"), 2);
	assert_null(strstr(text, ">b</a>"));
	assert_null(strstr(text, "id=\"workers\""));
	free(text);
	struct lb_event e = {.kind = LB_EVENT_FAILED,
		.endpoint_id = expect_command(w, LB_COMMAND_CONNECT),
		.why = "refused <b>"};
	assembler_event(w->assembler, 0, &e);
	turns(w, 2);
	text = look(NULL, &past);
	const char *endpoints = section(text, "endpoints");
	assert_int_equal(count(endpoints, "TRANSIENT_FAILURE"), 2); // of both clusters
	expect(endpoints, "refused &lt;b&gt;");
	expect(section(text, "clusters"), "0/2, 1 failing");
	free(text);
	look_past_free(past);
}

static void failures_and_events_are_told_the_newest_first(void **state)
{
	struct world *w = *state;
	struct look_past *past = NULL;
	page_give_many(w, 2, "");
	fail_one(w, "c000", "id-1", "none is there");
	page_pass(w, 3000);
	fail_one(w, "c001", "id-2", "none is there");
	events_add(page_events, 1, LOG_LEVEL_INFO, "one", "");
	events_add(page_events, 2, LOG_LEVEL_WARN, "two", "why=x");
	char *text = look(NULL, &past);
	const char *failures = section(text, "failures");
	assert_true(strstr(failures, "id-2") < strstr(failures, "id-1"));
	expect(failures, "3 s ago");
	expect(section(text, "answers"), "There are none.");
	const char *events = section(text, "events");
	assert_true(strstr(events, ">two<") < strstr(events, ">one<"));
	free(text);
	text = look("c000", &past);
	failures = section(text, "failures");
	expect(failures, "id-1");
	assert_null(strstr(failures, "id-2"));
	free(text);
	look_past_free(past);
}

static void ops_276_what_backends_answered_stands_apart(void **state)
{
	struct world *w = *state;
	struct look_past *past = NULL;
	page_give_many(w, 1, "");
	fail_one(w, "c000", "ours", "none is there");
	for (int i = 0; i < LOOK_FAILURES; i++)
		answer_one(w, "c000", "theirs", "gone");
	char *text = look(NULL, &past);
	const char *failures = section(text, "failures");
	expect(failures, "ours");
	assert_null(strstr(failures, "theirs"));
	const char *answers = section(text, "answers");
	expect(answers, "HTTP status 502, gRPC status 14: gone");
	assert_int_equal(count(answers, "theirs"), LOOK_FAILURES);
	assert_null(strstr(answers, "ours"));
	free(text);
	look_past_free(past);
}

// Of a worker that hangs, and of a pool that is full.
static void workers_and_pools_are_told_with_what_is_wrong(void **state)
{
	struct world *w = *state;
	struct look_past *past = NULL;
	static uint32_t used = 95, peak = 95, some = 1, most = 60, few = 1;
	const struct pool_view views[] = {
		{.name = "full", .size = 1, .n_total = 100, .n_used = &used, .n_peak = &peak},
		{.name = "was", .size = 1, .n_total = 100, .n_used = &some, .n_peak = &most},
		{.name = "empty", .size = 1, .n_total = 100, .n_used = &few, .n_peak = &few}};
	for (int i = 0; i < 3; i++)
		pool_list_add_view(&w->link->pools, &views[i]);
	counter_set_to(&w->link->counters.longest_turn_ns, 12345678);
	counter_set_to(&w->link->counters.beat_ns, twheel_now(w->wheel));
	char *text = look(NULL, &past);
	expect(section(text, "workers"), "12.3 ms");
	expect(section(text, "workers"), "runs");
	const char *pools = section(text, "pools");
	assert_true(strstr(pools, "full") < strstr(pools, "was"));
	assert_null(strstr(pools, "empty"));
	free(text);
	page_pass(w, 2000);
	text = look(NULL, &past);
	expect(section(text, "workers"), "hangs");
	free(text);
	look_past_free(past);
}

// OPS-172
static void ops_172_clusters_come_and_go_between_the_steps_of_a_look(void **state)
{
	struct world *w = *state;
	static const char *const some[] = {"b", "c", "d"}, *const others[] = {"a", "c", "e"};
	for (int pause = 1; pause < 12; pause++) {
		page_give(w, some, 3);
		struct look *l = look_new(page_show, NULL, NULL);
		size_t len;
		int more = 1;
		for (int i = 0; more > 0 && i < pause; i++)
			more = look_step(l);
		page_give(w, others, 3);
		while (more > 0)
			more = look_step(l);
		assert_int_equal(more, 0);
		char *text = look_take_text(l, &len);
		assert_int_equal(count(text, ">c</a>"), 1);
		free(text);
		look_free(l);
		l = look_new(page_show, NULL, NULL); // a reader that went away
		for (int i = 0; i < pause; i++)
			assert_true(look_step(l) >= 0);
		look_free(l);
	}
}

// OPS-172: a step looks at a cluster, or at a few endpoints, or writes one part.
static void ops_172_a_look_has_a_step_for_each_cluster(void **state)
{
	struct world *w = *state;
	page_give_many(w, 200, "");
	struct look *l = look_new(page_show, NULL, NULL);
	int n = 0;
	while (look_step(l) > 0)
		n++;
	assert_in_range(n, 200, 260);
	look_free(l);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, page_set_up, page_tear_down)
RUN_SUITE("ctrl/page/look", CASE(ops_170_hostile_names_are_text_wherever_they_stand),
	CASE(ops_171_the_worst_come_first_and_the_rest_is_counted),
	CASE(ops_278_who_answers_that_it_fails_fails),
	CASE(ops_279_answers_since_a_look_of_long_ago_are_no_finding),
	CASE(a_little_more_traffic_moves_no_row),
	CASE(endpoints_that_fail_are_told_and_of_one_cluster_all),
	CASE(failures_and_events_are_told_the_newest_first),
	CASE(ops_276_what_backends_answered_stands_apart),
	CASE(workers_and_pools_are_told_with_what_is_wrong),
	CASE(ops_172_clusters_come_and_go_between_the_steps_of_a_look),
	CASE(ops_172_a_look_has_a_step_for_each_cluster))
