// SPDX-License-Identifier: Apache-2.0
// The records of a tree of keys, for radix.c, which looks keys up, and radix_build.c, which makes
// them, only.
// Thread: any.
#pragma once

#include "lb/index/radix.h"

#include <stdint.h>
#include <string.h>

// A record: this head, the byte of each child, filled up to a word, and a link to each child.
struct node {
	uint32_t key; // where the record of the longest key is that ends here or above
	uint32_t depth; // of the byte that tells the children apart
	uint32_t n_children; // <= 256
};
// A record: this head, the value, and the key as it is read, filled up to a word.
struct key {
	uint32_t up; // the longest other one it starts with
	uint32_t len;
};
#define NONE UINT32_MAX // no such key
#define NODE_WORDS (sizeof(struct node) / sizeof(uint32_t))
#define KEY_WORDS (sizeof(struct key) / sizeof(uint32_t))
#define SPARE_WORDS 2 // behind the last record: bytes are read eight at a time
#define JUMPS_FROM 16 // keys; fewer are found as soon without
#define LEAF 0x80000000u // in a link: the rest is where a key is, not a node

// Keys below `link` begin with the same segment, up to its slash.
struct jump {
	uint32_t tag; // high half of the segment's hash
	uint32_t link; // NONE = empty
};

struct lb_radix {
	int flags;
	uint32_t n_keys, root; // a link
	uint32_t value_words;
	size_t n_node_words, n_key_words;
	uint32_t *nodes; // owned, as all below
	uint32_t *keys;
	struct jump *jumps; // open addressing; NULL = none
	uint32_t n_jumps; // places
};

static inline uint8_t text_byte(struct str s, size_t i, int flags)
{
	char c = s.p[flags & LB_RADIX_BACKWARDS ? s.len - 1 - i : i];
	return (uint8_t)(flags & LB_RADIX_FOLD ? str_fold(c) : c);
}

// How long the text's first segment is, both slashes included; 0 = it has none.
static inline size_t segment_len(const void *text, size_t len)
{
	const char *p = text;
	const char *slash = len > 1 ? memchr(p + 1, '/', len - 1) : NULL;
	return slash ? (size_t)(slash - p) + 1 : 0;
}

// The segment's place, or the empty one where it belongs.
static inline struct jump *jump_slot(const struct lb_radix *r, uint64_t hash)
{
	uint64_t i = (hash & UINT32_MAX) * r->n_jumps >> 32;
	while (r->jumps[i].link != NONE && r->jumps[i].tag != hash >> 32)
		i = i + 1 < r->n_jumps ? i + 1 : 0;
	return &r->jumps[i];
}

static inline size_t key_words(const struct lb_radix *r, size_t len)
{
	return KEY_WORDS + r->value_words + (len + 3) / 4;
}
