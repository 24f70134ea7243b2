// SPDX-License-Identifier: Apache-2.0
// Subscriptions at the server, for clients, and the names that come by wildcards.
#include "tools/shunt-xds/upstream.h"

#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/keeper.h"
#include "ctrl/xds/raw.h"
#include "ctrl/xds/variants/constraints.h"
#include "ctrl/xds/variants/params.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "tools/shunt-xds/upstream_inside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESOURCES_MAX 1000000 // of a response

_Static_assert(CATALOG_TYPES_MAX <= XDS_MAX_TYPES, "the client takes all types of a catalog");

// Views

static void on_event(struct xds_watcher *w, const struct xds_event *event)
{
	struct view *v = CONTAINER_OF(w, struct view, watcher);
	upstream_mark_dirty(v->upstream, v->of);
}

// On failure nothing is left of it.
static int view_init(struct view *v, struct upstream *up, uint32_t type, const char *text,
	struct xds_params *params)
{
	struct name *n = upstream_name_get(up, type, text);
	if (!n)
		return -ENOMEM;
	v->upstream = up;
	v->of = n;
	v->watcher.on_event = on_event;
	list_append(&n->views, &v->by_name);
	upstream_mark_dirty(up, n);
	int rc = xds_client_watch_locator(
		up->client, up->type_list[type], text, params, &v->watcher);
	if (rc)
		list_remove(&v->by_name); // the name goes when it is settled
	return rc;
}

static void view_fini(struct view *v)
{
	xds_client_cancel(v->upstream->client, &v->watcher);
	list_remove(&v->by_name);
	upstream_mark_dirty(v->upstream, v->of);
}

// Wildcards

static int on_name(struct xds_watcher *w, const char *text)
{
	struct view *v = CONTAINER_OF(w, struct view, watcher);
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
	list_append(&of->parts, &p->of_want);
	v->upstream->counts.n_by_wildcard++;
	return 0;
}

void upstream_part_free(struct part *p)
{
	p->view.upstream->counts.n_by_wildcard--;
	view_fini(&p->view);
	list_remove(&p->of_want);
	free(p);
}

// Subscriptions

static void want_free(struct want *w)
{
	struct upstream *up = w->view.upstream;
	xds_client_begin(up->client);
	while (!list_empty(&w->parts))
		upstream_part_free(CONTAINER_OF(w->parts.next, struct part, of_want));
	view_fini(&w->view);
	xds_client_end(up->client);
	twheel_cancel(up->conf.wheel, &w->grace);
	list_remove(&w->all);
	up->counts.n_subscriptions--;
	up->names_len[w->type] -= w->len;
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

static void evict(struct want *w)
{
	struct upstream *up = w->view.upstream;
	say(up, "no client subscribes to", w);
	up->counts.n_idle--;
	up->counts.n_evicted++;
	want_free(w);
}

static void grace_over(struct twheel_timer *t)
{
	evict(CONTAINER_OF(t, struct want, grace));
}

// Room

#define TAG_LEN 6 // of a field of text or of a message, and its length: at most
#define VERSION_LEN 80 // an estimate: it is the server's

// The first incremental request of a stream says of each name what is held, too.
static size_t len_of(const struct catalog_source *source, const struct xds_sub *sub)
{
	const struct upstream *up = CONTAINER_OF(source, struct upstream, source);
	size_t name = strlen(sub->name) + TAG_LEN, len = name;
	for (uint32_t i = 0; sub->params && i < sub->params->n; i++)
		len += strlen(sub->params->list[i].key) + strlen(sub->params->list[i].value) +
		       3 * TAG_LEN;
	len += sub->params ? TAG_LEN : 0;
	return up->conf.protocol == &xds_protocol_delta ? len + name + TAG_LEN + VERSION_LEN : len;
}

static int refuse(struct upstream *up, uint32_t type, const char *whose, size_t len, size_t max)
{
	up->counts.n_refused++;
	snprintf(up->source.refusal, sizeof(up->source.refusal),
		"%s names of type %.64s would take %zu bytes of a request to the server, of which "
		"%zu are the limit",
		whose, up->catalog->types[type].info.label, len, max);
	return -EMSGSIZE;
}

static int admit(struct catalog_source *source, uint32_t type, size_t len)
{
	struct upstream *up = CONTAINER_OF(source, struct upstream, source);
	size_t max = up->conf.names_max / 2;
	return len > max ? refuse(up, type, "its", len, max) : 0;
}

// What nobody wants is not kept at the cost of what somebody does. All of it goes at once: to look
// for one of them for each new name would take the square of their number.
static int make_room(struct upstream *up, uint32_t type, size_t len)
{
	size_t *have = &up->names_len[type], max = up->conf.names_max;
	bool is_short = *have + len > max;
	for (struct list_link *c = up->wants.next, *next; is_short && c != &up->wants; c = next) {
		struct want *w = CONTAINER_OF(c, struct want, all);
		next = c->next;
		if (w->type == type && w->n_users == 0)
			evict(w);
	}
	return *have + len > max ? refuse(up, type, "with the others', its", *have + len, max) : 0;
}

// A type that the catalog has made since: its place in the list is the same.
static void know_type(struct upstream *up, uint32_t type)
{
	const struct resource_type_info *info = &up->catalog->types[type].info;
	if (!*up->types[type].url)
		up->types[type] = xds_raw_type(info->url, info->label, info->full_state);
}

// NULL = out of memory.
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
	list_init(&w->parts);
	if (view_init(&w->view, up, type, sub->name, sub->params)) {
		(void)xds_sub_put(cache, w->sub);
		free(w);
		return NULL;
	}
	sub->owner = w;
	w->len = len_of(&up->source, sub);
	up->names_len[type] += w->len;
	list_append(&up->wants, &w->all);
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
	struct upstream *up = CONTAINER_OF(source, struct upstream, source);
	struct want *w = sub->owner;
	bool is_idle = w && w->n_users == 0;
	int rc = w ? 0 : make_room(up, type, len_of(source, sub));
	if (rc)
		return rc;
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
	struct upstream *up = CONTAINER_OF(source, struct upstream, source);
	struct want *w = sub->owner;
	CHECK(w && w->n_users > 0);
	if (--w->n_users > 0)
		return;
	up->counts.n_idle++;
	bool is_scarce = up->names_len[type] > up->conf.names_max / 2;
	uint64_t grace_ns = is_unkept(w) || is_scarce ? 0 : up->conf.grace_ns;
	twheel_arm(up->conf.wheel, &w->grace, twheel_now(up->conf.wheel) + grace_ns);
}

