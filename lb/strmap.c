// SPDX-License-Identifier: Apache-2.0
#include "lb/strmap.h"

#include "lb/hash.h"

#include <stdlib.h>

struct slot {
	uint32_t tag; // high half of the hash: most misses end without touching the key
	uint32_t number; // LB_STRMAP_NONE = empty slot
};

struct key {
	uint32_t at, len; // in bytes
};

struct lb_strmap {
	uint64_t mask; // slots - 1
	struct slot *slots; // owned, as all below
	struct key *keys;
	char *bytes;
	uint32_t n, room; // keys
	size_t n_bytes, bytes_room;
};

// At most three quarters of the slots are used, so that a probe ends soon.
static uint64_t slots_for(uint32_t n)
{
	uint64_t n_slots = 2;
	while (3 * n_slots < 4 * (uint64_t)n)
		n_slots *= 2;
	return n_slots;
}

static struct slot *new_slots(uint64_t n)
{
	struct slot *slots = malloc(n * sizeof(*slots));
	for (uint64_t i = 0; slots && i < n; i++)
		slots[i] = (struct slot){.number = LB_STRMAP_NONE};
	return slots;
}

struct lb_strmap *lb_strmap_new(uint32_t n_expected)
{
	struct lb_strmap *m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	uint64_t n_slots = slots_for(n_expected);
	m->mask = n_slots - 1;
	m->room = n_expected;
	m->slots = new_slots(n_slots);
	m->keys = malloc(((size_t)n_expected + 1) * sizeof(m->keys[0]));
	if (m->slots && m->keys)
		return m;
	lb_strmap_free(m);
	return NULL;
}

void lb_strmap_free(struct lb_strmap *m)
{
	if (!m)
		return;
	free(m->slots);
	free(m->keys);
	free(m->bytes);
	free(m);
}

struct str lb_strmap_key(const struct lb_strmap *m, uint32_t number)
{
	return (struct str){m->bytes + m->keys[number].at, m->keys[number].len};
}

// The key's slot, or the empty one where it belongs.
static struct slot *probe(const struct lb_strmap *m, struct str key, uint64_t hash)
{
	uint32_t tag = (uint32_t)(hash >> 32);
	for (uint64_t i = hash & m->mask;; i = (i + 1) & m->mask) {
		struct slot *s = &m->slots[i];
		if (s->number == LB_STRMAP_NONE)
			return s;
		if (s->tag == tag && str_eq(lb_strmap_key(m, s->number), key))
			return s;
	}
}

static bool grow_slots(struct lb_strmap *m)
{
	uint64_t n_slots = slots_for(2 * m->n);
	struct slot *slots = new_slots(n_slots);
	if (!slots)
		return false;
	free(m->slots);
	m->slots = slots;
	m->mask = n_slots - 1;
	for (uint32_t i = 0; i < m->n; i++) {
		struct str key = lb_strmap_key(m, i);
		uint64_t hash = lb_hash(key.p, key.len);
		*probe(m, key, hash) = (struct slot){(uint32_t)(hash >> 32), i};
	}
	return true;
}

// For one key more with len bytes.
static bool have_room(struct lb_strmap *m, size_t len)
{
	if (len > UINT32_MAX - m->n_bytes || m->n == LB_STRMAP_NONE - 1)
		return false;
	if (m->n_bytes + len > m->bytes_room || !m->bytes) {
		size_t room = 2 * (m->n_bytes + len) + 64;
		char *bytes = realloc(m->bytes, room);
		if (!bytes)
			return false;
		m->bytes = bytes;
		m->bytes_room = room;
	}
	if (m->n == m->room) {
		size_t room = 2 * (size_t)m->room + 8;
		struct key *keys = realloc(m->keys, (room + 1) * sizeof(*keys));
		if (!keys)
			return false;
		m->keys = keys;
		m->room = room < LB_STRMAP_NONE ? (uint32_t)room : LB_STRMAP_NONE;
	}
	return 4 * ((uint64_t)m->n + 1) <= 3 * (m->mask + 1) || grow_slots(m);
}

uint32_t lb_strmap_add(struct lb_strmap *m, struct str key)
{
	uint64_t hash = lb_hash(key.p, key.len);
	struct slot *s = probe(m, key, hash);
	if (s->number != LB_STRMAP_NONE)
		return s->number;
	if (!have_room(m, key.len))
		return LB_STRMAP_NONE;
	*probe(m, key, hash) = (struct slot){(uint32_t)(hash >> 32), m->n};
	m->keys[m->n] = (struct key){(uint32_t)m->n_bytes, (uint32_t)key.len};
	if (key.len)
		memcpy(m->bytes + m->n_bytes, key.p, key.len);
	m->n_bytes += key.len;
	return m->n++;
}

bool lb_strmap_seal(struct lb_strmap *m)
{
	char *bytes = realloc(m->bytes, m->n_bytes + 1);
	if (!bytes)
		return false;
	m->bytes = bytes;
	m->bytes_room = m->n_bytes + 1;
	struct key *keys = realloc(m->keys, ((size_t)m->n + 1) * sizeof(*keys));
	if (!keys)
		return false;
	m->keys = keys;
	m->room = m->n;
	return true;
}

uint32_t lb_strmap_count(const struct lb_strmap *m)
{
	return m->n;
}

size_t lb_strmap_size(const struct lb_strmap *m)
{
	return sizeof(*m) + (m->mask + 1) * sizeof(m->slots[0]) +
	       ((size_t)m->room + 1) * sizeof(m->keys[0]) + m->bytes_room;
}

uint32_t lb_strmap_find(const struct lb_strmap *m, struct str key)
{
	return m->n ? probe(m, key, lb_hash(key.p, key.len))->number : LB_STRMAP_NONE;
}
