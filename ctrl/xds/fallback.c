// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/fallback.h"

#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/fallback_inside.h"
#include "ctrl/xds/server.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct xds_client *xds_fallback_client(const struct xds_fallback *fb, uint32_t server)
{
	return fb->conf.servers[server]->client;
}

bool xds_fallback_is_failing(const struct xds_fallback *fb)
{
	return xds_client_failure(xds_fallback_client(fb, fb->active));
}

void xds_fallback_mark(struct xds_fallback_entry *e)
{
	if (!list_linked(&e->dirty))
		list_append(&e->fallback->dirty, &e->dirty);
}

static void mark_all(struct xds_fallback *fb)
{
	for (struct list_link *c = fb->all.next; c != &fb->all; c = c->next)
		xds_fallback_mark(CONTAINER_OF(c, struct xds_fallback_entry, all));
}

void xds_fallback_retry_later(struct xds_fallback *fb)
{
	struct twheel *wheel = fb->conf.wheel;
	twheel_arm(wheel, &fb->retry, twheel_now(wheel) + XDS_FALLBACK_RETRY_NS);
}

static void on_retry(struct twheel_timer *t)
{
	struct xds_fallback *fb = CONTAINER_OF(t, struct xds_fallback, retry);
	fb->conf.on_due(fb->conf.ctx);
}

// Which server is active

static void log_active(const struct xds_fallback *fb, const char *verb)
{
	if (!fb->conf.log)
		return;
	char *line;
	const char *name = fb->conf.authority;
	if (asprintf(&line, "%s%s%s %s xDS server %s", name ? "authority \"" : "old-style names",
		    xds_fallback_text(name), name ? "\"" : "", verb,
		    fb->conf.servers[fb->active]->conf->uri) < 0)
		return;
	fb->conf.log(fb->conf.log_ctx, line);
	free(line);
}

// FB-06: a server of higher preference that answers is the active one again, and those behind it
// are left. Nothing of what they gave is dropped (FB-07).
static void climb(struct xds_fallback *fb)
{
	uint32_t to = 0;
	for (; to < fb->active; to++) {
		struct xds_server_info info;
		xds_client_server(xds_fallback_client(fb, to), &info);
		if (info.state == XDS_SERVER_CONNECTED)
			break;
	}
	if (to == fb->active)
		return;
	for (struct list_link *c = fb->all.next; c != &fb->all; c = c->next) {
		struct xds_fallback_entry *e = CONTAINER_OF(c, struct xds_fallback_entry, all);
		if (e->source != XDS_FALLBACK_NO_SOURCE && e->source > to)
			xds_fallback_entry_leave(e);
		for (uint32_t i = to + 1; i <= fb->active; i++)
			xds_fallback_entry_cancel(e, i);
	}
	for (uint32_t i = to + 1; i <= fb->active; i++)
		xds_server_put(fb->conf.servers[i]);
	fb->active = to;
	log_active(fb, "return to");
	mark_all(fb);
}

// Somebody waits for a resource of which no server has said anything (FB-01) since we started.
static bool is_wanting(const struct xds_fallback *fb)
{
	for (const struct list_link *c = fb->all.next; c != &fb->all; c = c->next) {
		const struct xds_fallback_entry *e =
			CONTAINER_OF(c, struct xds_fallback_entry, all);
		bool is_open = !e->value || xds_fallback_entry_is_stale(e);
		if (e->is_presumed || (!e->error && is_open))
			return true;
	}
	return false;
}

// FB-02: the next server is asked for everything. False = there is no memory to ask it.
static bool fall(struct xds_fallback *fb)
{
	while (fb->active + 1 < fb->conf.n_servers && xds_fallback_is_failing(fb) &&
		is_wanting(fb)) {
		if (!xds_server_get(fb->conf.servers[fb->active + 1])) {
			xds_fallback_retry_later(fb);
			return false;
		}
		fb->active++;
		log_active(fb, "fall back to");
		for (struct list_link *c = fb->all.next; c != &fb->all; c = c->next)
			if (xds_fallback_entry_watch(
				    CONTAINER_OF(c, struct xds_fallback_entry, all), fb->active))
				xds_fallback_mark(CONTAINER_OF(c, struct xds_fallback_entry, all));
	}
	return true;
}

// FB-03: the watchers hear of servers only when there is none left to wait for. What they have
// heard stands until a server has answered.
static void note_failure(struct xds_fallback *fb)
{
	const char *why = xds_client_failure(xds_fallback_client(fb, fb->active));
	struct xds_server_info info;
	xds_client_server(xds_fallback_client(fb, fb->active), &info);
	if (!why && (!fb->failure || info.state != XDS_SERVER_CONNECTED))
		return;
	if (why && fb->failure && strcmp(why, fb->failure) == 0)
		return;
	xds_fallback_set_text(&fb->failure, why);
	fb->failure_serial = fb->failure ? ++fb->n_serials : 0;
	mark_all(fb);
}

