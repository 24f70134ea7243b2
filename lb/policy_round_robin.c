// SPDX-License-Identifier: Apache-2.0
// round_robin (lb-tree.md RR-01..RR-04): connects every endpoint and keeps it so; picks walk the
// READY ones in a cycle. The place in the cycle belongs to the picking worker (MC-09).
#include "lb/base/check.h"
#include "lb/base/twheel.h"
#include "lb/picker.h"
#include "lb/policy.h"
#include "lb/subchannel.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_STATES 4
// Guesses at another endpoint, when this worker lacks a connection to the one whose turn it is.
// Guessing spreads the load that walking on would give to the neighbour.
#define N_GUESSES 8
#define RETRY_NS 1000000000ull // after running out of memory

struct picker {
	struct lb_picker base;
	uint32_t n;
	struct lb_endpoint *endpoints[]; // counted
};

struct list;

struct item {
	struct lb_subchannel_watcher watcher;
	struct list *list;
	struct lb_subchannel *subchannel; // counted
	enum lb_state state; // as RR-03 counts it
};

// The endpoints of one update.
struct list {
	struct round_robin *policy;
	bool is_open; // built: its items may act
	uint32_t n;
	uint32_t n_in[N_STATES];
	struct item items[];
};

struct round_robin {
	struct lb_policy base;
	struct lb_policy_helper helper;
	struct list *current; // owned; NULL before the first update
	struct list *pending; // owned; waits for its turn (RR-04)
	char *note; // owned: resolution note of the newest list
	char last_error[192]; // of the last attempt that failed
	enum lb_state published;
	bool is_published; // and nothing that the picker holds has changed since
	struct twheel_timer retry; // of what could not be published
};

static bool has_connection(const struct lb_pick_ctx *ctx, const struct lb_endpoint *e)
{
	return ctx->ready[e->id / 64] >> (e->id % 64) & 1;
}

static struct lb_endpoint *find_connected(const struct picker *p, struct lb_pick_ctx *ctx)
{
	for (int i = 0; i < N_GUESSES; i++) {
		struct lb_endpoint *e = p->endpoints[rand_below(ctx->rand, p->n)];
		if (has_connection(ctx, e))
			return e;
	}
	uint32_t start = (uint32_t)rand_below(ctx->rand, p->n);
	for (uint32_t i = 0; i < p->n; i++) {
		uint32_t at = start + i < p->n ? start + i : start + i - p->n;
		if (has_connection(ctx, p->endpoints[at]))
			return p->endpoints[at];
	}
	return NULL;
}

static struct lb_pick pick(const struct lb_picker *base, struct lb_pick_ctx *ctx)
{
	const struct picker *p = (const struct picker *)base;
	uint32_t at = *ctx->position;
	if (at >= p->n)
		at %= p->n;
	*ctx->position = at + 1;
	struct lb_endpoint *turn = p->endpoints[at];
	if (has_connection(ctx, turn))
		return (struct lb_pick){.kind = LB_PICK_ENDPOINT, .endpoint = turn};
	struct lb_endpoint *other = find_connected(p, ctx); // MC-04
	if (!other)
		return (struct lb_pick){.kind = LB_PICK_QUEUE, .endpoint = turn};
	return (struct lb_pick){.kind = LB_PICK_ENDPOINT, .endpoint = other, .want = turn};
}

static void picker_free(struct lb_picker *base)
{
	struct picker *p = (struct picker *)base;
	for (uint32_t i = 0; i < p->n; i++)
		lb_endpoint_put(p->endpoints[i]->table, p->endpoints[i]);
	free(p);
}

static struct lb_picker *picker_new(const struct list *l)
{
	struct picker *p = malloc(sizeof(*p) + l->n_in[LB_READY] * sizeof(struct lb_endpoint *));
	if (!p)
		return NULL;
	p->base = (struct lb_picker){1, pick, picker_free};
	p->n = 0;
	for (uint32_t i = 0; i < l->n; i++)
		if (l->items[i].state == LB_READY)
			p->endpoints[p->n++] = lb_endpoint_get_again(
				lb_subchannel_endpoint(l->items[i].subchannel));
	return &p->base;
}

// ERR-01: cluster, last connect error with its address, resolution note.
static struct lb_picker *fail_picker_new(const struct round_robin *rr)
{
	char text[640];
	const char *note = rr->note;
	if (rr->current->n == 0)
		snprintf(text, sizeof(text), "cluster %s: no endpoints%s%s%s", rr->helper.name,
			*note ? " (" : "", note, *note ? ")" : "");
	else
		snprintf(text, sizeof(text),
			"cluster %s: cannot connect to any of %u endpoints, last error: %s%s%s%s",
			rr->helper.name, rr->current->n, rr->last_error, *note ? " (" : "", note,
			*note ? ")" : "");
	return lb_picker_new_fail(text);
}

// RR-03; an empty list is TRANSIENT_FAILURE (RR-04).
static enum lb_state aggregate(const struct list *l)
{
	if (l->n_in[LB_READY])
		return LB_READY;
	return l->n_in[LB_CONNECTING] || l->n_in[LB_IDLE] ? LB_CONNECTING : LB_TRANSIENT_FAILURE;
}

static void publish(struct round_robin *rr)
{
	enum lb_state state = aggregate(rr->current);
	if (rr->is_published && state == rr->published)
		return;
	struct lb_picker *p;
	if (state == LB_READY)
		p = picker_new(rr->current);
	else if (state == LB_CONNECTING)
		p = lb_picker_new_queue();
	else
		p = fail_picker_new(rr);
	rr->is_published = p && rr->helper.publish(rr->helper.ctx, state, p) == 0;
	twheel_cancel(rr->helper.wheel, &rr->retry);
	if (rr->is_published)
		rr->published = state;
	else // the old picker stays meanwhile
		twheel_arm(rr->helper.wheel, &rr->retry, twheel_now(rr->helper.wheel) + RETRY_NS);
}

