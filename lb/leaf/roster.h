// SPDX-License-Identifier: Apache-2.0
// The members of a leaf's endpoints, in their order: counted, so that an update with the same
// members keeps the list, and affinity shares the layout's.
// Thread: ctrl.
#pragma once

#include <stdint.h>

struct ip_port;
struct lb_leaf_endpoints;
struct lb_member;

struct lb_roster {
	uint32_t n_refs;
	uint32_t n;
	struct lb_member *members[]; // counted
};

struct lb_roster *lb_roster_new(uint32_t room); // empty, count 1. NULL = out of memory
// Appends within the room; takes over the reference.
void lb_roster_add(struct lb_roster *, struct lb_member *);
struct lb_roster *lb_roster_get(struct lb_roster *);
void lb_roster_put(struct lb_roster *); // NULL is fine
// The member with this set of addresses, in any order; borrowed. NULL = none. The endpoints are
// those that the roster was made for.
struct lb_member *lb_roster_find(const struct lb_roster *, const struct lb_leaf_endpoints *,
	const struct ip_port *addresses, uint32_t n);
