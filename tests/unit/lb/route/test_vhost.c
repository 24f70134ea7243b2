// SPDX-License-Identifier: Apache-2.0
#include "lb/regex/regex.h"
#include "lb/route/rbac.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/support/route_table.h"
#include "tests/unit/lb/routes.h"

#include <stdio.h>
#include <stdlib.h>

#define MANY 10000

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

// A route with everything that can be asked for; all texts are in *texts.
// Of a header's part and a path, allowed and logged.
static const struct lb_rbac_rule both[] = {
	{.kind = LB_RBAC_HEADER,
		.match = {.name = STR("k"),
			.kind = LB_HEADER_CONTAINS,
			.text = STR("Part"),
			.ignore_case = true}},
	{.kind = LB_RBAC_URL_PATH, .match = {.kind = LB_HEADER_PREFIX, .text = STR("/p")}},
};
static const struct lb_rbac_policy policies[] = {
	{.name = STR("p"), .rule = {.kind = LB_RBAC_AND, .rules = both, .n = 2}},
	{.name = STR("q"), .rule = {.kind = LB_RBAC_OR, .rules = both, .n = 2}},
};
static const struct lb_rbac_rules rules = {.action = LB_RBAC_ALLOW, .policies = policies, .n = 2};
static const struct lb_rbac_conf access = {.rules = &rules, .shadow = &rules, .bytes = STR("1")};

static void add_rich_route(struct routes *t, char (*texts)[16])
{
	static const char *const words[] = {"/p", "x-key", "fault", "cookie", "/c", "entry"};
	static struct lb_hash_policy hash;
	static struct lb_filter filters[3];
	for (size_t i = 0; i < 6; i++)
		strcpy(texts[i], words[i]);
	hash = (struct lb_hash_policy){
		.kind = LB_HASH_HEADER, .terminal = true, .header = str_from(texts[1])};
	filters[0] = (struct lb_filter){.name = str_from(texts[2]),
		.kind = LB_FILTER_FAULT,
		.fault = {.delay = LB_DELAY_FIXED, .delay_ns = 7}};
	filters[1] = (struct lb_filter){.name = str_from(texts[3]),
		.kind = LB_FILTER_SESSION,
		.session = {.enabled = true,
			.cookie = str_from(texts[3]),
			.path = str_from(texts[4]),
			.ttl_s = 9}};
	filters[2] = (struct lb_filter){
		.name = str_from(texts[5]), .kind = LB_FILTER_RBAC, .rbac.conf = &access};
	struct lb_route_conf *r = routes_add(t, LB_PATH_PREFIX, texts[0]);
	r->policy = (struct lb_route_policy){.timeouts = {.has_max = true, .max_ns = 5},
		.retry = {.statuses = 1 << 14, .max_attempts = 3},
		.hash = &hash,
		.n_hash = 1,
		.auto_host_rewrite = true,
		.overrides = {filters, 2}};
	t->clusters[t->n - 1].overrides = (struct lb_filter_overrides){&filters[2], 1};
}

