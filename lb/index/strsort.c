// SPDX-License-Identifier: Apache-2.0
#include "lb/index/strsort.h"

#include <stdlib.h>
#include <string.h>

#define FEW 16 // so many are sorted by insertion

// Items that share their first `depth` bytes, to be sorted.
struct range {
	uint32_t begin, end;
	size_t depth;
	bool loaded; // chunks are those at depth
};

// Ranges do not overlap and have at least two items: half as many as items suffice.
struct stack {
	struct range *list; // owned
	uint32_t n;
};

int lb_strsort_order(const struct lb_strsort_item *a, const struct lb_strsort_item *b, size_t from)
{
	size_t len = a->len < b->len ? a->len : b->len;
	int order = len > from ? memcmp(a->p + from, b->p + from, len - from) : 0;
	if (order)
		return order;
	return a->len < b->len ? -1 : a->len > b->len;
}

// Eight bytes as a number in whose order they are; zeros behind the end.
static uint64_t load(const struct lb_strsort_item *item, size_t depth)
{
	uint8_t bytes[8] = {0};
	uint64_t x;
	size_t left = item->len > depth ? item->len - depth : 0;
	if (left >= 8)
		memcpy(&x, item->p + depth, 8);
	else {
		if (left)
			memcpy(bytes, item->p + depth, left);
		memcpy(&x, bytes, 8);
	}
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? __builtin_bswap64(x) : x;
}

static void swap(struct lb_strsort_item *a, struct lb_strsort_item *b)
{
	struct lb_strsort_item t = *a;
	*a = *b;
	*b = t;
}

static void insert_all(struct lb_strsort_item *items, struct range g)
{
	for (uint32_t i = g.begin + 1; i < g.end; i++) {
		struct lb_strsort_item x = items[i];
		uint32_t k = i;
		for (; k > g.begin && lb_strsort_order(&x, &items[k - 1], g.depth) < 0; k--)
			items[k] = items[k - 1];
		items[k] = x;
	}
}

static void push(struct stack *s, struct range g)
{
	if (g.end - g.begin > 1)
		s->list[s->n++] = g;
}

static uint64_t median(uint64_t a, uint64_t b, uint64_t c)
{
	if (a > b) {
		uint64_t t = a;
		a = b;
		b = t;
	}
	return c < a ? a : c > b ? b : c;
}

static int by_len(const void *a, const void *b)
{
	size_t x = ((const struct lb_strsort_item *)a)->len;
	size_t y = ((const struct lb_strsort_item *)b)->len;
	return x < y ? -1 : x > y;
}

// All have the same chunk: those that end in it differ in length at most, and come first, since
// zeros stand for what they don't have.
static void split_equal(struct stack *s, struct lb_strsort_item *items, struct range g)
{
	uint32_t ended = g.begin;
	for (uint32_t i = g.begin; i < g.end; i++)
		if (items[i].len <= g.depth + 8)
			swap(&items[i], &items[ended++]);
	if (ended - g.begin > 1)
		qsort(items + g.begin, ended - g.begin, sizeof(*items), by_len);
	push(s, (struct range){ended, g.end, g.depth + 8, false});
}

static void split(struct stack *s, struct lb_strsort_item *items, struct range g)
{
	if (!g.loaded)
		for (uint32_t i = g.begin; i < g.end; i++)
			items[i].chunk = load(&items[i], g.depth);
	uint64_t pivot = median(items[g.begin].chunk, items[g.begin + (g.end - g.begin) / 2].chunk,
		items[g.end - 1].chunk);
	uint32_t low = g.begin, high = g.end,
		 i = g.begin; // [low, i) is equal, from high on greater
	while (i < high) {
		if (items[i].chunk < pivot)
			swap(&items[i++], &items[low++]);
		else if (items[i].chunk > pivot)
			swap(&items[i], &items[--high]);
		else
			i++;
	}
	push(s, (struct range){g.begin, low, g.depth, true});
	push(s, (struct range){high, g.end, g.depth, true});
	split_equal(s, items, (struct range){low, high, g.depth, true});
}

bool lb_strsort(struct lb_strsort_item *items, uint32_t n)
{
	struct stack s = {.list = malloc(((size_t)n / 2 + 1) * sizeof(s.list[0]))};
	if (!s.list)
		return false;
	push(&s, (struct range){0, n, 0, false});
	while (s.n) {
		struct range g = s.list[--s.n];
		if (g.end - g.begin <= FEW)
			insert_all(items, g);
		else
			split(&s, items, g);
	}
	free(s.list);
	return true;
}
