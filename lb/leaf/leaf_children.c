// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/leaf_children.h"

#include "lb/base/container_of.h"
#include "lb/leaf/affinity.h"
#include "lb/leaf/leaf.h"
#include "lb/leaf/leaf_layout.h"
#include "lb/leaf/leaf_members.h"
#include "lb/leaf/roster.h"
#include "lb/leaf/subset.h"
#include "lb/policy/dump.h"
#include "lb/policy/graceful.h"
#include "lb/policy/priority.h"

#include <errno.h>
#include <stdlib.h>

// One priority's policies.
struct child {
	struct lb_leaf_children *all;
	struct lb_priority_child *place;
	struct lb_graceful policy;
};

// What nodes ask for.

static uint32_t slot_take(void *ctx)
{
	const struct lb_leaf_env *env = ((struct lb_leaf_children *)ctx)->members->leaf_env;
	return env->slot_take(env->ctx);
}

static void slot_give(void *ctx, uint32_t slot)
{
	const struct lb_leaf_env *env = ((struct lb_leaf_children *)ctx)->members->leaf_env;
	env->slot_give(env->ctx, slot);
}

static struct lb_member *member_new(void *ctx, const struct ip_port *addresses, uint32_t n)
{
	return lb_leaf_members_make_for_policy(
		((struct lb_leaf_children *)ctx)->members, addresses, n);
}

// TLS-161, HC-07
static bool member_fits(void *ctx, const struct lb_member *m)
{
	return lb_leaf_layout_fits(((const struct lb_leaf_children *)ctx)->members->layout, m);
}

// A56-P14, A74-C06
static void reresolve(void *ctx)
{
	const struct lb_leaf_children *all = ctx;
	const struct lb_leaf_env *env = all->members->leaf_env;
	if (env->reresolve && !all->ignores_reresolution)
		env->reresolve(env->ctx);
}

static const struct lb_node_services services = {
	slot_take, slot_give, member_new, reresolve, member_fits};

// Which members they use.

// pick_first connects to members of its own, one for all endpoints.
static bool uses_members(const struct lb_policy_spec *spec)
{
	return spec->kind == LB_POLICY_WRR_LOCALITY ? uses_members(spec->child)
	                                            : spec->kind != LB_POLICY_PICK_FIRST;
}

void lb_leaf_children_mark(const struct lb_leaf_children *all, uint8_t *uses)
{
	const struct lb_leaf_layout *l = all->members->layout;
	for (uint32_t rank = 0; rank < l->n_priorities && uses_members(l->spec); rank++) {
		uint32_t n;
		const struct lb_leaf_span *spans = lb_leaf_layout_spans(l, rank, &n);
		if (!lb_priority_find(all->priority, l->children[rank]))
			continue;
		for (uint32_t i = 0; i < n; i++)
			for (uint32_t k = 0; k < spans[i].n_serving; k++)
				if (!lb_leaf_layout_is_out(l, spans[i].first + k))
					uses[spans[i].first + k] |= LB_AFFINITY_IN_CHILD;
	}
}

// During an update that is said in the lists.
static void tell_affinity(const struct child *c, bool in_child)
{
	const struct lb_leaf_members *members = c->all->members;
	const struct lb_leaf_layout *l = members->layout;
	uint32_t rank = lb_leaf_layout_find(l, lb_priority_child_name(c->place));
	if (rank == UINT32_MAX || c->all->is_updating || !uses_members(l->spec))
		return;
	uint32_t n;
	const struct lb_leaf_span *spans = lb_leaf_layout_spans(l, rank, &n);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = spans[i].first; k < spans[i].first + spans[i].n_serving; k++)
			if (!lb_leaf_layout_is_out(l, k))
				lb_affinity_set_in_child(
					members->affinity, l->roster->members[k], in_child);
}

// What the priorities ask for.

static int on_node(struct lb_graceful *g, enum lb_state state, struct lb_picker *picker)
{
	struct child *c = CONTAINER_OF(g, struct child, policy);
	c->all->parent.on_replace(c->all->parent.ctx); // one policy may have taken another's place
	lb_priority_report(c->place, state, picker);
	return 0;
}

static void *child_create(void *ctx, struct lb_priority_child *place, const char *name)
{
	struct child *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	*c = (struct child){.all = ctx, .place = place};
	(void)name;
	lb_graceful_init(&c->policy, on_node);
	tell_affinity(c, true);
	return c;
}

