// SPDX-License-Identifier: Apache-2.0
// Sources of client connections: an IPv4 address, or the /64 of an IPv6 address, which is what one
// customer or host has. A source holds what all its connections share, so that whoever opens more
// connections gets no more of anything. A source without connections is remembered until its place
// is needed, the longest idle first: opening new connections refills no budget.
// Thread: the owning worker.
#pragma once

#include "dataplane/h2/h2.h"
#include "lb/base/gcra.h"
#include "lb/base/ip.h"
#include "lb/base/list.h"
#include "lb/base/pool.h"
#include "lb/base/share.h"
#include "lb/base/siphash.h"

#include <stdint.h>

struct proxy_source {
	struct proxy_source *next; // in its bucket
	struct list_link idle; // in proxy_sources.idle while n_clients == 0
	struct list_link line; // in proxy_work.line while input waits
	struct list_link waiting; // its clients whose input waits, the next one first
	uint64_t turn; // in which it last got a quantum (work.h)
	int64_t allowance; // what it has of that; negative = took too much
	uint64_t prefix[2]; // of the address; an IPv6 one without its last 64 bits
	uint32_t n_clients; // connections
	uint32_t n_requests; // live ones
	uint32_t n_waiting; // of them, for a backend or a time
	uint32_t n_backends; // that its clients have connections of their own to
	struct list_link backends; // these (client_backend.h), the longest unused first
	struct gcra early_ends; // requests that it ended before their answers were complete
	struct h2_budgets budgets; // of all its connections, past ones too (TH-83, TH-133)
};

struct proxy_sources {
	struct pool pool;
	struct proxy_source **buckets; // owned; [mask + 1]
	uint32_t mask;
	struct sip key;
	struct list_link idle; // the longest idle first
	uint32_t n_connected; // sources that have connections
};

// For up to n_clients connections at a time; twice as many sources are remembered. key is secret,
// so that nobody can choose addresses of one bucket. 0 or -ENOMEM; call fini() in either case.
[[nodiscard]] int proxy_sources_init(
	struct proxy_sources *, uint32_t n_clients, const uint8_t key[16]);
void proxy_sources_fini(struct proxy_sources *); // all zero is fine

// Of the address, or of what of it makes a source; nobody can choose addresses of one hash.
uint64_t proxy_source_hash(const struct proxy_sources *, const struct ip_addr *);
// By the address and its hash. NULL = it is not remembered, so it has no connection.
struct proxy_source *proxy_source_find(
	const struct proxy_sources *, const struct ip_addr *, uint64_t hash);
// One more connection from this address, of which find() said `known`. Never NULL.
struct proxy_source *proxy_source_join(
	struct proxy_sources *, struct proxy_source *known, const struct ip_addr *);
// May a source that holds n of a worker's n_total have one more, while all together have n_used?
// From half of n_total on lb/base/share.h decides; the only source that is connected may have
// all. Where nothing is free the answer is yes: the caller refuses what there is none of.
static inline bool proxy_source_may_have(
	const struct proxy_sources *all, uint32_t n, uint32_t n_used, uint32_t n_total)
{
	return n_used < n_total / 2 || n_used >= n_total || all->n_connected == 1 ||
	       share_allows(n, n_total - n_used);
}
// What clients break off costs backends work, and the connections to them (upstream.h). A source
// may end 1000 requests early, 50 a second, and as many as it lets end well (TH-91).
#define PROXY_EARLY_ENDS GCRA_LIMIT(1000, 50)
// The source, by reset, by the end of its connection or by a deadline of its own, has ended a
// request that a backend had.
static inline void proxy_source_ended_early(struct proxy_source *s, uint64_t now_ns)
{
	static const struct gcra_limit limit = PROXY_EARLY_ENDS;
	gcra_charge(&s->early_ends, &limit, now_ns);
}
static inline void proxy_source_ended_well(struct proxy_source *s)
{
	static const struct gcra_limit limit = PROXY_EARLY_ENDS;
	gcra_refund(&s->early_ends, &limit);
}
// It breaks off too much while others are there whom this would harm.
static inline bool proxy_source_breaks_off(
	const struct proxy_sources *all, const struct proxy_source *s, uint64_t now_ns)
{
	static const struct gcra_limit limit = PROXY_EARLY_ENDS;
	return gcra_is_over(&s->early_ends, &limit, now_ns) && all->n_connected > 1;
}
// One connection fewer. The source may be forgotten in the next join().
void proxy_source_leave(struct proxy_sources *, struct proxy_source *);
