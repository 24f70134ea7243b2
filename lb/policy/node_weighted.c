// SPDX-License-Identifier: Apache-2.0
// weighted_target over the localities of one priority, as wrr_locality makes it (gRFC A28;
// WT-01 to WT-10, A52-L01, A27-L02, A52-L03): each pick draws a locality by weight among
// the READY ones, then asks its policy. A locality that leaves is kept for 15 minutes with its
// connections.
#include "lb/base/container_of.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/pick/picker.h"
#include "lb/policy/dump.h"
#include "lb/policy/graceful.h"
#include "lb/policy/node_ops.h"
#include "lb/policy/weighted_picker.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define KEPT_NS (15 * 60 * NS_PER_SECOND) // WT-02
#define RETRY_NS NS_PER_SECOND // after running out of memory

struct weighted;

struct child {
	struct weighted *owner;
	struct lb_graceful policy;
	struct lb_picker *picker; // counted; the newest; NULL = has not reported
	uint64_t leaves_ns; // the end of being kept
	uint32_t weight;
	uint8_t state; // enum lb_state, as WT-07 counts it
	bool in_use; // else it is kept for its return
	bool idle; // reported IDLE last (WT-05)
	char name[];
};

struct weighted {
	struct lb_node base;
	struct child **children; // owned; sorted by name, those kept among them
	uint32_t n;
	uint8_t published; // enum lb_state
	bool is_published; // and nothing that the picker holds has changed since
	bool updating;
};

static uint64_t now(const struct weighted *w)
{
	return twheel_now(w->base.env->wheel);
}

static int compare(const void *a, const void *b)
{
	return strcmp((*(struct child *const *)a)->name, (*(struct child *const *)b)->name);
}

// Its index; UINT32_MAX = absent.
static uint32_t find(const struct weighted *w, struct str name)
{
	uint32_t low = 0, high = w->n;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		struct str own = str_from(w->children[middle]->name);
		int order = memcmp(own.p, name.p, own.len < name.len ? own.len : name.len);
		if (order == 0)
			order = (own.len > name.len) - (own.len < name.len);
		if (order == 0)
			return middle;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return UINT32_MAX;
}

static void child_free(struct child *c)
{
	if (!c)
		return;
	lb_graceful_fini(&c->policy);
	lb_picker_put(c->picker);
	free(c);
}

// WT-05, WT-08.
static enum lb_state aggregate(const struct weighted *w)
{
	bool is_in[LB_TRANSIENT_FAILURE + 1] = {false};
	for (uint32_t i = 0; i < w->n; i++)
		if (w->children[i]->in_use)
			is_in[w->children[i]->state] = true;
	if (is_in[LB_READY])
		return LB_READY;
	if (is_in[LB_CONNECTING])
		return LB_CONNECTING;
	return is_in[LB_IDLE] ? LB_IDLE : LB_TRANSIENT_FAILURE;
}

static struct lb_picker *no_targets(const struct weighted *w)
{
	char text[512];
	const char *note = w->base.env->note;
	snprintf(text, sizeof(text), "cluster %s: no locality has usable endpoints%s%s%s",
		w->base.env->cluster, *note ? " (" : "", note, *note ? ")" : "");
	return lb_picker_new_fail(text);
}

// Those in this state, which is READY (WT-01) or TRANSIENT_FAILURE (WT-06): of these, whoever tries
// something new makes its share of the requests wait.
static struct lb_picker *draw_among(const struct weighted *w, enum lb_state state)
{
	struct lb_weighted_picker_item *list = calloc((size_t)w->n + 1, sizeof(*list));
	if (!list)
		return NULL;
	uint32_t n = 0;
	for (uint32_t i = 0; i < w->n; i++) {
		const struct child *c = w->children[i];
		if (c->in_use && c->state == state)
			list[n++] = (struct lb_weighted_picker_item){c->picker, c->weight};
	}
	struct lb_picker *p = n ? lb_weighted_picker_new(list, n) : no_targets(w);
	free(list);
	return p;
}