// A28-W07: overrides come from the picked entry.
static void result_carries_copies_of_policy_and_overrides(void **state)
{
	(void)state;
	char texts[6][16];
	struct routes t = {0};
	add_rich_route(&t, texts);
	struct lb_vhost_conf vhost = routes_vhost(&t);
	struct lb_filter over_host = {.name = STR("host"), .kind = LB_FILTER_FAULT};
	vhost.overrides = (struct lb_filter_overrides){&over_host, 1};
	struct lb_route_table *table = vhosts_compile(&vhost, 1, false, NULL);
	memset(texts, '!', sizeof(texts));
	memset(&over_host, 0, sizeof(over_host));
	struct lb_route_result to = find(table, STR("/p"));
	memset(&t, 0, sizeof(t));
	assert_int_equal(to.kind, LB_ROUTE_CLUSTER);
	assert_int_equal(to.policy->timeouts.max_ns, 5);
	assert_int_equal(to.policy->retry.max_attempts, 3);
	assert_true(to.policy->auto_host_rewrite);
	assert_int_equal(to.policy->n_hash, 1);
	assert_true(str_eq(to.policy->hash[0].header, STR("x-key")));
	assert_null(to.policy->hash[0].rewrite);
	assert_int_equal(to.policy->overrides.n, 2);
	const struct lb_filter *f = to.policy->overrides.list;
	assert_true(str_eq(f[0].name, STR("fault")));
	assert_int_equal(f[0].fault.delay_ns, 7);
	assert_true(str_eq(f[1].session.cookie, STR("cookie")));
	assert_true(str_eq(f[1].session.path, STR("/c")));
	assert_int_equal(to.cluster_overrides->n, 1);
	assert_true(str_eq(to.cluster_overrides->list[0].name, STR("entry")));
	assert_int_equal(to.vhost_overrides->n, 1);
	assert_true(str_eq(to.vhost_overrides->list[0].name, STR("host")));
	lb_route_table_put(table);
}

static void what_does_not_match_has_an_empty_policy(void **state)
{
	(void)state;
	struct routes t = {0};
	struct lb_route_table *table = routes_compile(&t);
	struct lb_route_result to = find(table, STR("/"));
	assert_int_equal(to.kind, LB_ROUTE_NONE);
	assert_int_equal(to.policy->n_hash, 0);
	assert_int_equal(to.cluster_overrides->n + to.vhost_overrides->n, 0);
	lb_route_table_put(table);
}

static void rewrites_of_hash_policies_are_compiled_or_refused(void **state)
{
	(void)state;
	struct routes t = {0};
	struct lb_hash_policy hash = {.kind = LB_HASH_HEADER,
		.header = STR("x"),
		.pattern = STR("a+"),
		.substitution = STR("b")};
	prefix(&t, "/");
	t.list[0].policy.hash = &hash;
	t.list[0].policy.n_hash = 1;
	struct lb_route_table *table = routes_compile(&t);
	assert_non_null(find(table, STR("/")).policy->hash[0].rewrite);
	lb_route_table_put(table);
	hash.pattern = STR("a(");
	struct lb_err err = {0};
	struct lb_vhost_conf vhost = routes_vhost(&t);
	assert_null(lb_vhost_new(&vhost, &err));
	assert_non_null(strstr(err.text, "routes[0]: hash_policy[0]: regex_rewrite: "));
}

static void routes_that_do_the_same_share_their_policy(void **state)
{
	(void)state;
	char texts[3][6][16];
	struct routes t = {0};
	for (int i = 0; i < 3; i++) {
		add_rich_route(&t, texts[i]);
		texts[i][0][1] = (char)('a' + i);
	}
	struct lb_hash_policy other = t.list[1].policy.hash[0];
	other.terminal = false;
	t.list[1].policy.hash = &other;
	struct lb_route_table *table = routes_compile(&t);
	const struct lb_route_policy *a = find(table, STR("/a")).policy;
	assert_ptr_equal(find(table, STR("/c")).policy, a);
	assert_ptr_not_equal(find(table, STR("/b")).policy, a);
	lb_route_table_put(table);
}

// SA-10: A28-W04's entries are not honoured, those listed twice count once.
static void a_cluster_of_the_route_may_replace_the_drawn_one(void **state)
{
	(void)state;
	static const struct lb_filter f[] = {{.name = STR("three")}};
	static const struct lb_weighted_cluster clusters[] = {CLUSTER(1, 5), CLUSTER(2, 0),
		{.cluster_id = 3, .weight = 1, .overrides = {f, 1}}, CLUSTER(3, 1)};
	struct routes t = {0};
	prefix(&t, "/");
	t.list[0].clusters = clusters;
	t.list[0].n_clusters = 4;
	struct lb_route_table *table = routes_compile(&t);
	struct lb_route_result to = find(table, STR("/"));
	struct lb_route_result before = to;
	assert_false(lb_route_use_cluster(table, &to, 2));
	assert_false(lb_route_use_cluster(table, &to, 4));
	assert_memory_equal(&to, &before, sizeof(to));
	assert_true(lb_route_use_cluster(table, &to, 3));
	assert_int_equal(to.cluster_id, 3);
	assert_int_equal(to.cluster_overrides->n, 1);
	assert_true(lb_route_use_cluster(table, &to, 1));
	assert_int_equal(to.cluster_overrides->n, 0);
	lb_route_table_put(table);
}

