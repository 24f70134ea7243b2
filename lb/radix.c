// SPDX-License-Identifier: Apache-2.0
// Built breadth first from the sorted keys: the children of a node are neighbours in one array, and
// so are their first bytes, which memchr() searches.
#include "lb/radix.h"

#include "lb/base/check.h"

#include <stdlib.h>

struct node {
	uint64_t label; // where its bytes start in keys
	uint32_t len; // of the label
	uint32_t value; // of the key that ends here
	uint32_t smallest; // value or that of any node above
	uint32_t children; // index of the first one
	uint32_t n_children; // <= 256
};

struct lb_radix {
	int flags;
	bool is_empty;
	struct node *nodes; // owned; the root first
	uint8_t *first; // owned; first[i] = first byte of the label of node i
	uint8_t *keys; // owned; normalised: folded, read forwards
};

// One sorted key while building.
struct item {
	const uint8_t *p;
	size_t len;
	uint32_t value;
};
// The items below a node, which share their first `depth` bytes.
struct range {
	uint32_t begin, end;
	size_t depth;
};
struct builder {
	struct lb_radix *r;
	struct item *items;
	struct range *ranges; // of node i
	uint32_t n_nodes;
};

static inline uint8_t text_byte(struct str s, size_t i, int flags)
{
	char c = s.p[flags & LB_RADIX_BACKWARDS ? s.len - 1 - i : i];
	return (uint8_t)(flags & LB_RADIX_FOLD ? str_fold(c) : c);
}

// In byte order, a key before those it is a prefix of, the smallest value of equals first.
static int item_order(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	size_t len = x->len < y->len ? x->len : y->len;
	int order = len ? memcmp(x->p, y->p, len) : 0;
	if (order)
		return order;
	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return x->value < y->value ? -1 : x->value > y->value;
}

static size_t common_len(const struct item *a, const struct item *b)
{
	size_t len = a->len < b->len ? a->len : b->len;
	size_t i = 0;
	while (i < len && a->p[i] == b->p[i])
		i++;
	return i;
}

static void add_child(struct builder *b, uint32_t begin, uint32_t end, size_t depth)
{
	uint32_t i = b->n_nodes++;
	b->ranges[i] = (struct range){begin, end, depth};
	b->r->first[i] = b->items[begin].p[depth];
}

// Cuts the label of node i, whose range is known, and gives its children their ranges.
static void settle(struct builder *b, uint32_t i, uint32_t smallest_above)
{
	struct range g = b->ranges[i];
	const struct item *items = b->items;
	struct node *node = &b->r->nodes[i];
	// Sorted: what the first and the last one share, all share. The root's label is empty, so
	// that every walk begins with a match.
	size_t end = i ? common_len(&items[g.begin], &items[g.end - 1]) : 0;
	*node = (struct node){
		.label = g.begin < g.end ? (uint64_t)(items[g.begin].p - b->r->keys) + g.depth : 0,
		.len = (uint32_t)(end - g.depth),
		.value = LB_RADIX_NONE,
		.smallest = smallest_above,
		.children = b->n_nodes};
	uint32_t at = g.begin;
	if (at < g.end && items[at].len == end) {
		node->value = items[at].value;
		if (node->value < node->smallest)
			node->smallest = node->value;
		while (at < g.end && items[at].len == end)
			at++;
	}
	while (at < g.end) {
		uint32_t begin = at;
		while (at < g.end && items[at].p[end] == items[begin].p[end])
			at++;
		add_child(b, begin, at, end);
	}
	node->n_children = b->n_nodes - node->children;
}

static void build(struct builder *b, uint32_t n)
{
	b->ranges[0] = (struct range){0, n, 0};
	b->r->first[0] = 0;
	b->n_nodes = 1;
	settle(b, 0, LB_RADIX_NONE);
	uint32_t parent = 0;
	for (uint32_t i = 1; i < b->n_nodes; i++) {
		const struct node *nodes = b->r->nodes;
		while (i >= nodes[parent].children + nodes[parent].n_children)
			parent++;
		settle(b, i, nodes[parent].smallest);
	}
}

