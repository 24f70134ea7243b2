// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/leaf_members.h"

#include "lb/base/container_of.h"
#include "lb/base/rand.h"
#include "lb/base/twheel.h"
#include "lb/leaf/affinity.h"
#include "lb/leaf/leaf.h"
#include "lb/leaf/leaf_layout.h"
#include "lb/leaf/roster.h"
#include "lb/member/connectivity.h"

#include <errno.h>
#include <stdlib.h>

// How many members requests expedite at a time, and among how many these are looked for.
#define N_EXPEDITED 8
#define N_LOOKED_AT 1024
// How many members ask again in a turn.
#define N_A_TURN 2

struct lb_leaf_made {
	struct lb_leaf_made *next;
	struct lb_member *member; // counted
};

static void on_change(void *ctx, struct lb_member *m)
{
	const struct lb_leaf_members *all = ctx;
	if (all->affinity)
		lb_affinity_note(all->affinity, m);
}

// Not sooner: what picks it counts under its number.
static void on_gone(void *ctx, uint32_t id)
{
	const struct lb_leaf_env *env = ((struct lb_leaf_members *)ctx)->leaf_env;
	env->member_give(env->ctx, id);
}

static int security(void *ctx, const struct ip_port *address, struct lb_security **ret)
{
	const struct lb_leaf_members *all = ctx;
	*ret = NULL;
	return all->layout ? lb_leaf_layout_security(all->layout, address, ret) : -ENOMEM;
}

// The first one is by chance: other processes have the same lists.
static struct lb_member *next_in_turn(struct lb_leaf_members *all, const struct lb_roster *r)
{
	uint32_t last = all->has_turns ? all->turn_at : (uint32_t)rand_u64(all->leaf_env->rand);
	all->has_turns = true;
	all->turn_at = (last % r->n + 1) % r->n;
	return r->members[all->turn_at];
}

static void take_turn(struct lb_queued_attempt *t)
{
	struct lb_leaf_members *all = CONTAINER_OF(t, struct lb_leaf_members, env.queued);
	const struct lb_roster *r = all->layout ? all->layout->roster : NULL;
	uint32_t n = r ? r->n : 0, n_asked = 0;
	for (uint32_t i = 0; i < n && n_asked < N_A_TURN; i++)
		n_asked += lb_member_ask_again(next_in_turn(all, r));
	if (n_asked == N_A_TURN)
		lb_connectivity_queue(all->env.connectivity, t);
}

void lb_leaf_members_init(
	struct lb_leaf_members *all, const struct lb_leaf_env *leaf_env, void *owner)
{
	*all = (struct lb_leaf_members){
		.leaf_env = leaf_env, .owner = owner, .env = *leaf_env->member_env};
	all->env.on_change = on_change;
	all->env.on_gone = on_gone;
	all->env.security = security;
	all->env.queued.take = take_turn;
	all->env.ctx = all;
}

void lb_leaf_members_fini(struct lb_leaf_members *all)
{
	lb_leaf_members_free_unused(all);
	lb_leaf_leaving_fini(&all->leaving);
	lb_connectivity_unqueue(all->env.connectivity, &all->env.queued);
}

// What sessions know may be of an earlier update, while their lists are owed.
struct lb_member *lb_leaf_members_find(
	const struct lb_leaf_members *all, const struct ip_port *addresses, uint32_t n)
{
	const struct lb_leaf_layout *l = all->layout;
	const struct lb_leaf_leaving *left = &all->leaving;
	struct lb_member *m = l ? lb_roster_find(l->roster, l->endpoints, addresses, n) : NULL;
	if (!m && left->roster)
		m = lb_roster_find(left->roster, left->endpoints, addresses, n);
	return m ? m : lb_affinity_find(all->affinity, addresses, n);
}

struct lb_member *lb_leaf_members_make(
	struct lb_leaf_members *all, const struct ip_port *addresses, uint32_t n)
{
	const struct lb_leaf_env *env = all->leaf_env;
	uint32_t id = env->member_take(env->ctx, all->owner);
	if (id == UINT32_MAX)
		return NULL;
	struct lb_member *m = lb_member_new(&all->env, id, addresses, n);
	if (!m)
		env->member_give(env->ctx, id);
	return m;
}

struct lb_member *lb_leaf_members_make_for_policy(
	struct lb_leaf_members *all, const struct ip_port *addresses, uint32_t n)
{
	for (struct lb_leaf_made *m = all->made; m; m = m->next) {
		if (!lb_member_same_set(m->member, addresses, n) ||
			!lb_leaf_layout_fits(all->layout, m->member))
			continue;
		lb_member_reorder(m->member, addresses);
		return lb_member_get(m->member);
	}
	struct lb_leaf_made *m = calloc(1, sizeof(*m));
	if (m)
		m->member = lb_leaf_members_make(all, addresses, n);
	if (!m || !m->member) {
		free(m);
		return NULL;
	}
	m->next = all->made;
	all->made = m;
	return lb_member_get(m->member);
}

void lb_leaf_members_set_timers(struct lb_leaf_members *all, struct lb_timers timers)
{
	if (lb_timers_eq(all->env.timers, timers))
		return;
	all->env.timers = timers;
	const struct lb_roster *r = all->layout->roster;
	for (uint32_t i = 0; i < r->n; i++)
		lb_member_apply_timers(r->members[i]);
	for (struct lb_leaf_made *m = all->made; m; m = m->next)
		lb_member_apply_timers(m->member);
}

void lb_leaf_members_free_unused(struct lb_leaf_members *all)
{
	struct lb_leaf_made **link = &all->made;
	while (*link) {
		struct lb_leaf_made *m = *link;
		if (lb_member_is_shared(m->member)) {
			link = &m->next;
			continue;
		}
		*link = m->next;
		lb_member_put(m->member);
		free(m);
	}
}

void lb_leaf_members_want(struct lb_leaf_members *all, uint32_t member)
{
	for (struct lb_leaf_made *m = all->made; m; m = m->next)
		if (lb_member_id(m->member) == member)
			lb_member_need(m->member);
}

// While all of its endpoints are down a cluster has requests wait. So it is let rest while there is
// nothing to gain.
uint32_t lb_leaf_members_expedite(struct lb_leaf_members *all)
{
	struct lb_member_env *env = &all->env;
	const struct lb_connectivity *c = env->connectivity;
	if (twheel_now(all->leaf_env->wheel) < env->rests_ns)
		return 0;
	const struct lb_roster *r = all->layout ? all->layout->roster : NULL;
	uint32_t n = r ? r->n : 0, n_expedited = 0, i = 0, n_made = 0;
	uint32_t most = n < N_LOOKED_AT ? n : N_LOOKED_AT;
	for (; i < most && n_expedited < N_EXPEDITED && lb_connectivity_may_expedite(c); i++)
		n_expedited += lb_member_expedite(next_in_turn(all, r));
	struct lb_leaf_made *m = all->made;
	for (; m && n_expedited < N_EXPEDITED && lb_connectivity_may_expedite(c);
		m = m->next, n_made++)
		n_expedited += lb_member_expedite(m->member);
	if (n_expedited == N_EXPEDITED)
		env->rests_ns = lb_connectivity_aging_ns(c);
	else if (i == n && lb_connectivity_may_expedite(c))
		env->rests_ns = UINT64_MAX;
	return i + n_made;
}
