// SPDX-License-Identifier: Apache-2.0
#include "lb/route/route.h"

#include "lb/base/check.h"
#include "lb/route/domains.h"
#include "lb/route/req.h"
#include "lb/route/table_scratch.h"
#include "lb/route/vhost.h"

#include <errno.h>
#include <stdlib.h>

struct lb_route_table {
	uint32_t n_refs; // ctrl only
	uint32_t n_vhosts;
	uint32_t n_threads; // the last one is ctrl
	bool ignore_port, grpc_sees_all;
	struct lb_domains *domains; // owned
	struct lb_table_scratch **table_scratches; // owned; one a thread
	struct lb_regex_scratches *regex; // counted; NULL without regexes
	struct lb_table_scratch_size needs; // of the virtual hosts so far
	struct lb_vhost *vhosts[]; // counted
};

struct lb_route_scratch {
	uint32_t thread;
	size_t text_size;
	char text[]; // values of repeated headers, joined
};

static const struct lb_filter_overrides no_overrides;
static const struct lb_route_policy no_policy;

struct lb_route_scratch *lb_route_scratch_new(uint32_t thread, size_t max_text)
{
	struct lb_route_scratch *s = malloc(sizeof(*s) + max_text);
	if (s)
		*s = (struct lb_route_scratch){.thread = thread, .text_size = max_text};
	return s;
}

void lb_route_scratch_free(struct lb_route_scratch *s)
{
	free(s);
}

// Grows what regexes write to until it fits the virtual host's sets, too.
static bool fit_regexes(struct lb_route_table *t, const struct lb_vhost *v)
{
	uint32_t n_workers = t->n_threads - 1;
	uint32_t at = 0;
	for (const struct lb_regex_set *set; (set = lb_vhost_next_set(v, &at));) {
		struct lb_regex_scratches *fit = lb_regex_scratches_fit(t->regex, n_workers, set);
		if (!fit)
			return false;
		lb_regex_scratches_put(t->regex);
		t->regex = fit;
	}
	return true;
}

struct lb_route_table *lb_route_table_new(const struct lb_route_table_conf *conf)
{
	struct lb_route_table *t =
		malloc(sizeof(*t) + (size_t)conf->n_vhosts * sizeof(t->vhosts[0]));
	if (!t)
		return NULL;
	*t = (struct lb_route_table){.n_refs = 1,
		.n_threads = conf->n_workers + 1,
		.ignore_port = conf->ignore_port,
		.grpc_sees_all = conf->grpc_sees_all,
		.domains = lb_domains_new(conf->n_exact)};
	if (t->domains)
		return t;
	free(t);
	return NULL;
}

static int no_memory(struct lb_err *reterr)
{
	(void)lb_err_set(reterr, "out of memory");
	return -ENOMEM;
}

int lb_route_table_add(struct lb_route_table *t, const struct lb_vhost_conf *conf,
	struct lb_vhost *compiled, struct lb_err *reterr)
{
	int rc = lb_domains_add(t->domains, conf, t->n_vhosts, reterr);
	if (rc)
		return rc;
	t->vhosts[t->n_vhosts++] = lb_vhost_get(compiled);
	t->needs = lb_table_scratch_size_max(t->needs, compiled->needs);
	return fit_regexes(t, compiled) ? 0 : no_memory(reterr);
}

int lb_route_table_seal(struct lb_route_table *t, struct lb_err *reterr)
{
	t->table_scratches = lb_table_scratches_new(t->n_threads, &t->needs);
	bool ok = t->table_scratches && lb_domains_seal(t->domains) == 0;
	return ok ? 0 : no_memory(reterr);
}

struct lb_route_table *lb_route_table_get(struct lb_route_table *t)
{
	t->n_refs++;
	return t;
}

bool lb_route_table_is_shared(const struct lb_route_table *t)
{
	return t->n_refs > 1;
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
	lb_regex_scratches_put(t->regex);
	free(t->table_scratches);
	free(t);
}

struct lb_vhost *lb_route_table_vhost(const struct lb_route_table *t, uint32_t index)
{
	CHECK(index < t->n_vhosts);
	return t->vhosts[index];
}

static int find_vhost(const struct lb_route_table *t, struct lb_table_scratch *table_scratch,
	struct str authority)
{
	if (authority.len && authority.len == table_scratch->authority_len &&
		memcmp(authority.p, table_scratch->authority, authority.len) == 0)
		return table_scratch->vhost;
	struct str name = t->ignore_port ? lb_authority_without_port(authority) : authority;
	int vhost = lb_domains_find(t->domains, name);
	if (authority.len && authority.len <= sizeof(table_scratch->authority)) {
		memcpy(table_scratch->authority, authority.p, authority.len);
		table_scratch->authority_len = authority.len;
		table_scratch->vhost = vhost;
	}
	return vhost;
}

