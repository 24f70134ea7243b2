// SPDX-License-Identifier: Apache-2.0
// Quota cache: places of breakers (lb/pick/breaker.h) that one worker keeps ready, so that its
// requests start and end without a write to a cache line that all workers write to. A kept place
// counts as in flight: together they never exceed the limit (MC-14).
// The cost: other workers may be refused although a place is free, but only while the requests in
// flight grow from half of the limit to all of it within one turn of the worker that keeps the
// place, and only up to an eighth of the limit over all workers. A lowered limit applies from the
// next request that the worker admits, or 64 turns later; until then it keeps places by the old
// limit. Limits below 16 places per worker are always exact, and so is every limit while no
// requests come or go.
// Thread: each worker has its own.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct lb_breaker;

#define LB_QUOTA_CACHE_SLOTS                                                                       \
	32 // breakers with cached places at one time; all others work without a cache

struct lb_quota_cache_slot {
	struct lb_breaker *breaker; // alive while spare > 0: the spare places are counted in it
	uint32_t spare; // places kept
	uint32_t limit; // the limit last seen
	uint32_t heard; // the turn in which limit was last seen
	uint32_t step; // places to take when none is left
};

// Initially all zero except n_workers, the number of workers that share the limits.
struct lb_quota_cache {
	uint32_t n_workers;
	uint32_t held; // bit i: slots[i].spare > 0
	uint32_t n_spare; // total of spare places
	uint32_t turn; // wraps
	bool is_used; // a request came or went since the last turn
	uint8_t n_quiet; // turns without use
	struct lb_quota_cache_slot slots[LB_QUOTA_CACHE_SLOTS];
};

// As lb_breaker_enter() and lb_breaker_leave(), and may be mixed with them: a request may enter by
// one and leave by the other.
bool lb_quota_cache_enter(struct lb_quota_cache *, struct lb_breaker *, uint32_t limit);
void lb_quota_cache_leave(struct lb_quota_cache *, struct lb_breaker *);
// Places of it that are kept here.
uint32_t lb_quota_cache_kept(const struct lb_quota_cache *, const struct lb_breaker *);
// True if lb_quota_cache_enter() would fail now.
bool lb_quota_cache_is_full(
	const struct lb_quota_cache *, const struct lb_breaker *, uint32_t limit);
// Call at the end of each turn: returns places near their limit or without an admission for 64
// turns, and all places after two turns without traffic.
void lb_quota_cache_tidy(struct lb_quota_cache *);
// Returns all places.
void lb_quota_cache_return(struct lb_quota_cache *);
