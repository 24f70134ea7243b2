// SPDX-License-Identifier: Apache-2.0
#include "lb/strmap.h"

#include "lb/hash.h"

#include <stdlib.h>

struct slot {
	uint32_t tag; // high half of the hash: most misses end without touching the key
	uint32_t value; // LB_STRMAP_NONE = empty slot
	uint32_t len;
	size_t at; // of the key in bytes
};

struct lb_strmap {
	uint64_t mask;
	bool is_empty;
	size_t n_bytes;
	char *bytes; // owned
	struct slot slots[];
};

// At most half of the slots are used, so that a probe ends soon.
static uint64_t slots_for(uint32_t n)
{
	uint64_t n_slots = 2;
	while (n_slots < 2 * (uint64_t)n)
		n_slots *= 2;
	return n_slots;
}

// The key's slot, or the empty one where it belongs.
static const struct slot *probe(const struct lb_strmap *m, struct str key, uint64_t hash)
{
	uint32_t tag = (uint32_t)(hash >> 32);
	for (uint64_t i = hash & m->mask;; i = (i + 1) & m->mask) {
		const struct slot *s = &m->slots[i];
		if (s->value == LB_STRMAP_NONE)
			return s;
		if (s->tag == tag && str_eq((struct str){m->bytes + s->at, s->len}, key))
			return s;
	}
}

static void insert(struct lb_strmap *m, const struct lb_strmap_entry *e)
{
	uint64_t hash = lb_hash(e->key.p, e->key.len);
	struct slot *s = &m->slots[probe(m, e->key, hash) - m->slots];
	if (s->value != LB_STRMAP_NONE) {
		if (e->value < s->value)
			s->value = e->value;
		return;
	}
	*s = (struct slot){(uint32_t)(hash >> 32), e->value, (uint32_t)e->key.len, m->n_bytes};
	if (e->key.len)
		memcpy(m->bytes + m->n_bytes, e->key.p, e->key.len);
	m->n_bytes += e->key.len;
}

struct lb_strmap *lb_strmap_new(const struct lb_strmap_entry *entries, uint32_t n)
{
	uint64_t n_slots = slots_for(n);
	size_t n_bytes = 1; // malloc(0) may be NULL
	for (uint32_t i = 0; i < n; i++)
		n_bytes += entries[i].key.len;
	struct lb_strmap *m = malloc(sizeof(*m) + n_slots * sizeof(m->slots[0]));
	char *bytes = malloc(n_bytes);
	if (!m || !bytes) {
		free(m);
		free(bytes);
		return NULL;
	}
	*m = (struct lb_strmap){.mask = n_slots - 1, .is_empty = n == 0, .bytes = bytes};
	for (uint64_t i = 0; i < n_slots; i++)
		m->slots[i] = (struct slot){.value = LB_STRMAP_NONE};
	for (uint32_t i = 0; i < n; i++)
		insert(m, &entries[i]);
	return m;
}

void lb_strmap_free(struct lb_strmap *m)
{
	if (m)
		free(m->bytes);
	free(m);
}

bool lb_strmap_is_empty(const struct lb_strmap *m)
{
	return m->is_empty;
}

uint32_t lb_strmap_find(const struct lb_strmap *m, struct str key)
{
	return m->is_empty ? LB_STRMAP_NONE : probe(m, key, lb_hash(key.p, key.len))->value;
}
