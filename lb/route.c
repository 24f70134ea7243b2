// SPDX-License-Identifier: Apache-2.0
#include "lb/route.h"

#include "lb/base/check.h"
#include "lb/domains.h"
#include "lb/radix.h"
#include "lb/req.h"
#include "lb/strmap.h"
#include "lb/vhost.h"

#include <stdlib.h>

_Static_assert(LB_STRMAP_NONE == UINT32_MAX && LB_RADIX_NONE == UINT32_MAX,
	"an absent route is larger than every route number");

struct lb_route_table {
	uint32_t n_refs; // ctrl only
	uint32_t n_vhosts;
	uint32_t n_workers;
	bool ignore_port, grpc_sees_all;
	struct lb_domains *domains; // owned
	struct lb_vhost *vhosts[]; // counted
};

struct lb_route_scratch {
	uint32_t thread;
	size_t max_text;
};

static const struct lb_filter_overrides no_overrides;
static const struct lb_route_policy no_policy;

struct lb_route_scratch *lb_route_scratch_new(uint32_t thread, size_t max_text)
{
	struct lb_route_scratch *s = malloc(sizeof(*s));
	if (s)
		*s = (struct lb_route_scratch){thread, max_text};
	return s;
}

void lb_route_scratch_free(struct lb_route_scratch *s)
{
	free(s);
}

struct lb_route_table *lb_route_table_new(
	const struct lb_route_table_conf *conf, struct lb_err *reterr)
{
	struct lb_domains *domains = lb_domains_new(conf->vhosts, conf->n_vhosts, reterr);
	if (!domains)
		return NULL;
	size_t n = conf->n_vhosts;
	struct lb_route_table *t = malloc(sizeof(*t) + n * sizeof(t->vhosts[0]));
	if (!t) {
		lb_domains_free(domains);
		(void)lb_err_set(reterr, "no memory");
		return NULL;
	}
	*t = (struct lb_route_table){.n_refs = 1,
		.n_vhosts = conf->n_vhosts,
		.n_workers = conf->n_workers,
		.ignore_port = conf->ignore_port,
		.grpc_sees_all = conf->grpc_sees_all,
		.domains = domains};
	for (uint32_t i = 0; i < conf->n_vhosts; i++)
		t->vhosts[i] = lb_vhost_get(conf->compiled[i]);
	return t;
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
	if (--t->n_refs)
		return;
	for (uint32_t i = 0; i < t->n_vhosts; i++)
		lb_vhost_put(t->vhosts[i]);
	lb_domains_free(t->domains);
	free(t);
}

struct lb_vhost *lb_route_table_vhost(const struct lb_route_table *t, uint32_t index)
{
	CHECK(index < t->n_vhosts);
	return t->vhosts[index];
}

// Without the port, when it is one: digits after the last colon, which is not inside brackets
// (VH-06).
static struct str without_port(struct str authority)
{
	size_t i = authority.len;
	while (i > 0 && authority.p[i - 1] >= '0' && authority.p[i - 1] <= '9')
		i--;
	if (i > 0 && i < authority.len && authority.p[i - 1] == ':')
		authority.len = i - 1;
	return authority;
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

static uint32_t first_route(const struct lb_vhost *v, struct str path)
{
	uint32_t i = lb_strmap_find(v->exact, path);
	i = smaller(i, lb_radix_find(v->prefix, path).smallest);
	i = smaller(i, lb_radix_find(v->exact_fold, path).whole);
	return smaller(i, lb_radix_find(v->prefix_fold, path).smallest);
}

static void choose_draw(struct lb_route_result *r, const struct lb_draw *d)
{
	r->cluster_id = d->cluster_id;
	r->cluster_overrides = &d->overrides;
}

struct lb_route_result lb_route_find(
	const struct lb_route_table *t, const struct lb_req *req, struct lb_route_ctx *ctx)
{
	struct lb_route_result result = {.kind = LB_ROUTE_NO_VHOST,
		.policy = &no_policy,
		.cluster_overrides = &no_overrides,
		.vhost_overrides = &no_overrides};
	struct str authority = t->ignore_port ? without_port(req->authority) : req->authority;
	int vhost = lb_domains_find(t->domains, authority);
	if (vhost < 0)
		return result;
	const struct lb_vhost *v = t->vhosts[vhost];
	result.vhost_index = (uint32_t)vhost;
	result.kind = LB_ROUTE_NONE;
	if (req->path.len == 0) // CONNECT (A28-P09)
		return result;
	uint32_t i = first_route(v, cut(req->path));
	if (i >= v->n_routes)
		return result;
	if (ctx->trace)
		ctx->trace(ctx->trace_ctx, &(struct lb_route_step){.route_index = i});
	const struct lb_action *action = &v->actions.list[v->routes[i].action];
	result.route_index = i;
	result.policy = action->policy;
	result.vhost_overrides = &v->overrides;
	result.kind = LB_ROUTE_UNSUPPORTED;
	if (action->kind == LB_ACTION_UNSUPPORTED)
		return result;
	result.kind = LB_ROUTE_CLUSTER;
	choose_draw(&result, lb_action_draw(action, ctx->rand));
	return result;
}

bool lb_route_use_cluster(
	const struct lb_route_table *t, struct lb_route_result *r, uint32_t cluster_id)
{
	if (r->kind != LB_ROUTE_CLUSTER)
		return false;
	const struct lb_vhost *v = t->vhosts[r->vhost_index];
	const struct lb_action *action = &v->actions.list[v->routes[r->route_index].action];
	for (uint32_t i = 0; i < action->n_draws; i++)
		if (action->draws[i].cluster_id == cluster_id) {
			choose_draw(r, &action->draws[i]);
			return true;
		}
	return false;
}