static void choose_draw(struct lb_route_result *r, const struct lb_draw *d)
{
	r->cluster_id = d->cluster_id;
	r->cluster_overrides = &d->overrides;
}

bool lb_route_hides_transport(const struct lb_route_table *t, const struct lb_req *req)
{
	return req->is_grpc && !t->grpc_sees_all;
}

struct lb_route_result lb_route_find(
	const struct lb_route_table *t, const struct lb_req *req, struct lb_route_ctx *ctx)
{
	struct lb_route_result result = {.kind = LB_ROUTE_NO_VHOST,
		.route_index = LB_NO_ROUTE,
		.policy = &no_policy,
		.cluster_overrides = &no_overrides,
		.vhost_overrides = &no_overrides};
	struct lb_route_scratch *scratch = ctx->scratch;
	DCHECK(scratch->thread < t->n_threads);
	struct lb_table_scratch *table_scratch = t->table_scratches[scratch->thread];
	int vhost = find_vhost(t, table_scratch, lb_req_host(req));
	if (vhost < 0)
		return result;
	const struct lb_vhost *v = t->vhosts[vhost];
	result.vhost_index = (uint32_t)vhost;
	result.vhost_serial = v->serial;
	result.vhost_number = v->number;
	result.vhost_overrides = &v->overrides;
	result.kind = LB_ROUTE_NONE;
	// A tunnel is no request for a resource (A28-P09, HX-17).
	if (req->path.len == 0 || str_eq(req->method, STR("CONNECT")))
		return result;
	struct lb_vhost_found found =
		lb_vhost_search(v, &(struct lb_vhost_query){.req = req,
					   .ctx = ctx,
					   .table_scratch = table_scratch,
					   .regex = t->regex,
					   .hides_transport = lb_route_hides_transport(t, req),
					   .text = {scratch->text, scratch->text_size},
					   .thread = scratch->thread});
	if (found.route == LB_VHOST_NONE)
		return result;
	const struct lb_action *action = &v->actions.list[found.action];
	result.route_index = found.route;
	result.policy = action->policy;
	result.kind = LB_ROUTE_UNSUPPORTED;
	if (action->kind == LB_ACTION_UNSUPPORTED)
		return result;
	result.kind = LB_ROUTE_CLUSTER;
	choose_draw(&result, lb_action_draw(action, ctx->rand));
	return result;
}

static const struct lb_action *action_of(
	const struct lb_route_table *t, const struct lb_route_result *r)
{
	const struct lb_vhost *v = t->vhosts[r->vhost_index];
	return &v->actions.list[v->routes[r->route_index].action];
}

const struct lb_route_policy *lb_route_policy_of(
	const struct lb_route_table *t, uint32_t vhost_index, uint32_t route_index)
{
	CHECK(vhost_index < t->n_vhosts && route_index < t->vhosts[vhost_index]->n_routes);
	struct lb_route_result at = {.vhost_index = vhost_index, .route_index = route_index};
	return action_of(t, &at)->policy;
}

bool lb_route_names(
	const struct lb_route_table *t, const struct lb_route_place *at, struct lb_route_names *ret)
{
	if (!at->vhost_serial || at->vhost_index >= t->n_vhosts ||
		t->vhosts[at->vhost_index]->serial != at->vhost_serial)
		return false;
	const struct lb_vhost_names *names = &t->vhosts[at->vhost_index]->names;
	bool has_route = at->route_index != LB_NO_ROUTE;
	*ret = (struct lb_route_names){.vhost = names->vhost,
		.index = has_route ? names->indices[at->route_index] : LB_NO_ROUTE};
	if (has_route && names->routes)
		ret->route = names->routes[at->route_index];
	return true;
}

bool lb_route_cluster(const struct lb_route_table *t, const struct lb_route_result *r, uint32_t i,
	uint32_t *ret_cluster_id)
{
	if (r->kind != LB_ROUTE_CLUSTER || i >= action_of(t, r)->n_draws)
		return false;
	*ret_cluster_id = action_of(t, r)->draws[i].cluster_id;
	return true;
}

bool lb_route_use_cluster(
	const struct lb_route_table *t, struct lb_route_result *r, uint32_t cluster_id)
{
	if (r->kind != LB_ROUTE_CLUSTER)
		return false;
	const struct lb_action *action = action_of(t, r);
	for (uint32_t i = 0; i < action->n_draws; i++)
		if (action->draws[i].cluster_id == cluster_id) {
			choose_draw(r, &action->draws[i]);
			return true;
		}
	return false;
}
