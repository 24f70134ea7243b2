// SPDX-License-Identifier: Apache-2.0
// Wildcards: a subscription to "*" stands for all names that the server has for its parameters
// (xds-client.md §2, 3). Each name that comes so becomes an entry like any other, but for the
// server not being asked for it.
#include "ctrl/xds/inside.h"
#include "lb/base/check.h"

#include <string.h>

bool xds_entry_is_wildcard(const struct xds_entry *e)
{
	return strcmp(e->sub->name, "*") == 0;
}

static bool has_come_by_wildcard(const struct xds_entry *e)
{
	const struct xds_watcher *w = e->watchers.first;
	while (w && !w->by_wildcard)
		w = w->next;
	return w;
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
	if (a->rc || !e->watchers.first || (sub && has_come_by_wildcard(sub->owner)))
		return;
	CHECK(e->watchers.first->on_name);
	a->rc = e->watchers.first->on_name(e->watchers.first, a->name);
	sub = xds_sub_find(a->variants, a->name, wildcard->params);
	struct xds_entry *adopted = sub ? sub->owner : NULL;
	if (a->rc || !adopted || !has_come_by_wildcard(adopted))
		return;
	// It came before the news of this response, and is to hear it.
	adopted->watchers.last->seen = e->client->n_events - 1;
	xds_entry_answered(e);
}

int xds_wildcard_adopt(struct xds_client *c, uint32_t type, const char *name,
	const struct xds_constraints *constraints)
{
	struct adoption a = {c->subs[type].variants, name, 0};
	if (strcmp(name, "*") != 0)
		xds_variants_each_sub(c->subs[type].variants, "*", constraints, adopt_by, &a);
	return a.rc;
}

// Is there a name to which this response may have been the answer, rather than to the wildcard?
static bool awaits_names(const struct xds_client *c, uint32_t type)
{
	const struct xds_chain *all = &c->subs[type].all;
	for (const struct xds_chain *at = all->next; at != all; at = at->next) {
		const struct xds_entry *e = XDS_ENTRY_OF(at, all);
		bool was_open = !e->answered || e->seen == c->n_events;
		if (e->n_asking > 0 && was_open && e->status != XDS_STATUS_DOES_NOT_EXIST &&
			e->status != XDS_STATUS_TIMEOUT && !xds_entry_is_wildcard(e))
			return true;
	}
	return false;
}

static void settle(void *ctx, struct xds_sub *sub)
{
	struct xds_client *c = ctx;
	struct xds_entry *e = sub->owner;
	if (!e->watchers.first || !e->asked || e->status == XDS_STATUS_ACKED)
		return;
	if (e->seen != c->n_events && awaits_names(c, e->type))
		return;
	xds_entry_answered(e);
	e->status = XDS_STATUS_ACKED;
	xds_client_add_news(e, XDS_NEWS_RESOURCE);
}

void xds_wildcard_settle(struct xds_client *c, uint32_t type)
{
	xds_variants_each_sub(c->subs[type].variants, "*", NULL, settle, c);
}
