// SPDX-License-Identifier: Apache-2.0
// A walk looks at the one byte by which a node's children differ and skips what they share; the key
// where it ends is then compared as a whole (Morrison's PATRICIA). Every key that the text starts
// with is on that walk, so it is that key or one of the shorter ones that it starts with. Nodes are
// records of one array of words; a key below which no other goes on has no node of its own.
#include "lb/radix.h"

#include "lb/base/check.h"

#include <stdlib.h>

// A record: this head, the byte of each child, filled up to a word, and a link to each child.
struct node {
	uint32_t key; // the longest that ends here or above
	uint32_t depth; // of the byte that tells the children apart
	uint32_t n_children; // <= 256
};
#define HEAD_WORDS (sizeof(struct node) / sizeof(uint32_t))
#define SPARE_WORDS 2 // behind the last record: bytes are read eight at a time
#define LEAF 0x80000000u // in a link: the rest is a key, not the word where a record begins

struct key {
	uint32_t at, len; // in bytes
	uint32_t up;
};

struct lb_radix {
	int flags;
	uint32_t n_keys, root; // a link
	size_t n_words, n_bytes;
	uint32_t *words; // owned, as all below
	struct key *keys;
	uint8_t *bytes; // the keys, as they are read
};

// One key while building.
struct item {
	const uint8_t *p;
	size_t len;
	uint32_t index; // in the caller's keys
};
// What goes on below a link; all of it shares its first `depth` bytes.
struct range {
	uint32_t begin, end;
	size_t depth;
	size_t link; // word, or ROOT
	uint32_t up;
};
#define ROOT SIZE_MAX
struct builder {
	struct lb_radix *r;
	size_t room; // of words
	struct item *items;
	struct range *stack; // at most one range an item
	uint32_t n_stack;
	uint32_t *numbers, *up; // the caller's
};

static inline uint8_t text_byte(struct str s, size_t i, int flags)
{
	char c = s.p[flags & LB_RADIX_BACKWARDS ? s.len - 1 - i : i];
	return (uint8_t)(flags & LB_RADIX_FOLD ? str_fold(c) : c);
}

// In byte order, a key before those that start with it.
static int item_order(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	size_t len = x->len < y->len ? x->len : y->len;
	int order = len ? memcmp(x->p, y->p, len) : 0;
	if (order)
		return order;
	return x->len < y->len ? -1 : x->len > y->len;
}

static size_t common_len(const struct item *a, const struct item *b, size_t from)
{
	size_t len = a->len < b->len ? a->len : b->len;
	while (from < len && a->p[from] == b->p[from])
		from++;
	return from;
}

// A record at the end of the array. NULL = no memory.
static struct node *new_node(struct builder *b, uint32_t n_children)
{
	struct lb_radix *r = b->r;
	size_t n_words = HEAD_WORDS + (n_children + 3) / 4 + n_children;
	if (r->n_words + n_words + SPARE_WORDS > b->room) {
		size_t room = 2 * b->room + n_words + SPARE_WORDS;
		uint32_t *words = realloc(r->words, room * sizeof(*words));
		if (!words)
			return NULL;
		r->words = words;
		b->room = room;
	}
	uint32_t *words = r->words + r->n_words;
	memset(words, 0, n_words * sizeof(*words));
	r->n_words += n_words;
	return (struct node *)(void *)words;
}

// The first item from begin on that differs from it in byte `at`.
static uint32_t end_of_child(const struct item *items, uint32_t begin, uint32_t end, size_t at)
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

static uint32_t new_key(struct builder *b, const struct item *item, uint32_t up)
{
	struct lb_radix *r = b->r;
	r->keys[r->n_keys] = (struct key){(uint32_t)(item->p - r->bytes), (uint32_t)item->len, up};
	b->up[r->n_keys] = up;
	return r->n_keys++;
}

static void set_link(struct builder *b, size_t link, uint32_t to)
{
	if (link == ROOT)
		b->r->root = to;
	else
		b->r->words[link] = to;
}

