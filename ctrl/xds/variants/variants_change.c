// SPDX-License-Identifier: Apache-2.0
// Sets of changes: listed as edits beside the variants, then made at once.
#include "ctrl/xds/variants/constraints.h"
#include "ctrl/xds/variants/overlap.h"
#include "ctrl/xds/variants/params.h"
#include "ctrl/xds/variants/variants_inside.h"
#include "ctrl/xds/variants/version.h"
#include "lb/base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_ROOM 96 // of constraints and parameters in an error

void xds_variants_begin(struct xds_variants *c, enum xds_change_kind kind)
{
	CHECK(!c->is_changing);
	c->is_changing = true;
	c->change = kind;
}

void xds_variants_set_full(struct xds_variants *c)
{
	CHECK(c->is_changing);
	c->change = XDS_CHANGE_FULL;
}

static void touch(struct xds_variants *c, struct xds_variants_name *n)
{
	if (n->is_touched)
		return;
	n->is_touched = true;
	TAILQ_INSERT_TAIL(&c->touched, n, touched_link);
}

static int refuse(const struct xds_variants *c, const struct xds_variants_name *n,
	const struct xds_constraints *constraints, const char *why, struct lb_err *err)
{
	char text[TEXT_ROOM];
	xds_constraints_print(constraints, text, sizeof(text));
	return lb_err_set(err, "%s \"%.128s\": variant %s: %s", c->conf.label, n->text, text, why);
}

static int may_edit(const struct xds_variants *c, const struct xds_variants_name *n,
	const struct xds_constraints *constraints, struct lb_err *err)
{
	const struct xds_variants_edit *e;
	STAILQ_FOREACH(e, &n->edits, link)
	{
		if (xds_constraints_eq(e->constraints, constraints)) {
			refuse(c, n, constraints, "listed twice", err);
			return -EEXIST;
		}
	}
	if (n->n_edits >= XDS_VARIANTS_MAX || n->n_variants + n->n_edits >= 2 * XDS_VARIANTS_MAX) {
		refuse(c, n, constraints, "the name has too many variants", err);
		return -E2BIG;
	}
	return 0;
}

// Takes the variant, also when it fails.
static int edit(struct xds_variants *c, enum edit_kind kind, const char *name,
	struct xds_constraints *constraints, struct xds_variant *variant, struct lb_err *err)
{
	CHECK(c->is_changing);
	struct xds_variants_name *n = xds_variants_name_make(c, name);
	struct xds_variants_edit *e = NULL;
	int rc = n ? may_edit(c, n, constraints, err) : -ENOMEM;
	if (!rc && !(e = calloc(1, sizeof(*e))))
		rc = -ENOMEM;
	if (rc) {
		xds_variant_put(variant);
		if (n)
			xds_variants_name_tidy(c, n);
		return rc;
	}
	e->kind = kind;
	e->constraints = xds_constraints_get(constraints);
	e->variant = variant;
	STAILQ_INSERT_TAIL(&n->edits, e, link);
	n->n_edits++;
	touch(c, n);
	return 0;
}

// c->version is this one. False = out of memory.
static bool note_version(struct xds_variants *c, const char *version)
{
	if (c->version && strcmp(c->version, version) == 0)
		return true;
	const char *copy = xds_version_new(version);
	if (!copy)
		return false;
	xds_version_put(c->version);
	c->version = copy;
	return true;
}

int xds_variants_set(struct xds_variants *c, const char *name, struct xds_constraints *constraints,
	const char *version, void *content, struct lb_err *err)
{
	struct xds_variant *v = note_version(c, version)
	                                ? xds_variants_make_variant(constraints, c->version)
	                                : NULL;
	if (!v) {
		c->conf.content_put(content);
		return -ENOMEM;
	}
	v->content = content;
	v->content_put = c->conf.content_put;
	return edit(c, EDIT_SET, name, constraints, v, err);
}

int xds_variants_remove(struct xds_variants *c, const char *name,
	struct xds_constraints *constraints, struct lb_err *err)
{
	return edit(c, EDIT_REMOVE, name, constraints, NULL, err);
}

int xds_variants_remove_aged(struct xds_variants *c, const char *name)
{
	const struct xds_variants_name *n = xds_variants_name_find(c, name);
	const struct xds_variant *v;
	int rc = 0;
	if (!n)
		return 0;
	SLIST_FOREACH(v, &n->variants, link)
	{
		if (rc != -ENOMEM && v->change <= c->n_aged && !v->is_claimed)
			rc = xds_variants_remove(c, name, v->constraints, NULL);
	}
	return rc == -ENOMEM ? rc : 0; // else it is listed already
}

