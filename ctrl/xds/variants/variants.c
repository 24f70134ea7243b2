// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/variants/variants.h"

#include "ctrl/xds/variants/constraints.h"
#include "ctrl/xds/variants/params.h"
#include "ctrl/xds/variants/variants_inside.h"
#include "ctrl/xds/variants/version.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct xds_variants *xds_variants_new(const struct xds_variants_conf *conf)
{
	struct xds_variants *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->conf = *conf;
	TAILQ_INIT(&c->all);
	TAILQ_INIT(&c->touched);
	TAILQ_INIT(&c->changed);
	return c;
}

void xds_variants_free(struct xds_variants *c)
{
	if (!c)
		return;
	CHECK(c->n_subs == 0);
	if (c->is_changing)
		xds_variants_abort(c);
	xds_variants_forget_drained(c);
	for (struct xds_variants_name *n; (n = TAILQ_FIRST(&c->all));) {
		for (struct xds_variant *v; (v = SLIST_FIRST(&n->variants));)
			xds_variants_drop(c, n, v);
		xds_variants_name_tidy(c, n);
	}
	strmap_fini(&c->names);
	free(c->buckets);
	xds_version_put(c->version);
	free(c);
}

static void no_content_put(void *content)
{
	CHECK(!content);
}

struct xds_variant *xds_variants_make_variant(
	struct xds_constraints *constraints, const char *version)
{
	struct xds_variant *v = calloc(1, sizeof(*v));
	if (!v)
		return NULL;
	v->n_refs = 1;
	v->constraints = xds_constraints_get(constraints);
	v->version = xds_version_get(version);
	v->content_put = no_content_put;
	return v;
}

struct xds_variant *xds_variant_new(struct xds_constraints *constraints, const char *version)
{
	const char *copy = xds_version_new(version);
	struct xds_variant *v = copy ? xds_variants_make_variant(constraints, copy) : NULL;
	xds_version_put(copy);
	return v;
}

struct xds_variant *xds_variant_get(struct xds_variant *v)
{
	if (v)
		v->n_refs++;
	return v;
}

void xds_variant_put(struct xds_variant *v)
{
	if (!v || --v->n_refs > 0)
		return;
	xds_constraints_put(v->constraints);
	v->content_put(v->content);
	xds_version_put(v->version);
	free(v);
}

// Names.

struct xds_variants_name *xds_variants_name_find(const struct xds_variants *c, const char *name)
{
	struct strmap_link *l = strmap_find(&c->names, name);
	return l ? CONTAINER_OF(l, struct xds_variants_name, by_name)
	         : NULL; // the link is its first member
}

struct xds_variants_name *xds_variants_name_make(struct xds_variants *c, const char *name)
{
	struct xds_variants_name *n = xds_variants_name_find(c, name);
	if (n)
		return n;
	size_t len = strlen(name) + 1;
	// The text begins where the struct is padded, and small blocks count.
	size_t size = offsetof(struct xds_variants_name, text) + len;
	n = calloc(1, size > sizeof(*n) ? size : sizeof(*n));
	if (!n)
		return NULL;
	memcpy(n->text, name, len);
	if (strmap_add(&c->names, &n->by_name, n->text)) {
		free(n);
		return NULL;
	}
	TAILQ_INIT(&n->subs);
	STAILQ_INIT(&n->edits);
	TAILQ_INSERT_TAIL(&c->all, n, link);
	return n;
}

void xds_variants_name_tidy(struct xds_variants *c, struct xds_variants_name *n)
{
	if (n->is_touched || !SLIST_EMPTY(&n->variants) || !TAILQ_EMPTY(&n->subs))
		return;
	TAILQ_REMOVE(&c->all, n, link);
	strmap_remove(&c->names, &n->by_name);
	free(n);
}

void xds_variants_drop(struct xds_variants *c, struct xds_variants_name *n, struct xds_variant *v)
{
	SLIST_REMOVE(&n->variants, v, xds_variant, link);
	n->n_variants--;
	c->n_variants--;
	xds_variant_put(v);
}

// Of those that match, one of higher rank counts.
static uint64_t rank(const struct xds_variants *c, const struct xds_variant *v)
{
	return c->conf.newest_wins ? v->change : v->change > c->n_aged;
}

