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
#include "lb/index/radix.h"

#include "lb/index/hash.h"
#include "lb/index/strsort.h"

#include <stdlib.h>

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

// What goes on below a link; all of it shares its first `depth` bytes.
struct range {
	uint32_t begin, end;
	size_t depth;
	size_t link; // word, or ROOT
	uint32_t up;
};
#define ROOT SIZE_MAX
struct segment {
	uint64_t hash;
	size_t link; // word, or ROOT
};
struct builder {
	struct lb_radix *r;
	size_t room; // of nodes, in words
	struct lb_strsort_item *items;
	struct range *stack; // at most one range an item
	uint8_t *bytes; // of keys that are not read as they are; may be NULL
	uint32_t n_stack;
	void **values; // the caller's
	struct segment *segments; // at most one an item; NULL = none are wanted
	uint32_t n_segments;
};

static inline uint8_t text_byte(struct str s, size_t i, int flags)
{
	char c = s.p[flags & LB_RADIX_BACKWARDS ? s.len - 1 - i : i];
	return (uint8_t)(flags & LB_RADIX_FOLD ? str_fold(c) : c);
}

static size_t common_len(
	const struct lb_strsort_item *a, const struct lb_strsort_item *b, size_t from)
{
	size_t len = a->len < b->len ? a->len : b->len;
	while (from < len && a->p[from] == b->p[from])
		from++;
	return from;
}

// A record at the end of the array. NULL = out of memory.
static struct node *new_node(struct builder *b, uint32_t n_children)
{
	struct lb_radix *r = b->r;
	size_t n_words = NODE_WORDS + (n_children + 3) / 4 + n_children;
	if (r->n_node_words + n_words > b->room) {
		size_t room = 2 * b->room + n_words + SPARE_WORDS;
		uint32_t *nodes = realloc(r->nodes, room * sizeof(*nodes));
		if (!nodes)
			return NULL;
		r->nodes = nodes;
		b->room = room;
	}
	uint32_t *words = r->nodes + r->n_node_words;
	memset(words, 0, n_words * sizeof(*words));
	r->n_node_words += n_words;
	return (struct node *)(void *)words;
}

// How long the text's first segment is, both slashes included; 0 = it has none.
static inline size_t segment_len(const void *text, size_t len)
{
	const char *p = text;
	const char *slash = len > 1 ? memchr(p + 1, '/', len - 1) : NULL;
	return slash ? (size_t)(slash - p) + 1 : 0;
}

// The segment's place, or the empty one where it belongs.
static struct jump *jump_slot(const struct lb_radix *r, uint64_t hash)
{
	uint64_t i = (hash & UINT32_MAX) * r->n_jumps >> 32;
	while (r->jumps[i].link != NONE && r->jumps[i].tag != hash >> 32)
		i = i + 1 < r->n_jumps ? i + 1 : 0;
	return &r->jumps[i];
}

// The first item from begin on that differs from it in byte `at`.
static uint32_t end_of_child(
	const struct lb_strsort_item *items, uint32_t begin, uint32_t end, size_t at)
{
	uint8_t byte = items[begin].p[at];
	uint32_t step = 1, low = begin; // low has that byte
	while (step < end - low && items[low + step].p[at] == byte) {
		low += step;
		step *= 2;
	}
	uint32_t high = step < end - low ? low + step : end; // high does not, or is the end
	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;
		if (items[mid].p[at] == byte)
			low = mid;
		else
			high = mid;
	}
	return high;
}

static size_t key_words(const struct lb_radix *r, size_t len)
{
	return KEY_WORDS + r->value_words + (len + 3) / 4;
}

static uint32_t new_key(struct builder *b, const struct lb_strsort_item *item, uint32_t up)
{
	struct lb_radix *r = b->r;
	uint32_t at = (uint32_t)r->n_key_words;
	struct key *key = (struct key *)(void *)(r->keys + at);
	*key = (struct key){up, (uint32_t)item->len};
	if (item->len)
		memcpy(r->keys + at + KEY_WORDS + r->value_words, item->p, item->len);
	r->n_key_words += key_words(r, item->len);
	r->n_keys++;
	return at;
}

static void set_link(struct builder *b, size_t link, uint32_t to)
{
	if (link == ROOT)
		b->r->root = to;
	else
		b->r->nodes[link] = to;
}

// The link where a segment's keys part from all others.
static void note_segment(struct builder *b, struct range g, size_t depth)
{
	const struct lb_strsort_item *item = &b->items[g.begin];
	size_t len = segment_len(item->p, depth);
	if (len && len >= g.depth)
		b->segments[b->n_segments++] = (struct segment){lb_hash(item->p, len), g.link};
}

