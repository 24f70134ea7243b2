// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/affinity.h"

#include "lb/base/container_of.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/leaf/affinity_members.h"
#include "lb/leaf/roster.h"
#include "lb/member/member.h"
#include "lb/pick/affinity_map.h"
#include "lb/pick/leaf_endpoints.h"
#include "lb/policy/dump.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SWEEP_NS (5 * NS_PER_SECOND) // sweeps are no closer than this (A75-O16)
#define RETRY_NS NS_PER_SECOND // after running out of memory

// What picks look for addresses in: only where somebody looks for them.
struct view {
	struct lb_affinity *affinity;
	struct lb_affinity_map *map; // counted
	struct lb_cells cells; // what maps are made of
	bool is_stale; // a change of the cells found out of memory: they are to be made anew
	struct twheel_timer news; // states that the map lacks
};

struct lb_affinity {
	struct lb_affinity_env env;
	uint64_t idle_timeout_ns;
	struct lb_affinity_members list;
	struct view *view; // owned; NULL = no map is wanted
	uint64_t swept_ns; // 0 = never
	struct twheel_timer sweep;
	struct twheel_timer tidy; // of what neither policies nor sessions use
};

static uint64_t saturating_add(uint64_t a, uint64_t b)
{
	uint64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

// The map.

static struct lb_cell cell_of(
	const struct lb_affinity *a, const struct lb_affinity_members *l, uint32_t at)
{
	const struct lb_member *m = lb_affinity_members_at(l, at);
	enum lb_member_health health = lb_member_health(m);
	enum lb_state state = lb_member_raw_state(m);
	bool is_unchecked = health == LB_MEMBER_UNCHECKED && state == LB_READY;
	return (struct lb_cell){
		.endpoint = is_unchecked ? NULL : lb_member_endpoint(m),
		.member = lb_member_id(m),
		.state = (uint8_t)(is_unchecked ? LB_CONNECTING : state),
		.is_target = l->flags[at] & LB_AFFINITY_TARGET,
		.has_connection = l->flags[at] & (LB_AFFINITY_IN_CHILD | LB_AFFINITY_OWNED),
		.is_barred = (lb_member_is_ejected(m) && !a->env.uses_ejected) ||
	                     health == LB_MEMBER_UNHEALTHY,
	};
}

struct in_list {
	const struct lb_affinity *affinity;
	const struct lb_affinity_members *list;
};

// The member knows its place from then on.
static struct lb_cell cell_at(const void *ctx, uint32_t at)
{
	const struct in_list *x = ctx;
	lb_member_set_place(lb_affinity_members_at(x->list, at), at);
	return cell_of(x->affinity, x->list, at);
}

// Without memory the cells stay as they are, and as stale.
static int make_cells(
	const struct lb_affinity *a, const struct lb_affinity_members *l, struct view *v)
{
	struct lb_cells cells;
	if (!v) {
		lb_affinity_members_set_places(l);
		return 0;
	}
	if (lb_cells_init(&cells, l->n, cell_at, &(struct in_list){a, l}))
		return -ENOMEM;
	lb_cells_fini(&v->cells);
	v->cells = cells;
	v->is_stale = false;
	return 0;
}

// Of the view's cells, if a map is wanted. 0, or -ENOMEM: as before.
static int make_map(
	struct view *v, struct lb_leaf_endpoints *endpoints, struct lb_leaf_endpoints *leaving)
{
	if (!v)
		return 0;
	struct lb_affinity_map *map = lb_affinity_map_new(endpoints, leaving, &v->cells);
	if (!map)
		return -ENOMEM;
	lb_affinity_map_put(v->map);
	v->map = map;
	return 0;
}

// Changes of one turn make one map.
static void changed(struct lb_affinity *a, uint32_t at)
{
	const struct lb_affinity_members *l = &a->list;
	struct view *v = a->view;
	if (!v)
		return;
	v->is_stale = v->is_stale || lb_cells_set(&v->cells, at, cell_of(a, l, at));
	if (!twheel_armed(&v->news))
		twheel_arm(a->env.wheel, &v->news, twheel_now(a->env.wheel));
}

static void news_fired(struct twheel_timer *t)
{
	struct view *v = CONTAINER_OF(t, struct view, news);
	struct lb_affinity *a = v->affinity;
	const struct lb_affinity_members *l = &a->list;
	if ((v->is_stale && make_cells(a, l, v)) || make_map(v, l->endpoints, l->leaving))
		twheel_arm(a->env.wheel, t, twheel_now(a->env.wheel) + RETRY_NS);
	else
		a->env.on_change(a->env.ctx);
}

// NULL = out of memory.
static struct view *view_new(struct lb_affinity *a)
{
	struct view *v = calloc(1, sizeof(*v));
	if (!v)
		return NULL;
	v->affinity = a;
	v->news.fire = news_fired;
	return v;
}

static void view_free(struct view *v)
{
	if (!v)
		return;
	twheel_cancel(v->affinity->env.wheel, &v->news);
	lb_affinity_map_put(v->map);
	lb_cells_fini(&v->cells);
	free(v);
}

// Connections.

// Of a member at this place in this list.
static uint64_t expiry_of(
	const struct lb_affinity *a, const struct lb_affinity_members *l, uint32_t at)
{
	uint64_t used = a->env.last_used(a->env.ctx, lb_member_id(lb_affinity_members_at(l, at)));
	if (l->wanted_ns && used < l->wanted_ns[at])
		used = l->wanted_ns[at];
	return used ? saturating_add(used, a->idle_timeout_ns) : 0;
}

// The next sweep: at the earliest end of what sessions own (A75-O16).
static void plan(struct lb_affinity *a)
{
	const struct lb_affinity_members *l = &a->list;
	uint64_t at = saturating_add(twheel_now(a->env.wheel), a->idle_timeout_ns);
	for (uint32_t i = 0; l->n_owned && i < l->n; i++) {
		uint64_t end = l->flags[i] & LB_AFFINITY_OWNED ? expiry_of(a, l, i) : UINT64_MAX;
		at = end < at ? end : at;
	}
	if (a->swept_ns && at < a->swept_ns + SWEEP_NS)
		at = a->swept_ns + SWEEP_NS;
	twheel_arm(a->env.wheel, &a->sweep, at);
}

static void sweep_fired(struct twheel_timer *t)
{
	struct lb_affinity *a = CONTAINER_OF(t, struct lb_affinity, sweep);
	struct lb_affinity_members *l = &a->list;
	uint64_t now = twheel_now(a->env.wheel);
	a->swept_ns = now;
	for (uint32_t i = 0; l->n_owned && i < l->n; i++) {
		// A75-O15; but a request may wait for one that is CONNECTING (A75-O18).
		if (!(l->flags[i] & LB_AFFINITY_OWNED) || expiry_of(a, l, i) > now ||
			lb_member_raw_state(lb_affinity_members_at(l, i)) == LB_CONNECTING)
			continue;
		lb_affinity_members_set_owned(l, i, false);
		changed(a, i);
		if (!lb_member_is_watched(lb_affinity_members_at(l, i)))
			lb_member_disconnect(lb_affinity_members_at(l, i));
		else if (!twheel_armed(&a->tidy))
			twheel_arm(a->env.wheel, &a->tidy, now + SWEEP_NS);
	}
	plan(a);
}

static bool is_stray(const struct lb_affinity_members *l, uint32_t at)
{
	return !(l->flags[at] & (LB_AFFINITY_IN_CHILD | LB_AFFINITY_OWNED)) &&
	       lb_member_raw_state(lb_affinity_members_at(l, at)) != LB_IDLE;
}

static void tidy_fired(struct twheel_timer *t)
{
	struct lb_affinity *a = CONTAINER_OF(t, struct lb_affinity, tidy);
	bool is_left = false;
	for (uint32_t i = 0; i < a->list.n; i++) {
		if (!is_stray(&a->list, i))
			continue;
		if (lb_member_is_watched(lb_affinity_members_at(&a->list, i)))
			is_left = true;
		else
			lb_member_disconnect(lb_affinity_members_at(&a->list, i));
	}
	if (is_left)
		twheel_arm(a->env.wheel, &a->tidy, twheel_now(a->env.wheel) + SWEEP_NS);
}

// A list that a policy is about to replace, or a locality that is kept for its return (WT-02),
// may hold on to a member that nobody else is to use any more. What one cuts off the other would
// connect again at once, whatever its backoff: for as long as it does, that is looked after now and
// then.
void lb_affinity_note(struct lb_affinity *a, struct lb_member *m)
{
	uint32_t at = lb_affinity_members_find(&a->list, m);
	if (at == UINT32_MAX)
		return;
	changed(a, at);
	if (is_stray(&a->list, at) && !twheel_armed(&a->tidy))
		twheel_arm(a->env.wheel, &a->tidy, twheel_now(a->env.wheel) + SWEEP_NS);
}

void lb_affinity_set_in_child(struct lb_affinity *a, struct lb_member *m, bool in_child)
{
	struct lb_affinity_members *l = &a->list;
	uint32_t at = lb_affinity_members_find(l, m);
	if (at == UINT32_MAX || !(l->flags[at] & LB_AFFINITY_IN_CHILD) == !in_child)
		return;
	uint64_t now = twheel_now(a->env.wheel);
	l->flags[at] ^= LB_AFFINITY_IN_CHILD;
	bool is_target = l->flags[at] & LB_AFFINITY_TARGET;
	lb_affinity_members_set_owned(
		l, at, !in_child && is_target && expiry_of(a, l, at) > now); // A75-O13, A75-O14
	if (is_stray(l, at)) // disconnected when whoever changes the tree is through with it
		twheel_arm(a->env.wheel, &a->tidy, now);
	changed(a, at);
}

void lb_affinity_want(struct lb_affinity *a, uint32_t member)
{
	struct lb_affinity_members *l = &a->list;
	uint32_t at = lb_affinity_members_find_id(l, member);
	if (at == UINT32_MAX || !(l->flags[at] & (LB_AFFINITY_IN_CHILD | LB_AFFINITY_TARGET)))
		return; // A75-O04: a connect request of before it began to drain
	if (!(l->flags[at] & LB_AFFINITY_IN_CHILD)) {
		if (!l->wanted_ns)
			l->wanted_ns = calloc((size_t)l->n + 1, sizeof(*l->wanted_ns));
		if (!l->wanted_ns)
			return; // it is asked for again
		l->wanted_ns[at] = twheel_now(a->env.wheel);
		lb_affinity_members_set_owned(l, at, true);
		changed(a, at);
	}
	lb_member_need(lb_affinity_members_at(l, at));
}

// Updates.

// What a session has stays so; what the policies let go with this update may become it (A75-O13).
static int inherit(const struct lb_affinity *a, struct lb_affinity_members *l)
{
	uint64_t now = twheel_now(a->env.wheel);
	if (a->list.wanted_ns)
		l->wanted_ns = calloc((size_t)l->n + 1, sizeof(*l->wanted_ns));
	if (a->list.wanted_ns && !l->wanted_ns)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->n; i++) {
		bool is_spare = (l->flags[i] & (LB_AFFINITY_IN_CHILD | LB_AFFINITY_TARGET)) ==
		                LB_AFFINITY_TARGET;
		if (!is_spare && !l->wanted_ns)
			continue;
		uint32_t old = lb_affinity_members_find(&a->list, lb_affinity_members_at(l, i));
		if (old != UINT32_MAX && l->wanted_ns)
			l->wanted_ns[i] = a->list.wanted_ns[old];
		if (!is_spare)
			continue;
		bool is_owned = old != UINT32_MAX && a->list.flags[old] & LB_AFFINITY_OWNED;
		lb_affinity_members_set_owned(l, i,
			is_owned || (lb_member_raw_state(lb_affinity_members_at(l, i)) != LB_IDLE &&
					    expiry_of(a, l, i) > now));
	}
	return 0;
}

