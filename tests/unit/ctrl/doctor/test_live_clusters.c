// SPDX-License-Identifier: Apache-2.0
// What the doctor says of clusters that fail, and of endpoints that do.
#include "ctrl/doctor/counts.h"
#include "ctrl/doctor/live.h"
#include "lb/leaf/outlier.h"
#include "lb/pick/link.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/assembler_world.h"
#include "tests/unit/ctrl/routes_by_hand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANY 40

static struct doctor_report report;
static struct doctor_live live;
static struct counts noted, *before; // before: NULL, or that

static int set_up(void **state)
{
	assert_true(doctor_report_init(&report));
	return world_set_up(state);
}

static int tear_down(void **state)
{
	doctor_live_fini(&live);
	doctor_report_fini(&report);
	counts_fini(&noted);
	before = NULL;
	return world_tear_down(state);
}

static struct ip_port address(uint16_t n)
{
	return (struct ip_port){.port = n, .ip = ip_from_v4(0x0a000001)};
}

// Clusters with these names and each with its own n endpoints, 10.0.0.1:1 and on.
static void give(struct world *w, const char *const *names, uint32_t n_clusters, uint32_t n)
{
	static struct told_endpoint backends[MANY];
	struct res_weighted_cluster weighted[MANY];
	struct res_endpoints *all[MANY];
	uint16_t port = 0;
	for (uint32_t i = 0; i < n_clusters; i++) {
		for (uint32_t k = 0; k < n; k++)
			backends[k] = (struct told_endpoint){
				.addr = address(++port), .health = LB_LEAF_HEALTHY, .weight = 1};
		const struct told_locality locality = {"", "", "", 1, backends, n};
		const struct told_priority priority = {&locality, 1};
		all[i] = endpoints_of(&priority, n ? 1 : 0);
		weighted[i] = (struct res_weighted_cluster){.name = names[i], .weight = 1};
	}
	struct res_route to = {PREFIX(""), .clusters = weighted, .n_clusters = n_clusters};
	const struct res_vhost vhost = {.name = "v",
		.domains = (const char *[]){"*"},
		.n_domains = 1,
		.routes = &to,
		.n_routes = 1};
	apply(w, &vhost, names, all, n_clusters);
	turns(w, 10);
	for (uint32_t i = 0; i < n_clusters; i++)
		xds_res_put(&all[i]->base);
}

// What becomes of the attempts: those to this port and above connect.
static void answer_attempts(struct world *w, uint16_t first_up)
{
	struct lb_command c;
	while (spsc_read(&w->link->commands, &c)) {
		if (c.kind != LB_COMMAND_CONNECT)
			continue;
		struct lb_event e = {.kind = LB_EVENT_CONNECTED, .endpoint_id = c.endpoint->id};
		if (c.endpoint->addr.port < first_up) {
			e.kind = LB_EVENT_FAILED;
			snprintf(e.why, sizeof(e.why), "refused");
		}
		assembler_event(w->assembler, 0, &e);
	}
	turns(w, 5);
}

// Runs one check. Returns its steps, and as text, good until the next call, what it found.
static uint32_t look(struct world *w, const char *check, const char **ret_text)
{
	static char *text;
	uint32_t at = 0, n = 0;
	while (strcmp(doctor_live_checks[at].id, check) != 0)
		at++;
	doctor_report_fini(&report);
	assert_true(doctor_report_init(&report));
	live = (struct doctor_live){.assembler = w->assembler,
		.wheel = w->wheel,
		.before_clusters = before,
		.report = &report,
		.at = at};
	for (; live.at == at; n++)
		assert_true(doctor_live_step(&live));
	json_t *tree = doctor_report_json(&report);
	free(text);
	text = doctor_report_text(tree);
	assert_non_null(text);
	json_decref(tree);
	*ret_text = text;
	return n;
}

static void expect(struct world *w, const char *check, const char *expected)
{
	const char *text;
	look(w, check, &text);
	assert_string_equal(text, expected);
}

#define NONE "0 errors, 0 warnings, 0 notes\n"

static void ops_272_a_cluster_without_a_reachable_endpoint_is_an_error_with_the_reason(void **state)
{
	struct world *w = *state;
	give(w, (const char *[]){"a", "b"}, 2, 2);
	expect(w, "cluster", NONE); // connecting is no fault
	answer_attempts(w, 3);
	expect(w, "cluster",
		"error    cluster a fails: requests to it fail at once; 0 of 2 endpoints "
		"reachable; last: 10.0.0.1:1: refused; fix: shuntctl show endpoints cluster=a\n"
		"1 error, 0 warnings, 0 notes\n");
	expect(w, "endpoint", NONE); // the cluster says it
}

