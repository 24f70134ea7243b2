// SPDX-License-Identifier: Apache-2.0
// `show routes`: gRFC A28's own example, and what A28 does not know.
#include "ctrl/stats/caller.h"
#include "ctrl/stats/show.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/assembler_world.h"
#include "tests/unit/ctrl/routes_by_hand.h"

#include <jansson.h>

#include <stdlib.h>
#include <string.h>

static struct stats_follow *no_follow; // of answers that are whole
static const struct stats_caller somebody = {.level = STATS_USER, .uid = 1000, .pid = 7};

static const char *const clusters[] = {"cluster_1", "cluster_2", "cluster_3"};

static void give(struct world *w, const struct res_vhost *v)
{
	struct res_endpoints *none = NULL;
	apply(w, v, clusters, (struct res_endpoints *[]){none, none, none}, 3);
	await_patterns(w, 0);
	assert_string_equal(assembler_frontend_error(w->assembler, 0), "");
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

static json_t *ask_json(struct world *w)
{
	char *text = ask(w, "show routes json");
	json_t *whole = json_loads(text, 0, NULL);
	assert_non_null(whole);
	json_t *frontends = json_incref(json_object_get(whole, "data"));
	json_decref(whole);
	free(text);
	return frontends;
}

static json_t *vhost_of(json_t *frontends)
{
	return json_array_get(json_object_get(json_array_get(frontends, 0), "virtual_hosts"), 0);
}

static json_t *routing_of(json_t *frontends)
{
	json_t *config = json_object_get(vhost_of(frontends), "loadBalancingConfig");
	return json_object_get(json_array_get(config, 0), "xds_routing_experimental");
}

#define C1_C2 CLUSTERS({"cluster_1", 75}, {"cluster_2", 25})
static const struct res_vhost appendix = {"v", DOMAINS("*"),
	ROUTES({EXACT("/service_1/method_1"), CLUSTERS({"cluster_1", 1})},
		{EXACT("/service_1/method_2"), CLUSTERS({"cluster_1", 1})},
		{PREFIX("/service_2/method_2"), C1_C2}, {PREFIX("/service_2"), C1_C2},
		{REGEX("^/service_2/method_3$"), CLUSTERS({"cluster_1", 99}, {"cluster_3", 1})})};

// As printed there; but its prefix "/service_2/method_1" is that of the response, method_2.
static const char appendix_config[] =
	"{'xds_routing_experimental':{"
	"'Action':{"
	"'cds:cluster_1':{'childPolicy':[{'cds_experimental':{'cluster':'cluster_1'}}]},"
	"'weighted:cluster_1_cluster_2_1':{'childPolicy':[{'weighted_target_experimental':"
	"{'targets':{"
	"'cluster_1':{'weight':75,'childPolicy':[{'cds_experimental':{'cluster':'cluster_1'}}]},"
	"'cluster_2':{'weight':25,'childPolicy':[{'cds_experimental':{'cluster':'cluster_2'}}]}"
	"}}}]},"
	"'weighted:cluster_1_cluster_3_1':{'childPolicy':[{'weighted_target_experimental':"
	"{'targets':{"
	"'cluster_1':{'weight':99,'childPolicy':[{'cds_experimental':{'cluster':'cluster_1'}}]},"
	"'cluster_3':{'weight':1,'childPolicy':[{'cds_experimental':{'cluster':'cluster_3'}}]}"
	"}}}]}},"
	"'Route':["
	"{'path':'/service_1/method_1','action':'cds:cluster_1'},"
	"{'path':'/service_1/method_2','action':'cds:cluster_1'},"
	"{'prefix':'/service_2/method_2','action':'weighted:cluster_1_cluster_2_1'},"
	"{'prefix':'/service_2','action':'weighted:cluster_1_cluster_2_1'},"
	"{'regex':'^/service_2/method_3$','action':'weighted:cluster_1_cluster_3_1'}]}}";

static json_t *from_text(const char *quoted)
{
	char *text = strdup(quoted);
	for (char *c = text; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	json_t *tree = json_loads(text, 0, NULL);
	assert_non_null(tree);
	free(text);
	return tree;
}

static void the_appendix_of_a28_is_printed_as_it_stands_there(void **state)
{
	struct world *w = *state;
	give(w, &appendix);
	json_t *frontends = ask_json(w), *expected = from_text(appendix_config);
	size_t i;
	json_t *route, *routes = json_object_get(routing_of(frontends), "Route");
	assert_int_equal(json_array_size(routes), 5);
	json_array_foreach(routes, i, route) // what we add to each
		json_object_del(route, "index");
	assert_true(json_equal(
		routing_of(frontends), json_object_get(expected, "xds_routing_experimental")));
	json_decref(frontends);
	json_decref(expected);
}

// A28-N04, over the configurations that really served.
static void names_survive_updates(void **state)
{
	struct world *w = *state;
	give(w, &appendix);
	const struct res_vhost later = {"v", DOMAINS("*"),
		ROUTES({PREFIX("/"), CLUSTERS({"cluster_1", 60}, {"cluster_2", 40})},
			{PREFIX("/x"), CLUSTERS({"cluster_1", 99}, {"cluster_3", 1})}),
		.hash = {2, 2}};
	give(w, &later);
	json_t *frontends = ask_json(w);
	json_t *routes = json_object_get(routing_of(frontends), "Route");
	for (size_t i = 0; i < 2; i++)
		assert_string_equal(
			json_string_value(json_object_get(json_array_get(routes, i), "action")),
			i ? "weighted:cluster_1_cluster_3_1" : "weighted:cluster_1_cluster_2_1");
	json_decref(frontends);
}

#define HEADER(...)                                                                                \
	{                                                                                          \
		.name = STR("k"), __VA_ARGS__                                                      \
	}
static const struct lb_header_match_conf every_header[] = {
	HEADER(.kind = LB_HEADER_EXACT, .text = STR("v"), .invert = true),
	HEADER(.kind = LB_HEADER_PREFIX, .text = STR("p"), .ignore_case = true),
	HEADER(.kind = LB_HEADER_SUFFIX, .text = STR("s")),
	HEADER(.kind = LB_HEADER_CONTAINS, .text = STR("c")),
	HEADER(.kind = LB_HEADER_REGEX, .text = STR("r+")),
	HEADER(.kind = LB_HEADER_RANGE, .start = -1, .end = 9),
	HEADER(.kind = LB_HEADER_PRESENT, .present = false),
};
static const struct res_ignored_route ignored[] = {{1, "q", "match.query_parameters is set"}};
static const struct lb_hash_policy by_user[] = {
	{.kind = LB_HASH_HEADER, .header = STR("user"), .terminal = true}};
static const struct lb_route_policy of_users = {
	.timeouts = {.has_max = true, .max_ns = 1500 * NS_PER_MS, .idle_ns = LB_NO_TIMEOUT},
	.retry = {1u << 14 | 1u << 1, 3, 25 * NS_PER_MS, 250 * NS_PER_MS},
	.hash = by_user,
	.n_hash = 1,
};
static const struct res_vhost rich = {"v", DOMAINS("a.example", "*.b.example"),
	ROUTES({.name = "r",
		       .path_kind = LB_PATH_PREFIX,
		       .path = "/",
		       .path_len = 1,
		       .ppm = 200000,
		       .grpc_only = true,
		       .headers = every_header,
		       .n_headers = 7,
		       CLUSTERS({"cluster_1", 1}),
		       .policy = &of_users},
		{PREFIX("/redirect"), .action = LB_ACTION_UNSUPPORTED, .index = 2}),
	.ignored = ignored, .n_ignored = 1, .hash = {7, 7}};

static void matchers_policies_and_ignored_routes_are_shown(void **state)
{
	struct world *w = *state;
	give(w, &rich);
	json_t *frontends = ask_json(w);
	json_t *expected = from_text(
		"[{'prefix':'/','case_sensitive':false,'headers':["
		"{'name':'k','exact_match':'v','invert_match':true},"
		"{'name':'k','prefix_match':'p','ignore_case':true},"
		"{'name':'k','suffix_match':'s'},{'name':'k','contains_match':'c'},"
		"{'name':'k','regex_match':'r+'},"
		"{'name':'k','range_match':{'start':-1,'end':9}},"
		"{'name':'k','present_match':false}],"
		"'match_fraction':200000,'grpc':true,'action':'cds:cluster_1','name':'r','index':0,"
		"'policy':{'max_stream_duration':'1.5s','idle_timeout':'none','retry_policy':{'"
		"retry_on':"
		"['cancelled','unavailable'],'max_attempts':3,'base_interval':'0.025s',"
		"'max_interval':'0.25s'},'hash_policy':[{'header':'user','terminal':true}]}},"
		"{'prefix':'/redirect','action':null,'index':2}]");
	assert_true(json_equal(json_object_get(routing_of(frontends), "Route"), expected));
	json_t *reason = json_object_get(
		json_array_get(json_object_get(vhost_of(frontends), "ignored_routes"), 0),
		"reason");
	assert_string_equal(json_string_value(reason), "match.query_parameters is set");
	json_decref(expected);
	json_decref(frontends);
	char *text = ask(w, "show routes");
	static const char *const parts[] = {"frontend web: routes routes\n",
		"virtual host v: a.example, *.b.example\n", "      cds:cluster_1\n",
		"0 prefix \"/\" in any case, header k not exact \"v\", header k prefix \"p\" in "
		"any "
		"case, header k suffix \"s\", header k contains \"c\", header k regex \"r+\", "
		"header k in [-1, 9), header k absent, 20 % of the requests, gRPC -> "
		"cds:cluster_1 (r)\n",
		"2 prefix \"/redirect\" -> fails, its action is not supported\n",
		"ignored routes: 1\n      1 match.query_parameters is set\n"};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		assert_non_null(strstr(text, parts[i]));
	free(text);
}

// An empty line ends an answer, and a terminal obeys escape sequences.
static void texts_of_the_server_cannot_forge_the_answer(void **state)
{
	struct world *w = *state;
	const struct res_vhost evil = {"v\n\nx", DOMAINS("*"),
		ROUTES({NAMED("\n\n", "/\x1b[2J\n\n"), CLUSTERS({"cluster_1", 1})}),
		.hash = {8, 8}};
	give(w, &evil);
	char *text = ask(w, "show routes");
	assert_null(strstr(text, "\n\n"));
	assert_null(strchr(text, '\x1b'));
	free(text);
	json_decref(ask_json(w));
}

static void a_frontend_without_routes_says_why(void **state)
{
	struct world *w = *state;
	assembler_fail(w->assembler, 0, "listener web does not exist");
	char *text = ask(w, "show routes");
	assert_string_equal(text, "frontend web: no routes: listener web does not exist\n");
	free(text);
	json_t *frontends = ask_json(w);
	assert_non_null(json_object_get(json_array_get(frontends, 0), "error"));
	json_decref(frontends);
}

static bool shows(struct world *w, const char *command, const char *part)
{
	char *text = ask(w, command);
	bool found = strstr(text, part);
	free(text);
	return found;
}

// A large configuration is looked at in parts.
static void one_frontend_or_one_virtual_host_is_shown_alone(void **state)
{
	struct world *w = *state;
	const struct res_vhost vhosts[] = {
		{"one", DOMAINS("one.com"), ROUTES({PREFIX("/"), CLUSTERS({"cluster_1", 1})}),
			.hash = {1, 1}},
		{"any", DOMAINS("*"), ROUTES({PREFIX("/"), CLUSTERS({"cluster_2", 1})}),
			.hash = {2, 2}}};
	struct res_listener *l = listener_of("1", NULL, 0);
	struct res_route_config *r = routes_of(vhosts, 2);
	struct res_endpoints *none[3] = {NULL};
	update(w, 0, config_of(l, r, clusters, none, 3));
	xds_res_put(&l->base);
	xds_res_put(&r->base);
	assert_true(shows(w, "show routes", "frontend api: no routes"));
	assert_true(shows(w, "show routes --frontend api", "frontend api: no routes"));
	assert_true(shows(w, "show http routes --frontend api", "frontend api: no routes"));
	assert_false(shows(w, "show routes --frontend api", "frontend web"));
	assert_true(shows(w, "show routes --frontend web", "virtual host one"));
	assert_true(shows(w, "show routes --frontend web", "virtual host any"));
	assert_true(shows(w, "show routes --authority ONE.com", "virtual host one"));
	assert_false(shows(w, "show routes --authority ONE.com", "virtual host any"));
	assert_true(shows(w, "show routes --authority x --frontend web json", "\"any\""));
	assert_false(shows(w, "show routes --authority x --frontend web json", "\"one\""));
	assert_true(shows(w, "show routes --frontend db", "no frontend is called 'db'"));
	assert_true(shows(w, "show routes --frontend", "--frontend needs a value"));
	assert_true(shows(w, "show routes web", "unexpected argument 'web'"));
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, world_set_up, world_tear_down)

RUN_SUITE("ctrl/show_routes", CASE(the_appendix_of_a28_is_printed_as_it_stands_there),
	CASE(names_survive_updates), CASE(matchers_policies_and_ignored_routes_are_shown),
	CASE(texts_of_the_server_cannot_forge_the_answer), CASE(a_frontend_without_routes_says_why),
	cmocka_unit_test_setup_teardown(one_frontend_or_one_virtual_host_is_shown_alone,
		world_set_up_both, world_tear_down))
