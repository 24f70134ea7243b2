// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/client.h"

#include "ctrl/xds/ads.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/bootstrap/name.h"
#include "ctrl/xds/bootstrap/node.h"
#include "ctrl/xds/news.h"
#include "ctrl/xds/protocol.h"
#include "ctrl/xds/respond.h"
#include "ctrl/xds/standby.h"
#include "ctrl/xds/subs.h"
#include "ctrl/xds/verdict.h"
#include "ctrl/xds/wildcard.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct xds_client {
	struct xds_client_conf conf;
	struct xds_node node;
	struct xds_ads *ads;
	struct xds_cache cache;
	struct xds_round *round; // the response that is being taken in; NULL = none
	struct xds_settled_list settled;
	unsigned depth; // of begin()
	uint64_t n_failures; // so far
};

static void owner_begin(void *ctx)
{
	xds_client_begin(ctx);
}

static void owner_end(void *ctx)
{
	xds_client_end(ctx);
}

void xds_client_begin(struct xds_client *c)
{
	c->depth++;
}

void xds_client_end(struct xds_client *c)
{
	CHECK(c->depth > 0);
	if (c->depth == 1) {
		do { // a flush may fail at once and so tell more
			if (c->cache.unsettled) {
				c->cache.unsettled = false;
				xds_settled_run(&c->settled);
			}
			xds_ads_flush(c->ads);
		} while (c->cache.unsettled);
	}
	c->depth--;
}

unsigned xds_client_depth(const struct xds_client *c)
{
	return c->depth;
}

void xds_client_add_settled(struct xds_client *c, struct xds_settled *s)
{
	xds_settled_add(&c->settled, s);
}

void xds_client_remove_settled(struct xds_client *c, struct xds_settled *s)
{
	xds_settled_remove(&c->settled, s);
}

// Timers of entries

static void on_silence(struct xds_entry *e)
{
	struct xds_client *c = e->cache->client;
	xds_client_begin(c);
	if (xds_entry_is_wildcard(e))
		xds_wildcard_answered(e);
	else if ((e->is_stale || xds_entry_may_presume(e)) && c->cache.stands_by)
		xds_entry_await(e); // silence that began before it ever spoke says nothing
	else if (xds_entry_may_presume(e))
		xds_entry_presume_absent(e);
	else
		xds_entry_silent(e);
	xds_news_tell(&c->cache, ++c->cache.n_events);
	xds_client_end(c);
}

static void on_expiry(struct xds_entry *e)
{
	struct xds_client *c = e->cache->client;
	xds_client_begin(c);
	xds_entry_expired(e);
	xds_news_tell(&c->cache, ++c->cache.n_events);
	xds_client_end(c);
}

// Watches

static uint32_t type_index(const struct xds_client *c, const struct xds_type *type)
{
	uint32_t t = 0;
	while (t < c->conf.n_types && c->conf.types[t] != type)
		t++;
	CHECK(t < c->conf.n_types);
	return t;
}

// Fixed for life: one set for all old-style names, one for each authority (TP2-L01). Names of
// federation are canonical.
static int find_params(
	const struct xds_client *c, uint32_t type, const char *name, struct xds_params **ret)
{
	const struct xds_bootstrap *b = c->conf.bootstrap;
	struct xds_name parsed;
	if (!xds_name_is_xdstp(name)) {
		*ret = b->params;
		return 0;
	}
	int rc = xds_name_parse(name, c->conf.types[type]->url, &parsed, NULL);
	if (rc == -ENOMEM)
		return rc;
	*ret = NULL;
	for (uint32_t i = 0; !rc && i < b->n_authorities; i++)
		if (strcmp(b->authorities[i].name, parsed.authority) == 0)
			*ret = b->authorities[i].params;
	if (!rc)
		xds_name_fini(&parsed);
	return 0;
}

