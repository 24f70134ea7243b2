// SPDX-License-Identifier: Apache-2.0
#include "lb/regex/regex.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/lb/routes.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_ROUTES ROUTES_MAX
#define MANY 10000

static const struct str any_domain[] = {STR("*")};

static void prefix(struct routes *t, const char *path)
{
	routes_add(t, LB_PATH_PREFIX, path);
}

static void exact(struct routes *t, const char *path)
{
	routes_add(t, LB_PATH_EXACT, path);
}

static void add(struct routes *t, enum lb_path_kind kind, const char *path, bool case_sensitive)
{
	routes_add(t, kind, path)->case_sensitive = case_sensitive;
}

static struct lb_route_result find(const struct lb_route_table *table, struct str path)
{
	struct rand r;
	rand_init(&r, 1);
	const struct lb_req req = {.authority = STR("a"), .path = path};
	return find_req(table, &req, &r);
}

// A28-R01
static void first_match_wins_over_better_match(void **state)
{
	(void)state;
	struct routes t = {0};
	prefix(&t, "/MyService");
	exact(&t, "/MyService/MyMethod");
	assert_int_equal(routes_match_path(&t, "/MyService/MyMethod"), 0);
	struct routes reversed = {0};
	exact(&reversed, "/MyService/MyMethod");
	prefix(&reversed, "/MyService");
	assert_int_equal(routes_match_path(&reversed, "/MyService/MyMethod"), 0);
	assert_int_equal(routes_match_path(&reversed, "/MyService/MyMethod2"), 1);
}

// A28-H15
static void a_pin_chooses_the_host_and_is_no_header(void **state)
{
	(void)state;
	static const struct str pin[] = {STR("pinned.test")};
	struct routes t = {0};
	prefix(&t, "/");
	routes_add_header(&t, ":authority", LB_HEADER_EXACT, "a.test");
	struct lb_vhost_conf host = routes_vhost(&t);
	host.domains = pin;
	struct lb_err err;
	struct lb_route_table *table = vhosts_compile(&host, 1, false, &err);
	assert_non_null(table);
	struct rand r;
	rand_init(&r, 1);
	struct lb_req req = {.authority = STR("a.test"), .pinned = pin[0], .path = STR("/x")};
	assert_int_equal(find_req(table, &req, &r).kind, LB_ROUTE_CLUSTER);
	req.authority = pin[0];
	assert_int_equal(find_req(table, &req, &r).kind, LB_ROUTE_NONE);
	req = (struct lb_req){.authority = STR("a.test"), .path = STR("/x")};
	assert_int_equal(find_req(table, &req, &r).kind, LB_ROUTE_NO_VHOST);
	lb_route_table_put(table);
	routes_fini(&t);
}

// A28-R03, VH-09
static void no_route_means_none_not_the_wildcard_host(void **state)
{
	(void)state;
	struct routes t = {0};
	exact(&t, "/a");
	static const struct str foo[] = {STR("foo")};
	const struct lb_vhost_conf vhosts[] = {
		{.name = STR("foo"), .domains = foo, .n_domains = 1},
		{.name = STR("all"),
			.domains = any_domain,
			.n_domains = 1,
			.routes = t.list,
			.n_routes = 1},
	};
	struct lb_route_table *table = vhosts_compile(vhosts, 2, false, NULL);
	struct rand r;
	rand_init(&r, 1);
	struct lb_req req = {.authority = STR("foo"), .path = STR("/a")};
	struct lb_route_result result = find_req(table, &req, &r);
	assert_int_equal(result.kind, LB_ROUTE_NONE);
	assert_int_equal(result.vhost_index, 0);
	req.authority = STR("bar");
	result = find_req(table, &req, &r);
	assert_int_equal(result.kind, LB_ROUTE_CLUSTER);
	assert_int_equal(result.vhost_index, 1);
	lb_route_table_put(table);
	table = vhosts_compile(vhosts, 1, false, NULL);
	assert_int_equal(find_req(table, &req, &r).kind, LB_ROUTE_NO_VHOST);
	lb_route_table_put(table);
}

