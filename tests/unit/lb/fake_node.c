// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/lb/fake_node.h"

#include "tests/support/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct fake_node *fake_nodes;
int fake_first_state = -1;
uint32_t fake_n_made;
int fake_update_error;

struct fake_picker {
	struct lb_picker base;
	enum lb_state state;
	char name[64];
};

static const struct lb_cell *pick(const struct lb_picker *base, struct lb_pick_ctx *ctx)
{
	static const enum lb_pick_kind kinds[] = {
		[LB_IDLE] = LB_PICK_QUEUE,
		[LB_CONNECTING] = LB_PICK_QUEUE,
		[LB_READY] = LB_PICK_ENDPOINT,
		[LB_TRANSIENT_FAILURE] = LB_PICK_FAIL,
	};
	const struct fake_picker *p = (const struct fake_picker *)base;
	return lb_pick_other(ctx, (struct lb_pick){.kind = kinds[p->state], .text = p->name});
}

static void picker_free(struct lb_picker *p)
{
	free(p);
}

struct lb_picker *fake_picker_new(enum lb_state state, const char *name)
{
	struct fake_picker *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->base = (struct lb_picker){1, pick, picker_free};
	p->state = state;
	snprintf(p->name, sizeof(p->name), "%s", name);
	return &p->base;
}

static struct lb_node *fake_new(
	struct lb_node_env *env, struct lb_node_parent parent, enum lb_policy_kind kind)
{
	struct fake_node *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	*f = (struct fake_node){
		.base = {fake_ops_of(kind), env, parent}, .next = fake_nodes, .kind = kind};
	fake_nodes = f;
	fake_n_made++;
	return &f->base;
}

static struct lb_node *new_round_robin(struct lb_node_env *env, struct lb_node_parent parent)
{
	return fake_new(env, parent, LB_POLICY_ROUND_ROBIN);
}

static struct lb_node *new_ring_hash(struct lb_node_env *env, struct lb_node_parent parent)
{
	return fake_new(env, parent, LB_POLICY_RING_HASH);
}

static int fake_update(struct lb_node *base, const struct lb_node_config *config)
{
	struct fake_node *f = (struct fake_node *)base;
	if (fake_update_error)
		return fake_update_error;
	struct str name = config->n_localities ? config->localities[0].name : STR("none");
	snprintf(f->name, sizeof(f->name), "%.*s", (int)name.len, name.p);
	f->n_localities = config->n_localities;
	f->n_members = 0;
	for (uint32_t i = 0; i < config->n_localities; i++) {
		const struct lb_node_locality *l = &config->localities[i];
		for (uint32_t j = 0; j < l->n_members; j++) {
			assert_true(f->n_members < FAKE_MAX_MEMBERS);
			f->members[f->n_members] = l->members[j].member;
			f->weights[f->n_members++] = l->members[j].weight;
		}
	}
	if (f->n_updates++ == 0 && fake_first_state >= 0)
		fake_report(f, (enum lb_state)fake_first_state);
	return 0;
}

static void fake_exit_idle(struct lb_node *base)
{
	((struct fake_node *)base)->n_exit_idle++;
}

static void fake_free(struct lb_node *base)
{
	struct fake_node **link = &fake_nodes;
	while (&(*link)->base != base)
		link = &(*link)->next;
	*link = (*link)->next;
	free(base);
}

const struct lb_node_ops *fake_ops_of(enum lb_policy_kind kind)
{
	static const struct lb_node_ops round_robin = {
		"round_robin", new_round_robin, fake_update, fake_exit_idle, NULL, NULL, fake_free};
	static const struct lb_node_ops ring_hash = {
		"ring_hash", new_ring_hash, fake_update, fake_exit_idle, NULL, NULL, fake_free};
	return kind == LB_POLICY_RING_HASH ? &ring_hash : &round_robin;
}

struct fake_node *fake_find(const char *name)
{
	struct fake_node *f = fake_nodes;
	while (f && strcmp(f->name, name) != 0)
		f = f->next;
	return f;
}

uint32_t fake_count(void)
{
	uint32_t n = 0;
	for (struct fake_node *f = fake_nodes; f; f = f->next)
		n++;
	return n;
}

void fake_report(struct fake_node *f, enum lb_state state)
{
	assert_non_null(f);
	struct lb_picker *p = fake_picker_new(state, f->name);
	f->last_error = p ? lb_node_publish(&f->base, state, p) : -ENOMEM;
}

// The visitor.

static void add(struct fake_dump *d, const char *text)
{
	size_t len = strlen(text);
	assert_true(d->len + len < sizeof(d->text));
	memcpy(d->text + d->len, text, len + 1);
	d->len += len;
}

static void on_enter(struct lb_dump *base, const char *name, const char *state)
{
	struct fake_dump *d = (struct fake_dump *)base;
	if (d->len)
		add(d, "\n");
	for (int i = 0; i < d->depth; i++)
		add(d, "  ");
	add(d, name);
	if (*state)
		add(d, " ");
	add(d, state);
	d->depth++;
}

static void on_text(struct lb_dump *base, const char *key, const char *value)
{
	struct fake_dump *d = (struct fake_dump *)base;
	add(d, " ");
	add(d, key);
	add(d, "=");
	add(d, value);
}

static void on_number(struct lb_dump *base, const char *key, uint64_t value)
{
	char text[24];
	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	on_text(base, key, text);
}

static void on_leave(struct lb_dump *base)
{
	((struct fake_dump *)base)->depth--;
}

void fake_dump_init(struct fake_dump *d)
{
	*d = (struct fake_dump){.base = {on_enter, on_text, on_number, on_leave}};
}
