// SPDX-License-Identifier: Apache-2.0
// Of a list that is not short, a hash table whose buckets are one cache line each, 16 slots of 32
// bits: the address's number, and above it some bits of its hash. What finds its bucket full goes
// to the next.
#include "lb/index/address_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_BITS 20
#define NUMBER_MASK ((1u << NUMBER_BITS) - 1)
#define NONE UINT32_MAX
#define BUCKET_SLOTS 16
#define BUCKET_USED 12 // of them, on average
#define SHORT 16 // lists up to so many are walked
#define AHEAD 16 // so many are looked up at a time, so that their loads overlap

_Static_assert(LB_ADDRESS_INDEX_MAX == NUMBER_MASK, "a slot says any number + 1");

// 0 = free, and so are those behind it; else the address's number + 1, and bits of its hash.
struct lb_address_bucket {
	_Alignas(64) uint32_t slots[BUCKET_SLOTS];
};

static uint32_t first_bucket(const struct lb_address_index *x, uint64_t hash)
{
	return (uint32_t)((hash >> 32) * x->n_buckets >> 32);
}

static uint32_t next_bucket(const struct lb_address_index *x, uint32_t bucket)
{
	return bucket + 1 < x->n_buckets ? bucket + 1 : 0;
}

// The address's slot, or the free one where it belongs. Some are always free.
static uint32_t *slot_of(const struct lb_address_index *x, const struct ip_port *a, uint64_t hash)
{
	uint32_t bits = (uint32_t)hash & ~NUMBER_MASK;
	for (uint32_t b = first_bucket(x, hash);; b = next_bucket(x, b)) {
		uint32_t *slots = x->buckets[b].slots;
		for (uint32_t i = 0; i < BUCKET_SLOTS; i++) {
			if (slots[i] == 0)
				return &slots[i];
			if ((slots[i] & ~NUMBER_MASK) == bits &&
				ip_port_eq(&x->addresses[(slots[i] & NUMBER_MASK) - 1], a))
				return &slots[i];
		}
	}
}

// As slot_of() of an address that is not there.
static uint32_t *free_slot(const struct lb_address_index *x, uint64_t hash)
{
	uint32_t b = first_bucket(x, hash);
	while (x->buckets[b].slots[BUCKET_SLOTS - 1])
		b = next_bucket(x, b);
	uint32_t *slots = x->buckets[b].slots;
	for (uint32_t half = BUCKET_SLOTS / 2; half; half /= 2)
		slots += slots[half - 1] ? half : 0; // no branch: half of them would be mistaken
	return slots;
}

// Of a short list. NONE = absent.
static uint32_t walk(const struct lb_address_index *x, uint32_t n, const struct ip_port *a)
{
	for (uint32_t i = 0; i < n; i++)
		if (ip_port_eq(&x->addresses[i], a))
			return i;
	return NONE;
}

static bool insert_short(struct lb_address_index *x, uint32_t number, uint64_t hash)
{
	if (lb_address_filter_has(x->filter, hash) &&
		walk(x, number, &x->addresses[number]) != NONE)
		return true;
	lb_address_filter_add(x->filter, hash);
	return false;
}

// True = an equal one was there.
static bool insert(struct lb_address_index *x, uint32_t number, uint64_t hash)
{
	if (!x->buckets)
		return insert_short(x, number, hash);
	uint32_t *slot = lb_address_filter_has(x->filter, hash)
	                         ? slot_of(x, &x->addresses[number], hash)
	                         : free_slot(x, hash);
	if (*slot)
		return true;
	*slot = ((uint32_t)hash & ~NUMBER_MASK) | (number + 1);
	lb_address_filter_add(x->filter, hash);
	return false;
}

uint32_t lb_address_index_room(uint32_t n)
{
	uint32_t n_words = 1;
	while (n_words < n && n_words < SHORT)
		n_words *= 2;
	return n <= SHORT ? n_words : 0;
}

static int allocate_short(struct lb_address_index *x, uint32_t *room)
{
	uint32_t n_words = lb_address_index_room(x->n);
	x->filter.mask = n_words - 1;
	if (!room)
		room = x->memory = malloc(n_words * sizeof(*room));
	if (!room)
		return -ENOMEM;
	x->filter.words = memset(room, 0xff, n_words * sizeof(*room));
	return 0;
}

static int allocate(struct lb_address_index *x, uint32_t *room)
{
	uint32_t n = x->n;
	if (n <= SHORT)
		return allocate_short(x, room);
	x->n_buckets = n / BUCKET_USED + 1;
	size_t n_words = sizeof(struct lb_address_bucket) / sizeof(uint32_t);
	while (n_words < n)
		n_words *= 2;
	x->filter.mask = (uint32_t)n_words - 1;
	size_t buckets = x->n_buckets * sizeof(struct lb_address_bucket);
	size_t words = n_words * sizeof(uint32_t); // whole lines
	x->memory = aligned_alloc(sizeof(struct lb_address_bucket), buckets + words);
	if (!x->memory)
		return -ENOMEM;
	x->buckets = memset(x->memory, 0, buckets);
	x->filter.words = memset(x->buckets + x->n_buckets, 0xff, words);
	return 0;
}

int lb_address_index_init(struct lb_address_index *x, const struct ip_port *addresses, uint32_t n,
	uint32_t *room, uint32_t *ret_second)
{
	n = n < LB_ADDRESS_INDEX_MAX ? n : LB_ADDRESS_INDEX_MAX;
	*x = (struct lb_address_index){.addresses = addresses, .n = n};
	if (allocate(x, room))
		return -ENOMEM;
	*ret_second = NONE;
	for (uint32_t from = 0; from < n; from += AHEAD) {
		uint64_t hashes[AHEAD];
		uint32_t n_now = n - from < AHEAD ? n - from : AHEAD;
		for (uint32_t i = 0; i < n_now; i++) {
			hashes[i] = lb_address_hash(&addresses[from + i]);
			if (x->buckets)
				__builtin_prefetch(&x->buckets[first_bucket(x, hashes[i])], 1);
			__builtin_prefetch(lb_address_filter_word(x->filter, hashes[i]), 1);
		}
		for (uint32_t i = 0; i < n_now; i++)
			if (insert(x, from + i, hashes[i]) && *ret_second == NONE)
				*ret_second = from + i;
	}
	return 0;
}

void lb_address_index_fini(struct lb_address_index *x)
{
	free(x->memory);
	*x = (struct lb_address_index){0};
}

uint32_t lb_address_index_find(const struct lb_address_index *x, const struct ip_port *a)
{
	uint64_t hash = lb_address_hash(a);
	if (!lb_address_filter_has(x->filter, hash))
		return NONE;
	if (!x->buckets)
		return walk(x, x->n, a);
	uint32_t slot = *slot_of(x, a, hash);
	return slot ? (slot & NUMBER_MASK) - 1 : NONE;
}
