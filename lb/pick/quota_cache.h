// SPDX-License-Identifier: Apache-2.0
// Places of breakers (lb/pick/breaker.h) that one worker keeps ready, so that its requests come and
// go without a write to a line that all workers write to. A place that is kept counts as in flight:
// all of them together never pass the limit (MC-14).
//
// What it costs: others may be refused although a place is free, but only while the requests in
// flight grow from half of the limit to all of it within one turn of the worker that keeps it, and
// of no more places than an eighth of the limit over all workers. A limit that is lowered counts
// from the next request on that the worker lets in, or 64 turns later: until then it keeps places
// by the old one. Limits below 16 places for each worker are always held exactly, and so is every
// limit while nothing happens.
// Thread: a worker, each its own.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct lb_breaker;

#define LB_QUOTA_CACHE_SLOTS                                                                       \
	32 // breakers that have places kept at one time; others have none, and work

struct lb_quota_cache_slot {
	struct lb_breaker *breaker; // alive while spare > 0: these are in it
	uint32_t spare; // places kept
	uint32_t limit; // the last one that was heard of
	uint32_t heard; // in which turn
	uint32_t step; // places to take when there is none
};

// All zero but n_workers, how many share the limits, to begin with.
struct lb_quota_cache {
	uint32_t n_workers;
	uint32_t held; // bit i: slots[i].spare > 0
	uint32_t n_spare; // of all
	uint32_t turn; // wraps
	bool is_used; // since the last turn
	uint8_t n_quiet; // turns without use
	struct lb_quota_cache_slot slots[LB_QUOTA_CACHE_SLOTS];
};

// As lb_breaker_enter() and lb_breaker_leave(). Either may be mixed with these, a request may even
// enter by one and leave by the other.
bool lb_quota_cache_enter(struct lb_quota_cache *, struct lb_breaker *, uint32_t limit);
void lb_quota_cache_leave(struct lb_quota_cache *, struct lb_breaker *);
// lb_quota_cache_enter() would fail now.
bool lb_quota_cache_is_full(
	const struct lb_quota_cache *, const struct lb_breaker *, uint32_t limit);
// At the end of each turn: gives back what is near its limit or has let nobody in for 64 turns, and
// all in the second turn in which nobody came or went.
void lb_quota_cache_tidy(struct lb_quota_cache *);
// Gives all back.
void lb_quota_cache_return(struct lb_quota_cache *);
