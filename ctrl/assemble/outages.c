// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/outages.h"

#include "lb/base/gcra.h"
#include "lb/base/log.h"
#include "lb/cluster.h"
#include "lb/pick/limits.h"

#include <stdbool.h>
#include <stdlib.h>

// So that one that flaps does not take all the room that lines are kept in.
static const struct gcra_limit of_one = {10 * NS_PER_SECOND, 40 * NS_PER_SECOND};
static const struct gcra_limit of_all = GCRA_LIMIT(100, 10);

struct outage {
	struct lb_cluster *owed; // counted: of which a line is due; NULL = none
	struct gcra lines;
	bool has_served, is_failing;
	bool is_told; // that it fails
	bool is_listed;
};

struct outages {
	struct gcra lines;
	uint32_t n; // ids; what is owed nothing any more leaves with the next look
	uint32_t ids[LB_MAX_CLUSTERS];
	struct outage of[LB_MAX_CLUSTERS]; // by id
};

struct outages *outages_new(void)
{
	return calloc(1, sizeof(struct outages));
}

void outages_free(struct outages *o)
{
	for (uint32_t i = 0; o && i < o->n; i++)
		lb_cluster_put(o->of[o->ids[i]].owed);
	free(o);
}

static void owe(struct outage *c, struct lb_cluster *object)
{
	struct lb_cluster *before = c->owed;
	c->owed = object ? lb_cluster_get(object) : NULL;
	lb_cluster_put(before);
}

void outages_forget(struct outages *o, uint32_t id)
{
	struct outage *c = &o->of[id];
	owe(c, NULL);
	*c = (struct outage){.is_listed = c->is_listed};
}

void outages_note(struct outages *o, struct lb_cluster *object)
{
	struct outage *c = &o->of[object->id];
	if (object->is_leaving) { // what becomes of it is of no interest
		outages_forget(o, object->id);
		return;
	}
	if (object->state == LB_READY) {
		c->has_served = true;
		c->is_failing = false;
	} else if (object->state == LB_TRANSIENT_FAILURE) {
		c->is_failing = c->has_served;
	} else { // neither yet
		return;
	}
	bool is_due = c->is_failing != c->is_told;
	owe(c, is_due ? object : NULL);
	if (is_due && !c->is_listed) {
		c->is_listed = true;
		o->ids[o->n++] = object->id;
	}
}

// True = nothing is owed any more.
static bool tell(struct outages *o, struct outage *c, uint64_t now_ns,
	const char *(*why)(const void *ctx, const struct lb_cluster *), const void *ctx)
{
	if (!c->owed)
		return true;
	if (gcra_is_spent(&c->lines, &of_one, now_ns))
		return false;
	(void)gcra_charge(&c->lines, &of_one, now_ns);
	(void)gcra_charge(&o->lines, &of_all, now_ns);
	if (c->is_failing)
		log_warn("cluster fails", "cluster=%s cause=%s", log_quote(c->owed->name),
			log_quote(why(ctx, c->owed)));
	else
		log_info("cluster serves again", "cluster=%s", log_quote(c->owed->name));
	c->is_told = c->is_failing;
	owe(c, NULL);
	return true;
}

void outages_tell(struct outages *o, uint64_t now_ns,
	const char *(*why)(const void *ctx, const struct lb_cluster *), const void *ctx)
{
	for (uint32_t i = 0; i < o->n && !gcra_is_spent(&o->lines, &of_all, now_ns);) {
		struct outage *c = &o->of[o->ids[i]];
		if (!tell(o, c, now_ns, why, ctx)) {
			i++;
			continue;
		}
		c->is_listed = false;
		o->ids[i] = o->ids[--o->n]; // the last, which is looked at next
	}
}
