// SPDX-License-Identifier: Apache-2.0
// What stands in front of the hosts and decides which one a flow goes to: routers with ECMP, or an
// L4 tier. Models of what others run, not Shunt's code.
// Thread: one.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum tier_kind {
	TIER_MODULO, // ECMP: the hash modulo the number of next hops
	TIER_THRESHOLD, // ECMP by regions of equal size (RFC 2992)
	// ECMP over buckets that stay where they are, but for those of hosts that left, and those
	// that hosts which came are to have (Linux's resilient next hop groups, forced to balance)
	TIER_RESILIENT,
	TIER_MAGLEV, // an L4 tier with Maglev's table and no memory of connections
	TIER_TRACKED, // the same, and what is open stays where it is (Katran)
	TIER_N,
};

struct tier;

const char *tier_name(enum tier_kind);
// For hosts 0 to n - 1, all of them down. Returns NULL if out of memory.
struct tier *tier_new(enum tier_kind, uint32_t n_hosts);
void tier_free(struct tier *); // NULL is fine
// These are up from now on, at least one. False = out of memory.
bool tier_update(struct tier *, const bool *is_up);
// Where a new connection goes, and where the next segment of an open one does that was at `host`.
uint32_t tier_find(const struct tier *, uint32_t hash);
uint32_t tier_find_open(const struct tier *, uint32_t hash, uint32_t host);
