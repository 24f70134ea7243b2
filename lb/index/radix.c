// SPDX-License-Identifier: Apache-2.0
// A walk looks at the one byte by which a node's children differ and skips what they share; the key
// where it ends is then compared as a whole (Morrison's PATRICIA). Every key that the text starts
// with is on that walk, so it is that key or one of the shorter ones that it starts with. Nodes are
// records of one array of words, keys with their values of another: a lookup touches few lines. A
// key below which no other goes on has no node of its own.
//
// Where keys are paths, a table leads from a path's first segment past the upper nodes: a jump. It
// knows the hash of the segment alone; the comparison at the end tells a wrong one, and then the
// walk begins at the root.
#include "lb/index/hash.h"
#include "lb/index/radix_inside.h"

#include <stdlib.h>

void lb_radix_free(struct lb_radix *r)
{
	if (!r)
		return;
	free(r->nodes);
	free(r->keys);
	free(r->jumps);
	free(r);
}

uint32_t lb_radix_count(const struct lb_radix *r)
{
	return r->n_keys;
}

size_t lb_radix_size(const struct lb_radix *r)
{
	size_t n_words = r->n_node_words + r->n_key_words + (r->n_keys ? 2 * SPARE_WORDS : 0);
	return sizeof(*r) + n_words * sizeof(uint32_t) + r->n_jumps * sizeof(r->jumps[0]);
}

static const struct key *key_at(const struct lb_radix *r, uint32_t at)
{
	return (const struct key *)(const void *)(r->keys + at);
}

const void *lb_radix_up(const struct lb_radix *r, const void *value)
{
	const struct key *key = (const struct key *)value - 1;
	return key->up == NONE ? NULL : key_at(r, key->up) + 1;
}

void *lb_radix_next(const struct lb_radix *r, const void *value)
{
	size_t at = 0;
	if (value) {
		const struct key *key = (const struct key *)value - 1;
		at = (size_t)((const uint32_t *)(const void *)key - r->keys) +
		     key_words(r, key->len);
	}
	return at < r->n_key_words ? r->keys + at + KEY_WORDS : NULL;
}

static inline uint64_t load8(const void *p)
{
	uint64_t x;
	memcpy(&x, p, sizeof(x));
	return x;
}

// Where `byte` is among n bytes; n or more = nowhere. Most nodes have a few.
static inline size_t child_index(const uint8_t *bytes, size_t n, uint8_t byte)
{
	const uint64_t ones = 0x0101010101010101;
	for (size_t i = 0; i < n && i < 16; i += 8) {
		uint64_t x = load8(bytes + i) ^ ones * byte; // links or spare words behind
		uint64_t zeros = (x - ones) & ~x & (ones << 7); // the lowest one is exact
		if (zeros)
			return i + (size_t)__builtin_ctzll(zeros) / 8;
	}
	if (n <= 16)
		return n;
	const uint8_t *found = memchr(bytes + 16, byte, n - 16);
	return found ? (size_t)(found - bytes) : n;
}

// Where the key is at which the walk ends.
static inline __attribute__((always_inline)) uint32_t walk(
	const struct lb_radix *r, uint32_t link, struct str text, int flags)
{
	while (!(link & LEAF)) {
		const uint32_t *words = r->nodes + link;
		const struct node *node = (const struct node *)(const void *)words;
		size_t depth = node->depth, n = node->n_children;
		if (depth >= text.len)
			return node->key;
		size_t i =
			child_index((const uint8_t *)(node + 1), n, text_byte(text, depth, flags));
		if (i >= n)
			return node->key;
		link = words[NODE_WORDS + (n + 3) / 4 + i];
	}
	return link & ~LEAF;
}

// Whether the text starts with the key, which may be read beyond its end; the text may not.
static inline __attribute__((always_inline)) bool starts(
	const uint8_t *key, size_t len, struct str text, int flags)
{
	size_t i = 0;
	if (len > text.len)
		return false;
	if (!flags) {
		for (; i + 8 <= len; i += 8)
			if (load8(key + i) != load8(text.p + i))
				return false;
		if (i < len && text.len - i >= 8)
			return (load8(key + i) ^ load8(text.p + i)) << (64 - 8 * (len - i)) == 0;
	}
	while (i < len && key[i] == text_byte(text, i, flags))
		i++;
	return i == len;
}

// How many bytes a key and the text have in common at their starts.
static size_t common(const uint8_t *key, size_t key_len, struct str text, int flags)
{
	size_t len = key_len < text.len ? key_len : text.len, i = 0;
	while (i < len && key[i] == text_byte(text, i, flags))
		i++;
	return i;
}

static inline const uint8_t *bytes_of(const struct lb_radix *r, const struct key *key)
{
	return (const uint8_t *)((const uint32_t *)(key + 1) + r->value_words);
}

// The key at `at`, or the longest one that it and the text start with.
static struct lb_radix_hit climb(const struct lb_radix *r, uint32_t at, size_t len, struct str text)
{
	const struct key *key = key_at(r, at);
	while (key->len > len) {
		if (key->up == NONE)
			return (struct lb_radix_hit){0};
		key = key_at(r, key->up);
	}
	return (struct lb_radix_hit){key + 1, key->len == text.len};
}

static inline __attribute__((always_inline)) struct lb_radix_hit find(
	const struct lb_radix *r, struct str text, int flags)
{
	uint32_t at = walk(r, r->root, text, flags);
	if (at == NONE)
		return (struct lb_radix_hit){0};
	const struct key *key = key_at(r, at);
	if (starts(bytes_of(r, key), key->len, text, flags))
		return (struct lb_radix_hit){key + 1, key->len == text.len};
	return climb(r, at, common(bytes_of(r, key), key->len, text, flags), text);
}

// False = there is no jump, or not the right one.
static bool find_by_jump(const struct lb_radix *r, struct str text, struct lb_radix_hit *ret)
{
	size_t len = segment_len(text.p, text.len);
	if (len == 0)
		return false;
	const struct jump *j = jump_slot(r, lb_hash(text.p, len));
	if (j->link == NONE)
		return false;
	uint32_t at = walk(r, j->link, text, 0);
	if (at == NONE)
		return false;
	const struct key *key = key_at(r, at);
	if (starts(bytes_of(r, key), key->len, text, 0)) {
		// Keys shorter than the segment are those of many segments.
		*ret = (struct lb_radix_hit){key + 1, key->len == text.len};
		return key->len >= len;
	}
	size_t n = common(bytes_of(r, key), key->len, text, 0);
	if (n < len)
		return false;
	*ret = climb(r, at, n, text);
	return true;
}

static __attribute__((noinline)) struct lb_radix_hit find_otherwise(
	const struct lb_radix *r, struct str text)
{
	switch (r->flags) {
	case LB_RADIX_FOLD:
		return find(r, text, LB_RADIX_FOLD);
	case LB_RADIX_BACKWARDS:
		return find(r, text, LB_RADIX_BACKWARDS);
	default:
		return find(r, text, LB_RADIX_FOLD | LB_RADIX_BACKWARDS);
	}
}

// The way to read is known where find() is inlined, so that it costs nothing per byte.
struct lb_radix_hit lb_radix_find(const struct lb_radix *r, struct str text)
{
	if (r->n_keys == 0)
		return (struct lb_radix_hit){0};
	if (r->flags)
		return find_otherwise(r, text);
	struct lb_radix_hit hit;
	return r->jumps && find_by_jump(r, text, &hit) ? hit : find(r, text, 0);
}
