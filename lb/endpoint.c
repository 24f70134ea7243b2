// SPDX-License-Identifier: Apache-2.0
#include "lb/endpoint.h"

#include "lb/base/check.h"
#include "lb/hash.h"
#include "lb/limits.h"

#include <stdlib.h>

// Endpoints lie side by side in slabs, which never move.
#define SLAB_BITS 6
#define SLAB_SIZE (1u << SLAB_BITS)

struct lb_endpoint_table {
	char **slabs; // owned; [n_room / SLAB_SIZE]
	uint32_t *buckets; // [n_room], a power of two: id + 1 of the first in it; 0 = empty
	uint32_t n_room;
	uint32_t n_slabs;
	size_t size; // of an endpoint, with what is its user's
	uint32_t n_ids; // ids given out so far, free ones included
	uint32_t n_free;
	uint32_t first_free; // id + 1
	void (*on_unused)(void *ctx, struct lb_endpoint *);
	void *ctx;
};

const char *lb_state_name(enum lb_state state)
{
	static const char *const names[] = {"IDLE", "CONNECTING", "READY", "TRANSIENT_FAILURE"};
	CHECK((unsigned)state < sizeof(names) / sizeof(names[0]));
	return names[state];
}

static struct lb_endpoint *at(const struct lb_endpoint_table *t, uint32_t id)
{
	return (void *)(t->slabs[id >> SLAB_BITS] + (id & (SLAB_SIZE - 1)) * t->size);
}

static uint32_t *bucket_of(uint32_t *buckets, uint32_t n_room, const struct ip_port *addr)
{
	uint8_t key[sizeof(addr->ip.b) + 2]; // without the padding of struct ip_port
	memcpy(key, addr->ip.b, sizeof(addr->ip.b));
	memcpy(key + sizeof(addr->ip.b), &addr->port, 2);
	return &buckets[lb_hash(key, sizeof(key)) & (n_room - 1)];
}

// Twice the room. False = no memory, nothing changed but for what is still usable.
static bool grow(struct lb_endpoint_table *t)
{
	uint32_t n = t->n_room ? 2 * t->n_room : SLAB_SIZE;
	char **slabs = realloc(t->slabs, n / SLAB_SIZE * sizeof(char *));
	if (!slabs)
		return false;
	t->slabs = slabs;
	uint32_t *buckets = calloc(n, sizeof(buckets[0]));
	if (!buckets)
		return false;
	for (uint32_t id = 0; id < t->n_ids; id++) {
		struct lb_endpoint *e = at(t, id);
		if (!e->is_used)
			continue;
		uint32_t *bucket = bucket_of(buckets, n, &e->addr);
		e->next = *bucket;
		*bucket = id + 1;
	}
	free(t->buckets);
	t->buckets = buckets;
	t->n_room = n;
	return true;
}

// False = no memory.
static bool have_slab(struct lb_endpoint_table *t)
{
	if (t->n_ids < t->n_slabs * SLAB_SIZE)
		return true;
	t->slabs[t->n_slabs] = calloc(SLAB_SIZE, t->size);
	if (!t->slabs[t->n_slabs])
		return false;
	t->n_slabs++;
	return true;
}

struct lb_endpoint_table *lb_endpoint_table_new(size_t user_size)
{
	struct lb_endpoint_table *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	size_t align = _Alignof(struct lb_endpoint) - 1;
	t->size = (sizeof(struct lb_endpoint) + user_size + align) & ~align;
	if (!grow(t)) {
		lb_endpoint_table_free(t);
		return NULL;
	}
	return t;
}

void lb_endpoint_table_free(struct lb_endpoint_table *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < t->n_slabs; i++)
		free(t->slabs[i]);
	free(t->slabs);
	free(t->buckets);
	free(t);
}

uint32_t lb_endpoint_table_n_ids(const struct lb_endpoint_table *t)
{
	return t->n_ids;
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

static struct lb_endpoint *add(struct lb_endpoint_table *t, const struct ip_port *addr)
{
	uint32_t id = t->first_free - 1;
	if (t->n_free) {
		t->first_free = at(t, id)->next;
		t->n_free--;
	} else {
		if (t->n_ids == LB_MAX_ENDPOINTS || (t->n_ids == t->n_room && !grow(t)) ||
			!have_slab(t))
			return NULL;
		id = t->n_ids++;
	}
	struct lb_endpoint *e = at(t, id);
	uint32_t *bucket = bucket_of(t->buckets, t->n_room, addr);
	*e = (struct lb_endpoint){
		.table = t, .id = id, .addr = *addr, .is_used = true, .next = *bucket};
	*bucket = id + 1;
	return e;
}

static struct lb_endpoint *find(const struct lb_endpoint_table *t, const struct ip_port *addr)
{
	uint32_t next = *bucket_of(t->buckets, t->n_room, addr);
	while (next) {
		struct lb_endpoint *e = at(t, next - 1);
		if (ip_port_eq(&e->addr, addr))
			return e;
		next = e->next;
	}
	return NULL;
}

struct lb_endpoint *lb_endpoint_of(const struct lb_endpoint_table *t, const struct ip_port *addr)
{
	struct lb_endpoint *e = find(t, addr);
	return e && e->n_refs ? e : NULL;
}

struct lb_endpoint *lb_endpoint_get(
	struct lb_endpoint_table *t, const struct ip_port *addr, bool *ret_new)
{
	struct lb_endpoint *e = find(t, addr);
	bool is_new = !e;
	if (is_new)
		e = add(t, addr);
	if (!e)
		return NULL;
	e->n_refs++;
	if (ret_new)
		*ret_new = is_new;
	return e;
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
	uint32_t *link = bucket_of(t->buckets, t->n_room, &e->addr);
	while (*link != e->id + 1)
		link = &at(t, *link - 1)->next;
	*link = e->next;
	e->is_used = false;
	e->next = t->first_free;
	t->first_free = e->id + 1;
	t->n_free++;
}

struct lb_endpoint *lb_endpoint_find(const struct lb_endpoint_table *t, uint32_t id)
{
	return id < t->n_ids && at(t, id)->is_used ? at(t, id) : NULL;
}
