// SPDX-License-Identifier: Apache-2.0
#include "lb/policy/priority.h"

#include "lb/base/container_of.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/pick/picker.h"
#include "lb/policy/dump.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define FAILOVER_NS (10 * NS_PER_SECOND) // A56-P03
#define KEPT_NS (15 * 60 * NS_PER_SECOND) // A56-P08
#define RETRY_NS NS_PER_SECOND // after running out of memory

struct lb_priority_child {
	struct lb_priority *owner;
	const char *name; // its rank's
	void *child; // owned; NULL while it is made
	struct lb_picker *picker; // counted; NULL = has not reported
	enum lb_state state;
	bool failed_last; // TRANSIENT_FAILURE seen later than READY and IDLE (A56-P06)
	struct twheel_timer failover;
	struct twheel_timer leave; // armed = deactivated (A56-P08)
};

struct rank {
	const char *name;
	struct lb_priority_child *child; // owned; NULL = not made
};

struct lb_priority {
	const struct lb_priority_ops *ops;
	void *ctx;
	struct twheel *wheel;
	struct rank *ranks; // owned; the names lie behind them
	uint32_t n;
	uint8_t published_state; // enum lb_state
	bool has_config;
	bool choosing; // or updating: reports are only noted
	bool again; // something was noted
	struct lb_priority_child *current; // NULL = none
	struct lb_picker *fail; // counted; of an empty list; else NULL
	struct lb_picker *published; // counted; NULL = nothing yet
	struct twheel_timer retry;
};

static void choose(struct lb_priority *);

// Without children. NULL = out of memory.
static struct rank *ranks_new(const char *const *names, uint32_t n)
{
	size_t size = n * sizeof(struct rank);
	for (uint32_t i = 0; i < n; i++)
		size += strlen(names[i]) + 1;
	struct rank *ranks = malloc(size ? size : 1);
	char *text = (char *)(ranks + n);
	for (uint32_t i = 0; ranks && i < n; i++) {
		size_t len = strlen(names[i]) + 1;
		ranks[i] = (struct rank){.name = memcpy(text, names[i], len)};
		text += len;
	}
	return ranks;
}

// Looks at the rank of this number first. UINT32_MAX = absent.
static uint32_t find_from(const struct lb_priority *p, uint32_t first, const char *name)
{
	for (uint32_t i = 0; i < p->n; i++) {
		uint32_t at = (first + i) % p->n;
		if (strcmp(p->ranks[at].name, name) == 0)
			return at;
	}
	return UINT32_MAX;
}

// Children.

static void child_free(struct lb_priority_child *c)
{
	struct lb_priority *p = c->owner;
	if (p->current == c)
		p->current = NULL;
	twheel_cancel(p->wheel, &c->failover);
	twheel_cancel(p->wheel, &c->leave);
	if (c->child)
		p->ops->free(p->ctx, c->child);
	lb_picker_put(c->picker);
	free(c);
}

static void rank_clear(struct rank *r)
{
	struct lb_priority_child *c = r->child;
	r->child = NULL;
	if (c)
		child_free(c);
}

// A56-P05: it stays CONNECTING.
static void failover_fired(struct twheel_timer *t)
{
	choose(CONTAINER_OF(t, struct lb_priority_child, failover)->owner);
}

static void leave_fired(struct twheel_timer *t)
{
	struct lb_priority_child *c = CONTAINER_OF(t, struct lb_priority_child, leave);
	struct rank *r = c->owner->ranks;
	while (r->child != c)
		r++;
	rank_clear(r);
}

// A56-P01, A56-P03. False = out of memory.
static bool make_child(struct lb_priority *p, struct rank *r)
{
	struct lb_priority_child *c = calloc(1, sizeof(*c));
	if (!c)
		return false;
	*c = (struct lb_priority_child){.owner = p,
		.name = r->name,
		.state = LB_CONNECTING,
		.failover = {.fire = failover_fired},
		.leave = {.fire = leave_fired}};
	r->child = c;
	c->child = p->ops->create(p->ctx, c, c->name);
	if (c->child) {
		twheel_arm(p->wheel, &c->failover, twheel_now(p->wheel) + FAILOVER_NS);
		if (p->ops->update(p->ctx, c->child, c->name) == 0)
			return true;
	}
	rank_clear(r);
	return false;
}

