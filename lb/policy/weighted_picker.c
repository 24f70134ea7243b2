// SPDX-License-Identifier: Apache-2.0
#include "lb/policy/weighted_picker.h"

#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/pick/picker.h"

#include <stdlib.h>

// Of as many columns, all alike in weight: `below` 2^32ths of it are its own item's, and the rest
// another's (Vose's alias method). So a draw needs neither a search nor a branch.
struct column {
	uint32_t below;
	struct lb_picker *own; // counted; NULL = all of it is another's
	struct lb_picker *other; // somebody's own
	void *unused; // 32 bytes: an AND finds the column
};

_Static_assert((sizeof(struct column) & (sizeof(struct column) - 1)) == 0, "a mask finds it");

struct weighted_picker {
	struct lb_picker base;
	uint32_t mask; // of bytes to a column; as many columns as a power of two
	struct column columns[];
};

static uint32_t n_columns(const struct weighted_picker *p)
{
	return p->mask / sizeof(p->columns[0]) + 1;
}

// Drawn by any number, whose bits within a column don't count.
static const struct column *column_of(const struct weighted_picker *p, uint32_t x)
{
	return (const struct column *)((const char *)p->columns + (x & p->mask));
}

static const struct lb_cell *pick(const struct lb_picker *base, struct lb_pick_ctx *ctx)
{
	const struct weighted_picker *p = CONTAINER_OF(base, struct weighted_picker, base);
	uint32_t x = rand_u32(ctx->rand);
	const struct column *c = column_of(p, x);
	const struct lb_picker *drawn = x < c->below ? c->own : c->other;
	return drawn->pick(drawn, ctx);
}

static void picker_free(struct lb_picker *base)
{
	struct weighted_picker *p = CONTAINER_OF(base, struct weighted_picker, base);
	for (uint32_t i = 0; i < n_columns(p); i++)
		lb_picker_put(p->columns[i].own);
	free(p);
}

static void set_column(struct column *c, uint64_t share, uint64_t sum, struct lb_picker *other)
{
	c->below = (uint32_t)((share << 32) / sum);
	c->other = other;
}

// A share is a weight times how many there are, a column holds the sum of all weights: whole
// numbers. What a share leaves of its column one with more than a column fills up. `order` has room
// for n: those with less than a column at its beginning, the others at its end.
static void fill(struct weighted_picker *p, uint64_t *shares, uint64_t sum, uint32_t *order)
{
	uint32_t n = n_columns(p), n_low = 0, high = n;
	for (uint32_t i = 0; i < n; i++) {
		if (shares[i] < sum)
			order[n_low++] = i;
		else
			order[--high] = i;
	}
	while (n_low > 0 && high < n) {
		uint32_t low = order[--n_low], donor = order[high];
		set_column(&p->columns[low], shares[low], sum, p->columns[donor].own);
		shares[donor] -= sum - shares[low];
		if (shares[donor] >= sum)
			continue;
		high++;
		order[n_low++] = donor;
	}
}

// Where one has all the weight there is nothing to draw. NULL = several have some.
static struct lb_picker *only(const struct lb_weighted_picker_item *list, uint32_t n)
{
	struct lb_picker *found = NULL;
	for (uint32_t i = 0; i < n; i++) {
		if (list[i].weight && found)
			return NULL;
		if (list[i].weight)
			found = list[i].picker;
	}
	return found;
}

struct lb_picker *lb_weighted_picker_new(const struct lb_weighted_picker_item *list, uint32_t n)
{
	struct lb_picker *sole = only(list, n);
	if (sole)
		return lb_picker_get(sole);
	size_t n_all = 1;
	while (n_all < n)
		n_all *= 2;
	struct weighted_picker *p = calloc(1, sizeof(*p) + n_all * sizeof(p->columns[0]));
	uint64_t *shares = calloc(n_all, sizeof(*shares)), sum = 0;
	uint32_t *order = malloc(n_all * sizeof(*order));
	if (!p || !shares || !order) {
		free(p);
		p = NULL;
		goto end;
	}
	p->base = (struct lb_picker){1, pick, picker_free};
	p->mask = (uint32_t)((n_all - 1) * sizeof(p->columns[0]));
	for (uint32_t i = 0; i < n; i++) {
		if (list[i].weight == 0)
			continue;
		struct lb_picker *own = lb_picker_get(list[i].picker);
		sum += list[i].weight;
		shares[i] = list[i].weight * (uint64_t)n_all;
		p->columns[i] = (struct column){UINT32_MAX, own, own};
	}
	CHECK(sum > 0);
	fill(p, shares, sum, order);
end:
	free(shares);
	free(order);
	return p ? &p->base : NULL;
}
