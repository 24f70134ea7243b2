// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/client.h"

#include "ctrl/xds/bootstrap.h"
#include "ctrl/xds/inside.h"
#include "lb/base/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S 1000000000ull
#define ABSENT_NS (15 * NS_PER_S) // FM-04
#define ABSENT_TRANSIENT_NS (30 * NS_PER_S) // FM-08

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

// Hooks may come and go while they run.
static void run_settled(struct xds_client *c)
{
	for (struct xds_settled *s = c->settled; s; s = c->settled_next) {
		c->settled_next = s->next;
		s->fn(s);
	}
	c->settled_next = NULL;
}

void xds_client_end(struct xds_client *c)
{
	CHECK(c->depth > 0);
	if (c->depth == 1) {
		do { // a flush may fail at once and so tell more
			if (c->unsettled) {
				c->unsettled = false;
				run_settled(c);
			}
			xds_ads_flush(c->ads);
		} while (c->unsettled);
	}
	c->depth--;
}

void xds_client_add_settled(struct xds_client *c, struct xds_settled *s)
{
	s->next = c->settled;
	c->settled = s;
}

void xds_client_remove_settled(struct xds_client *c, struct xds_settled *s)
{
	if (c->settled_next == s)
		c->settled_next = s->next;
	for (struct xds_settled **at = &c->settled; *at; at = &(*at)->next) {
		if (*at == s) {
			*at = s->next;
			return;
		}
	}
}

void xds_client_log(struct xds_client *c, const char *fmt, ...)
{
	if (!c->conf.log)
		return;
	char *line;
	va_list args;
	va_start(args, fmt);
	int n = vasprintf(&line, fmt, args);
	va_end(args);
	if (n < 0)
		return;
	c->conf.log(c->conf.log_ctx, line);
	free(line);
}

void xds_set_text(char **at, const char *fmt, ...)
{
	char *text;
	va_list args;
	va_start(args, fmt);
	int n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0)
		return;
	free(*at);
	*at = text;
}

void xds_clear_text(char **at)
{
	free(*at);
	*at = NULL;
}

static const struct xds_server_conf *server_of(const struct xds_client *c)
{
	return &c->conf.bootstrap->servers[0];
}

static const char *text_of(const char *s)
{
	return s ? s : "";
}

// Entries

static void absent_fired(struct twheel_timer *t)
{
	struct xds_entry *e = (struct xds_entry *)((char *)t - offsetof(struct xds_entry, absent));
	struct xds_client *c = e->client;
	bool transient = server_of(c)->timer_is_transient_error;
	xds_client_begin(c);
	xds_set_text(&e->error,
		"%s \"%s\": no answer from xDS server %s within %d s (node id \"%s\")",
		c->conf.types[e->type]->label, e->name, server_of(c)->uri, transient ? 30 : 15,
		c->conf.bootstrap->node_id);
	xds_clear_text(&e->error_version);
	if (transient)
		xds_entry_fail(e, XDS_STATUS_TIMEOUT, XDS_UNAVAILABLE, false);
	else
		xds_entry_fail(e, XDS_STATUS_DOES_NOT_EXIST, XDS_NOT_FOUND, true);
	xds_client_log(c, "%s", text_of(e->error));
	xds_client_tell(c, ++c->n_events);
	xds_client_end(c);
}

static void entry_free(struct xds_entry *e)
{
	xds_res_put(e->value);
	free(e->name);
	free(e->version);
	free(e->error);
	free(e->error_version);
	free(e);
}

// NULL = no memory.
static struct xds_entry *entry_new(struct xds_client *c, uint32_t type, const char *name)
{
	struct xds_entry *e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	struct entry_list *list = &c->lists[type];
	e->client = c;
	e->type = type;
	e->status = XDS_STATUS_REQUESTED;
	e->absent.fire = absent_fired;
	e->name = strdup(name);
	if (!e->name || strmap_add(&list->by_name, &e->link, e->name)) {
		entry_free(e);
		return NULL;
	}
	e->prev = list->last;
	*(list->last ? &list->last->next : &list->first) = e;
	list->last = e;
	list->n_unwatched++;
	list->newcomers = true;
	return e;
}

