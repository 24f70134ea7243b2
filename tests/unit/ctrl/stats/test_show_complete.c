// SPDX-License-Identifier: Apache-2.0
// What a word of a command may be, and conditions of what a daemon with two clusters lists.
#include "ctrl/stats/caller.h"
#include "ctrl/stats/show.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/assembler_world.h"
#include "tests/unit/ctrl/routes_by_hand.h"

#include <jansson.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct stats_caller anybody = {.level = STATS_USER};
static struct show *show;

static const struct told_endpoint backends[] = {
	{{{{[10] = 255, [11] = 255, [12] = 10, [15] = 1}}, 80}, LB_LEAF_HEALTHY, 1},
	{{{{[10] = 255, [11] = 255, [12] = 10, [15] = 2}}, 80}, LB_LEAF_HEALTHY, 5}};

static const struct res_vhost vhost = {
	"any", DOMAINS("*"), ROUTES({PREFIX("/"), CLUSTERS({"blue", 1}, {"green", 1})})};

static int set_up(void **state)
{
	if (world_set_up_both(state))
		return -1;
	struct world *w = *state;
	w->config.n_frontends = 2;
	static const struct told_locality localities[] = {
		{"", "", "", 1, backends, 2}, {"", "", "", 1, backends + 1, 1}};
	static const struct told_priority priorities[] = {{&localities[0], 1}, {&localities[1], 1}};
	struct res_endpoints *both = endpoints_of(&priorities[0], 1);
	struct res_endpoints *one = endpoints_of(&priorities[1], 1);
	apply(w, &vhost, (const char *const[]){"blue", "green"},
		(struct res_endpoints *[]){both, one}, 2);
	xds_res_put(&both->base);
	xds_res_put(&one->base);
	turns(w, 1);
	show = show_new(&(struct show_conf){.config = &w->config,
		.workers = w->workers,
		.assembler = w->assembler,
		.wheel = w->wheel});
	return show ? 0 : -1;
}

static int tear_down(void **state)
{
	show_free(show);
	return world_tear_down(state);
}

static char *ask(const char *command)
{
	static struct stats_follow *follow;
	char *text = show_answer(show, &anybody, command, &follow);
	assert_non_null(text);
	assert_null(follow);
	return text;
}

static void check_answer(const char *command, const char *expected)
{
	char *text = ask(command);
	if (strcmp(text, expected) != 0)
		fail_msg("%s: %s", command, text);
	free(text);
}

static void ops_123_words_are_completed_from_the_table_of_commands(void **state)
{
	check_answer("complete sho", "show\n");
	check_answer("complete show e", "endpoints\nerrors\nevents\n");
	check_answer("complete undr", "undrain\n");
	check_answer("complete set \"\"", "endpoint\nlog\n");
	check_answer("complete set log level \"\"", "error\nwarn\ninfo\ndebug\n");
	check_answer("complete wait \"\"", "ready\ndrained\nconfig\n");
	check_answer("complete show events \"\"", "-w\nlimit=\nsort=\n");
	check_answer("complete show events so", "sort=\n");
	check_answer("complete explain --auth", "--authority\n");
	check_answer("complete show info x", "");
	check_answer("complete nothing x", "");
	check_answer(
		"complete", "error: the words of a command must follow, the last of them begun\n");
}

static void ops_123_names_are_completed_as_the_daemon_knows_them(void **state)
{
	check_answer("complete show endpoints \"\"", "blue\ngreen\nlimit=\nsort=\n");
	check_answer("complete show endpoints b", "blue\n");
	check_answer("complete show tree gr", "green\n");
	check_answer("complete show tree green", "green\n");
	check_answer("complete set endpoint gr", "green/\n");
	check_answer("complete set endpoint blue/", "blue/10.0.0.1:80\nblue/10.0.0.2:80\n");
	check_answer("complete unset endpoint blue/10.0.0.2", "blue/10.0.0.2:80\n");
	check_answer("complete set endpoint green/10.0.0.1", "");
	check_answer("complete set endpoint nobody/", "");
	check_answer("complete set endpoint /", "");
	check_answer("complete show requests clu", "cluster=\n");
	check_answer("complete show requests cluster=", "cluster=blue\ncluster=green\n");
	check_answer("complete show requests cluster=g", "cluster=green\n");
	check_answer("complete show requests frontend=", "frontend=web\nfrontend=api\n");
	check_answer("complete show failures cause=no_h", "cause=no_healthy\n");
	check_answer("complete show failures cause=o",
		"cause=overflow\ncause=over_share\ncause=overload\n");
	check_answer("complete show failures cause!=a", "cause!=answered\n");
	check_answer("complete log cause=ok", "cause=ok\n");
	check_answer("complete show routes --frontend \"\"", "web\napi\n");
	check_answer("complete drain \"\"", "frontend\nall\n");
	check_answer("complete drain frontend a", "api\n");
}

