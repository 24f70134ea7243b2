// SPDX-License-Identifier: Apache-2.0
// Path criteria of a virtual host compiled into three sets that each give their smallest matching
// route number; the smallest of the three is the first match (A28-R01).
#include "lb/route.h"

#include "lb/base/check.h"
#include "lb/radix.h"
#include "lb/req.h"
#include "lb/strmap.h"
#include "lb/vhost.h"

#include <stdlib.h>

_Static_assert(LB_STRMAP_NONE == UINT32_MAX && LB_RADIX_NONE == UINT32_MAX,
	"an absent route is larger than every route number");

struct route {
	enum lb_action_kind action;
	uint32_t n_draws; // clusters with a weight
	const struct lb_weighted_cluster *draws; // in the table's array; weight = sum up to here
};

struct vhost {
	struct lb_strmap *exact;
	struct lb_radix *prefix;
	// Case ignored: exact paths and prefixes, which answer by `whole` and `smallest`.
	struct lb_radix *exact_fold, *prefix_fold;
	struct route *routes; // in the table's array
	uint32_t n_routes;
};

struct lb_route_table {
	uint32_t n_refs; // ctrl only
	uint32_t n_vhosts;
	struct lb_vhost_index *index; // owned, as all below
	struct vhost *vhosts;
	struct route *routes; // of all virtual hosts
	struct lb_weighted_cluster *draws; // of all routes
};

static int check_clusters(
	const struct lb_route_conf *route, uint32_t vhost, uint32_t i, struct lb_err *reterr)
{
	if (route->action != LB_ACTION_CLUSTERS)
		return 0;
	uint64_t sum = 0;
	for (uint32_t k = 0; k < route->n_clusters; k++)
		sum += route->clusters[k].weight;
	if (sum == 0 || sum > UINT32_MAX) // A28-W03, A28-W04
		return lb_err_set(reterr,
			"virtual_hosts[%u].routes[%u]: sum of cluster weights is %llu", vhost, i,
			(unsigned long long)sum);
	return 0;
}

// Entries with weight 0 are never drawn and left out (A28-W04). Returns the end of the draws.
static struct lb_weighted_cluster *compile_route(
	struct route *route, const struct lb_route_conf *conf, struct lb_weighted_cluster *draws)
{
	*route = (struct route){.action = conf->action, .draws = draws};
	if (conf->action != LB_ACTION_CLUSTERS)
		return draws;
	uint32_t sum = 0;
	for (uint32_t k = 0; k < conf->n_clusters; k++) {
		const struct lb_weighted_cluster *c = &conf->clusters[k];
		if (c->weight == 0)
			continue;
		sum += c->weight;
		draws[route->n_draws++] = (struct lb_weighted_cluster){c->cluster_id, sum};
	}
	return draws + route->n_draws;
}

enum set { EXACT, EXACT_FOLD, PREFIX, PREFIX_FOLD, N_SETS };

static enum set set_of(const struct lb_route_conf *r)
{
	if (r->path_kind == LB_PATH_EXACT)
		return r->case_sensitive ? EXACT : EXACT_FOLD;
	return r->case_sensitive ? PREFIX : PREFIX_FOLD;
}

static uint32_t collect(
	struct lb_radix_entry *entries, const struct lb_vhost_conf *conf, enum set set)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < conf->n_routes; i++)
		if (set_of(&conf->routes[i]) == set)
			entries[n++] = (struct lb_radix_entry){conf->routes[i].path, i};
	return n;
}

static struct lb_strmap *compile_exact(const struct lb_radix_entry *entries, uint32_t n)
{
	struct lb_strmap_entry *keys = malloc(((size_t)n + 1) * sizeof(keys[0]));
	if (!keys)
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		keys[i] = (struct lb_strmap_entry){entries[i].key, entries[i].value};
	struct lb_strmap *map = lb_strmap_new(keys, n);
	free(keys);
	return map;
}

static bool compile_paths(struct vhost *v, const struct lb_vhost_conf *conf)
{
	struct lb_radix_entry *entries = malloc(((size_t)conf->n_routes + 1) * sizeof(entries[0]));
	if (!entries)
		return false;
	v->exact = compile_exact(entries, collect(entries, conf, EXACT));
	v->prefix = lb_radix_new(entries, collect(entries, conf, PREFIX), 0);
	v->exact_fold = lb_radix_new(entries, collect(entries, conf, EXACT_FOLD), LB_RADIX_FOLD);
	v->prefix_fold = lb_radix_new(entries, collect(entries, conf, PREFIX_FOLD), LB_RADIX_FOLD);
	free(entries);
	return v->exact && v->prefix && v->exact_fold && v->prefix_fold;
}

static void table_free(struct lb_route_table *t)
{
	for (uint32_t i = 0; t->vhosts && i < t->n_vhosts; i++) {
		struct vhost *v = &t->vhosts[i];
		lb_strmap_free(v->exact);
		lb_radix_free(v->prefix);
		lb_radix_free(v->exact_fold);
		lb_radix_free(v->prefix_fold);
	}
	lb_vhost_index_free(t->index);
	free(t->vhosts);
	free(t->routes);
	free(t->draws);
	free(t);
}