static int child_update(void *ctx, void *child, const char *name)
{
	struct lb_leaf_children *all = ctx;
	struct child *c = child;
	const struct lb_leaf_layout *l = all->members->layout;
	uint32_t rank = lb_leaf_layout_find(l, name);
	// A name of before an update that ran out of memory, and that is being taken back.
	if (rank == UINT32_MAX)
		return -ENOMEM;
	struct lb_node_config *config = lb_leaf_layout_config(l, rank);
	int err = config ? lb_graceful_update(&c->policy, &all->env, config) : -ENOMEM;
	free(config);
	return err;
}

static void child_exit_idle(void *ctx, void *child)
{
	(void)ctx;
	lb_graceful_exit_idle(&((struct child *)child)->policy);
}

// A68-08
static void dump_subset(const struct lb_leaf_layout *l, uint32_t rank, struct lb_dump *d)
{
	uint32_t n, n_serving = 0, n_out = 0;
	const struct lb_leaf_span *spans = lb_leaf_layout_spans(l, rank, &n);
	for (uint32_t i = 0; i < n; i++) {
		n_serving += spans[i].n_serving;
		for (uint32_t k = 0; k < spans[i].n_serving; k++)
			n_out += lb_leaf_layout_is_out(l, spans[i].first + k);
	}
	if (lb_subset_of_priority(l->spec))
		lb_dump_number(d, "subset_size", lb_subset_of_priority(l->spec));
	if (lb_subset_of_locality(l->spec))
		lb_dump_number(d, "of_each_locality", lb_subset_of_locality(l->spec));
	lb_dump_number(d, "chosen", n_serving - n_out);
	lb_dump_number(d, "endpoints", n_serving);
}

static void child_dump(void *ctx, const void *child, struct lb_dump *d)
{
	const struct lb_leaf_layout *l = ((struct lb_leaf_children *)ctx)->members->layout;
	const struct child *c = child;
	uint32_t rank = lb_leaf_layout_find(l, lb_priority_child_name(c->place));
	bool has_subset = l->is_out && rank != UINT32_MAX;
	if (has_subset) {
		d->enter(d, "random_subsetting", "");
		dump_subset(l, rank, d);
	}
	lb_graceful_dump(&c->policy, d);
	if (has_subset)
		lb_dump_leave(d);
}

static void child_free(void *ctx, void *child)
{
	struct lb_leaf_children *all = ctx;
	struct child *c = child;
	lb_graceful_fini(&c->policy);
	if (all->members->affinity)
		tell_affinity(c, false);
	all->parent.on_replace(all->parent.ctx);
	free(c);
}

static int publish(void *ctx, enum lb_state state, struct lb_picker *picker)
{
	const struct lb_leaf_children *all = ctx;
	all->parent.publish(all->parent.ctx, state, picker);
	return 0;
}

// The whole.

bool lb_leaf_children_init(struct lb_leaf_children *all, struct lb_leaf_members *members,
	const char *cluster, struct lb_wrr_counts *wrr, struct lb_leaf_children_parent parent)
{
	static const struct lb_priority_ops ops = {
		child_create, child_update, child_exit_idle, child_dump, child_free, publish};
	const struct lb_leaf_env *env = members->leaf_env;
	*all = (struct lb_leaf_children){.members = members,
		.parent = parent,
		.env = {
			.cluster = cluster,
			.note = "",
			.wheel = env->wheel,
			.rand = env->rand,
			.orca = env->orca,
			.wrr = wrr,
			.ops_of = env->ops_of,
			.services = &services,
			.ctx = all,
		}};
	lb_node_env_init(&all->env);
	all->priority = lb_priority_new(&ops, all, env->wheel);
	return all->priority;
}

void lb_leaf_children_fini(struct lb_leaf_children *all)
{
	lb_priority_free(all->priority);
	lb_node_env_fini(&all->env);
}

int lb_leaf_children_update(struct lb_leaf_children *all)
{
	const struct lb_leaf_layout *l = all->members->layout;
	return lb_priority_update(all->priority, l->children, l->n_priorities, "");
}

bool lb_leaf_children_exists(void *ctx, uint32_t number)
{
	char name[LB_LEAF_CHILD_NAME_MAX];
	lb_leaf_child_name(number, name);
	return lb_priority_find(((struct lb_leaf_children *)ctx)->priority, name);
}