// Writes what a link leads to and puts what is below on the stack. False = out of memory.
static bool add_range(struct builder *b, struct range g)
{
	const struct lb_strsort_item *items = b->items;
	// Sorted: what the first and the last one share, all share.
	size_t depth = common_len(&items[g.begin], &items[g.end - 1], g.depth);
	if (b->segments)
		note_segment(b, g, depth);
	uint32_t key = g.up, below = g.begin; // the first item that goes on
	if (items[below].len == depth) {
		key = new_key(b, &items[below], g.up);
		while (below < g.end && items[below].len == depth)
			b->values[items[below++].index] = b->r->keys + key + KEY_WORDS;
	}
	if (below == g.end) {
		set_link(b, g.link, LEAF | key);
		return true;
	}
	uint32_t n = 0;
	for (uint32_t i = below; i < g.end; i = end_of_child(items, i, g.end, depth))
		n++;
	size_t at = b->r->n_node_words;
	struct node *node = new_node(b, n);
	if (!node || at >= LEAF)
		return false;
	*node = (struct node){key, (uint32_t)depth, n};
	set_link(b, g.link, (uint32_t)at);
	uint8_t *bytes = (uint8_t *)(node + 1);
	size_t link = at + NODE_WORDS + (n + 3) / 4;
	// The first child is on top of the stack at the end: it is written next.
	b->n_stack += n;
	uint32_t i = below;
	for (uint32_t k = 0, next; k < n; k++, i = next) {
		next = end_of_child(items, i, g.end, depth);
		bytes[k] = items[i].p[depth];
		b->stack[b->n_stack - 1 - k] = (struct range){i, next, depth + 1, link + k, key};
	}
	return true;
}

// The keys as they are read, sorted; and room for their records. False = out of memory.
static bool collect(struct builder *b, const struct str *keys, uint32_t n)
{
	struct lb_radix *r = b->r;
	size_t n_bytes = 1, n_words = SPARE_WORDS;
	for (uint32_t i = 0; i < n; i++)
		n_bytes += keys[i].len;
	if (r->flags && !(b->bytes = malloc(n_bytes)))
		return false;
	uint8_t *to = b->bytes;
	for (uint32_t i = 0; i < n; i++) {
		struct str key = keys[i];
		b->items[i] = (struct lb_strsort_item){
			.p = (const uint8_t *)key.p, .len = key.len, .index = i};
		if (!to)
			continue;
		b->items[i].p = to;
		for (size_t j = 0; j < key.len; j++)
			*to++ = text_byte(key, j, r->flags);
	}
	if (!lb_strsort(b->items, n))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (i == 0 || lb_strsort_order(&b->items[i - 1], &b->items[i], 0) != 0)
			n_words += key_words(r, b->items[i].len);
	if (n_words < LEAF)
		r->keys = calloc(n_words, sizeof(r->keys[0]));
	return r->keys;
}

// Two segments with the same hash share a place: the second one is not in the table.
static bool build_jumps(struct builder *b)
{
	struct lb_radix *r = b->r;
	r->n_jumps = b->n_segments + b->n_segments / 3 + 1; // three quarters full
	r->jumps = malloc(r->n_jumps * sizeof(r->jumps[0]));
	if (!r->jumps)
		return false;
	for (uint32_t i = 0; i < r->n_jumps; i++)
		r->jumps[i] = (struct jump){.link = NONE};
	for (uint32_t i = 0; i < b->n_segments; i++) {
		const struct segment *s = &b->segments[i];
		struct jump *j = jump_slot(r, s->hash);
		if (j->link == NONE)
			*j = (struct jump){(uint32_t)(s->hash >> 32),
				s->link == ROOT ? r->root : r->nodes[s->link]};
	}
	return true;
}

static bool build(struct builder *b, const struct str *keys, uint32_t n)
{
	struct lb_radix *r = b->r;
	if (!collect(b, keys, n))
		return false;
	b->stack[0] = (struct range){0, n, 0, ROOT, NONE};
	b->n_stack = 1;
	while (b->n_stack)
		if (!add_range(b, b->stack[--b->n_stack]))
			return false;
	uint32_t *nodes = realloc(r->nodes, (r->n_node_words + SPARE_WORDS) * sizeof(*nodes));
	if (!nodes)
		return false;
	memset(nodes + r->n_node_words, 0, SPARE_WORDS * sizeof(*nodes));
	r->nodes = nodes;
	return !b->segments || build_jumps(b);
}

struct lb_radix *lb_radix_new(
	const struct str *keys, uint32_t n, int flags, size_t value_size, void **ret_values)
{
	struct lb_radix *r = calloc(1, sizeof(*r));
	if (!r || n == 0)
		return r;
	r->flags = flags;
	r->value_words = (uint32_t)(value_size / sizeof(uint32_t));
	struct builder b = {.r = r,
		.items = malloc(n * sizeof(b.items[0])),
		.stack = malloc(n * sizeof(b.stack[0])),
		.values = ret_values};
	bool has_jumps = flags == 0 && n >= JUMPS_FROM;
	if (has_jumps)
		b.segments = malloc(n * sizeof(b.segments[0]));
	bool ok = b.items && b.stack && (b.segments || !has_jumps) && build(&b, keys, n);
	free(b.segments);
	free(b.items);
	free(b.stack);
	free(b.bytes);
	if (ok)
		return r;
	lb_radix_free(r);
	return NULL;
}

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
