// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/wildcard.h"

#include "ctrl/xds/bootstrap/name.h"
#include "ctrl/xds/news.h"
#include "ctrl/xds/protocol.h"
#include "ctrl/xds/subs.h"
#include "ctrl/xds/variants/params.h"
#include "ctrl/xds/verdict.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"

#define SILENCE_NS (15 * NS_PER_SECOND) // FM-04

static bool has_come_by_wildcard(const struct xds_entry *e)
{
	const struct xds_watcher *w = TAILQ_FIRST(&e->watchers);
	while (w && !w->by_wildcard)
		w = TAILQ_NEXT(w, link);
	return w;
}

static bool is_part(const struct xds_entry *e, const struct xds_sub *wildcard)
{
	return xds_params_eq(e->sub->params, wildcard->params) && has_come_by_wildcard(e);
}

struct adoption {
	const struct xds_variants *variants;
	const char *name;
	int rc;
};

static void adopt_by(void *ctx, struct xds_sub *wildcard)
{
	struct adoption *a = ctx;
	struct xds_entry *e = wildcard->owner;
	const struct xds_sub *sub = xds_sub_find(a->variants, a->name, wildcard->params);
	if (a->rc || TAILQ_EMPTY(&e->watchers) || (sub && has_come_by_wildcard(sub->owner)))
		return;
	struct xds_watcher *first = TAILQ_FIRST(&e->watchers);
	CHECK(first->on_name);
	a->rc = first->on_name(first, a->name);
	sub = xds_sub_find(a->variants, a->name, wildcard->params);
	struct xds_entry *adopted = sub ? sub->owner : NULL;
	if (a->rc || !adopted || !has_come_by_wildcard(adopted))
		return;
	// It came before the news of this response, and is to hear it.
	TAILQ_LAST(&adopted->watchers, xds_watchers)->seen = xds_news_round(e->cache->n_events - 1);
	xds_entry_answered(e);
}

int xds_wildcard_adopt(struct xds_cache *c, uint32_t type, const char *name,
	const struct xds_constraints *constraints)
{
	struct adoption a = {c->subs[type].variants, name, 0};
	if (!xds_name_is_wildcard(name))
		xds_variants_each_sub(c->subs[type].variants, "*", constraints, adopt_by, &a);
	return a.rc;
}

struct sweep {
	struct xds_cache *cache;
	uint32_t type;
	int rc;
};

static void sweep_under(void *ctx, struct xds_sub *wildcard)
{
	struct sweep *s = ctx;
	const struct xds_entry *e = wildcard->owner;
	struct xds_subs *subs = &s->cache->subs[s->type];
	if (!e->is_resumed)
		return;
	for (const struct list_link *c = subs->all.next; c != &subs->all && !s->rc; c = c->next) {
		const struct xds_entry *part = CONTAINER_OF(c, struct xds_entry, all);
		if (is_part(part, wildcard))
			s->rc = xds_variants_remove_aged(subs->variants, part->sub->name);
	}
}

int xds_wildcard_sweep(struct xds_cache *c, uint32_t type)
{
	struct sweep s = {c, type, 0};
	if (c->conf->protocol->newest_wins) // SotW: what is missing says what it says
		return 0;
	xds_variants_each_sub(c->subs[type].variants, "*", NULL, sweep_under, &s);
	return s.rc;
}

static bool is_open(const struct xds_entry *e)
{
	bool is_unsaid = e->status == XDS_STATUS_REQUESTED || xds_entry_is_presumed(e);
	return e->n_asking > 0 && e->asked && !e->answered && !e->value && is_unsaid &&
	       !list_linked(&e->in_flight) && !xds_entry_is_wildcard(e);
}

void xds_wildcard_sent(struct xds_cache *c, uint32_t type)
{
	struct xds_subs *subs = &c->subs[type];
	bool is_behind = false, has_wildcard = false;
	for (const struct list_link *at = subs->in_flight.next; at != &subs->in_flight;
		at = at->next)
		has_wildcard |=
			xds_entry_is_wildcard(CONTAINER_OF(at, struct xds_entry, in_flight));
	for (const struct list_link *at = subs->all.next; has_wildcard && at != &subs->all;
		at = at->next)
		is_behind |= is_open(CONTAINER_OF(at, struct xds_entry, all));
	for (struct list_link *at = subs->in_flight.next; has_wildcard && at != &subs->in_flight;
		at = at->next) {
		struct xds_entry *e = CONTAINER_OF(at, struct xds_entry, in_flight);
		e->is_behind = is_behind && xds_entry_is_wildcard(e);
	}
}

void xds_wildcard_answered(struct xds_entry *e)
{
	xds_entry_answered(e);
	e->status = XDS_STATUS_ACKED;
	xds_news_add(e, XDS_NEWS_RESOURCE);
}

// Those that were refused ever since they came have no variant, whose end would tell theirs.
static void end_missing(struct xds_cache *c, const struct xds_sub *wildcard)
{
	const struct xds_entry *e = wildcard->owner;
	struct list_link *all = &c->subs[e->type].all;
	for (struct list_link *at = all->next; at != all; at = at->next) {
		struct xds_entry *part = CONTAINER_OF(at, struct xds_entry, all);
		if (!part->sub->variant && part->seen != c->n_events && is_part(part, wildcard))
			xds_entry_end(part);
	}
}

struct settling {
	struct xds_cache *cache;
	bool lists_all;
};

static void settle(void *ctx, struct xds_sub *sub)
{
	const struct settling *s = ctx;
	struct xds_cache *c = s->cache;
	struct xds_entry *e = sub->owner;
	if (!e->asked)
		return;
	if (s->lists_all || (e->is_resumed && !c->conf->protocol->newest_wins))
		end_missing(c, sub);
	e->is_resumed = false;
	if (e->status == XDS_STATUS_ACKED) { // by an earlier stream, too
		xds_entry_answered(e);
		return;
	}
	bool is_first = !e->is_behind && !list_linked(&e->in_flight);
	bool is_its = is_first || e->seen == c->n_events;
	e->is_behind = false;
	if (is_its)
		xds_wildcard_answered(e);
	else // or it was the answer to both, and no other comes
		twheel_arm(c->conf->wheel, &e->absent, twheel_now(c->conf->wheel) + SILENCE_NS);
}

void xds_wildcard_settle(struct xds_cache *c, uint32_t type, bool lists_all)
{
	struct settling s = {c, lists_all};
	xds_variants_each_sub(c->subs[type].variants, "*", NULL, settle, &s);
}