// A28-R04
static void second_of_equal_routes_gets_nothing(void **state)
{
	(void)state;
	struct routes t = {0};
	exact(&t, "/b");
	exact(&t, "/a");
	exact(&t, "/a");
	prefix(&t, "/p");
	prefix(&t, "/p");
	assert_int_equal(routes_match_path(&t, "/a"), 1);
	assert_int_equal(routes_match_path(&t, "/pp"), 3);
}

// A28-P01, A28-P02
static void prefix_compares_bytes_and_path_is_whole(void **state)
{
	(void)state;
	struct routes t = {0};
	exact(&t, "/a/");
	prefix(&t, "/a");
	prefix(&t, "/ab/cd");
	assert_int_equal(routes_match_path(&t, "/a/"), 0);
	assert_int_equal(routes_match_path(&t, "/ab"), 1);
	assert_int_equal(routes_match_path(&t, "/a/b"), 1);
	assert_int_equal(routes_match_path(&t, "/ab/cd"), 1);
	assert_int_equal(routes_match_path(&t, "/"), -1);
	prefix(&t, "");
	assert_int_equal(routes_match_path(&t, "/"), 3);
	assert_int_equal(routes_match_path(&t, "*"), 3);
}

// A28-P04
static void case_is_folded_only_where_asked(void **state)
{
	(void)state;
	struct routes t = {0};
	add(&t, LB_PATH_EXACT, "/Foo", false);
	add(&t, LB_PATH_EXACT, "/Bar", true);
	add(&t, LB_PATH_PREFIX, "/P/", false);
	add(&t, LB_PATH_PREFIX, "/Q/", true);
	assert_int_equal(routes_match_path(&t, "/fOO"), 0);
	assert_int_equal(routes_match_path(&t, "/foo/"), -1);
	assert_int_equal(routes_match_path(&t, "/bar"), -1);
	assert_int_equal(routes_match_path(&t, "/Bar"), 1);
	assert_int_equal(routes_match_path(&t, "/p/x"), 2);
	assert_int_equal(routes_match_path(&t, "/q/x"), -1);
	assert_int_equal(routes_match_path(&t, "/Q/x"), 3);
}

// A28-P06
static void query_and_fragment_take_no_part(void **state)
{
	(void)state;
	struct routes t = {0};
	exact(&t, "/a");
	prefix(&t, "/p?");
	prefix(&t, "/../p");
	exact(&t, "/a%2Fb");
	assert_int_equal(routes_match_path(&t, "/a?x=/b"), 0);
	assert_int_equal(routes_match_path(&t, "/a#x?y"), 0);
	assert_int_equal(routes_match_path(&t, "/a?x#y"), 0);
	assert_int_equal(routes_match_path(&t, "/p?x"), -1);
	assert_int_equal(routes_match_path(&t, "/x/../p"), -1);
	assert_int_equal(routes_match_path(&t, "/a%2Fb"), 3);
	assert_int_equal(routes_match_path(&t, "/a/b"), -1);
}

// A28-P07
static void paths_that_no_grpc_method_has_are_kept(void **state)
{
	(void)state;
	struct routes t = {0};
	exact(&t, "/healthz");
	exact(&t, "/a/b/c");
	prefix(&t, "no-slash");
	assert_int_equal(routes_match_path(&t, "/healthz"), 0);
	assert_int_equal(routes_match_path(&t, "/a/b/c"), 1);
	assert_int_equal(routes_match_path(&t, "no-slash/x"), 2);
}

// A28-P09
static void request_without_path_matches_nothing(void **state)
{
	(void)state;
	struct routes t = {0};
	prefix(&t, "");
	struct lb_route_table *table = routes_compile(&t);
	assert_int_equal(find(table, (struct str){0}).kind, LB_ROUTE_NONE);
	assert_int_equal(find(table, STR("?q")).kind, LB_ROUTE_CLUSTER);
	lb_route_table_put(table);
}

// A28-V04
// HX-17
static void connect_is_no_request_for_a_resource(void **state)
{
	(void)state;
	struct routes t = {0};
	prefix(&t, "/");
	struct lb_req req = {.path = STR("/"), .method = STR("CONNECT")};
	assert_int_equal(routes_match(&t, &req), -1);
	req.method = STR("CONNECT-UDP"); // whatever that is
	assert_int_equal(routes_match(&t, &req), 0);
}

