// SPDX-License-Identifier: Apache-2.0
// What a change makes of the list.
#include "tools/shunt-xds/subscription.h"

#include "ctrl/xds/variants/constraints.h"
#include "ctrl/xds/variants/params.h"
#include "tools/shunt-xds/subscription_merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Subscriptions to "*".
static void wild_free(const struct catalog_type *type, struct xds_sub **list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		catalog_unwant(type, list[i]);
		(void)xds_sub_put(type->cache, list[i]);
	}
	free(list);
}

void subscription_fini(struct subscription *s, const struct catalog_type *type)
{
	for (size_t i = 0; i < s->n; i++)
		subscription_entry_fini(&s->entries[i], type);
	free(s->entries);
	wild_free(type, s->wild, s->n_wild);
	*s = (struct subscription){0};
}

static int locator_cmp(const void *a, const void *b)
{
	const struct locator *x = a, *y = b;
	int order = strcmp(x->name, y->name);
	return order ? order : xds_params_cmp(x->params, y->params);
}

static bool is_star(const struct locator *l)
{
	return strcmp(l->name, "*") == 0;
}

static void reverse(struct locator *list, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		struct locator l = list[i];
		list[i] = list[n - 1 - i];
		list[n - 1 - i] = l;
	}
}

// In order, each once; but those named "*" come last, *ret_n_stars of them. Returns how many come
// before.
static size_t sort_locators(struct locator *list, size_t n, size_t *ret_n_stars)
{
	size_t n_kept = 0, first_star = 0, n_stars = 0;
	if (n > 0)
		qsort(list, n, sizeof(*list), locator_cmp);
	for (size_t i = 0; i < n; i++)
		if (n_kept == 0 || locator_cmp(&list[n_kept - 1], &list[i]) != 0)
			list[n_kept++] = list[i];
	while (first_star < n_kept && !is_star(&list[first_star]))
		first_star++;
	while (first_star + n_stars < n_kept && is_star(&list[first_star + n_stars]))
		n_stars++;
	reverse(list + first_star, n_stars);
	reverse(list + first_star + n_stars, n_kept - first_star - n_stars);
	reverse(list + first_star, n_kept - first_star);
	*ret_n_stars = n_stars;
	return n_kept - n_stars;
}

static bool is_among(const struct xds_params *params, struct xds_sub *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (xds_params_eq(params, list[i]->params))
			return true;
	return false;
}

// Wildcards under construction, with room for those that are added.
struct wild {
	struct xds_sub **list;
	size_t n;
};

static int wild_init(struct wild *w, size_t room)
{
	*w = (struct wild){malloc((room + 1) * sizeof(struct xds_sub *)), 0};
	return w->list ? 0 : -ENOMEM;
}

static int wild_add(struct wild *w, const struct catalog_type *type, struct xds_params *params)
{
	bool is_new;
	struct xds_sub *sub;
	int rc = xds_sub_get(type->cache, "*", params, &sub, &is_new);
	if (rc)
		return rc;
	rc = catalog_want(type, sub);
	if (rc)
		(void)xds_sub_put(type->cache, sub);
	else
		w->list[w->n++] = sub;
	return rc;
}

static void replace_wild(struct subscription *s, const struct catalog_type *type, struct wild *w)
{
	wild_free(type, s->wild, s->n_wild);
	s->wild = w->list;
	s->n_wild = w->n;
	s->wild_is_stale = true;
}

static int listed_wild(
	struct wild *w, const struct catalog_type *type, const struct locator *stars, size_t n)
{
	int rc = wild_init(w, n);
	for (size_t i = 0; i < n && !rc; i++)
		rc = wild_add(w, type, stars[i].params);
	if (rc)
		wild_free(type, w->list, w->n);
	return rc;
}

int subscription_set(struct subscription *s, const struct catalog_type *type, struct locator *list,
	size_t n, bool empty_is_wildcard)
{
	struct locator all = {"*", NULL};
	bool is_empty = n == 0;
	if (is_empty && empty_is_wildcard && !s->ever_named) {
		list = &all;
		n = 1;
	}
	struct subscription_merge m;
	size_t n_stars, n_names = sort_locators(list, n, &n_stars);
	if (n_stars > SUBSCRIPTION_WILD_MAX)
		return -E2BIG;
	struct wild wild;
	int rc = listed_wild(&wild, type, list + n_names, n_stars);
	if (rc)
		return rc;
	rc = subscription_merge_begin(&m, s, type, list, n_names);
	for (size_t i = 0; !rc && i < m.n; i++) {
		struct subscription_entry *e = &m.out[i];
		e->named = e->is_listed;
		bool is_under = is_among(e->sub->params, wild.list, wild.n);
		e->wild = (e->wild || e->sent) && is_under;
		// It is of a new wildcard's answer, though the client was sent it by name (SW-14).
		e->asked |= e->sent && is_under && !is_among(e->sub->params, s->wild, s->n_wild);
	}
	rc = rc ? rc : subscription_merge_finish(&m, s, type);
	if (rc) {
		wild_free(type, wild.list, wild.n);
		return rc;
	}
	s->wild_is_new = false;
	for (size_t i = 0; i < wild.n; i++)
		s->wild_is_new |= !is_among(wild.list[i]->params, s->wild, s->n_wild);
	replace_wild(s, type, &wild);
	s->ever_named |= !is_empty;
	return 0;
}

