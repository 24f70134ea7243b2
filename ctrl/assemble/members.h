// SPDX-License-Identifier: Apache-2.0
// Numbers of the members of all policy trees, and of the places that their nodes keep in workers;
// and what all workers together have counted for a member (lb/pick/link.h). A number's counters
// only grow: a member's own counts begin where those of the one before it ended.
// Thread: ctrl.
#pragma once

#include <stdint.h>

struct lb_orca_table;
struct members;
struct twheel;
struct workers;

// Borrowed, outlive it. NULL = out of memory.
struct members *members_new(struct workers *, struct lb_orca_table *, struct twheel *);
void members_free(struct members *); // NULL is fine

// Never one of which a request is still in flight, or that was given back a moment ago (A50-E18):
// older snapshots still carry it. UINT32_MAX = none is left.
uint32_t members_take(struct members *, void *owner);
void members_give(struct members *, uint32_t member);
void *members_owner(const struct members *, uint32_t member); // NULL = nobody's

// Of nodes (lb_node_env.slot_take). UINT32_MAX = none is left.
uint32_t members_slot_take(struct members *);
void members_slot_give(struct members *, uint32_t slot);

// What ended since the last call for this member (A50-E05).
void members_harvest(struct members *, uint32_t member, uint64_t *ret_ok, uint64_t *ret_failed);
// When a request of a session was last sent to it (A75-O12); 0 = never.
uint64_t members_last_used(const struct members *, uint32_t member);

struct member_totals {
	// Since the member came. What is none of its backend's doing is neither ok nor failed.
	uint64_t issued, ok, failed;
	uint64_t active;
};
void members_totals(const struct members *, uint32_t member, struct member_totals *ret);