int xds_client_watch_locator(struct xds_client *c, const struct xds_type *type, const char *name,
	struct xds_params *params, struct xds_watcher *w)
{
	CHECK(!w->entry);
	uint32_t t = type_index(c, type);
	xds_client_begin(c);
	struct xds_subs *subs = &c->cache.subs[t];
	struct xds_entry *e = xds_subs_find(subs, name, params);
	if (!e && (e = xds_subs_add(subs, &c->cache, t, name, params)))
		xds_standby_watched(c->cache.standby, e);
	if (e) {
		if (!w->by_wildcard && e->n_asking++ == 0)
			xds_subs_want(subs, e, c->conf.protocol->asks_again);
		w->entry = e;
		xds_watchers_add(&e->watchers, w, xds_news_round(c->cache.n_events));
		xds_news_tell_new(e, w);
	}
	xds_client_end(c);
	return e ? 0 : -ENOMEM;
}

int xds_client_watch(
	struct xds_client *c, const struct xds_type *type, const char *name, struct xds_watcher *w)
{
	struct xds_params *params;
	int rc = find_params(c, type_index(c, type), name, &params);
	return rc ? rc : xds_client_watch_locator(c, type, name, params, w);
}

void xds_client_cancel(struct xds_client *c, struct xds_watcher *w)
{
	struct xds_entry *e = w->entry;
	if (!e)
		return;
	xds_client_begin(c);
	xds_watchers_remove(&e->watchers, w);
	w->entry = NULL;
	if (TAILQ_EMPTY(&e->watchers))
		xds_entry_end_deletion(e, "is not needed any more");
	if (w->by_wildcard)
		xds_subs_left(&c->cache.subs[e->type], e);
	else if (--e->n_asking == 0)
		xds_subs_unwant(&c->cache.subs[e->type], e);
	xds_client_end(c);
}

void xds_client_forget(struct xds_client *c, struct xds_watcher *w)
{
	struct xds_entry *e = w->entry;
	struct xds_subs *subs = &c->cache.subs[e->type];
	xds_client_begin(c);
	xds_entry_forget(e); // the newer value is held
	// A server that was told of the version would not send it again.
	bool told = xds_ads_forget_version(c->ads, e->type);
	if (e->asked && (told || c->conf.protocol->asks_again)) {
		list_remove(&e->pending);
		list_append(&subs->pending, &e->pending);
	}
	xds_client_end(c);
}

bool xds_client_reset_type(struct xds_client *c, const struct xds_type *type)
{
	uint32_t t = type_index(c, type);
	if (!list_empty(&c->cache.subs[t].all))
		return false;
	xds_ads_reset_type(c->ads, t);
	return true;
}

struct xds_client *xds_watcher_client(const struct xds_watcher *w)
{
	return w->entry ? w->entry->cache->client : NULL;
}

// The stream calls back

static void owner_on_sent(void *ctx, uint32_t type)
{
	struct xds_client *c = ctx;
	struct list_link *in_flight = &c->cache.subs[type].in_flight;
	xds_wildcard_sent(&c->cache, type);
	while (!list_empty(in_flight)) {
		struct xds_entry *e = CONTAINER_OF(in_flight->next, struct xds_entry, in_flight);
		list_remove(&e->in_flight);
		xds_entry_await(e);
	}
}

static int owner_on_response(
	void *ctx, uint32_t type, struct xds_response *r, struct slice *slice, char **ret_nack)
{
	struct xds_client *c = ctx;
	xds_standby_end(c->cache.standby);
	if (!c->round)
		c->round = xds_round_new(&c->cache, type, r);
	if (!c->round)
		return -ENOMEM;
	uint64_t event = ++c->cache.n_events;
	int rc = xds_round_step(c->round, slice, ret_nack);
	if (rc == -EAGAIN)
		return rc;
	xds_round_free(c->round);
	c->round = NULL;
	xds_news_tell(&c->cache, event);
	return rc;
}

