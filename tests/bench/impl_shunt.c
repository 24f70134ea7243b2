// SPDX-License-Identifier: Apache-2.0
// The product's own table: one virtual host with all routes.
#include "ctrl/assemble/regex_cache.h"
#include "lb/base/check.h"
#include "lb/route/req.h"
#include "lb/route/route.h"
#include "tests/bench/impl.h"
#include "tests/support/route_table.h"

#include <stdlib.h>

#define N_CLUSTERS 64

struct shunt {
	struct lb_route_table *table;
	struct lb_route_scratch *scratch;
	struct rand rand;
	struct regex_cache *cache;
	struct lb_regex_ref *refs; // of regex routes
};

// As the control plane does it.
static void compile_regexes(struct shunt *s, const struct workload *w)
{
	struct str *patterns = calloc(w->n_regexes + 1, sizeof(*patterns));
	struct lb_regex_ref *refs = calloc(w->n_regexes + 1, sizeof(*refs));
	CHECK(patterns && refs);
	uint32_t n = 0;
	for (uint32_t i = 0; i < w->n_routes; i++)
		if (w->routes[i].is_regex)
			patterns[n++] = w->routes[i].text;
	CHECK(regex_cache_ask(s->cache, REGEX_OF_PATHS, patterns, n, refs, NULL) == 0);
	n = 0;
	for (uint32_t i = 0; i < w->n_routes; i++)
		if (w->routes[i].is_regex)
			s->refs[i] = refs[n++];
	free(patterns);
	free(refs);
}

static void shunt_free(void *ctx)
{
	struct shunt *s = ctx;
	lb_route_table_put(s->table);
	lb_route_scratch_free(s->scratch);
	regex_cache_free(s->cache);
	free(s->refs);
	free(s);
}

static void *shunt_build(const struct workload *w)
{
	struct shunt *s = calloc(1, sizeof(*s));
	struct lb_route_conf *routes = calloc(w->n_routes, sizeof(*routes));
	struct lb_weighted_cluster clusters[N_CLUSTERS];
	CHECK(s && routes);
	s->refs = calloc(w->n_routes, sizeof(s->refs[0]));
	s->cache = regex_cache_new(&(struct regex_cache_conf){.synchronous = true});
	CHECK(s->refs && s->cache);
	compile_regexes(s, w);
	for (uint32_t i = 0; i < N_CLUSTERS; i++)
		clusters[i] = (struct lb_weighted_cluster){.cluster_id = i, .weight = 1};
	for (uint32_t i = 0; i < w->n_routes; i++)
		routes[i] = (struct lb_route_conf){
			.path_kind = w->routes[i].is_regex ? LB_PATH_REGEX : LB_PATH_PREFIX,
			.path = w->routes[i].text,
			.case_sensitive = true,
			.regex = s->refs[i],
			.ppm = LB_PPM_ALWAYS,
			.clusters = &clusters[i % N_CLUSTERS],
			.n_clusters = 1};
	static const struct str domains[] = {STR("api.example.com"), STR("*.example.org")};
	const struct lb_vhost_conf conf = {.name = STR("api"),
		.domains = domains,
		.n_domains = 2,
		.routes = routes,
		.n_routes = w->n_routes};
	struct lb_vhost *v = lb_vhost_new(&conf, NULL);
	CHECK(v);
	const struct lb_route_table_conf table = {.n_vhosts = 1, .n_exact = 1, .n_workers = 1};
	s->table = route_table_of(&table, &conf, &v, NULL);
	s->scratch = lb_route_scratch_new(0, 4096);
	CHECK(s->table && s->scratch);
	rand_init(&s->rand, 1);
	lb_vhost_put(v);
	free(routes);
	return s;
}

static uint32_t shunt_find(void *ctx, struct str path)
{
	struct shunt *s = ctx;
	const struct lb_req req = {.authority = STR("api.example.com"),
		.path = path,
		.method = STR("POST"),
		.scheme = STR("https"),
		.is_grpc = true};
	struct lb_route_ctx find = {.rand = &s->rand, .scratch = s->scratch};
	struct lb_route_result r = lb_route_find(s->table, &req, &find);
	return r.kind == LB_ROUTE_CLUSTER ? r.route_index : IMPL_NONE;
}

static double shunt_bytes(void *ctx, const struct workload *w)
{
	struct shunt *s = ctx;
	return (double)(lb_vhost_size(lb_route_table_vhost(s->table, 0)) +
			regex_cache_count(s->cache).n_bytes);
}

const struct impl impl_shunt = {
	"shunt", UINT32_MAX, "", shunt_build, shunt_find, shunt_bytes, shunt_free};
