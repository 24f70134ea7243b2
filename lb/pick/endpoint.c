// SPDX-License-Identifier: Apache-2.0
// Addresses are found in one array of 32-bit slots: an endpoint's number, and above it some bits of
// its address's hash, so that hardly any but the one that is looked for is looked at. What finds
// its slot taken goes to the next that is free. So do endpoints with the same address, of which
// there are few: those of clusters that speak to it in different ways.
#include "lb/pick/endpoint.h"

#include "lb/base/check.h"
#include "lb/index/hash.h"
#include "lb/pick/limits.h"

#include <stdlib.h>

#define NUMBER_BITS 18
#define NUMBER_MASK ((1u << NUMBER_BITS) - 1)
_Static_assert(LB_MAX_ENDPOINTS < 1 << NUMBER_BITS, "a slot holds any id + 1");
_Static_assert(sizeof(struct lb_endpoint) == 36, "half of its place is another's");

struct slab {
	struct lb_endpoint_table *table; // lb_endpoint_table_of()
	char endpoints[LB_ENDPOINT_SLAB][LB_ENDPOINT_SIZE];
};

_Static_assert(offsetof(struct slab, endpoints) == sizeof(void *), "side by side");

struct lb_endpoint_table {
	struct slab **slabs; // owned; [n_slabs]
	uint32_t *slots; // owned; [n_slots]: 0 = free; else hash bits, and the id + 1
	uint32_t n_slots; // a power of two, an eighth of which is always free
	uint32_t n_slabs;
	uint32_t n_ids; // ids given out so far, free ones included
	uint32_t n_free;
	uint32_t first_free; // id + 1
	void *user;
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
	return (void *)t->slabs[id / LB_ENDPOINT_SLAB]->endpoints[id % LB_ENDPOINT_SLAB];
}

void *lb_endpoint_table_user(const struct lb_endpoint_table *t)
{
	return t->user;
}

static uint32_t slot_of(uint64_t hash, uint32_t id)
{
	return ((uint32_t)(hash >> 32) & ~NUMBER_MASK) | (id + 1);
}

// The first place from this one on with an endpoint of this address, or else one that is free.
static uint32_t search_from(const struct lb_endpoint_table *t, uint32_t place,
	const struct ip_port *addr, uint64_t hash)
{
	for (place &= t->n_slots - 1; t->slots[place]; place = (place + 1) & (t->n_slots - 1)) {
		uint32_t slot = t->slots[place], id = (slot & NUMBER_MASK) - 1;
		if (slot == slot_of(hash, id) && ip_port_eq(&at(t, id)->addr, addr))
			break;
	}
	return place;
}

// NULL = the place is free.
static struct lb_endpoint *at_place(const struct lb_endpoint_table *t, uint32_t place)
{
	uint32_t slot = t->slots[place];
	return slot ? at(t, (slot & NUMBER_MASK) - 1) : NULL;
}

// The place of the endpoint with this address and security, or the free one that it belongs to.
static uint32_t search(const struct lb_endpoint_table *t, const struct ip_port *addr,
	const struct lb_security *security, uint64_t hash)
{
	uint32_t place = search_from(t, (uint32_t)hash, addr, hash);
	const struct lb_endpoint *e;
	while ((e = at_place(t, place)) && !lb_security_eq(e->security, security))
		place = search_from(t, place + 1, addr, hash);
	return place;
}

static bool fits(uint32_t n_endpoints, uint32_t n_slots)
{
	return n_endpoints <= n_slots - n_slots / 8;
}

// Room for so many. False = out of memory, nothing changed.
static bool grow(struct lb_endpoint_table *t, uint32_t n_endpoints)
{
	uint32_t n = t->n_slots;
	while (!fits(n_endpoints, n))
		n *= 2;
	uint32_t *slots = calloc(n, sizeof(slots[0]));
	if (!slots)
		return false;
	for (uint32_t id = 0; id < t->n_ids; id++) {
		const struct lb_endpoint *e = at(t, id);
		if (!e->is_used)
			continue;
		uint64_t hash = lb_address_hash(&e->addr);
		uint32_t place = (uint32_t)hash & (n - 1);
		while (slots[place])
			place = (place + 1) & (n - 1);
		slots[place] = slot_of(hash, id);
	}
	free(t->slots);
	t->slots = slots;
	t->n_slots = n;
	return true;
}

// False = out of memory.
static bool have_slab(struct lb_endpoint_table *t)
{
	if (t->n_ids < t->n_slabs * LB_ENDPOINT_SLAB)
		return true;
	if ((t->n_slabs & (t->n_slabs - 1)) == 0) { // the list is full
		size_t n = t->n_slabs ? 2 * (size_t)t->n_slabs : 1;
		struct slab **slabs = realloc(t->slabs, n * sizeof(struct slab *));
		if (!slabs)
			return false;
		t->slabs = slabs;
	}
	struct slab *slab = calloc(1, sizeof(*slab));
	if (!slab)
		return false;
	slab->table = t;
	t->slabs[t->n_slabs++] = slab;
	return true;
}

