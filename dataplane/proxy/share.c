// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/share.h"

#include "lb/base/check.h"
#include "lb/base/share.h"
#include "lb/base/time.h"

#include <errno.h>
#include <stdlib.h>

#define FORGET_OTHERS_NS (60 * NS_PER_SECOND)

int proxy_shares_init(struct proxy_shares *all, uint32_t n_requests)
{
	*all = (struct proxy_shares){.mask = 1};
	for (uint32_t i = 0; i < PROXY_SHARES_SEEN; i++)
		list_init(&all->seen[i].owing);
	while (all->mask < n_requests)
		all->mask = all->mask * 2 + 1;
	all->buckets = calloc(all->mask + 1u, sizeof(struct proxy_share *));
	if (!all->buckets)
		return -ENOMEM;
	return pool_init(&all->pool, sizeof(struct proxy_share), n_requests);
}

void proxy_shares_fini(struct proxy_shares *all)
{
	free(all->buckets);
	all->buckets = NULL;
	pool_fini(&all->pool);
}

static bool is_recent(uint64_t then_ns, uint64_t now_ns)
{
	return then_ns && now_ns - then_ns < FORGET_OTHERS_NS;
}

static struct proxy_share **bucket_of(const struct proxy_shares *all,
	const struct proxy_source *holder, const struct lb_breaker *b)
{
	uint64_t hash = proxy_share_hash(holder) ^ proxy_share_hash(b) >> 7;
	return &all->buckets[(hash >> 24) & all->mask];
}

static struct proxy_share *find(const struct proxy_shares *all, const struct proxy_source *holder,
	const struct lb_breaker *b)
{
	struct proxy_share *s = *bucket_of(all, holder, b);
	while (s && (s->holder != holder || s->breaker != b))
		s = s->next;
	return s;
}

static struct proxy_share *add(
	struct proxy_shares *all, const struct proxy_source *holder, const struct lb_breaker *b)
{
	struct proxy_share *s = find(all, holder, b);
	if (!s) {
		struct proxy_share **bucket = bucket_of(all, holder, b);
		s = pool_take(&all->pool);
		CHECK(s); // one for each request
		*s = (struct proxy_share){.next = *bucket, .holder = holder, .breaker = b};
		*bucket = s;
	}
	s->n++;
	return s;
}

static void drop(struct proxy_shares *all, struct proxy_share *s)
{
	if (!s || --s->n)
		return;
	struct proxy_share **at = bucket_of(all, s->holder, s->breaker);
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	pool_put(&all->pool, s);
}

uint32_t proxy_share_count(const struct proxy_shares *all, const struct lb_breaker *b,
	const struct proxy_source *holder)
{
	const struct proxy_share *s = find(all, holder, b);
	return s ? s->n : 0;
}

void proxy_share_add(struct proxy_shares *all, const struct lb_breaker *b,
	const struct proxy_source *holder, struct proxy_held *ret)
{
	ret->by_source = add(all, holder, b);
}

static bool has_room(
	const struct proxy_shares *all, const struct proxy_share_ask *ask, uint32_t n_free)
{
	uint32_t n = proxy_share_count(all, ask->breaker, ask->source);
	return share_allows_place(n, n_free, ask->limit);
}

// Half of the places are taken.
static __attribute__((noinline)) bool enter_counted(struct proxy_shares *all,
	const struct proxy_share_seen *seen, const struct proxy_share_ask *ask, uint32_t n_free,
	struct proxy_held *ret)
{
	// Of a breaker that is full, the breaker itself says so.
	if (n_free && is_recent(seen->other_ns, ask->now_ns) && !has_room(all, ask, n_free))
		return false;
	ret->by_source = add(all, ask->source, ask->breaker);
	return true;
}

bool proxy_share_enter(
	struct proxy_shares *all, const struct proxy_share_ask *ask, struct proxy_held *ret)
{
	struct proxy_share_seen *seen = proxy_share_seen_of(all, ask->breaker);
	if (seen->source != ask->source) {
		seen->other_ns = seen->source ? ask->now_ns : 0;
		seen->source = ask->source;
	}
	uint32_t in_flight = lb_breaker_in_flight(ask->breaker);
	if (in_flight < ask->limit / 2)
		return true;
	uint32_t n_free = ask->limit > in_flight ? ask->limit - in_flight : 0;
	return enter_counted(all, seen, ask, n_free, ret);
}

void proxy_share_leave(struct proxy_shares *all, struct proxy_held *held)
{
	list_remove(&held->owing);
	drop(all, held->by_source);
	*held = (struct proxy_held){0};
}
