// SPDX-License-Identifier: Apache-2.0
// A member in a world of virtual time, and what its watcher is told. Not what other members of the
// world do: a test makes those.
// Thread: the test's.
#pragma once

#include "lb/member/member.h"
#include "tests/unit/lb/world.h"

#define MEMBER_WORLD_V6 0x1000 // addresses from here on are IPv6

struct member_world {
	struct world world;
	struct lb_member_env env;
	struct lb_member *member; // id 5
	struct lb_member_watcher watcher;
	uint32_t n_told;
	enum lb_state state; // as last told
	void (*on_told)(struct member_world *); // after that; NULL = nothing more
};

// Its addresses are those of the numbers.
void member_world_init(struct member_world *, const uint32_t *numbers, uint32_t n);
// One attempt to connect at a time, and one that waits.
void member_world_init_paced(struct member_world *, const uint32_t *numbers, uint32_t n);
void member_world_fini(struct member_world *);
struct ip_port member_world_addr(uint32_t number);
// Another one, owned by the caller, whom nobody watches.
struct lb_member *member_world_make(struct member_world *, const uint32_t *numbers, uint32_t n);
// By number of the address, as world_id().
uint32_t member_world_id(struct member_world *, uint32_t number);
uint32_t member_world_connects(struct member_world *, uint32_t number);
void member_world_event(
	struct member_world *, enum lb_event_kind, uint32_t number, const char *why);