static void ops_272_a_cluster_without_endpoints_says_that(void **state)
{
	struct world *w = *state;
	give(w, (const char *[]){"a"}, 1, 0);
	expect(w, "cluster",
		"error    cluster a fails: requests to it fail at once; it has no endpoints; "
		"no locality has usable endpoints (node n1); fix: its resources on the xDS server: "
		"shuntctl show xds\n1 error, 0 warnings, 0 notes\n");
}

static void ops_272_endpoints_that_a_serving_cluster_does_without_are_a_warning(void **state)
{
	struct world *w = *state;
	give(w, (const char *[]){"a"}, 1, MANY);
	answer_attempts(w, 6);
	expect(w, "cluster", NONE);
	expect(w, "endpoint",
		"warning  cluster a: 5 of 40 endpoints get no requests: 5 cannot be connected to, "
		"0 ejected, 0 unhealthy (10.0.0.1:1, 10.0.0.1:2, 10.0.0.1:3, ...); first: "
		"10.0.0.1:1: refused; the others carry all there is; fix: shuntctl show endpoints "
		"cluster=a\n0 errors, 1 warning, 0 notes\n");
}

static void ops_272_an_ejected_endpoint_is_told_apart(void **state)
{
	static const struct lb_outlier_conf outlier = {.interval_ns = 10 * MS,
		.base_ejection_ns = NS_PER_SECOND,
		.max_ejection_ns = NS_PER_SECOND,
		.max_ejection_percent = 50,
		.failure_percentage = {true, 100, 1, 1},
		.threshold_percent = 50};
	struct world *w = *state;
	struct res_cluster *c = cluster_of("a");
	c->outlier = &outlier;
	give(w, (const char *[]){"a"}, 1, 2);
	answer_attempts(w, 0);
	counter_add(&w->link->members[0].failed, 9);
	turns(w, 20);
	const char *text;
	look(w, "endpoint", &text);
	assert_non_null(strstr(text, "cluster a: 1 of 2 endpoints get no requests: 0 cannot be "
				     "connected to, 1 ejected, 0 unhealthy (10.0.0.1:"));
	xds_res_put(&c->base);
}

static void ops_272_of_many_the_first_are_named_the_rest_counted_and_steps_are_short(void **state)
{
	struct world *w = *state;
	const char *names[MANY];
	char texts[MANY][8];
	for (uint32_t i = 0; i < MANY; i++) {
		snprintf(texts[i], sizeof(texts[i]), "c%02u", i);
		names[i] = texts[i];
	}
	give(w, names, MANY, 2);
	answer_attempts(w, UINT16_MAX);
	const char *text;
	assert_int_equal(look(w, "cluster", &text), MANY + 1);
	assert_int_equal(report.n_errors, MANY);
	assert_int_equal(report.n_left_out, MANY - DOCTOR_MAX_OF_CHECK);
	assert_non_null(strstr(text, "cluster c00 fails"));
	assert_null(strstr(text, "cluster c10 fails"));
}

// A step ends in the middle of what then is gone.
static void ops_272_clusters_may_go_between_steps(void **state)
{
	struct world *w = *state;
	give(w, (const char *[]){"a", "b", "d"}, 3, 1);
	answer_attempts(w, UINT16_MAX);
	uint32_t at = 0;
	while (strcmp(doctor_live_checks[at].id, "cluster") != 0)
		at++;
	live = (struct doctor_live){.assembler = w->assembler, .report = &report, .at = at};
	for (int i = 0; i < 2; i++)
		assert_true(doctor_live_step(&live));
	assert_string_equal(live.walk.cluster, "b");
	give(w, (const char *[]){"c"}, 1, 1);
	answer_attempts(w, UINT16_MAX);
	while (live.at == at)
		assert_true(doctor_live_step(&live));
	assert_int_equal(report.n_errors, 2); // a before, c behind b
}

static void ops_272_a_name_that_a_shell_would_read_is_not_in_the_command(void **state)
{
	struct world *w = *state;
	give(w, (const char *[]){"a;reboot"}, 1, 1);
	answer_attempts(w, UINT16_MAX);
	const char *text;
	look(w, "cluster", &text);
	assert_non_null(strstr(text, "cluster a;reboot fails"));
	assert_non_null(strstr(text, "; fix: shuntctl show endpoints\n"));
}

