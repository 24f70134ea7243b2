// SPDX-License-Identifier: Apache-2.0
#include "lb/req.h"
#include "lb/route.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_ROUTES 64
#define CLUSTER(id, n)                                                                             \
	{                                                                                          \
		.cluster_id = (id), .weight = (n)                                                  \
	}

static const struct str any_domain[] = {STR("*")};

struct table {
	struct lb_route_conf routes[MAX_ROUTES];
	struct lb_weighted_cluster clusters[MAX_ROUTES];
	uint32_t n;
};

static void add(struct table *t, enum lb_path_kind kind, const char *path, bool case_sensitive)
{
	t->clusters[t->n] = (struct lb_weighted_cluster){.cluster_id = 100 + t->n, .weight = 1};
	t->routes[t->n] = (struct lb_route_conf){.path_kind = kind,
		.path = str_from(path),
		.case_sensitive = case_sensitive,
		.ppm = LB_PPM_ALWAYS,
		.clusters = &t->clusters[t->n],
		.n_clusters = 1};
	t->n++;
}

static void prefix(struct table *t, const char *path)
{
	add(t, LB_PATH_PREFIX, path, true);
}

static void exact(struct table *t, const char *path)
{
	add(t, LB_PATH_EXACT, path, true);
}

static struct lb_route_scratch *scratch;

static struct lb_route_table *new_table(
	const struct lb_vhost_conf *vhosts, uint32_t n, struct lb_err *reterr)
{
	struct lb_vhost *compiled[4] = {0};
	struct lb_route_table *table = NULL;
	uint32_t i = 0;
	while (i < n && (compiled[i] = lb_vhost_new(&vhosts[i], reterr)))
		i++;
	if (i == n)
		table = lb_route_table_new(
			&(struct lb_route_table_conf){
				.vhosts = vhosts, .compiled = compiled, .n_vhosts = n},
			reterr);
	for (i = 0; i < n; i++)
		lb_vhost_put(compiled[i]);
	return table;
}

static struct lb_route_result find_req(
	const struct lb_route_table *table, const struct lb_req *req, struct rand *r)
{
	if (!scratch)
		scratch = lb_route_scratch_new(0, 4096);
	assert_non_null(scratch);
	struct lb_route_ctx ctx = {.rand = r, .scratch = scratch};
	return lb_route_find(table, req, &ctx);
}

static struct lb_route_table *compile(const struct table *t)
{
	const struct lb_vhost_conf vhost = {.name = STR("all"),
		.domains = any_domain,
		.n_domains = 1,
		.routes = t->routes,
		.n_routes = t->n};
	struct lb_err err = {0};
	struct lb_route_table *table = new_table(&vhost, 1, &err);
	assert_non_null(table);
	return table;
}

static struct lb_route_result find(const struct lb_route_table *table, struct str path)
{
	struct rand r;
	rand_init(&r, 1);
	const struct lb_req req = {.authority = STR("a"), .path = path};
	return find_req(table, &req, &r);
}

// Number of the matching route, -1 = none.
static int match(const struct table *t, const char *path)
{
	struct lb_route_table *table = compile(t);
	struct lb_route_result result = find(table, str_from(path));
	lb_route_table_put(table);
	if (result.kind == LB_ROUTE_NONE)
		return -1;
	assert_int_equal(result.kind, LB_ROUTE_CLUSTER);
	assert_int_equal(result.cluster_id, 100 + result.route_index);
	return (int)result.route_index;
}

// A28-R01
static void first_match_wins_over_better_match(void **state)
{
	(void)state;
	struct table t = {0};
	prefix(&t, "/MyService");
	exact(&t, "/MyService/MyMethod");
	assert_int_equal(match(&t, "/MyService/MyMethod"), 0);
	struct table reversed = {0};
	exact(&reversed, "/MyService/MyMethod");
	prefix(&reversed, "/MyService");
	assert_int_equal(match(&reversed, "/MyService/MyMethod"), 0);
	assert_int_equal(match(&reversed, "/MyService/MyMethod2"), 1);
}

// A28-R03, VH-09
static void no_route_means_none_not_the_wildcard_host(void **state)
{
	(void)state;
	struct table t = {0};
	exact(&t, "/a");
	static const struct str foo[] = {STR("foo")};
	const struct lb_vhost_conf vhosts[] = {
		{.name = STR("foo"), .domains = foo, .n_domains = 1},
		{.name = STR("all"),
			.domains = any_domain,
			.n_domains = 1,
			.routes = t.routes,
			.n_routes = 1},
	};
	struct lb_route_table *table = new_table(vhosts, 2, NULL);
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
	table = new_table(vhosts, 1, NULL);
	assert_int_equal(find_req(table, &req, &r).kind, LB_ROUTE_NO_VHOST);
	lb_route_table_put(table);
}

// A28-R04
static void second_of_equal_routes_gets_nothing(void **state)
{
	(void)state;
	struct table t = {0};
	exact(&t, "/b");
	exact(&t, "/a");
	exact(&t, "/a");
	prefix(&t, "/p");
	prefix(&t, "/p");
	assert_int_equal(match(&t, "/a"), 1);
	assert_int_equal(match(&t, "/pp"), 3);
}

