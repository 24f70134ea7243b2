// SPDX-License-Identifier: Apache-2.0
#include "lb/affinity.h"

#include "lb/affinity_map.h"
#include "lb/base/twheel.h"
#include "lb/dump.h"
#include "lb/member.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define SECOND_NS 1000000000ull
#define SWEEP_NS (5 * SECOND_NS) // sweeps are no closer than this (O16)
#define RETRY_NS SECOND_NS // after running out of memory

// What is kept of a member.
enum { IS_TARGET = 1, IN_CHILD = 2, IS_OWNED = 4 }; // owned: connected for sessions alone

// The members, in the order of the index.
struct list {
	uint32_t n;
	uint32_t n_owned;
	struct lb_member **members; // owned; counted, each knows its place (lb_member_place)
	uint8_t *flags; // owned
	uint64_t *wanted_ns; // owned: when a request last asked for it; NULL = none ever did
	uint32_t *by_id; // owned: places by member id; NULL = they are in that order
	struct lb_cells cells; // what maps are made of
	bool is_stale; // a change of the cells found no memory: they are to be made anew
};

struct lb_affinity {
	struct lb_affinity_env env;
	uint64_t idle_timeout_ns;
	struct list list;
	struct lb_affinity_index *index; // counted
	struct lb_affinity_map *map; // counted
	uint64_t swept_ns; // 0 = never
	struct twheel_timer sweep;
	struct twheel_timer tidy; // of what neither policies nor sessions use
	struct twheel_timer news; // states that the map lacks
};

static uint64_t saturating_add(uint64_t a, uint64_t b)
{
	uint64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

// Its place; UINT32_MAX = not listed.
static uint32_t find(const struct list *l, const struct lb_member *m)
{
	uint32_t at = lb_member_place(m);
	return at < l->n && l->members[at] == m ? at : UINT32_MAX;
}

static uint32_t find_id(const struct list *l, uint32_t member)
{
	uint32_t low = 0, high = l->n;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		uint32_t at = l->by_id ? l->by_id[middle] : middle;
		uint32_t id = lb_member_id(l->members[at]);
		if (id == member)
			return at;
		if (id < member)
			low = middle + 1;
		else
			high = middle;
	}
	return UINT32_MAX;
}

static void set_owned(struct list *l, uint32_t at, bool is_owned)
{
	l->n_owned -= l->flags[at] / IS_OWNED & 1;
	l->flags[at] = (uint8_t)((l->flags[at] & ~IS_OWNED) | is_owned * IS_OWNED);
	l->n_owned += is_owned;
}

// The map.

static struct lb_cell cell_of(const struct lb_affinity *a, const struct list *l, uint32_t at)
{
	const struct lb_member *m = l->members[at];
	return (struct lb_cell){
		.endpoint = lb_member_endpoint(m),
		.member = lb_member_id(m),
		.state = (uint8_t)lb_member_raw_state(m),
		.is_target = l->flags[at] & IS_TARGET,
		.has_connection = l->flags[at] & (IN_CHILD | IS_OWNED),
		.is_barred = lb_member_is_ejected(m) && !a->env.uses_ejected,
	};
}

static int make_cells(const struct lb_affinity *a, struct list *l)
{
	lb_cells_fini(&l->cells);
	for (uint32_t i = 0; i < l->n; i++)
		if (lb_cells_push(&l->cells, cell_of(a, l, i)))
			return -ENOMEM;
	l->is_stale = false;
	return 0;
}

static void try_again(struct lb_affinity *a)
{
	twheel_arm(a->env.wheel, &a->news, twheel_now(a->env.wheel) + RETRY_NS);
}

// Changes of one turn make one map.
static void changed(struct lb_affinity *a, uint32_t at)
{
	struct list *l = &a->list;
	l->is_stale = l->is_stale || lb_cells_set(&l->cells, at, cell_of(a, l, at));
	if (!twheel_armed(&a->news))
		twheel_arm(a->env.wheel, &a->news, twheel_now(a->env.wheel));
}

