// SPDX-License-Identifier: Apache-2.0
// A name is a set of views, each of them a watch at the server that sees one variant or none. What
// the catalog has of the name is what its views see: it is compared as a whole whenever one of them
// has heard something, so that in which order that came makes no difference (TP2-P06).
#include "tools/shunt-xds/upstream.h"

#include "ctrl/xds/bootstrap.h"
#include "ctrl/xds/chain.h"
#include "ctrl/xds/client.h"
#include "ctrl/xds/constraints.h"
#include "ctrl/xds/params.h"
#include "ctrl/xds/raw.h"
#include "ctrl/xds/strmap.h"
#include "lb/base/check.h"
#include "lb/base/twheel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_NS 1000000000ull // of what there was no memory for

_Static_assert(CATALOG_TYPES_MAX <= XDS_MAX_TYPES, "the client takes all types of a catalog");

struct shown {
	struct resource *resource; // counted
	uint64_t change; // that set it last, in the client's cache
};

struct name {
	struct strmap_link link;
	uint32_t type;
	struct xds_chain views;
	struct xds_chain at; // dirty or edited; nowhere = the catalog has what the views see
	struct shown *shown; // what the catalog has of it
	size_t n_shown;
	struct shown *next; // what it has when the change takes effect
	size_t n_next;
	char text[];
};

struct view {
	struct xds_watcher watcher; // first member
	struct upstream *upstream;
	struct name *of;
	struct xds_chain by_name;
	struct want *want; // whose it is; NULL = it is a part of a wildcard
};

// A subscription at the server, for clients or for none any more.
struct want {
	struct catalog_word word; // first member: the subscription's owner
	char *error_text;
	struct view view;
	struct xds_sub *sub; // counted
	uint32_t type;
	uint32_t n_users;
	struct twheel_timer grace;
	struct xds_chain all;
	struct xds_chain parts; // of a wildcard
};

// A name that has come by a wildcard.
struct part {
	struct view view; // first member
	struct xds_chain of_want;
};

struct upstream {
	struct catalog_source source; // first member
	struct upstream_conf conf;
	struct catalog *catalog;
	struct xds_client *client;
	struct xds_type types[CATALOG_TYPES_MAX]; // as the catalog's; "" = not used yet
	const struct xds_type *type_list[CATALOG_TYPES_MAX];
	struct strmap names[CATALOG_TYPES_MAX];
	struct xds_chain wants;
	struct xds_chain dirty, edited;
	struct twheel_timer retry;
	uint64_t n_errors; // ever, to number them
	struct upstream_counts counts;
};

#define OF(chain, type, member) ((type *)((uintptr_t)(chain)-offsetof(type, member)))

// Names

static void mark_dirty(struct upstream *up, struct name *n)
{
	xds_chain_remove(&n->at);
	xds_chain_add(&up->dirty, &n->at);
}

