// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/child_names.h"

#include <stdlib.h>

struct lb_child_names {
	uint32_t n;
	uint32_t next; // never used so far
	uint32_t numbers[]; // [n]
};

// A locality of the old priorities.
struct held {
	struct str locality; // borrowed
	uint32_t priority; // rank of who holds it
};

static int compare_held(const void *a, const void *b)
{
	const struct held *x = a, *y = b;
	int order = str_order(x->locality, y->locality);
	return order ? order : (x->priority > y->priority) - (x->priority < y->priority);
}

// Who of the old priorities hands its number on.
struct heir {
	const struct lb_child_names *before;
	const struct lb_child_names_priority *list; // [before->n]
	struct held *held; // owned; by locality, then by rank
	uint32_t n_held;
	bool *taken; // owned; [before->n]
	lb_child_exists *exists;
	void *ctx;
};

// The first that holds the locality, in order of rank; n_held = nobody does.
static uint32_t find_held(const struct heir *h, struct str locality)
{
	uint32_t low = 0, high = h->n_held;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (str_order(h->held[middle].locality, locality) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
struct candidate {
	uint32_t old; // rank; UINT32_MAX = none
	bool exists, same_rank;
	struct str locality; // that speaks for it
};

// A74-C05.
static bool is_better(const struct candidate *a, const struct candidate *b)
{
	if (b->old == UINT32_MAX)
		return true;
	if (a->exists != b->exists)
		return a->exists;
	if (a->same_rank != b->same_rank)
		return a->same_rank;
	return str_order(a->locality, b->locality) < 0;
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

// The rank of the old priority whose number this one takes; UINT32_MAX = none (A74-C04). A priority
// without localities stays the one without.
static uint32_t inherit(
	const struct heir *h, const struct lb_child_names_priority *p, uint32_t rank)
{
	struct candidate best = {.old = UINT32_MAX};
	for (uint32_t i = 0; i < p->n_localities; i++) {
		uint32_t at = find_held(h, p->localities[i]);
		for (; at < h->n_held && str_eq(h->held[at].locality, p->localities[i]); at++)
			consider(h, &best, h->held[at].priority, rank, p->localities[i]);
	}
	for (uint32_t i = 0; p->n_localities == 0 && i < h->before->n; i++)
		if (h->list[i].n_localities == 0)
			consider(h, &best, i, rank, STR(""));
	if (best.old != UINT32_MAX)
		h->taken[best.old] = true;
	return best.old;
}

// False = out of memory.
static bool heir_init(struct heir *h)
{
	uint32_t n = h->before->n;
	size_t n_held = 0;
	for (uint32_t i = 0; i < n; i++)
		n_held += h->list[i].n_localities;
	h->held = malloc((n_held + 1) * sizeof(h->held[0]));
	h->taken = calloc((size_t)n + 1, sizeof(bool));
	if (!h->held || !h->taken)
		return false;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < h->list[i].n_localities; j++)
			h->held[h->n_held++] = (struct held){h->list[i].localities[j], i};
	qsort(h->held, h->n_held, sizeof(h->held[0]), compare_held);
	return true;
}

struct lb_child_names *lb_child_names_new(const struct lb_child_names *before,
	const struct lb_child_names_priority *list_before,
	const struct lb_child_names_priority *list, uint32_t n, lb_child_exists *exists, void *ctx)
{
	static const struct lb_child_names nothing;
	struct heir h = {.before = before ? before : &nothing,
		.list = list_before,
		.exists = exists,
		.ctx = ctx};
	struct lb_child_names *names = malloc(sizeof(*names) + n * sizeof(names->numbers[0]));
	if (!names || !heir_init(&h)) {
		free(names);
		names = NULL;
		goto end;
	}
	*names = (struct lb_child_names){.n = n, .next = h.before->next};
	for (uint32_t i = 0; i < n; i++) {
		uint32_t old = inherit(&h, &list[i], i);
		names->numbers[i] = old == UINT32_MAX ? names->next++ : h.before->numbers[old];
	}
end:
	free(h.held);
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
