// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/roster.h"

#include "lb/base/check.h"
#include "lb/member/member.h"
#include "lb/pick/leaf_endpoints.h"

#include <stdlib.h>

struct lb_roster *lb_roster_new(uint32_t room)
{
	struct lb_roster *r = malloc(sizeof(*r) + room * sizeof(r->members[0]));
	if (r)
		*r = (struct lb_roster){.n_refs = 1};
	return r;
}

void lb_roster_add(struct lb_roster *r, struct lb_member *m)
{
	r->members[r->n++] = m;
}

struct lb_roster *lb_roster_get(struct lb_roster *r)
{
	r->n_refs++;
	return r;
}

void lb_roster_put(struct lb_roster *r)
{
	if (!r)
		return;
	CHECK(r->n_refs > 0);
	if (--r->n_refs)
		return;
	for (uint32_t i = 0; i < r->n; i++)
		lb_member_put(r->members[i]);
	free(r);
}

struct lb_member *lb_roster_find(const struct lb_roster *r, const struct lb_leaf_endpoints *e,
	const struct ip_port *addresses, uint32_t n)
{
	uint32_t tried = UINT32_MAX;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = lb_leaf_endpoints_find(e, &addresses[i]);
		if (at != tried && at < r->n && lb_member_same_set(r->members[at], addresses, n))
			return r->members[at];
		tried = at;
	}
	return NULL;
}
