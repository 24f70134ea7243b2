// SPDX-License-Identifier: Apache-2.0
// The subchannels of a member's addresses: a leg is one of them, while the member watches it. A
// member with several addresses has them in a race, in the order in which they are tried (RFC 8305,
// gRFC A61; PF-01). Who runs and who wins decides member_connect.c.
// Thread: ctrl.
#pragma once

#include "lb/member/member_inside.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_runner {
	struct lb_leg leg;
	struct lb_race *race;
	bool has_failed; // in this pass
};

struct lb_race {
	struct twheel_timer timer; // until the next address is tried beside
	struct lb_member *member;
	struct lb_leg *in_use; // READY: the one that is
	struct lb_leg *last_failed; // whose error is told; NULL = none
	uint32_t n;
	uint32_t n_begun; // of this pass
	struct lb_runner runners[]; // in the order of trying (PF-01)
};

// Watches the subchannels of all addresses. Returns NULL if out of memory or of endpoint ids.
struct lb_race *lb_leg_race_new(struct lb_member *, void (*on_timer)(struct twheel_timer *));
void lb_leg_race_free(struct lb_race *); // NULL is fine

// The only address's: asks for a connection unless somebody else watches the subchannel already. No
// effect if it has it. Returns false if out of memory or of endpoint ids.
[[nodiscard]] bool lb_leg_take_only(struct lb_member *);
// How its connections are to be secured: as lb_member_env.security.
[[nodiscard]] int lb_leg_security(
	const struct lb_member *, const struct ip_port *, struct lb_security **ret);
void lb_leg_fini(struct lb_leg *, struct lb_connectivity *); // no effect without a subchannel
// Sets the times of its endpoint anew; no effect without a subchannel.
void lb_leg_apply_timers(const struct lb_leg *, struct lb_connectivity *);
struct lb_subchannel *lb_leg_subchannel(const struct lb_leg *);
struct lb_member *lb_leg_member(const struct lb_leg *);
// Whether its attempt has failed in this pass.
bool lb_leg_has_failed(const struct lb_member *, const struct lb_leg *);
void lb_leg_set_failed(struct lb_member *, struct lb_leg *, bool failed);

// Those of a member: none before its first pass, unless it has a single address.
uint32_t lb_leg_count(const struct lb_member *);
struct lb_leg *lb_leg_at(struct lb_member *, uint32_t i);
struct lb_leg *lb_leg_in_use(const struct lb_member *); // NULL = none
// Whose error the member tells; NULL = nobody's.
void lb_leg_set_last_failed(struct lb_member *, struct lb_leg *);
