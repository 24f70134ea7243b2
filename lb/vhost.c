// SPDX-License-Identifier: Apache-2.0
#include "lb/vhost.h"

#include "lb/base/check.h"
#include "lb/radix.h"
#include "lb/strmap.h"

#include <stdlib.h>

static int no_memory(struct lb_err *reterr)
{
	return lb_err_set(reterr, "no memory");
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

static struct lb_strmap *build_exact(const struct lb_radix_entry *entries, uint32_t n)
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

static int build_paths(struct lb_vhost *v, const struct lb_vhost_conf *conf, struct lb_err *reterr)
{
	struct lb_radix_entry *entries = malloc(((size_t)conf->n_routes + 1) * sizeof(entries[0]));
	if (!entries)
		return no_memory(reterr);
	v->exact = build_exact(entries, collect(entries, conf, EXACT));
	v->prefix = lb_radix_new(entries, collect(entries, conf, PREFIX), 0);
	v->exact_fold = lb_radix_new(entries, collect(entries, conf, EXACT_FOLD), LB_RADIX_FOLD);
	v->prefix_fold = lb_radix_new(entries, collect(entries, conf, PREFIX_FOLD), LB_RADIX_FOLD);
	free(entries);
	bool ok = v->exact && v->prefix && v->exact_fold && v->prefix_fold;
	return ok ? 0 : no_memory(reterr);
}

static int build_route(
	struct lb_vhost *v, uint32_t i, const struct lb_route_conf *conf, struct lb_err *reterr)
{
	if (conf->path_kind == LB_PATH_REGEX || conf->n_headers || conf->grpc_only ||
		conf->ppm < LB_PPM_ALWAYS)
		return lb_err_set(reterr, "criteria beyond prefix and path are not built");
	return lb_actions_add(&v->actions, conf, &v->routes[i].action, reterr);
}

static int build(struct lb_vhost *v, const struct lb_vhost_conf *conf, struct lb_err *reterr)
{
	for (uint32_t i = 0; i < conf->n_routes; i++)
		if (build_route(v, i, &conf->routes[i], reterr))
			return lb_err_within(reterr, "routes[%u]", i);
	if (!lb_overrides_copy(&v->actions.arena, &conf->overrides, &v->overrides))
		return no_memory(reterr);
	return build_paths(v, conf, reterr);
}

struct lb_vhost *lb_vhost_new(const struct lb_vhost_conf *conf, struct lb_err *reterr)
{
	struct lb_vhost *v = calloc(1, sizeof(*v));
	if (v) {
		v->n_refs = 1;
		v->n_routes = conf->n_routes;
		v->routes = calloc((size_t)conf->n_routes + 1, sizeof(v->routes[0]));
	}
	int err = v && v->routes ? build(v, conf, reterr) : no_memory(reterr);
	if (!err)
		return v;
	lb_vhost_put(v);
	return NULL;
}

struct lb_vhost *lb_vhost_get(struct lb_vhost *v)
{
	v->n_refs++;
	return v;
}

void lb_vhost_put(struct lb_vhost *v)
{
	if (!v)
		return;
	CHECK(v->n_refs > 0);
	if (--v->n_refs)
		return;
	lb_strmap_free(v->exact);
	lb_radix_free(v->prefix);
	lb_radix_free(v->exact_fold);
	lb_radix_free(v->prefix_fold);
	lb_actions_fini(&v->actions);
	free(v->routes);
	free(v);
}

size_t lb_vhost_size(const struct lb_vhost *v)
{
	return sizeof(*v) + v->n_routes * sizeof(v->routes[0]) + v->actions.arena.n_bytes;
}
