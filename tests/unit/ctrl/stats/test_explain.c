// SPDX-License-Identifier: Apache-2.0
// `explain`: the words it takes, and that it says what the worker's lookup finds.
#include "ctrl/assemble/assemble_inside.h"
#include "ctrl/assemble/cluster_set.h"
#include "ctrl/assemble/cluster_tree.h"
#include "ctrl/base/stats_proto.h"
#include "ctrl/stats/caller.h"
#include "ctrl/stats/explain_args.h"
#include "ctrl/stats/show.h"
#include "lb/base/base64.h"
#include "lb/base/twheel.h"
#include "lb/cluster.h"
#include "lb/index/hash.h"
#include "lb/pick/link.h"
#include "lb/pick/picker.h"
#include "lb/route/rbac.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/assembler_world.h"
#include "tests/unit/ctrl/routes_by_hand.h"

#include <jansson.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct stats_follow *no_follow; // of answers that are whole
static const struct stats_caller somebody = {.level = STATS_USER, .uid = 1000, .pid = 7};

// Words.

static int read_words(struct explain_args *a, char *text, struct lb_err *err)
{
	char *words[32], *save = NULL;
	unsigned n = 0;
	*err = (struct lb_err){0};
	for (char *w = strtok_r(text, "|", &save); w; w = strtok_r(NULL, "|", &save))
		words[n++] = w;
	return explain_args_read(a, words, n, err);
}

static void words_become_the_request(void **state)
{
	struct explain_args a;
	struct lb_err err;
	char line[] = "--authority|a.example|--path|/x?y|-H|X-A:  b c \t|-H|cookie:d|--method|PUT"
		      "|--frontend|web|-H|e:|json";
	assert_int_equal(read_words(&a, line, &err), 0);
	assert_true(str_eq(a.authority, STR("a.example")));
	assert_string_equal(a.path, "/x?y");
	assert_string_equal(a.method, "PUT");
	assert_string_equal(a.frontend, "web");
	assert_true(a.json);
	assert_false(a.is_grpc);
	assert_int_equal(a.n_fields, 3);
	assert_true(str_eq(a.fields[0].name, STR("x-a")));
	assert_true(str_eq(a.fields[0].value, STR("b c")));
	assert_true(str_eq(a.fields[2].name, STR("e")));
	assert_int_equal(a.fields[2].value.len, 0);
}

// HX-01; VH-11
static void kind_of_the_request_is_what_its_content_type_says(void **state)
{
	struct explain_args a;
	struct lb_err err;
	char grpc[] = "--authority|a|--path|/|-H|content-type: application/grpc+proto";
	assert_int_equal(read_words(&a, grpc, &err), 0);
	assert_true(a.is_grpc);
	assert_string_equal(a.method, "POST");
	char web[] = "--authority|a|--path|/|-H|content-type: application/grpc-web";
	assert_int_equal(read_words(&a, web, &err), 0);
	assert_false(a.is_grpc);
	assert_string_equal(a.method, "GET");
	char both[] = "--authority|a|--path|/|-H|content-type: application/grpc|-H|content-type: x";
	assert_int_equal(read_words(&a, both, &err), 0);
	assert_false(a.is_grpc); // the last one counts, as when a request is read
	char asked[] = "--authority|a|--path|/|--grpc";
	assert_int_equal(read_words(&a, asked, &err), 0);
	assert_true(a.is_grpc);
	assert_true(str_eq(a.fields[0].value, STR("application/grpc")));
	char host[] = "--path|/|-H|Host: h.example ";
	assert_int_equal(read_words(&a, host, &err), 0);
	assert_true(str_eq(a.authority, STR("h.example")));
	assert_int_equal(a.n_fields, 0);
}

