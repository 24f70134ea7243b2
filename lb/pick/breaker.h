// SPDX-License-Identifier: Apache-2.0
// How many requests a cluster has in flight, over all workers, and whether one more may start (gRFC
// A32; A32-I05 to A32-I09, MC-14). One counter for each pair of cluster and EDS service
// name, shared by all who use that pair; the limit is the caller's, so that another one acts at
// once and touches nobody who is in.
// Thread: enter/leave on workers; the rest on ctrl.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct lb_breaker {
	// A line that several workers write to, for each request unless they keep places ready
	// (lb/pick/quota_cache.h), which count; what else lies in it is ctrl's, which touches it
	// for updates and snapshots only.
	uint32_t in_flight; // w: workers (atomic), r: any
};

struct lb_breakers; // of the process

struct lb_breakers *lb_breakers_new(void); // NULL = out of memory
void lb_breakers_free(struct lb_breakers *); // workers stopped, all put; NULL is fine
// Finds or makes it, counted. NULL = out of memory.
struct lb_breaker *lb_breakers_get(
	struct lb_breakers *, const char *cluster, const char *eds_service_name);
struct lb_breaker *lb_breaker_get_again(struct lb_breaker *);
// The last put leaves it to requests that are still in: they are counted on if the pair is used
// again before they end (A32-I07). No snapshot that a worker may read has it any more. NULL is
// fine.
void lb_breaker_put(struct lb_breaker *);
uint32_t lb_breakers_count(const struct lb_breakers *); // those with requests included

// True = the request is in, until leave(). Never lets in more than the limit. A worker about to be
// refused holds one place for an instant, so that others may be refused up to one place a worker
// early; all of the limit is there for one worker alone.
static inline bool lb_breaker_enter(struct lb_breaker *b, uint32_t limit)
{
	// A look first: refusing, which may be all that happens, then leaves the line shared.
	if (__atomic_load_n(&b->in_flight, __ATOMIC_RELAXED) >= limit)
		return false;
	if (__atomic_fetch_add(&b->in_flight, 1, __ATOMIC_RELAXED) < limit)
		return true;
	__atomic_fetch_sub(&b->in_flight, 1, __ATOMIC_RELAXED);
	return false;
}

// Exactly once for each that got in, however it ended (A32-I09).
static inline void lb_breaker_leave(struct lb_breaker *b)
{
	// Pairs with the acquire before it is freed: this was the worker's last touch.
	__atomic_fetch_sub(&b->in_flight, 1, __ATOMIC_RELEASE);
}

static inline uint32_t lb_breaker_in_flight(const struct lb_breaker *b)
{
	return __atomic_load_n(&b->in_flight, __ATOMIC_ACQUIRE);
}