static void news_fired(struct twheel_timer *t)
{
	struct lb_affinity *a = (void *)((char *)t - offsetof(struct lb_affinity, news));
	struct lb_affinity_map *map = NULL;
	if (!a->list.is_stale || make_cells(a, &a->list) == 0)
		map = lb_affinity_map_new(a->index, &a->list.cells);
	if (!map) {
		try_again(a);
		return;
	}
	lb_affinity_map_put(a->map);
	a->map = map;
	a->env.on_change(a->env.ctx);
}

// Connections.

// Of a member at this place in this list.
static uint64_t expiry_of(const struct lb_affinity *a, const struct list *l, uint32_t at)
{
	uint64_t used = a->env.last_used(a->env.ctx, lb_member_id(l->members[at]));
	if (l->wanted_ns && used < l->wanted_ns[at])
		used = l->wanted_ns[at];
	return used ? saturating_add(used, a->idle_timeout_ns) : 0;
}

// The next sweep: at the earliest end of what sessions own (O16).
static void plan(struct lb_affinity *a)
{
	const struct list *l = &a->list;
	uint64_t at = saturating_add(twheel_now(a->env.wheel), a->idle_timeout_ns);
	for (uint32_t i = 0; l->n_owned && i < l->n; i++) {
		uint64_t end = l->flags[i] & IS_OWNED ? expiry_of(a, l, i) : UINT64_MAX;
		at = end < at ? end : at;
	}
	if (a->swept_ns && at < a->swept_ns + SWEEP_NS)
		at = a->swept_ns + SWEEP_NS;
	twheel_arm(a->env.wheel, &a->sweep, at);
}

static void sweep_fired(struct twheel_timer *t)
{
	struct lb_affinity *a = (void *)((char *)t - offsetof(struct lb_affinity, sweep));
	struct list *l = &a->list;
	uint64_t now = twheel_now(a->env.wheel);
	a->swept_ns = now;
	for (uint32_t i = 0; l->n_owned && i < l->n; i++) {
		// O15; but a request may wait for one that is CONNECTING (O18).
		if (!(l->flags[i] & IS_OWNED) || expiry_of(a, l, i) > now ||
			lb_member_raw_state(l->members[i]) == LB_CONNECTING)
			continue;
		set_owned(l, i, false);
		changed(a, i);
		if (!lb_member_is_watched(l->members[i]))
			lb_member_disconnect(l->members[i]);
		else if (!twheel_armed(&a->tidy))
			twheel_arm(a->env.wheel, &a->tidy, now + SWEEP_NS);
	}
	plan(a);
}

static bool is_stray(const struct list *l, uint32_t at)
{
	return !(l->flags[at] & (IN_CHILD | IS_OWNED)) &&
	       lb_member_raw_state(l->members[at]) != LB_IDLE;
}

static void tidy_fired(struct twheel_timer *t)
{
	struct lb_affinity *a = (void *)((char *)t - offsetof(struct lb_affinity, tidy));
	bool is_left = false;
	for (uint32_t i = 0; i < a->list.n; i++) {
		if (!is_stray(&a->list, i))
			continue;
		if (lb_member_is_watched(a->list.members[i]))
			is_left = true;
		else
			lb_member_disconnect(a->list.members[i]);
	}
	if (is_left)
		twheel_arm(a->env.wheel, &a->tidy, twheel_now(a->env.wheel) + SWEEP_NS);
}

// A list that a policy is about to replace, or a locality that is kept for its return (A28-W02),
// may hold on to a member that nobody else is to use any more. What one cuts off the other would
// connect again at once, whatever its backoff: for as long as it does, that is looked after now and
// then.
void lb_affinity_note(struct lb_affinity *a, struct lb_member *m)
{
	uint32_t at = find(&a->list, m);
	if (at == UINT32_MAX)
		return;
	changed(a, at);
	if (is_stray(&a->list, at) && !twheel_armed(&a->tidy))
		twheel_arm(a->env.wheel, &a->tidy, twheel_now(a->env.wheel) + SWEEP_NS);
}