struct lb_affinity *lb_affinity_new(const struct lb_affinity_env *env)
{
	struct lb_affinity *a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	*a = (struct lb_affinity){
		.env = *env, .sweep = {.fire = sweep_fired}, .tidy = {.fire = tidy_fired}};
	return a;
}

void lb_affinity_free(struct lb_affinity *a)
{
	if (!a)
		return;
	twheel_cancel(a->env.wheel, &a->sweep);
	twheel_cancel(a->env.wheel, &a->tidy);
	view_free(a->view);
	lb_affinity_members_fini(&a->list);
	free(a);
}

// The same members as before, used alike: all but the columns can stay.
static bool is_same(const struct lb_affinity *a, const struct lb_affinity_list *from)
{
	const struct lb_affinity_members *l = &a->list;
	if (l->roster != from->roster || l->leaving != from->leaving ||
		!a->view != !from->wants_map)
		return false;
	for (uint32_t i = 0; i < l->roster->n; i++)
		if ((l->flags[i] & ~LB_AFFINITY_OWNED) != from->uses[i])
			return false;
	return true;
}

static int renew(struct lb_affinity *a, const struct lb_affinity_list *from)
{
	if (a->list.endpoints == from->endpoints)
		return 0;
	if (a->view && a->view->is_stale && make_cells(a, &a->list, a->view))
		return -ENOMEM;
	if (make_map(a->view, from->endpoints, a->list.leaving))
		return -ENOMEM;
	lb_leaf_endpoints_put(a->list.endpoints);
	a->list.endpoints = lb_leaf_endpoints_get(from->endpoints);
	return 0;
}