// Whoever waits for a first word waits no longer: nothing else may come for him. What serves, or
// has an error of its own, is not concerned as far as anybody knows.
static void owner_on_refused(void *ctx, uint32_t type, const char *version, const char *why)
{
	struct xds_client *c = ctx;
	struct list_link *all = &c->cache.subs[type].all;
	uint64_t event = ++c->cache.n_events;
	for (struct list_link *at = all->next; at != all; at = at->next) {
		struct xds_entry *e = CONTAINER_OF(at, struct xds_entry, all);
		bool waits = e->status == XDS_STATUS_REQUESTED || xds_entry_is_presumed(e);
		if (e->asked && waits && !xds_entry_is_wildcard(e))
			xds_entry_refuse_unread(e, version, why);
	}
	xds_news_tell(&c->cache, event);
}

static void owner_on_response_lost(void *ctx)
{
	struct xds_client *c = ctx;
	xds_round_free(c->round);
	c->round = NULL;
}

static void each_entry(struct xds_client *c, void (*fn)(struct xds_entry *))
{
	for (uint32_t t = 0; t < c->conf.n_types; t++) {
		struct list_link *all = &c->cache.subs[t].all;
		for (struct list_link *at = all->next; at != all; at = at->next)
			fn(CONTAINER_OF(at, struct xds_entry, all));
	}
}

// True = it is another text than before.
static bool note_failure(struct xds_client *c, const char *why)
{
	char *old = c->cache.failure;
	c->n_failures += !old;
	if (asprintf(&c->cache.failure, "xDS server %s is not reachable: %s (node id \"%s\")",
		    c->cache.server->uri, why, c->conf.bootstrap->node_id) < 0)
		c->cache.failure = NULL;
	bool is_news = c->cache.failure && (!old || strcmp(old, c->cache.failure) != 0);
	free(old);
	return is_news;
}

static void owner_on_lost(void *ctx, const char *why, bool had_response)
{
	struct xds_client *c = ctx;
	c->cache.unsettled = true;
	xds_standby_failed(c->cache.standby);
	if (had_response) { // FM-02
		xds_cache_log(
			&c->cache, "xDS server %s ended the stream: %s", c->cache.server->uri, why);
		return;
	}
	if (!note_failure(c, why)) // one error an outage, unless its reason changes (FM-01)
		return;
	xds_cache_log(&c->cache, "%s", c->cache.failure);
	each_entry(c, xds_entry_server_failed);
	xds_news_tell(&c->cache, ++c->cache.n_events);
}

static void owner_on_recovered(void *ctx)
{
	struct xds_client *c = ctx;
	c->cache.unsettled = true;
	xds_standby_end(c->cache.standby);
	if (!c->cache.failure)
		return;
	free(c->cache.failure);
	c->cache.failure = NULL;
	xds_cache_note(&c->cache, "xDS server %s answers again", c->cache.server->uri);
	each_entry(c, xds_entry_server_recovered);
	xds_news_tell(&c->cache, ++c->cache.n_events);
}

static void owner_log(void *ctx, const char *line)
{
	const struct xds_client *c = ctx;
	xds_cache_log(&c->cache, "%s", line);
}

static const struct xds_ads_owner owner = {
	.on_sent = owner_on_sent,
	.on_response = owner_on_response,
	.on_refused = owner_on_refused,
	.on_response_lost = owner_on_response_lost,
	.on_lost = owner_on_lost,
	.on_recovered = owner_on_recovered,
	.begin = owner_begin,
	.end = owner_end,
	.log = owner_log,
};

// False = out of memory.
static bool init_cache(struct xds_client *c)
{
	const struct xds_client_conf *conf = &c->conf;
	c->cache = (struct xds_cache){
		.conf = conf,
		.server = conf->server ? conf->server : &conf->bootstrap->servers[0],
		.client = c,
		.subs = calloc(conf->n_types, sizeof(*c->cache.subs)),
		.on_silence = on_silence,
		.on_expiry = on_expiry,
	};
	bool ok = c->cache.subs;
	for (uint32_t t = 0; c->cache.subs && t < conf->n_types; t++)
		ok &= xds_subs_init(&c->cache.subs[t], conf->types[t], conf->protocol) == 0;
	return ok && xds_standby_new(&c->cache, conf->state, &c->cache.standby) == 0;
}

