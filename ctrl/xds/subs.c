// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/subs.h"

#include "ctrl/xds/protocol.h"
#include "lb/base/container_of.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

static void content_put(void *content)
{
	xds_res_put(content);
}

static bool content_eq(const void *a, const void *b)
{
	return xds_res_eq(a, b);
}

int xds_subs_init(
	struct xds_subs *s, const struct xds_type *type, const struct xds_protocol *protocol)
{
	*s = (struct xds_subs){.n = 0};
	list_init(&s->all);
	list_init(&s->pending);
	list_init(&s->in_flight);
	s->variants = xds_variants_new(&(struct xds_variants_conf){
		.label = type->label,
		.newest_wins = protocol->newest_wins && !type->full_state,
		.content_put = content_put,
		.content_eq = content_eq,
	});
	return s->variants ? 0 : -ENOMEM;
}

static void forget_names(struct xds_subs *s)
{
	free(s->names);
	s->names = NULL;
}

void xds_subs_fini(struct xds_subs *s)
{
	for (struct list_link *c = s->all.next, *next; c != &s->all; c = next) {
		next = c->next;
		struct xds_entry *e = CONTAINER_OF(c, struct xds_entry, all);
		for (struct xds_watcher *w = TAILQ_FIRST(&e->watchers); w; w = TAILQ_NEXT(w, link))
			w->entry = NULL;
		xds_entry_cancel_timers(e);
		xds_sub_put(s->variants, e->sub);
		xds_entry_free(e);
	}
	forget_names(s);
	xds_variants_free(s->variants);
}

struct xds_entry *xds_subs_find(
	const struct xds_subs *s, const char *name, const struct xds_params *params)
{
	const struct xds_sub *sub = xds_sub_find(s->variants, name, params);
	return sub ? sub->owner : NULL;
}

struct xds_entry *xds_subs_add(struct xds_subs *s, struct xds_cache *cache, uint32_t type,
	const char *name, struct xds_params *params)
{
	bool is_new;
	struct xds_entry *e = xds_entry_new(cache, type);
	if (!e)
		return NULL;
	if (xds_sub_get(s->variants, name, params, &e->sub, &is_new)) {
		xds_entry_free(e);
		return NULL;
	}
	e->sub->owner = e;
	list_append(&s->all, &e->all);
	return e;
}

// Out of the cache.
static void drop(struct xds_subs *s, struct xds_entry *e)
{
	list_remove(&e->all);
	list_remove(&e->pending);
	list_remove(&e->in_flight);
	xds_sub_put(s->variants, e->sub);
	e->sub = NULL;
	xds_entry_drop(e);
}

void xds_subs_want(struct xds_subs *s, struct xds_entry *e, bool ask_again)
{
	s->n++;
	forget_names(s);
	list_remove(&e->pending);
	if (!e->asked || ask_again)
		list_append(&s->pending, &e->pending);
}

void xds_subs_unwant(struct xds_subs *s, struct xds_entry *e)
{
	s->n--;
	forget_names(s);
	list_remove(&e->pending);
	if (e->asked)
		list_append(&s->pending, &e->pending);
	else
		xds_subs_left(s, e);
}

void xds_subs_left(struct xds_subs *s, struct xds_entry *e)
{
	if (TAILQ_EMPTY(&e->watchers) && !e->asked)
		drop(s, e);
}

void xds_subs_sending(struct xds_subs *s)
{
	while (!list_empty(&s->pending)) {
		struct xds_entry *e = CONTAINER_OF(s->pending.next, struct xds_entry, pending);
		list_remove(&e->pending);
		e->asked = e->n_asking > 0;
		if (!e->asked) {
			xds_subs_left(s, e);
			continue;
		}
		list_remove(&e->in_flight);
		list_append(&s->in_flight, &e->in_flight);
	}
}

void xds_subs_lost(struct xds_subs *s)
{
	xds_variants_age(s->variants);
	for (struct list_link *c = s->all.next, *next; c != &s->all; c = next) {
		next = c->next;
		struct xds_entry *e = CONTAINER_OF(c, struct xds_entry, all);
		if (TAILQ_EMPTY(&e->watchers)) {
			drop(s, e);
			continue;
		}
		twheel_cancel(e->cache->conf->wheel, &e->absent); // FM-05
		e->asked = e->answered = false;
		e->is_resumed = xds_entry_is_wildcard(e) && e->status == XDS_STATUS_ACKED;
		list_remove(&e->in_flight);
		list_remove(&e->pending);
		if (e->n_asking > 0) // in order of subscription again
			list_append(&s->pending, &e->pending);
	}
}