static void unsupported_action_matches_and_ends_there(void **state)
{
	(void)state;
	struct routes t = {0};
	prefix(&t, "/a");
	t.list[0].action = LB_ACTION_UNSUPPORTED;
	t.list[0].n_clusters = 0;
	prefix(&t, "/");
	struct lb_route_table *table = routes_compile(&t);
	struct lb_route_result result = find(table, STR("/a"));
	assert_int_equal(result.kind, LB_ROUTE_UNSUPPORTED);
	assert_int_equal(result.route_index, 0);
	lb_route_table_put(table);
}

// A28-W03, A28-W04, A28-N06
static void sum_of_weights_must_be_in_range(void **state)
{
	(void)state;
	static const struct lb_weighted_cluster zero[] = {CLUSTER(1, 0), CLUSTER(2, 0)};
	static const struct lb_weighted_cluster huge[] = {CLUSTER(1, UINT32_MAX), CLUSTER(2, 1)};
	static const struct lb_weighted_cluster largest[] = {
		CLUSTER(1, UINT32_MAX - 1), CLUSTER(2, 1)};
	struct routes t = {0};
	prefix(&t, "/");
	const struct lb_vhost_conf vhost = {
		.domains = any_domain, .n_domains = 1, .routes = t.list, .n_routes = 1};
	struct lb_err err = {0};
	t.list[0].n_clusters = 0;
	assert_null(vhosts_compile(&vhost, 1, false, &err));
	t.list[0].n_clusters = 2;
	t.list[0].clusters = zero;
	assert_null(vhosts_compile(&vhost, 1, false, &err));
	t.list[0].clusters = huge;
	assert_null(vhosts_compile(&vhost, 1, false, &err));
	assert_non_null(strstr(err.text, "routes[0]"));
	assert_non_null(strstr(err.text, "4294967296"));
	t.list[0].clusters = largest;
	struct lb_route_table *table = vhosts_compile(&vhost, 1, false, &err);
	assert_non_null(table);
	lb_route_table_put(table);
}

// A28-W01, A28-W04, A28-W07: chi squared of 10^6 draws, seeded, 6 degrees of freedom; 22.46 is
// exceeded once in a thousand seeds.
static void draws_follow_the_weights(void **state)
{
	(void)state;
	static const struct lb_weighted_cluster clusters[] = {CLUSTER(0, 1), CLUSTER(1, 0),
		CLUSTER(2, 10), CLUSTER(3, 100), CLUSTER(4, 1000), CLUSTER(2, 5), CLUSTER(5, 77),
		CLUSTER(6, 13), CLUSTER(7, 0)};
	static const double weights[8] = {1, 0, 15, 100, 1000, 77, 13, 0};
	const double sum = 1206;
	const int n = 1000000;
	struct routes t = {0};
	prefix(&t, "/");
	t.list[0].clusters = clusters;
	t.list[0].n_clusters = 9;
	struct lb_route_table *table = routes_compile(&t);
	struct rand r;
	rand_init(&r, 42);
	const struct lb_req req = {.authority = STR("a"), .path = STR("/")};
	int count[8] = {0};
	for (int i = 0; i < n; i++)
		count[find_req(table, &req, &r).cluster_id]++;
	double chi2 = 0;
	for (int i = 0; i < 8; i++) {
		double expected = n * weights[i] / sum;
		if (expected == 0)
			assert_int_equal(count[i], 0);
		else
			chi2 += (count[i] - expected) * (count[i] - expected) / expected;
	}
	assert_true(chi2 < 22.46);
	lb_route_table_put(table);
}

// A31-R10: one draw a request; none where there is nothing to draw.
static void a_single_cluster_costs_no_draw(void **state)
{
	(void)state;
	struct routes t = {0};
	prefix(&t, "/");
	struct lb_route_table *table = routes_compile(&t);
	struct rand r, same;
	rand_init(&r, 3);
	same = r;
	const struct lb_req req = {.authority = STR("a"), .path = STR("/")};
	find_req(table, &req, &r);
	assert_memory_equal(&r, &same, sizeof(r));
	lb_route_table_put(table);
}