static void help_has_the_words_of_each_usage(void **state)
{
	char *text = ask("help json");
	json_t *whole = json_loads(text, 0, NULL), *row;
	size_t i;
	bool found = false;
	json_array_foreach(json_object_get(whole, "data"), i, row)
	{
		if (strcmp(json_string_value(json_object_get(row, "command")), "drain") != 0)
			continue;
		char *arguments = json_dumps(json_object_get(row, "arguments"), JSON_COMPACT);
		assert_string_equal(arguments, "[\"[frontend\",\"NAME\",\"|\",\"all]\"]");
		assert_true(json_is_false(json_object_get(row, "conditions")));
		free(arguments);
		found = true;
	}
	assert_true(found);
	json_decref(whole);
	free(text);
}

// OPS-124
static void ops_124_the_manual_has_every_command_of_help(void **state)
{
	char *manual = NULL, *text = ask("help json");
	size_t len = 0, i;
	FILE *out = open_memstream(&manual, &len);
	show_print_manual(out);
	fclose(out);
	json_t *whole = json_loads(text, 0, NULL), *row;
	assert_true(json_array_size(json_object_get(whole, "data")) > 30);
	json_array_foreach(json_object_get(whole, "data"), i, row)
	{
		char line[128];
		snprintf(line, sizeof(line), "\n.TP\n\\fB%s\\fR",
			json_string_value(json_object_get(row, "command")));
		if (!strstr(manual, line))
			fail_msg("no %s", line);
	}
	assert_non_null(strstr(manual, "\\fBshow events\\fR [N] [\\-w] [CONDITION...]\n"));
	json_decref(whole);
	free(manual);
	free(text);
}

static void ops_120_endpoints_are_chosen_and_sorted(void **state)
{
	static const char *const rows[][2] = {
		{"show endpoints cluster=blue sort=-weight json", "10.0.0.2:80 10.0.0.1:80"},
		{"show endpoints json cluster!=blue", "10.0.0.2:80"},
		{"show endpoints blue weight<5 json", "10.0.0.1:80"},
		{"show endpoints sort=endpoint limit=2 json", "10.0.0.1:80 10.0.0.2:80"},
		{"show endpoints state=READY json", ""},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *text = ask(rows[i][0]), told[256] = "";
		json_t *whole = json_loads(text, 0, NULL), *row;
		size_t k;
		if (!whole)
			fail_msg("%s: %s", rows[i][0], text);
		json_array_foreach(json_object_get(whole, "data"), k, row)
		{
			size_t len = strlen(told);
			snprintf(told + len, sizeof(told) - len, "%s%s", k ? " " : "",
				json_string_value(json_object_get(row, "endpoint")));
		}
		if (strcmp(told, rows[i][1]) != 0)
			fail_msg("%s: %s", rows[i][0], told);
		json_decref(whole);
		free(text);
	}
}

static void ops_120_errors_say_what_is_wrong_with_a_condition(void **state)
{
	char *text = ask("show endpoints color=red");
	assert_non_null(
		strstr(text, "error: no column 'color', there are cluster, endpoint, state,"));
	free(text);
	check_answer("show clusters limit=x",
		"error: limit: 'x' is not a number from 1 to 4294967295\n");
	check_answer("show tree cluster=blue",
		"error: no cluster 'cluster=blue', try show clusters\n"); // has no rows
	check_answer(
		"show info state=ready", "error: unexpected argument 'state=ready', try help\n");
	check_answer("show failures cluster=a cluster=b", "error: cluster is given twice\n");
	check_answer(
		"show failures cluster=a text!=ok json", "{\"schema_version\":1,\"data\":[]}\n");
}

