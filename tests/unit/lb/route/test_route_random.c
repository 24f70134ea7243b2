// SPDX-License-Identifier: Apache-2.0
// test_lb_route_random [PAIRS [SEED]]: that many random (table, request) pairs, on each of which
// the fast lookup and the rules must agree, down to each route looked at and why it did not match.
#include "tests/support/check.h"
#include "tests/support/route_table.h"
#include "tests/unit/lb/route/route_twin.h"

#include <stdio.h>
#include <stdlib.h>

#define SHORT_FORM 200000
#define REQUESTS 40 // to a table
#define MAX_VHOSTS 3
#define MAX_ROUTES 60
#define MAX_HEADERS 4 // of a route
#define MAX_CLUSTERS 4
#define N_SETS 12
#define LEN(list) (sizeof(list) / sizeof((list)[0]))

static uint64_t n_pairs = SHORT_FORM, seed = 1;

static const char *const path_patterns[] = {"/a.*", "/a/[^/]+", "/a/b/[0-9]+", "/A|/b", ".*", "",
	"/(a|b)/.*", "(?i)/a/b", "/a/b?", "/[aA]{1,3}", "/b/.+/a", "[^/]*", "/a/b", "/a/b/.*",
	"/x.y", "/a\\.b"};
static const char *const value_patterns[] = {"a.*", "[0-9]+", "", "a|b", ".*b", "(?i)AB", "a,b",
	"[^,]+", "a=1; b=2", "x", "application/grpc.*", "-?[0-9]{1,3}"};
static const char *const names[] = {"x-a", "x-b", "x-c", "cookie", "content-type", "user-agent",
	"te", "x-bin", "trace-bin", "grpc-timeout", "grpc-foo", ":method", ":path", ":authority",
	":scheme", "host"};
static const char *const values[] = {"", "a", "b", "ab", "AB", "aB", "aab", "5", "-5", "+7", "42",
	"9223372036854775807", "9223372036854775808", "1x", "10.5", "a,b", "a=1", "b=2",
	"application/grpc", "application/grpc+proto", "x", "\xff\x80", "aaaaab", "a\nb"};
static const char *const methods[] = {"GET", "a", "GET", "a", "GET", "CONNECT"};
static const char *const domains[] = {
	"a.com", "*.com", "a.*", "b.com:80", "[::1]", "[::1]:80", "*"};
static const char *const hosts[] = {
	"a.com", "A.com", "x.com", "a.org", "b.com:80", "a.com:80", "z", "", "[::1]", "[::1]:80"};

struct pool { // of compiled sets, each of some of the patterns
	const char *const *patterns;
	size_t n;
	struct lb_regex_set *sets[N_SETS];
	uint32_t bit[N_SETS][16]; // of each pattern, UINT32_MAX = not in it
};
static struct pool path_pool = {.patterns = path_patterns, .n = LEN(path_patterns)};
static struct pool value_pool = {.patterns = value_patterns, .n = LEN(value_patterns)};

// The first set has all patterns, others a few each.
static void pool_init(struct pool *p, struct rand *r)
{
	for (int i = 0; i < N_SETS; i++) {
		struct str in[16];
		uint32_t n = 0;
		for (size_t k = 0; k < p->n; k++) {
			p->bit[i][k] = UINT32_MAX;
			if (i > 0 && rand_below(r, 4) && (n || k + 1 < p->n))
				continue;
			p->bit[i][k] = n;
			in[n++] = str_from(p->patterns[k]);
		}
		p->sets[i] = lb_regex_set_new(in, n, NULL);
		assert_non_null(p->sets[i]);
	}
}

static void pool_fini(struct pool *p)
{
	for (int i = 0; i < N_SETS; i++)
		lb_regex_set_put(p->sets[i]);
}

static struct str pool_pick(const struct pool *p, struct rand *r, struct lb_regex_ref *ret)
{
	for (;;) {
		size_t k = rand_below(r, p->n), i = rand_below(r, N_SETS);
		if (p->bit[i][k] == UINT32_MAX)
			continue;
		*ret = (struct lb_regex_ref){p->sets[i], p->bit[i][k]};
		return str_from(p->patterns[k]);
	}
}

#define PICK(r, list) ((list)[rand_below((r), LEN(list))])

struct random_vhost {
	struct lb_route_conf routes[MAX_ROUTES];
	struct lb_header_match_conf headers[MAX_ROUTES][MAX_HEADERS];
	struct lb_weighted_cluster clusters[MAX_ROUTES][MAX_CLUSTERS];
	char paths[MAX_ROUTES][32];
	struct str domains[2];
};
struct random_table {
	struct twin_table twin;
	struct lb_vhost_conf vhosts[MAX_VHOSTS];
	struct random_vhost parts[MAX_VHOSTS];
};