// The arrays that everything else points into. NULL = no memory.
static struct lb_route_table *table_alloc(const struct lb_vhost_conf *vhosts, uint32_t n_vhosts)
{
	size_t n_routes = 0, n_draws = 0;
	for (uint32_t i = 0; i < n_vhosts; i++) {
		n_routes += vhosts[i].n_routes;
		for (uint32_t j = 0; j < vhosts[i].n_routes; j++)
			n_draws += vhosts[i].routes[j].n_clusters;
	}
	struct lb_route_table *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->n_refs = 1;
	t->n_vhosts = n_vhosts;
	t->vhosts = calloc((size_t)n_vhosts + 1, sizeof(t->vhosts[0]));
	t->routes = calloc(n_routes + 1, sizeof(t->routes[0]));
	t->draws = calloc(n_draws + 1, sizeof(t->draws[0]));
	if (t->vhosts && t->routes && t->draws)
		return t;
	table_free(t);
	return NULL;
}

static bool compile(struct lb_route_table *t, const struct lb_vhost_conf *vhosts)
{
	struct route *routes = t->routes;
	struct lb_weighted_cluster *draws = t->draws;
	for (uint32_t i = 0; i < t->n_vhosts; i++) {
		struct vhost *v = &t->vhosts[i];
		v->routes = routes;
		v->n_routes = vhosts[i].n_routes;
		routes += v->n_routes;
		for (uint32_t j = 0; j < v->n_routes; j++)
			draws = compile_route(&v->routes[j], &vhosts[i].routes[j], draws);
		if (!compile_paths(v, &vhosts[i]))
			return false;
	}
	return true;
}

struct lb_route_table *lb_route_table_new(
	const struct lb_vhost_conf *vhosts, uint32_t n_vhosts, struct lb_err *reterr)
{
	for (uint32_t i = 0; i < n_vhosts; i++)
		for (uint32_t j = 0; j < vhosts[i].n_routes; j++)
			if (check_clusters(&vhosts[i].routes[j], i, j, reterr))
				return NULL;
	struct lb_vhost_index *index = lb_vhost_index_new(vhosts, n_vhosts, reterr);
	if (!index)
		return NULL;
	struct lb_route_table *t = table_alloc(vhosts, n_vhosts);
	if (!t) {
		lb_vhost_index_free(index);
		goto err;
	}
	t->index = index;
	if (compile(t, vhosts))
		return t;
	table_free(t);
err:
	(void)lb_err_set(reterr, "no memory");
	return NULL;
}

struct lb_route_table *lb_route_table_get(struct lb_route_table *t)
{
	t->n_refs++;
	return t;
}

void lb_route_table_put(struct lb_route_table *t)
{
	if (!t)
		return;
	CHECK(t->n_refs > 0);
	if (--t->n_refs == 0)
		table_free(t);
}

// The query and the fragment take no part in matching (A28-P06).
static struct str cut(struct str path)
{
	const char *end = path.len ? memchr(path.p, '?', path.len) : NULL;
	if (end)
		path.len = (size_t)(end - path.p);
	end = path.len ? memchr(path.p, '#', path.len) : NULL;
	if (end)
		path.len = (size_t)(end - path.p);
	return path;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t first_route(const struct vhost *v, struct str path)
{
	uint32_t i = lb_strmap_find(v->exact, path);
	i = smaller(i, lb_radix_find(v->prefix, path).smallest);
	i = smaller(i, lb_radix_find(v->exact_fold, path).whole);
	return smaller(i, lb_radix_find(v->prefix_fold, path).smallest);
}

// One draw a request, kept for its life (A31).
static uint32_t draw(const struct route *route, struct rand *rand)
{
	const struct lb_weighted_cluster *d = route->draws;
	if (route->n_draws == 1)
		return d[0].cluster_id;
	uint64_t point = rand_below(rand, d[route->n_draws - 1].weight);
	uint32_t low = 0, high = route->n_draws - 1; // the answer is in [low, high]
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		if (point < d[mid].weight)
			high = mid;
		else
			low = mid + 1;
	}
	return d[low].cluster_id;
}

struct lb_route_result lb_route_find(
	const struct lb_route_table *t, const struct lb_req *req, struct rand *rand)
{
	struct lb_route_result result = {.kind = LB_ROUTE_NO_VHOST};
	int vhost = lb_vhost_index_find(t->index, req->authority);
	if (vhost < 0)
		return result;
	const struct vhost *v = &t->vhosts[vhost];
	result.vhost_index = (uint32_t)vhost;
	result.kind = LB_ROUTE_NONE;
	if (req->path.len == 0) // CONNECT (A28-P09)
		return result;
	uint32_t i = first_route(v, cut(req->path));
	if (i >= v->n_routes)
		return result;
	result.route_index = i;
	if (v->routes[i].action == LB_ACTION_UNSUPPORTED) {
		result.kind = LB_ROUTE_UNSUPPORTED;
		return result;
	}
	result.kind = LB_ROUTE_CLUSTER;
	result.cluster_id = draw(&v->routes[i], rand);
	return result;
}
