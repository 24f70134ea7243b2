// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/news.h"

#include "ctrl/base/text.h"

void xds_news_add(struct xds_entry *e, enum xds_news news)
{
	struct xds_cache *c = e->cache;
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
	const struct xds_cache *c = e->cache;
	bool own = e->error_code != XDS_OK; // its text may be missing for want of memory
	const char *text = text_or_empty(own ? xds_entry_trouble(e)->error : c->failure);
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
		e->cache->unsettled = true;
}

void xds_news_tell(struct xds_cache *c, uint64_t event)
{
	uint64_t last = xds_news_round(event);
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

void xds_news_tell_new(struct xds_entry *e, struct xds_watcher *w)
{
	struct xds_cache *c = e->cache;
	bool trouble = e->error_code != XDS_OK || (c->failure && !xds_entry_waits(e));
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
