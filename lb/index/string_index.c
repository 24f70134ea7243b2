// SPDX-License-Identifier: Apache-2.0
// Keys, numbers and values lie together in records of one array of words, so that a lookup touches
// a slot and a record.
#include "lb/index/string_index.h"

#include "lb/index/hash.h"

#include <stdlib.h>

struct slot {
	uint32_t tag; // high half of the hash: most misses end without touching the key
	uint32_t at; // word where the record begins; LB_STRING_INDEX_NONE = empty slot
};

// The value follows, then the key.
struct record {
	uint32_t number, len;
};
#define HEAD_WORDS (sizeof(struct record) / sizeof(uint32_t))

struct lb_string_index {
	uint64_t mask; // slots - 1
	struct slot *slots; // owned, as all below
	uint32_t *words; // records
	uint32_t *starts; // of them, by number
	uint32_t value_words;
	uint32_t n, room; // keys
	size_t n_words, words_room;
};

// At most three quarters of the slots are used, so that a probe ends soon.
static uint64_t slots_for(uint64_t n)
{
	uint64_t n_slots = 2;
	while (3 * n_slots < 4 * n)
		n_slots *= 2;
	return n_slots;
}

static struct slot *new_slots(uint64_t n)
{
	struct slot *slots = malloc(n * sizeof(*slots));
	for (uint64_t i = 0; slots && i < n; i++)
		slots[i] = (struct slot){.at = LB_STRING_INDEX_NONE};
	return slots;
}

struct lb_string_index *lb_string_index_new(uint32_t n_expected, size_t value_size)
{
	struct lb_string_index *m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	uint64_t n_slots = slots_for(n_expected);
	m->mask = n_slots - 1;
	m->value_words = (uint32_t)(value_size / sizeof(uint32_t));
	m->slots = new_slots(n_slots);
	if (m->slots)
		return m;
	lb_string_index_free(m);
	return NULL;
}

void lb_string_index_free(struct lb_string_index *m)
{
	if (!m)
		return;
	free(m->slots);
	free(m->words);
	free(m->starts);
	free(m);
}

static struct record *record_at(const struct lb_string_index *m, uint32_t at)
{
	return (struct record *)(void *)(m->words + at);
}

static struct str key_of(const struct lb_string_index *m, const struct record *r)
{
	return (struct str){(const char *)((const uint32_t *)(r + 1) + m->value_words), r->len};
}

// The key's slot, or the empty one where it belongs.
static struct slot *probe(const struct lb_string_index *m, struct str key, uint64_t hash)
{
	uint32_t tag = (uint32_t)(hash >> 32);
	for (uint64_t i = hash & m->mask;; i = (i + 1) & m->mask) {
		struct slot *s = &m->slots[i];
		if (s->at == LB_STRING_INDEX_NONE)
			return s;
		if (s->tag == tag && str_eq(key_of(m, record_at(m, s->at)), key))
			return s;
	}
}

static bool grow_slots(struct lb_string_index *m)
{
	uint64_t n_slots = slots_for(2 * (uint64_t)m->n + 2);
	struct slot *slots = new_slots(n_slots);
	if (!slots)
		return false;
	free(m->slots);
	m->slots = slots;
	m->mask = n_slots - 1;
	for (uint32_t i = 0; i < m->n; i++) {
		struct str key = key_of(m, record_at(m, m->starts[i]));
		uint64_t hash = lb_hash(key.p, key.len);
		*probe(m, key, hash) = (struct slot){(uint32_t)(hash >> 32), m->starts[i]};
	}
	return true;
}

static size_t record_words(const struct lb_string_index *m, size_t len)
{
	return HEAD_WORDS + m->value_words + (len + 3) / 4;
}

// For one key more with len bytes.
static bool have_room(struct lb_string_index *m, size_t len)
{
	if (len >= UINT32_MAX || m->n == LB_STRING_INDEX_NONE - 1)
		return false;
	size_t n_words = m->n_words + record_words(m, len);
	if (n_words >= LB_STRING_INDEX_NONE)
		return false;
	if (n_words > m->words_room) {
		size_t room = 2 * n_words;
		uint32_t *words = realloc(m->words, room * sizeof(*words));
		if (!words)
			return false;
		m->words = words;
		m->words_room = room;
	}
	if (m->n == m->room) {
		uint64_t room = 2 * (uint64_t)m->room + 8;
		uint32_t *starts = realloc(m->starts, room * sizeof(*starts));
		if (!starts)
			return false;
		m->starts = starts;
		m->room = room < LB_STRING_INDEX_NONE ? (uint32_t)room : LB_STRING_INDEX_NONE;
	}
	return 4 * ((uint64_t)m->n + 1) <= 3 * (m->mask + 1) || grow_slots(m);
}

uint32_t lb_string_index_add(struct lb_string_index *m, struct str key)
{
	uint64_t hash = lb_hash(key.p, key.len);
	struct slot *s = probe(m, key, hash);
	if (s->at != LB_STRING_INDEX_NONE)
		return record_at(m, s->at)->number;
	if (!have_room(m, key.len))
		return LB_STRING_INDEX_NONE;
	uint32_t at = (uint32_t)m->n_words;
	*probe(m, key, hash) = (struct slot){(uint32_t)(hash >> 32), at};
	m->n_words += record_words(m, key.len);
	memset(m->words + at, 0, (m->n_words - at) * sizeof(m->words[0]));
	*record_at(m, at) = (struct record){m->n, (uint32_t)key.len};
	if (key.len)
		memcpy(m->words + at + HEAD_WORDS + m->value_words, key.p, key.len);
	m->starts[m->n] = at;
	return m->n++;
}

bool lb_string_index_seal(struct lb_string_index *m)
{
	if (m->n == 0)
		return true;
	uint32_t *words = realloc(m->words, m->n_words * sizeof(*words));
	if (!words)
		return false;
	m->words = words;
	m->words_room = m->n_words;
	uint32_t *starts = realloc(m->starts, m->n * sizeof(*starts));
	if (!starts)
		return false;
	m->starts = starts;
	m->room = m->n;
	return true;
}

uint32_t lb_string_index_count(const struct lb_string_index *m)
{
	return m->n;
}

size_t lb_string_index_size(const struct lb_string_index *m)
{
	return sizeof(*m) + (m->mask + 1) * sizeof(m->slots[0]) + m->room * sizeof(m->starts[0]) +
	       m->words_room * sizeof(m->words[0]);
}

void *lb_string_index_value(const struct lb_string_index *m, uint32_t number)
{
	return record_at(m, m->starts[number]) + 1;
}

static const struct record *find(const struct lb_string_index *m, struct str key)
{
	if (m->n == 0)
		return NULL;
	uint32_t at = probe(m, key, lb_hash(key.p, key.len))->at;
	return at == LB_STRING_INDEX_NONE ? NULL : record_at(m, at);
}

uint32_t lb_string_index_find(const struct lb_string_index *m, struct str key)
{
	const struct record *r = find(m, key);
	return r ? r->number : LB_STRING_INDEX_NONE;
}

const void *lb_string_index_find_value(const struct lb_string_index *m, struct str key)
{
	const struct record *r = find(m, key);
	return r ? r + 1 : NULL;
}