// Route by route, as A28 says it.
static bool twin_matches(const struct lb_route_conf *route, const char *path, size_t len)
{
	if (route->path_kind == LB_PATH_EXACT ? route->path.len != len : route->path.len > len)
		return false;
	for (size_t i = 0; i < route->path.len; i++) {
		char a = route->path.p[i], b = path[i];
		if (!route->case_sensitive) {
			a = (char)tolower((unsigned char)a);
			b = (char)tolower((unsigned char)b);
		}
		if (a != b)
			return false;
	}
	return true;
}

// Keys that share long prefixes, thousands of them, and binary bytes.
static void large_tables_agree_with_the_linear_scan(void **state)
{
	(void)state;
	enum { N = 5000 };
	struct rand r;
	rand_init(&r, 12);
	static char paths[N][80];
	static struct lb_route_conf routes[N];
	static const struct lb_weighted_cluster cluster = CLUSTER(1, 1);
	for (int i = 0; i < N; i++) {
		snprintf(paths[i], sizeof(paths[i]), "/org.example.team%02u.v%u.Service%03u%s",
			(unsigned)rand_below(&r, 40), (unsigned)rand_below(&r, 3),
			(unsigned)rand_below(&r, 200), rand_below(&r, 2) ? "/" : "\xff\x80/m");
		routes[i] = (struct lb_route_conf){
			.path_kind = rand_below(&r, 3) ? LB_PATH_PREFIX : LB_PATH_EXACT,
			.path = str_from(paths[i]),
			.case_sensitive = rand_below(&r, 4) > 0,
			.ppm = LB_PPM_ALWAYS,
			.clusters = &cluster,
			.n_clusters = 1};
		routes[i].path.len -= rand_below(&r, 4);
	}
	const struct lb_vhost_conf vhost = {
		.domains = any_domain, .n_domains = 1, .routes = routes, .n_routes = N};
	struct lb_route_table *table = vhosts_compile(&vhost, 1, false, NULL);
	assert_non_null(table);
	for (int i = 0; i < 4000; i++) {
		char path[96];
		const char *base = paths[rand_below(&r, N)];
		snprintf(path, sizeof(path), "%.*s%s", (int)(strlen(base) - rand_below(&r, 5)),
			base, rand_below(&r, 2) ? "Method" : "");
		if (rand_below(&r, 3) == 0)
			path[1 + rand_below(&r, 30)] ^= 0x20;
		int expected = -1;
		for (int k = 0; k < N && expected < 0; k++)
			if (twin_matches(&routes[k], path, strlen(path)))
				expected = k;
		struct lb_route_result result = find(table, str_from(path));
		assert_int_equal(result.kind, expected < 0 ? LB_ROUTE_NONE : LB_ROUTE_CLUSTER);
		if (expected >= 0)
			assert_int_equal(result.route_index, expected);
	}
	lb_route_table_put(table);
}

// A28-R02, A28-R01: what fails one criterion falls through to the next route.
static void path_headers_and_fraction_must_all_hold(void **state)
{
	(void)state;
	struct routes t = {0};
	prefix(&t, "/a");
	routes_add_header(&t, "x", LB_HEADER_EXACT, "1");
	prefix(&t, "/a");
	t.list[1].ppm = 0;
	exact(&t, "/a");
	routes_add_header(&t, "x", LB_HEADER_EXACT, "2");
	prefix(&t, "");
	static const char *const values[] = {"1", "2", "3"};
	static const int routes[] = {0, 2, 3};
	for (int i = 0; i < 3; i++) {
		const struct field f = {.name = STR("x"), .value = str_from(values[i])};
		const struct lb_req req = {.path = STR("/a"), .fields = &f, .n_fields = 1};
		assert_int_equal(routes_match(&t, &req), routes[i]);
	}
	assert_int_equal(routes_match_path(&t, "/a"), 3);
	assert_int_equal(routes_match_path(&t, "/b"), 3);
}

