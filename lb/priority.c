// SPDX-License-Identifier: Apache-2.0
#include "lb/priority.h"

#include "lb/base/twheel.h"
#include "lb/dump.h"
#include "lb/picker.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_NS 1000000000ull
#define FAILOVER_NS (10 * SECOND_NS) // P03
#define KEPT_NS (15 * 60 * SECOND_NS) // P08
#define RETRY_NS SECOND_NS // after running out of memory

struct lb_priority_child {
	struct lb_priority_child *next;
	struct lb_priority *owner;
	char *name; // owned
	void *child; // owned
	enum lb_state state;
	struct lb_picker *picker; // counted; NULL = has not reported
	bool failed_last; // TRANSIENT_FAILURE seen later than READY and IDLE (P06)
	struct twheel_timer failover;
	struct twheel_timer leave; // armed = deactivated (P08)
};

struct lb_priority {
	struct lb_priority_env env;
	char **names; // owned
	uint32_t n;
	struct lb_priority_child *children; // owned; in no order
	struct lb_priority_child *current; // NULL = none
	struct lb_picker *queue; // counted: of a child that has not reported
	struct lb_picker *fail; // counted; of an empty list; else NULL
	struct lb_picker *published; // counted; NULL = nothing yet
	enum lb_state published_state;
	bool has_config;
	bool choosing; // or updating: reports are only noted
	bool again; // something was noted
	struct twheel_timer retry;
};

static void choose(struct lb_priority *);

static void names_free(char **names, uint32_t n)
{
	for (uint32_t i = 0; names && i < n; i++)
		free(names[i]);
	free(names);
}

static char **names_copy(const char *const *names, uint32_t n)
{
	char **copy = calloc((size_t)n + 1, sizeof(char *));
	for (uint32_t i = 0; copy && i < n; i++) {
		copy[i] = strdup(names[i]);
		if (!copy[i]) {
			names_free(copy, n);
			return NULL;
		}
	}
	return copy;
}

static struct lb_priority_child *find(const struct lb_priority *p, const char *name)
{
	struct lb_priority_child *c = p->children;
	while (c && strcmp(c->name, name) != 0)
		c = c->next;
	return c;
}

// Children.

static void child_free(struct lb_priority_child *c)
{
	struct lb_priority *p = c->owner;
	struct lb_priority_child **link = &p->children;
	while (*link != c)
		link = &(*link)->next;
	*link = c->next;
	if (p->current == c)
		p->current = NULL;
	twheel_cancel(p->env.wheel, &c->failover);
	twheel_cancel(p->env.wheel, &c->leave);
	if (c->child)
		p->env.free(p->env.ctx, c->child);
	lb_picker_put(c->picker);
	free(c->name);
	free(c);
}

// P05: it stays CONNECTING.
static void failover_fired(struct twheel_timer *t)
{
	choose(((struct lb_priority_child *)((char *)t -
					     offsetof(struct lb_priority_child, failover)))
			->owner);
}

static void leave_fired(struct twheel_timer *t)
{
	child_free((
		struct lb_priority_child *)((char *)t - offsetof(struct lb_priority_child, leave)));
}

// P01, P03. NULL = no memory.
static struct lb_priority_child *child_new(struct lb_priority *p, const char *name)
{
	struct lb_priority_child *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	*c = (struct lb_priority_child){.next = p->children,
		.owner = p,
		.name = strdup(name),
		.state = LB_CONNECTING,
		.failover = {.fire = failover_fired},
		.leave = {.fire = leave_fired}};
	p->children = c;
	if (c->name)
		c->child = p->env.create(p->env.ctx, c, name);
	if (c->child) {
		twheel_arm(p->env.wheel, &c->failover, twheel_now(p->env.wheel) + FAILOVER_NS);
		if (p->env.update(p->env.ctx, c->child, name) == 0)
			return c;
	}
	child_free(c);
	return NULL;
}

void lb_priority_report(struct lb_priority_child *c, enum lb_state state, struct lb_picker *picker)
{
	struct lb_priority *p = c->owner;
	bool begins = state == LB_CONNECTING && c->state != LB_CONNECTING;
	lb_picker_put(c->picker);
	c->picker = picker;
	c->state = state;
	if (state != LB_CONNECTING) {
		twheel_cancel(p->env.wheel, &c->failover); // P04
		c->failed_last = state == LB_TRANSIENT_FAILURE;
	} else if (begins && !c->failed_last && !twheel_armed(&c->failover)) { // P06
		twheel_arm(p->env.wheel, &c->failover, twheel_now(p->env.wheel) + FAILOVER_NS);
	}
	choose(p);
}

// The choice.

static void deactivate_below(struct lb_priority *p, uint32_t rank)
{
	for (uint32_t i = rank + 1; i < p->n; i++) {
		struct lb_priority_child *c = find(p, p->names[i]);
		if (c && !twheel_armed(&c->leave))
			twheel_arm(p->env.wheel, &c->leave, twheel_now(p->env.wheel) + KEPT_NS);
	}
}