void lb_priority_report(struct lb_priority_child *c, enum lb_state state, struct lb_picker *picker)
{
	struct lb_priority *p = c->owner;
	bool begins = state == LB_CONNECTING && c->state != LB_CONNECTING;
	lb_picker_put(c->picker);
	c->picker = picker;
	c->state = state;
	if (state != LB_CONNECTING) {
		twheel_cancel(p->wheel, &c->failover); // A56-P04
		c->failed_last = state == LB_TRANSIENT_FAILURE;
	} else if (begins && !c->failed_last && !twheel_armed(&c->failover)) { // A56-P06
		twheel_arm(p->wheel, &c->failover, twheel_now(p->wheel) + FAILOVER_NS);
	}
	choose(p);
}

// The choice.

static void deactivate_below(struct lb_priority *p, uint32_t rank)
{
	for (uint32_t i = rank + 1; i < p->n; i++) {
		struct lb_priority_child *c = p->ranks[i].child;
		if (c && !twheel_armed(&c->leave))
			twheel_arm(p->wheel, &c->leave, twheel_now(p->wheel) + KEPT_NS);
	}
}

// A56-P02, A56-P03, A56-P07. NULL = the list is empty. False = no memory for the one whose turn it
// is.
static bool find_current(struct lb_priority *p, struct lb_priority_child **ret)
{
	struct lb_priority_child *connecting = NULL, *last = NULL;
	for (uint32_t i = 0; i < p->n; i++) {
		struct rank *r = &p->ranks[i];
		if (!r->child && !make_child(p, r))
			return false;
		struct lb_priority_child *c = r->child;
		twheel_cancel(p->wheel, &c->leave);
		*ret = c;
		if (c->state == LB_READY || c->state == LB_IDLE) {
			deactivate_below(p, i);
			return true;
		}
		if (twheel_armed(&c->failover))
			return true;
		if (!connecting && c->state == LB_CONNECTING)
			connecting = c;
		last = c;
	}
	*ret = connecting ? connecting : last;
	return true;
}

// What the chosen one says, unless that is what the parent has (A56-P12).
static int publish(struct lb_priority *p)
{
	enum lb_state state = LB_TRANSIENT_FAILURE;
	struct lb_picker *picker = p->fail;
	if (p->current) {
		bool waits = !p->current->picker;
		state = waits ? LB_CONNECTING : p->current->state;
		picker = waits ? lb_picker_queue() : p->current->picker;
	}
	if (!picker)
		return -ENOMEM;
	if (picker == p->published && state == p->published_state)
		return 0;
	int err = p->ops->publish(p->ctx, state, lb_picker_get(picker));
	if (err)
		return err;
	lb_picker_put(p->published);
	p->published = lb_picker_get(picker);
	p->published_state = (uint8_t)state;
	return 0;
}

static bool choose_once(struct lb_priority *p)
{
	struct lb_priority_child *c = NULL;
	if (!find_current(p, &c))
		return false;
	p->current = c;
	return publish(p) == 0;
}

static void choose(struct lb_priority *p)
{
	p->again = true;
	if (p->choosing || !p->has_config)
		return;
	p->choosing = true;
	bool done = true;
	while (p->again) {
		p->again = false;
		done = choose_once(p);
	}
	p->choosing = false;
	if (done)
		twheel_cancel(p->wheel, &p->retry);
	else // the parent has what it had meanwhile
		twheel_arm(p->wheel, &p->retry, twheel_now(p->wheel) + RETRY_NS);
}

static void retry_fired(struct twheel_timer *t)
{
	choose(CONTAINER_OF(t, struct lb_priority, retry));
}

// The outside.

struct lb_priority *lb_priority_new(
	const struct lb_priority_ops *ops, void *ctx, struct twheel *wheel)
{
	struct lb_priority *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	*p = (struct lb_priority){.ops = ops,
		.ctx = ctx,
		.wheel = wheel,
		.published_state = LB_CONNECTING,
		.retry = {.fire = retry_fired}};
	return p;
}