// A28-P01, A28-P02
static void prefix_compares_bytes_and_path_is_whole(void **state)
{
	(void)state;
	struct table t = {0};
	exact(&t, "/a/");
	prefix(&t, "/a");
	prefix(&t, "/ab/cd");
	assert_int_equal(match(&t, "/a/"), 0);
	assert_int_equal(match(&t, "/ab"), 1);
	assert_int_equal(match(&t, "/a/b"), 1);
	assert_int_equal(match(&t, "/ab/cd"), 1);
	assert_int_equal(match(&t, "/"), -1);
	prefix(&t, "");
	assert_int_equal(match(&t, "/"), 3);
	assert_int_equal(match(&t, "*"), 3);
}

// A28-P04
static void case_is_folded_only_where_asked(void **state)
{
	(void)state;
	struct table t = {0};
	add(&t, LB_PATH_EXACT, "/Foo", false);
	add(&t, LB_PATH_EXACT, "/Bar", true);
	add(&t, LB_PATH_PREFIX, "/P/", false);
	add(&t, LB_PATH_PREFIX, "/Q/", true);
	assert_int_equal(match(&t, "/fOO"), 0);
	assert_int_equal(match(&t, "/foo/"), -1);
	assert_int_equal(match(&t, "/bar"), -1);
	assert_int_equal(match(&t, "/Bar"), 1);
	assert_int_equal(match(&t, "/p/x"), 2);
	assert_int_equal(match(&t, "/q/x"), -1);
	assert_int_equal(match(&t, "/Q/x"), 3);
}

// A28-P06
static void query_and_fragment_take_no_part(void **state)
{
	(void)state;
	struct table t = {0};
	exact(&t, "/a");
	prefix(&t, "/p?");
	prefix(&t, "/../p");
	exact(&t, "/a%2Fb");
	assert_int_equal(match(&t, "/a?x=/b"), 0);
	assert_int_equal(match(&t, "/a#x?y"), 0);
	assert_int_equal(match(&t, "/a?x#y"), 0);
	assert_int_equal(match(&t, "/p?x"), -1);
	assert_int_equal(match(&t, "/x/../p"), -1);
	assert_int_equal(match(&t, "/a%2Fb"), 3);
	assert_int_equal(match(&t, "/a/b"), -1);
}

// A28-P07
static void paths_that_no_grpc_method_has_are_kept(void **state)
{
	(void)state;
	struct table t = {0};
	exact(&t, "/healthz");
	exact(&t, "/a/b/c");
	prefix(&t, "no-slash");
	assert_int_equal(match(&t, "/healthz"), 0);
	assert_int_equal(match(&t, "/a/b/c"), 1);
	assert_int_equal(match(&t, "no-slash/x"), 2);
}

// A28-P09
static void request_without_path_matches_nothing(void **state)
{
	(void)state;
	struct table t = {0};
	prefix(&t, "");
	struct lb_route_table *table = compile(&t);
	assert_int_equal(find(table, (struct str){0}).kind, LB_ROUTE_NONE);
	assert_int_equal(find(table, STR("?q")).kind, LB_ROUTE_CLUSTER);
	lb_route_table_put(table);
}

// A28-V04
static void unsupported_action_matches_and_ends_there(void **state)
{
	(void)state;
	struct table t = {0};
	prefix(&t, "/a");
	t.routes[0].action = LB_ACTION_UNSUPPORTED;
	t.routes[0].n_clusters = 0;
	prefix(&t, "/");
	struct lb_route_table *table = compile(&t);
	struct lb_route_result result = find(table, STR("/a"));
	assert_int_equal(result.kind, LB_ROUTE_UNSUPPORTED);
	assert_int_equal(result.route_index, 0);
	lb_route_table_put(table);
}