bool xds_fallback_settle(struct xds_fallback *fb)
{
	bool told = false;
	climb(fb);
	if (fall(fb)) // else there is a server left to wait for
		note_failure(fb);
	while (!list_empty(&fb->later)) {
		struct list_link *c = fb->later.next;
		list_remove(c);
		list_append(&fb->dirty, c);
	}
	while (!list_empty(&fb->dirty)) {
		struct xds_fallback_entry *e =
			CONTAINER_OF(fb->dirty.next, struct xds_fallback_entry, dirty);
		list_remove(&e->dirty);
		xds_fallback_entry_merge(e);
		told |= xds_fallback_entry_tell(e);
	}
	return told;
}

// Watches

// FB-05: a name that nobody knows yet may need the next server at once. What the others are to hear
// of that comes when all is settled: this may be inside an event whose text is the failure.
static struct xds_fallback_entry *start(struct xds_fallback *fb, uint32_t type, const char *name)
{
	struct xds_fallback_entry *e = xds_fallback_entry_new(fb, type, name);
	for (uint32_t i = 0; e && i <= fb->active; i++) {
		if (xds_fallback_entry_watch(e, i)) {
			xds_fallback_entry_drop(e);
			return NULL;
		}
	}
	if (!e)
		return NULL;
	xds_fallback_entry_merge(e); // a client may still have it (WA-13)
	e->fresh = false;
	(void)fall(fb);
	e->told = xds_fallback_entry_trouble(e);
	return e;
}

int xds_fallback_watch(
	struct xds_fallback *fb, uint32_t type, const char *name, struct xds_watcher *w)
{
	struct strmap_link *l = strmap_find(&fb->by_name[type], name);
	struct xds_fallback_entry *e =
		l ? CONTAINER_OF(l, struct xds_fallback_entry, link) : start(fb, type, name);
	if (!e)
		return -ENOMEM;
	w->fallback = e;
	xds_watchers_add(&e->watchers, w, fb->n_rounds);
	xds_fallback_entry_tell_new(e, w);
	return 0;
}

void xds_fallback_cancel(struct xds_watcher *w)
{
	struct xds_fallback_entry *e = w->fallback;
	xds_watchers_remove(&e->watchers, w);
	w->fallback = NULL;
	if (TAILQ_EMPTY(&e->watchers))
		xds_fallback_entry_drop(e);
}

struct xds_fallback *xds_fallback_new(const struct xds_fallback_conf *conf)
{
	DCHECK(conf->n_servers > 1);
	struct xds_fallback *fb = calloc(1, sizeof(*fb));
	if (!fb)
		return NULL;
	fb->conf = *conf;
	list_init(&fb->all);
	list_init(&fb->dirty);
	list_init(&fb->later);
	fb->retry.fire = on_retry;
	fb->by_name = calloc(conf->n_types, sizeof(*fb->by_name));
	if (fb->by_name)
		return fb;
	free(fb);
	return NULL;
}

void xds_fallback_free(struct xds_fallback *fb)
{
	if (!fb)
		return;
	for (struct list_link *c = fb->all.next, *next; c != &fb->all; c = next) {
		next = c->next;
		struct xds_fallback_entry *e = CONTAINER_OF(c, struct xds_fallback_entry, all);
		for (struct xds_watcher *w = TAILQ_FIRST(&e->watchers); w; w = TAILQ_NEXT(w, link))
			w->fallback = NULL;
		xds_fallback_entry_drop(e);
	}
	for (uint32_t i = 1; i <= fb->active; i++)
		xds_server_put(fb->conf.servers[i]);
	for (uint32_t t = 0; t < fb->conf.n_types; t++)
		strmap_fini(&fb->by_name[t]);
	twheel_cancel(fb->conf.wheel, &fb->retry);
	free(fb->by_name);
	free(fb->failure);
	free(fb);
}

const struct xds_server *xds_fallback_active(const struct xds_fallback *fb)
{
	return fb->conf.servers[fb->active];
}

void xds_fallback_each(const struct xds_fallback *fb,
	void (*fn)(void *ctx, const struct xds_entry_info *), void *ctx)
{
	for (const struct list_link *c = fb->all.next; c != &fb->all; c = c->next) {
		const struct xds_fallback_entry *e =
			CONTAINER_OF(c, struct xds_fallback_entry, all);
		struct xds_entry_info info;
		xds_fallback_entry_info(e, &info);
		fn(ctx, &info);
	}
}