// Those of a table that does not have the column go.
static void ops_120_conditions_of_clusters_choose_in_both_tables(void **state)
{
	char *text = ask("show clusters cluster=green json");
	json_t *whole = json_loads(text, 0, NULL), *data = json_object_get(whole, "data");
	assert_int_equal(json_array_size(json_object_get(data, "clusters")), 1);
	assert_int_equal(json_array_size(json_object_get(data, "endpoints")), 1);
	json_decref(whole);
	free(text);
	text = ask("show clusters ready=0 json");
	whole = json_loads(text, 0, NULL);
	data = json_object_get(whole, "data");
	assert_int_equal(json_array_size(json_object_get(data, "clusters")), 2);
	assert_int_equal(json_array_size(json_object_get(data, "endpoints")), 0);
	json_decref(whole);
	free(text);
}

static void load_has_a_row_of_each_worker_frontend_and_cluster(void **state)
{
	char *text = ask("show load kind!=worker json");
	json_t *whole = json_loads(text, 0, NULL), *data = json_object_get(whole, "data");
	static const char *const names[] = {"web", "api", "blue", "green"};
	assert_int_equal(json_array_size(data), 4);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(
			json_string_value(json_object_get(json_array_get(data, i), "name")),
			names[i]);
	assert_int_equal(
		json_integer_value(json_object_get(json_array_get(data, 2), "endpoints")), 2);
	json_decref(whole);
	free(text);
}

static json_int_t number(const json_t *rows, size_t i, const char *key)
{
	return json_integer_value(json_object_get(json_array_get(rows, i), key));
}

// A backend that answers 5xx, and a cluster whose requests we answer so.
static void ops_277_load_tells_what_backends_answered_that_they_failed(void **state)
{
	struct world *w = *state;
	struct lb_link *l = w->link;
	struct assembler_cluster_info blue, green;
	assert_true(assembler_find_cluster(w->assembler, "blue", &blue));
	assert_true(assembler_find_cluster(w->assembler, "green", &green));
	counter_add(&l->clusters[blue.id].started, 4811);
	counter_add(&l->clusters[blue.id].ended[LB_CAUSE_OK], 4811);
	counter_add(&l->times[blue.id].bad, 4808);
	counter_add(&l->clusters[green.id].started, 7);
	counter_add(&l->clusters[green.id].ended[LB_CAUSE_NO_HEALTHY], 7);
	counter_add(&l->times[green.id].answers[LB_ANSWER_GRPC + 14], 7);
	counter_add(&l->counters.frontend_requests[1], 4818);
	counter_add(&l->frontends[1].ended[LB_CAUSE_OK], 4811);
	counter_add(&l->frontends[1].ended[LB_CAUSE_NO_HEALTHY], 7);
	counter_add(&l->frontends[1].bad, 4808);
	counter_add(&l->frontends[1].answers[LB_ANSWER_GRPC + 14], 7);
	char *text = ask("show load sort=-bad json");
	json_t *whole = json_loads(text, 0, NULL), *data = json_object_get(whole, "data");
	static const struct {
		const char *name;
		json_int_t ok, failed, bad;
	} rows[] = {{"0", 0, 0, 4808}, {"api", 4811, 7, 4808}, {"blue", 4811, 0, 4808},
		{"web", 0, 0, 0}, {"green", 0, 7, 0}};
	assert_int_equal(json_array_size(data), 5);
	for (size_t i = 0; i < 5; i++) {
		const json_t *row = json_array_get(data, i);
		assert_string_equal(json_string_value(json_object_get(row, "name")), rows[i].name);
		assert_int_equal(number(data, i, "ok"), rows[i].ok);
		assert_int_equal(number(data, i, "failed"), rows[i].failed);
		assert_int_equal(number(data, i, "bad"), rows[i].bad);
	}
	json_decref(whole);
	free(text);
}

static void ops_128_human_is_a_word_before_the_command(void **state)
{
	char *plain = ask("show pools"), *human = ask("human show pools");
	assert_non_null(human);
	assert_false(strncmp(human, "error", 5) == 0);
	free(plain);
	free(human);
	check_answer("human nothing", "error: unknown command 'nothing', try help\n");
	// OPS-299
	check_answer("capture",
		"error: unknown command 'capture', capture may be followed by start, stop\n");
	check_answer("clear all json",
		"error: unknown command 'clear all', clear may be followed by counters\n");
	check_answer("human", "error: unknown command '', try help\n");
}

