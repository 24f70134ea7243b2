// SPDX-License-Identifier: Apache-2.0
#include "lb/weighted_picker.h"

#include "lb/base/check.h"
#include "lb/picker.h"

#include <stdlib.h>

// Of as many columns, all alike in weight: `below` 2^64ths of it are its own item's, and the rest
// another's (Vose's alias method). So a draw needs neither a search nor a branch.
struct column {
	uint64_t below;
	struct lb_picker *own; // counted
	struct lb_picker *other; // somebody's own
};

struct weighted_picker {
	struct lb_picker base;
	uint32_t n;
	struct column columns[];
};

static const struct lb_cell *pick(const struct lb_picker *base, struct lb_pick_ctx *ctx)
{
	const struct weighted_picker *p = (const struct weighted_picker *)base;
	unsigned __int128 x = (unsigned __int128)rand_u64(ctx->rand) * p->n;
	const struct column *c = &p->columns[x >> 64];
	const struct lb_picker *drawn = (uint64_t)x < c->below ? c->own : c->other;
	return drawn->pick(drawn, ctx);
}

static void picker_free(struct lb_picker *base)
{
	struct weighted_picker *p = (struct weighted_picker *)base;
	for (uint32_t i = 0; i < p->n; i++)
		lb_picker_put(p->columns[i].own);
	free(p);
}

static void set_column(struct column *c, uint64_t share, uint64_t sum, struct lb_picker *other)
{
	c->below = (uint64_t)(((unsigned __int128)share << 64) / sum);
	c->other = other;
}

// A share is a weight times how many there are, a column holds the sum of all weights: whole
// numbers. What a share leaves of its column one with more than a column fills up. `order` has room
// for n: those with less than a column at its beginning, the others at its end.
static void fill(struct weighted_picker *p, uint64_t *shares, uint64_t sum, uint32_t *order)
{
	uint32_t n_low = 0, high = p->n;
	for (uint32_t i = 0; i < p->n; i++) {
		if (shares[i] < sum)
			order[n_low++] = i;
		else
			order[--high] = i;
	}
	while (n_low > 0 && high < p->n) {
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
	struct weighted_picker *p = malloc(sizeof(*p) + n * sizeof(p->columns[0]));
	uint64_t *shares = malloc(((size_t)n + 1) * sizeof(*shares)), sum = 0;
	uint32_t *order = malloc(((size_t)n + 1) * sizeof(*order));
	if (!p || !shares || !order) {
		free(p);
		p = NULL;
		goto end;
	}
	*p = (struct weighted_picker){.base = {1, pick, picker_free}};
	for (uint32_t i = 0; i < n; i++) {
		if (list[i].weight == 0)
			continue;
		struct lb_picker *own = lb_picker_get(list[i].picker);
		sum += list[i].weight;
		shares[p->n] = list[i].weight;
		p->columns[p->n++] = (struct column){UINT64_MAX, own, own};
	}
	CHECK(p->n > 0);
	for (uint32_t i = 0; i < p->n; i++)
		shares[i] *= p->n;
	fill(p, shares, sum, order);
end:
	free(shares);
	free(order);
	return p ? &p->base : NULL;
}
