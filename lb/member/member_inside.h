// SPDX-License-Identifier: Apache-2.0
// What a member consists of, for member.c (its life, and what it is), member_connect.c (its
// connection) and member_watch.c (who is told). Nobody else's.
// Thread: ctrl.
#pragma once

#include "lb/base/twheel.h"
#include "lb/member/member.h"
#include "lb/member/subchannel.h"
#include "lb/pick/limits.h"

struct race;
struct stuck;

enum lb_member_phase {
	PHASE_IDLE,
	PHASE_PASS, // walks the addresses
	PHASE_FAILED, // each failed once: all are tried again, each after its backoff (PF-05)
	PHASE_READY,
	PHASE_STUCK, // asks now and then for the subchannels that it could not have
};

// One address while it has a subchannel.
struct leg {
	struct lb_subchannel_watcher watcher;
	uintptr_t subchannel; // counted and watched; 0 = none; and, lowest bit, it lies in a race
};

// What several addresses need besides.
struct many {
	struct race *race; // owned; NULL before the first pass
	uint32_t n_failed; // attempts since it last wanted a resolution
	uint32_t n;
	struct ip_port addresses[]; // [n], in EDS order
};

// In a slab of its env's (member.c). Most have one address: what that needs lies here.
struct lb_member {
	uint32_t n_refs;
	uint32_t place;
	uint32_t id : 18;
	uint32_t phase : 3; // enum lb_member_phase
	uint32_t raw : 2; // the state that goes with it
	uint32_t has_news : 1; // for the watchers; in the phase's byte, as they change together
	uint32_t is_ejected : 1;
	uint32_t must_disconnect : 1; // as soon as it is not busy
	uint32_t wants_resolution : 1; // while that is told
	uint32_t has_failed : 1; // the only address, in this pass
	uint32_t tells_error : 1; // that of the only address
	uint32_t has_many : 1; // addresses
	uint32_t is_put_off : 1; // PHASE_IDLE, and somebody would have it connected
	uint32_t is_linked : 1; // several watch it
	uint8_t n_busy; // changes that are under way: watchers hear of them when they are over
	uint8_t number; // in its slab
	union {
		struct lb_member_watcher *watcher; // NULL = nobody
		struct lb_member_link *links; // of them all, the newest first
	};
	union {
		struct leg only;
		struct {
			struct many *many; // owned
			struct stuck *stuck; // owned; NULL = none
		};
	};
	uint32_t watcher_index;
	struct ip_port address; // the only one
};
_Static_assert(sizeof(struct lb_member) == 64, "there are very many");
_Static_assert(LB_MAX_MEMBERS <= 1 << 18, "a member holds its id");

// Lies before its members. Neither begins at a cache line: most leaves have a slab or two, of which
// that would take a tenth.
struct lb_member_slab {
	struct lb_member_env *env;
	struct lb_member_slab *next, *before; // of those with room
	uint64_t free; // bit i: nobody is member i
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

// member.c
// If nobody needs it any more.
void lb_member_end(struct lb_member *);

// member_connect.c. Before it goes; once more without effect.
void lb_member_give_back(struct lb_member *);
void lb_member_take_up(struct lb_member *); // it is put off no more

// member_watch.c
void lb_member_tell(struct lb_member *); // its watchers, of what has changed
bool lb_member_is_told(const struct lb_member *); // a round of telling is under way