// The wildcards that there will be.
static int changed_wild(struct wild *w, const struct subscription *s,
	const struct catalog_type *type, const struct locator *add, size_t n_add,
	const struct locator *remove, size_t n_remove)
{
	int rc = wild_init(w, s->n_wild + n_add);
	for (size_t i = 0; i < s->n_wild && !rc; i++) {
		bool stays = true;
		for (size_t k = 0; k < n_remove && stays; k++)
			stays = !xds_params_eq(s->wild[i]->params, remove[k].params);
		if (stays)
			rc = wild_add(w, type, s->wild[i]->params);
	}
	for (size_t i = 0; i < n_add && !rc; i++)
		if (!is_among(add[i].params, w->list, w->n))
			rc = wild_add(w, type, add[i].params);
	if (rc)
		wild_free(type, w->list, w->n);
	return rc;
}

// A name that a wildcard holds too is answered once more, with what it is or that it is not
// (DL-10).
static void take_away(struct subscription_merge *m, const struct locator *remove, size_t n,
	const struct wild *wild)
{
	for (size_t i = 0, at = 0; i < n; i++) {
		while (at < m->n && subscription_entry_cmp(&m->out[at], &remove[i]) < 0)
			at++;
		if (at == m->n || subscription_entry_cmp(&m->out[at], &remove[i]) != 0)
			continue;
		struct subscription_entry *e = &m->out[at];
		bool is_known = e->named || e->asked || e->sent || e->sub->variant;
		e->named = false;
		e->wild = e->asked = is_known && is_among(e->sub->params, wild->list, wild->n);
	}
}

static void mark_added(struct subscription_merge *m, const struct wild *wild,
	const struct locator *stars, size_t n_stars)
{
	for (size_t i = 0; i < m->n; i++) {
		struct subscription_entry *e = &m->out[i];
		e->wild = (e->wild || e->left) && is_among(e->sub->params, wild->list, wild->n);
		e->named |= e->is_listed;
		e->asked |= e->is_listed;
		bool is_some = e->sent || e->sub->variant;
		for (size_t k = 0; is_some && !e->asked && k < n_stars; k++)
			e->asked = xds_params_eq(e->sub->params, stars[k].params);
	}
}

// The entries of one name.
static size_t name_end(const struct subscription_merge *m, size_t first)
{
	size_t end = first + 1;
	while (end < m->n && m->out[end].sub->name == m->out[first].sub->name)
		end++;
	return end;
}

// Does another subscription keep what was sent for this one, and not know of it itself? Those of a
// name are too many to be all asked, and one that is told to go too often does no harm. Nor is
// there an end to looking where many go at once.
#define LOOK_MAX 1000
#define LOOK_MAX_IN_ALL (1000 * LOOK_MAX) // of one request
static bool is_left(const struct subscription_merge *m, size_t first, size_t end,
	const struct subscription_entry *e, const struct wild *wild, size_t *looks)
{
	const struct xds_constraints *sent = e->sent->constraints;
	bool is_kept = end - first > LOOK_MAX;
	if (*looks >= LOOK_MAX_IN_ALL)
		return true;
	for (size_t i = 0; i < wild->n && !is_kept; i++)
		is_kept = xds_constraints_match(sent, wild->list[i]->params);
	for (size_t i = first; i < end && i < first + LOOK_MAX; i++) {
		++*looks;
		const struct subscription_entry *other = &m->out[i];
		if (!other->named && !other->wild)
			continue;
		if (other->sent && xds_constraints_eq(other->sent->constraints, sent))
			return false;
		is_kept |= xds_constraints_match(sent, other->sub->params);
	}
	return is_kept;
}

// What a client holds of a name it holds for all its subscriptions to it, though the one for which
// it was sent may end.
static void leave_behind(struct subscription_merge *m, const struct wild *wild)
{
	size_t looks = 0;
	for (size_t first = 0, end; first < m->n; first = end) {
		end = name_end(m, first);
		for (size_t i = first; i < end; i++) {
			struct subscription_entry *e = &m->out[i];
			e->left = !e->named && !e->wild && e->sent &&
			          is_left(m, first, end, e, wild, &looks);
			if (e->left) {
				e->asked = false;
				e->error = 0;
			}
		}
	}
}

int subscription_change(struct subscription *s, const struct catalog_type *type,
	struct locator *add, size_t n_add, struct locator *remove, size_t n_remove)
{
	struct subscription_merge m;
	size_t n_add_stars, n_remove_stars;
	n_add = sort_locators(add, n_add, &n_add_stars);
	n_remove = sort_locators(remove, n_remove, &n_remove_stars);
	if (s->n_wild + n_add_stars > SUBSCRIPTION_WILD_MAX)
		return -E2BIG;
	struct wild wild;
	int rc = changed_wild(
		&wild, s, type, add + n_add, n_add_stars, remove + n_remove, n_remove_stars);
	if (rc)
		return rc;
	rc = subscription_merge_begin(&m, s, type, add, n_add);
	if (!rc) {
		take_away(&m, remove, n_remove, &wild);
		mark_added(&m, &wild, add + n_add, n_add_stars);
		leave_behind(&m, &wild);
		rc = subscription_merge_finish(&m, s, type);
	}
	if (rc)
		wild_free(type, wild.list, wild.n);
	else
		replace_wild(s, type, &wild);
	return rc;
}

