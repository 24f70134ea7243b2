// SPDX-License-Identifier: Apache-2.0
#include "dataplane/h2/hpack_memo.h"

#include "lb/base/cacheline.h"

#include <string.h>

#define PLACE_BITS 8
#define LONGEST_STATIC_NAME 27

struct hpack_memo {
	uint32_t block; // number of the one at hand
	uint32_t hash; // of what find() did not find
	struct hpack_memo_field places[1 << PLACE_BITS];
};

_Static_assert(LONGEST_STATIC_NAME + HPACK_ROOM(HPACK_MEMO_MAX) <=
		       sizeof(((struct hpack_memo_field *)0)->text),
	"whatever the bytes turn out to be has room");
_Static_assert(
	sizeof(struct hpack_memo_field) == (size_t)3 * CACHELINE_SIZE, "and no line is shared");

struct hpack_memo *hpack_memo_new(void)
{
	return cacheline_alloc(1, sizeof(struct hpack_memo));
}

void hpack_memo_free(struct hpack_memo *m)
{
	cacheline_free(m);
}

void hpack_memo_begin(struct hpack_memo *m)
{
	m->block++;
}

static inline uint64_t load_u64(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

// Unkeyed: who makes fields collide, or sends many twice, only has others decoded, as if none were
// kept.
static inline uint32_t hash_of(const uint8_t *bytes, size_t len)
{
	const uint64_t k = 0x9e3779b97f4a7c15;
	uint64_t h = len;
	for (size_t i = 0; i + 8 < len; i += 8)
		h = (h ^ load_u64(bytes + i)) * k;
	h = (h ^ load_u64(bytes + len - 8)) * k;
	return (uint32_t)(h >> 32);
}

// Of one length, 8 at least.
static inline bool same(const uint8_t *a, const uint8_t *b, size_t len)
{
	for (size_t i = 0; i + 8 < len; i += 8)
		if (load_u64(a + i) != load_u64(b + i))
			return false;
	return load_u64(a + len - 8) == load_u64(b + len - 8);
}

struct hpack_memo_field *hpack_memo_find(
	struct hpack_memo *m, const uint8_t *bytes, size_t len, struct hpack_memo_field **ret_place)
{
	uint32_t hash = hash_of(bytes, len);
	struct hpack_memo_field *e = &m->places[hash >> (32 - PLACE_BITS)];
	if (e->n_bytes == len && same(e->bytes, bytes, len)) {
		e->block = m->block;
		return e;
	}
	m->hash = hash;
	*ret_place = e;
	return NULL;
}

static bool may_be_secret(enum hpack_name id)
{
	return id == HPACK_NO_NAME || id == HPACK_AUTHORIZATION ||
	       id == HPACK_PROXY_AUTHORIZATION || id == HPACK_COOKIE || id == HPACK_SET_COOKIE;
}

struct hpack_memo_field *hpack_memo_keep(struct hpack_memo *m, struct hpack_memo_field *place,
	const uint8_t *bytes, size_t len, const struct hpack_field *f)
{
	if (may_be_secret(f->id))
		return NULL;
	// The message at hand may have borrowed from what is kept there.
	bool lent = place->n_bytes && place->block == m->block;
	bool again = place->missed == m->hash;
	place->missed = m->hash;
	if (!again || lent)
		return NULL;
	place->block = m->block;
	place->n_bytes = (uint8_t)len;
	place->name_len = (uint8_t)f->name.len;
	place->value_len = (uint8_t)f->value.len;
	place->id = (uint8_t)f->id;
	place->mark = 0;
	memcpy(place->bytes, bytes, len);
	memcpy(place->text, f->name.p, f->name.len);
	memcpy(place->text + f->name.len, f->value.p, f->value.len);
	return place;
}