// NULL = no memory.
static struct name *name_get(struct upstream *up, uint32_t type, const char *text)
{
	struct strmap_link *l = strmap_find(&up->names[type], text);
	if (l)
		return (struct name *)l;
	size_t size = strlen(text) + 1;
	struct name *n = calloc(1, sizeof(*n) + size);
	if (!n)
		return NULL;
	memcpy(n->text, text, size);
	n->type = type;
	xds_chain_init(&n->views);
	xds_chain_init(&n->at);
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

static void name_free(struct upstream *up, struct name *n)
{
	strmap_remove(&up->names[n->type], &n->link);
	xds_chain_remove(&n->at);
	list_free(n->shown, n->n_shown);
	list_free(n->next, n->n_next);
	free(n);
}

// Nothing is left of it.
static void name_tidy(struct upstream *up, struct name *n)
{
	if (xds_chain_empty(&n->views) && n->n_shown == 0 && xds_chain_empty(&n->at))
		name_free(up, n);
}

// Views

static void on_event(struct xds_watcher *w, const struct xds_event *event)
{
	struct view *v = (struct view *)w;
	mark_dirty(v->upstream, v->of);
}

// On failure nothing is left of it.
static int view_init(struct view *v, struct upstream *up, uint32_t type, const char *text,
	struct xds_params *params)
{
	struct name *n = name_get(up, type, text);
	if (!n)
		return -ENOMEM;
	v->upstream = up;
	v->of = n;
	v->watcher.on_event = on_event;
	xds_chain_init(&v->by_name);
	xds_chain_add(&n->views, &v->by_name);
	mark_dirty(up, n);
	int rc = xds_client_watch_locator(
		up->client, up->type_list[type], text, params, &v->watcher);
	if (rc)
		xds_chain_remove(&v->by_name); // the name goes when it is settled
	return rc;
}

static void view_fini(struct view *v)
{
	xds_client_cancel(v->upstream->client, &v->watcher);
	xds_chain_remove(&v->by_name);
	mark_dirty(v->upstream, v->of);
}

// Wildcards

static int on_name(struct xds_watcher *w, const char *text)
{
	struct view *v = (struct view *)w;
	struct want *of = v->want;
	struct part *p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->view.watcher.by_wildcard = true;
	int rc = view_init(&p->view, v->upstream, of->type, text, of->sub->params);
	if (rc) {
		free(p);
		return rc;
	}
	xds_chain_init(&p->of_want);
	xds_chain_add(&of->parts, &p->of_want);
	v->upstream->counts.n_by_wildcard++;
	return 0;
}

static void part_free(struct part *p)
{
	p->view.upstream->counts.n_by_wildcard--;
	view_fini(&p->view);
	xds_chain_remove(&p->of_want);
	free(p);
}

// Subscriptions

static void want_free(struct want *w)
{
	struct upstream *up = w->view.upstream;
	xds_client_begin(up->client);
	while (!xds_chain_empty(&w->parts))
		part_free(OF(w->parts.next, struct part, of_want));
	view_fini(&w->view);
	xds_client_end(up->client);
	twheel_cancel(up->conf.wheel, &w->grace);
	xds_chain_remove(&w->all);
	up->counts.n_subscriptions--;
	w->sub->owner = NULL;
	(void)xds_sub_put(up->catalog->types[w->type].cache, w->sub);
	xds_constraints_put(w->word.constraints);
	free(w->error_text);
	free(w);
}

static void say(const struct upstream *up, const char *what, const struct want *w)
{
	char params[96], *line;
	if (!up->conf.log)
		return;
	xds_params_print(w->sub->params, params, sizeof(params));
	if (asprintf(&line, "%s %s \"%s\" %s", what, up->types[w->type].label, w->sub->name,
		    params) < 0)
		return;
	up->conf.log(up->conf.log_ctx, line);
	free(line);
}

static void grace_over(struct twheel_timer *t)
{
	struct want *w = OF(t, struct want, grace);
	struct upstream *up = w->view.upstream;
	say(up, "nobody wants any more", w);
	up->counts.n_idle--;
	up->counts.n_evicted++;
	want_free(w);
}

// A type that the catalog has made since: its place in the list is the same.
static void know_type(struct upstream *up, uint32_t type)
{
	const struct resource_type_info *info = &up->catalog->types[type].info;
	if (!*up->types[type].url)
		up->types[type] = xds_raw_type(info->url, info->label, info->full_state);
}

// NULL = no memory.
static struct want *want_new(struct upstream *up, uint32_t type, struct xds_sub *sub)
{
	struct xds_variants *cache = up->catalog->types[type].cache;
	bool is_new;
	struct want *w = calloc(1, sizeof(*w));
	if (!w || xds_sub_get(cache, sub->name, sub->params, &w->sub, &is_new)) {
		free(w);
		return NULL;
	}
	know_type(up, type);
	w->type = type;
	w->word.is_pending = true;
	w->word.text = "";
	w->grace.fire = grace_over;
	w->view.want = w;
	w->view.watcher.on_name = on_name;
	xds_chain_init(&w->parts);
	if (view_init(&w->view, up, type, sub->name, sub->params)) {
		(void)xds_sub_put(cache, w->sub);
		free(w);
		return NULL;
	}
	sub->owner = w;
	xds_chain_init(&w->all);
	xds_chain_add(&up->wants, &w->all);
	up->counts.n_subscriptions++;
	say(up, "subscribe to", w);
	return w;
}

// What clients share is what is kept. In SotW a server can't be asked once more.
static bool is_unkept(const struct want *w)
{
	const struct xds_variant *v = w->sub->variant;
	return v && catalog_resource(v)->do_not_cache &&
	       w->view.upstream->conf.protocol == &xds_protocol_delta;
}

static int want(struct catalog_source *source, uint32_t type, struct xds_sub *sub)
{
	struct upstream *up = (struct upstream *)source;
	struct want *w = sub->owner;
	bool is_idle = w && w->n_users == 0;
	if (!w)
		w = want_new(up, type, sub);
	if (!w)
		return -ENOMEM;
	w->word.not_kept = is_unkept(w) ? sub->variant->change : 0;
	if (w->word.not_kept > 0)
		xds_client_forget(up->client, &w->view.watcher);
	w->n_users++;
	up->counts.n_idle -= is_idle;
	twheel_cancel(up->conf.wheel, &w->grace);
	return 0;
}

static void unwant(struct catalog_source *source, uint32_t type, struct xds_sub *sub)
{
	struct upstream *up = (struct upstream *)source;
	struct want *w = sub->owner;
	CHECK(w && w->n_users > 0);
	if (--w->n_users > 0)
		return;
	up->counts.n_idle++;
	uint64_t grace_ns = is_unkept(w) ? 0 : up->conf.grace_ns;
	twheel_arm(up->conf.wheel, &w->grace, twheel_now(up->conf.wheel) + grace_ns);
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
static void add_next(struct name *n, struct resource *r, const struct xds_variant *v)
{
	n->next[n->n_next++] = (struct shown){resource_get(r), v->change};
}

// An incremental server's version is of this resource, and is passed on; state of the world has but
// one of all.
static const char *version_of(const struct upstream *up, const struct xds_variant *v)
{
	bool is_its = up->conf.protocol == &xds_protocol_delta && *v->version;
	return is_its ? v->version : NULL;
}

static bool is_shown(const struct shown *shown, const struct xds_variant *v, const char *version)
{
	const struct resource *r = shown ? shown->resource : NULL;
	return r && r->received == v->content && (!version || strcmp(r->version, version) == 0) &&
	       (!r->do_not_cache || shown->change == v->change);
}

// A variant that a view sees, in the list of next, and in the change if it is not shown so.
static int show(struct upstream *up, struct name *n, const struct xds_variant *v)
{
	struct lb_err err = {""};
	const char *version = version_of(up, v);
	const struct shown *shown = find(n->shown, n->n_shown, v->constraints);
	if (find(n->next, n->n_next, v->constraints))
		return 0;
	if (is_shown(shown, v, version)) {
		add_next(n, shown->resource, v);
		return 0;
	}
	struct resource *r =
		resource_new_received(n->type, n->text, v->constraints, version, v->content);
	int rc = r ? catalog_set(up->catalog, r, &err) : -ENOMEM;
	if (rc == -E2BIG && up->conf.log) {
		up->conf.log(up->conf.log_ctx, err.text);
		rc = 0;
	} else if (!rc) {
		add_next(n, r, v);
	}
	resource_put(r);
	return rc;
}

// Lists the name in the catalog's change.
static int edit(struct upstream *up, struct name *n)
{
	size_t n_views = 0;
	int rc = 0;
	for (struct xds_chain *c = n->views.next, *next; c != &n->views; c = next) {
		struct xds_word word;
		struct view *v = OF(c, struct view, by_name);
		next = c->next;
		n_views++;
		xds_watcher_word(&v->watcher, &word);
		if (v->want)
			rc = rc ? rc : update_word(up, v->want);
		else if (!is_there(&word)) // a wildcard's part ends with it
			part_free((struct part *)v);
	}
	n->next = malloc((n_views + 1) * sizeof(*n->next));
	if (rc || !n->next)
		return -ENOMEM;
	for (struct xds_chain *c = n->views.next; c != &n->views && !rc; c = c->next) {
		struct xds_word word;
		xds_watcher_word(&OF(c, struct view, by_name)->watcher, &word);
		if (is_there(&word))
			rc = show(up, n, word.variant);
	}
	for (size_t i = 0; i < n->n_shown && !rc; i++)
		if (!find(n->next, n->n_next, n->shown[i].resource->constraints))
			rc = catalog_remove(up->catalog, n->type, n->text,
				n->shown[i].resource->constraints, NULL);
	return rc;
}

static void take_effect(struct upstream *up, struct name *n)
{
	list_free(n->shown, n->n_shown);
	n->shown = n->next;
	n->n_shown = n->n_next;
	n->next = NULL;
	n->n_next = 0;
	xds_chain_remove(&n->at);
	name_tidy(up, n);
}

// It never was: the same another time.
static void take_back(struct upstream *up, struct name *n)
{
	list_free(n->next, n->n_next);
	n->next = NULL;
	n->n_next = 0;
	mark_dirty(up, n);
}

// The next call of upstream_settle() does it.
static void retry_fired(struct twheel_timer *t)
{
}

static uint64_t generations(const struct catalog *c)
{
	uint64_t sum = 0;
	for (uint32_t t = 0; t < c->n_types; t++)
		sum += c->types[t].generation;
	return sum;
}

bool upstream_settle(struct upstream *up)
{
	uint64_t before = generations(up->catalog);
	int rc = 0;
	if (xds_chain_empty(&up->dirty) || twheel_armed(&up->retry))
		return false;
	xds_client_begin(up->client);
	catalog_begin(up->catalog, XDS_CHANGE_LISTED);
	while (!xds_chain_empty(&up->dirty) && !rc) {
		struct name *n = OF(up->dirty.next, struct name, at);
		rc = edit(up, n);
		xds_chain_remove(&n->at);
		xds_chain_add(&up->edited, &n->at);
	}
	if (rc) {
		catalog_abort(up->catalog);
		twheel_arm(up->conf.wheel, &up->retry, twheel_now(up->conf.wheel) + RETRY_NS);
	} else {
		catalog_commit(up->catalog);
	}
	while (!xds_chain_empty(&up->edited)) {
		struct name *n = OF(up->edited.next, struct name, at);
		if (rc)
			take_back(up, n);
		else
			take_effect(up, n);
	}
	xds_client_end(up->client);
	return generations(up->catalog) != before;
}

void upstream_begin(struct upstream *up)
{
	xds_client_begin(up->client);
}

void upstream_end(struct upstream *up)
{
	xds_client_end(up->client);
}

struct upstream *upstream_new(const struct upstream_conf *conf, struct catalog *catalog)
{
	struct upstream *up = calloc(1, sizeof(*up));
	if (!up)
		return NULL;
	up->source = (struct catalog_source){want, unwant};
	up->conf = *conf;
	up->catalog = catalog;
	up->retry.fire = retry_fired;
	xds_chain_init(&up->wants);
	xds_chain_init(&up->dirty);
	xds_chain_init(&up->edited);
	for (uint32_t t = 0; t < CATALOG_TYPES_MAX; t++) {
		up->types[t] = xds_raw_type("", "resource", false);
		up->type_list[t] = &up->types[t];
	}
	for (uint32_t t = 0; t < catalog->n_types; t++)
		know_type(up, t);
	up->client = xds_client_new(&(struct xds_client_conf){
		.bootstrap = conf->bootstrap,
		.protocol = conf->protocol,
		.types = up->type_list,
		.n_types = CATALOG_TYPES_MAX,
		.transport = conf->transport,
		.wheel = conf->wheel,
		.rand = conf->rand,
		.user_agent_version = conf->user_agent_version,
		.log = conf->log,
		.log_ctx = conf->log_ctx,
	});
	if (!up->client) {
		free(up);
		return NULL;
	}
	catalog_set_source(catalog, &up->source);
	return up;
}

void upstream_free(struct upstream *up)
{
	if (!up)
		return;
	xds_client_begin(up->client); // nothing more is said to the server
	while (!xds_chain_empty(&up->wants))
		want_free(OF(up->wants.next, struct want, all));
	while (!xds_chain_empty(&up->dirty)) // all that have lost a view
		name_free(up, OF(up->dirty.next, struct name, at));
	for (uint32_t t = 0; t < CATALOG_TYPES_MAX; t++)
		strmap_fini(&up->names[t]);
	twheel_cancel(up->conf.wheel, &up->retry);
	catalog_set_source(up->catalog, NULL);
	xds_client_free(up->client);
	free(up);
}

void upstream_counts(const struct upstream *up, struct upstream_counts *ret)
{
	*ret = up->counts;
}
