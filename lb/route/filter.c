// SPDX-License-Identifier: Apache-2.0
#include "lb/route/filter.h"

#include "lb/base/check.h"
#include "lb/route/route.h"

#include <stdlib.h>

static size_t text_size(const struct lb_filter *f)
{
	size_t size = f->name.len;
	if (f->kind == LB_FILTER_SESSION)
		size += f->session.cookie.len + f->session.path.len;
	return size;
}

static struct str add_text(char **at, struct str s)
{
	struct str copy = {*at, s.len};
	if (s.len)
		memcpy(*at, s.p, s.len);
	*at += s.len;
	return copy;
}

struct lb_filter_chain *lb_filter_chain_new(
	const struct lb_filter *filters, uint32_t n, const struct lb_listener_timeouts *timeouts)
{
	size_t size = n * sizeof(*filters);
	for (uint32_t i = 0; i < n; i++)
		size += text_size(&filters[i]);
	struct lb_filter_chain *c = calloc(1, sizeof(*c));
	struct lb_filter *copies = malloc(size + 1); // one block: the filters, then their texts
	if (!c || !copies) {
		free(c);
		free(copies);
		return NULL;
	}
	*c = (struct lb_filter_chain){1, n, *timeouts, copies};
	char *text = (char *)(copies + n);
	for (uint32_t i = 0; i < n; i++) {
		copies[i] = filters[i];
		copies[i].name = add_text(&text, filters[i].name);
		if (filters[i].kind != LB_FILTER_SESSION)
			continue;
		copies[i].session.cookie = add_text(&text, filters[i].session.cookie);
		copies[i].session.path = add_text(&text, filters[i].session.path);
	}
	return c;
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
	free(c->filters);
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
