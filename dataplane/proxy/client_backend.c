// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/client_backend.h"

#include "dataplane/proxy/client.h"
#include "dataplane/proxy/state.h"
#include "dataplane/proxy/upstream.h"
#include "lb/base/cacheline.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"

#include <errno.h>

#define FULL_SHARE 16 // when one place of so many is left, or but one, idle ones are given up
#define LOOKED_AT 16 // of the longest unused
#define KEPT_NS (30 * NS_PER_SECOND) // with its backoff, from when it may be tried again

int proxy_client_backends_init(struct proxy_client_backends *all, uint32_t max_conns)
{
	uint32_t n = max_conns / PROXY_CLIENT_BACKENDS_PART + PROXY_CLIENT_BACKENDS_MIN, size = 1;
	while (size < n)
		size *= 2;
	*all = (struct proxy_client_backends){.mask = size - 1};
	list_init(&all->used);
	all->buckets = cacheline_alloc(size, sizeof(struct proxy_client_backend *));
	if (!all->buckets)
		return -ENOMEM;
	return pool_init(&all->pool, sizeof(struct proxy_client_backend), n);
}

void proxy_client_backends_fini(struct proxy_client_backends *all)
{
	cacheline_free(all->buckets);
	pool_fini(&all->pool);
}

static struct proxy_client_backend *of_backend(struct proxy_backend *b)
{
	return CONTAINER_OF(b, struct proxy_client_backend, backend);
}

// Neither part of the key is anybody's to choose.
static struct proxy_client_backend **bucket(
	struct proxy_client_backends *all, const struct proxy_client *c, uint32_t endpoint)
{
	uint64_t key = (uintptr_t)c / sizeof(*c) ^ (uint64_t)endpoint << 32;
	return &all->buckets[key * UINT64_C(0x9e3779b97f4a7c15) >> 32 & all->mask];
}

static struct proxy_client_backend *find(
	struct proxy_client_backend *first, const struct proxy_client *c, uint32_t endpoint)
{
	struct proxy_client_backend *cb = first;
	while (cb && (cb->client != c || cb->backend.id != endpoint || cb->backend.releasing))
		cb = cb->next;
	return cb;
}

// Its client has nothing to do with it any more.
static void part(struct proxy_client_backend *cb)
{
	twheel_cancel(cb->backend.proxy->wheel, &cb->rest);
	cb->client->source->n_backends--;
	cb->client = NULL;
	cb->backend.client = NULL;
	LIST_REMOVE(cb, mine);
	list_remove(&cb->used);
	list_remove(&cb->of_source);
}

static void unlink_bucket(struct proxy_client_backend *cb, struct proxy_client_backend **at)
{
	while (*at != cb)
		at = &(*at)->next;
	*at = cb->next;
}

static void give_up(struct proxy_client_backend *cb)
{
	struct proxy_client_backends *all = &cb->backend.proxy->client_backends;
	unlink_bucket(cb, bucket(all, cb->client, cb->backend.id));
	part(cb);
	proxy_backend_close(&cb->backend);
}

void proxy_client_backends_leave(struct proxy_client *c)
{
	for (struct proxy_client_backend *cb; (cb = LIST_FIRST(&c->backends));)
		give_up(cb);
}

static void rest_over(struct twheel_timer *t)
{
	proxy_backend_changed(&CONTAINER_OF(t, struct proxy_client_backend, rest)->backend);
}

void proxy_client_backend_rests(struct proxy_backend *b)
{
	struct proxy_client_backend *cb = of_backend(b);
	if (!cb->client)
		return;
	cb->rest.fire = rest_over;
	twheel_arm(b->proxy->wheel, &cb->rest, b->retry_at_ns + KEPT_NS);
}

void proxy_client_backend_free(struct proxy_backend *b)
{
	struct proxy_client_backend *cb = of_backend(b);
	struct proxy_client_backends *all = &b->proxy->client_backends;
	if (cb->client) {
		unlink_bucket(cb, bucket(all, cb->client, b->id));
		part(cb);
	}
	pool_put(&all->pool, cb);
}

static struct proxy_client_backend *of_used(struct list_link *l)
{
	return CONTAINER_OF(l, struct proxy_client_backend, used);
}

static struct proxy_client_backend *of_source(struct list_link *l)
{
	return CONTAINER_OF(l, struct proxy_client_backend, of_source);
}

// One that is being released gives its place back anyway.
static bool is_idle(const struct proxy_backend *b)
{
	if (b->releasing || !list_empty(&b->waiting) || b->n_connecting)
		return false;
	for (const struct list_link *l = b->conns.next; l != &b->conns; l = l->next) {
		const struct proxy_upstream *u = CONTAINER_OF(l, struct proxy_upstream, link);
		if (h2_conn_n_streams(u->conn.h2))
			return false;
	}
	return true;
}

static void touch(struct proxy_client_backends *all, struct proxy_client_backend *cb)
{
	list_remove(&cb->used);
	list_append(&all->used, &cb->used);
	list_remove(&cb->of_source);
	list_append(&cb->client->source->backends, &cb->of_source);
}

// The longest unused that is idle, of all or of the source. Its place is free when its connections
// are closed, at the end of the turn. False = none of those looked at is.
static bool make_room(struct proxy *p, struct proxy_source *s)
{
	struct proxy_client_backends *all = &p->client_backends;
	struct list_link *first = s ? &s->backends : &all->used;
	for (unsigned i = 0; i < LOOKED_AT && !list_empty(first); i++) {
		struct proxy_client_backend *cb = s ? of_source(first->next) : of_used(first->next);
		if (is_idle(&cb->backend)) {
			proxy_count(p, PROXY_client_backends_evicted);
			give_up(cb);
			return true;
		}
		touch(all, cb);
	}
	return false;
}

static bool may_have(struct proxy *p, struct proxy_source *s)
{
	const struct pool *pool = &p->client_backends.pool;
	return proxy_source_may_have(&p->sources, s->n_backends, pool->n_used, pool->n_total) ||
	       make_room(p, s);
}

static struct proxy_client_backend *make(
	struct proxy_backend *of, struct proxy_client *c, enum lb_cause *ret_why)
{
	struct proxy *p = of->proxy;
	struct pool *pool = &p->client_backends.pool;
	if (pool_left(pool) <= pool->n_total / FULL_SHARE + 1)
		make_room(p, NULL);
	*ret_why = LB_CAUSE_OVER_SHARE;
	if (!may_have(p, c->source)) {
		proxy_count(p, PROXY_client_backends_over_share);
		return NULL;
	}
	struct proxy_client_backend *cb = pool_take(pool);
	*ret_why = LB_CAUSE_OVERFLOW;
	if (!cb) {
		proxy_count(p, PROXY_client_backends_refused);
		return NULL;
	}
	*cb = (struct proxy_client_backend){.client = c};
	proxy_backend_begin_clients(&cb->backend, of, c);
	c->source->n_backends++;
	LIST_INSERT_HEAD(&c->backends, cb, mine);
	return cb;
}

struct proxy_backend *proxy_client_backend_find(
	struct proxy_backend *of, struct proxy_client *c, enum lb_cause *ret_why)
{
	struct proxy_client_backends *all = &of->proxy->client_backends;
	struct proxy_client_backend **at = bucket(all, c, of->id), *cb = find(*at, c, of->id);
	if (!cb) {
		cb = make(of, c, ret_why);
		if (!cb)
			return NULL;
		cb->next = *at;
		*at = cb;
	}
	touch(all, cb);
	return &cb->backend;
}
