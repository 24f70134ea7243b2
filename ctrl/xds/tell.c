// SPDX-License-Identifier: Apache-2.0
// Events: what the watchers of an entry are told, and in which order.
#include "ctrl/xds/inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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

static void set_text(char **at, const char *fmt, va_list args)
{
	char *text;
	if (vasprintf(&text, fmt, args) < 0)
		return;
	free(*at);
	*at = text;
}

void xds_set_text(char **at, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	set_text(at, fmt, args);
	va_end(args);
}

void xds_entry_set_error(struct xds_entry *e, const char *fmt, ...)
{
	struct xds_trouble *t = xds_entry_make_trouble(e);
	va_list args;
	va_start(args, fmt);
	if (t)
		set_text(&t->error, fmt, args);
	va_end(args);
	xds_entry_clear_rejected(e);
}

void xds_clear_text(char **at)
{
	free(*at);
	*at = NULL;
}

static const char *text_of(const char *s)
{
	return s ? s : "";
}

void xds_client_add_news(struct xds_entry *e, enum xds_news news)
{
	struct xds_client *c = e->client;
	if (e->news == XDS_NEWS_NONE) {
		e->next_news = NULL;
		*(c->news ? &c->news_last->next_news : &c->news) = e;
		c->news_last = e;
	}
	bool fresh = e->news == XDS_NEWS_RESOURCE || e->news == XDS_NEWS_RESOURCE_AMBIENT;
	if (fresh && news == XDS_NEWS_AMBIENT)
		news = XDS_NEWS_RESOURCE_AMBIENT;
	else if (fresh && news == XDS_NEWS_CLEAR)
		news = XDS_NEWS_RESOURCE;
	e->news = news;
}

static struct xds_event event_of(const struct xds_entry *e, enum xds_news news)
{
	const struct xds_client *c = e->client;
	bool own = e->error_code != XDS_OK; // its text may be missing for want of memory
	const char *text = text_of(own ? xds_entry_trouble(e)->error : c->failure);
	enum xds_code code = own ? e->error_code : XDS_UNAVAILABLE;
	switch (news) {
	case XDS_NEWS_RESOURCE:
	case XDS_NEWS_RESOURCE_AMBIENT:
		return (struct xds_event){.kind = XDS_EVENT_RESOURCE, .res = e->value, .text = ""};
	case XDS_NEWS_ERROR:
		return (struct xds_event){
			.kind = XDS_EVENT_ERROR, .code = code, .text = text, .no_server = !own};
	case XDS_NEWS_AMBIENT:
		return (struct xds_event){.kind = XDS_EVENT_AMBIENT, .code = code, .text = text};
	case XDS_NEWS_CLEAR:
	case XDS_NEWS_NONE:
		break;
	}
	return (struct xds_event){.kind = XDS_EVENT_AMBIENT, .code = XDS_OK, .text = ""};
}

static void tell_one(struct xds_entry *e, enum xds_news news, uint64_t round)
{
	struct xds_event event = event_of(e, news);
	if (xds_watchers_tell(&e->watchers, &event, round))
		e->client->unsettled = true;
}

void xds_client_tell(struct xds_client *c, uint64_t event)
{
	uint64_t last = xds_client_round(event);
	while (c->news) {
		struct xds_entry *e = c->news;
		if (!e->dead)
			tell_one(e, e->news, last - 1);
		if (!e->dead && e->news == XDS_NEWS_RESOURCE_AMBIENT)
			tell_one(e, XDS_NEWS_AMBIENT, last);
		c->news = e->next_news;
		e->news = XDS_NEWS_NONE;
		if (e->dead)
			xds_entry_free(e);
	}
}

// What a new watcher is to know at once (WA-02, WA-03, FM-10).
void xds_client_tell_new(struct xds_entry *e, struct xds_watcher *w)
{
	struct xds_client *c = e->client;
	bool trouble = e->error_code != XDS_OK || c->failure;
	if (!e->value && !trouble)
		return;
	c->unsettled = true;
	if (e->value) {
		struct xds_event event = event_of(e, XDS_NEWS_RESOURCE);
		w->on_event(w, &event);
		if (w->entry != e || !trouble)
			return;
		e->ambient = true;
		event = event_of(e, XDS_NEWS_AMBIENT);
		w->on_event(w, &event);
	} else {
		struct xds_event event = event_of(e, XDS_NEWS_ERROR);
		w->on_event(w, &event);
	}
}
