// SPDX-License-Identifier: Apache-2.0
#include "lb/graceful.h"

#include "lb/base/twheel.h"
#include "lb/dump.h"
#include "lb/picker.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

struct side {
	struct side *next; // of the doomed ones
	struct lb_graceful *owner;
	struct lb_node *node; // owned
	enum lb_policy_kind kind;
	enum lb_state state;
	struct lb_picker *picker; // counted; NULL = has not reported
};

struct lb_graceful {
	const struct lb_node_env *env;
	struct lb_node_parent parent;
	struct side *current; // owned; NULL before the first update
	struct side *pending; // owned; takes current's place
	// Replaced, perhaps from inside their own publish(): freed at the next tick.
	struct side *doomed;
	struct twheel_timer reap;
};

static void side_free(struct side *s)
{
	if (!s)
		return;
	if (s->node)
		s->node->ops->free(s->node);
	lb_picker_put(s->picker);
	free(s);
}

static void free_doomed(struct lb_graceful *g)
{
	while (g->doomed) {
		struct side *s = g->doomed;
		g->doomed = s->next;
		side_free(s);
	}
}

static void reap_fired(struct twheel_timer *t)
{
	free_doomed((void *)((char *)t - offsetof(struct lb_graceful, reap)));
}

static void doom(struct lb_graceful *g, struct side *s)
{
	if (!s)
		return;
	s->next = g->doomed;
	g->doomed = s;
	twheel_arm(g->env->wheel, &g->reap, twheel_now(g->env->wheel));
}

static int forward(struct lb_graceful *g, const struct side *s)
{
	return g->parent.publish(g->parent.ctx, s->state, lb_picker_get(s->picker));
}

// The new one's turn. Only when the parent has heard of it: until then the old one still serves,
// and whoever made us try tries again.
static int swap(struct lb_graceful *g)
{
	int err = forward(g, g->pending);
	if (err)
		return err;
	doom(g, g->current);
	g->current = g->pending;
	g->pending = NULL;
	return 0;
}

static int on_publish(void *ctx, enum lb_state state, struct lb_picker *picker)
{
	struct side *s = ctx;
	struct lb_graceful *g = s->owner;
	lb_picker_put(s->picker);
	s->picker = picker;
	s->state = state;
	if (s == g->pending)
		return g->current->state != LB_READY || state != LB_CONNECTING ? swap(g) : 0;
	if (s != g->current)
		return 0; // nobody listens any more
	if (g->pending && g->pending->picker && state != LB_READY)
		return swap(g);
	return forward(g, s);
}

static struct side *side_new(struct lb_graceful *g, enum lb_policy_kind kind)
{
	struct side *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	*s = (struct side){.owner = g, .kind = kind, .state = LB_CONNECTING};
	s->node = g->env->ops_of(kind)->new (g->env, (struct lb_node_parent){on_publish, s});
	if (!s->node) {
		free(s);
		return NULL;
	}
	return s;
}

struct lb_graceful *lb_graceful_new(const struct lb_node_env *env, struct lb_node_parent parent)
{
	struct lb_graceful *g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	*g = (struct lb_graceful){.env = env, .parent = parent, .reap = {.fire = reap_fired}};
	return g;
}

void lb_graceful_free(struct lb_graceful *g)
{
	if (!g)
		return;
	twheel_cancel(g->env->wheel, &g->reap);
	free_doomed(g);
	side_free(g->pending);
	side_free(g->current);
	free(g);
}

static int update_side(struct side *s, const struct lb_node_config *config)
{
	return s->node->ops->update(s->node, config);
}

static int begin(struct lb_graceful *g, const struct lb_node_config *config)
{
	struct side *s = side_new(g, config->spec->kind);
	if (!s)
		return -ENOMEM;
	struct side **place = g->current ? &g->pending : &g->current;
	struct side *before = *place; // an older pending one
	*place = s;
	int err = update_side(s, config);
	if (err) {
		*place = before;
		side_free(s);
	} else {
		doom(g, before);
	}
	return err;
}

int lb_graceful_update(struct lb_graceful *g, const struct lb_node_config *config)
{
	struct side *newest = g->pending ? g->pending : g->current;
	if (newest && newest->kind == config->spec->kind)
		return update_side(newest, config);
	return begin(g, config);
}

void lb_graceful_exit_idle(struct lb_graceful *g)
{
	struct side *newest = g->pending ? g->pending : g->current;
	if (newest)
		newest->node->ops->exit_idle(newest->node);
}

void lb_graceful_dump(const struct lb_graceful *g, struct lb_dump *d)
{
	if (g->current)
		lb_dump_node(d, g->current->node, g->current->state);
	if (g->pending)
		lb_dump_node(d, g->pending->node, g->pending->state);
}