// Writes what a link leads to and puts what is below on the stack. False = no memory.
static bool add_range(struct builder *b, struct range g)
{
	const struct item *items = b->items;
	// Sorted: what the first and the last one share, all share.
	size_t depth = common_len(&items[g.begin], &items[g.end - 1], g.depth);
	uint32_t key = g.up, below = g.begin; // the first item that goes on
	if (items[below].len == depth) {
		key = new_key(b, &items[below], g.up);
		while (below < g.end && items[below].len == depth)
			b->numbers[items[below++].index] = key;
	}
	if (below == g.end) {
		set_link(b, g.link, LEAF | key);
		return true;
	}
	uint32_t n = 0;
	for (uint32_t i = below; i < g.end; i = end_of_child(items, i, g.end, depth))
		n++;
	size_t at = b->r->n_words;
	struct node *node = new_node(b, n);
	if (!node || at >= LEAF)
		return false;
	*node = (struct node){key, (uint32_t)depth, n};
	set_link(b, g.link, (uint32_t)at);
	uint8_t *bytes = (uint8_t *)(node + 1);
	size_t link = at + HEAD_WORDS + (n + 3) / 4;
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

// Copies the keys as they are read, and sorts them.
static void collect(struct builder *b, const struct str *keys, uint32_t n)
{
	uint8_t *to = b->r->bytes;
	for (uint32_t i = 0; i < n; i++) {
		b->items[i] = (struct item){to, keys[i].len, i};
		for (size_t j = 0; j < keys[i].len; j++)
			*to++ = text_byte(keys[i], j, b->r->flags);
	}
	qsort(b->items, n, sizeof(b->items[0]), item_order);
}

static bool build(struct builder *b, const struct str *keys, uint32_t n)
{
	struct lb_radix *r = b->r;
	collect(b, keys, n);
	b->stack[0] = (struct range){0, n, 0, ROOT, LB_RADIX_NONE};
	b->n_stack = 1;
	while (b->n_stack)
		if (!add_range(b, b->stack[--b->n_stack]))
			return false;
	uint32_t *words = realloc(r->words, (r->n_words + SPARE_WORDS) * sizeof(*words));
	if (!words)
		return false;
	memset(words + r->n_words, 0, SPARE_WORDS * sizeof(*words));
	r->words = words;
	r->n_words += SPARE_WORDS;
	struct key *shrunk = realloc(r->keys, r->n_keys * sizeof(*shrunk));
	if (!shrunk)
		return false;
	r->keys = shrunk;
	return true;
}

struct lb_radix *lb_radix_new(
	const struct str *keys, uint32_t n, int flags, uint32_t *ret_numbers, uint32_t *ret_up)
{
	struct lb_radix *r = calloc(1, sizeof(*r));
	if (!r || n == 0)
		return r;
	r->flags = flags;
	for (uint32_t i = 0; i < n; i++)
		r->n_bytes += keys[i].len;
	r->bytes = malloc(r->n_bytes + 1);
	r->keys = malloc(n * sizeof(r->keys[0]));
	struct builder b = {.r = r,
		.items = malloc(n * sizeof(b.items[0])),
		.stack = malloc(n * sizeof(b.stack[0])),
		.numbers = ret_numbers,
		.up = ret_up};
	bool ok = r->n_bytes < UINT32_MAX && n < LEAF && r->bytes && r->keys && b.items && b.stack;
	ok = ok && build(&b, keys, n);
	free(b.items);
	free(b.stack);
	if (ok)
		return r;
	lb_radix_free(r);
	return NULL;
}

void lb_radix_free(struct lb_radix *r)
{
	if (!r)
		return;
	free(r->words);
	free(r->keys);
	free(r->bytes);
	free(r);
}

uint32_t lb_radix_count(const struct lb_radix *r)
{
	return r->n_keys;
}

size_t lb_radix_size(const struct lb_radix *r)
{
	return sizeof(*r) + r->n_words * sizeof(r->words[0]) + r->n_keys * sizeof(r->keys[0]) +
	       r->n_bytes + 1;
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
	if (n > 8) {
		const uint8_t *found = memchr(bytes, byte, n);
		return found ? (size_t)(found - bytes) : n;
	}
	const uint64_t ones = 0x0101010101010101;
	uint64_t x = load8(bytes) ^ ones * byte; // may read beyond, into links or spare words
	uint64_t zeros = (x - ones) & ~x & (ones << 7); // the lowest one is exact
	return zeros ? (size_t)__builtin_ctzll(zeros) / 8 : n;
}

// The key where the walk ends.
static inline __attribute__((always_inline)) uint32_t walk(
	const struct lb_radix *r, struct str text, int flags)
{
	uint32_t link = r->root;
	while (!(link & LEAF)) {
		const uint32_t *words = r->words + link;
		const struct node *node = (const struct node *)(const void *)words;
		size_t depth = node->depth, n = node->n_children;
		if (depth >= text.len)
			return node->key;
		size_t i =
			child_index((const uint8_t *)(node + 1), n, text_byte(text, depth, flags));
		if (i >= n)
			return node->key;
		link = words[HEAD_WORDS + (n + 3) / 4 + i];
	}
	return link & ~LEAF;
}

// How many bytes a key and the text have in common at their starts.
static inline __attribute__((always_inline)) size_t common(
	const uint8_t *key, size_t key_len, struct str text, int flags)
{
	size_t len = key_len < text.len ? key_len : text.len, i = 0;
	if (!flags)
		while (i + 8 <= len && load8(key + i) == load8(text.p + i))
			i += 8;
	while (i < len && key[i] == text_byte(text, i, flags))
		i++;
	return i;
}

static inline __attribute__((always_inline)) struct lb_radix_hit find(
	const struct lb_radix *r, struct str text, int flags)
{
	uint32_t k = walk(r, text, flags);
	if (k == LB_RADIX_NONE)
		return (struct lb_radix_hit){LB_RADIX_NONE, LB_RADIX_NONE};
	const struct key *key = &r->keys[k];
	size_t len = common(r->bytes + key->at, key->len, text, flags);
	while (key->len > len) {
		k = key->up;
		if (k == LB_RADIX_NONE)
			return (struct lb_radix_hit){LB_RADIX_NONE, LB_RADIX_NONE};
		key = &r->keys[k];
	}
	return (struct lb_radix_hit){k, key->len == text.len ? k : LB_RADIX_NONE};
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
		return (struct lb_radix_hit){LB_RADIX_NONE, LB_RADIX_NONE};
	return r->flags ? find_otherwise(r, text) : find(r, text, 0);
}
