// SPDX-License-Identifier: Apache-2.0
#include "lb/roster.h"

#include "lb/base/check.h"
#include "lb/member.h"

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
	lb_member_list(m);
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
	for (uint32_t i = 0; i < r->n; i++) {
		lb_member_unlist(r->members[i]);
		lb_member_put(r->members[i]);
	}
	free(r);
}
