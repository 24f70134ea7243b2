// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/leaf_leaving.h"

#include "lb/leaf/leaf_layout.h"
#include "lb/leaf/roster.h"
#include "lb/member/member.h"
#include "lb/pick/leaf_endpoints.h"

#include <errno.h>
#include <stdlib.h>

// Most are where they were. `newest` is NULL where it is known already that it lacks them.
static bool is_leaving(const struct lb_member *m, uint32_t at, const struct lb_leaf_layout *newest)
{
	const struct lb_roster *r = newest ? newest->roster : NULL;
	if (r && at < r->n && r->members[at] == m)
		return false;
	if (!lb_member_is_watched(m))
		return false;
	return !r || lb_roster_find(r, newest->endpoints, lb_member_address(m, 0),
			     lb_member_n_addresses(m)) != m;
}

// Returns how many of them there are; both lists may be NULL to count.
static uint32_t list(const struct lb_leaf_leaving *from, const struct lb_leaf_layout *newest,
	struct lb_leaf_endpoint *endpoints, struct lb_roster *roster)
{
	uint32_t n = 0;
	for (uint32_t i = 0; from->roster && i < from->roster->n; i++) {
		struct lb_member *m = from->roster->members[i];
		if (!is_leaving(m, i, newest))
			continue;
		if (endpoints) {
			endpoints[n] = lb_leaf_endpoints_at(from->endpoints, i);
			endpoints[n].health = LB_LEAF_UNKNOWN; // all in one order
			lb_roster_add(roster, lb_member_get(m));
		}
		n++;
	}
	return n;
}

// Of two lists; where they share an address, the first one's is found.
static int init(struct lb_leaf_leaving *l, const struct lb_leaf_leaving *first,
	const struct lb_leaf_leaving *second, const struct lb_leaf_layout *newest)
{
	uint32_t n_first = list(first, newest, NULL, NULL);
	uint32_t n = n_first + list(second, newest, NULL, NULL);
	*l = (struct lb_leaf_leaving){0};
	if (n == 0)
		return 0;
	if (n_first == 0 && n == second->roster->n) {
		*l = (struct lb_leaf_leaving){
			lb_leaf_endpoints_get(second->endpoints), lb_roster_get(second->roster)};
		return 0;
	}
	struct lb_leaf_endpoint *endpoints = malloc(n * sizeof(*endpoints));
	l->roster = lb_roster_new(n);
	if (endpoints && l->roster) {
		const struct ip_port *shared;
		list(first, newest, endpoints, l->roster);
		list(second, newest, endpoints + n_first, l->roster);
		const struct lb_leaf_locality all = {STR(""), 1, endpoints, n};
		const struct lb_leaf_priority only = {&all, 1};
		l->endpoints = lb_leaf_endpoints_new(&only, 1, &shared);
	}
	free(endpoints);
	if (l->endpoints)
		return 0;
	lb_leaf_leaving_fini(l);
	return -ENOMEM;
}

int lb_leaf_leaving_init(struct lb_leaf_leaving *l, const struct lb_leaf_leaving *earlier,
	const struct lb_leaf_layout *before, const struct lb_leaf_layout *newest)
{
	struct lb_leaf_leaving replaced = {0};
	if (before && before->roster != newest->roster)
		replaced = (struct lb_leaf_leaving){before->endpoints, before->roster};
	return init(l, &replaced, earlier, newest);
}

void lb_leaf_leaving_fini(struct lb_leaf_leaving *l)
{
	lb_roster_put(l->roster);
	lb_leaf_endpoints_put(l->endpoints);
	*l = (struct lb_leaf_leaving){0};
}

bool lb_leaf_leaving_prune(struct lb_leaf_leaving *l)
{
	struct lb_leaf_leaving left;
	const struct lb_leaf_leaving nobody = {0};
	if (!l->roster || init(&left, &nobody, l, NULL))
		return false;
	bool is_other = left.roster != l->roster;
	lb_leaf_leaving_fini(l);
	*l = left;
	return is_other;
}