static void words_that_make_no_request_are_refused(void **state)
{
	static const char *const bad[][2] = {{"--path|/", "--authority"},
		{"--authority|a", "--path"}, {"--authority", "--authority needs a value"},
		{"-H", "-H needs a value"}, {"-H|novalue", "NAME: VALUE"},
		{"-H|:path: /", "NAME: VALUE"}, {"what", "'what' is not an option"},
		{"--authority|a|--path|/|--from|b", "--from 'b': not an address"},
		{"--authority|a|--path|/|--grpc|--http", "--grpc and --http"},
		{"--authority|a|--path|/|--http|-H|content-type: application/grpc",
			"content-type says otherwise"},
		{"--authority|a|--path|/|--grpc|-H|content-type: text/html",
			"content-type says otherwise"}};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct explain_args a;
		struct lb_err err;
		char line[128];
		snprintf(line, sizeof(line), "%s", bad[i][0]);
		assert_true(read_words(&a, line, &err) < 0);
		assert_non_null(strstr(err.text, bad[i][1]));
	}
	char many[16 * (EXPLAIN_MAX_FIELDS + 1)];
	char *words[2 * (EXPLAIN_MAX_FIELDS + 1)];
	for (unsigned i = 0; i <= EXPLAIN_MAX_FIELDS; i++) {
		snprintf(many + (size_t)16 * i, 16, "k%u: v", i);
		words[2 * i] = "-H";
		words[2 * i + 1] = many + (size_t)16 * i;
	}
	struct explain_args a;
	struct lb_err err;
	assert_true(explain_args_read(&a, words, 2 * (EXPLAIN_MAX_FIELDS + 1), &err) < 0);
	assert_non_null(strstr(err.text, "more than 128 headers"));
}

// Answers.

static const struct lb_header_match_conf key_is_v[] = {
	{.name = STR("key"), .kind = LB_HEADER_EXACT, .text = STR("v")}};
static const struct lb_filter chain[] = {
	{.name = STR("chaos"), .kind = LB_FILTER_FAULT, .fault = {.max_active = UINT32_MAX}}};
static const struct lb_filter override[] = {{.name = STR("chaos"),
	.kind = LB_FILTER_FAULT,
	.fault = {.abort = LB_ABORT_HTTP,
		.abort_status = 418,
		.abort_numerator = 1,
		.abort_denominator = 4,
		.max_active = UINT32_MAX}}};
static const struct lb_route_policy limited = {
	.timeouts = {.has_max = true, .max_ns = 2000000000, .idle_ns = 9000000000},
	.overrides = {override, 1}};
static const struct res_vhost vhosts[] = {
	{"exact", DOMAINS("*.b.example", "a.example"),
		ROUTES({PREFIX("/x"), CLUSTERS({"blue", 1}), .headers = key_is_v, .n_headers = 1,
			       .index = 0},
			{SOME("canary", "/x", 250000), CLUSTERS({"green", 1}), .index = 2},
			{WITH_POLICY(&limited, "", LB_PATH_PREFIX, "/", LB_PPM_ALWAYS),
				CLUSTERS({"blue", 3}, {"green", 1}, {"red", 0}), .index = 3}),
		.hash = {1, 1}},
	{"any", DOMAINS("*"),
		ROUTES({EXACT("/redirect"), .action = LB_ACTION_UNSUPPORTED},
			{PREFIX("/grpc"), CLUSTERS({"blue", 1}), .grpc_only = true, .index = 1}),
		.hash = {2, 2}},
};

static void give(struct world *w, const struct res_drop *drops, uint32_t n_drops)
{
	static const struct told_endpoint backend[] = {
		{{{{[10] = 255, [11] = 255, [12] = 10, [15] = 1}}, 80}, LB_LEAF_HEALTHY, 1}};
	static const struct told_locality locality = {"", "", "", 1, backend, 1};
	static const struct told_priority priority = {&locality, 1};
	struct res_endpoints *e = endpoints_of(&priority, 1);
	e->drops = drops;
	w->config.stream_idle_timeout_s = 300;
	e->n_drops = n_drops;
	struct res_listener *l = listener_of("1", chain, 1);
	struct res_route_config *r = routes_of(vhosts, 2);
	struct res_endpoints *list[] = {e, NULL, e};
	update(w, 0, config_of(l, r, (const char *[]){"blue", "green", "red"}, list, 3));
	xds_res_put(&e->base);
	xds_res_put(&l->base);
	xds_res_put(&r->base);
	turns(w, 1);
	struct lb_event up = {
		.kind = LB_EVENT_CONNECTED, .endpoint_id = expect_command(w, LB_COMMAND_CONNECT)};
	assert_true(spsc_write(&w->link->events, &up));
	turns(w, 1);
}