int xds_variants_keep(struct xds_variants *c, const char *name, struct xds_constraints *constraints,
	struct lb_err *err)
{
	return edit(c, EDIT_KEEP, name, constraints, NULL, err);
}

int xds_variants_keep_all(struct xds_variants *c, const char *name)
{
	CHECK(c->is_changing);
	struct xds_variants_name *n = xds_variants_name_make(c, name);
	if (!n)
		return -ENOMEM;
	n->keeps_rest = true;
	touch(c, n);
	return 0;
}

// Notes which edits are about variants that are there.
static void join(struct xds_variants_name *n)
{
	const struct xds_variant *v;
	struct xds_variants_edit *e;
	STAILQ_FOREACH(e, &n->edits, link)
	{
		SLIST_FOREACH(v, &n->variants, link)
		if (xds_constraints_eq(v->constraints, e->constraints))
			break;
		e->is_known = v;
	}
}

// What the change says of the variant; NULL = nothing.
static struct xds_variants_edit *edit_of(
	const struct xds_variants_name *n, const struct xds_variant *v)
{
	struct xds_variants_edit *e;
	STAILQ_FOREACH(e, &n->edits, link)
	if (e->is_known && xds_constraints_eq(v->constraints, e->constraints))
		break;
	return e;
}

// A variant of the name as it will be.
struct candidate {
	struct xds_constraints *constraints; // borrowed
	bool is_new;
};

static size_t list_candidates(
	const struct xds_variants *c, struct xds_variants_name *n, struct candidate *list)
{
	size_t len = 0;
	struct xds_variant *v;
	struct xds_variants_edit *e;
	join(n);
	SLIST_FOREACH(v, &n->variants, link)
	{
		e = edit_of(n, v);
		bool stays = e ? e->kind != EDIT_REMOVE
		               : c->change == XDS_CHANGE_LISTED || n->keeps_rest;
		if (stays)
			list[len++] = (struct candidate){v->constraints, false};
	}
	STAILQ_FOREACH(e, &n->edits, link)
	if (e->kind == EDIT_SET && !e->is_known)
		list[len++] = (struct candidate){e->constraints, true};
	return len;
}

static int check_pair(const struct xds_variants *c, const struct xds_variants_name *n,
	const struct candidate *a, const struct candidate *b, struct lb_err *err)
{
	struct xds_params *witness = NULL;
	struct lb_err why = {""};
	int rc = xds_overlap_find(a->constraints, b->constraints, &witness, &why);
	if (rc == 0 || rc == -ENOMEM)
		return rc;
	char text_a[TEXT_ROOM], text_b[TEXT_ROOM], text[TEXT_ROOM];
	xds_constraints_print(a->constraints, text_a, sizeof(text_a));
	xds_constraints_print(b->constraints, text_b, sizeof(text_b));
	xds_params_print(witness, text, sizeof(text));
	xds_params_put(witness);
	if (rc < 0)
		return lb_err_set(err, "%s \"%.64s\": variants %s and %s: overlap is %s",
			c->conf.label, n->text, text_a, text_b, why.text);
	return lb_err_set(err, "%s \"%.64s\": variants %s and %s overlap: both match %s",
		c->conf.label, n->text, text_a, text_b, text);
}

