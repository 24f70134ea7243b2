// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/lb/routes.h"

#include "tests/support/check.h"
#include "tests/support/route_table.h"

#include <stdlib.h>

struct lb_route_conf *routes_add(struct routes *t, enum lb_path_kind kind, const char *path)
{
	assert_true(t->n < ROUTES_MAX);
	uint32_t i = t->n++;
	t->clusters[i] = (struct lb_weighted_cluster){.cluster_id = 100 + i, .weight = 1};
	t->list[i] = (struct lb_route_conf){.path_kind = kind,
		.path = str_from(path),
		.case_sensitive = true,
		.ppm = LB_PPM_ALWAYS,
		.clusters = &t->clusters[i],
		.n_clusters = 1};
	if (kind == LB_PATH_REGEX)
		t->list[i].regex.set = routes_add_set(t, &path, 1);
	return &t->list[i];
}

struct lb_header_match_conf *routes_add_header(
	struct routes *t, const char *name, enum lb_header_match_kind kind, const char *text)
{
	assert_true(t->n > 0 && t->n_headers < ROUTES_MAX);
	struct lb_route_conf *route = &t->list[t->n - 1];
	struct lb_header_match_conf *h = &t->headers[t->n_headers++];
	*h = (struct lb_header_match_conf){
		.name = str_from(name), .kind = kind, .text = str_from(text)};
	if (kind == LB_HEADER_REGEX)
		h->regex.set = routes_add_set(t, &text, 1);
	if (route->n_headers++ == 0)
		route->headers = h;
	return h;
}

struct lb_regex_set *routes_add_set(struct routes *t, const char *const *patterns, uint32_t n)
{
	struct str texts[LB_REGEX_SET_MAX];
	assert_true(t->n_sets < ROUTES_MAX && n <= LB_REGEX_SET_MAX);
	for (uint32_t i = 0; i < n; i++)
		texts[i] = str_from(patterns[i]);
	struct lb_regex_set *set = lb_regex_set_new(texts, n, NULL);
	assert_non_null(set);
	return t->sets[t->n_sets++] = set;
}

void routes_fini(struct routes *t)
{
	while (t->n_sets)
		lb_regex_set_put(t->sets[--t->n_sets]);
}

struct lb_vhost_conf routes_vhost(const struct routes *t)
{
	static const struct str any[] = {STR("*")};
	return (struct lb_vhost_conf){.name = STR("all"),
		.domains = any,
		.n_domains = 1,
		.routes = t->list,
		.n_routes = t->n};
}

static struct lb_route_table *compile(const struct lb_route_table_conf *conf,
	const struct lb_vhost_conf *vhosts, struct lb_err *reterr)
{
	struct lb_vhost *compiled[4] = {0};
	struct lb_route_table *table = NULL;
	uint32_t i = 0;
	assert_true(conf->n_vhosts <= 4);
	while (i < conf->n_vhosts && (compiled[i] = lb_vhost_new(&vhosts[i], reterr)))
		i++;
	if (i == conf->n_vhosts)
		table = route_table_of(conf, vhosts, compiled, reterr);
	for (uint32_t k = 0; k < i; k++)
		lb_vhost_put(compiled[k]);
	return table;
}

struct lb_route_table *routes_compile(const struct routes *t)
{
	struct lb_vhost_conf vhost = routes_vhost(t);
	const struct lb_route_table_conf conf = {
		.n_vhosts = 1, .ignore_port = t->ignore_port, .grpc_sees_all = t->grpc_sees_all};
	struct lb_route_table *table = compile(&conf, &vhost, NULL);
	assert_non_null(table);
	return table;
}

struct lb_route_table *vhosts_compile(
	const struct lb_vhost_conf *vhosts, uint32_t n, bool ignore_port, struct lb_err *reterr)
{
	return compile(&(struct lb_route_table_conf){.n_vhosts = n, .ignore_port = ignore_port},
		vhosts, reterr);
}

struct lb_route_result find_req(
	const struct lb_route_table *table, const struct lb_req *req, struct rand *rand)
{
	struct lb_route_scratch *scratch = lb_route_scratch_new(0, 4096);
	assert_non_null(scratch);
	struct lb_route_ctx ctx = {.rand = rand, .scratch = scratch};
	struct lb_route_result result = lb_route_find(table, req, &ctx);
	lb_route_scratch_free(scratch);
	return result;
}

int routes_match(const struct routes *t, const struct lb_req *req)
{
	struct rand r;
	rand_init(&r, 1);
	struct lb_route_table *table = routes_compile(t);
	struct lb_route_result result = find_req(table, req, &r);
	lb_route_table_put(table);
	if (result.kind == LB_ROUTE_NONE)
		return -1;
	assert_int_equal(result.kind, LB_ROUTE_CLUSTER);
	assert_int_equal(result.cluster_id, 100 + result.route_index);
	return (int)result.route_index;
}

int routes_match_path(const struct routes *t, const char *path)
{
	return routes_match(t, &(struct lb_req){.authority = STR("a"), .path = str_from(path)});
}