static char *ask(struct world *w, const char *command)
{
	struct show *show = show_new(&(struct show_conf){.config = &w->config,
		.workers = w->workers,
		.assembler = w->assembler,
		.wheel = w->wheel});
	char *text = show_answer(show, &somebody, command, &no_follow);
	show_free(show);
	return text;
}

static json_t *explain(struct world *w, const char *words)
{
	char command[STATS_MAX_COMMAND];
	snprintf(command, sizeof(command), "explain %s json", words);
	char *text = ask(w, command);
	json_t *whole = json_loads(text, 0, NULL);
	if (!whole)
		fail_msg("%s", text);
	json_t *data = json_incref(json_object_get(whole, "data"));
	json_decref(whole);
	free(text);
	return data;
}

static const char *cell(json_t *data, const char *table, size_t row, const char *column)
{
	json_t *value = json_object_get(json_array_get(json_object_get(data, table), row), column);
	static char number[32];
	if (json_is_string(value))
		return json_string_value(value);
	if (!json_is_integer(value))
		return "null";
	snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(value));
	return number;
}

static size_t rows(json_t *data, const char *table)
{
	return json_array_size(json_object_get(data, table));
}

static void the_first_match_ends_the_story(void **state)
{
	struct world *w = *state;
	give(w, NULL, 0);
	json_t *d = explain(w, "--authority A.example --path /x/y?z -H \"Key: v\"");
	assert_string_equal(json_string_value(json_object_get(d, "virtual_host")), "exact");
	assert_string_equal(json_string_value(json_object_get(d, "domain")), "a.example");
	assert_int_equal(rows(d, "looked_at"), 1);
	assert_string_equal(cell(d, "looked_at", 0, "verdict"), "matches");
	assert_string_equal(
		cell(d, "looked_at", 0, "matchers"), "prefix \"/x\", header key exact \"v\"");
	assert_string_equal(cell(d, "outcomes", 0, "action"), "cds:blue");
	assert_string_equal(cell(d, "outcomes", 0, "percent"), "100");
	assert_string_equal(cell(d, "clusters", 0, "state"), "READY");
	assert_string_equal(cell(d, "clusters", 0, "pick"), "10.0.0.1:80");
	assert_string_equal(cell(d, "effects", 0, "time_limit"), "none");
	assert_string_equal(cell(d, "effects", 0, "idle_limit"), "300s");
	assert_string_equal(cell(d, "filters", 0, "config"), "{\"type\":\"fault\"}");
	json_decref(d);
}

// A28-O04, A28-W01: odds instead of one draw.
static void fractions_and_weights_become_odds(void **state)
{
	struct world *w = *state;
	give(w, NULL, 0);
	json_t *d = explain(w, "--authority x.b.example --path /x -H key:u -H \"KEY: v\"");
	assert_string_equal(json_string_value(json_object_get(d, "domain")), "*.b.example");
	assert_int_equal(rows(d, "looked_at"), 3);
	assert_string_equal(
		cell(d, "looked_at", 0, "verdict"), "no: key exact \"v\"; it is \"u,v\"");
	assert_string_equal(
		cell(d, "looked_at", 1, "verdict"), "matches 25 % of such requests, by a draw");
	assert_string_equal(cell(d, "looked_at", 1, "route"), "2"); // as the resource counts
	assert_string_equal(cell(d, "looked_at", 2, "verdict"), "matches");
	assert_int_equal(rows(d, "outcomes"), 2);
	assert_string_equal(cell(d, "outcomes", 0, "percent"), "25");
	assert_string_equal(cell(d, "outcomes", 0, "name"), "canary");
	assert_string_equal(cell(d, "outcomes", 1, "percent"), "75");
	assert_string_equal(cell(d, "outcomes", 1, "action"), "weighted:blue_green_red_1");
	assert_int_equal(rows(d, "clusters"), 3); // green; blue, green; never red
	assert_string_equal(cell(d, "clusters", 0, "cluster"), "green");
	assert_non_null(strstr(cell(d, "clusters", 0, "pick"), "no such cluster"));
	assert_string_equal(cell(d, "clusters", 1, "percent"), "56.25");
	assert_string_equal(cell(d, "clusters", 2, "percent"), "18.75");
	assert_string_equal(cell(d, "effects", 1, "time_limit"), "2s");
	assert_string_equal(cell(d, "effects", 1, "idle_limit"), "9s");
	assert_string_equal(cell(d, "filters", 0, "config"), "{\"type\":\"fault\"}"); // of route 2
	assert_non_null(strstr(cell(d, "filters", 1, "config"), "HTTP status 418, 25 %"));
	json_decref(d);
}

