// SPDX-License-Identifier: Apache-2.0
#include "lb/affinity.h"

#include "lb/affinity_map.h"
#include "lb/base/twheel.h"
#include "lb/member.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define SECOND_NS 1000000000ull
#define SWEEP_NS (5 * SECOND_NS) // sweeps are no closer than this (O16)
#define RETRY_NS SECOND_NS // after running out of memory

struct entry {
	struct lb_member_watcher watcher;
	struct lb_affinity *owner;
	struct lb_member *member; // counted and watched
	bool is_target, in_child;
	bool is_owned; // connected for sessions alone
	uint64_t wanted_ns; // when a request last asked for it
};

struct lb_affinity {
	struct lb_affinity_env env;
	uint64_t idle_timeout_ns;
	struct entry *entries; // owned; [n], in the order of the index
	uint32_t *by_id; // owned; [n], entries by member id
	uint32_t n;
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

// By member's id; NULL = not listed.
static struct entry *find(const struct lb_affinity *a, uint32_t member)
{
	uint32_t low = 0, high = a->n;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		struct entry *e = &a->entries[a->by_id[middle]];
		uint32_t id = lb_member_id(e->member);
		if (id == member)
			return e;
		if (id < member)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

// The map.

static struct lb_affinity_map *make_map(const struct lb_affinity *a,
	struct lb_affinity_index *index, const struct entry *entries, uint32_t n)
{
	struct lb_affinity_state *states = calloc((size_t)n + 1, sizeof(*states));
	if (!states)
		return NULL;
	for (uint32_t i = 0; i < n; i++) {
		const struct entry *e = &entries[i];
		states[i] = (struct lb_affinity_state){
			.endpoint = lb_member_endpoint(e->member),
			.state = (uint8_t)lb_member_raw_state(e->member),
			.has_connection = e->in_child || e->is_owned,
			.is_barred = lb_member_is_ejected(e->member) && !a->env.uses_ejected,
		};
	}
	return lb_affinity_map_new(index, states);
}

// Changes of one turn make one map.
static void changed(struct lb_affinity *a)
{
	if (!twheel_armed(&a->news))
		twheel_arm(a->env.wheel, &a->news, twheel_now(a->env.wheel));
}

static void news_fired(struct twheel_timer *t)
{
	struct lb_affinity *a = (void *)((char *)t - offsetof(struct lb_affinity, news));
	struct lb_affinity_map *map = make_map(a, a->index, a->entries, a->n);
	if (!map) {
		twheel_arm(a->env.wheel, &a->news, twheel_now(a->env.wheel) + RETRY_NS);
		return;
	}
	lb_affinity_map_put(a->map);
	a->map = map;
	a->env.on_change(a->env.ctx);
}

// Connections.

static uint64_t expiry_of(const struct lb_affinity *a, const struct entry *e)
{
	uint64_t used = a->env.last_used(a->env.ctx, lb_member_id(e->member));
	if (used < e->wanted_ns)
		used = e->wanted_ns;
	return used ? saturating_add(used, a->idle_timeout_ns) : 0;
}

// The next sweep: at the earliest end of what sessions own (O16).
static void plan(struct lb_affinity *a)
{
	uint64_t at = saturating_add(twheel_now(a->env.wheel), a->idle_timeout_ns);
	for (uint32_t i = 0; i < a->n; i++) {
		uint64_t end = a->entries[i].is_owned ? expiry_of(a, &a->entries[i]) : UINT64_MAX;
		at = end < at ? end : at;
	}
	if (a->swept_ns && at < a->swept_ns + SWEEP_NS)
		at = a->swept_ns + SWEEP_NS;
	twheel_arm(a->env.wheel, &a->sweep, at);
}

static void sweep_fired(struct twheel_timer *t)
{
	struct lb_affinity *a = (void *)((char *)t - offsetof(struct lb_affinity, sweep));
	uint64_t now = twheel_now(a->env.wheel);
	a->swept_ns = now;
	for (uint32_t i = 0; i < a->n; i++) {
		struct entry *e = &a->entries[i];
		// O15; but a request may wait for one that is CONNECTING (O18).
		if (!e->is_owned || expiry_of(a, e) > now ||
			lb_member_raw_state(e->member) == LB_CONNECTING)
			continue;
		e->is_owned = false;
		lb_member_disconnect(e->member);
		changed(a);
	}
	plan(a);
}

static bool is_stray(const struct entry *e)
{
	return !e->in_child && !e->is_owned && lb_member_raw_state(e->member) != LB_IDLE;
}

static void tidy_fired(struct twheel_timer *t)
{
	struct lb_affinity *a = (void *)((char *)t - offsetof(struct lb_affinity, tidy));
	for (uint32_t i = 0; i < a->n; i++)
		if (is_stray(&a->entries[i]))
			lb_member_disconnect(a->entries[i].member);
}

// A list that a policy is about to replace may still hold on to a member that nobody is to use any
// more, and connect it again: for as long as it does, that is looked after now and then.
static void on_member(struct lb_member_watcher *w)
{
	struct entry *e = (void *)((char *)w - offsetof(struct entry, watcher));
	struct lb_affinity *a = e->owner;
	changed(a);
	if (is_stray(e) && !twheel_armed(&a->tidy))
		twheel_arm(a->env.wheel, &a->tidy, twheel_now(a->env.wheel) + SWEEP_NS);
}

void lb_affinity_set_in_child(struct lb_affinity *a, struct lb_member *m, bool in_child)
{
	struct entry *e = find(a, lb_member_id(m));
	if (!e || e->in_child == in_child)
		return;
	uint64_t now = twheel_now(a->env.wheel);
	e->in_child = in_child;
	e->is_owned = !in_child && e->is_target && expiry_of(a, e) > now; // O13, O14
	if (is_stray(e)) // disconnected when whoever changes the tree is through with it
		twheel_arm(a->env.wheel, &a->tidy, now);
	changed(a);
}

void lb_affinity_want(struct lb_affinity *a, uint32_t member)
{
	struct entry *e = find(a, member);
	if (!e)
		return;
	if (!e->in_child) {
		e->is_owned = true;
		e->wanted_ns = twheel_now(a->env.wheel);
		changed(a);
	}
	lb_member_connect(e->member); // only if it is IDLE
}

// Updates.

static void entries_free(struct entry *entries, uint32_t n)
{
	for (uint32_t i = 0; entries && i < n; i++) {
		lb_member_unwatch(entries[i].member, &entries[i].watcher);
		lb_member_put(entries[i].member);
	}
	free(entries);
}

struct order { // of entries by member id
	uint32_t id, at;
};

static int compare(const void *x, const void *y)
{
	const struct order *a = x, *b = y;
	return (a->id > b->id) - (a->id < b->id);
}

static uint32_t *order_of(const struct entry *entries, uint32_t n)
{
	struct order *order = calloc((size_t)n + 1, sizeof(*order));
	uint32_t *by_id = calloc((size_t)n + 1, sizeof(*by_id));
	if (!order || !by_id) {
		free(order);
		free(by_id);
		return NULL;
	}
	for (uint32_t i = 0; i < n; i++)
		order[i] = (struct order){lb_member_id(entries[i].member), i};
	qsort(order, n, sizeof(*order), compare);
	for (uint32_t i = 0; i < n; i++)
		by_id[i] = order[i].at;
	free(order);
	return by_id;
}

static struct lb_affinity_index *index_of(const struct lb_affinity_member *list, uint32_t n)
{
	struct lb_affinity_conf *conf = calloc((size_t)n + 1, sizeof(*conf));
	if (!conf)
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		conf[i] = (struct lb_affinity_conf){
			.addresses = lb_member_address(list[i].member, 0), // side by side
			.n_addresses = lb_member_n_addresses(list[i].member),
			.hostname = list[i].hostname,
			.locality = list[i].locality,
			.member = lb_member_id(list[i].member),
			.is_target = list[i].is_target,
		};
	struct lb_affinity_index *index = lb_affinity_index_new(conf, n);
	free(conf);
	return index;
}

// What a session has stays so; what the policies let go with this update may become it (O13).
static bool is_owned_now(
	const struct lb_affinity *a, const struct entry *e, const struct entry *old)
{
	if (e->in_child || !e->is_target)
		return false;
	return (old && old->is_owned) || (lb_member_raw_state(e->member) != LB_IDLE &&
						 expiry_of(a, e) > twheel_now(a->env.wheel));
}

static struct entry *entries_of(
	struct lb_affinity *a, const struct lb_affinity_member *list, uint32_t n)
{
	struct entry *entries = calloc((size_t)n + 1, sizeof(*entries));
	for (uint32_t i = 0; entries && i < n; i++) {
		const struct entry *old = find(a, lb_member_id(list[i].member));
		if (old && old->member != list[i].member)
			old = NULL; // the number has another bearer
		entries[i] = (struct entry){
			.watcher = {.on_change = on_member},
			.owner = a,
			.member = lb_member_get(list[i].member),
			.is_target = list[i].is_target,
			.in_child = list[i].in_child,
			.wanted_ns = old ? old->wanted_ns : 0,
		};
		entries[i].is_owned = is_owned_now(a, &entries[i], old);
		lb_member_watch(entries[i].member, &entries[i].watcher);
	}
	return entries;
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
	entries_free(a->entries, a->n);
	free(a->by_id);
	lb_affinity_index_put(a->index);
	lb_affinity_map_put(a->map);
	free(a);
}

int lb_affinity_update(struct lb_affinity *a, const struct lb_affinity_member *list, uint32_t n,
	uint64_t idle_timeout_ns)
{
	struct lb_affinity_index *index = index_of(list, n);
	struct entry *entries = index ? entries_of(a, list, n) : NULL;
	uint32_t *by_id = entries ? order_of(entries, n) : NULL;
	struct lb_affinity_map *map = by_id ? make_map(a, index, entries, n) : NULL;
	if (!map) {
		free(by_id);
		entries_free(entries, n);
		lb_affinity_index_put(index);
		return -ENOMEM;
	}
	entries_free(a->entries, a->n);
	free(a->by_id);
	lb_affinity_index_put(a->index);
	lb_affinity_map_put(a->map);
	a->entries = entries;
	a->by_id = by_id;
	a->n = n;
	a->index = index;
	a->map = map;
	a->idle_timeout_ns = idle_timeout_ns;
	twheel_arm(a->env.wheel, &a->tidy, twheel_now(a->env.wheel));
	plan(a);
	return 0;
}

struct lb_affinity_map *lb_affinity_map_of(const struct lb_affinity *a)
{
	return a->map;
}

uint32_t lb_affinity_n_owned(const struct lb_affinity *a)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < a->n; i++)
		n += a->entries[i].is_owned;
	return n;
}
