// SPDX-License-Identifier: Apache-2.0
// The members of a leaf's endpoints, in the order of these: counted, so that an update that brings
// the same ones keeps the list, and affinity keeps that of the layout.
// Thread: ctrl.
#pragma once

#include <stdint.h>

struct lb_member;

struct lb_roster {
	uint32_t n_refs;
	uint32_t n;
	struct lb_member *members[]; // counted, and listed (lb_member_list)
};

struct lb_roster *lb_roster_new(uint32_t room); // empty, count 1. NULL = no memory
// There is room; takes over the reference.
void lb_roster_add(struct lb_roster *, struct lb_member *);
struct lb_roster *lb_roster_get(struct lb_roster *);
void lb_roster_put(struct lb_roster *); // NULL is fine
