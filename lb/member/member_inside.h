// SPDX-License-Identifier: Apache-2.0
// The inside of a member, for member.c (its life and state), member_connect.c (its connection),
// leg.c (its addresses' subchannels) and member_watch.c (its watchers) only.
// Thread: ctrl.
#pragma once

#include "lb/base/twheel.h"
#include "lb/member/member.h"
#include "lb/member/subchannel.h"
#include "lb/pick/limits.h"

struct lb_race;
struct stuck;

enum lb_member_phase {
	PHASE_IDLE,
	PHASE_PASS, // tries the addresses in order
	PHASE_FAILED, // each failed once: all are retried, each after its backoff (PF-05)
	PHASE_READY,
	PHASE_STUCK, // retries from time to time to get the subchannels that it lacks
};

// One address while it has a subchannel.
struct lb_leg {
	struct lb_subchannel_watcher watcher;
	uintptr_t subchannel; // counted and watched; 0 = none; lowest bit set: it lies in a race
};

// Additional state of members with several addresses.
struct many {
	struct lb_race *race; // owned; NULL before the first pass
	uint64_t silent_until_ns; // one family is tried after the other one until then (PF-09)
	uint32_t n_failed; // failed attempts since it last wanted a resolution
	uint32_t n : 31;
	uint32_t silent_v4 : 1; // which one
	struct ip_port addresses[]; // [n], in EDS order
};

// Lies in a slab of its env (member.c). Most members have one address, whose state lies here.
struct lb_member {
	uint32_t n_refs;
	uint32_t place;
	uint32_t id : 18;
	uint32_t phase : 3; // enum lb_member_phase
	uint32_t raw : 2; // enum lb_state
	// watchers must be told; in the same byte as phase, since they change together
	uint32_t has_news : 1;
	uint32_t is_ejected : 1;
	uint32_t must_disconnect : 1; // when n_busy drops to 0
	uint32_t wants_resolution : 1; // while watchers are told of it
	uint32_t has_failed : 1; // the only address failed in this pass
	uint32_t tells_error : 1; // last_error is that of the only address
	uint32_t has_many : 1; // has several addresses
	uint32_t is_put_off : 1; // PHASE_IDLE, and a policy wants it connected
	uint32_t is_linked : 1; // several watchers
	uint8_t n_busy; // changes in progress: watchers are told when they are over
	uint8_t number; // in its slab
	uint8_t health; // enum lb_member_health
	union {
		struct lb_member_watcher *watcher; // NULL = none
		struct lb_member_link *links; // of all watchers, newest first
	};
	union {
		struct lb_leg only;
		struct {
			struct many *many; // owned
			struct stuck *stuck; // owned; NULL = none
		};
	};
	uint32_t watcher_index;
	struct ip_port address; // if there is only one
};
_Static_assert(sizeof(struct lb_member) == 64, "there are very many");
_Static_assert(LB_MAX_MEMBERS <= 1 << 18, "a member holds its id");

// Precedes its members. Not aligned to cache lines: most leaves have one or two slabs, and
// alignment would waste a tenth of them.
struct lb_member_slab {
	struct lb_member_env *env;
	struct lb_member_slab *next, *before; // of those with room
	uint64_t free; // bit i: place i is free
	uint64_t all;
};

static inline struct lb_member_slab *lb_member_slab_of(const struct lb_member *m)
{
	return (struct lb_member_slab *)(uintptr_t)(m - m->number) - 1;
}
static inline struct lb_member_env *lb_member_env_of(const struct lb_member *m)
{
	return lb_member_slab_of(m)->env;
}
static inline struct lb_connectivity *lb_member_connectivity(const struct lb_member *m)
{
	return lb_member_env_of(m)->connectivity;
}

// member.c
// Frees it if no reference is left.
void lb_member_end(struct lb_member *);

// member_connect.c. Before the member is freed; calling it twice is harmless.
void lb_member_give_back(struct lb_member *);
void lb_member_take_up(struct lb_member *); // it is no longer put off

// member_watch.c
void lb_member_tell(struct lb_member *); // its watchers, of what changed
bool lb_member_is_told(const struct lb_member *); // true while watchers are being told
