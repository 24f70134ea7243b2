// SPDX-License-Identifier: Apache-2.0
// A name is a set of views, each of them a watch at the server that sees one variant or none. What
// the catalog has of the name is what its views see: it is compared as a whole whenever one of them
// has heard something, so that in which order that came makes no difference (TP2-P06).
#include "ctrl/xds/variants/constraints.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"
#include "tools/shunt-xds/upstream_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_NS NS_PER_SECOND // of what there was no memory for

// Names

void upstream_mark_dirty(struct upstream *up, struct name *n)
{
	list_remove(&n->at);
	list_append(&up->dirty, &n->at);
}

struct name *upstream_name_get(struct upstream *up, uint32_t type, const char *text)
{
	struct strmap_link *l = strmap_find(&up->names[type], text);
	if (l)
		return CONTAINER_OF(l, struct name, link);
	size_t size = strlen(text) + 1;
	struct name *n = calloc(1, sizeof(*n) + size);
	if (!n)
		return NULL;
	memcpy(n->text, text, size);
	n->type = type;
	list_init(&n->views);
	if (strmap_add(&up->names[type], &n->link, n->text)) {
		free(n);
		return NULL;
	}
	return n;
}

static void list_free(struct shown *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		resource_put(list[i].resource);
	free(list);
}

void upstream_name_free(struct upstream *up, struct name *n)
{
	strmap_remove(&up->names[n->type], &n->link);
	list_remove(&n->at);
	list_free(n->shown, n->n_shown);
	list_free(n->next, n->n_next);
	free(n);
}

// Nothing is left of it.
static void name_tidy(struct upstream *up, struct name *n)
{
	if (list_empty(&n->views) && n->n_shown == 0 && !list_linked(&n->at))
		upstream_name_free(up, n);
}

// What is said of a subscription

static bool is_there(const struct xds_word *word)
{
	return word->variant && word->status != XDS_STATUS_DOES_NOT_EXIST;
}

static bool is_known(const struct want *w, const struct xds_word *word)
{
	bool is_wildcard = strcmp(w->sub->name, "*") == 0;
	switch (word->status) {
	case XDS_STATUS_ACKED:
		return true;
	case XDS_STATUS_DOES_NOT_EXIST:
	case XDS_STATUS_RECEIVED_ERROR:
		return !is_wildcard;
	case XDS_STATUS_REQUESTED:
	case XDS_STATUS_TIMEOUT: // silence: A88's timer_is_transient_error
	case XDS_STATUS_NACKED: // it makes no sense, and may be said again
		return is_there(word);
	}
	return false;
}

static bool is_same_error(const struct want *w, const struct xds_word *word)
{
	return w->word.error != 0 && w->word.code == word->code &&
	       strcmp(w->word.text, word->text) == 0 &&
	       xds_constraints_eq(w->word.constraints, word->constraints);
}

static void set_error(struct want *w, uint64_t number, const struct xds_word *word, char *text)
{
	free(w->error_text);
	xds_constraints_put(w->word.constraints);
	w->error_text = text;
	w->word.error = number;
	w->word.code = word->code;
	w->word.text = text ? text : "";
	w->word.constraints = number ? xds_constraints_get(word->constraints) : NULL;
}

static int update_word(struct upstream *up, struct want *w)
{
	struct xds_word word;
	xds_watcher_word(&w->view.watcher, &word);
	bool is_error = word.status == XDS_STATUS_RECEIVED_ERROR;
	bool is_pending = !is_known(w, &word);
	bool is_new = is_error ? !is_same_error(w, &word) : w->word.error != 0;
	char *text = is_error && is_new ? strdup(word.text) : NULL;
	if (is_error && is_new && !text)
		return -ENOMEM;
	if (is_new)
		set_error(w, is_error ? ++up->n_errors : 0, &word, text);
	if (is_new || is_pending != w->word.is_pending)
		catalog_touch(&up->catalog->types[w->type]);
	w->word.is_pending = is_pending;
	return 0;
}

// What the catalog is to have of a name

static const struct shown *find(
	const struct shown *list, size_t n, const struct xds_constraints *constraints)
{
	for (size_t i = 0; i < n; i++)
		if (xds_constraints_eq(list[i].resource->constraints, constraints))
			return &list[i];
	return NULL;
}

// Counts the resource.
static void add_next(struct name *n, struct resource *r, uint64_t change)
{
	n->next[n->n_next++] = (struct shown){resource_get(r), change};
}

static bool newest_wins(const struct upstream *up, const struct name *n)
{
	return up->catalog->types[n->type].newest_wins;
}

// An incremental server's version is of this resource, and is passed on; state of the world has but
// one of all.
static const char *version_of(const struct upstream *up, const struct xds_variant *v)
{
	bool is_its = up->conf.protocol == &xds_protocol_delta && *v->version;
	return is_its ? v->version : NULL;
}

static bool is_shown(const struct upstream *up, const struct name *n, const struct xds_variant *v)
{
	const struct shown *shown = find(n->shown, n->n_shown, v->constraints);
	const struct resource *r = shown ? shown->resource : NULL;
	const char *version = version_of(up, v);
	bool is_dated = r && (r->do_not_cache || newest_wins(up, n));
	return r && r->received == v->content && (!version || strcmp(r->version, version) == 0) &&
	       (!is_dated || shown->change == v->change);
}

// What the catalog said of a variant. Too many for one change are another name's trouble never: the
// rest comes with the next, as long as that gets on.
static int edited(struct upstream *up, struct name *n, int rc, const struct lb_err *err)
{
	n->is_edited |= rc == 0;
	if (rc != -E2BIG)
		return rc;
	if (!n->is_full && up->conf.log)
		up->conf.log(up->conf.log_ctx, err->text);
	n->is_full = true;
	return 0;
}

