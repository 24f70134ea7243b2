// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/source.h"

#include "lb/base/check.h"
#include "lb/base/container_of.h"

#include <errno.h>
#include <stdlib.h>

static void prefix_of(const struct ip_addr *a, uint64_t ret[2])
{
	memcpy(ret, a->b, sizeof(a->b));
	if (!ip_is_v4(a))
		ret[1] = 0;
}

static uint64_t hash_of(const struct proxy_sources *all, const uint64_t prefix[2])
{
	return siphash13(all->key, prefix, 2, 16);
}

uint64_t proxy_source_hash(const struct proxy_sources *all, const struct ip_addr *address)
{
	uint64_t prefix[2];
	prefix_of(address, prefix);
	return hash_of(all, prefix);
}

static struct proxy_source **bucket_of(const struct proxy_sources *all, const uint64_t prefix[2])
{
	return &all->buckets[hash_of(all, prefix) & all->mask];
}

int proxy_sources_init(struct proxy_sources *all, uint32_t n_clients, const uint8_t key[16])
{
	*all = (struct proxy_sources){.mask = 1, .key = sip_init(key)};
	list_init(&all->idle);
	while (all->mask < n_clients)
		all->mask = all->mask * 2 + 1;
	all->buckets = calloc(all->mask + 1u, sizeof(struct proxy_source *));
	if (!all->buckets)
		return -ENOMEM;
	return pool_init(&all->pool, sizeof(struct proxy_source), 2 * n_clients);
}

void proxy_sources_fini(struct proxy_sources *all)
{
	free(all->buckets);
	all->buckets = NULL;
	pool_fini(&all->pool);
}

static void forget(struct proxy_sources *all, struct proxy_source *s)
{
	struct proxy_source **at = bucket_of(all, s->prefix);
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	list_remove(&s->idle);
	pool_put(&all->pool, s);
}

static struct proxy_source *add(struct proxy_sources *all, const struct ip_addr *address)
{
	uint64_t prefix[2];
	prefix_of(address, prefix);
	// There are twice as many places as connections.
	if (pool_left(&all->pool) == 0)
		forget(all, CONTAINER_OF(all->idle.next, struct proxy_source, idle));
	struct proxy_source *s = pool_take(&all->pool);
	CHECK(s);
	struct proxy_source **bucket = bucket_of(all, prefix);
	*s = (struct proxy_source){.next = *bucket, .prefix = {prefix[0], prefix[1]}};
	list_init(&s->waiting);
	list_init(&s->backends);
	*bucket = s;
	return s;
}

struct proxy_source *proxy_source_find(
	const struct proxy_sources *all, const struct ip_addr *address, uint64_t hash)
{
	uint64_t prefix[2];
	prefix_of(address, prefix);
	struct proxy_source *s = all->buckets[hash & all->mask];
	while (s && (s->prefix[0] != prefix[0] || s->prefix[1] != prefix[1]))
		s = s->next;
	return s;
}

struct proxy_source *proxy_source_join(
	struct proxy_sources *all, struct proxy_source *known, const struct ip_addr *address)
{
	struct proxy_source *s = known ? known : add(all, address);
	list_remove(&s->idle);
	all->n_connected += s->n_clients++ == 0;
	return s;
}

void proxy_source_leave(struct proxy_sources *all, struct proxy_source *s)
{
	DCHECK(s->n_clients > 0);
	if (--s->n_clients)
		return;
	all->n_connected--;
	list_append(&all->idle, &s->idle);
}