// The clients have left all that there is of it: nothing is kept that others could have room for.
static void leave(struct catalog_source *source, uint32_t type)
{
	struct upstream *up = CONTAINER_OF(source, struct upstream, source);
	for (struct list_link *c = up->wants.next; c != &up->wants; c = c->next) {
		struct want *w = CONTAINER_OF(c, struct want, all);
		if (w->type == type && w->n_users == 0)
			twheel_arm(up->conf.wheel, &w->grace, twheel_now(up->conf.wheel));
	}
}

// No want is without a view, nor a view without a name.
static bool drop(struct catalog_source *source, uint32_t type)
{
	struct upstream *up = CONTAINER_OF(source, struct upstream, source);
	if (up->names[type].n > 0 || !xds_client_reset_type(up->client, &up->types[type]))
		return false;
	up->types[type] = xds_raw_type("", "resource", false);
	return true;
}

// The next call of upstream_settle() does it.
static void retry_fired(struct twheel_timer *t)
{
}

void upstream_begin(struct upstream *up)
{
	xds_client_begin(up->client);
}

void upstream_end(struct upstream *up)
{
	xds_client_end(up->client);
}

static void each_client(void *of, void (*fn)(void *ctx, struct xds_client *), void *ctx)
{
	const struct upstream *up = of;
	fn(ctx, up->client);
}

struct upstream *upstream_new(const struct upstream_conf *conf, struct catalog *catalog)
{
	struct upstream *up = calloc(1, sizeof(*up));
	if (!up)
		return NULL;
	up->source = (struct catalog_source){.len = len_of,
		.admit = admit,
		.want = want,
		.unwant = unwant,
		.leave = leave,
		.drop = drop};
	up->conf = *conf;
	up->catalog = catalog;
	up->retry.fire = retry_fired;
	list_init(&up->wants);
	list_init(&up->dirty);
	list_init(&up->edited);
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
		.limits = {.n_resources = RESOURCES_MAX},
		.state = conf->keeper ? xds_keeper_state(conf->keeper) : NULL,
		.log = conf->log,
		.log_ctx = conf->log_ctx,
	});
	if (!up->client) {
		free(up);
		return NULL;
	}
	if (conf->keeper)
		xds_client_add_settled(
			up->client, xds_keeper_follow(conf->keeper, each_client, up));
	catalog_set_source(catalog, &up->source);
	return up;
}

void upstream_free(struct upstream *up)
{
	if (!up)
		return;
	xds_client_begin(up->client); // nothing more is said to the server
	while (!list_empty(&up->wants))
		want_free(CONTAINER_OF(up->wants.next, struct want, all));
	while (!list_empty(&up->dirty)) // all that have lost a view
		upstream_name_free(up, CONTAINER_OF(up->dirty.next, struct name, at));
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
