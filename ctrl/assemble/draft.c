// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/draft.h"

#include "lb/base/time.h"
#include "lb/slot.h"
#include "lb/snapshot.h"

#include <stddef.h>

// A change waits for the next tick while this many snapshots are alive, so that a storm of changes
// becomes few snapshots; not longer than HOLD_NS, since a stalled worker may delay freeing but not
// publishing (MC-18).
#define MAX_LIVE 3
#define HOLD_NS (100 * NS_PER_MS)

void draft_init(struct draft *d, struct lb_slot *slot)
{
	*d = (struct draft){.slot = slot};
}

void draft_fini(struct draft *d)
{
	lb_snapshot_free(d->next);
}

// NULL = out of memory.
static struct lb_snapshot *begin(struct draft *d)
{
	if (!d->next)
		d->next = lb_snapshot_copy(lb_slot_current(d->slot));
	if (d->next)
		d->next->terms = d->terms;
	return d->next;
}

static struct lb_snapshot *begin_frontend(struct draft *d)
{
	d->has_frontends = true;
	return begin(d);
}

uint64_t draft_version(const struct draft *d)
{
	return lb_slot_current(d->slot)->version + 1;
}

void draft_set_cluster(struct draft *d, uint32_t id, struct lb_cluster *cluster)
{
	struct lb_snapshot *s = begin(d);
	if (!s || lb_snapshot_set_cluster(s, id, cluster))
		d->is_lost = true;
}

void draft_set_frontend(struct draft *d, uint32_t index, struct lb_route_table *table,
	const char *error, struct lb_filter_chain *filters, uint64_t generation)
{
	struct lb_snapshot *s = begin_frontend(d);
	if (!s || lb_snapshot_set_frontend(s, index, table, table ? "" : error) ||
		lb_snapshot_set_filters(s, index, filters, generation))
		d->is_lost = true;
}

void draft_set_access(struct draft *d, uint32_t index, struct lb_access_set *logs)
{
	struct lb_snapshot *s = begin(d);
	if (!s || lb_snapshot_set_access(s, index, logs))
		d->is_lost = true;
}

void draft_set_credential(struct draft *d, uint32_t id, struct lb_credential *credential)
{
	struct lb_snapshot *s = begin(d);
	if (!s || lb_snapshot_set_credential(s, id, credential))
		d->is_lost = true;
}

void draft_set_frontend_credential(struct draft *d, uint32_t index, uint32_t id)
{
	struct lb_snapshot *s = begin_frontend(d);
	if (!s || lb_snapshot_set_frontend_credential(s, index, id))
		d->is_lost = true;
}

bool draft_has_published(const struct draft *d, uint32_t credential)
{
	return lb_snapshot_credential(lb_slot_current(d->slot), credential);
}

void draft_set_chains(struct draft *d, uint32_t index, struct lb_chain_set *chains)
{
	struct lb_snapshot *s = begin_frontend(d);
	if (!s || lb_snapshot_set_chains(s, index, chains))
		d->is_lost = true;
}

void draft_set_live(struct draft *d, uint32_t index, struct lb_live_frontend *live)
{
	struct lb_snapshot *s = begin_frontend(d);
	if (!s || lb_snapshot_set_live(s, index, live))
		d->is_lost = true;
}

void draft_set_vips(struct draft *d, struct lb_vips *vips)
{
	struct lb_snapshot *s = begin(d);
	if (s)
		lb_snapshot_set_vips(s, vips);
	else
		d->is_lost = true;
}

void draft_set_ranges(struct draft *d, struct lb_own_ranges *ranges)
{
	struct lb_snapshot *s = begin(d);
	if (s)
		lb_snapshot_set_ranges(s, ranges);
	else
		d->is_lost = true;
}

void draft_set_terms(struct draft *d, const struct lb_terms *terms)
{
	uint64_t number = d->terms.number + 1;
	d->terms = *terms;
	d->terms.number = number;
	if (!begin(d)) // which takes them
		d->is_lost = true;
}

void draft_reset(struct draft *d)
{
	lb_snapshot_free(d->next);
	d->next = NULL;
	d->has_frontends = d->is_lost = false;
}

void draft_reclaim(struct draft *d)
{
	d->n_live = lb_slot_reclaim(d->slot);
}

static bool must_hold(struct draft *d, uint64_t now_ns)
{
	if (d->n_live < MAX_LIVE)
		return false;
	if (d->held_since_ns == 0)
		d->held_since_ns = now_ns;
	return now_ns - d->held_since_ns < HOLD_NS;
}

void draft_publish(struct draft *d, uint64_t now_ns)
{
	if (!d->next || d->is_lost || must_hold(d, now_ns))
		return;
	lb_slot_publish(d->slot, d->next);
	d->next = NULL;
	d->has_frontends = false;
	d->held_since_ns = 0;
	d->n_published++;
	d->published_ns = now_ns;
}