static void publish(struct weighted *w)
{
	enum lb_state state = aggregate(w);
	bool queues = state == LB_CONNECTING || state == LB_IDLE;
	if (w->is_published && state == w->published && queues)
		return;
	struct lb_picker *p = queues ? lb_picker_queue() : draw_among(w, state);
	w->is_published = p && lb_node_publish(&w->base, state, p) == 0;
	if (w->is_published)
		w->published = (uint8_t)state;
	else
		lb_node_again(&w->base, now(w) + RETRY_NS);
}

// Asks for its turn when the first of those kept is to leave.
static void plan_leave(struct weighted *w)
{
	uint64_t first_ns = UINT64_MAX;
	for (uint32_t i = 0; i < w->n; i++)
		if (!w->children[i]->in_use && w->children[i]->leaves_ns < first_ns)
			first_ns = w->children[i]->leaves_ns;
	if (first_ns != UINT64_MAX)
		lb_node_again(&w->base, first_ns);
}

static void drop_leaving(struct weighted *w)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < w->n; i++) {
		struct child *c = w->children[i];
		if (c->in_use || c->leaves_ns > now(w))
			w->children[n++] = c;
		else
			child_free(c);
	}
	w->n = n;
}

// Those whose time has come leave; what could not be published; and IDLE children: these not from
// inside their report.
static void weighted_again(struct lb_node *base)
{
	struct weighted *w = CONTAINER_OF(base, struct weighted, base);
	drop_leaving(w);
	plan_leave(w);
	if (!w->is_published)
		publish(w);
	for (uint32_t i = 0; i < w->n; i++)
		if (w->children[i]->in_use && w->children[i]->idle)
			lb_graceful_exit_idle(&w->children[i]->policy);
}

// Its picker is kept anew whatever happens above: the draw that goes round is made here.
static int on_report(struct lb_graceful *g, enum lb_state state, struct lb_picker *picker)
{
	struct child *c = CONTAINER_OF(g, struct child, policy);
	struct weighted *w = c->owner;
	enum lb_state before = (enum lb_state)c->state;
	c->idle = state == LB_IDLE;
	if (c->idle && c->in_use)
		lb_node_again(&w->base, now(w));
	lb_picker_put(c->picker);
	c->picker = picker;
	if (before != LB_TRANSIENT_FAILURE || state == LB_READY)
		c->state = (uint8_t)state; // WT-07: it counts as failing until READY, picks or not
	if (!c->in_use || w->updating)
		return 0;
	if (before == LB_READY || state == LB_READY || aggregate(w) == LB_TRANSIENT_FAILURE)
		w->is_published = false;
	if (!w->is_published || aggregate(w) != w->published)
		publish(w);
	return 0;
}

static struct child *child_new(struct weighted *w, struct str name)
{
	struct child *c = calloc(1, offsetof(struct child, name) + name.len + 1);
	if (!c)
		return NULL;
	c->owner = w;
	c->state = LB_CONNECTING; // WT-07
	if (name.len)
		memcpy(c->name, name.p, name.len);
	lb_graceful_init(&c->policy, on_report);
	return c;
}

// Update.

static bool is_target(const struct lb_node_locality *l)
{
	return l->weight > 0 && l->n_members > 0; // A27-L02
}

static int give(struct child *c, const struct lb_node_config *all, const struct lb_node_locality *l)
{
	const struct lb_node_config own = {all->spec->child, l, 1};
	return lb_graceful_update(&c->policy, c->owner->base.env, &own);
}

// What an update will make of the node.
struct plan {
	struct child **children; // [n]: all old ones, then the new
	uint32_t n, n_old;
	uint32_t *target_of; // [n_localities]: index in children; UINT32_MAX = none
};

static void plan_drop(struct plan *p)
{
	for (uint32_t i = p->n_old; p->children && i < p->n; i++)
		child_free(p->children[i]);
	free(p->children);
	free(p->target_of);
}

static int plan_make(struct weighted *w, const struct lb_node_config *config, struct plan *p)
{
	*p = (struct plan){.n = w->n, .n_old = w->n};
	p->children = calloc((size_t)w->n + config->n_localities + 1, sizeof(struct child *));
	p->target_of = calloc((size_t)config->n_localities + 1, sizeof(*p->target_of));
	if (!p->children || !p->target_of)
		return -ENOMEM;
	if (w->n)
		memcpy(p->children, w->children, w->n * sizeof(struct child *));
	for (uint32_t i = 0; i < config->n_localities; i++) {
		const struct lb_node_locality *l = &config->localities[i];
		p->target_of[i] = UINT32_MAX;
		if (!is_target(l))
			continue;
		p->target_of[i] = find(w, l->name);
		if (p->target_of[i] != UINT32_MAX)
			continue;
		struct child *c = child_new(w, l->name);
		if (!c)
			return -ENOMEM;
		p->target_of[i] = p->n;
		p->children[p->n++] = c;
	}
	return 0;
}

