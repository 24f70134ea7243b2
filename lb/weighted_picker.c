// SPDX-License-Identifier: Apache-2.0
#include "lb/weighted_picker.h"

#include "lb/base/check.h"
#include "lb/picker.h"

#include <stdlib.h>

struct item {
	uint64_t end; // sum of weights up to and with this one
	struct lb_picker *picker; // counted
};

struct weighted_picker {
	struct lb_picker base;
	uint32_t n;
	struct item items[];
};

static const struct item *draw(const struct weighted_picker *p, struct rand *rand)
{
	uint64_t x = rand_below(rand, p->items[p->n - 1].end);
	uint32_t low = 0, high = p->n - 1;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (x < p->items[middle].end)
			high = middle;
		else
			low = middle + 1;
	}
	return &p->items[low];
}

static struct lb_pick pick(const struct lb_picker *base, struct lb_pick_ctx *ctx)
{
	const struct item *item = draw((const struct weighted_picker *)base, ctx->rand);
	return item->picker->pick(item->picker, ctx);
}

static void picker_free(struct lb_picker *base)
{
	struct weighted_picker *p = (struct weighted_picker *)base;
	for (uint32_t i = 0; i < p->n; i++)
		lb_picker_put(p->items[i].picker);
	free(p);
}

struct lb_picker *lb_weighted_picker_new(const struct lb_weighted_picker_item *list, uint32_t n)
{
	struct weighted_picker *p = malloc(sizeof(*p) + n * sizeof(p->items[0]));
	if (!p)
		return NULL;
	*p = (struct weighted_picker){.base = {1, pick, picker_free}};
	uint64_t end = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (list[i].weight == 0)
			continue;
		end += list[i].weight;
		p->items[p->n++] = (struct item){end, lb_picker_get(list[i].picker)};
	}
	CHECK(p->n > 0);
	return &p->base;
}