// A27-I01: drops are told with what they leave, category by category.
static void drops_become_odds(void **state)
{
	static const struct res_drop drops[] = {{"lb", 500000}, {"throttle", 100000}};
	struct world *w = *state;
	give(w, drops, 2);
	json_t *d = explain(w, "--authority a.example --path /x -H \"key: v\"");
	assert_string_equal(cell(d, "clusters", 0, "percent"), "100");
	assert_string_equal(cell(d, "clusters", 0, "left"), "45");
	assert_int_equal(rows(d, "drops"), 2);
	assert_string_equal(cell(d, "drops", 0, "cluster"), "blue");
	assert_string_equal(cell(d, "drops", 0, "category"), "lb");
	assert_string_equal(cell(d, "drops", 0, "percent"), "50");
	assert_string_equal(cell(d, "drops", 1, "category"), "throttle");
	assert_string_equal(cell(d, "drops", 1, "percent"), "5");
	json_decref(d);
	d = explain(w, "--authority a.example --path /"); // three quarters go to blue
	assert_string_equal(cell(d, "clusters", 0, "left"), "33.75");
	assert_string_equal(cell(d, "drops", 0, "percent"), "37.5");
	json_decref(d);
}

static void what_fails_says_how(void **state)
{
	struct world *w = *state;
	give(w, NULL, 0);
	json_t *d = explain(w, "--authority other --path /redirect");
	assert_string_equal(json_string_value(json_object_get(d, "virtual_host")), "any");
	assert_non_null(strstr(cell(d, "outcomes", 0, "action"), "14, HTTP 503"));
	json_decref(d);
	d = explain(w, "--authority other --path /grpc.S/M");
	assert_non_null(strstr(cell(d, "looked_at", 0, "verdict"), "the request is not"));
	assert_non_null(strstr(cell(d, "outcomes", 0, "action"), "14, HTTP 404"));
	assert_string_equal(cell(d, "outcomes", 0, "route"), "null");
	json_decref(d);
	d = explain(w, "--authority other --path /grpc.S/M --grpc");
	assert_string_equal(cell(d, "outcomes", 0, "action"), "cds:blue");
	assert_string_equal(cell(d, "effects", 0, "idle_limit"), "none"); // TH-98
	json_decref(d);
	d = explain(w, "--authority other --path /nothing");
	assert_int_equal(rows(d, "looked_at"), 0);
	assert_non_null(strstr(cell(d, "outcomes", 0, "action"), "no route matches"));
	json_decref(d);
}

static void expect_refusal(struct world *w, const char *command, const char *part)
{
	char *text = ask(w, command);
	assert_int_equal(strncmp(text, STATS_ERROR, strlen(STATS_ERROR)), 0);
	assert_non_null(strstr(text, part));
	assert_null(strstr(text, "\n\n"));
	free(text);
}