static void normalise(struct builder *b, const struct lb_radix_entry *entries, uint32_t n)
{
	uint8_t *p = b->r->keys;
	for (uint32_t i = 0; i < n; i++) {
		struct str key = entries[i].key;
		DCHECK(entries[i].value < LB_RADIX_NONE);
		b->items[i] = (struct item){p, key.len, entries[i].value};
		for (size_t j = 0; j < key.len; j++)
			*p++ = text_byte(key, j, b->r->flags);
	}
	if (n)
		qsort(b->items, n, sizeof(b->items[0]), item_order);
}

struct lb_radix *lb_radix_new(const struct lb_radix_entry *entries, uint32_t n, int flags)
{
	// A compressed tree of n keys has at most n leaves and n - 1 forks, and the root.
	size_t n_nodes = 2 * (size_t)n + 1;
	size_t n_bytes = 1;
	for (uint32_t i = 0; i < n; i++)
		n_bytes += entries[i].key.len;
	struct lb_radix *r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->flags = flags;
	r->is_empty = n == 0;
	r->nodes = malloc(n_nodes * sizeof(r->nodes[0]));
	r->first = malloc(n_nodes);
	r->keys = malloc(n_bytes);
	struct builder b = {.r = r,
		.items = malloc(((size_t)n + 1) * sizeof(b.items[0])),
		.ranges = malloc(n_nodes * sizeof(b.ranges[0]))};
	bool have_memory = r->nodes && r->first && r->keys && b.items && b.ranges;
	if (have_memory) {
		normalise(&b, entries, n);
		build(&b, n);
	}
	free(b.items);
	free(b.ranges);
	if (have_memory)
		return r;
	lb_radix_free(r);
	return NULL;
}

void lb_radix_free(struct lb_radix *r)
{
	if (!r)
		return;
	free(r->nodes);
	free(r->first);
	free(r->keys);
	free(r);
}

static inline bool label_matches(
	const uint8_t *label, uint32_t len, struct str text, size_t at, int flags)
{
	if (text.len - at < len)
		return false;
	if (!flags)
		return len == 0 || memcmp(text.p + at, label, len) == 0;
	for (uint32_t i = 0; i < len; i++)
		if (text_byte(text, at + i, flags) != label[i])
			return false;
	return true;
}

// The child whose label begins with this byte. Most nodes have a few.
static inline const struct node *child_of(
	const struct lb_radix *r, const struct node *node, uint8_t byte)
{
	const uint8_t *first = r->first + node->children;
	uint32_t i = 0;
	if (node->n_children <= 4) {
		while (i < node->n_children && first[i] != byte)
			i++;
		return i < node->n_children ? r->nodes + node->children + i : NULL;
	}
	const uint8_t *found = memchr(first, byte, node->n_children);
	return found ? r->nodes + node->children + (found - first) : NULL;
}

// Inlined once for each way to read, so that the flags cost nothing per byte.
static inline __attribute__((always_inline)) struct lb_radix_hit walk(
	const struct lb_radix *r, struct str text, int flags)
{
	struct lb_radix_hit hit = {LB_RADIX_NONE, LB_RADIX_NONE, LB_RADIX_NONE};
	const struct node *node = r->nodes;
	size_t at = 0;
	while (node && label_matches(r->keys + node->label, node->len, text, at, flags)) {
		at += node->len;
		hit.smallest = node->smallest;
		if (node->value != LB_RADIX_NONE)
			hit.longest = node->value;
		if (at == text.len) {
			hit.whole = node->value;
			break;
		}
		node = child_of(r, node, text_byte(text, at, flags));
	}
	return hit;
}

struct lb_radix_hit lb_radix_find(const struct lb_radix *r, struct str text)
{
	if (r->is_empty)
		return (struct lb_radix_hit){LB_RADIX_NONE, LB_RADIX_NONE, LB_RADIX_NONE};
	switch (r->flags) {
	case 0:
		return walk(r, text, 0);
	case LB_RADIX_FOLD:
		return walk(r, text, LB_RADIX_FOLD);
	case LB_RADIX_BACKWARDS:
		return walk(r, text, LB_RADIX_BACKWARDS);
	default:
		return walk(r, text, LB_RADIX_FOLD | LB_RADIX_BACKWARDS);
	}
}
