// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/quota_cache.h"

#include "lb/pick/breaker.h"

#include <stddef.h>

#define MOST 64 // places of one breaker
#define ALL_PART 8 // of the limit, for all workers together
#define QUIET_TURNS 2
#define UNUSED_TURNS 64

static uint32_t look(const struct lb_breaker *b)
{
	return __atomic_load_n(&b->in_flight, __ATOMIC_RELAXED);
}

static uint32_t most(const struct lb_quota_cache *l, uint32_t limit)
{
	uint32_t n = limit / (ALL_PART * l->n_workers);
	return n < MOST ? n < 2 ? 0 : n : MOST;
}

// Above this every place is given back.
static uint32_t ample(uint32_t limit)
{
	return limit / 2;
}

static uint32_t slot_of(const struct lb_breaker *b)
{
	_Static_assert(LB_QUOTA_CACHE_SLOTS == 1u << 5, "bits of the product, and of held");
	return (uint32_t)((uint64_t)(uintptr_t)b / 64 * UINT64_C(0x9e3779b97f4a7c15) >> 59);
}

static void keep(struct lb_quota_cache *l, struct lb_quota_cache_slot *s, uint32_t spare)
{
	uint32_t bit = 1u << (s - l->slots);
	l->n_spare += spare - s->spare;
	l->held = spare ? l->held | bit : l->held & ~bit;
	s->spare = spare;
}

// The release pairs as lb_breaker_leave()'s: this was the last touch.
static void give_back(struct lb_quota_cache *l, struct lb_quota_cache_slot *s)
{
	uint32_t n = s->spare;
	keep(l, s, 0);
	s->step = 1;
	__atomic_fetch_sub(&s->breaker->in_flight, n, __ATOMIC_RELEASE);
}

// One for the request, and as many more as have been asked for lately: twice as many each time.
static bool take(struct lb_quota_cache *l, struct lb_quota_cache_slot *s)
{
	struct lb_breaker *b = s->breaker;
	uint32_t n = most(l, s->limit);
	n = s->step < n ? s->step : n;
	if (n < 2 || look(b) + n > ample(s->limit)) {
		s->step = 2;
		return lb_breaker_enter(b, s->limit);
	}
	s->step = 2 * n;
	uint32_t before = __atomic_fetch_add(&b->in_flight, n, __ATOMIC_RELAXED);
	if (before + n > s->limit) { // others were as quick
		__atomic_fetch_sub(&b->in_flight, n, __ATOMIC_RELAXED);
		return lb_breaker_enter(b, s->limit);
	}
	keep(l, s, n - 1);
	return true;
}

bool lb_quota_cache_enter(struct lb_quota_cache *l, struct lb_breaker *b, uint32_t limit)
{
	struct lb_quota_cache_slot *s = &l->slots[slot_of(b)];
	l->is_used = true;
	if (s->breaker != b) {
		if (s->spare > 0)
			return lb_breaker_enter(b, limit);
		*s = (struct lb_quota_cache_slot){.breaker = b, .step = 1};
	}
	s->limit = limit;
	s->heard = l->turn;
	if (s->spare > 0) {
		if (look(b) <= limit) {
			keep(l, s, s->spare - 1);
			return true;
		}
		give_back(l, s); // the limit was lowered; without these there may be room
	}
	return take(l, s);
}

void lb_quota_cache_leave(struct lb_quota_cache *l, struct lb_breaker *b)
{
	struct lb_quota_cache_slot *s = &l->slots[slot_of(b)];
	l->is_used = true;
	// A slot without places may be another breaker's that was at this address: all that is left
	// of that one is a limit.
	uint32_t max = s->breaker == b ? most(l, s->limit) : 0;
	if (max == 0 || look(b) > ample(s->limit)) {
		lb_breaker_leave(b);
		return;
	}
	if (s->spare < max) {
		keep(l, s, s->spare + 1);
		return;
	}
	uint32_t n = s->spare / 2;
	keep(l, s, s->spare - n);
	__atomic_fetch_sub(&b->in_flight, n + 1, __ATOMIC_RELEASE); // as lb_breaker_leave()'s
}

uint32_t lb_quota_cache_kept(const struct lb_quota_cache *l, const struct lb_breaker *b)
{
	const struct lb_quota_cache_slot *s = &l->slots[slot_of(b)];
	return s->breaker == b ? s->spare : 0;
}

bool lb_quota_cache_is_full(
	const struct lb_quota_cache *l, const struct lb_breaker *b, uint32_t limit)
{
	return look(b) - lb_quota_cache_kept(l, b) >= limit;
}

void lb_quota_cache_tidy(struct lb_quota_cache *l)
{
	if (l->is_used)
		l->n_quiet = 0;
	else if (l->n_quiet < QUIET_TURNS)
		l->n_quiet++;
	l->is_used = false;
	l->turn++;
	if (!l->held)
		return;
	if (l->n_quiet >= QUIET_TURNS) {
		lb_quota_cache_return(l);
		return;
	}
	for (uint32_t held = l->held; held; held &= held - 1) {
		struct lb_quota_cache_slot *s = &l->slots[__builtin_ctz(held)];
		// Its limit may be an old one, or its cluster gone: only who enters hears of it.
		if (l->turn - s->heard >= UNUSED_TURNS || look(s->breaker) > ample(s->limit))
			give_back(l, s);
	}
}

void lb_quota_cache_return(struct lb_quota_cache *l)
{
	for (uint32_t held = l->held; held; held &= held - 1)
		give_back(l, &l->slots[__builtin_ctz(held)]);
}