static void questions_that_cannot_be_answered_are_refused(void **state)
{
	struct world *w = *state;
	expect_refusal(w, "explain --authority a --path /", "no routes: no configuration");
	give(w, NULL, 0);
	expect_refusal(w, "explain --authority a", "needs --authority and --path");
	expect_refusal(
		w, "explain --authority a --path / --frontend db", "no frontend is called 'db'");
	expect_refusal(w, "explain --authority \"a", "a quote is not closed");
	expect_refusal(w, "explain --frontend \"\\n\\n\" --authority a --path /", "\\n\\n");
	expect_refusal(w, "explai", "unknown command 'explai'");
	w->config.n_frontends = 2; // which one?
	expect_refusal(w, "explain --authority a --path /", "there are 2 frontends");
	w->config.n_frontends = 1;
}

static void text_form_has_the_same_tables(void **state)
{
	static const char *const parts[] = {"virtual_host: exact\n", "domain: a.example\n",
		"looked_at:\n", "outcomes:\n", "clusters:\n", "effects:\n", "no: key exact",
		"the request has none"};
	struct world *w = *state;
	give(w, NULL, 0);
	char *text = ask(w, "explain --authority a.example --path /x --frontend web --http");
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		assert_non_null(strstr(text, parts[i]));
	free(text);
}

// However many routes say no, the one that takes the request is told.
static void the_end_of_a_long_story_is_told(void **state)
{
	enum { N = 1500 };
	struct world *w = *state;
	static struct res_route routes[N];
	const struct res_weighted_cluster to_blue[] = {{"blue", 1}};
	for (uint32_t i = 0; i < N; i++)
		routes[i] = (struct res_route){PREFIX("/"), .clusters = to_blue, .n_clusters = 1,
			.headers = key_is_v, .n_headers = i + 1 < N, .index = i};
	const struct res_vhost v = {
		"long", DOMAINS("*"), .routes = routes, .n_routes = N, .hash = {5, 5}};
	apply(w, &v, (const char *[]){"blue"}, &(struct res_endpoints *){NULL}, 1);
	json_t *d = explain(w, "--authority a --path /");
	assert_int_equal(rows(d, "looked_at"), 1000);
	assert_string_equal(cell(d, "looked_at", 999, "route"), "1499");
	assert_string_equal(cell(d, "outcomes", 0, "route"), "1499");
	assert_int_equal(json_integer_value(json_object_get(d, "not_told")), 500);
	json_decref(d);
}

// A pinned authority serves whatever the client says (docs/decisions/authority-per-request.md).
static void a_pinned_authority_is_the_one_that_counts(void **state)
{
	struct world *w = *state;
	w->frontends[0].authority = (char[]){"a.example"};
	give(w, NULL, 0);
	json_t *d = explain(w, "--authority other --path /y");
	assert_string_equal(json_string_value(json_object_get(d, "authority")), "a.example");
	assert_string_equal(json_string_value(json_object_get(d, "virtual_host")), "exact");
	json_decref(d);
	w->frontends[0].authority = NULL;
}

static void give_routes(
	struct world *w, struct res_listener *l, const struct res_vhost *v, bool ignore_port)
{
	static const struct told_endpoint backend[] = {
		{{{{[10] = 255, [11] = 255, [12] = 10, [15] = 1}}, 80}, LB_LEAF_HEALTHY, 1}};
	static const struct told_locality locality = {"", "", "", 1, backend, 1};
	static const struct told_priority priority = {&locality, 1};
	struct res_endpoints *e = endpoints_of(&priority, 1);
	struct res_route_config *r = routes_of(v, 1);
	struct res_endpoints *list[] = {e, NULL};
	r->ignore_port = ignore_port;
	update(w, 0, config_of(l, r, (const char *[]){"blue", "green"}, list, 2));
	xds_res_put(&e->base);
	xds_res_put(&l->base);
	xds_res_put(&r->base);
	turns(w, 1);
}