uint32_t xds_variants_evict(struct xds_variants *c, struct xds_variants_name *n, uint64_t of)
{
	uint32_t n_unwanted = 0;
	if (c->conf.keeps_all)
		return 0;
	struct xds_variant *v, *next;
	SLIST_FOREACH(v, &n->variants, link)
	v->is_wanted = false;
	struct xds_sub *s;
	TAILQ_FOREACH(s, &n->subs, link)
	{
		if (s->variant)
			s->variant->is_wanted = true;
		// What matches and is not seen is old where the newest wins; elsewhere the server
		// takes it as delivered, and may yet remove the one that is seen.
		if (c->conf.newest_wins || !s->variant)
			continue;
		SLIST_FOREACH(v, &n->variants, link)
		if (!v->is_wanted && rank(c, v) >= rank(c, s->variant))
			v->is_wanted = xds_constraints_match(v->constraints, s->params);
	}
	for (v = SLIST_FIRST(&n->variants); v; v = next) {
		next = SLIST_NEXT(v, link);
		if (v->is_wanted)
			continue;
		n_unwanted += v->change == of;
		xds_variants_drop(c, n, v);
	}
	return n_unwanted;
}

struct xds_variant *xds_variants_choose(const struct xds_variants *c,
	const struct xds_variants_name *n, const struct xds_params *params,
	const struct xds_variant *in_use, uint32_t *ret_n_matches)
{
	struct xds_variant *best = NULL, *v;
	uint32_t n_matches = 0;
	SLIST_FOREACH(v, &n->variants, link)
	{
		if (!xds_constraints_match(v->constraints, params))
			continue;
		bool is_first = !best || rank(c, v) > rank(c, best);
		if (!is_first && rank(c, v) < rank(c, best))
			continue;
		n_matches = is_first ? 1 : n_matches + 1;
		// The list goes from the smallest encoding up.
		if (is_first || (in_use && xds_constraints_eq(v->constraints, in_use->constraints)))
			best = v;
	}
	*ret_n_matches = n_matches;
	return best;
}

// Subscriptions.

static uint64_t sub_hash(const struct xds_variants_name *n, const struct xds_params *params)
{
	return n->by_name.hash ^ (xds_params_hash(params) * 0x9e3779b97f4a7c15);
}

static struct xds_sub *sub_find(const struct xds_variants *c, const struct xds_variants_name *n,
	const struct xds_params *params)
{
	if (!c->buckets)
		return NULL;
	uint64_t hash = sub_hash(n, params);
	struct xds_sub *s = c->buckets[hash & (c->n_buckets - 1)];
	while (s && (s->name != n->text || !xds_params_eq(s->params, params)))
		s = s->next_in_bucket;
	return s;
}

static int grow(struct xds_variants *c)
{
	if (c->n_subs < c->n_buckets)
		return 0;
	uint32_t n = c->n_buckets ? c->n_buckets * 2 : 16;
	struct xds_sub **buckets = calloc(n, sizeof(struct xds_sub *));
	if (!buckets)
		return c->buckets ? 0 : -ENOMEM; // fuller buckets work too
	for (uint32_t i = 0; i < c->n_buckets; i++) {
		for (struct xds_sub *s = c->buckets[i], *next; s; s = next) {
			next = s->next_in_bucket;
			uint64_t hash = sub_hash(xds_variants_name_of(s), s->params);
			s->next_in_bucket = buckets[hash & (n - 1)];
			buckets[hash & (n - 1)] = s;
		}
	}
	free(c->buckets);
	c->buckets = buckets;
	c->n_buckets = n;
	return 0;
}

static struct xds_sub *sub_new(
	struct xds_variants *c, struct xds_variants_name *n, struct xds_params *params)
{
	struct xds_sub *s = grow(c) ? NULL : calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->name = n->text;
	s->params = xds_params_get(params);
	struct xds_sub **bucket = &c->buckets[sub_hash(n, params) & (c->n_buckets - 1)];
	s->next_in_bucket = *bucket;
	*bucket = s;
	TAILQ_INSERT_TAIL(&n->subs, s, link);
	c->n_subs++;
	uint32_t n_matches;
	s->variant = xds_variant_get(xds_variants_choose(c, n, params, NULL, &n_matches));
	s->n_matches = n_matches & UINT16_MAX;
	s->was_ambiguous = n_matches > 1;
	c->n_ambiguous += s->was_ambiguous;
	return s;
}

int xds_sub_get(struct xds_variants *c, const char *name, struct xds_params *params,
	struct xds_sub **ret, bool *ret_is_new)
{
	xds_variants_forget_drained(c);
	struct xds_variants_name *n = xds_variants_name_make(c, name);
	if (!n)
		return -ENOMEM;
	struct xds_sub *s = sub_find(c, n, params);
	bool is_new = !s;
	if (is_new)
		s = sub_new(c, n, params);
	if (!s) {
		xds_variants_name_tidy(c, n);
		return -ENOMEM;
	}
	s->n_refs++;
	*ret = s;
	*ret_is_new = is_new;
	return 0;
}

struct xds_sub *xds_sub_find(
	const struct xds_variants *c, const char *name, const struct xds_params *params)
{
	const struct xds_variants_name *n = xds_variants_name_find(c, name);
	return n ? sub_find(c, n, params) : NULL;
}

