// SPDX-License-Identifier: Apache-2.0
// Which requests of a cluster are dropped, by category, as EDS configures (gRFC A27; A27-I01 to
// A27-I04). Immutable; equal ones are shared.
// Thread: new/get/put on ctrl; the rest on workers.
#pragma once

#include "lb/base/rand.h"

#include <stdbool.h>
#include <stdint.h>

#define LB_DROP_NONE UINT32_MAX
#define LB_DROP_ALL 1000000u // per million

struct lb_drops;
struct lb_drop_category {
	const char *name; // borrowed for the call
	uint32_t per_million; // more than a million counts as one (A27-I02)
};

// Stored in the request; initially zero.
struct lb_drop_once {
	uint32_t drawn_for; // leaf + 1; 0 = not drawn yet
};

// Count 1. Returns NULL if out of memory.
struct lb_drops *lb_drops_new(const struct lb_drop_category *, uint32_t n);
struct lb_drops *lb_drops_get(struct lb_drops *); // NULL is fine
void lb_drops_put(struct lb_drops *); // NULL is fine
bool lb_drops_same(const struct lb_drops *, const struct lb_drop_category *, uint32_t n);
// Returns the category that drops every request (A27-I02), or LB_DROP_NONE. The argument may be
// NULL.
uint32_t lb_drops_total(const struct lb_drops *);
bool lb_drops_everything(const struct lb_drops *); // true if there is such a category
uint32_t lb_drops_count(const struct lb_drops *);
const char *lb_drops_name(const struct lb_drops *, uint32_t category);
// of the requests that earlier categories let pass
uint32_t lb_drops_per_million(const struct lb_drops *, uint32_t category);
// a request's chance to be dropped by this category
double lb_drops_chance(const struct lb_drops *, uint32_t category);
uint32_t lb_drops_draw_among(
	const struct lb_drops *, struct lb_drop_once *, uint32_t leaf, struct rand *);

// Returns the category that drops this request, or LB_DROP_NONE. Draws once per request and leaf; a
// request that is picked for again gets NONE (A27-I04). With d NULL nothing is drawn.
static inline uint32_t lb_drops_draw(
	const struct lb_drops *d, struct lb_drop_once *once, uint32_t leaf, struct rand *rand)
{
	return __builtin_expect(!d, 1) ? LB_DROP_NONE : lb_drops_draw_among(d, once, leaf, rand);
}
