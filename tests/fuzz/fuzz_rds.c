// SPDX-License-Identifier: Apache-2.0
// Any bytes as a RouteConfiguration: a verdict with a reason; what is accepted compiles, and is
// then searched with requests made of its own paths, domains and headers. Each answer is held
// against what the resource says.
#include "ctrl/assemble/cluster_set.h"
#include "ctrl/assemble/cluster_tree.h"
#include "ctrl/assemble/regex_cache.h"
#include "ctrl/assemble/route_compile.h"
#include "ctrl/res/route.h"
#include "ctrl/xds/type.h"
#include "lb/base/check.h"
#include "lb/route/req.h"
#include "lb/route/route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT 256
#define MAX_FIELDS 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct world { // made once
	struct cluster_set *clusters;
	struct regex_cache *regexes;
	struct route_compiler *compiler;
	struct lb_route_scratch *scratch;
	struct rand rand;
} world;

static void make_world(void)
{
	static const struct cluster_tree_env nothing_changes;
	world.clusters = cluster_set_new(&nothing_changes, 1);
	struct regex_cache_conf regex_conf = {.synchronous = true};
	world.regexes = regex_cache_new(&regex_conf);
	struct route_compiler_conf conf = {
		.clusters = world.clusters, .regexes = world.regexes, .n_workers = 1};
	world.compiler = route_compiler_new(&conf);
	world.scratch = lb_route_scratch_new(0, 64 << 10);
	rand_init(&world.rand, 1);
	CHECK(world.clusters && world.regexes && world.compiler && world.scratch);
}

static void check_route(const struct res_route *r)
{
	uint64_t sum = 0;
	CHECK(strlen(r->path) == r->path_len && r->ppm <= LB_PPM_ALWAYS);
	for (uint32_t i = 0; i < r->n_clusters; i++) {
		CHECK(*r->clusters[i].name);
		sum += r->clusters[i].weight;
	}
	CHECK(r->action != LB_ACTION_CLUSTERS || (sum > 0 && sum <= UINT32_MAX));
	for (uint32_t i = 0; i < r->n_headers; i++) {
		const struct lb_header_match_conf *h = &r->headers[i];
		CHECK(h->name.len && !h->regex.set && h->start <= h->end);
	}
	const struct lb_retry *retry = &r->policy->retry;
	CHECK(retry->max_attempts >= 1 && retry->max_attempts <= 5);
	CHECK(!retry->statuses || (retry->base_ns && retry->base_ns <= retry->max_ns));
	for (uint32_t i = 0; i < r->policy->n_hash; i++)
		CHECK(r->policy->hash[i].kind != LB_HASH_HEADER || r->policy->hash[i].header.len);
}

// A request and the texts in it.
struct request {
	struct lb_req req;
	struct field fields[MAX_FIELDS];
	char authority[MAX_TEXT], path[MAX_TEXT];
};

// What the route would like, or nearly: `twist` spoils it in one of several ways.
static void make_request(
	struct request *q, const struct res_vhost *v, const struct res_route *r, unsigned twist)
{
	*q = (struct request){.req = {.method = STR("GET"), .scheme = STR("http")}};
	snprintf(q->authority, MAX_TEXT, "%s", v->domains[twist % v->n_domains]);
	for (char *p = q->authority; *p; p++)
		*p = *p == '*' ? 'a' : *p;
	static const char *const tails[] = {"", "x", "/", "?q=1", "#f"};
	snprintf(q->path, MAX_TEXT, "%.200s%s", r->path, tails[twist % 5]);
	if (twist % 3 == 1)
		for (char *p = q->path; *p; p++)
			*p = (char)(*p >= 'a' && *p <= 'z' ? *p - 32 : *p);
	q->req.authority = str_from(q->authority);
	q->req.path = str_from(q->path);
	q->req.is_grpc = twist & 1;
	q->req.fields = q->fields;
	for (uint32_t i = 0; i < r->n_headers && i < MAX_FIELDS; i++) {
		const struct lb_header_match_conf *h = &r->headers[i];
		struct str value = h->kind == LB_HEADER_RANGE ? STR("7") : h->text;
		if (!(twist & 2) || i != twist % r->n_headers)
			q->fields[q->req.n_fields++] = (struct field){h->name, value, false};
	}
}

static bool fold_eq(const char *a, const char *b, size_t n, bool fold)
{
	for (size_t i = 0; i < n; i++)
		if (fold ? str_fold(a[i]) != str_fold(b[i]) : a[i] != b[i])
			return false;
	return true;
}