// A28-P02, A28-R01: regexes take their turn among literal routes, whatever set they are in.
static void regexes_are_tried_in_the_order_of_routes(void **state)
{
	(void)state;
	static const char *const apart[] = {"/v1/[0-9]+", "/v1/[0-9a-f]+"}, *const all[] = {".*"};
	struct routes t = {0};
	struct lb_regex_set *two = routes_add_set(&t, apart, 2);
	exact(&t, "/v1/7");
	struct lb_route_conf *hex = routes_add(&t, LB_PATH_REGEX, apart[1]);
	hex->regex = (struct lb_regex_ref){two, 1};
	prefix(&t, "/v1/a");
	struct lb_route_conf *decimal = routes_add(&t, LB_PATH_REGEX, apart[0]);
	decimal->regex = (struct lb_regex_ref){two, 0};
	prefix(&t, "/v2/");
	routes_add(&t, LB_PATH_REGEX, "/v3|/v4")->case_sensitive = false; // no effect (A28-P04)
	routes_add(&t, LB_PATH_REGEX, all[0]);
	prefix(&t, "");
	assert_int_equal(routes_match_path(&t, "/v1/7"), 0);
	assert_int_equal(routes_match_path(&t, "/v1/77"), 1);
	assert_int_equal(routes_match_path(&t, "/v1/a"), 1);
	assert_int_equal(routes_match_path(&t, "/v1/ax"), 2);
	assert_int_equal(routes_match_path(&t, "/v1/7?q"), 0);
	assert_int_equal(routes_match_path(&t, "/v2/7"), 4);
	assert_int_equal(routes_match_path(&t, "/v4"), 5);
	assert_int_equal(routes_match_path(&t, "/V4"), 6);
	assert_int_equal(routes_match_path(&t, "/v4\n"), 7);
	hex->ppm = 0;
	assert_int_equal(routes_match_path(&t, "/v1/77"), 3);
	routes_fini(&t);
}

// A28-O03: hit when the draw is below, so that 0 is never and a million is always.
static void fraction_is_hit_below_the_draw(void **state)
{
	(void)state;
	struct routes t = {0};
	prefix(&t, "/");
	struct rand r;
	rand_init(&r, 5);
	const struct lb_req req = {.path = STR("/")};
	for (int i = 0; i < 200; i++) {
		struct rand peek = r;
		uint32_t drawn = (uint32_t)rand_below(&peek, 1000000);
		static const int kinds[] = {LB_ROUTE_NONE, LB_ROUTE_CLUSTER};
		for (uint32_t above = 0; above < 2; above++) {
			t.list[0].ppm = drawn + above;
			struct rand same = r;
			struct lb_route_table *table = routes_compile(&t);
			assert_int_equal(find_req(table, &req, &same).kind, kinds[above]);
			lb_route_table_put(table);
		}
		r = peek;
	}
}

// A28-O04: two halves after another give 50, 25, 25; and no draw for a path that does not match.
static void each_fraction_draws_its_own(void **state)
{
	(void)state;
	struct routes t = {0};
	prefix(&t, "/elsewhere");
	t.list[0].ppm = 500000;
	prefix(&t, "/");
	t.list[1].ppm = 500000;
	routes_add(&t, LB_PATH_REGEX, "/a+")->ppm = 500000;
	prefix(&t, "");
	struct lb_route_table *table = routes_compile(&t);
	struct rand r;
	rand_init(&r, 6);
	const struct lb_req req = {.path = STR("/a")};
	int count[4] = {0};
	for (int i = 0; i < 100000; i++)
		count[find_req(table, &req, &r).route_index]++;
	assert_int_equal(count[0], 0);
	assert_in_range(count[1], 49200, 50800); // 5 standard deviations
	assert_in_range(count[2], 24300, 25700);
	assert_in_range(count[3], 24300, 25700);
	struct rand same = r;
	const struct lb_req other = {.path = STR("b")};
	assert_int_equal(find_req(table, &other, &same).route_index, 3);
	assert_memory_equal(&same, &r, sizeof(r));
	lb_route_table_put(table);
	routes_fini(&t);
}

// A28-O07
static void grpc_matcher_has_no_effect_on_grpc_requests(void **state)
{
	(void)state;
	struct routes t = {0};
	prefix(&t, "/");
	t.list[0].grpc_only = true;
	struct lb_req req = {.path = STR("/"), .is_grpc = true};
	assert_int_equal(routes_match(&t, &req), 0);
	req.is_grpc = false;
	assert_int_equal(routes_match(&t, &req), -1);
}

