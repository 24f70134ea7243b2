// SPDX-License-Identifier: Apache-2.0
// Sorts the keys and makes a record of each range of them that differs in one byte, from the root
// down.
#include "lb/index/hash.h"
#include "lb/index/radix_inside.h"
#include "lb/index/strsort.h"

#include <stdlib.h>

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