static void random_path(struct rand *r, char *to)
{
	static const char *const parts[] = {"/a", "/b", "/A", "/B", "/", "a", "b", "/x.y", "/7",
		"/a/b", "\xff", "/aaaaaaaaaaaa"};
	size_t n = rand_below(r, 4);
	to[0] = 0;
	for (size_t i = 0; i < n; i++)
		strcat(to, PICK(r, parts));
	to[31] = 0;
}

static void random_header(struct rand *r, struct lb_header_match_conf *h)
{
	static const int64_t bounds[] = {INT64_MIN, -5, -4, 0, 5, 6, 42, 43, INT64_MAX};
	*h = (struct lb_header_match_conf){.name = str_from(PICK(r, names)),
		.kind = (enum lb_header_match_kind)rand_below(r, LB_HEADER_PRESENT + 1),
		.text = str_from(PICK(r, values)),
		.ignore_case = rand_below(r, 3) == 0,
		.invert = rand_below(r, 3) == 0,
		.present = rand_below(r, 2),
		.start = PICK(r, bounds),
		.end = PICK(r, bounds)};
	if (h->kind == LB_HEADER_REGEX)
		h->text = pool_pick(&value_pool, r, &h->regex);
}

static void random_clusters(struct rand *r, struct lb_route_conf *c, struct lb_weighted_cluster *to)
{
	static const uint32_t weights[] = {0, 1, 1, 3, 100, 4000000000};
	c->clusters = to;
	c->n_clusters = 1;
	to[0] = (struct lb_weighted_cluster){
		.cluster_id = (uint32_t)rand_below(r, 1000), .weight = 1};
	while (c->n_clusters < MAX_CLUSTERS && rand_below(r, 3) == 0) {
		uint32_t weight = PICK(r, weights);
		if (weight > 100 && c->n_clusters > 1)
			weight = 2;
		to[c->n_clusters++] = (struct lb_weighted_cluster){
			.cluster_id = (uint32_t)rand_below(r, 1000), .weight = weight};
	}
}

static void random_route(struct rand *r, struct random_vhost *v, uint32_t i, bool plain)
{
	static const uint32_t fractions[] = {0, 1, 500000, 999999, 900000};
	struct lb_route_conf *c = &v->routes[i];
	random_path(r, v->paths[i]);
	*c = (struct lb_route_conf){
		.path_kind = (enum lb_path_kind)rand_below(r, LB_PATH_REGEX + 1),
		.path = str_from(v->paths[i]),
		.case_sensitive = rand_below(r, 3) > 0,
		.headers = v->headers[i],
		.ppm = LB_PPM_ALWAYS,
		.action = rand_below(r, 16) ? LB_ACTION_CLUSTERS : LB_ACTION_UNSUPPORTED};
	if (c->path_kind == LB_PATH_REGEX)
		c->path = pool_pick(&path_pool, r, &c->regex);
	if (!plain) {
		c->n_headers =
			(uint32_t)rand_below(r, 2) * (uint32_t)rand_below(r, MAX_HEADERS + 1);
		c->grpc_only = rand_below(r, 8) == 0;
		if (rand_below(r, 4) == 0)
			c->ppm = PICK(r, fractions);
	}
	for (uint32_t k = 0; k < c->n_headers; k++)
		random_header(r, &v->headers[i][k]);
	random_clusters(r, c, v->clusters[i]);
}

static struct lb_route_table *random_table(struct rand *r, struct random_table *t)
{
	uint32_t n_vhosts = 1 + (uint32_t)rand_below(r, MAX_VHOSTS);
	struct lb_vhost *compiled[MAX_VHOSTS];
	t->twin = (struct twin_table){.vhosts = t->vhosts,
		.n_vhosts = n_vhosts,
		.ignore_port = rand_below(r, 4) == 0,
		.grpc_sees_all = rand_below(r, 4) == 0};
	for (uint32_t i = 0; i < n_vhosts; i++) {
		struct random_vhost *v = &t->parts[i];
		uint32_t n_routes = (uint32_t)rand_below(r, MAX_ROUTES + 1);
		bool plain = rand_below(r, 4) == 0;
		for (uint32_t k = 0; k < n_routes; k++)
			random_route(r, v, k, plain);
		v->domains[0] = str_from(rand_below(r, 2) ? "*" : PICK(r, domains));
		v->domains[1] = str_from(PICK(r, domains));
		t->vhosts[i] = (struct lb_vhost_conf){.name = STR("v"),
			.domains = v->domains,
			.n_domains = 2,
			.routes = v->routes,
			.n_routes = n_routes};
		compiled[i] = lb_vhost_new(&t->vhosts[i], NULL);
		assert_non_null(compiled[i]);
	}
	const struct lb_route_table_conf conf = {.n_vhosts = n_vhosts,
		.ignore_port = t->twin.ignore_port,
		.grpc_sees_all = t->twin.grpc_sees_all,
		.n_workers = 1};
	struct lb_route_table *table = route_table_of(&conf, t->vhosts, compiled, NULL);
	assert_non_null(table);
	for (uint32_t i = 0; i < n_vhosts; i++)
		lb_vhost_put(compiled[i]);
	return table;
}

