// SPDX-License-Identifier: Apache-2.0
// Eight levels of 64 slots, six bits of the tick each, so that every 64-bit instant has a place. A
// timer sits at the level of the highest bits in which its tick differs from the wheel's position,
// and moves down as the position enters its slot. Bitmaps of used slots let advance() jump from one
// used slot to the next instead of visiting every tick.
#include "lb/base/twheel.h"

#include "lb/base/cacheline.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"

#include <stddef.h>
#include <stdlib.h>

#define LEVEL_BITS 6
#define N_SLOTS TWHEEL_SLOTS
#define N_LEVELS TWHEEL_LEVELS

_Static_assert(N_SLOTS == 1u << LEVEL_BITS, "a slot for each value of a level's bits");
// 2^64 ns are less than 2^45 ticks.
_Static_assert(LEVEL_BITS *N_LEVELS >= 45, "every tick has a slot");

static struct twheel_timer *timer_of(struct list_link *l)
{
	return CONTAINER_OF(l, struct twheel_timer, link);
}

struct twheel *twheel_new(uint64_t now_ns)
{
	struct twheel *w = cacheline_alloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->now_ns = now_ns;
	w->now_tick = w->position = now_ns / TWHEEL_NS_PER_TICK;
	list_init(&w->due);
	for (unsigned level = 0; level < N_LEVELS; level++)
		for (unsigned i = 0; i < N_SLOTS; i++)
			list_init(&w->slots[level][i]);
	return w;
}

void twheel_free(struct twheel *w)
{
	cacheline_free(w);
}

// For a tick later than position.
static void insert(struct twheel *w, struct twheel_timer *t)
{
	unsigned top_bit = 63 - (unsigned)__builtin_clzll(t->expires_tick ^ w->position);
	unsigned level = top_bit / LEVEL_BITS;
	unsigned i = t->expires_tick >> (level * LEVEL_BITS) & (N_SLOTS - 1);
	list_append(&w->slots[level][i], &t->link);
	w->used[level] |= UINT64_C(1) << i;
}

void twheel_arm(struct twheel *w, struct twheel_timer *t, uint64_t at_ns)
{
	DCHECK(t->fire);
	twheel_cancel(w, t);
	t->expires_tick = at_ns / TWHEEL_NS_PER_TICK + (at_ns % TWHEEL_NS_PER_TICK != 0);
	if (t->expires_tick <= w->now_tick) {
		// Counts as armed for now, so that timers still fire in order of tick.
		t->expires_tick = w->now_tick;
		list_append(&w->due, &t->link);
	} else {
		insert(w, t);
	}
}

void twheel_cancel(struct twheel *w, struct twheel_timer *t)
{
	if (!twheel_armed(t))
		return;
	struct list_link *head = t->link.next == t->link.prev ? t->link.next : NULL;
	list_remove(&t->link);
	// It was alone: both neighbors were the head of its list, which may be a slot.
	uintptr_t at = (uintptr_t)head - (uintptr_t)&w->slots[0][0];
	if (head && at < sizeof(w->slots)) {
		size_t i = at / sizeof(w->slots[0][0]);
		w->used[i / N_SLOTS] &= ~(UINT64_C(1) << i % N_SLOTS);
	}
}

// The first used slot after the position; false = no timer in any. *ret_tick is where it begins.
static bool next_slot(
	const struct twheel *w, unsigned *ret_level, unsigned *ret_i, uint64_t *ret_tick)
{
	for (unsigned level = 0; level < N_LEVELS; level++) {
		if (!w->used[level])
			continue;
		unsigned i = (unsigned)__builtin_ctzll(w->used[level]);
		unsigned shift = level * LEVEL_BITS;
		// Timers of a level share all higher bits with the position.
		uint64_t above = w->position >> shift >> LEVEL_BITS << LEVEL_BITS << shift;
		*ret_level = level;
		*ret_i = i;
		*ret_tick = above | (uint64_t)i << shift;
		return true;
	}
	return false;
}

static bool fire_all(struct list_link *list)
{
	bool any = !list_empty(list);
	while (!list_empty(list)) {
		struct twheel_timer *t = timer_of(list->next);
		list_remove(&t->link);
		t->fire(t);
	}
	return any;
}

void twheel_set_now(struct twheel *w, uint64_t now_ns)
{
	if (now_ns > w->now_ns) {
		w->now_ns = now_ns;
		w->now_tick = now_ns / TWHEEL_NS_PER_TICK;
	}
}

bool twheel_advance(struct twheel *w, uint64_t now_ns)
{
	twheel_set_now(w, now_ns);
	// What fires now and arms itself for the past again waits for the next call.
	struct list_link list;
	list_init(&list);
	list_splice(&list, &w->due);
	bool any = fire_all(&list);

	unsigned level, i;
	uint64_t tick;
	while (w->position < w->now_tick && next_slot(w, &level, &i, &tick) &&
		tick <= w->now_tick) {
		w->position = tick;
		w->used[level] &= ~(UINT64_C(1) << i);
		list_splice(&list, &w->slots[level][i]);
		if (level == 0) {
			any |= fire_all(&list);
			continue;
		}
		struct list_link first; // due at the very tick at which the slot begins
		list_init(&first);
		while (!list_empty(&list)) {
			struct twheel_timer *t = timer_of(list.next);
			list_remove(&t->link);
			if (t->expires_tick == tick)
				list_append(&first, &t->link);
			else
				insert(w, t);
		}
		any |= fire_all(&first);
	}
	w->position = w->now_tick;
	return any;
}

uint64_t twheel_next_ns(const struct twheel *w)
{
	unsigned level, i;
	uint64_t tick;
	if (!list_empty(&w->due))
		return w->now_ns;
	return next_slot(w, &level, &i, &tick) ? tick * TWHEEL_NS_PER_TICK : UINT64_MAX;
}