static int check_name(const struct xds_variants *c, struct xds_variants_name *n,
	struct xds_variants_clash *ret, struct lb_err *err)
{
	struct candidate *list = calloc((size_t)n->n_variants + n->n_edits + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	size_t len = list_candidates(c, n, list);
	int rc = 0;
	for (size_t i = 0; i < len && !rc; i++) {
		for (size_t k = i + 1; k < len && !rc; k++) {
			if (list[i].is_new || list[k].is_new)
				rc = check_pair(c, n, &list[i], &list[k], err);
			if (rc == -EINVAL && ret)
				*ret = (struct xds_variants_clash){
					n->text, list[i].constraints, list[k].constraints};
		}
	}
	free(list);
	return rc;
}

int xds_variants_check(struct xds_variants *c, struct xds_variants_clash *ret, struct lb_err *err)
{
	CHECK(c->is_changing);
	struct xds_variants_name *n;
	TAILQ_FOREACH(n, &c->touched, touched_link)
	{
		int rc = check_name(c, n, ret, err);
		if (rc)
			return rc;
	}
	return 0;
}

static void insert(struct xds_variants *c, struct xds_variants_name *n, struct xds_variant *v)
{
	struct xds_variant *at = SLIST_FIRST(&n->variants), *before = NULL;
	while (at && xds_constraints_cmp(at->constraints, v->constraints) < 0) {
		before = at;
		at = SLIST_NEXT(at, link);
	}
	if (before)
		SLIST_INSERT_AFTER(before, v, link);
	else
		SLIST_INSERT_HEAD(&n->variants, v, link);
	v->change = c->n_changes;
	n->n_variants++;
	c->n_variants++;
}

// The variant is set again. False = by another content, which takes its place.
static bool renew(const struct xds_variants *c, struct xds_variant *v, struct xds_variant *by)
{
	if (!c->conf.content_eq(v->content, by->content))
		return false;
	const char *version = v->version;
	v->version = by->version;
	by->version = version;
	v->change = c->n_changes;
	return true;
}

static void apply_to(struct xds_variants *c, struct xds_variants_name *n, struct xds_variant *v)
{
	struct xds_variants_edit *e = edit_of(n, v);
	if (!e) {
		if (c->change == XDS_CHANGE_FULL && !n->keeps_rest)
			xds_variants_drop(c, n, v);
		return;
	}
	if (e->kind == EDIT_KEEP)
		return;
	if (e->kind == EDIT_SET && renew(c, v, e->variant)) {
		xds_variant_put(e->variant);
		e->variant = NULL;
		return;
	}
	xds_variants_drop(c, n, v);
}

static void forget_edits(struct xds_variants *c, struct xds_variants_name *n)
{
	for (struct xds_variants_edit *e; (e = STAILQ_FIRST(&n->edits));) {
		STAILQ_REMOVE_HEAD(&n->edits, link);
		xds_constraints_put(e->constraints);
		xds_variant_put(e->variant);
		free(e);
	}
	n->n_edits = 0;
	n->keeps_rest = false;
	if (n->is_touched)
		TAILQ_REMOVE(&c->touched, n, touched_link);
	n->is_touched = false;
}

static void apply(struct xds_variants *c, struct xds_variants_name *n)
{
	join(n);
	for (struct xds_variant *v = SLIST_FIRST(&n->variants), *next; v; v = next) {
		next = SLIST_NEXT(v, link);
		apply_to(c, n, v);
	}
	struct xds_variants_edit *e;
	STAILQ_FOREACH(e, &n->edits, link)
	{
		if (e->variant)
			insert(c, n, e->variant);
		e->variant = NULL;
	}
	forget_edits(c, n);
}

static void note_change(struct xds_variants *c, struct xds_sub *s)
{
	if (s->is_changed)
		return;
	s->is_changed = true;
	s->told = xds_variant_get(s->variant);
	TAILQ_INSERT_TAIL(&c->changed, s, changed_link);
}

static void look(struct xds_variants *c, struct xds_sub *s)
{
	uint32_t n_before = s->n_matches, n_matches;
	struct xds_variant *v =
		xds_variants_choose(c, xds_variants_name_of(s), s->params, s->variant, &n_matches);
	s->n_matches = n_matches & UINT16_MAX;
	if (v != s->variant) {
		note_change(c, s);
		xds_variant_put(s->variant);
		s->variant = xds_variant_get(v);
	}
	if (s->n_matches < 2 || n_before > 1)
		return;
	c->n_ambiguous++;
	if (s->was_ambiguous)
		return;
	note_change(c, s);
	s->was_ambiguous = s->newly_ambiguous = true;
}

static void commit_name(struct xds_variants *c, struct xds_variants_name *n)
{
	struct xds_sub *s;
	apply(c, n);
	TAILQ_FOREACH(s, &n->subs, link)
	look(c, s);
	c->n_unwanted += xds_variants_evict(c, n, c->n_changes);
	xds_variants_name_tidy(c, n);
}

void xds_variants_commit(struct xds_variants *c)
{
	CHECK(c->is_changing);
	xds_variants_forget_drained(c);
	c->n_changes++;
	struct xds_variants_name *n, *next;
	if (c->change == XDS_CHANGE_FULL) {
		for (n = TAILQ_FIRST(&c->all); n; n = next) {
			next = TAILQ_NEXT(n, link);
			commit_name(c, n);
		}
	}
	while ((n = TAILQ_FIRST(&c->touched)))
		commit_name(c, n);
	c->is_changing = false;
}

void xds_variants_age(struct xds_variants *c)
{
	struct xds_variants_name *n;
	struct xds_variant *v;
	c->n_aged = c->n_changes;
	TAILQ_FOREACH(n, &c->all, link)
	SLIST_FOREACH(v, &n->variants, link)
	v->is_claimed = false;
}

void xds_variants_abort(struct xds_variants *c)
{
	CHECK(c->is_changing);
	for (struct xds_variants_name *n; (n = TAILQ_FIRST(&c->touched));) {
		forget_edits(c, n);
		xds_variants_name_tidy(c, n);
	}
	c->is_changing = false;
}