struct lb_endpoint_table *lb_endpoint_table_new(void *user)
{
	struct lb_endpoint_table *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->user = user;
	t->n_slots = LB_ENDPOINT_SLAB;
	t->slots = calloc(t->n_slots, sizeof(t->slots[0]));
	if (!t->slots) {
		free(t);
		return NULL;
	}
	return t;
}

void lb_endpoint_table_free(struct lb_endpoint_table *t)
{
	if (!t)
		return;
	for (uint32_t id = 0; id < t->n_ids; id++)
		if (at(t, id)->is_used)
			lb_security_put(at(t, id)->security);
	for (uint32_t i = 0; i < t->n_slabs; i++)
		free(t->slabs[i]);
	free(t->slabs);
	free(t->slots);
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

void lb_endpoint_table_expect(struct lb_endpoint_table *t, uint32_t n)
{
	uint32_t count = lb_endpoint_table_count(t);
	n = n < LB_MAX_ENDPOINTS - count ? count + n : LB_MAX_ENDPOINTS;
	if (!fits(n, t->n_slots))
		(void)grow(t, n);
}

// At this place, which is free. NULL = out of memory, or no id is left.
static struct lb_endpoint *add(struct lb_endpoint_table *t, const struct ip_port *addr,
	struct lb_security *security, uint64_t hash, uint32_t place)
{
	uint32_t count = lb_endpoint_table_count(t);
	if (count == LB_MAX_ENDPOINTS || (!t->n_free && !have_slab(t)))
		return NULL;
	if (!fits(count + 1, t->n_slots)) {
		if (!grow(t, count + 1))
			return NULL;
		place = search(t, addr, security, hash);
	}
	uint32_t id = t->n_ids;
	if (t->n_free) {
		id = t->first_free - 1;
		t->first_free = at(t, id)->next_free;
		t->n_free--;
	} else {
		t->n_ids++;
	}
	struct lb_endpoint *e = at(t, id);
	*e = (struct lb_endpoint){
		.security = lb_security_get(security), .id = id, .addr = *addr, .is_used = true};
	t->slots[place] = slot_of(hash, id);
	return e;
}

bool lb_endpoint_has(const struct lb_endpoint_table *t, const struct ip_port *addr,
	const struct lb_security *security)
{
	return t->slots[search(t, addr, security, lb_address_hash(addr))];
}

struct lb_endpoint *lb_endpoint_next_of(const struct lb_endpoint_table *t,
	const struct ip_port *addr, const struct lb_endpoint *after)
{
	uint64_t hash = lb_address_hash(addr);
	uint32_t place = (uint32_t)hash;
	if (after)
		place = search(t, addr, after->security, hash) + 1;
	struct lb_endpoint *e;
	for (;; place++) {
		place = search_from(t, place, addr, hash);
		e = at_place(t, place);
		if (!e || e->n_refs)
			return e;
	}
}

struct lb_endpoint *lb_endpoint_get(struct lb_endpoint_table *t, const struct ip_port *addr,
	struct lb_security *security, bool *ret_new)
{
	uint64_t hash = lb_address_hash(addr);
	uint32_t place = search(t, addr, security, hash);
	struct lb_endpoint *e = at_place(t, place);
	bool is_new = !e;
	if (is_new)
		e = add(t, addr, security, hash, place);
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

// Those behind it that would not be found any more move up.
static void clear_slot(struct lb_endpoint_table *t, uint32_t place)
{
	uint32_t mask = t->n_slots - 1;
	t->slots[place] = 0;
	for (uint32_t from = (place + 1) & mask; t->slots[from]; from = (from + 1) & mask) {
		const struct lb_endpoint *e = at(t, (t->slots[from] & NUMBER_MASK) - 1);
		uint32_t home = (uint32_t)lb_address_hash(&e->addr) & mask;
		if (((from - home) & mask) < ((from - place) & mask))
			continue;
		t->slots[place] = t->slots[from];
		t->slots[from] = 0;
		place = from;
	}
}

void lb_endpoint_free_released(struct lb_endpoint_table *t, struct lb_endpoint *e)
{
	if (e->n_refs)
		return;
	clear_slot(t, search(t, &e->addr, e->security, lb_address_hash(&e->addr)));
	lb_security_put(e->security);
	e->security = NULL;
	e->is_used = false;
	e->next_free = t->first_free;
	t->first_free = e->id + 1;
	t->n_free++;
}

struct lb_endpoint *lb_endpoint_find(const struct lb_endpoint_table *t, uint32_t id)
{
	return id < t->n_ids && at(t, id)->is_used ? at(t, id) : NULL;
}