// VH-01, VH-06
static void authority_alone_chooses_the_virtual_host(void **state)
{
	(void)state;
	struct routes t = {0};
	prefix(&t, "/");
	static const struct str foo[] = {STR("foo.com"), STR("[::1]")}, bar[] = {STR("foo.com:80")};
	const struct lb_vhost_conf vhosts[] = {
		{.domains = foo, .n_domains = 2, .routes = t.list, .n_routes = 1},
		{.domains = bar, .n_domains = 1, .routes = t.list, .n_routes = 1}};
	static const struct {
		const char *authority;
		int plain, without_port; // virtual host, -1 = none
	} rows[] = {{"foo.com", 0, 0}, {"foo.com:80", 1, 0}, {"foo.com:81", -1, 0},
		{"foo.com:", -1, 0}, {"[::1]", 0, 0}, {"[::1]:8", -1, 0}, {"::1", -1, -1}};
	for (int ignore_port = 0; ignore_port < 2; ignore_port++) {
		struct lb_route_table *table = vhosts_compile(vhosts, 2, ignore_port, NULL);
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			const struct lb_req req = {
				.authority = str_from(rows[i].authority), .path = STR("/")};
			struct rand r;
			rand_init(&r, 1);
			struct lb_route_result to = find_req(table, &req, &r);
			int expected = ignore_port ? rows[i].without_port : rows[i].plain;
			assert_int_equal(
				to.kind, expected < 0 ? LB_ROUTE_NO_VHOST : LB_ROUTE_CLUSTER);
			if (expected >= 0)
				assert_int_equal(to.vhost_index, expected);
		}
		lb_route_table_put(table);
	}
}

struct heard {
	struct lb_route_step steps[3 * MANY];
	uint32_t n;
};

static void hear(void *ctx, const struct lb_route_step *step)
{
	struct heard *h = ctx;
	h->steps[h->n++] = *step;
}

// However deep prefixes nest: each level twice, exactly one path, and the last one matches.
static void nested_prefixes_are_all_looked_at_in_order(void **state)
{
	(void)state;
	static char path[MANY + 1];
	static struct lb_route_conf routes[2 * MANY];
	static const struct lb_weighted_cluster cluster = CLUSTER(1, 1);
	static struct heard heard;
	memset(path, 'a', MANY);
	for (uint32_t i = 0; i < 2 * MANY; i++)
		routes[i] = (struct lb_route_conf){.path_kind = LB_PATH_PREFIX,
			.path = {path, (i * 7) % MANY},
			.case_sensitive = i % 3,
			.ppm = i + 1 < 2 * MANY ? 0 : LB_PPM_ALWAYS,
			.clusters = &cluster,
			.n_clusters = 1};
	static const struct str any[] = {STR("*")};
	const struct lb_vhost_conf vhost = {
		.domains = any, .n_domains = 1, .routes = routes, .n_routes = 2 * MANY};
	struct lb_route_table *table = vhosts_compile(&vhost, 1, false, NULL);
	struct lb_route_scratch *scratch = lb_route_scratch_new(0, 0);
	struct rand r;
	rand_init(&r, 1);
	struct lb_route_ctx ctx = {
		.rand = &r, .scratch = scratch, .trace = hear, .trace_ctx = &heard};
	const struct lb_req req = {.path = {path, MANY}};
	struct lb_route_result to = lb_route_find(table, &req, &ctx);
	assert_int_equal(to.route_index, 2 * MANY - 1);
	assert_int_equal(heard.n, 2 * MANY);
	for (uint32_t i = 0; i < heard.n; i++) {
		assert_int_equal(heard.steps[i].route_index, i);
		assert_int_equal(heard.steps[i].verdict,
			i + 1 < heard.n ? LB_VERDICT_FRACTION : LB_VERDICT_MATCH);
	}
	lb_route_scratch_free(scratch);
	lb_route_table_put(table);
}