static void entry_unlink(struct xds_entry *e)
{
	struct entry_list *list = &e->client->lists[e->type];
	*(e->prev ? &e->prev->next : &list->first) = e->next;
	*(e->next ? &e->next->prev : &list->last) = e->prev;
	strmap_remove(&list->by_name, &e->link);
}

// Out of the cache (WA-09). While news of it is being told it stays in memory.
static void entry_drop(struct xds_entry *e)
{
	e->client->lists[e->type].n_unwatched--;
	twheel_cancel(e->client->conf.wheel, &e->absent);
	entry_unlink(e);
	if (e->news == NEWS_NONE)
		entry_free(e);
	else
		e->dead = true;
}

static void drop_unwatched(struct xds_client *c, uint32_t type)
{
	struct xds_entry *next;
	for (struct xds_entry *e = c->lists[type].first; e && c->lists[type].n_unwatched;
		e = next) {
		next = e->next;
		if (!e->watchers)
			entry_drop(e);
	}
}

// Events

void xds_client_add_news(struct xds_entry *e, enum news news)
{
	struct xds_client *c = e->client;
	if (e->news == NEWS_NONE) {
		e->next_news = NULL;
		*(c->news ? &c->news_last->next_news : &c->news) = e;
		c->news_last = e;
	}
	e->news = news;
}

static struct xds_event event_of(const struct xds_entry *e, enum news news)
{
	const struct xds_client *c = e->client;
	const char *own = e->error, *text = own ? own : text_of(c->failure);
	enum xds_code code = own ? e->error_code : XDS_UNAVAILABLE;
	switch (news) {
	case NEWS_RESOURCE:
		return (struct xds_event){.kind = XDS_EVENT_RESOURCE, .res = e->value, .text = ""};
	case NEWS_ERROR:
		return (struct xds_event){.kind = XDS_EVENT_ERROR, .code = code, .text = text};
	case NEWS_AMBIENT:
		return (struct xds_event){.kind = XDS_EVENT_AMBIENT, .code = code, .text = text};
	case NEWS_CLEAR:
	case NEWS_NONE:
		break;
	}
	return (struct xds_event){.kind = XDS_EVENT_AMBIENT, .code = XDS_OK, .text = ""};
}

// A watcher may cancel itself and others and start new ones: after each call the list is read from
// its start, and `seen` says who has been told.
static void tell_entry(struct xds_entry *e, uint64_t round)
{
	struct xds_event event = event_of(e, e->news);
	struct xds_watcher *w = e->watchers;
	while (w) {
		if (w->seen >= round) {
			w = w->next;
			continue;
		}
		w->seen = round;
		e->client->unsettled = true;
		w->on_event(w, &event);
		w = e->watchers;
	}
}

void xds_client_tell(struct xds_client *c, uint64_t round)
{
	while (c->news) {
		struct xds_entry *e = c->news;
		if (!e->dead)
			tell_entry(e, round);
		c->news = e->next_news;
		e->news = NEWS_NONE;
		if (e->dead)
			entry_free(e);
	}
}

