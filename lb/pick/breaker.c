// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/breaker.h"

#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/index/hash.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define N_BUCKETS_MIN 64
#define LINE 64 // of a cache

struct entry {
	_Alignas(LINE) struct lb_breaker base;
	uint32_t hash;
	uint32_t n_refs;
	uint32_t key_len;
	struct lb_breakers *owner;
	struct entry *next; // of its bucket
	struct entry *next_left, **left_link; // of those without users, where requests are in
	char key[]; // cluster, NUL, service name
};

struct lb_breakers {
	struct entry **buckets; // owned; [n_buckets], a power of two
	uint32_t n_buckets, n;
	struct entry *left;
};

struct lb_breakers *lb_breakers_new(void)
{
	struct lb_breakers *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->n_buckets = N_BUCKETS_MIN;
	t->buckets = calloc(t->n_buckets, sizeof(struct entry *));
	if (!t->buckets) {
		free(t);
		return NULL;
	}
	return t;
}

static void remove_entry(struct lb_breakers *t, struct entry *e)
{
	struct entry **link = &t->buckets[e->hash & (t->n_buckets - 1)];
	while (*link != e)
		link = &(*link)->next;
	*link = e->next;
	t->n--;
	free(e);
}

// On the list of those that only requests keep.
static void leave_behind(struct lb_breakers *t, struct entry *e)
{
	e->next_left = t->left;
	e->left_link = &t->left;
	if (t->left)
		t->left->left_link = &e->next_left;
	t->left = e;
}

static void take_back(struct entry *e)
{
	*e->left_link = e->next_left;
	if (e->next_left)
		e->next_left->left_link = e->left_link;
	e->left_link = NULL;
}

static void sweep(struct lb_breakers *t)
{
	struct entry *next;
	for (struct entry *e = t->left; e; e = next) {
		next = e->next_left;
		if (lb_breaker_in_flight(&e->base) || lb_breaker_retrying(&e->base))
			continue;
		take_back(e);
		remove_entry(t, e);
	}
}

void lb_breakers_free(struct lb_breakers *t)
{
	if (!t)
		return;
	while (t->left) {
		struct entry *e = t->left;
		take_back(e);
		remove_entry(t, e);
	}
	CHECK(t->n == 0);
	free(t->buckets);
	free(t);
}

// Twice as many buckets, if there is memory for them.
static void grow(struct lb_breakers *t)
{
	uint32_t n = 2 * t->n_buckets;
	struct entry **buckets = calloc(n, sizeof(struct entry *));
	if (!buckets)
		return;
	for (uint32_t i = 0; i < t->n_buckets; i++) {
		struct entry *next;
		for (struct entry *e = t->buckets[i]; e; e = next) {
			next = e->next;
			e->next = buckets[e->hash & (n - 1)];
			buckets[e->hash & (n - 1)] = e;
		}
	}
	free(t->buckets);
	t->buckets = buckets;
	t->n_buckets = n;
}

struct lb_breaker *lb_breakers_get(
	struct lb_breakers *t, const char *cluster, const char *eds_service_name)
{
	size_t cluster_len = strlen(cluster) + 1, len = cluster_len + strlen(eds_service_name);
	sweep(t);
	size_t n_lines = (offsetof(struct entry, key) + len + LINE - 1) / LINE;
	struct entry *e = aligned_alloc(LINE, n_lines * LINE);
	if (!e)
		return NULL;
	*e = (struct entry){.owner = t, .n_refs = 1, .key_len = (uint32_t)len};
	memcpy(e->key, cluster, cluster_len);
	memcpy(e->key + cluster_len, eds_service_name, len - cluster_len);
	e->hash = (uint32_t)lb_hash(e->key, len);
	struct entry *old = t->buckets[e->hash & (t->n_buckets - 1)];
	while (old && (old->key_len != len || memcmp(old->key, e->key, len) != 0))
		old = old->next;
	if (old) {
		free(e);
		return lb_breaker_get_again(&old->base);
	}
	if (t->n >= t->n_buckets)
		grow(t);
	e->next = t->buckets[e->hash & (t->n_buckets - 1)];
	t->buckets[e->hash & (t->n_buckets - 1)] = e;
	t->n++;
	return &e->base;
}

struct lb_breaker *lb_breaker_get_again(struct lb_breaker *b)
{
	struct entry *e = CONTAINER_OF(b, struct entry, base);
	if (e->n_refs++ == 0)
		take_back(e);
	return b;
}

void lb_breaker_put(struct lb_breaker *b)
{
	struct entry *e = CONTAINER_OF(b, struct entry, base);
	if (!b)
		return;
	CHECK(e->n_refs > 0);
	if (--e->n_refs == 0) {
		leave_behind(e->owner, e);
		sweep(e->owner);
	}
}

uint32_t lb_breakers_count(const struct lb_breakers *t)
{
	return t->n;
}
