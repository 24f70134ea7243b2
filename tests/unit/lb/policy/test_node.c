// SPDX-License-Identifier: Apache-2.0
// What all nodes of a leaf have in common.
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/pick/picker.h"
#include "lb/policy/node.h"
#include "tests/support/check.h"

#include <stdlib.h>

#define START (1000 * NS_PER_SECOND)
#define S NS_PER_SECOND

struct fixture {
	struct lb_node_env env;
	uint32_t n_alive, n_published;
};

struct node {
	struct lb_node base;
	uint32_t n_called;
	uint64_t again_ns; // asked for when it is called; 0 = not
	struct lb_node *frees; // when it is called
	bool dismisses_itself; // likewise
};

static int on_publish(void *ctx, enum lb_state state, struct lb_picker *picker)
{
	((struct fixture *)ctx)->n_published++;
	lb_picker_put(picker);
	return 0;
}

static void on_again(struct lb_node *base)
{
	struct node *n = (struct node *)base;
	n->n_called++;
	if (n->again_ns)
		lb_node_again(base, n->again_ns);
	lb_node_free(n->frees);
	n->frees = NULL;
	if (n->dismisses_itself)
		lb_node_dismiss(base);
}

static void on_free(struct lb_node *base)
{
	((struct fixture *)base->env->ctx)->n_alive--;
	free(base);
}

static struct node *add(struct fixture *f)
{
	static const struct lb_node_ops ops = {.name = "test", .again = on_again, .free = on_free};
	struct node *n = calloc(1, sizeof(*n));
	assert_non_null(n);
	n->base = (struct lb_node){&ops, &f->env, {on_publish, f}};
	f->n_alive++;
	return n;
}

static void init(struct fixture *f)
{
	*f = (struct fixture){.env = {.cluster = "orders", .note = "", .ctx = f}};
	f->env.wheel = twheel_new(START);
	assert_non_null(f->env.wheel);
	lb_node_env_init(&f->env);
}

static void fini(struct fixture *f)
{
	lb_node_env_fini(&f->env);
	assert_int_equal(f->n_alive, 0);
	assert_true(twheel_next_ns(f->env.wheel) == UINT64_MAX);
	twheel_free(f->env.wheel);
}

static void pass(struct fixture *f, uint64_t ns)
{
	twheel_advance(f->env.wheel, twheel_now(f->env.wheel) + ns);
}

static void node_that_asks_is_called_once(void **state)
{
	struct fixture f;
	init(&f);
	struct node *a = add(&f), *b = add(&f);
	lb_node_again(&a->base, START + S);
	lb_node_again(&a->base, START + 2 * S);
	pass(&f, S / 2);
	assert_int_equal(a->n_called, 0);
	pass(&f, S / 2);
	assert_int_equal(a->n_called, 1);
	assert_int_equal(b->n_called, 0);
	pass(&f, 5 * S);
	assert_int_equal(a->n_called, 1);
	lb_node_free(&a->base);
	lb_node_free(&b->base);
	fini(&f);
}

static void whoever_is_due_first_has_all_called(void **state)
{
	struct fixture f;
	init(&f);
	struct node *a = add(&f), *b = add(&f);
	lb_node_again(&a->base, START + 5 * S);
	lb_node_again(&b->base, START + S);
	pass(&f, S);
	assert_int_equal(a->n_called, 1);
	assert_int_equal(b->n_called, 1);
	lb_node_free(&a->base);
	lb_node_free(&b->base);
	fini(&f);
}

static void node_that_asks_anew_waits_anew(void **state)
{
	struct fixture f;
	init(&f);
	struct node *a = add(&f);
	a->again_ns = START; // at once
	lb_node_again(&a->base, START);
	pass(&f, 0);
	assert_int_equal(a->n_called, 1);
	pass(&f, 0);
	assert_int_equal(a->n_called, 2);
	lb_node_free(&a->base);
	pass(&f, S);
	fini(&f);
}

static void node_that_is_due_may_be_freed_by_another(void **state)
{
	struct fixture f;
	init(&f);
	struct node *a = add(&f), *b = add(&f), *c = add(&f);
	lb_node_again(&a->base, START); // called last
	lb_node_again(&b->base, START);
	lb_node_again(&c->base, START);
	c->frees = &a->base;
	b->dismisses_itself = true;
	pass(&f, 0);
	assert_int_equal(c->n_called, 1);
	assert_int_equal(b->n_called, 1);
	assert_int_equal(f.n_alive, 2);
	pass(&f, 0);
	assert_int_equal(f.n_alive, 1);
	lb_node_free(&c->base);
	fini(&f);
}

static void dismissed_node_is_freed_at_the_next_tick_and_unheard_till_then(void **state)
{
	struct fixture f;
	init(&f);
	struct node *a = add(&f);
	struct lb_picker *p = lb_picker_queue();
	assert_int_equal(lb_node_publish(&a->base, LB_CONNECTING, p), 0);
	assert_int_equal(f.n_published, 1);
	lb_node_again(&a->base, START + S);
	lb_node_dismiss(&a->base);
	p = lb_picker_queue();
	assert_int_equal(lb_node_publish(&a->base, LB_CONNECTING, p), 0);
	lb_node_again(&a->base, START);
	assert_int_equal(f.n_published, 1);
	assert_int_equal(f.n_alive, 1);
	pass(&f, 0);
	assert_int_equal(f.n_alive, 0);
	fini(&f);
}

static void end_of_a_leaf_takes_who_was_dismissed_along(void **state)
{
	struct fixture f;
	init(&f);
	lb_node_dismiss(&add(&f)->base);
	lb_node_dismiss(&add(&f)->base);
	lb_node_dismiss(NULL);
	lb_node_free(NULL);
	fini(&f);
}

RUN_SUITE("lb/node", cmocka_unit_test(node_that_asks_is_called_once),
	cmocka_unit_test(whoever_is_due_first_has_all_called),
	cmocka_unit_test(node_that_asks_anew_waits_anew),
	cmocka_unit_test(node_that_is_due_may_be_freed_by_another),
	cmocka_unit_test(dismissed_node_is_freed_at_the_next_tick_and_unheard_till_then),
	cmocka_unit_test(end_of_a_leaf_takes_who_was_dismissed_along))
