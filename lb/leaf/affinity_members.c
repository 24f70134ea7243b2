// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/affinity_members.h"

#include "lb/leaf/affinity.h"
#include "lb/leaf/roster.h"
#include "lb/member/member.h"
#include "lb/pick/leaf_endpoints.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void lb_affinity_members_fini(struct lb_affinity_members *l)
{
	lb_roster_put(l->leaving_roster);
	lb_leaf_endpoints_put(l->leaving);
	lb_roster_put(l->roster);
	lb_leaf_endpoints_put(l->endpoints);
	free(l->flags);
	free(l->wanted_ns);
	free(l->by_id);
	*l = (struct lb_affinity_members){0};
}

int lb_affinity_members_init(struct lb_affinity_members *l, const struct lb_affinity_list *from)
{
	uint32_t n = from->roster->n, n_leaving = from->leaving ? from->leaving_roster->n : 0;
	*l = (struct lb_affinity_members){.n = n + n_leaving,
		.endpoints = lb_leaf_endpoints_get(from->endpoints),
		.roster = lb_roster_get(from->roster),
		.flags = calloc((size_t)n + n_leaving + 1, 1)};
	if (!l->flags)
		return -ENOMEM;
	memcpy(l->flags, from->uses, n);
	if (!from->leaving)
		return 0;
	l->leaving = lb_leaf_endpoints_get(from->leaving);
	l->leaving_roster = lb_roster_get(from->leaving_roster);
	return 0;
}

struct lb_member *lb_affinity_members_at(const struct lb_affinity_members *l, uint32_t at)
{
	uint32_t n = l->roster->n;
	return at < n ? l->roster->members[at] : l->leaving_roster->members[at - n];
}

// Its place; UINT32_MAX = not listed.
uint32_t lb_affinity_members_find(const struct lb_affinity_members *l, const struct lb_member *m)
{
	uint32_t at = lb_member_place(m);
	return at < l->n && lb_affinity_members_at(l, at) == m ? at : UINT32_MAX;
}

struct order { // of members by id
	uint32_t id, at;
};

static int compare(const void *x, const void *y)
{
	const struct order *a = x, *b = y;
	return (a->id > b->id) - (a->id < b->id);
}

static int put_in_order(struct lb_affinity_members *l)
{
	struct order *order = malloc(((size_t)l->n + 1) * sizeof(*order));
	l->by_id = malloc(((size_t)l->n + 1) * sizeof(*l->by_id));
	if (!order || !l->by_id) {
		free(order);
		free(l->by_id);
		l->by_id = NULL;
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < l->n; i++)
		order[i] = (struct order){lb_member_id(lb_affinity_members_at(l, i)), i};
	qsort(order, l->n, sizeof(*order), compare);
	for (uint32_t i = 0; i < l->n; i++)
		l->by_id[i] = order[i].at;
	free(order);
	return 0;
}

// UINT32_MAX = not listed, or out of memory.
uint32_t lb_affinity_members_find_id(struct lb_affinity_members *l, uint32_t member)
{
	if (!l->by_id && put_in_order(l))
		return UINT32_MAX;
	uint32_t low = 0, high = l->n;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		uint32_t id = lb_member_id(lb_affinity_members_at(l, l->by_id[middle]));
		if (id == member)
			return l->by_id[middle];
		if (id < member)
			low = middle + 1;
		else
			high = middle;
	}
	return UINT32_MAX;
}

void lb_affinity_members_set_owned(struct lb_affinity_members *l, uint32_t at, bool is_owned)
{
	l->n_owned -= l->flags[at] / LB_AFFINITY_OWNED & 1;
	l->flags[at] =
		(uint8_t)((l->flags[at] & ~LB_AFFINITY_OWNED) | is_owned * LB_AFFINITY_OWNED);
	l->n_owned += is_owned;
}

void lb_affinity_members_set_places(const struct lb_affinity_members *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		lb_member_set_place(lb_affinity_members_at(l, i), i);
}