// The new ones first: while one of them fails, nothing that serves has changed.
static int plan_update(const struct plan *p, const struct lb_node_config *config)
{
	int err = 0;
	for (int old = 0; old <= 1; old++) {
		for (uint32_t i = 0; !err && i < config->n_localities; i++) {
			uint32_t target = p->target_of[i];
			if (target != UINT32_MAX && (target < p->n_old) == old)
				err = give(p->children[target], config, &config->localities[i]);
		}
	}
	return err;
}

static void plan_commit(
	struct weighted *w, const struct plan *p, const struct lb_node_config *config)
{
	for (uint32_t i = 0; i < p->n; i++) {
		struct child *c = p->children[i];
		if (c->in_use)
			c->leaves_ns = now(w) + KEPT_NS;
		c->in_use = false;
	}
	for (uint32_t i = 0; i < config->n_localities; i++) {
		if (p->target_of[i] == UINT32_MAX)
			continue;
		struct child *c = p->children[p->target_of[i]];
		c->in_use = true;
		c->weight = config->localities[i].weight;
		if (c->idle)
			lb_node_again(&w->base, now(w));
	}
	free(w->children);
	free(p->target_of);
	w->children = p->children;
	w->n = p->n;
	qsort(w->children, w->n, sizeof(struct child *), compare);
	plan_leave(w);
}

static int weighted_update(struct lb_node *base, const struct lb_node_config *config)
{
	struct weighted *w = CONTAINER_OF(base, struct weighted, base);
	struct plan plan;
	w->updating = true; // WT-09
	int err = plan_make(w, config, &plan);
	if (!err)
		err = plan_update(&plan, config);
	if (err)
		plan_drop(&plan);
	else
		plan_commit(w, &plan, config);
	w->updating = false;
	if (err && !w->is_published)
		return err; // nothing has been said yet, or it is tried again anyhow
	w->is_published = false;
	publish(w);
	return err;
}

static void weighted_exit_idle(struct lb_node *base)
{
	struct weighted *w = CONTAINER_OF(base, struct weighted, base);
	for (uint32_t i = 0; i < w->n; i++)
		if (w->children[i]->in_use)
			lb_graceful_exit_idle(&w->children[i]->policy);
}

static void weighted_dump(const struct lb_node *base, struct lb_dump *d)
{
	const struct weighted *w = CONTAINER_OF(base, struct weighted, base);
	lb_dump_enter(d, "weighted_target", aggregate(w));
	for (uint32_t i = 0; i < w->n; i++) {
		const struct child *c = w->children[i];
		lb_dump_enter(d, c->name, (enum lb_state)c->state);
		if (c->in_use)
			lb_dump_number(d, "weight", c->weight);
		else
			lb_dump_number(d, "kept_s", (c->leaves_ns - now(w)) / NS_PER_SECOND);
		lb_graceful_dump(&c->policy, d);
		lb_dump_leave(d);
	}
	lb_dump_leave(d);
}

static void weighted_free(struct lb_node *base)
{
	struct weighted *w = CONTAINER_OF(base, struct weighted, base);
	for (uint32_t i = 0; i < w->n; i++)
		child_free(w->children[i]);
	free(w->children);
	free(w);
}

static struct lb_node *weighted_new(struct lb_node_env *env, struct lb_node_parent parent)
{
	struct weighted *w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->base = (struct lb_node){&lb_node_weighted, env, parent};
	return &w->base;
}

const struct lb_node_ops lb_node_weighted = {
	.name = "wrr_locality", // which it is the weighted_target of
	.new = weighted_new,
	.update = weighted_update,
	.exit_idle = weighted_exit_idle,
	.dump = weighted_dump,
	.again = weighted_again,
	.free = weighted_free,
};