// A28-W03, A28-W04
static void sum_of_weights_must_be_in_range(void **state)
{
	(void)state;
	static const struct lb_weighted_cluster zero[] = {CLUSTER(1, 0), CLUSTER(2, 0)};
	static const struct lb_weighted_cluster huge[] = {CLUSTER(1, UINT32_MAX), CLUSTER(2, 1)};
	static const struct lb_weighted_cluster largest[] = {
		CLUSTER(1, UINT32_MAX - 1), CLUSTER(2, 1)};
	struct table t = {0};
	prefix(&t, "/");
	const struct lb_vhost_conf vhost = {
		.domains = any_domain, .n_domains = 1, .routes = t.routes, .n_routes = 1};
	struct lb_err err = {0};
	t.routes[0].n_clusters = 0;
	assert_null(new_table(&vhost, 1, &err));
	t.routes[0].n_clusters = 2;
	t.routes[0].clusters = zero;
	assert_null(new_table(&vhost, 1, &err));
	t.routes[0].clusters = huge;
	assert_null(new_table(&vhost, 1, &err));
	assert_non_null(strstr(err.text, "routes[0]"));
	assert_non_null(strstr(err.text, "4294967296"));
	t.routes[0].clusters = largest;
	struct lb_route_table *table = new_table(&vhost, 1, &err);
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
	struct table t = {0};
	prefix(&t, "/");
	t.routes[0].clusters = clusters;
	t.routes[0].n_clusters = 9;
	struct lb_route_table *table = compile(&t);
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

// A31: one draw a request; none where there is nothing to draw.
static void a_single_cluster_costs_no_draw(void **state)
{
	(void)state;
	struct table t = {0};
	prefix(&t, "/");
	struct lb_route_table *table = compile(&t);
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

static int twin(const struct table *t, const char *path)
{
	size_t len = strcspn(path, "?#");
	for (uint32_t i = 0; i < t->n; i++)
		if (twin_matches(&t->routes[i], path, len))
			return (int)i;
	return -1;
}

static void random_path(struct rand *r, char *to, size_t max)
{
	static const char alphabet[] = "/aAbB?#";
	size_t len = rand_below(r, max + 1);
	to[0] = '/';
	for (size_t i = 1; i <= len; i++)
		to[i] = alphabet[rand_below(r, rand_below(r, 8) ? 5 : 7)];
	to[len + 1] = 0;
}

static void random_tables_agree_with_the_linear_scan(void **state)
{
	(void)state;
	struct rand r;
	rand_init(&r, 11);
	int n_matched = 0;
	for (int round = 0; round < 4000; round++) {
		struct table t = {0};
		char paths[MAX_ROUTES][16];
		uint32_t n = 1 + (uint32_t)rand_below(&r, MAX_ROUTES);
		for (uint32_t i = 0; i < n; i++) {
			random_path(&r, paths[i], 7);
			if (rand_below(&r, 16) == 0)
				paths[i][0] = 0;
			add(&t, rand_below(&r, 2) ? LB_PATH_EXACT : LB_PATH_PREFIX, paths[i],
				rand_below(&r, 3) > 0);
		}
		struct lb_route_table *table = compile(&t);
		for (int i = 0; i < 60; i++) {
			char path[16];
			random_path(&r, path, 9);
			int expected = twin(&t, path);
			struct lb_route_result result = find(table, str_from(path));
			assert_int_equal(
				result.kind, expected < 0 ? LB_ROUTE_NONE : LB_ROUTE_CLUSTER);
			if (expected >= 0) {
				assert_int_equal(result.route_index, expected);
				n_matched++;
			}
		}
		lb_route_table_put(table);
	}
	assert_true(n_matched > 50000 && n_matched < 230000);
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
	struct lb_route_table *table = new_table(&vhost, 1, NULL);
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

static void count_keeps_the_table_alive(void **state)
{
	(void)state;
	struct table t = {0};
	prefix(&t, "/");
	struct lb_route_table *table = compile(&t);
	assert_ptr_equal(lb_route_table_get(table), table);
	lb_route_table_put(table);
	assert_int_equal(find(table, STR("/")).kind, LB_ROUTE_CLUSTER);
	lb_route_table_put(table);
	lb_route_table_put(NULL);
}

static void each_failed_allocation_is_survived(void **state)
{
	(void)state;
	struct table t = {0};
	prefix(&t, "/");
	exact(&t, "/a");
	add(&t, LB_PATH_PREFIX, "/b", false);
	add(&t, LB_PATH_EXACT, "/c", false);
	const struct lb_vhost_conf vhosts[2] = {
		{.domains = any_domain, .n_domains = 1, .routes = t.routes, .n_routes = t.n},
		{.domains = any_domain, .n_domains = 1, .routes = t.routes, .n_routes = t.n}};
	struct lb_route_table *table = NULL;
	struct lb_err err = {0};
	ALLOC_FAIL_EACH(table = new_table(vhosts, 2, &err), !table, lb_route_table_put(table));
	if (alloc_fail_works())
		assert_string_equal(err.text, "no memory");
}

RUN_SUITE("lb/route", cmocka_unit_test(first_match_wins_over_better_match),
	cmocka_unit_test(no_route_means_none_not_the_wildcard_host),
	cmocka_unit_test(second_of_equal_routes_gets_nothing),
	cmocka_unit_test(prefix_compares_bytes_and_path_is_whole),
	cmocka_unit_test(case_is_folded_only_where_asked),
	cmocka_unit_test(query_and_fragment_take_no_part),
	cmocka_unit_test(paths_that_no_grpc_method_has_are_kept),
	cmocka_unit_test(request_without_path_matches_nothing),
	cmocka_unit_test(unsupported_action_matches_and_ends_there),
	cmocka_unit_test(sum_of_weights_must_be_in_range),
	cmocka_unit_test(draws_follow_the_weights),
	cmocka_unit_test(a_single_cluster_costs_no_draw),
	cmocka_unit_test(random_tables_agree_with_the_linear_scan),
	cmocka_unit_test(large_tables_agree_with_the_linear_scan),
	cmocka_unit_test(count_keeps_the_table_alive),
	cmocka_unit_test(each_failed_allocation_is_survived))