// All names under all wildcards, in order; the caller's. NULL = out of memory.
static struct locator *under_wildcards(
	const struct subscription *s, const char *const *names, size_t n)
{
	struct locator *list = malloc((n * s->n_wild + 1) * sizeof(*list));
	for (size_t i = 0; list && i < n * s->n_wild; i++)
		list[i] = (struct locator){names[i / s->n_wild], s->wild[i % s->n_wild]->params};
	if (list && n * s->n_wild > 0)
		qsort(list, n * s->n_wild, sizeof(*list), locator_cmp);
	return list;
}

static int holding_cmp(const void *a, const void *b)
{
	return strcmp(((const struct holding *)a)->name, ((const struct holding *)b)->name);
}

static int hold(struct subscription_entry *e, const struct holding *h)
{
	struct xds_constraints *c = resource_version_constraints(h->version);
	bool is_its = xds_constraints_match(c, e->sub->params);
	struct xds_variant *v = is_its ? xds_variant_new(c, h->version) : NULL;
	xds_constraints_put(c);
	if (!is_its)
		return 0;
	if (!v)
		return -ENOMEM;
	subscription_told(e, v);
	xds_variant_put(v);
	return 0;
}

// Under a wildcard the client may have what is gone: it needs an entry, to be taken away.
static int hold_under_wildcards(struct subscription *s, const struct catalog_type *type,
	const struct holding *list, size_t n)
{
	if (s->n_wild == 0)
		return 0;
	if (n * s->n_wild > SUBSCRIPTION_MAX)
		return -E2BIG;
	struct subscription_merge m;
	const char **names = malloc((n + 1) * sizeof(char *));
	if (!names)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		names[i] = list[i].name;
	struct locator *locators = under_wildcards(s, names, n);
	int rc =
		locators ? subscription_merge_begin(&m, s, type, locators, n * s->n_wild) : -ENOMEM;
	if (!rc) {
		for (size_t i = 0; i < m.n; i++)
			m.out[i].wild |= m.out[i].is_listed;
		subscription_merge_commit(&m, s, type);
		s->wild_is_stale = true;
	}
	free(locators);
	free(names);
	return rc;
}

int subscription_hold(
	struct subscription *s, const struct catalog_type *type, struct holding *list, size_t n)
{
	size_t n_kept = 0;
	if (n > 0)
		qsort(list, n, sizeof(*list), holding_cmp);
	for (size_t i = 0; i < n; i++)
		if (n_kept == 0 || holding_cmp(&list[n_kept - 1], &list[i]) != 0)
			list[n_kept++] = list[i];
	int rc = hold_under_wildcards(s, type, list, n_kept);
	for (size_t i = 0, at = 0; i < s->n && !rc; i++) {
		struct subscription_entry *e = &s->entries[i];
		while (at < n_kept && strcmp(list[at].name, e->sub->name) < 0)
			at++;
		if (at < n_kept && strcmp(list[at].name, e->sub->name) == 0)
			rc = hold(e, &list[at]);
	}
	return rc;
}

int subscription_refresh(struct subscription *s, struct catalog_type *type)
{
	bool is_fresh = !s->wild_is_stale && s->wild_generation == type->generation;
	bool has_wild = s->n_wild > 0 || s->wild_is_stale;
	if (is_fresh || !has_wild)
		return 0;
	int rc = catalog_names(type);
	if (rc)
		return rc;
	if (s->n_wild > 0 && type->n_names > SUBSCRIPTION_MAX / s->n_wild)
		return -E2BIG;
	struct subscription_merge m;
	struct locator *list = under_wildcards(s, type->names, type->n_names);
	rc = list ? subscription_merge_begin(&m, s, type, list, type->n_names * s->n_wild)
	          : -ENOMEM;
	free(list);
	if (rc)
		return rc;
	for (size_t i = 0; i < m.n; i++)
		m.out[i].wild =
			m.out[i].is_listed || (m.out[i].wild && (m.out[i].sent || m.out[i].asked));
	subscription_merge_commit(&m, s, type);
	s->wild_is_stale = false;
	s->wild_generation = type->generation;
	return 0;
}

void subscription_forget(struct subscription *s)
{
	for (size_t i = 0; i < s->n; i++) {
		xds_variant_put(s->entries[i].sent);
		s->entries[i].sent = NULL;
		s->entries[i].error = 0;
	}
}

void subscription_told(struct subscription_entry *e, struct xds_variant *v)
{
	xds_variant_get(v);
	xds_variant_put(e->sent);
	e->sent = v;
	e->asked = false;
}