static void trace_says_which_criterion_failed(void **state)
{
	(void)state;
	struct routes t = {0};
	prefix(&t, "/x");
	prefix(&t, "/");
	routes_add_header(&t, "a", LB_HEADER_PRESENT, "");
	routes_add_header(&t, "b", LB_HEADER_EXACT, "1");
	exact(&t, "/");
	t.list[2].grpc_only = true;
	prefix(&t, "/");
	struct lb_route_table *table = routes_compile(&t);
	static struct heard heard;
	heard.n = 0;
	struct lb_route_scratch *scratch = lb_route_scratch_new(0, 100);
	struct rand r;
	rand_init(&r, 1);
	struct lb_route_ctx ctx = {
		.rand = &r, .scratch = scratch, .trace = hear, .trace_ctx = &heard};
	const struct lb_req req = {.path = STR("/")};
	assert_int_equal(lb_route_find(table, &req, &ctx).route_index, 3);
	assert_int_equal(heard.n, 3);
	assert_int_equal(heard.steps[0].route_index, 1);
	assert_int_equal(heard.steps[0].verdict, LB_VERDICT_HEADER);
	assert_int_equal(heard.steps[0].header, 1);
	assert_int_equal(heard.steps[1].verdict, LB_VERDICT_NOT_GRPC);
	assert_int_equal(heard.steps[2].verdict, LB_VERDICT_MATCH);
	lb_route_scratch_free(scratch);
	lb_route_table_put(table);
}

// OPS-51
static void what_was_found_has_names_while_it_serves(void **state)
{
	struct routes t = {0};
	prefix(&t, "/named");
	t.list[0].name = STR("canary");
	t.list[0].index = 4;
	prefix(&t, "/");
	t.list[1].index = 5;
	struct lb_route_table *table = routes_compile(&t);
	struct lb_route_table *other = routes_compile(&t);
	const struct str paths[] = {STR("/named/x"), STR("/x"), STR("")};
	const char *const names[] = {"canary", "", ""};
	const uint32_t indices[] = {4, 5, LB_NO_ROUTE};
	for (int i = 0; i < 3; i++) {
		const struct lb_route_result to = find(table, paths[i]);
		const struct lb_route_place at = {to.vhost_serial, to.vhost_index, to.route_index};
		struct lb_route_names got;
		assert_true(lb_route_names(table, &at, &got));
		assert_true(str_eq(got.vhost, STR("all")));
		assert_true(str_eq(got.route, str_from(names[i])));
		assert_int_equal(got.index, indices[i]);
		assert_false(lb_route_names(other, &at, &got));
	}
	const struct lb_route_place nowhere = {0};
	struct lb_route_names got;
	assert_false(lb_route_names(table, &nowhere, &got));
	lb_route_table_put(table);
	lb_route_table_put(other);
	routes_fini(&t);
}

RUN_SUITE("lb/route", cmocka_unit_test(what_was_found_has_names_while_it_serves),
	cmocka_unit_test(first_match_wins_over_better_match),
	cmocka_unit_test(a_pin_chooses_the_host_and_is_no_header),
	cmocka_unit_test(no_route_means_none_not_the_wildcard_host),
	cmocka_unit_test(second_of_equal_routes_gets_nothing),
	cmocka_unit_test(prefix_compares_bytes_and_path_is_whole),
	cmocka_unit_test(case_is_folded_only_where_asked),
	cmocka_unit_test(query_and_fragment_take_no_part),
	cmocka_unit_test(paths_that_no_grpc_method_has_are_kept),
	cmocka_unit_test(request_without_path_matches_nothing),
	cmocka_unit_test(connect_is_no_request_for_a_resource),
	cmocka_unit_test(unsupported_action_matches_and_ends_there),
	cmocka_unit_test(sum_of_weights_must_be_in_range),
	cmocka_unit_test(draws_follow_the_weights),
	cmocka_unit_test(a_single_cluster_costs_no_draw),
	cmocka_unit_test(large_tables_agree_with_the_linear_scan),
	cmocka_unit_test(path_headers_and_fraction_must_all_hold),
	cmocka_unit_test(regexes_are_tried_in_the_order_of_routes),
	cmocka_unit_test(fraction_is_hit_below_the_draw),
	cmocka_unit_test(each_fraction_draws_its_own),
	cmocka_unit_test(grpc_matcher_has_no_effect_on_grpc_requests),
	cmocka_unit_test(authority_alone_chooses_the_virtual_host),
	cmocka_unit_test(nested_prefixes_are_all_looked_at_in_order),
	cmocka_unit_test(trace_says_which_criterion_failed))
