// SPDX-License-Identifier: Apache-2.0
#include "lb/policy/node.h"

#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/pick/picker.h"

#include <stddef.h>

// Ends the lists of an environment.
static struct lb_node last;

static struct lb_node *pop(struct lb_node **list)
{
	struct lb_node *n = *list;
	*list = n->next;
	n->next = NULL;
	return n;
}

static void push(struct lb_node **list, struct lb_node *n)
{
	n->next = *list;
	*list = n;
}

static bool remove_from(struct lb_node **list, struct lb_node *n)
{
	while (*list != n && *list != &last)
		list = &(*list)->next;
	if (*list != n)
		return false;
	pop(list);
	return true;
}

static void free_dismissed(struct lb_node_env *env)
{
	while (env->dismissed != &last)
		lb_node_free(pop(&env->dismissed));
}

static void timer_fired(struct twheel_timer *t)
{
	struct lb_node_env *env = CONTAINER_OF(t, struct lb_node_env, timer);
	free_dismissed(env);
	env->called = env->due; // whoever asks anew waits anew
	env->due = &last;
	while (env->called != &last) {
		struct lb_node *n = pop(&env->called);
		n->ops->again(n);
	}
}

void lb_node_env_init(struct lb_node_env *env)
{
	env->timer = (struct twheel_timer){.fire = timer_fired};
	env->due = env->called = env->dismissed = &last;
}

void lb_node_env_fini(struct lb_node_env *env)
{
	free_dismissed(env);
	CHECK(env->due == &last);
	twheel_cancel(env->wheel, &env->timer);
}

static void arm(struct lb_node_env *env, uint64_t at_ns)
{
	if (!twheel_armed(&env->timer) || twheel_expires_ns(&env->timer) > at_ns)
		twheel_arm(env->wheel, &env->timer, at_ns);
}

static void forget(struct lb_node *n)
{
	if (n->next && !remove_from(&n->env->due, n))
		CHECK(remove_from(&n->env->called, n));
}

void lb_node_free(struct lb_node *n)
{
	if (!n)
		return;
	forget(n);
	n->ops->free(n);
}

static int ignore(void *ctx, enum lb_state state, struct lb_picker *picker)
{
	(void)ctx;
	(void)state;
	lb_picker_put(picker);
	return 0;
}

void lb_node_dismiss(struct lb_node *n)
{
	if (!n)
		return;
	forget(n);
	n->parent = (struct lb_node_parent){.publish = ignore};
	push(&n->env->dismissed, n);
	arm(n->env, twheel_now(n->env->wheel));
}

void lb_node_again(struct lb_node *n, uint64_t at_ns)
{
	arm(n->env, at_ns);
	if (!n->next)
		push(&n->env->due, n);
}
