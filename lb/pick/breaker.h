// SPDX-License-Identifier: Apache-2.0
// Circuit breaker: how many requests a cluster has in flight, over all workers, and whether one
// more may start (gRFC A32; A32-I05 to A32-I09, MC-14); how many of them are retries, and whether
// there may be one more (CB-07). One pair of counters per pair of cluster and EDS
// service name, shared by all its users. The caller passes the limit, so that a new limit applies
// at once and requests that have entered stay.
// Thread: enter/leave on workers; the rest on ctrl.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct lb_breaker {
	// Several workers write to this cache line for each request, unless they keep places in
	// their caches (lb/pick/quota_cache.h); cached places count as in flight. The other fields
	// in the line are ctrl's, which touches them only for updates and snapshots.
	uint32_t in_flight; // w: workers (atomic), r: any
	uint32_t retrying; // likewise: requests that are or will be sent again
};

// Envoy's CircuitBreakers.Thresholds: retry_budget, or max_retries as one of 0 percent. All zero =
// retries have no limit.
struct lb_retry_budget {
	bool is_set;
	uint32_t per_million; // of the requests in flight
	uint32_t min_concurrency; // retries that there may be anyway
};

struct lb_breakers; // All breakers of the process.

struct lb_breakers *lb_breakers_new(void); // Returns NULL if out of memory.
// after all workers stopped and all are put; NULL is fine
void lb_breakers_free(struct lb_breakers *);
// Finds or makes it, counted. Returns NULL if out of memory.
struct lb_breaker *lb_breakers_get(
	struct lb_breakers *, const char *cluster, const char *eds_service_name);
struct lb_breaker *lb_breaker_get_again(struct lb_breaker *);
// Drops a reference. After the last one the breaker lives on until its requests end; if the pair is
// used again before, they still count (A32-I07). No snapshot that a worker may read refers to it
// any more. NULL is fine.
void lb_breaker_put(struct lb_breaker *);
uint32_t lb_breakers_count(const struct lb_breakers *); // including those that only requests hold

// Returns true if the request may start; it then counts until leave(). Never admits more than the
// limit. A worker about to be refused holds one place for an instant, so that others may be refused
// up to one place per worker early; a single worker can use the whole limit.
static inline bool lb_breaker_enter(struct lb_breaker *b, uint32_t limit)
{
	// Load first: a refusal, perhaps the only outcome for a while, then leaves the cache line
	// shared.
	if (__atomic_load_n(&b->in_flight, __ATOMIC_RELAXED) >= limit)
		return false;
	if (__atomic_fetch_add(&b->in_flight, 1, __ATOMIC_RELAXED) < limit)
		return true;
	__atomic_fetch_sub(&b->in_flight, 1, __ATOMIC_RELAXED);
	return false;
}

// Call exactly once for each admitted request, however it ended (A32-I09).
static inline void lb_breaker_leave(struct lb_breaker *b)
{
	// Release: pairs with the acquire before the breaker is freed; this is the worker's last
	// access.
	__atomic_fetch_sub(&b->in_flight, 1, __ATOMIC_RELEASE);
}

// As enter and leave, for a request that is to be sent again: it counts from the decision, and
// waits before it is in flight. n_kept: places that count as in flight and hold no request.
static inline bool lb_breaker_enter_retry(
	struct lb_breaker *b, const struct lb_retry_budget *budget, uint32_t n_kept)
{
	uint64_t in_flight = __atomic_load_n(&b->in_flight, __ATOMIC_RELAXED) - n_kept;
	uint64_t limit = in_flight * budget->per_million / 1000000;
	if (limit < budget->min_concurrency)
		limit = budget->min_concurrency;
	if (__atomic_fetch_add(&b->retrying, 1, __ATOMIC_RELAXED) < limit)
		return true;
	__atomic_fetch_sub(&b->retrying, 1, __ATOMIC_RELEASE);
	return false;
}

static inline void lb_breaker_leave_retry(struct lb_breaker *b)
{
	__atomic_fetch_sub(&b->retrying, 1, __ATOMIC_RELEASE); // as lb_breaker_leave()'s
}

static inline uint32_t lb_breaker_retrying(const struct lb_breaker *b)
{
	return __atomic_load_n(&b->retrying, __ATOMIC_ACQUIRE);
}

static inline uint32_t lb_breaker_in_flight(const struct lb_breaker *b)
{
	return __atomic_load_n(&b->in_flight, __ATOMIC_ACQUIRE);
}