// What is logged of an action is its raw line, without the word.
static void ops_128_human_stands_there_as_it_is(void **state)
{
	check_answer("\"human\" help", "error: unknown command '\"human\" help', try help\n");
	check_answer("\"hu\"man help", "error: unknown command '\"hu\"man help', try help\n");
	check_answer(
		"\"\\x68uman\" help", "error: unknown command '\"\\x68uman\" help', try help\n");
}

struct row_list {
	char names[128][IP_PORT_TEXT_MAX + 8]; // with the priority
	unsigned n;
};

static void add_name(void *ctx, const struct assembler_endpoint_info *e)
{
	struct row_list *l = ctx;
	char address[IP_PORT_TEXT_MAX];
	assert_true(l->n < 128);
	snprintf(l->names[l->n++], sizeof(l->names[0]), "%s %u",
		ip_port_print(&e->addresses[0], address), e->priority);
}

// Priorities, localities, and in each the healthy, the draining and the others: whatever lies
// between two slices, each endpoint is told once and in the order of the whole list.
static void ops_122_endpoints_told_in_parts_are_all_of_them(void **state)
{
	enum { N = 90 };
	static const uint8_t healths[] = {LB_LEAF_HEALTHY, LB_LEAF_DRAINING, LB_LEAF_UNHEALTHY};
	struct world *w = *state;
	static struct told_endpoint told[N];
	for (int i = 0; i < N; i++) {
		told[i] = backends[0];
		told[i].addr.ip.b[15] = (uint8_t)(10 + i);
		told[i].health = healths[i % 3];
	}
	static const struct told_locality localities[] = {{"a", "", "", 1, told, 31},
		{"b", "", "", 2, told + 31, 9}, {"c", "", "", 1, told + 40, 50}};
	static const struct told_priority priorities[] = {{localities, 2}, {localities + 2, 1}};
	struct res_endpoints *many = endpoints_of(priorities, 2);
	apply(w, &vhost, (const char *const[]){"blue", "green"},
		(struct res_endpoints *[]){many, many}, 2);
	xds_res_put(&many->base);
	turns(w, 1);

	struct row_list whole = {.n = 0};
	assembler_each_endpoint(w->assembler, "blue", add_name, &whole);
	assert_int_equal(whole.n, N);
	for (uint32_t at_once = 1; at_once <= N + 1; at_once++) {
		struct row_list parts = {.n = 0};
		while (assembler_some_endpoints(
			       w->assembler, "blue", parts.n, at_once, add_name, &parts) == at_once)
			;
		assert_int_equal(parts.n, N);
		for (unsigned i = 0; i < N; i++)
			assert_string_equal(parts.names[i], whole.names[i]);
	}
	assert_int_equal(assembler_some_endpoints(w->assembler, "red", 0, 1, add_name, &whole), 0);
	char *text = ask("show endpoints cluster=green json");
	json_t *answer = json_loads(text, 0, NULL);
	assert_int_equal(json_array_size(json_object_get(answer, "data")), N);
	json_decref(answer);
	free(text);
	text = ask("show load name=green json");
	answer = json_loads(text, 0, NULL);
	json_t *row = json_array_get(json_object_get(answer, "data"), 0);
	assert_int_equal(json_integer_value(json_object_get(row, "endpoints")), N);
	json_decref(answer);
	free(text);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
RUN_SUITE("ctrl/stats/show_complete",
	IN_WORLD(ops_123_words_are_completed_from_the_table_of_commands),
	IN_WORLD(ops_123_names_are_completed_as_the_daemon_knows_them),
	IN_WORLD(help_has_the_words_of_each_usage),
	IN_WORLD(ops_124_the_manual_has_every_command_of_help),
	IN_WORLD(ops_120_endpoints_are_chosen_and_sorted),
	IN_WORLD(ops_120_errors_say_what_is_wrong_with_a_condition),
	IN_WORLD(ops_120_conditions_of_clusters_choose_in_both_tables),
	IN_WORLD(ops_122_endpoints_told_in_parts_are_all_of_them),
	IN_WORLD(load_has_a_row_of_each_worker_frontend_and_cluster),
	IN_WORLD(ops_277_load_tells_what_backends_answered_that_they_failed),
	IN_WORLD(ops_128_human_is_a_word_before_the_command),
	IN_WORLD(ops_128_human_stands_there_as_it_is))