// A28-H06 to A28-H12: pseudo-headers, gRPC's own ones, those of the connection, several as one.
static void a_matcher_is_told_with_the_value_that_it_saw(void **state)
{
	static const struct lb_header_match_conf on[] = {
		{.name = STR(":method"), .kind = LB_HEADER_EXACT, .text = STR("x")},
		{.name = STR("host"), .kind = LB_HEADER_EXACT, .text = STR("x")},
		{.name = STR("user-agent"), .kind = LB_HEADER_EXACT, .text = STR("x")},
		{.name = STR("te"), .kind = LB_HEADER_EXACT, .text = STR("x")},
		{.name = STR("k-bin"), .kind = LB_HEADER_EXACT, .text = STR("x")},
		{.name = STR("cookie"), .kind = LB_HEADER_EXACT, .text = STR("x")},
		{.name = STR("none"), .kind = LB_HEADER_EXACT, .text = STR("x")}};
	static const char *const plain[] = {"it is \"GET\"", "it is \"a.example\"", "it is \"ua\"",
		"it is hidden from matchers", "it is hidden from matchers", "it is \"c=1; d=2\"",
		"the request has none"};
	static const char *const grpc[] = {"it is hidden from matchers",
		"it is hidden from matchers", "it is hidden from matchers",
		"it is hidden from matchers", "it is hidden from matchers", "it is \"c=1; d=2\"",
		"the request has none"};
	enum { N = sizeof(on) / sizeof(on[0]) };
	static const struct res_weighted_cluster to_blue[] = {{"blue", 1}};
	struct res_route routes[N];
	for (uint32_t i = 0; i < N; i++)
		routes[i] = (struct res_route){PREFIX("/"), .clusters = to_blue, .n_clusters = 1,
			.headers = &on[i], .n_headers = 1, .index = i};
	const struct res_vhost v = {
		"seen", DOMAINS("*"), .routes = routes, .n_routes = N, .hash = {6, 6}};
	struct world *w = *state;
	give_routes(w, listener_of("1", NULL, 0), &v, false);
#define FIELDS                                                                                     \
	"--authority a.example --path / -H user-agent:ua -H te:trailers -H k-bin:eA "              \
	"-H cookie:c=1 -H cookie:d=2"
	for (int is_grpc = 0; is_grpc < 2; is_grpc++) {
		json_t *d = explain(w, is_grpc ? FIELDS " --grpc" : FIELDS);
		assert_int_equal(rows(d, "looked_at"), N);
		for (uint32_t i = 0; i < N; i++) {
			char expected[128];
			snprintf(expected, sizeof(expected), "no: %s exact \"x\"; %s",
				i == 1 ? "host" : on[i].name.p, is_grpc ? grpc[i] : plain[i]);
			assert_string_equal(cell(d, "looked_at", i, "verdict"), expected);
		}
		json_decref(d);
	}
}

// A28-H15
static void a_pin_is_no_header(void **state)
{
	static const struct lb_header_match_conf on = {
		.name = STR(":authority"), .kind = LB_HEADER_EXACT, .text = STR("x")};
	static const struct res_weighted_cluster to_blue[] = {{"blue", 1}};
	const struct res_route route = {
		PREFIX("/"), .clusters = to_blue, .n_clusters = 1, .headers = &on, .n_headers = 1};
	const struct res_vhost v = {
		"pin", DOMAINS("a.example"), .routes = &route, .n_routes = 1, .hash = {8, 8}};
	struct world *w = *state;
	w->frontends[0].authority = (char[]){"a.example"};
	give_routes(w, listener_of("1", NULL, 0), &v, false);
	json_t *d = explain(w, "--authority other --path /y");
	assert_string_equal(json_string_value(json_object_get(d, "domain")), "a.example");
	assert_string_equal(
		cell(d, "looked_at", 0, "verdict"), "no: :authority exact \"x\"; it is \"other\"");
	json_decref(d);
	w->frontends[0].authority = NULL;
}

// VH-06
static void the_domain_is_told_that_the_table_matched(void **state)
{
	const struct res_vhost v = {"ports", DOMAINS("foo.com:80*", "foo.com"),
		ROUTES({PREFIX("/"), CLUSTERS({"blue", 1})}), .hash = {7, 7}};
	struct world *w = *state;
	for (int ignore_port = 0; ignore_port < 2; ignore_port++) {
		give_routes(w, listener_of(ignore_port ? "2" : "1", NULL, 0), &v, ignore_port);
		json_t *d = explain(w, "--authority foo.com:8080 --path /");
		assert_string_equal(json_string_value(json_object_get(d, "domain")),
			ignore_port ? "foo.com" : "foo.com:80*");
		json_decref(d);
	}
}