static void retry_fired(struct twheel_timer *t)
{
	publish((struct round_robin *)((char *)t - offsetof(struct round_robin, retry)));
}

static void list_free(struct list *l)
{
	if (!l)
		return;
	struct lb_policy_helper *helper = &l->policy->helper;
	for (uint32_t i = 0; i < l->n; i++) {
		lb_subchannel_unwatch(l->items[i].subchannel, &l->items[i].watcher);
		helper->subchannel_put(helper->ctx, l->items[i].subchannel);
	}
	free(l);
}

// RR-04. Every item of ours has reported as soon as it is in the list.
static bool pending_takes_over(const struct round_robin *rr)
{
	const struct list *pending = rr->pending;
	return pending &&
	       (!rr->current || rr->current->n_in[LB_READY] == 0 || pending->n_in[LB_READY] > 0 ||
		       pending->n_in[LB_TRANSIENT_FAILURE] == pending->n);
}

static void settle(struct round_robin *rr)
{
	struct list *old = NULL;
	if (pending_takes_over(rr)) {
		old = rr->current;
		rr->current = rr->pending;
		rr->pending = NULL;
		rr->is_published = false;
	}
	publish(rr);
	list_free(old);
}

static enum lb_state counted_state(const struct lb_subchannel *s)
{
	return lb_subchannel_failing(s) ? LB_TRANSIENT_FAILURE : lb_subchannel_state(s);
}

static void item_count(struct item *item)
{
	struct list *l = item->list;
	struct round_robin *rr = l->policy;
	enum lb_state state = counted_state(item->subchannel);
	bool ready_changed = (state == LB_READY) != (item->state == LB_READY);
	l->n_in[item->state]--;
	l->n_in[state]++;
	item->state = state;
	if (state == LB_TRANSIENT_FAILURE)
		snprintf(rr->last_error, sizeof(rr->last_error), "%s",
			lb_subchannel_last_error(item->subchannel));
	// The picker names the READY ones, or the last error.
	if (l == rr->current && (ready_changed || (state == LB_TRANSIENT_FAILURE &&
							  rr->published == LB_TRANSIENT_FAILURE)))
		rr->is_published = false;
}

static void on_state(struct lb_subchannel_watcher *w, enum lb_state state)
{
	struct item *item = (void *)((char *)w - offsetof(struct item, watcher));
	struct list *l = item->list;
	item_count(item);
	if (!l->is_open)
		return;
	if (state == LB_IDLE)
		lb_subchannel_request(item->subchannel); // RR-01; comes back here as CONNECTING
	else
		settle(l->policy); // the list and its item may be gone after this
}

static bool item_init(struct list *l, const struct lb_policy_endpoint *e)
{
	struct lb_policy_helper *helper = &l->policy->helper;
	struct lb_subchannel *s = helper->subchannel_get(helper->ctx, &e->addr);
	if (!s)
		return false;
	struct item *item = &l->items[l->n++];
	*item = (struct item){.watcher = {.on_state = on_state}, .list = l, .subchannel = s};
	l->n_in[LB_IDLE]++;
	lb_subchannel_watch(s, &item->watcher);
	item_count(item);
	return true;
}

static struct list *list_new(struct round_robin *rr, const struct lb_policy_config *config)
{
	struct list *l = malloc(sizeof(*l) + config->n_endpoints * sizeof(l->items[0]));
	if (!l)
		return NULL;
	*l = (struct list){.policy = rr};
	for (uint32_t i = 0; i < config->n_endpoints; i++) {
		if (!item_init(l, &config->endpoints[i])) {
			list_free(l);
			return NULL;
		}
	}
	for (uint32_t i = 0; i < l->n; i++)
		lb_subchannel_request(l->items[i].subchannel); // RR-01; only those that are IDLE
	l->is_open = true;
	return l;
}

static struct lb_policy *round_robin_new(const struct lb_policy_helper *helper)
{
	struct round_robin *rr = calloc(1, sizeof(*rr));
	char *note = strdup("");
	if (!rr || !note) {
		free(rr);
		free(note);
		return NULL;
	}
	rr->base.ops = &lb_policy_round_robin;
	rr->helper = *helper;
	rr->note = note;
	rr->retry.fire = retry_fired;
	return &rr->base;
}

static int round_robin_update(struct lb_policy *base, const struct lb_policy_config *config)
{
	struct round_robin *rr = (struct round_robin *)base;
	char *note = strdup(config->resolution_note ? config->resolution_note : "");
	struct list *l = note ? list_new(rr, config) : NULL;
	if (!l) {
		free(note);
		return -ENOMEM;
	}
	free(rr->note);
	rr->note = note;
	list_free(rr->pending);
	rr->pending = l;
	settle(rr);
	return 0;
}

static void round_robin_free(struct lb_policy *base)
{
	struct round_robin *rr = (struct round_robin *)base;
	if (!rr)
		return;
	twheel_cancel(rr->helper.wheel, &rr->retry);
	list_free(rr->pending);
	list_free(rr->current);
	free(rr->note);
	free(rr);
}

const struct lb_policy_ops lb_policy_round_robin = {
	.name = "round_robin",
	.new = round_robin_new,
	.update = round_robin_update,
	.free = round_robin_free,
};
