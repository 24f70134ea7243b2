// SPDX-License-Identifier: Apache-2.0
#include "ctrl/base/strmap.h"

#include "lb/base/check.h"

#include <xxhash.h>

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

uint64_t strmap_hash(const char *key)
{
	return XXH64(key, strlen(key), 0);
}

struct strmap_link *strmap_find(const struct strmap *m, const char *key)
{
	if (!m->buckets)
		return NULL;
	uint64_t hash = strmap_hash(key);
	struct strmap_link *l = m->buckets[hash & (m->n_buckets - 1)];
	while (l && (l->hash != hash || strcmp(l->key, key) != 0))
		l = l->next;
	return l;
}

static int grow(struct strmap *m)
{
	uint32_t n = m->n_buckets ? m->n_buckets * 2 : 16;
	struct strmap_link **buckets = calloc(n, sizeof(struct strmap_link *));
	if (!buckets)
		return m->buckets ? 0 : -ENOMEM; // fuller buckets work too
	for (uint32_t i = 0; i < m->n_buckets; i++) {
		for (struct strmap_link *l = m->buckets[i], *next; l; l = next) {
			next = l->next;
			l->next = buckets[l->hash & (n - 1)];
			buckets[l->hash & (n - 1)] = l;
		}
	}
	free(m->buckets);
	m->buckets = buckets;
	m->n_buckets = n;
	return 0;
}

int strmap_add(struct strmap *m, struct strmap_link *l, const char *key)
{
	if (m->n >= m->n_buckets) {
		int rc = grow(m);
		if (rc)
			return rc;
	}
	l->key = key;
	l->hash = strmap_hash(key);
	struct strmap_link **bucket = &m->buckets[l->hash & (m->n_buckets - 1)];
	l->next = *bucket;
	*bucket = l;
	m->n++;
	return 0;
}

void strmap_remove(struct strmap *m, struct strmap_link *l)
{
	CHECK(m->buckets);
	struct strmap_link **at = &m->buckets[l->hash & (m->n_buckets - 1)];
	while (*at && *at != l)
		at = &(*at)->next;
	CHECK(*at);
	*at = l->next;
	m->n--;
}

void strmap_fini(struct strmap *m)
{
	free(m->buckets);
	*m = (struct strmap){0};
}
