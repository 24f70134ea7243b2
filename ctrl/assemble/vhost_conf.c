// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/vhost_conf.h"

#include "ctrl/assemble/cluster_set.h"
#include "ctrl/res/route.h"

#include <string.h>

struct work {
	const struct vhost_conf_env *env;
	uint32_t n_paths, n_headers; // patterns so far
	struct lb_arena *arena;
	struct lb_err *err;
};

static int no_memory(const struct work *w)
{
	return lb_err_set(w->err, "out of memory");
}

static int read_clusters(const struct work *w, const struct res_route *r, struct lb_route_conf *to)
{
	struct lb_weighted_cluster *list = lb_arena_alloc(w->arena, r->n_clusters, sizeof(*list));
	if (!list)
		return no_memory(w);
	to->clusters = list;
	for (uint32_t i = 0; i < r->n_clusters; i++) {
		const struct res_weighted_cluster *from = &r->clusters[i];
		if (from->weight == 0) // never picked (A28-W04), and need not exist
			continue;
		const struct cluster *c = cluster_set_find(w->env->clusters, from->name);
		if (!c)
			return lb_err_set(
				w->err, "cluster '%s' is not in the configuration", from->name);
		list[to->n_clusters++] =
			(struct lb_weighted_cluster){c->id, from->weight, from->overrides};
	}
	return 0;
}

static int read_headers(struct work *w, const struct res_route *r, struct lb_route_conf *to)
{
	struct lb_header_match_conf *list = lb_arena_alloc(w->arena, r->n_headers, sizeof(*list));
	if (!list)
		return no_memory(w);
	for (uint32_t i = 0; i < r->n_headers; i++) {
		list[i] = r->headers[i];
		if (list[i].kind == LB_HEADER_REGEX)
			list[i].regex = w->env->headers[w->n_headers++];
	}
	to->headers = list;
	to->n_headers = r->n_headers;
	return 0;
}

static int read_route(struct work *w, const struct res_route *r, struct lb_route_conf *to)
{
	*to = (struct lb_route_conf){
		.name = str_from(r->name),
		.index = r->index,
		.path_kind = r->path_kind,
		.path = {r->path, r->path_len},
		.case_sensitive = r->case_sensitive,
		.ppm = r->ppm,
		.grpc_only = r->grpc_only,
		.action = r->action,
		.policy = *r->policy,
	};
	if (r->path_kind == LB_PATH_REGEX)
		to->regex = w->env->paths[w->n_paths++];
	to->policy.auto_host_rewrite = r->policy->auto_host_rewrite && w->env->is_trusted;
	int err = read_headers(w, r, to);
	if (!err && r->action == LB_ACTION_CLUSTERS)
		err = read_clusters(w, r, to);
	return err;
}

int vhost_conf_init(struct vhost_conf *c, const struct res_vhost *v,
	const struct vhost_conf_env *env, struct lb_err *reterr)
{
	*c = (struct vhost_conf){0};
	struct work w = {.env = env, .arena = &c->arena, .err = reterr};
	struct lb_route_conf *routes = lb_arena_alloc(w.arena, v->n_routes, sizeof(*routes));
	if (!routes)
		return no_memory(&w);
	for (uint32_t i = 0; i < v->n_routes; i++)
		if (read_route(&w, &v->routes[i], &routes[i]))
			return lb_err_within(
				reterr, "virtual host '%s', route %u", v->name, v->routes[i].index);
	c->conf = (struct lb_vhost_conf){
		.name = str_from(v->name),
		.routes = routes,
		.n_routes = v->n_routes,
		.overrides = v->overrides,
		.number = env->number,
	};
	return 0;
}

void vhost_conf_fini(struct vhost_conf *c)
{
	lb_arena_fini(&c->arena);
}

void vhost_patterns(const struct res_vhost *v, struct str *paths, uint32_t *ret_n_paths,
	struct str *headers, uint32_t *ret_n_headers)
{
	uint32_t n_paths = 0, n_headers = 0;
	for (uint32_t i = 0; i < v->n_routes; i++) {
		const struct res_route *r = &v->routes[i];
		if (r->path_kind == LB_PATH_REGEX) {
			if (paths)
				paths[n_paths] = (struct str){r->path, r->path_len};
			n_paths++;
		}
		for (uint32_t k = 0; k < r->n_headers; k++) {
			if (r->headers[k].kind != LB_HEADER_REGEX)
				continue;
			if (headers)
				headers[n_headers] = r->headers[k].text;
			n_headers++;
		}
	}
	*ret_n_paths = n_paths;
	*ret_n_headers = n_headers;
}