bool xds_sub_put(struct xds_variants *c, struct xds_sub *s)
{
	xds_variants_forget_drained(c);
	if (--s->n_refs > 0)
		return false;
	struct xds_variants_name *n = xds_variants_name_of(s);
	struct xds_sub **at = &c->buckets[sub_hash(n, s->params) & (c->n_buckets - 1)];
	while (*at != s)
		at = &(*at)->next_in_bucket;
	*at = s->next_in_bucket;
	TAILQ_REMOVE(&n->subs, s, link);
	c->n_subs--;
	if (s->is_changed) {
		TAILQ_REMOVE(&c->changed, s, changed_link);
		xds_variant_put(s->told);
	}
	xds_variant_put(s->variant);
	xds_params_put(s->params);
	free(s);
	(void)xds_variants_evict(c, n, 0);
	xds_variants_name_tidy(c, n);
	return true;
}

void xds_variants_forget_drained(struct xds_variants *c)
{
	xds_variant_put(c->drained);
	c->drained = NULL;
}

bool xds_variants_drain(struct xds_variants *c, struct xds_variants_event *ret)
{
	struct xds_sub *s;
	xds_variants_forget_drained(c);
	while ((s = TAILQ_FIRST(&c->changed))) {
		TAILQ_REMOVE(&c->changed, s, changed_link);
		s->is_changed = false;
		struct xds_variant *before = s->told;
		s->told = NULL;
		if (before == s->variant && !s->newly_ambiguous) { // there and back
			xds_variant_put(before);
			continue;
		}
		*ret = (struct xds_variants_event){s, before, s->variant, s->newly_ambiguous};
		s->newly_ambiguous = false;
		c->drained = before;
		return true;
	}
	return false;
}

// Looking.

bool xds_variants_knows(const struct xds_variants *c, const char *name)
{
	return xds_variants_name_find(c, name);
}

const struct xds_variant *xds_variants_match(const struct xds_variants *c, const char *name,
	const struct xds_params *params, uint32_t *ret_n_matches)
{
	const struct xds_variants_name *n = xds_variants_name_find(c, name);
	uint32_t n_matches = 0;
	const struct xds_variant *v =
		n ? xds_variants_choose(c, n, params, NULL, &n_matches) : NULL;
	if (ret_n_matches)
		*ret_n_matches = n_matches;
	return v;
}

const struct xds_variant *xds_variants_find(
	const struct xds_variants *c, const char *name, const struct xds_constraints *constraints)
{
	const struct xds_variants_name *n = xds_variants_name_find(c, name);
	const struct xds_variant *v = n ? SLIST_FIRST(&n->variants) : NULL;
	while (v && !xds_constraints_eq(v->constraints, constraints))
		v = SLIST_NEXT(v, link);
	return v;
}

const struct xds_variant *xds_variants_sole(const struct xds_variants *c, const char *name)
{
	const struct xds_variants_name *n = xds_variants_name_find(c, name);
	return n && n->n_variants == 1 ? SLIST_FIRST(&n->variants) : NULL;
}

void xds_variants_each(const struct xds_variants *c,
	void (*fn)(void *ctx, const char *name, const struct xds_variant *), void *ctx)
{
	const struct xds_variants_name *n;
	const struct xds_variant *v;
	TAILQ_FOREACH(n, &c->all, link)
	SLIST_FOREACH(v, &n->variants, link)
	fn(ctx, n->text, v);
}

static void each_sub_of(struct xds_variants_name *n, const struct xds_constraints *constraints,
	void (*fn)(void *ctx, struct xds_sub *), void *ctx)
{
	for (struct xds_sub *s = TAILQ_FIRST(&n->subs), *next; s; s = next) {
		next = TAILQ_NEXT(s, link);
		if (xds_constraints_match(constraints, s->params))
			fn(ctx, s);
	}
}

void xds_variants_each_sub(struct xds_variants *c, const char *name,
	const struct xds_constraints *constraints, void (*fn)(void *ctx, struct xds_sub *),
	void *ctx)
{
	if (name) {
		struct xds_variants_name *n = xds_variants_name_find(c, name);
		if (n)
			each_sub_of(n, constraints, fn, ctx);
		return;
	}
	for (struct xds_variants_name *n = TAILQ_FIRST(&c->all), *next; n; n = next) {
		next = TAILQ_NEXT(n, link);
		each_sub_of(n, NULL, fn, ctx);
	}
}

void xds_variants_counts(const struct xds_variants *c, struct xds_variants_counts *ret)
{
	*ret = (struct xds_variants_counts){
		.n_names = c->names.n,
		.n_variants = c->n_variants,
		.n_subs = c->n_subs,
		.n_changes = c->n_changes,
		.n_unwanted = c->n_unwanted,
		.n_ambiguous = c->n_ambiguous,
	};
}