static void tables_share_virtual_hosts(void **state)
{
	(void)state;
	struct routes t = {0};
	routes_add(&t, LB_PATH_REGEX, "/a+");
	routes_add_header(&t, "x", LB_HEADER_PRESENT, "")->present = true;
	struct lb_vhost_conf conf = routes_vhost(&t);
	struct lb_vhost *v = lb_vhost_new(&conf, NULL);
	struct lb_route_table_conf table_conf = {.n_vhosts = 1, .n_workers = 2};
	struct lb_route_table *first = route_table_of(&table_conf, &conf, &v, NULL);
	struct lb_route_table *second = route_table_of(&table_conf, &conf, &v, NULL);
	assert_ptr_equal(lb_route_table_vhost(first, 0), lb_route_table_vhost(second, 0));
	lb_vhost_put(v);
	lb_route_table_put(first);
	routes_fini(&t);
	const struct field f = {.name = STR("x")};
	const struct lb_req req = {.path = STR("/aa"), .fields = &f, .n_fields = 1};
	for (uint32_t thread = 0; thread <= 2; thread++) { // two workers and ctrl
		struct lb_route_scratch *scratch = lb_route_scratch_new(thread, 16);
		struct rand r;
		rand_init(&r, 1);
		struct lb_route_ctx ctx = {.rand = &r, .scratch = scratch};
		assert_int_equal(lb_route_find(second, &req, &ctx).kind, LB_ROUTE_CLUSTER);
		lb_route_scratch_free(scratch);
	}
	lb_route_table_put(second);
}

static struct lb_vhost *many_routes(enum lb_path_kind kind, bool case_sensitive, size_t *ret_text)
{
	static struct lb_route_conf routes[MANY];
	static char paths[MANY][48];
	static struct lb_weighted_cluster clusters[16];
	*ret_text = 0;
	for (uint32_t i = 0; i < MANY; i++) {
		clusters[i % 16] = (struct lb_weighted_cluster){.cluster_id = i % 16, .weight = 1};
		snprintf(paths[i], sizeof(paths[i]), "/acme.team%u.Service%u/Method%u", i % 13,
			i / 7, i);
		*ret_text += strlen(paths[i]);
		routes[i] = (struct lb_route_conf){.path_kind = kind,
			.path = str_from(paths[i]),
			.case_sensitive = case_sensitive,
			.ppm = LB_PPM_ALWAYS,
			.clusters = &clusters[i % 16],
			.n_clusters = 1};
	}
	const struct lb_vhost_conf conf = {.routes = routes, .n_routes = MANY};
	return lb_vhost_new(&conf, NULL);
}

static void a_literal_route_takes_64_bytes_beyond_its_text(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		size_t text;
		struct lb_vhost *v =
			many_routes(i & 1 ? LB_PATH_EXACT : LB_PATH_PREFIX, i & 2, &text);
		assert_non_null(v);
		assert_in_range((lb_vhost_size(v) - text) / MANY, 20, 64);
		lb_vhost_put(v);
	}
}