// HX-17
static void connect_is_told_to_fail(void **state)
{
	struct world *w = *state;
	give(w, NULL, 0);
	json_t *d = explain(w, "--authority a.example --path /y --method CONNECT");
	assert_int_equal(rows(d, "looked_at"), 0);
	assert_int_equal(rows(d, "clusters"), 0);
	assert_string_equal(cell(d, "outcomes", 0, "action"),
		"none: fails (14, HTTP 404), CONNECT is never routed");
	json_decref(d);
}

static json_t *explain_cookie(struct world *w, const char *content)
{
	char code[64] = "", words[128];
	base64_encode(content, strlen(content), code);
	snprintf(words, sizeof(words), "--authority a --path /y -H \"cookie: sid=%s\"", code);
	return explain(w, words);
}

// SA-10, SA-11
static void a_cookie_takes_the_place_of_the_draw(void **state)
{
	static const struct lb_filter sticky[] = {{.name = STR("sticky"),
		.kind = LB_FILTER_SESSION,
		.session = {.enabled = true, .cookie = STR("sid")}}};
	const struct res_vhost v = {"any", DOMAINS("*"),
		ROUTES({PREFIX("/"), CLUSTERS({"blue", 3}, {"green", 1}, {"red", 0})}),
		.hash = {8, 8}};
	struct world *w = *state;
	give_routes(w, listener_of("1", sticky, 1), &v, false);
	json_t *d = explain_cookie(w, "10.9.9.9:80,10.0.0.1:80;blue");
	assert_int_equal(rows(d, "clusters"), 1);
	assert_string_equal(cell(d, "clusters", 0, "cluster"), "blue");
	assert_string_equal(cell(d, "clusters", 0, "percent"), "100");
	assert_int_equal(rows(d, "sessions"), 2);
	assert_string_equal(cell(d, "sessions", 1, "drawn"), "green");
	assert_string_equal(cell(d, "sessions", 1, "cookie"), "sid");
	assert_string_equal(cell(d, "sessions", 1, "cluster"), "blue");
	assert_string_equal(cell(d, "sessions", 1, "because"), "the cookie names it");
	assert_string_equal(cell(d, "sessions", 1, "endpoint"), "10.0.0.1:80");
	json_decref(d);
	d = explain_cookie(w, "10.0.0.1:80;red"); // weight 0
	assert_int_equal(rows(d, "clusters"), 2);
	assert_string_equal(cell(d, "clusters", 0, "percent"), "75");
	assert_string_equal(cell(d, "sessions", 0, "endpoint"), "10.0.0.1:80");
	assert_string_equal(cell(d, "sessions", 1, "cluster"), "green");
	assert_string_equal(cell(d, "sessions", 1, "because"),
		"it is drawn, the route does not have the cookie's");
	assert_string_equal(cell(d, "sessions", 1, "endpoint"), "as picked");
	json_decref(d);
	d = explain(w, "--authority a --path /y");
	assert_int_equal(rows(d, "clusters"), 2);
	assert_string_equal(
		cell(d, "sessions", 0, "because"), "it is drawn, the request has no such cookie");
	assert_string_equal(cell(d, "sessions", 0, "endpoint"), "as picked");
	json_decref(d);
}

static const struct lb_cell *tell_hash(const struct lb_picker *p, struct lb_pick_ctx *ctx)
{
	static char texts[8][32]; // of several answers in a row
	static unsigned n;
	char *text = texts[n++ % 8];
	snprintf(text, sizeof(texts[0]), "%llx", (unsigned long long)lb_pick_hash(ctx));
	return lb_pick_other(ctx, (struct lb_pick){.kind = LB_PICK_FAIL, .text = text});
}

