// SPDX-License-Identifier: Apache-2.0
#include "lb/policy/graceful.h"

#include "lb/pick/picker.h"
#include "lb/policy/dump.h"

#include <errno.h>
#include <stdlib.h>

struct lb_graceful_pending {
	struct lb_graceful *owner;
	struct lb_node *node; // owned
	enum lb_state state;
	struct lb_picker *picker; // counted; NULL = has not reported
};

static int on_node(void *ctx, enum lb_state state, struct lb_picker *picker);

static void pending_free(struct lb_graceful_pending *p)
{
	if (!p)
		return;
	lb_node_free(p->node);
	lb_picker_put(p->picker);
	free(p);
}

// The new one's turn. Only when the parent has heard of it: until then the old one still serves,
// and whoever made us try tries again.
static int swap(struct lb_graceful *g)
{
	struct lb_graceful_pending *p = g->pending;
	int err = g->publish(g, p->state, lb_picker_get(p->picker));
	if (err)
		return err;
	lb_node_dismiss(g->node);
	g->node = p->node;
	g->node->parent = (struct lb_node_parent){on_node, g};
	g->state = p->state;
	g->pending = NULL;
	p->node = NULL;
	pending_free(p);
	return 0;
}

static int on_node(void *ctx, enum lb_state state, struct lb_picker *picker)
{
	struct lb_graceful *g = ctx;
	g->state = state;
	if (g->pending && g->pending->picker && state != LB_READY) {
		lb_picker_put(picker);
		return swap(g);
	}
	return g->publish(g, state, picker);
}

static int on_pending(void *ctx, enum lb_state state, struct lb_picker *picker)
{
	struct lb_graceful_pending *p = ctx;
	struct lb_graceful *g = p->owner;
	lb_picker_put(p->picker);
	p->picker = picker;
	p->state = state;
	if (p != g->pending)
		return 0; // another one is about to take its place
	return g->state != LB_READY || state != LB_CONNECTING ? swap(g) : 0;
}

void lb_graceful_init(struct lb_graceful *g,
	int (*publish)(struct lb_graceful *, enum lb_state, struct lb_picker *))
{
	*g = (struct lb_graceful){.publish = publish, .state = LB_CONNECTING};
}

void lb_graceful_fini(struct lb_graceful *g)
{
	pending_free(g->pending);
	lb_node_free(g->node);
	g->pending = NULL;
	g->node = NULL;
}

static int begin_first(
	struct lb_graceful *g, struct lb_node_env *env, const struct lb_node_config *config)
{
	const struct lb_node_ops *ops = env->ops_of(config->spec->kind);
	g->node = ops->new (env, (struct lb_node_parent){on_node, g});
	int err = g->node ? ops->update(g->node, config) : -ENOMEM;
	if (err) {
		lb_node_free(g->node);
		g->node = NULL;
	}
	return err;
}

static int begin_other(
	struct lb_graceful *g, struct lb_node_env *env, const struct lb_node_config *config)
{
	const struct lb_node_ops *ops = env->ops_of(config->spec->kind);
	struct lb_graceful_pending *before = g->pending, *p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	*p = (struct lb_graceful_pending){.owner = g, .state = LB_CONNECTING};
	p->node = ops->new (env, (struct lb_node_parent){on_pending, p});
	if (!p->node) {
		free(p);
		return -ENOMEM;
	}
	g->pending = p;
	int err = ops->update(p->node, config); // it may take its place at once
	if (err) {
		g->pending = before;
		pending_free(p);
	} else if (before) {
		lb_node_dismiss(before->node);
		before->node = NULL;
		pending_free(before);
	}
	return err;
}

static struct lb_node *newest(const struct lb_graceful *g)
{
	return g->pending ? g->pending->node : g->node;
}

int lb_graceful_update(
	struct lb_graceful *g, struct lb_node_env *env, const struct lb_node_config *config)
{
	struct lb_node *node = newest(g);
	if (!node)
		return begin_first(g, env, config);
	if (node->ops == env->ops_of(config->spec->kind))
		return node->ops->update(node, config);
	return begin_other(g, env, config);
}

void lb_graceful_exit_idle(struct lb_graceful *g)
{
	struct lb_node *node = newest(g);
	if (node)
		node->ops->exit_idle(node);
}

void lb_graceful_dump(const struct lb_graceful *g, struct lb_dump *d)
{
	if (g->node)
		lb_dump_node(d, g->node, g->state);
	if (g->pending)
		lb_dump_node(d, g->pending->node, g->pending->state);
}
