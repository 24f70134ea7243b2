// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet-sim/maglev.h"

#include "lb/index/hash.h"

#include <stdlib.h>
#include <string.h>

#define FREE UINT32_MAX

// A host's order of places: offset, offset + skip, offset + 2 skip, … modulo the size.
struct order {
	uint32_t at, skip;
};

static struct order order_of(uint32_t host)
{
	return (struct order){
		(uint32_t)(lb_xxh64_seeded(1, &host, sizeof(host)) % MAGLEV_SIZE),
		(uint32_t)(lb_xxh64_seeded(2, &host, sizeof(host)) % (MAGLEV_SIZE - 1) + 1),
	};
}

static uint32_t take_next_free(const uint32_t *table, struct order *o)
{
	for (;;) {
		uint32_t place = o->at;
		o->at = (o->at + o->skip) % MAGLEV_SIZE;
		if (table[place] == FREE)
			return place;
	}
}

bool maglev_fill(uint32_t table[MAGLEV_SIZE], const uint32_t *hosts, uint32_t n)
{
	struct order *orders = malloc(n * sizeof(*orders));
	if (!orders)
		return false;
	memset(table, 0xff, MAGLEV_SIZE * sizeof(*table));
	for (uint32_t i = 0; i < n; i++)
		orders[i] = order_of(hosts[i]);
	for (uint32_t n_filled = 0, i = 0; n_filled < MAGLEV_SIZE; n_filled++, i = (i + 1) % n)
		table[take_next_free(table, &orders[i])] = hosts[i];
	free(orders);
	return true;
}
