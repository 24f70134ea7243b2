// SPDX-License-Identifier: Apache-2.0
#include "lb/route/filter.h"

#include "lb/base/check.h"
#include "lb/route/rbac.h"
#include "lb/route/route.h"

#include <errno.h>
#include <stdlib.h>

static bool copy_texts(struct lb_arena *a, struct lb_filter *to)
{
	if (!lb_arena_copy(a, to->name, &to->name))
		return false;
	if (to->kind != LB_FILTER_SESSION)
		return true;
	return lb_arena_copy(a, to->session.cookie, &to->session.cookie) &&
	       lb_arena_copy(a, to->session.path, &to->session.path);
}

static int compile(struct lb_filter *f, struct lb_err *reterr)
{
	if (f->kind != LB_FILTER_RBAC)
		return 0;
	f->rbac.compiled = lb_rbac_new(f->rbac.conf, reterr);
	f->rbac.conf = NULL;
	return f->rbac.compiled ? 0 : -EINVAL;
}

int lb_overrides_copy(struct lb_arena *a, const struct lb_filter_overrides *from,
	struct lb_filter_overrides *ret, struct lb_err *reterr)
{
	*ret = (struct lb_filter_overrides){0};
	if (from->n == 0)
		return 0;
	struct lb_filter *list = lb_arena_alloc(a, from->n, sizeof(*list));
	if (!list)
		return lb_err_set(reterr, "out of memory");
	for (ret->list = list; ret->n < from->n; ret->n++) {
		struct lb_filter *to = &list[ret->n];
		*to = from->list[ret->n];
		if (!copy_texts(a, to))
			return lb_err_set(reterr, "out of memory");
		if (compile(to, reterr))
			return lb_err_within(
				reterr, "filter \"%.*s\"", (int)to->name.len, to->name.p);
	}
	return 0;
}

void lb_overrides_fini(const struct lb_filter_overrides *o)
{
	for (uint32_t i = 0; i < o->n; i++)
		if (o->list[i].kind == LB_FILTER_RBAC)
			lb_rbac_free(o->list[i].rbac.compiled);
}

struct lb_filter_chain *lb_filter_chain_new(
	const struct lb_filter *filters, uint32_t n, const struct lb_listener_timeouts *timeouts)
{
	struct lb_err ignored;
	const struct lb_filter_overrides from = {filters, n};
	struct lb_filter_overrides to;
	struct lb_filter_chain *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	int rc = lb_overrides_copy(&c->arena, &from, &to, &ignored);
	c->n_refs = 1;
	c->n = to.n;
	c->timeouts = *timeouts;
	c->filters = to.list;
	if (!rc)
		return c;
	lb_filter_chain_put(c);
	return NULL;
}

struct lb_filter_chain *lb_filter_chain_get(struct lb_filter_chain *c)
{
	c->n_refs++;
	return c;
}

void lb_filter_chain_put(struct lb_filter_chain *c)
{
	if (!c)
		return;
	CHECK(c->n_refs > 0);
	if (--c->n_refs)
		return;
	lb_overrides_fini(&(struct lb_filter_overrides){c->filters, c->n});
	lb_arena_fini(&c->arena);
	free(c);
}

static const struct lb_filter *find(const struct lb_filter_overrides *o, const struct lb_filter *f)
{
	for (uint32_t i = 0; i < o->n; i++)
		if ((o->list[i].kind == f->kind || o->list[i].kind == LB_FILTER_SWITCH) &&
			str_eq(o->list[i].name, f->name))
			return &o->list[i];
	return NULL;
}

const struct lb_filter *lb_filter_effective(
	const struct lb_filter_chain *c, uint32_t i, const struct lb_route_result *route)
{
	const struct lb_filter *f = &c->filters[i];
	bool is_on = false;
	const struct lb_filter_overrides *const levels[] = {
		route->cluster_overrides, &route->policy->overrides, route->vhost_overrides};
	for (size_t k = 0; k < sizeof(levels) / sizeof(levels[0]); k++) {
		const struct lb_filter *found = find(levels[k], f);
		if (!found)
			continue;
		if (found->kind != LB_FILTER_SWITCH)
			return found;
		if (found->disabled && !is_on)
			return NULL;
		is_on = true;
	}
	return f->disabled && !is_on ? NULL : f;
}
