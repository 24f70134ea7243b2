// SPDX-License-Identifier: Apache-2.0
// A response takes effect: who is concerned by it.
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/respond_inside.h"
#include "ctrl/xds/subs.h"
#include "ctrl/xds/variants/constraints.h"
#include "ctrl/xds/verdict.h"
#include "ctrl/xds/wildcard.h"
#include "lb/base/time.h"

struct about {
	struct xds_round *round;
	const struct xds_item *item;
};

static uint64_t now_ns(const struct xds_round *r)
{
	return twheel_now(r->cache->conf->wheel);
}

static void hold(struct xds_round *r, struct xds_entry *e, uint64_t expires_ns)
{
	r->out_of_memory |= xds_entry_hold(e, expires_ns) != 0;
}

// Who comes to see the variant later has no more of its time than is left.
static void note_expiry(const struct xds_round *r, const struct xds_item *it)
{
	const struct xds_variant *v =
		it->why ? NULL : xds_variants_find(r->variants, it->name, it->constraints);
	struct xds_res *res = v ? v->content : NULL;
	uint64_t at_s = (now_ns(r) + it->ttl_ns) / NS_PER_SECOND + 1;
	if (res)
		res->expires_s = !it->has_ttl ? 0 : at_s < UINT32_MAX ? (uint32_t)at_s : UINT32_MAX;
}

// TP2-T13: whoever the constraints match is concerned; but a variant is the value only of those
// that see it (TP2-L04).
static void settle_resource(void *ctx, struct xds_sub *sub)
{
	const struct about *a = ctx;
	struct xds_round *r = a->round;
	const struct xds_item *it = a->item;
	struct xds_entry *e = sub->owner;
	xds_entry_answered(e);
	if (it->why) {
		xds_entry_refuse(e, it->version, it->why, it->refused);
		return;
	}
	if (!sub->variant || !xds_constraints_eq(sub->variant->constraints, it->constraints))
		return;
	if (it->res)
		xds_entry_accept(e, sub->variant);
	// RS-04: each time it is sent it holds anew, and for good if no TTL comes with it. To whom
	// the server has denied the value another's heartbeat is nothing.
	if (e->value)
		hold(r, e, it->has_ttl ? now_ns(r) + it->ttl_ns : 0);
}

// DL-07, TP2-T09: also of what never came.
static void settle_removal(void *ctx, struct xds_sub *sub)
{
	if (!sub->variant)
		xds_entry_end(sub->owner);
}

// DE-07
static void settle_error(void *ctx, struct xds_sub *sub)
{
	const struct about *a = ctx;
	const struct xds_item *it = a->item;
	xds_entry_report(sub->owner, a->round->response->version,
		&(struct xds_report){it->code, it->text, it->constraints});
}

static void settle_kind(
	struct xds_round *r, enum xds_part_kind kind, void (*fn)(void *ctx, struct xds_sub *))
{
	for (size_t i = 0; i < r->n_items; i++) {
		struct about a = {r, &r->items[i]};
		if (a.item->kind != kind)
			continue;
		if (kind == XDS_PART_RESOURCE)
			note_expiry(r, a.item);
		xds_variants_each_sub(r->variants, a.item->name, a.item->constraints, fn, &a);
	}
}

// Who sees another variant than before, or none, without its being said of what it sees now.
static void settle_others(struct xds_round *r)
{
	struct xds_variants_event event;
	while (xds_variants_drain(r->variants, &event)) {
		struct xds_entry *e = event.sub->owner;
		if (event.newly_ambiguous) // TP2-L04
			xds_cache_log(r->cache,
				"%s \"%s\": several variants from xDS server %s match its "
				"parameters",
				r->cache->conf->types[r->type]->label, event.sub->name,
				r->cache->server->uri);
		if (!event.after) {
			xds_entry_end(e); // SW-11, TP2-T09
		} else if (event.after->content != e->value) {
			xds_entry_answered(e);
			xds_entry_accept(e, event.after);
			const struct xds_res *res = event.after->content;
			hold(r, e, res->expires_s * NS_PER_SECOND);
		}
	}
}

void xds_round_settle(struct xds_round *r)
{
	struct xds_subs *subs = &r->cache->subs[r->type];
	subs->updates.n_valid += r->n_valid;
	subs->updates.n_invalid += r->n_invalid;
	subs->n_skipped += r->n_unwanted;
	settle_kind(r, XDS_PART_RESOURCE, settle_resource);
	settle_kind(r, XDS_PART_REMOVAL, settle_removal);
	settle_kind(r, XDS_PART_ERROR, settle_error);
	settle_others(r);
	xds_wildcard_settle(r->cache, r->type, r->lists_all);
}

// What the server says on its next stream takes their place, whatever its constraints.
void xds_round_settle_kept(struct xds_round *r)
{
	struct xds_variants_event event;
	while (xds_variants_drain(r->variants, &event))
		if (event.after)
			xds_entry_restore(event.sub->owner, event.after);
	xds_variants_age(r->variants);
}

static void settle_refused(void *ctx, struct xds_sub *sub)
{
	const struct about *a = ctx;
	xds_entry_refuse_with_all(sub->owner, a->item->version, a->round->twice);
}

// Which of the two is meant the response does not say, nor what else of it is.
void xds_round_refuse_all(struct xds_round *r)
{
	r->cache->subs[r->type].updates.n_invalid += r->n_resources - r->n_unwanted;
	for (size_t i = 0; i < r->n_items; i++) {
		struct about a = {r, &r->items[i]};
		if (a.item->kind == XDS_PART_RESOURCE)
			xds_variants_each_sub(
				r->variants, a.item->name, a.item->constraints, settle_refused, &a);
	}
}
