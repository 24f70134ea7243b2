// SPDX-License-Identifier: Apache-2.0
#include "ctrl/chain_places.h"

#include "ctrl/conf/config.h"

#include <stdlib.h>

struct chain_places {
	uint32_t first, n, n_free;
	bool taken[];
};

struct chain_places *chain_places_new(const struct config *c)
{
	struct chain_places *p = calloc(1, sizeof(*p) + c->n_chain_places * sizeof(p->taken[0]));
	if (p) {
		p->first = c->n_frontends;
		p->n = p->n_free = c->n_chain_places;
	}
	return p;
}

void chain_places_free(struct chain_places *p)
{
	free(p);
}

uint32_t chain_places_n_free(const struct chain_places *p)
{
	return p->n_free;
}

uint32_t chain_places_take(struct chain_places *p)
{
	uint32_t i = 0;
	while (i < p->n && p->taken[i])
		i++;
	if (i == p->n)
		return NO_CHAIN_PLACE;
	p->taken[i] = true;
	p->n_free--;
	return p->first + i;
}

void chain_places_give(struct chain_places *p, uint32_t place)
{
	p->taken[place - p->first] = false;
	p->n_free++;
}