static void lookups_allocate_nothing(void **state)
{
	(void)state;
	struct routes t = {0};
	exact(&t, "/a");
	t.list[0].ppm = 0;
	add(&t, LB_PATH_EXACT, "/A", false);
	t.list[1].ppm = 0;
	routes_add(&t, LB_PATH_REGEX, "/[a-z]");
	routes_add_header(&t, "x", LB_HEADER_REGEX, "[0-9,]+");
	add(&t, LB_PATH_PREFIX, "/A", false);
	routes_add_header(&t, "x", LB_HEADER_EXACT, "a,b");
	prefix(&t, "");
	struct lb_route_table *table = routes_compile(&t);
	struct lb_route_scratch *scratch = lb_route_scratch_new(0, 100);
	struct rand r;
	rand_init(&r, 1);
	struct lb_route_ctx ctx = {.rand = &r, .scratch = scratch};
	static const char *const values[] = {"1", "a", "zz"};
	static const uint32_t routes[] = {2, 3, 4};
	for (int i = 0; i < 3; i++) {
		const struct field f[] = {{.name = STR("x"), .value = str_from(values[i])},
			{.name = STR("x"), .value = i == 1 ? STR("b") : STR("2")}};
		const struct lb_req req = {
			.authority = STR("x"), .path = STR("/a"), .fields = f, .n_fields = 2};
		alloc_fail_arm(0);
		struct lb_route_result to = lb_route_find(table, &req, &ctx);
		assert_false(alloc_fail_disarm());
		assert_int_equal(to.route_index, routes[i]);
	}
	lb_route_scratch_free(scratch);
	lb_route_table_put(table);
	routes_fini(&t);
}

static void each_failed_allocation_is_survived(void **state)
{
	(void)state;
	char texts[6][16];
	struct routes t = {0};
	prefix(&t, "/");
	exact(&t, "/a");
	add(&t, LB_PATH_PREFIX, "/b", false);
	routes_add_header(&t, "x", LB_HEADER_CONTAINS, "abab")->ignore_case = true;
	routes_add_header(&t, "y", LB_HEADER_REGEX, "[a-z]+");
	add(&t, LB_PATH_EXACT, "/c", false);
	routes_add(&t, LB_PATH_REGEX, "/d[0-9]");
	add_rich_route(&t, texts);
	struct lb_vhost_conf vhosts[2] = {routes_vhost(&t), routes_vhost(&t)};
	vhosts[1].overrides = t.clusters[t.n - 1].overrides;
	struct lb_route_table *table = NULL;
	struct lb_err err = {0};
	ALLOC_FAIL_EACH(
		table = vhosts_compile(vhosts, 2, false, &err), !table, lb_route_table_put(table));
	if (alloc_fail_works())
		assert_non_null(strstr(err.text, "out of memory"));
	struct lb_route_scratch *scratch = NULL;
	ALLOC_FAIL_EACH(
		scratch = lb_route_scratch_new(0, 10), !scratch, lb_route_scratch_free(scratch));
	routes_fini(&t);
}

static void count_keeps_the_table_alive(void **state)
{
	(void)state;
	struct routes t = {0};
	prefix(&t, "/");
	struct lb_route_table *table = routes_compile(&t);
	assert_ptr_equal(lb_route_table_get(table), table);
	lb_route_table_put(table);
	assert_int_equal(find(table, STR("/")).kind, LB_ROUTE_CLUSTER);
	lb_route_table_put(table);
	lb_route_table_put(NULL);
}

RUN_SUITE("lb/vhost", cmocka_unit_test(result_carries_copies_of_policy_and_overrides),
	cmocka_unit_test(what_does_not_match_has_an_empty_policy),
	cmocka_unit_test(rewrites_of_hash_policies_are_compiled_or_refused),
	cmocka_unit_test(routes_that_do_the_same_share_their_policy),
	cmocka_unit_test(a_cluster_of_the_route_may_replace_the_drawn_one),
	cmocka_unit_test(tables_share_virtual_hosts),
	cmocka_unit_test(a_literal_route_takes_64_bytes_beyond_its_text),
	cmocka_unit_test(lookups_allocate_nothing),
	cmocka_unit_test(each_failed_allocation_is_survived),
	cmocka_unit_test(count_keeps_the_table_alive))
