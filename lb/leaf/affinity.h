// SPDX-License-Identifier: Apache-2.0
// The connections that a leaf keeps for sessions (xds_override_host, gRFC A75; A75-O04, A75-O12 to
// A75-O20): which members that no policy uses stay connected because a session needs them, and for
// how long. Picks read lb/pick/affinity_map.h.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ip_port;
struct lb_affinity;
struct lb_affinity_map;
struct lb_dump;
struct lb_leaf_endpoints;
struct lb_member;
struct lb_roster;
struct twheel;

struct lb_affinity_env {
	struct twheel *wheel;
	// Returns when a session's request was last sent to this member, by the wheel's clock; 0 =
	// never (A75-O12).
	uint64_t (*last_used)(void *ctx, uint32_t member);
	// Called when there is a new map, but not from inside update().
	void (*on_change)(void *ctx);
	void *ctx;
	bool uses_ejected; // sessions stay with ejected members (A75-O22)
};

// Input of lb_affinity_update(): all members of all priorities (A55-O01).
enum {
	LB_AFFINITY_TARGET = 1, // its health is in override_host_status
	LB_AFFINITY_IN_CHILD = 2, // a policy uses it
};
struct lb_affinity_list {
	struct lb_leaf_endpoints *endpoints; // counted while it is the newest, or in the map
	struct lb_roster *roster; // their members; likewise
	const uint8_t *uses; // [roster->n], of the above; borrowed for the call
	// Endpoints that EDS no longer lists but policies still pick (RR-04); no session may use
	// them.
	struct lb_leaf_endpoints *leaving; // counted, as above; NULL = none
	struct lb_roster *leaving_roster; // likewise
	bool wants_map; // sessions may exist; false = no memory is spent on a map
};

struct lb_affinity *lb_affinity_new(const struct lb_affinity_env *); // NULL = out of memory
void lb_affinity_free(struct lb_affinity *); // NULL is fine
// Returns 0, or -ENOMEM with nothing changed.
[[nodiscard]] int lb_affinity_update(
	struct lb_affinity *, const struct lb_affinity_list *, uint64_t idle_timeout_ns);
// A policy begins or stops using the member. A member that no session used lately is disconnected
// when its policy stops (A75-O13); one that a policy uses again keeps its connection (A75-O14).
void lb_affinity_set_in_child(struct lb_affinity *, struct lb_member *, bool);
// The member with this set of addresses, in any order; NULL = not listed.
struct lb_member *lb_affinity_find(
	const struct lb_affinity *, const struct ip_port *addresses, uint32_t n);
// The member changed (lb_member_env.on_change). Does nothing if it is not listed.
void lb_affinity_note(struct lb_affinity *, struct lb_member *);
// A request waits for this member: connects it (A75-O06, A75-O08, A75-O20). Does nothing if it is
// not listed.
void lb_affinity_want(struct lb_affinity *, uint32_t member);

// Borrowed. NULL before the first update, and if no map is wanted.
struct lb_affinity_map *lb_affinity_map_of(const struct lb_affinity *);
uint32_t lb_affinity_n_owned(const struct lb_affinity *); // members connected only for sessions
void lb_affinity_dump(const struct lb_affinity *, struct lb_dump *);
