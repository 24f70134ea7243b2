// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/aggregate.h"

#include "lb/policy/dump.h"
#include "lb/policy/priority.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lb_aggregate {
	struct lb_aggregate_env env;
	char *name; // owned
	struct lb_priority *priority; // owned
};

// A leaf and the place that it reports to.
struct child {
	struct lb_aggregate *aggregate;
	struct lb_priority_child *place;
	struct lb_leaf *leaf; // owned
};

static int on_leaf(void *ctx, enum lb_state state, struct lb_picker *picker)
{
	lb_priority_report(((struct child *)ctx)->place, state, picker);
	return 0;
}

static void *child_create(void *ctx, struct lb_priority_child *place, const char *name)
{
	struct lb_aggregate *a = ctx;
	struct child *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	*c = (struct child){.aggregate = a, .place = place};
	const struct lb_leaf_parent parent = {
		on_leaf, c, a->env.parent.owner, a->env.parent.counts};
	c->leaf = lb_leaf_new(a->env.leaf, parent, name, a->env.leaf_id(a->env.parent.ctx, name));
	if (!c->leaf) {
		free(c);
		return NULL;
	}
	return c;
}

static int child_update(void *ctx, void *child, const char *name)
{
	struct lb_aggregate *a = ctx;
	return a->env.configure(a->env.parent.ctx, ((struct child *)child)->leaf, name);
}

static void child_exit_idle(void *ctx, void *child)
{
	(void)ctx;
	lb_leaf_exit_idle(((struct child *)child)->leaf);
}

static void child_dump(void *ctx, const void *child, struct lb_dump *d)
{
	(void)ctx;
	lb_leaf_dump(((const struct child *)child)->leaf, d);
}

static void child_free(void *ctx, void *child)
{
	struct child *c = child;
	(void)ctx;
	lb_leaf_free(c->leaf);
	free(c);
}

static int on_priority(void *ctx, enum lb_state state, struct lb_picker *picker)
{
	struct lb_aggregate *a = ctx;
	return a->env.parent.publish(a->env.parent.ctx, state, picker);
}

struct lb_aggregate *lb_aggregate_new(const struct lb_aggregate_env *env, const char *name)
{
	struct lb_aggregate *a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->env = *env;
	a->name = strdup(name);
	static const struct lb_priority_ops priority = {
		child_create, child_update, child_exit_idle, child_dump, child_free, on_priority};
	a->priority = lb_priority_new(&priority, a, env->leaf->wheel);
	if (!a->name || !a->priority) {
		lb_aggregate_free(a);
		return NULL;
	}
	return a;
}

void lb_aggregate_free(struct lb_aggregate *a)
{
	if (!a)
		return;
	lb_priority_free(a->priority);
	free(a->name);
	free(a);
}

int lb_aggregate_update(
	struct lb_aggregate *a, const char *const *names, uint32_t n, const char *note)
{
	char text[512];
	snprintf(text, sizeof(text), "cluster %s: no leaf clusters%s%s%s", a->name,
		*note ? " (" : "", note, *note ? ")" : "");
	return lb_priority_update(a->priority, names, n, text);
}

struct lb_leaf *lb_aggregate_leaf(const struct lb_aggregate *a, const char *name)
{
	struct child *c = lb_priority_find(a->priority, name);
	return c ? c->leaf : NULL;
}

// A75-T02
void lb_aggregate_dump(const struct lb_aggregate *a, struct lb_dump *d)
{
	lb_dump_enter(d, "cds", lb_priority_state(a->priority));
	lb_dump_text(d, "cluster", a->name);
	lb_priority_dump(a->priority, d);
	lb_dump_leave(d);
}