void lb_affinity_set_in_child(struct lb_affinity *a, struct lb_member *m, bool in_child)
{
	struct list *l = &a->list;
	uint32_t at = find(l, m);
	if (at == UINT32_MAX || !(l->flags[at] & IN_CHILD) == !in_child)
		return;
	uint64_t now = twheel_now(a->env.wheel);
	l->flags[at] ^= IN_CHILD;
	bool is_target = l->flags[at] & IS_TARGET;
	set_owned(l, at, !in_child && is_target && expiry_of(a, l, at) > now); // O13, O14
	if (is_stray(l, at)) // disconnected when whoever changes the tree is through with it
		twheel_arm(a->env.wheel, &a->tidy, now);
	changed(a, at);
}

void lb_affinity_want(struct lb_affinity *a, uint32_t member)
{
	struct list *l = &a->list;
	uint32_t at = find_id(l, member);
	if (at == UINT32_MAX || !(l->flags[at] & (IN_CHILD | IS_TARGET)))
		return; // O04: a wish of before it began to drain
	if (!(l->flags[at] & IN_CHILD)) {
		if (!l->wanted_ns)
			l->wanted_ns = calloc((size_t)l->n + 1, sizeof(*l->wanted_ns));
		if (!l->wanted_ns)
			return; // it is asked for again
		l->wanted_ns[at] = twheel_now(a->env.wheel);
		set_owned(l, at, true);
		changed(a, at);
	}
	lb_member_connect(l->members[at]); // only if it is IDLE
}

// Updates.

static void list_fini(struct list *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		lb_member_put(l->members[i]);
	free(l->members);
	free(l->flags);
	free(l->wanted_ns);
	free(l->by_id);
	lb_cells_fini(&l->cells);
	*l = (struct list){0};
}

struct order { // of members by id
	uint32_t id, at;
};

static int compare(const void *x, const void *y)
{
	const struct order *a = x, *b = y;
	return (a->id > b->id) - (a->id < b->id);
}

static bool is_by_id(const struct list *l)
{
	for (uint32_t i = 1; i < l->n; i++)
		if (lb_member_id(l->members[i - 1]) > lb_member_id(l->members[i]))
			return false;
	return true;
}

static int put_in_order(struct list *l)
{
	if (is_by_id(l))
		return 0;
	struct order *order = malloc(((size_t)l->n + 1) * sizeof(*order));
	l->by_id = malloc(((size_t)l->n + 1) * sizeof(*l->by_id));
	if (!order || !l->by_id) {
		free(order);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < l->n; i++)
		order[i] = (struct order){lb_member_id(l->members[i]), i};
	qsort(order, l->n, sizeof(*order), compare);
	for (uint32_t i = 0; i < l->n; i++)
		l->by_id[i] = order[i].at;
	free(order);
	return 0;
}

// That of the list before, if it would be the same.
static struct lb_affinity_index *index_of(
	const struct lb_affinity *a, const struct lb_affinity_member *list, uint32_t n)
{
	struct lb_affinity_conf *conf = malloc(((size_t)n + 1) * sizeof(*conf));
	if (!conf)
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		conf[i] = (struct lb_affinity_conf){
			.addresses = lb_member_address(list[i].member, 0), // side by side
			.n_addresses = lb_member_n_addresses(list[i].member),
			.hostname = list[i].hostname,
		};
	struct lb_affinity_index *index;
	if (a->index && lb_affinity_index_is_of(a->index, conf, n))
		index = lb_affinity_index_get(a->index);
	else
		index = lb_affinity_index_new(conf, n);
	free(conf);
	return index;
}

static int list_init(struct list *l, const struct lb_affinity_member *list, uint32_t n)
{
	*l = (struct list){.members = malloc(((size_t)n + 1) * sizeof(struct lb_member *)),
		.flags = calloc((size_t)n + 1, 1)};
	if (!l->members || !l->flags)
		return -ENOMEM;
	for (; l->n < n; l->n++) {
		const struct lb_affinity_member *m = &list[l->n];
		l->members[l->n] = lb_member_get(m->member);
		l->flags[l->n] = (uint8_t)(m->is_target * IS_TARGET + m->in_child * IN_CHILD);
	}
	return put_in_order(l);
}