// P02, P03, P07. NULL = the list is empty. False = no memory for the one whose turn it is.
static bool find_current(struct lb_priority *p, struct lb_priority_child **ret)
{
	struct lb_priority_child *connecting = NULL, *last = NULL;
	for (uint32_t i = 0; i < p->n; i++) {
		struct lb_priority_child *c = find(p, p->names[i]);
		if (!c)
			c = child_new(p, p->names[i]);
		if (!c)
			return false;
		twheel_cancel(p->env.wheel, &c->leave);
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

// What the chosen one says, unless that is what the parent has (P12).
static int publish(struct lb_priority *p)
{
	enum lb_state state = LB_TRANSIENT_FAILURE;
	struct lb_picker *picker = p->fail;
	if (p->current) {
		state = p->current->picker ? p->current->state : LB_CONNECTING;
		picker = p->current->picker ? p->current->picker : p->queue;
	}
	if (picker == p->published && state == p->published_state)
		return 0;
	int err = p->env.publish(p->env.ctx, state, lb_picker_get(picker));
	if (err)
		return err;
	lb_picker_put(p->published);
	p->published = lb_picker_get(picker);
	p->published_state = state;
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
		twheel_cancel(p->env.wheel, &p->retry);
	else // the parent has what it had meanwhile
		twheel_arm(p->env.wheel, &p->retry, twheel_now(p->env.wheel) + RETRY_NS);
}

static void retry_fired(struct twheel_timer *t)
{
	choose((struct lb_priority *)((char *)t - offsetof(struct lb_priority, retry)));
}

// The outside.

struct lb_priority *lb_priority_new(const struct lb_priority_env *env)
{
	struct lb_priority *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	*p = (struct lb_priority){.env = *env,
		.queue = lb_picker_new_queue(),
		.published_state = LB_CONNECTING,
		.retry = {.fire = retry_fired}};
	if (!p->queue) {
		free(p);
		return NULL;
	}
	return p;
}

void lb_priority_free(struct lb_priority *p)
{
	if (!p)
		return;
	p->choosing = true; // what children still say changes nothing
	twheel_cancel(p->env.wheel, &p->retry);
	while (p->children)
		child_free(p->children);
	names_free(p->names, p->n);
	lb_picker_put(p->published);
	lb_picker_put(p->queue);
	lb_picker_put(p->fail);
	free(p);
}

static bool is_named(const char *const *names, uint32_t n, const char *name)
{
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

// P11, P12.
static int update_children(struct lb_priority *p, const char *const *names, uint32_t n)
{
	int err = 0;
	for (uint32_t i = 0; !err && i < n; i++) {
		struct lb_priority_child *c = find(p, names[i]);
		if (c)
			err = p->env.update(p->env.ctx, c->child, names[i]);
	}
	return err;
}

static void drop_unnamed(struct lb_priority *p)
{
	struct lb_priority_child *next;
	for (struct lb_priority_child *c = p->children; c; c = next) {
		next = c->next;
		if (!is_named((const char *const *)p->names, p->n, c->name))
			child_free(c);
	}
}

int lb_priority_update(
	struct lb_priority *p, const char *const *names, uint32_t n, const char *fail_text)
{
	char **copy = names_copy(names, n);
	struct lb_picker *fail = n ? NULL : lb_picker_new_fail(fail_text);
	int err = copy && (n || fail) ? 0 : -ENOMEM;
	p->choosing = true;
	if (!err)
		err = update_children(p, names, n);
	if (!err) {
		names_free(p->names, p->n);
		lb_picker_put(p->fail);
		p->names = copy;
		p->n = n;
		p->fail = fail;
		p->has_config = true;
		p->current = NULL;
		drop_unnamed(p);
	} else {
		names_free(copy, n);
		lb_picker_put(fail);
	}
	p->choosing = false;
	choose(p);
	return err;
}

void lb_priority_exit_idle(struct lb_priority *p)
{
	if (p->current)
		p->env.exit_idle(p->env.ctx, p->current->child);
}

void *lb_priority_find(const struct lb_priority *p, const char *name)
{
	struct lb_priority_child *c = find(p, name);
	return c ? c->child : NULL;
}

enum lb_state lb_priority_state(const struct lb_priority *p)
{
	return p->published_state;
}

static void dump_child(
	const struct lb_priority *p, const struct lb_priority_child *c, struct lb_dump *d)
{
	uint64_t now = twheel_now(p->env.wheel);
	lb_dump_enter(d, c->name, c->state);
	if (c == p->current)
		lb_dump_text(d, "current", "yes");
	if (twheel_armed(&c->failover))
		lb_dump_number(d, "failover_ms", c->failover.expires_tick - now / 1000000);
	if (twheel_armed(&c->leave))
		lb_dump_number(d, "kept_ms", c->leave.expires_tick - now / 1000000);
	const char *error = lb_picker_error(c->picker);
	if (error)
		lb_dump_text(d, "error", error);
	p->env.dump(p->env.ctx, c->child, d);
	lb_dump_leave(d);
}

void lb_priority_dump(const struct lb_priority *p, struct lb_dump *d)
{
	lb_dump_enter(d, "priority", p->published_state);
	for (uint32_t i = 0; i < p->n; i++) {
		const struct lb_priority_child *c = find(p, p->names[i]);
		if (c) {
			dump_child(p, c, d);
			continue;
		}
		d->enter(d, p->names[i], "");
		lb_dump_leave(d);
	}
	lb_dump_leave(d);
}