void lb_priority_free(struct lb_priority *p)
{
	if (!p)
		return;
	p->choosing = true; // what children still say changes nothing
	twheel_cancel(p->wheel, &p->retry);
	for (uint32_t i = 0; i < p->n; i++)
		rank_clear(&p->ranks[i]);
	free(p->ranks);
	lb_picker_put(p->published);
	lb_picker_put(p->fail);
	free(p);
}

// A56-P11, A56-P12. Most lists name whom the one before named, in the same order but for a few.
static int update_children(struct lb_priority *p, struct rank *ranks, uint32_t n)
{
	int err = 0;
	for (uint32_t i = 0, from = 0; !err && i < n; i++) {
		uint32_t old = find_from(p, from, ranks[i].name);
		if (old == UINT32_MAX)
			continue;
		from = old + 1;
		ranks[i].child = p->ranks[old].child;
		if (ranks[i].child)
			err = p->ops->update(p->ctx, ranks[i].child->child, ranks[i].name);
	}
	return err;
}

// A56-P10
static void take_ranks(struct lb_priority *p, struct rank *ranks, uint32_t n)
{
	struct rank *old = p->ranks;
	uint32_t n_old = p->n;
	p->ranks = ranks;
	p->n = n;
	p->current = NULL;
	for (uint32_t i = 0; i < n; i++)
		if (ranks[i].child)
			ranks[i].child->name = ranks[i].name;
	for (uint32_t i = 0; i < n_old; i++) {
		struct lb_priority_child *c = old[i].child;
		if (c && c->name == old[i].name)
			child_free(c);
	}
	free(old);
}

int lb_priority_update(
	struct lb_priority *p, const char *const *names, uint32_t n, const char *fail_text)
{
	struct rank *ranks = ranks_new(names, n);
	struct lb_picker *fail = n ? NULL : lb_picker_new_fail(fail_text);
	int err = ranks && (n || fail) ? 0 : -ENOMEM;
	p->choosing = true;
	if (!err)
		err = update_children(p, ranks, n);
	if (!err) {
		lb_picker_put(p->fail);
		p->fail = fail;
		p->has_config = true;
		take_ranks(p, ranks, n);
	} else {
		free(ranks);
		lb_picker_put(fail);
	}
	p->choosing = false;
	choose(p);
	return err;
}

void lb_priority_exit_idle(struct lb_priority *p)
{
	if (p->current)
		p->ops->exit_idle(p->ctx, p->current->child);
}

void *lb_priority_find(const struct lb_priority *p, const char *name)
{
	uint32_t at = find_from(p, 0, name);
	struct lb_priority_child *c = at == UINT32_MAX ? NULL : p->ranks[at].child;
	return c ? c->child : NULL;
}

const char *lb_priority_child_name(const struct lb_priority_child *c)
{
	return c->name;
}

enum lb_state lb_priority_state(const struct lb_priority *p)
{
	return (enum lb_state)p->published_state;
}

static void dump_child(
	const struct lb_priority *p, const struct lb_priority_child *c, struct lb_dump *d)
{
	lb_dump_enter(d, c->name, c->state);
	if (c == p->current)
		lb_dump_text(d, "current", "yes");
	lb_dump_timer(d, "failover_ms", p->wheel, &c->failover);
	lb_dump_timer(d, "kept_ms", p->wheel, &c->leave);
	const char *error = lb_picker_error(c->picker);
	if (error)
		lb_dump_text(d, "error", error);
	p->ops->dump(p->ctx, c->child, d);
	lb_dump_leave(d);
}

void lb_priority_dump(const struct lb_priority *p, struct lb_dump *d)
{
	lb_dump_enter(d, "priority", (enum lb_state)p->published_state);
	for (uint32_t i = 0; i < p->n; i++) {
		if (p->ranks[i].child) {
			dump_child(p, p->ranks[i].child, d);
			continue;
		}
		d->enter(d, p->ranks[i].name, "");
		lb_dump_leave(d);
	}
	lb_dump_leave(d);
}