// What a session has stays so; what the policies let go with this update may become it (O13).
static int inherit(const struct lb_affinity *a, struct list *l)
{
	uint64_t now = twheel_now(a->env.wheel);
	if (a->list.wanted_ns)
		l->wanted_ns = calloc((size_t)l->n + 1, sizeof(*l->wanted_ns));
	if (a->list.wanted_ns && !l->wanted_ns)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->n; i++) {
		uint32_t old = find(&a->list, l->members[i]);
		if (old != UINT32_MAX && l->wanted_ns)
			l->wanted_ns[i] = a->list.wanted_ns[old];
		if (l->flags[i] & IN_CHILD || !(l->flags[i] & IS_TARGET))
			continue;
		bool is_owned = old != UINT32_MAX && a->list.flags[old] & IS_OWNED;
		set_owned(l, i,
			is_owned || (lb_member_raw_state(l->members[i]) != LB_IDLE &&
					    expiry_of(a, l, i) > now));
	}
	return 0;
}

struct lb_affinity *lb_affinity_new(const struct lb_affinity_env *env)
{
	struct lb_affinity *a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	*a = (struct lb_affinity){.env = *env,
		.sweep = {.fire = sweep_fired},
		.tidy = {.fire = tidy_fired},
		.news = {.fire = news_fired}};
	return a;
}

void lb_affinity_free(struct lb_affinity *a)
{
	if (!a)
		return;
	twheel_cancel(a->env.wheel, &a->sweep);
	twheel_cancel(a->env.wheel, &a->tidy);
	twheel_cancel(a->env.wheel, &a->news);
	list_fini(&a->list);
	lb_affinity_index_put(a->index);
	lb_affinity_map_put(a->map);
	free(a);
}

// An update that says nothing new.
static bool is_same(const struct list *l, const struct lb_affinity_member *members)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (members[i].member != l->members[i] ||
			members[i].is_target * IS_TARGET + members[i].in_child * IN_CHILD !=
				(l->flags[i] & ~IS_OWNED))
			return false;
	return true;
}

int lb_affinity_update(struct lb_affinity *a, const struct lb_affinity_member *members, uint32_t n,
	uint64_t idle_timeout_ns)
{
	struct list list;
	struct lb_affinity_index *index = index_of(a, members, n);
	if (index && index == a->index && is_same(&a->list, members)) {
		lb_affinity_index_put(index);
		a->idle_timeout_ns = idle_timeout_ns;
		plan(a);
		return 0;
	}
	struct lb_affinity_map *map = NULL;
	if (list_init(&list, members, n) == 0 && index && inherit(a, &list) == 0 &&
		make_cells(a, &list) == 0)
		map = lb_affinity_map_new(index, &list.cells);
	if (!map) {
		list_fini(&list);
		lb_affinity_index_put(index);
		return -ENOMEM;
	}
	list_fini(&a->list);
	lb_affinity_index_put(a->index);
	lb_affinity_map_put(a->map);
	a->list = list;
	a->index = index;
	a->map = map;
	a->idle_timeout_ns = idle_timeout_ns;
	for (uint32_t i = 0; i < n; i++)
		lb_member_set_place(list.members[i], i);
	twheel_arm(a->env.wheel, &a->tidy, twheel_now(a->env.wheel));
	plan(a);
	return 0;
}

struct lb_member *lb_affinity_find(
	const struct lb_affinity *a, const struct ip_port *addresses, uint32_t n)
{
	uint32_t tried = UINT32_MAX;
	for (uint32_t i = 0; a->index && i < n; i++) {
		uint32_t at = lb_affinity_index_find(a->index, &addresses[i]);
		if (at != tried && at != UINT32_MAX &&
			lb_member_same_set(a->list.members[at], addresses, n))
			return a->list.members[at];
		tried = at;
	}
	return NULL;
}

struct lb_affinity_map *lb_affinity_map_of(const struct lb_affinity *a)
{
	return a->map;
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