// What a new watcher is to know at once (WA-02, WA-03, FM-10).
static void tell_new(struct xds_entry *e, struct xds_watcher *w)
{
	struct xds_client *c = e->client;
	bool trouble = e->error || c->failure;
	if (!e->value && !trouble)
		return;
	c->unsettled = true;
	if (e->value) {
		struct xds_event event = event_of(e, NEWS_RESOURCE);
		w->on_event(w, &event);
		if (w->entry != e || !trouble)
			return;
		e->ambient = true;
		event = event_of(e, NEWS_AMBIENT);
		w->on_event(w, &event);
	} else {
		struct xds_event event = event_of(e, NEWS_ERROR);
		w->on_event(w, &event);
	}
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

static void add_watcher(struct xds_entry *e, struct xds_watcher *w)
{
	w->entry = e;
	w->seen = e->client->n_events;
	w->next = NULL;
	w->prev = e->watchers_last;
	*(e->watchers_last ? &e->watchers_last->next : &e->watchers) = w;
	e->watchers_last = w;
}

int xds_client_watch(
	struct xds_client *c, const struct xds_type *type, const char *name, struct xds_watcher *w)
{
	CHECK(!w->entry);
	uint32_t t = type_index(c, type);
	xds_client_begin(c);
	if (strncmp(name, "xdstp:", 6) == 0) { // FE-04: nothing is sent
		char *text = NULL;
		xds_set_text(&text, "%s \"%s\": names of federation (xdstp:) are not supported",
			type->label, name);
		struct xds_event event = {
			.kind = XDS_EVENT_ERROR, .code = XDS_UNAVAILABLE, .text = text_of(text)};
		c->unsettled = true;
		w->on_event(w, &event);
		free(text);
		xds_client_end(c);
		return 0;
	}
	struct strmap_link *l = strmap_find(&c->lists[t].by_name, name);
	struct xds_entry *e =
		l ? (struct xds_entry *)((char *)l - offsetof(struct xds_entry, link)) : NULL;
	if (!e)
		e = entry_new(c, t, name);
	if (e) {
		if (!e->watchers) {
			c->lists[t].n++;
			c->lists[t].n_unwatched--;
			xds_ads_changed(c->ads, t);
		}
		add_watcher(e, w);
		tell_new(e, w);
	}
	xds_client_end(c);
	return e ? 0 : -ENOMEM;
}

void xds_client_cancel(struct xds_client *c, struct xds_watcher *w)
{
	struct xds_entry *e = w->entry;
	if (!e)
		return;
	xds_client_begin(c);
	*(w->prev ? &w->prev->next : &e->watchers) = w->next;
	*(w->next ? &w->next->prev : &e->watchers_last) = w->prev;
	w->entry = NULL;
	w->next = w->prev = NULL;
	if (!e->watchers) {
		c->lists[e->type].n--;
		c->lists[e->type].n_unwatched++;
		xds_ads_changed(c->ads, e->type);
		// The server goes on thinking that we have it until a request without it is sent:
		// the value is kept so long, since a watch before that would not be answered
		// (WA-13).
		if (!xds_ads_streaming(c->ads))
			entry_drop(e);
	}
	xds_client_end(c);
}

// The stream calls back

static uint32_t owner_n_names(void *ctx, uint32_t type)
{
	const struct xds_client *c = ctx;
	return c->lists[type].n;
}

static void owner_names(void *ctx, uint32_t type, const char **ret)
{
	const struct xds_client *c = ctx;
	for (const struct xds_entry *e = c->lists[type].first; e; e = e->next)
		if (e->watchers)
			*ret++ = e->name;
}

static void owner_on_sending(void *ctx, uint32_t type)
{
	struct xds_client *c = ctx;
	struct entry_list *list = &c->lists[type];
	drop_unwatched(c, type);
	list->in_flight = list->newcomers;
	list->newcomers = false;
	for (struct xds_entry *e = list->in_flight ? list->first : NULL; e; e = e->next)
		e->in_flight = !e->value && !e->answered && e->status != XDS_STATUS_DOES_NOT_EXIST;
}

static void owner_on_sent(void *ctx, uint32_t type)
{
	struct xds_client *c = ctx;
	uint64_t wait = server_of(c)->timer_is_transient_error ? ABSENT_TRANSIENT_NS : ABSENT_NS;
	struct entry_list *list = &c->lists[type];
	for (struct xds_entry *e = list->in_flight ? list->first : NULL; e; e = e->next) {
		if (e->in_flight && e->watchers && !twheel_armed(&e->absent))
			twheel_arm(c->conf.wheel, &e->absent, twheel_now(c->conf.wheel) + wait);
		e->in_flight = false;
	}
	list->in_flight = false;
}

static char *owner_on_response(void *ctx, uint32_t type, const struct xds_response *r)
{
	return xds_client_respond(ctx, type, r);
}

static void owner_on_lost(void *ctx, const char *why, bool had_response)
{
	struct xds_client *c = ctx;
	char *old = c->failure;
	for (uint32_t t = 0; t < c->conf.n_types; t++) {
		drop_unwatched(c, t);
		c->lists[t].newcomers = true;
		for (struct xds_entry *e = c->lists[t].first; e; e = e->next) {
			twheel_cancel(c->conf.wheel, &e->absent); // FM-05
			e->in_flight = e->answered = false;
		}
	}
	if (had_response) { // FM-02
		xds_client_log(c, "xDS server %s ended the stream: %s", server_of(c)->uri, why);
		return;
	}
	c->failure = NULL;
	xds_set_text(&c->failure, "xDS server %s is not reachable: %s (node id \"%s\")",
		server_of(c)->uri, why, c->conf.bootstrap->node_id);
	bool news = c->failure && (!old || strcmp(old, c->failure) != 0);
	free(old);
	if (!news) // one error an outage, unless its reason changes (FM-01)
		return;
	xds_client_log(c, "%s", c->failure);
	for (uint32_t t = 0; t < c->conf.n_types; t++) {
		for (struct xds_entry *e = c->lists[t].first; e; e = e->next) {
			e->ambient = e->value;
			xds_client_add_news(e, e->value ? NEWS_AMBIENT : NEWS_ERROR);
		}
	}
	xds_client_tell(c, ++c->n_events);
}

static void owner_on_recovered(void *ctx)
{
	struct xds_client *c = ctx;
	if (!c->failure)
		return;
	xds_clear_text(&c->failure);
	xds_client_log(c, "xDS server %s answers again", server_of(c)->uri);
	for (uint32_t t = 0; t < c->conf.n_types; t++) {
		for (struct xds_entry *e = c->lists[t].first; e; e = e->next) {
			if (!e->ambient || e->error)
				continue;
			e->ambient = false;
			xds_client_add_news(e, NEWS_CLEAR);
		}
	}
	xds_client_tell(c, ++c->n_events);
}

static void owner_log(void *ctx, const char *line)
{
	xds_client_log(ctx, "%s", line);
}

static const struct xds_ads_owner owner = {
	.n_names = owner_n_names,
	.names = owner_names,
	.on_sending = owner_on_sending,
	.on_sent = owner_on_sent,
	.on_response = owner_on_response,
	.on_lost = owner_on_lost,
	.on_recovered = owner_on_recovered,
	.begin = owner_begin,
	.end = owner_end,
	.log = owner_log,
};

struct xds_client *xds_client_new(const struct xds_client_conf *conf)
{
	struct xds_client *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->conf = *conf;
	c->lists = calloc(conf->n_types, sizeof(*c->lists));
	if (!c->lists || xds_node_init(&c->node, conf->bootstrap, conf->user_agent_version)) {
		free(c->lists);
		free(c);
		return NULL;
	}
	c->ads = xds_ads_new(&(struct xds_ads_conf){
		.server = server_of(c),
		.types = conf->types,
		.n_types = conf->n_types,
		.transport = conf->transport,
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
	for (uint32_t t = 0; t < c->conf.n_types; t++) {
		for (struct xds_entry *e = c->lists[t].first, *next; e; e = next) {
			next = e->next;
			for (struct xds_watcher *w = e->watchers; w; w = w->next)
				w->entry = NULL;
			twheel_cancel(c->conf.wheel, &e->absent);
			entry_free(e);
		}
		strmap_fini(&c->lists[t].by_name);
	}
	free(c->lists);
	xds_node_fini(&c->node);
	free(c->failure);
	free(c);
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

void xds_client_each(
	const struct xds_client *c, void (*fn)(void *ctx, const struct xds_entry_info *), void *ctx)
{
	for (uint32_t t = 0; t < c->conf.n_types; t++) {
		for (const struct xds_entry *e = c->lists[t].first; e; e = e->next) {
			if (!e->watchers)
				continue;
			fn(ctx, &(struct xds_entry_info){
					.type = c->conf.types[t],
					.name = e->name,
					.status = e->status,
					.res = e->value,
					.version = text_of(e->version),
					.updated_ns = e->updated_ns,
					.error = text_of(e->error),
					.error_version = text_of(e->error_version),
					.error_ns = e->error_ns,
				});
		}
	}
}

void xds_client_server(const struct xds_client *c, struct xds_server_info *ret)
{
	xds_ads_info(c->ads, ret);
}
