// SPDX-License-Identifier: Apache-2.0
// When attempts to connect begin, so that those of a configuration of 100,000 endpoints are no
// storm: a bounded number of young ones at a time, the rest wait for their turn. One that has been
// under way for long is most likely to a host that never answers: it makes room for others, as long
// as not too many are under way in all. Knows endpoints by their ids only; not what becomes of an
// attempt, and not how long one that failed is to rest (lb/member/subchannel.h).
// Thread: ctrl.
#pragma once

#include "lb/base/time.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_attempts;
struct twheel;

// An attempt is young for one to two of these. So one whose first SYN was lost is, until that is
// sent again (RFC 6298 2): whatever loses SYNs is given fewer.
#define LB_ATTEMPTS_YOUTH_NS NS_PER_SECOND

struct lb_attempts_conf {
	struct twheel *wheel; // ctrl's wheel and clock
	uint32_t max_young; // 0 = any number
	uint32_t max_under_way; // young or not; 0 = any number
	// What waited begins now: inside twheel_advance() and lb_attempts_expedite().
	void (*begin)(void *ctx, uint32_t id);
	void *ctx;
};

struct lb_attempts *lb_attempts_new(const struct lb_attempts_conf *); // NULL = out of memory
void lb_attempts_free(struct lb_attempts *); // none waits or is under way; NULL is fine

// One is wanted, and neither waits nor is under way. True = it begins at once; false = it waits for
// conf.begin().
bool lb_attempts_want(struct lb_attempts *, uint32_t id);
// Nobody wants it any more, if it waits.
void lb_attempts_leave(struct lb_attempts *, uint32_t id);
// This one, which began at this time, is over. Others begin at the next tick, so that none does in
// vain where a whole configuration goes.
void lb_attempts_end(struct lb_attempts *, uint32_t id, uint64_t began_ns);
// A request needs it: it does not wait for those that none needs. A quarter more than else may be
// young or under way for that, so that it may still have to wait. Where requests need more than
// there is room for, a fifth of it stays for those that none needs. True = it has begun.
bool lb_attempts_expedite(struct lb_attempts *, uint32_t id);

// There is room for one more of those.
bool lb_attempts_may_expedite(struct lb_attempts *);

// When some that are young now are next not young any more.
uint64_t lb_attempts_aging_ns(struct lb_attempts *);
bool lb_attempts_is_young(struct lb_attempts *, uint64_t began_ns);
uint32_t lb_attempts_n_waiting(const struct lb_attempts *);
uint32_t lb_attempts_n_under_way(const struct lb_attempts *);
