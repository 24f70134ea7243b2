// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/ring.h"

#include "lb/index/hash.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct place {
	uint32_t hash[2]; // read as one number: without a gap behind the item
	uint32_t item;
};

struct lb_ring {
	uint32_t n;
	struct place places[]; // by hash, then by item
};

static uint64_t hash_of(const struct place *p)
{
	uint64_t hash;
	memcpy(&hash, p->hash, sizeof(hash));
	return hash;
}

static int compare(const void *pa, const void *pb)
{
	const struct place *a = pa, *b = pb;
	uint64_t of_a = hash_of(a), of_b = hash_of(b);
	if (of_a != of_b)
		return of_a < of_b ? -1 : 1;
	return a->item < b->item ? -1 : a->item > b->item;
}

// How many entries all together. The lightest item gets a whole number of at least its part of
// min_size, as gRPC and Envoy do it.
static double scale_of(const struct lb_ring_item *items, uint32_t n, double sum, uint64_t min_size,
	uint64_t max_size)
{
	double lightest = 1;
	for (uint32_t i = 0; i < n; i++)
		lightest = fmin(lightest, items[i].weight / sum);
	return fmin(ceil(lightest * (double)min_size) / lightest, (double)max_size);
}

// "<key>_<i>". The key's text is laid down once, the number behind it anew each time.
static void place_item(struct lb_ring *r, struct str key, char *text, uint32_t item, uint64_t i)
{
	int digits = snprintf(text + key.len, 22, "_%llu", (unsigned long long)i);
	uint64_t hash = lb_xxh64(text, key.len + (size_t)digits);
	struct place *p = &r->places[r->n++];
	memcpy(p->hash, &hash, sizeof(hash));
	p->item = item;
}

struct lb_ring *lb_ring_new(
	const struct lb_ring_item *items, uint32_t n, uint64_t min_size, uint64_t max_size)
{
	double sum = 0;
	size_t longest = 0;
	for (uint32_t i = 0; i < n; i++) {
		sum += items[i].weight;
		longest = items[i].key.len > longest ? items[i].key.len : longest;
	}
	double scale = scale_of(items, n, sum, min_size, max_size);
	// Rounding up happens once an item at most.
	struct lb_ring *r = malloc(sizeof(*r) + ((size_t)scale + n + 1) * sizeof(r->places[0]));
	char *text = malloc(longest + 22);
	if (!r || !text) {
		free(r);
		free(text);
		return NULL;
	}
	r->n = 0;
	double due = 0;
	for (uint32_t i = 0; i < n; i++) {
		due += scale * (items[i].weight / sum);
		memcpy(text, items[i].key.p, items[i].key.len);
		for (uint64_t k = 0; r->n < due; k++)
			place_item(r, items[i].key, text, i, k);
	}
	free(text);
	qsort(r->places, r->n, sizeof(r->places[0]), compare);
	struct lb_ring *fitting = realloc(r, sizeof(*r) + r->n * sizeof(r->places[0]));
	return fitting ? fitting : r;
}

void lb_ring_free(struct lb_ring *r)
{
	free(r);
}

uint32_t lb_ring_size(const struct lb_ring *r)
{
	return r->n;
}

uint32_t lb_ring_find(const struct lb_ring *r, uint64_t hash)
{
	uint32_t low = 0, high = r->n;
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		if (hash_of(&r->places[mid]) < hash)
			low = mid + 1;
		else
			high = mid;
	}
	return low == r->n ? 0 : low;
}

uint32_t lb_ring_item_at(const struct lb_ring *r, uint32_t place)
{
	return r->places[place].item;
}