// HP-01, HP-03: with the request's own hash, also where the cluster fails.
static void a_picker_is_asked_with_the_hash_of_the_request(void **state)
{
	static const struct lb_hash_policy by_key[] = {{.kind = LB_HASH_HEADER,
		.header = STR("key"),
		.pattern = STR("^(..).*$"),
		.substitution = STR("\\1")}};
	static const struct lb_route_policy hashes = {.hash = by_key, .n_hash = 1};
	const struct res_vhost v = {"any", DOMAINS("*"),
		ROUTES({WITH_POLICY(&hashes, "", LB_PATH_PREFIX, "/", 500000),
			       CLUSTERS({"blue", 1})},
			{PREFIX("/"), CLUSTERS({"blue", 1}), .index = 1}),
		.hash = {9, 9}};
	struct lb_picker picker = {.n_refs = 1, .pick = tell_hash};
	struct world *w = *state;
	give_routes(w, listener_of("1", NULL, 0), &v, false);
	struct cluster *blue = cluster_set_find(w->assembler->clusters, "blue");
	struct lb_cluster *c = cluster_tree_object(blue->tree);
	const struct lb_cluster before = *c;
	c->picker = &picker;
	c->state = LB_TRANSIENT_FAILURE;
	json_t *d = explain(w, "--authority a --path / -H key:value");
	c->picker = before.picker;
	c->state = before.state;
	char expected[32];
	snprintf(expected, sizeof(expected), "%llx", (unsigned long long)lb_xxh64("va", 2));
	assert_string_equal(cell(d, "clusters", 0, "pick"), expected);
	assert_string_not_equal(cell(d, "clusters", 1, "pick"), expected); // it has no policy
	json_decref(d);
}

// A41-13, A41-18: by which policy, for whom.
static void access_control_is_told_with_the_policy_that_decides(void **state)
{
	static const struct lb_rbac_policy near = {.name = STR("near"),
		.rule = {.kind = LB_RBAC_SOURCE_IP,
			.range = {{{[10] = 0xff, [11] = 0xff, [12] = 10}}, IP_V4_BITS + 8}}};
	static const struct lb_rbac_rules rules = {
		.action = LB_RBAC_ALLOW, .policies = &near, .n = 1};
	static const struct lb_rbac_conf conf = {.rules = &rules};
	static const struct lb_filter list[] = {
		{.name = STR("access"), .kind = LB_FILTER_RBAC, .rbac.conf = &conf}};
	const struct res_vhost v = {
		"any", DOMAINS("*"), ROUTES({PREFIX("/"), CLUSTERS({"blue", 1})}), .hash = {9, 9}};
	static const char *const wanted[][2] = {
		{"--authority a --path / --from 10.1.2.3", "allows: policy near"},
		{"--authority a --path / --from 192.0.2.1", "denies: no policy"},
		{"--authority a --path /", "denies: no policy"}};
	struct world *w = *state;
	give_routes(w, listener_of("1", list, 1), &v, false);
	for (size_t i = 0; i < 3; i++) {
		json_t *d = explain(w, wanted[i][0]);
		if (!strstr(cell(d, "filters", 0, "config"), wanted[i][1]))
			fail_msg("%s: %s", wanted[i][0], cell(d, "filters", 0, "config"));
		json_decref(d);
	}
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, world_set_up, world_tear_down)

RUN_SUITE("ctrl/explain", cmocka_unit_test(words_become_the_request),
	cmocka_unit_test(kind_of_the_request_is_what_its_content_type_says),
	cmocka_unit_test(words_that_make_no_request_are_refused),
	CASE(the_first_match_ends_the_story), CASE(fractions_and_weights_become_odds),
	CASE(drops_become_odds), CASE(what_fails_says_how),
	CASE(questions_that_cannot_be_answered_are_refused), CASE(text_form_has_the_same_tables),
	CASE(a_pinned_authority_is_the_one_that_counts), CASE(the_end_of_a_long_story_is_told),
	CASE(a_matcher_is_told_with_the_value_that_it_saw), CASE(a_pin_is_no_header),
	CASE(the_domain_is_told_that_the_table_matched), CASE(connect_is_told_to_fail),
	CASE(a_cookie_takes_the_place_of_the_draw),
	CASE(access_control_is_told_with_the_policy_that_decides),
	CASE(a_picker_is_asked_with_the_hash_of_the_request))
