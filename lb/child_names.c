// SPDX-License-Identifier: Apache-2.0
#include "lb/child_names.h"

#include <stdlib.h>

struct held {
	struct str locality; // borrowed
	uint32_t priority; // rank of who holds it
};

struct lb_child_names {
	uint32_t n, n_held;
	uint32_t next; // never used so far
	uint32_t *numbers; // [n], behind the localities
	uint32_t *n_localities; // [n], behind these
	struct held held[]; // [n_held], by locality, then by rank
};

static int compare_text(struct str a, struct str b)
{
	size_t len = a.len < b.len ? a.len : b.len;
	int order = len ? memcmp(a.p, b.p, len) : 0;
	return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_held(const void *a, const void *b)
{
	const struct held *x = a, *y = b;
	int order = compare_text(x->locality, y->locality);
	return order ? order : (x->priority > y->priority) - (x->priority < y->priority);
}

// The first that holds the locality, in order of rank; n_held = nobody does.
static uint32_t find_held(const struct lb_child_names *names, struct str locality)
{
	uint32_t low = 0, high = names->n_held;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (compare_text(names->held[middle].locality, locality) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

// Who of the old priorities hands its number on.
struct heir {
	const struct lb_child_names *before;
	bool *taken; // [before->n]
	lb_child_exists *exists;
	void *ctx;
};
struct candidate {
	uint32_t old; // rank; UINT32_MAX = none
	bool exists, same_rank;
	struct str locality; // that speaks for it
};

// C05.
static bool is_better(const struct candidate *a, const struct candidate *b)
{
	if (b->old == UINT32_MAX)
		return true;
	if (a->exists != b->exists)
		return a->exists;
	if (a->same_rank != b->same_rank)
		return a->same_rank;
	return compare_text(a->locality, b->locality) < 0;
}

static void consider(const struct heir *h, struct candidate *best, uint32_t old, uint32_t rank,
	struct str locality)
{
	if (h->taken[old])
		return;
	struct candidate c = {
		old, h->exists(h->ctx, h->before->numbers[old]), old == rank, locality};
	if (is_better(&c, best))
		*best = c;
}

// The rank of the old priority whose number this one takes; UINT32_MAX = none (C04). A priority
// without localities stays the one without.
static uint32_t inherit(
	const struct heir *h, const struct lb_child_names_priority *p, uint32_t rank)
{
	struct candidate best = {.old = UINT32_MAX};
	const struct lb_child_names *before = h->before;
	for (uint32_t i = 0; i < p->n_localities; i++) {
		uint32_t at = find_held(before, p->localities[i]);
		for (; at < before->n_held && str_eq(before->held[at].locality, p->localities[i]);
			at++)
			consider(h, &best, before->held[at].priority, rank, p->localities[i]);
	}
	for (uint32_t i = 0; p->n_localities == 0 && i < before->n; i++)
		if (before->n_localities[i] == 0)
			consider(h, &best, i, rank, STR(""));
	if (best.old != UINT32_MAX)
		h->taken[best.old] = true;
	return best.old;
}

static void fill(struct lb_child_names *names, const struct lb_child_names_priority *list)
{
	uint32_t at = 0;
	for (uint32_t i = 0; i < names->n; i++) {
		names->n_localities[i] = list[i].n_localities;
		for (uint32_t j = 0; j < list[i].n_localities; j++)
			names->held[at++] = (struct held){list[i].localities[j], i};
	}
	qsort(names->held, names->n_held, sizeof(names->held[0]), compare_held);
}

// Without numbers.
static struct lb_child_names *names_new(const struct lb_child_names_priority *list, uint32_t n)
{
	size_t n_held = 0;
	for (uint32_t i = 0; i < n; i++)
		n_held += list[i].n_localities;
	struct lb_child_names *names = calloc(
		1, sizeof(*names) + n_held * sizeof(names->held[0]) + 2 * n * sizeof(uint32_t));
	if (!names)
		return NULL;
	names->n = n;
	names->n_held = (uint32_t)n_held;
	names->numbers = (uint32_t *)(names->held + n_held);
	names->n_localities = names->numbers + n;
	fill(names, list);
	return names;
}

struct lb_child_names *lb_child_names_new(const struct lb_child_names *before,
	const struct lb_child_names_priority *list, uint32_t n, lb_child_exists *exists, void *ctx)
{
	static const struct lb_child_names nothing;
	struct heir h = {.before = before ? before : &nothing, .exists = exists, .ctx = ctx};
	struct lb_child_names *names = names_new(list, n);
	h.taken = calloc((size_t)h.before->n + 1, sizeof(bool));
	if (!h.taken || !names) {
		free(h.taken);
		free(names);
		return NULL;
	}
	names->next = h.before->next;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t old = inherit(&h, &list[i], i);
		names->numbers[i] = old == UINT32_MAX ? names->next++ : h.before->numbers[old];
	}
	free(h.taken);
	return names;
}

void lb_child_names_free(struct lb_child_names *names)
{
	free(names);
}

uint32_t lb_child_names_at(const struct lb_child_names *names, uint32_t priority)
{
	return names->numbers[priority];
}