// The first look at answers; returns its steps. The second one is a second later.
static uint32_t note(struct world *w)
{
	uint32_t n = 1;
	counts_fini(&noted);
	before = &noted;
	live = (struct doctor_live){
		.assembler = w->assembler, .wheel = w->wheel, .report = &report};
	while (doctor_live_note_step(&live, &noted))
		n++;
	assert_null(live.walk.cluster);
	turns(w, 500);
	return n;
}

// What came of a cluster's requests: answers of backends, bad and good, and replies of ours.
static void answer(
	struct world *w, const char *cluster, uint64_t n_bad, uint64_t n_good, uint64_t n_own)
{
	struct assembler_cluster_info info;
	assert_true(assembler_find_cluster(w->assembler, cluster, &info));
	struct lb_cluster_counters *c = &w->link->clusters[info.id];
	counter_add(&c->started, n_bad + n_good + n_own);
	counter_add(&c->ended[LB_CAUSE_OK], n_bad + n_good);
	counter_add(&c->ended[LB_CAUSE_NO_HEALTHY], n_own);
	counter_add(&w->link->times[info.id].answers[LB_ANSWER_HTTP + 1], n_good);
	counter_add(&w->link->times[info.id].answers[LB_ANSWER_HTTP + 4], n_bad + n_own);
	counter_add(&w->link->times[info.id].bad, n_bad);
}

static void ops_279_a_cluster_whose_backends_answer_that_they_fail_is_a_warning(void **state)
{
	struct world *w = *state;
	give(w, (const char *[]){"a", "b"}, 2, 1);
	answer(w, "a", 0, 9000, 0); // of before
	answer(w, "b", 9000, 0, 0);
	assert_int_equal(note(w), 3);
	answer(w, "a", 50, 50, 30);
	answer(w, "b", 100, 900, 0); // some errors are no fault of the set-up
	expect(w, "answers",
		"warning  cluster a: 50 of 100 answers of its backends within 1.0 s blame the "
		"server (5xx, or such a status of gRPC); clients hear them as they are; fix: "
		"shuntctl show failures cause=answered cluster=a\n0 errors, 1 warning, 0 notes\n");
}

static void ops_279_a_few_answers_what_we_answer_and_what_was_before_are_no_finding(void **state)
{
	struct world *w = *state;
	give(w, (const char *[]){"a", "b", "c"}, 3, 1);
	answer(w, "c", 9000, 0, 0);
	note(w);
	answer(w, "a", 19, 0, 0);
	answer(w, "b", 0, 0, 1000);
	answer(w, "c", 49, 51, 0);
	expect(w, "answers", NONE);
	answer(w, "a", 1, 0, 0);
	const char *text;
	noted.at = 0; // it is walked once
	look(w, "answers", &text);
	assert_non_null(strstr(text, "cluster a: 20 of 20 answers"));
	before = NULL;
	expect(w, "answers", NONE); // nobody looked before
}

static void ops_279_clusters_come_and_go_between_the_looks(void **state)
{
	struct world *w = *state;
	give(w, (const char *[]){"a;reboot", "c"}, 2, 1);
	note(w);
	give(w, (const char *[]){"a;reboot", "b", "d"}, 3, 1);
	answer(w, "a;reboot", 20, 0, 0);
	answer(w, "b", 20, 0, 0);
	answer(w, "d", 20, 0, 0);
	expect(w, "answers",
		"warning  cluster a;reboot: 20 of 20 answers of its backends within 1.0 s blame "
		"the "
		"server (5xx, or such a status of gRPC); clients hear them as they are; fix: "
		"shuntctl show failures cause=answered\n0 errors, 1 warning, 0 notes\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RUN_SUITE("ctrl/doctor/live_clusters",
	TEST(ops_272_a_cluster_without_a_reachable_endpoint_is_an_error_with_the_reason),
	TEST(ops_272_a_cluster_without_endpoints_says_that),
	TEST(ops_272_endpoints_that_a_serving_cluster_does_without_are_a_warning),
	TEST(ops_272_an_ejected_endpoint_is_told_apart),
	TEST(ops_272_of_many_the_first_are_named_the_rest_counted_and_steps_are_short),
	TEST(ops_272_clusters_may_go_between_steps),
	TEST(ops_272_a_name_that_a_shell_would_read_is_not_in_the_command),
	TEST(ops_279_a_cluster_whose_backends_answer_that_they_fail_is_a_warning),
	TEST(ops_279_a_few_answers_what_we_answer_and_what_was_before_are_no_finding),
	TEST(ops_279_clusters_come_and_go_between_the_looks))
