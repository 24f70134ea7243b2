// SPDX-License-Identifier: Apache-2.0
#include "lb/endpoint.h"

#include "lb/base/check.h"
#include "lb/hash.h"
#include "lb/limits.h"

#include <stdlib.h>

struct entry {
	struct lb_endpoint base;
	struct entry *next; // of its bucket
};

struct lb_endpoint_table {
	struct entry **by_id; // [n_room], NULL = free id
	uint32_t *free_ids; // [n_room]: a stack of n_free ids below n_ids
	struct entry **buckets; // [n_room], a power of two
	uint32_t n_room;
	uint32_t n_ids; // ids given out so far, free ones included
	uint32_t n_free;
	void (*on_unused)(void *ctx, struct lb_endpoint *);
	void *ctx;
};

const char *lb_state_name(enum lb_state state)
{
	static const char *const names[] = {"IDLE", "CONNECTING", "READY", "TRANSIENT_FAILURE"};
	CHECK((unsigned)state < sizeof(names) / sizeof(names[0]));
	return names[state];
}

static struct entry **bucket_of(struct entry **buckets, uint32_t n_room, const struct ip_port *addr)
{
	uint8_t key[sizeof(addr->ip.b) + 2]; // without the padding of struct ip_port
	memcpy(key, addr->ip.b, sizeof(addr->ip.b));
	memcpy(key + sizeof(addr->ip.b), &addr->port, 2);
	return &buckets[lb_hash(key, sizeof(key)) & (n_room - 1)];
}

// Twice the room. False = no memory, nothing changed but for what is still usable.
static bool grow(struct lb_endpoint_table *t)
{
	uint32_t n = t->n_room ? 2 * t->n_room : 64;
	struct entry **by_id = realloc(t->by_id, n * sizeof(struct entry *));
	if (!by_id)
		return false;
	t->by_id = by_id;
	uint32_t *free_ids = realloc(t->free_ids, n * sizeof(uint32_t));
	if (!free_ids)
		return false;
	t->free_ids = free_ids;
	struct entry **buckets = calloc(n, sizeof(struct entry *));
	if (!buckets)
		return false;
	for (uint32_t id = 0; id < t->n_ids; id++) {
		struct entry *e = t->by_id[id];
		if (!e)
			continue;
		struct entry **bucket = bucket_of(buckets, n, &e->base.addr);
		e->next = *bucket;
		*bucket = e;
	}
	free(t->buckets);
	t->buckets = buckets;
	t->n_room = n;
	return true;
}

struct lb_endpoint_table *lb_endpoint_table_new(void)
{
	struct lb_endpoint_table *t = calloc(1, sizeof(*t));
	if (t && !grow(t)) {
		lb_endpoint_table_free(t);
		return NULL;
	}
	return t;
}

void lb_endpoint_table_free(struct lb_endpoint_table *t)
{
	if (!t)
		return;
	for (uint32_t id = 0; id < t->n_ids; id++)
		free(t->by_id[id]);
	free(t->by_id);
	free(t->free_ids);
	free(t->buckets);
	free(t);
}

void lb_endpoint_table_on_unused(
	struct lb_endpoint_table *t, void (*on_unused)(void *ctx, struct lb_endpoint *), void *ctx)
{
	t->on_unused = on_unused;
	t->ctx = ctx;
}

uint32_t lb_endpoint_table_count(const struct lb_endpoint_table *t)
{
	return t->n_ids - t->n_free;
}

static struct entry *add(struct lb_endpoint_table *t, const struct ip_port *addr)
{
	if (t->n_free == 0 && t->n_ids == LB_MAX_ENDPOINTS)
		return NULL;
	if (t->n_free == 0 && t->n_ids == t->n_room && !grow(t))
		return NULL;
	struct entry *e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	uint32_t id = t->n_free ? t->free_ids[--t->n_free] : t->n_ids++;
	e->base = (struct lb_endpoint){.id = id, .addr = *addr, .table = t};
	ip_port_print(addr, e->base.text);
	struct entry **bucket = bucket_of(t->buckets, t->n_room, addr);
	e->next = *bucket;
	*bucket = e;
	t->by_id[id] = e;
	return e;
}

static struct entry *find(const struct lb_endpoint_table *t, const struct ip_port *addr)
{
	struct entry *e = *bucket_of(t->buckets, t->n_room, addr);
	while (e && !ip_port_eq(&e->base.addr, addr))
		e = e->next;
	return e;
}

struct lb_endpoint *lb_endpoint_of(const struct lb_endpoint_table *t, const struct ip_port *addr)
{
	struct entry *e = find(t, addr);
	return e && e->base.n_refs ? &e->base : NULL;
}

struct lb_endpoint *lb_endpoint_get(
	struct lb_endpoint_table *t, const struct ip_port *addr, bool *ret_new)
{
	struct entry *e = find(t, addr);
	bool is_new = !e;
	if (is_new)
		e = add(t, addr);
	if (!e)
		return NULL;
	e->base.n_refs++;
	if (ret_new)
		*ret_new = is_new;
	return &e->base;
}

bool lb_endpoint_put(struct lb_endpoint_table *t, struct lb_endpoint *e)
{
	CHECK(e->n_refs > 0);
	if (--e->n_refs)
		return false;
	if (t->on_unused)
		t->on_unused(t->ctx, e);
	return true;
}

void lb_endpoint_free_released(struct lb_endpoint_table *t, struct lb_endpoint *e)
{
	if (e->n_refs)
		return;
	uint32_t id = e->id;
	struct entry **link = bucket_of(t->buckets, t->n_room, &e->addr);
	while (*link != t->by_id[id])
		link = &(*link)->next;
	*link = (*link)->next;
	free(t->by_id[id]);
	t->by_id[id] = NULL;
	t->free_ids[t->n_free++] = id;
}

struct lb_endpoint *lb_endpoint_find(const struct lb_endpoint_table *t, uint32_t id)
{
	return id < t->n_ids && t->by_id[id] ? &t->by_id[id]->base : NULL;
}
