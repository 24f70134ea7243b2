// SPDX-License-Identifier: Apache-2.0
#include "ctrl/route_compile.h"

#include "ctrl/cluster_set.h"
#include "ctrl/res/route.h"
#include "lb/route.h"

#include <stdlib.h>

// One compilation: flat arrays, since lb_vhost_conf borrows from them until the table is made.
struct work {
	const struct cluster_set *clusters;
	struct lb_err *err;
	struct lb_vhost_conf *vhosts;
	struct str *domains;
	struct lb_route_conf *routes;
	struct lb_weighted_cluster *weighted;
	uint32_t n_vhosts, n_domains, n_routes, n_weighted; // used so far
};

static int add_clusters(struct work *w, const struct res_route *r, struct lb_route_conf *to)
{
	to->clusters = &w->weighted[w->n_weighted];
	for (uint32_t i = 0; i < r->n_clusters; i++) {
		if (r->clusters[i].weight == 0)
			continue;
		const struct cluster *c = cluster_set_find(w->clusters, r->clusters[i].name);
		if (!c)
			return lb_err_set(w->err, "cluster '%s' is not in the configuration",
				r->clusters[i].name);
		w->weighted[w->n_weighted++] = (struct lb_weighted_cluster){
			.cluster_id = c->id, .weight = r->clusters[i].weight};
		to->n_clusters++;
	}
	return 0;
}

static int add_vhost(struct work *w, const struct res_vhost *v)
{
	struct lb_vhost_conf *to = &w->vhosts[w->n_vhosts++];
	*to = (struct lb_vhost_conf){
		.name = str_from(v->name),
		.domains = &w->domains[w->n_domains],
		.n_domains = v->n_domains,
		.routes = &w->routes[w->n_routes],
		.n_routes = v->n_routes,
	};
	for (uint32_t i = 0; i < v->n_domains; i++)
		w->domains[w->n_domains++] = str_from(v->domains[i]);
	for (uint32_t i = 0; i < v->n_routes; i++) {
		const struct res_route *r = &v->routes[i];
		struct lb_route_conf *route = &w->routes[w->n_routes++];
		*route = (struct lb_route_conf){
			.path_kind = r->path_kind,
			.path = str_from(r->path),
			.case_sensitive = r->case_sensitive,
			.ppm = LB_PPM_ALWAYS,
			.action = r->action,
		};
		if (r->action == LB_ACTION_CLUSTERS && add_clusters(w, r, route))
			return lb_err_within(w->err, "virtual host '%s', route %u", v->name, i);
	}
	return 0;
}

static bool reserve(struct work *w, const struct res_route_config *c)
{
	size_t n_domains = 0, n_routes = 0, n_weighted = 0;
	for (uint32_t i = 0; i < c->n_vhosts; i++) {
		n_domains += c->vhosts[i].n_domains;
		n_routes += c->vhosts[i].n_routes;
		for (uint32_t j = 0; j < c->vhosts[i].n_routes; j++)
			n_weighted += c->vhosts[i].routes[j].n_clusters;
	}
	w->vhosts = calloc(c->n_vhosts + 1, sizeof(*w->vhosts));
	w->domains = calloc(n_domains + 1, sizeof(*w->domains));
	w->routes = calloc(n_routes + 1, sizeof(*w->routes));
	w->weighted = calloc(n_weighted + 1, sizeof(*w->weighted));
	return w->vhosts && w->domains && w->routes && w->weighted;
}

// NULL = reterr says why.
static struct lb_route_table *make_table(
	const struct work *w, uint32_t n_workers, struct lb_err *reterr)
{
	struct lb_route_table *table = NULL;
	struct lb_vhost **compiled = calloc(w->n_vhosts + 1, sizeof(struct lb_vhost *));
	uint32_t n = 0;
	while (compiled && n < w->n_vhosts && (compiled[n] = lb_vhost_new(&w->vhosts[n], reterr)))
		n++;
	if (compiled && n == w->n_vhosts)
		table = lb_route_table_new(&(struct lb_route_table_conf){.vhosts = w->vhosts,
						   .compiled = compiled,
						   .n_vhosts = n,
						   .n_workers = n_workers},
			reterr);
	for (uint32_t i = 0; i < n; i++)
		lb_vhost_put(compiled[i]);
	free(compiled);
	return table;
}

struct lb_route_table *route_compile(const struct res_route_config *c, int32_t vhost,
	const struct cluster_set *clusters, uint32_t n_workers, struct lb_err *reterr)
{
	struct work w = {.clusters = clusters, .err = reterr};
	struct lb_route_table *table = NULL;
	int ret = reserve(&w, c) ? 0 : lb_err_set(reterr, "out of memory");
	for (uint32_t i = 0; ret == 0 && i < c->n_vhosts; i++)
		if (vhost < 0 || i == (uint32_t)vhost)
			ret = add_vhost(&w, &c->vhosts[i]);
	if (ret == 0) {
		lb_err_set(reterr, "out of memory");
		table = make_table(&w, n_workers, reterr);
	}
	free(w.vhosts);
	free(w.domains);
	free(w.routes);
	free(w.weighted);
	return table;
}
