// SPDX-License-Identifier: Apache-2.0
// The members that sessions may use, and what is kept of each: those of a leaf's roster, then those
// who are leaving. affinity.c decides which of them stay connected.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct lb_affinity_list;
struct lb_leaf_endpoints;
struct lb_member;
struct lb_roster;

// A flag beside those of lb_affinity_list.uses: connected for sessions alone.
enum { LB_AFFINITY_OWNED = 4 };

// Each member knows its place (lb_member_place).
struct lb_affinity_members {
	uint32_t n;
	uint32_t n_owned;
	struct lb_leaf_endpoints *endpoints; // counted; NULL = there was no update
	struct lb_roster *roster; // counted
	struct lb_leaf_endpoints *leaving; // counted; NULL = nobody is
	struct lb_roster *leaving_roster; // counted; likewise
	uint8_t *flags; // owned
	uint64_t *wanted_ns; // owned: when a request last asked for it; NULL = none ever did
	uint32_t *by_id; // owned: places by member id; NULL = nobody asked yet
};

// Returns 0, or -ENOMEM: to be freed likewise.
[[nodiscard]] int lb_affinity_members_init(
	struct lb_affinity_members *, const struct lb_affinity_list *);
void lb_affinity_members_fini(struct lb_affinity_members *);
struct lb_member *lb_affinity_members_at(const struct lb_affinity_members *, uint32_t at);
// Returns its place; UINT32_MAX = not listed.
uint32_t lb_affinity_members_find(const struct lb_affinity_members *, const struct lb_member *);
// The same by its id. UINT32_MAX = not listed, or out of memory.
uint32_t lb_affinity_members_find_id(struct lb_affinity_members *, uint32_t member);
void lb_affinity_members_set_owned(struct lb_affinity_members *, uint32_t at, bool is_owned);
// Tells each member its place.
void lb_affinity_members_set_places(const struct lb_affinity_members *);