// A variant that a view sees, in the list of next, and in the change if it is not shown so.
static int show(struct upstream *up, struct name *n, const struct xds_variant *v)
{
	struct lb_err err = {""};
	const struct shown *shown = find(n->shown, n->n_shown, v->constraints);
	bool is_same = is_shown(up, n, v),
	     is_later = newest_wins(up, n) && v->change > n->next_turn;
	if (find(n->next, n->n_next, v->constraints))
		return 0;
	if (is_same || is_later) {
		n->is_left |= !is_same;
		if (shown)
			add_next(n, shown->resource, shown->change);
		return 0;
	}
	struct resource *r = resource_new_received(
		n->type, n->text, v->constraints, version_of(up, v), v->content);
	int rc = r ? catalog_set(up->catalog, r, &err) : -ENOMEM;
	if (!rc)
		add_next(n, r, v->change);
	resource_put(r);
	return edited(up, n, rc, &err);
}

// A variant that no view sees any more.
static int hide(struct upstream *up, struct name *n, const struct shown *shown)
{
	struct lb_err err = {""};
	int rc = catalog_remove(up->catalog, n->type, n->text, shown->resource->constraints, &err);
	if (rc == -E2BIG)
		add_next(n, shown->resource, shown->change);
	return edited(up, n, rc, &err);
}

// Where the newest wins, what came with several responses takes effect in several changes, in the
// same order: up to which, now.
static uint64_t next_turn(const struct upstream *up, const struct name *n)
{
	uint64_t turn = n->turn;
	for (struct list_link *c = n->views.next; c != &n->views && newest_wins(up, n);
		c = c->next) {
		struct xds_word word;
		xds_watcher_word(&CONTAINER_OF(c, struct view, by_name)->watcher, &word);
		if (!is_there(&word) || is_shown(up, n, word.variant))
			continue;
		uint64_t change = word.variant->change;
		if (change > n->turn && (turn == n->turn || change < turn))
			turn = change;
	}
	return turn;
}

// Lists the name in the catalog's change.
static int edit(struct upstream *up, struct name *n)
{
	size_t n_views = 0;
	int rc = 0;
	for (struct list_link *c = n->views.next, *next; c != &n->views; c = next) {
		struct xds_word word;
		struct view *v = CONTAINER_OF(c, struct view, by_name);
		next = c->next;
		n_views++;
		xds_watcher_word(&v->watcher, &word);
		if (v->want)
			rc = rc ? rc : update_word(up, v->want);
		else if (!is_there(&word)) // a wildcard's part ends with it
			upstream_part_free(CONTAINER_OF(v, struct part, view));
	}
	n->next = malloc((n_views + n->n_shown + 1) * sizeof(*n->next));
	if (rc || !n->next)
		return -ENOMEM;
	n->next_turn = next_turn(up, n);
	n->is_left = n->is_full = n->is_edited = false;
	for (struct list_link *c = n->views.next; c != &n->views && !rc; c = c->next) {
		struct xds_word word;
		xds_watcher_word(&CONTAINER_OF(c, struct view, by_name)->watcher, &word);
		if (is_there(&word))
			rc = show(up, n, word.variant);
	}
	for (size_t i = 0; i < n->n_shown && !rc; i++)
		if (!find(n->next, n->n_next, n->shown[i].resource->constraints))
			rc = hide(up, n, &n->shown[i]);
	n->is_left |= n->is_full && n->is_edited;
	return rc;
}

static void take_effect(struct upstream *up, struct name *n)
{
	list_free(n->shown, n->n_shown);
	n->shown = n->next;
	n->n_shown = n->n_next;
	n->next = NULL;
	n->n_next = 0;
	n->turn = n->is_left ? n->next_turn : 0;
	if (n->is_left)
		upstream_mark_dirty(up, n);
	else
		list_remove(&n->at);
	name_tidy(up, n);
}

// It never was: the same another time.
static void take_back(struct upstream *up, struct name *n)
{
	list_free(n->next, n->n_next);
	n->next = NULL;
	n->n_next = 0;
	upstream_mark_dirty(up, n);
}

static uint64_t generations(const struct catalog *c)
{
	uint64_t sum = 0;
	for (uint32_t t = 0; t < c->n_types; t++)
		sum += c->types[t].generation;
	return sum;
}

static void settle(struct upstream *up)
{
	int rc = 0;
	catalog_begin(up->catalog, XDS_CHANGE_LISTED);
	while (!list_empty(&up->dirty) && !rc) {
		struct name *n = CONTAINER_OF(up->dirty.next, struct name, at);
		rc = edit(up, n);
		list_remove(&n->at);
		list_append(&up->edited, &n->at);
	}
	if (rc) {
		catalog_abort(up->catalog);
		twheel_arm(up->conf.wheel, &up->retry, twheel_now(up->conf.wheel) + RETRY_NS);
	} else {
		catalog_commit(up->catalog);
	}
	while (!list_empty(&up->edited)) {
		struct name *n = CONTAINER_OF(up->edited.next, struct name, at);
		if (rc)
			take_back(up, n);
		else
			take_effect(up, n);
	}
}

bool upstream_settle(struct upstream *up)
{
	uint64_t before = generations(up->catalog);
	if (list_empty(&up->dirty) || twheel_armed(&up->retry))
		return false;
	xds_client_begin(up->client);
	while (!list_empty(&up->dirty) && !twheel_armed(&up->retry))
		settle(up);
	xds_client_end(up->client);
	return generations(up->catalog) != before;
}