struct xds_client *xds_client_new(const struct xds_client_conf *conf)
{
	CHECK(conf->n_types <= XDS_MAX_TYPES);
	struct xds_client *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->conf = *conf;
	if (!c->conf.protocol)
		c->conf.protocol = &xds_protocol_sotw;
	if (xds_node_init(&c->node, conf->bootstrap, conf->user_agent_version)) {
		free(c);
		return NULL;
	}
	if (init_cache(c))
		c->ads = xds_ads_new(&(struct xds_ads_conf){
			.server = c->cache.server,
			.protocol = c->conf.protocol,
			.types = conf->types,
			.subs = c->cache.subs,
			.n_types = conf->n_types,
			.transport = conf->transport,
			.limits = conf->limits,
			.slice = conf->slice,
			.node = &c->node,
			.wheel = conf->wheel,
			.rand = conf->rand,
			.owner = &owner,
			.ctx = c,
		});
	if (!c->ads) {
		xds_client_free(c);
		return NULL;
	}
	return c;
}

void xds_client_free(struct xds_client *c)
{
	if (!c)
		return;
	xds_ads_free(c->ads);
	xds_standby_free(c->cache.standby);
	for (uint32_t t = 0; c->cache.subs && t < c->conf.n_types; t++)
		xds_subs_fini(&c->cache.subs[t]);
	free(c->cache.subs);
	xds_node_fini(&c->node);
	free(c->cache.failure);
	free(c);
}

struct xds_cache *xds_client_cache(struct xds_client *c)
{
	return &c->cache;
}

// For operators

const char *xds_status_name(enum xds_status s)
{
	switch (s) {
	case XDS_STATUS_REQUESTED:
		return "REQUESTED";
	case XDS_STATUS_DOES_NOT_EXIST:
		return "DOES_NOT_EXIST";
	case XDS_STATUS_ACKED:
		return "ACKED";
	case XDS_STATUS_NACKED:
		return "NACKED";
	case XDS_STATUS_RECEIVED_ERROR:
		return "RECEIVED_ERROR";
	case XDS_STATUS_TIMEOUT:
		return "TIMEOUT";
	}
	return "UNKNOWN";
}

const char *xds_server_state_name(enum xds_server_state s)
{
	switch (s) {
	case XDS_SERVER_IDLE:
		return "IDLE";
	case XDS_SERVER_CONNECTING:
		return "CONNECTING";
	case XDS_SERVER_CONNECTED:
		return "CONNECTED";
	case XDS_SERVER_BACKOFF:
		return "BACKOFF";
	}
	return "UNKNOWN";
}

void xds_watcher_info(const struct xds_watcher *w, struct xds_entry_info *ret)
{
	xds_entry_info(w->entry, ret);
}

void xds_watcher_word(const struct xds_watcher *w, struct xds_word *ret)
{
	xds_entry_word(w->entry, ret);
}

void xds_client_each(
	const struct xds_client *c, void (*fn)(void *ctx, const struct xds_entry_info *), void *ctx)
{
	for (uint32_t t = 0; t < c->conf.n_types; t++) {
		const struct list_link *all = &c->cache.subs[t].all;
		for (const struct list_link *at = all->next; at != all; at = at->next) {
			const struct xds_entry *e = CONTAINER_OF(at, struct xds_entry, all);
			struct xds_entry_info info;
			xds_entry_info(e, &info);
			if (!TAILQ_EMPTY(&e->watchers))
				fn(ctx, &info);
		}
	}
}

const char *xds_client_failure(const struct xds_client *c)
{
	return c->cache.failure;
}

void xds_client_server(const struct xds_client *c, struct xds_server_info *ret)
{
	xds_ads_info(c->ads, ret);
	ret->connected = !c->cache.failure && ret->state != XDS_SERVER_IDLE;
	ret->n_failures = c->n_failures;
	ret->n_stale = c->cache.n_stale;
	for (uint32_t t = 0; t < c->conf.n_types; t++) {
		struct xds_variants_counts counts;
		xds_variants_counts(c->cache.subs[t].variants, &counts);
		ret->n_unwanted += counts.n_unwanted + c->cache.subs[t].n_skipped;
		ret->updates[t] = c->cache.subs[t].updates;
	}
}
