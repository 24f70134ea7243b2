// SPDX-License-Identifier: Apache-2.0
// Ids of the members of all policy trees and of their nodes' positions in workers, and the sum of
// all workers' counters for a member (lb/pick/link.h). Counters only grow: a member's counts start
// from the values left by the id's previous user.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct lb_orca_table;
struct members;
struct twheel;
struct workers;

// Arguments are borrowed and outlive it. Returns NULL if out of memory.
struct members *members_new(struct workers *, struct lb_orca_table *, struct twheel *);
void members_free(struct members *); // NULL is fine

// Never returns an id with requests in flight, or returned recently (A50-E18): older snapshots
// still carry it. UINT32_MAX = none is left.
uint32_t members_take(struct members *, void *owner);
void members_give(struct members *, uint32_t member);
void *members_owner(const struct members *, uint32_t member); // NULL = none

// For nodes (lb_node_env.slot_take). UINT32_MAX = none is left.
uint32_t members_slot_take(struct members *);
void members_slot_give(struct members *, uint32_t slot);

// Outcomes since the last call for this member (A50-E05).
void members_harvest(struct members *, uint32_t member, uint64_t *ret_ok, uint64_t *ret_failed);
// When a session's request was last sent to it (A75-O12); 0 = never.
uint64_t members_last_used(const struct members *, uint32_t member);

struct member_totals {
	// Since the member was added. Outcomes not caused by the backend are neither ok nor failed.
	uint64_t issued, ok, failed;
	uint64_t active;
};
void members_totals(const struct members *, uint32_t member, struct member_totals *ret);
bool members_is_used(const struct members *, uint32_t member); // a request was sent to it
