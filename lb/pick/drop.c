// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/drop.h"

#include "lb/base/arena.h"
#include "lb/base/check.h"

#include <stdlib.h>

struct category {
	struct str name; // terminated
	uint32_t per_million;
};

struct lb_drops {
	uint32_t n_refs; // ctrl only
	uint32_t n;
	struct lb_arena arena;
	struct category *list;
};

static uint32_t capped(uint32_t per_million)
{
	return per_million < LB_DROP_ALL ? per_million : LB_DROP_ALL;
}

struct lb_drops *lb_drops_new(const struct lb_drop_category *list, uint32_t n)
{
	struct lb_drops *d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->n_refs = 1;
	if (n == 0)
		return d;
	d->list = lb_arena_alloc(&d->arena, n, sizeof(*d->list));
	for (; d->list && d->n < n; d->n++) {
		struct category *c = &d->list[d->n];
		c->per_million = capped(list[d->n].per_million);
		if (!lb_arena_copy(&d->arena, str_from(list[d->n].name), &c->name))
			break;
	}
	if (!d->list || d->n < n) {
		lb_drops_put(d);
		return NULL;
	}
	return d;
}

struct lb_drops *lb_drops_get(struct lb_drops *d)
{
	if (d)
		d->n_refs++;
	return d;
}

void lb_drops_put(struct lb_drops *d)
{
	if (!d)
		return;
	CHECK(d->n_refs > 0);
	if (--d->n_refs)
		return;
	lb_arena_fini(&d->arena);
	free(d);
}

bool lb_drops_same(const struct lb_drops *d, const struct lb_drop_category *list, uint32_t n)
{
	if (d->n != n)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (d->list[i].per_million != capped(list[i].per_million) ||
			!str_eq(d->list[i].name, str_from(list[i].name)))
			return false;
	return true;
}

uint32_t lb_drops_total(const struct lb_drops *d)
{
	for (uint32_t i = 0; d && i < d->n; i++)
		if (d->list[i].per_million == LB_DROP_ALL)
			return i;
	return LB_DROP_NONE;
}

bool lb_drops_everything(const struct lb_drops *d)
{
	return lb_drops_total(d) != LB_DROP_NONE;
}

uint32_t lb_drops_count(const struct lb_drops *d)
{
	return d->n;
}

const char *lb_drops_name(const struct lb_drops *d, uint32_t category)
{
	return d->list[category].name.p;
}

uint32_t lb_drops_per_million(const struct lb_drops *d, uint32_t category)
{
	return d->list[category].per_million;
}

double lb_drops_chance(const struct lb_drops *d, uint32_t category)
{
	double chance = (double)d->list[category].per_million / LB_DROP_ALL;
	for (uint32_t i = 0; i < category; i++)
		chance *= 1 - (double)d->list[i].per_million / LB_DROP_ALL;
	return chance;
}

uint32_t lb_drops_draw_among(
	const struct lb_drops *d, struct lb_drop_once *once, uint32_t leaf, struct rand *rand)
{
	if (once->drawn_for == leaf + 1)
		return LB_DROP_NONE;
	once->drawn_for = leaf + 1;
	for (uint32_t i = 0; i < d->n; i++)
		if (rand_below(rand, LB_DROP_ALL) < d->list[i].per_million)
			return i;
	return LB_DROP_NONE;
}