struct random_req {
	struct lb_req req;
	struct field fields[16];
	char path[64];
};

static void random_req(struct rand *r, struct random_req *q)
{
	random_path(r, q->path);
	if (rand_below(r, 4) == 0)
		strcat(q->path, rand_below(r, 2) ? "?q=/a#b" : "#/a?");
	size_t n = rand_below(r, LEN(q->fields) + 1);
	for (size_t i = 0; i < n; i++)
		q->fields[i] = (struct field){.name = str_from(names[rand_below(r, 11)]),
			.value = str_from(PICK(r, values))};
	q->req = (struct lb_req){.authority = str_from(PICK(r, hosts)),
		.path = str_from(q->path),
		.method = str_from(PICK(r, methods)),
		.scheme = STR("http"),
		.is_grpc = rand_below(r, 2),
		.fields = q->fields,
		.n_fields = n};
}

struct heard {
	const struct twin_answer *expected;
	uint32_t n;
};

static void hear(void *ctx, const struct lb_route_step *step)
{
	struct heard *h = ctx;
	assert_true(h->n < h->expected->n_steps);
	const struct lb_route_step *expected = &h->expected->steps[h->n++];
	assert_int_equal(step->route_index, expected->route_index);
	assert_int_equal(step->verdict, expected->verdict);
	assert_int_equal(step->header, expected->header);
}

// Once as workers do it and once with somebody listening.
static void check_pair(const struct random_table *t, const struct lb_route_table *table,
	const struct lb_req *req, struct lb_route_scratch *scratch, struct rand start)
{
	static struct twin_answer expected;
	struct rand twin_rand = start;
	twin_find(&t->twin, req, &twin_rand, &expected);
	for (int listens = 0; listens < 2; listens++) {
		struct rand rand = start;
		struct heard heard = {.expected = &expected};
		struct lb_route_ctx ctx = {.rand = &rand, .scratch = scratch};
		if (listens) {
			ctx.trace = hear;
			ctx.trace_ctx = &heard;
		}
		struct lb_route_result got = lb_route_find(table, req, &ctx);
		assert_int_equal(got.kind, expected.kind);
		assert_memory_equal(&rand, &twin_rand, sizeof(rand)); // drew as often
		if (listens)
			assert_int_equal(heard.n, expected.n_steps);
		if (got.kind != LB_ROUTE_NO_VHOST)
			assert_int_equal(got.vhost_index, expected.vhost);
		if (got.kind == LB_ROUTE_CLUSTER || got.kind == LB_ROUTE_UNSUPPORTED)
			assert_int_equal(got.route_index, expected.route);
		if (got.kind == LB_ROUTE_CLUSTER)
			assert_int_equal(got.cluster_id, expected.cluster);
	}
}

// A28-R01, A28-R02, A28-P01..A28-P09, A28-H01..A28-H12, A28-O03, A28-O04, A28-O07, A28-W01,
// A28-W04, VH-02..VH-10, SM-01, SM-02
static void random_tables_and_requests_agree_with_the_rules(void **state)
{
	(void)state;
	static struct random_table t;
	static struct random_req q;
	struct rand r;
	rand_init(&r, seed);
	pool_init(&path_pool, &r);
	pool_init(&value_pool, &r);
	struct lb_route_scratch *scratch = lb_route_scratch_new(0, 4096);
	assert_non_null(scratch);
	uint64_t n_matched = 0;
	for (uint64_t i = 0; i < n_pairs;) {
		struct lb_route_table *table = random_table(&r, &t);
		for (int k = 0; k < REQUESTS && i < n_pairs; k++, i++) {
			random_req(&r, &q);
			check_pair(&t, table, &q.req, scratch, r);
			struct lb_route_ctx ctx = {.rand = &r, .scratch = scratch};
			n_matched += lb_route_find(table, &q.req, &ctx).kind == LB_ROUTE_CLUSTER;
			rand_u64(&r);
		}
		lb_route_table_put(table);
	}
	printf("%llu pairs, seed %llu, %llu of them routed\n", (unsigned long long)n_pairs,
		(unsigned long long)seed, (unsigned long long)n_matched);
	assert_true(n_matched > n_pairs / 3 && n_matched < n_pairs);
	lb_route_scratch_free(scratch);
	pool_fini(&path_pool);
	pool_fini(&value_pool);
	twin_fini();
}

int main(int argc, char **argv)
{
	if (argc > 1)
		n_pairs = strtoull(argv[1], NULL, 10);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 10);
	const struct CMUnitTest suite[] = {
		cmocka_unit_test(random_tables_and_requests_agree_with_the_rules)};
	return cmocka_run_group_tests_name("lb/route at random", suite, NULL, NULL);
}
