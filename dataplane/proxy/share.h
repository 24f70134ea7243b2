// SPDX-License-Identifier: Apache-2.0
// Which source holds how many places of a circuit breaker. All clients share them as
// lb/base/share.h says, but a holder who asks alone gets everything (A32-I06). Counting begins when
// half is taken: below, nobody is near any bound. Who lets answers lie is counted before
// (reclaim.h).
// Thread: the owning worker.
#pragma once

#include "lb/base/list.h"
#include "lb/base/pool.h"
#include "lb/base/time.h"
#include "lb/pick/breaker.h"

#include <stdbool.h>
#include <stdint.h>

struct proxy_source;

#define PROXY_SHARES_SEEN 1024

// Places of one breaker that one source has.
struct proxy_share {
	struct proxy_share *next; // in its bucket
	const struct proxy_source *holder;
	const struct lb_breaker *breaker;
	uint32_t n;
};

// Which source asked last for places of some breakers, and when another one did. Breakers of one
// hash stand in one of these: a source that asks alone is alone in all of them.
struct proxy_share_seen {
	const struct proxy_source *source; // NULL = nobody yet; never followed
	uint64_t other_ns; // 0 = never
	// Counted requests of plain HTTP that may give way, by proxy_held.owing: those first that
	// may have waited for their clients longest (place.h).
	struct list_link owing;
};

struct proxy_shares {
	struct pool pool;
	struct proxy_share **buckets; // owned; [mask + 1]
	uint32_t mask;
	struct proxy_share_seen seen[PROXY_SHARES_SEEN]; // by a hash of the breaker
};

// What a request holds of its breaker. All zero = nothing is counted.
struct proxy_held {
	struct proxy_share *by_source;
	struct list_link owing;
	// Since when its client has been slow, what had moved by then, and in which state it was
	// (place.h); 0 = nobody has looked.
	uint64_t mark_ns, mark_len;
	uint64_t shut_ns; // since when a window of its client keeps its answer back; 0 = none does
	uint8_t mark_state;
};

// Who asks for a place of which breaker.
struct proxy_share_ask {
	const struct lb_breaker *breaker;
	const struct proxy_source *source;
	uint32_t limit; // of the breaker
	uint64_t now_ns;
};

// For up to n_requests holding places at a time. 0 or -ENOMEM; call fini() in either case.
[[nodiscard]] int proxy_shares_init(struct proxy_shares *, uint32_t n_requests);
void proxy_shares_fini(struct proxy_shares *); // all zero is fine

static inline uint64_t proxy_share_hash(const void *p)
{
	// Knuth's multiplicative hash. Addresses are ours: no peer chooses them.
	return (uint64_t)(uintptr_t)p * UINT64_C(0x9e3779b97f4a7c15);
}

static inline struct proxy_share_seen *proxy_share_seen_of(
	struct proxy_shares *all, const struct lb_breaker *b)
{
	_Static_assert(PROXY_SHARES_SEEN == 1u << 10, "bits of the hash");
	return &all->seen[proxy_share_hash(b) >> 54];
}

// There is ample room, and who asks is known: proxy_share_enter() would allow it and note nothing
// new.
static inline bool proxy_share_is_ample(struct proxy_shares *all, const struct proxy_share_ask *ask)
{
	const struct proxy_share_seen *s = proxy_share_seen_of(all, ask->breaker);
	if (lb_breaker_in_flight(ask->breaker) >= ask->limit / 2)
		return false;
	// Others are remembered for a minute, so that it is enough to look once a second.
	return s->source == ask->source || ask->now_ns - s->other_ns < NS_PER_SECOND;
}

// Before a request enters the breaker. False = the source has its share already.
// *ret is to be left when the request leaves the breaker, or does not get in.
[[nodiscard]] bool proxy_share_enter(
	struct proxy_shares *, const struct proxy_share_ask *, struct proxy_held *ret);
// Counts a place that the source has in any case.
void proxy_share_add(struct proxy_shares *, const struct lb_breaker *, const struct proxy_source *,
	struct proxy_held *ret);
// How many counted ones the source has.
uint32_t proxy_share_count(
	const struct proxy_shares *, const struct lb_breaker *, const struct proxy_source *);
// The list of what is counted and may give way; of other breakers, too.
static inline struct list_link *proxy_share_owing(
	struct proxy_shares *all, const struct lb_breaker *b)
{
	return &proxy_share_seen_of(all, b)->owing;
}
void proxy_share_leave(struct proxy_shares *, struct proxy_held *);