static void check_path(const struct res_route *r, const char *path)
{
	size_t len = strcspn(path, "?#"); // A28-P06
	if (r->path_kind == LB_PATH_REGEX)
		return;
	CHECK(r->path_kind == LB_PATH_PREFIX ? len >= r->path_len : len == r->path_len);
	CHECK(fold_eq(path, r->path, r->path_len, !r->case_sensitive));
}

static void check_cluster(const struct res_route *r, const struct lb_route_result *found)
{
	bool there = false;
	for (uint32_t i = 0; i < r->n_clusters; i++) {
		const struct cluster *c = r->clusters[i].weight ? cluster_set_find(world.clusters,
									  r->clusters[i].name)
		                                                : NULL;
		there = there || (c && c->id == found->cluster_id);
	}
	CHECK(there && found->policy && found->cluster_overrides && found->vhost_overrides);
}

static void ask(const struct res_route_config *c, const struct lb_route_table *t, struct request *q)
{
	struct lb_route_ctx ctx = {.rand = &world.rand, .scratch = world.scratch};
	struct lb_route_result found = lb_route_find(t, &q->req, &ctx);
	if (found.kind != LB_ROUTE_CLUSTER && found.kind != LB_ROUTE_UNSUPPORTED)
		return;
	CHECK(found.vhost_index < c->n_vhosts);
	const struct res_vhost *v = &c->vhosts[found.vhost_index];
	CHECK(found.route_index < v->n_routes);
	const struct res_route *r = &v->routes[found.route_index];
	check_path(r, q->path);
	CHECK((found.kind == LB_ROUTE_CLUSTER) == (r->action == LB_ACTION_CLUSTERS));
	if (found.kind == LB_ROUTE_CLUSTER)
		check_cluster(r, &found);
}

static void search(const struct res_route_config *c, const struct lb_route_table *t)
{
	static struct request q;
	unsigned twist = 0;
	for (uint32_t v = 0; v < c->n_vhosts; v++) {
		for (uint32_t i = 0; i < c->vhosts[v].n_routes && twist < 1000; i++) {
			for (unsigned k = 0; k < 4; k++) {
				make_request(&q, &c->vhosts[v], &c->vhosts[v].routes[i], twist++);
				ask(c, t, &q);
			}
		}
	}
}

// A counted repetition can keep Hyperscan busy for seconds, and that is all there is to find.
static bool is_slow(const struct res_route *r)
{
	bool slow = r->path_kind == LB_PATH_REGEX && strchr(r->path, '{');
	for (uint32_t i = 0; i < r->n_headers; i++)
		slow = slow || (r->headers[i].kind == LB_HEADER_REGEX &&
				       memchr(r->headers[i].text.p, '{', r->headers[i].text.len));
	return slow;
}

static void obtain_clusters(const struct res_route *r)
{
	struct lb_err err;
	for (uint32_t i = 0; i < r->n_clusters; i++)
		CHECK(cluster_set_obtain(world.clusters, r->clusters[i].name, &err));
}

static void compile(const struct res_route_config *c)
{
	bool slow = false;
	for (uint32_t v = 0; v < c->n_vhosts; v++) {
		CHECK(c->vhosts[v].n_domains > 0);
		for (uint32_t i = 0; i < c->vhosts[v].n_routes; i++) {
			check_route(&c->vhosts[v].routes[i]);
			slow = slow || is_slow(&c->vhosts[v].routes[i]);
			obtain_clusters(&c->vhosts[v].routes[i]);
		}
	}
	struct compiled_routes *compiled;
	struct lb_err err = {""};
	struct route_compile_how how = {.vhost = -1};
	struct route_job *job = route_job_new(world.compiler, c, how);
	CHECK(job);
	if (!slow && route_job_run(job, &compiled, &err) == ROUTE_COMPILED) {
		search(c, compiled_routes_table(compiled));
		compiled_routes_free(compiled);
	}
	route_job_free(job);
	regex_cache_sweep(world.regexes);
	while (cluster_set_count(world.clusters))
		cluster_set_drop(world.clusters, cluster_set_at(world.clusters, 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!world.clusters)
		make_world();
	struct xds_decoded d = {0};
	res_type_route_config.decode(data, size, &d);
	CHECK(!d.res == !!*d.err.text);
	if (d.res)
		compile(res_route_config_from(d.res));
	xds_res_put(d.res);
	free(d.name);
	return 0;
}