static int replace(struct lb_affinity *a, const struct lb_affinity_list *from)
{
	struct lb_affinity_members list;
	struct view *view = from->wants_map ? view_new(a) : NULL;
	int err = lb_affinity_members_init(&list, from);
	if (err || !view != !from->wants_map || inherit(a, &list) || make_cells(a, &list, view) ||
		make_map(view, list.endpoints, list.leaving)) {
		view_free(view);
		lb_affinity_members_fini(&list);
		lb_affinity_members_set_places(&a->list);
		return -ENOMEM;
	}
	view_free(a->view);
	lb_affinity_members_fini(&a->list);
	a->list = list;
	a->view = view;
	twheel_arm(a->env.wheel, &a->tidy, twheel_now(a->env.wheel));
	return 0;
}

int lb_affinity_update(
	struct lb_affinity *a, const struct lb_affinity_list *from, uint64_t idle_timeout_ns)
{
	int err = is_same(a, from) ? renew(a, from) : replace(a, from);
	if (err)
		return err;
	a->idle_timeout_ns = idle_timeout_ns;
	plan(a);
	return 0;
}

struct lb_member *lb_affinity_find(
	const struct lb_affinity *a, const struct ip_port *addresses, uint32_t n)
{
	const struct lb_affinity_members *l = &a->list;
	struct lb_member *m =
		l->roster ? lb_roster_find(l->roster, l->endpoints, addresses, n) : NULL;
	if (!m && l->leaving)
		m = lb_roster_find(l->leaving_roster, l->leaving, addresses, n);
	return m;
}

struct lb_affinity_map *lb_affinity_map_of(const struct lb_affinity *a)
{
	return a->view ? a->view->map : NULL;
}

uint32_t lb_affinity_n_owned(const struct lb_affinity *a)
{
	return a->list.n_owned;
}

void lb_affinity_dump(const struct lb_affinity *a, struct lb_dump *d)
{
	lb_dump_number(d, "kept_for_sessions", a->list.n_owned);
	if (a->list.n_owned)
		lb_dump_timer(d, "sweep_ms", a->env.wheel, &a->sweep);
}
