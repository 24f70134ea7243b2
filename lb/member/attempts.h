// SPDX-License-Identifier: Apache-2.0
// Limits connection attempts, so that a configuration with 100,000 endpoints does not start them
// all at once: a bounded number of young attempts, the others wait for their turn. An attempt that
// takes long most likely goes to a host that never answers: it makes room for others, within a
// second bound on all attempts under way. Knows endpoints by id only; lb/member/subchannel.h
// handles outcomes and backoff.
// Thread: ctrl.
#pragma once

#include "lb/base/time.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_attempts;
struct twheel;

// An attempt is young for one to two of these periods: long enough to retransmit a lost SYN (RFC
// 6298 2), so that a network that loses SYNs gets fewer of them.
#define LB_ATTEMPTS_YOUTH_NS NS_PER_SECOND

struct lb_attempts_conf {
	struct twheel *wheel; // ctrl's wheel and clock
	uint32_t max_young; // limit of young attempts; 0 = none
	uint32_t max_under_way; // limit of all attempts under way; 0 = none
	// Starts an attempt that waited; called inside twheel_advance() and lb_attempts_expedite().
	void (*begin)(void *ctx, uint32_t id);
	void *ctx;
};

struct lb_attempts *lb_attempts_new(const struct lb_attempts_conf *); // NULL = out of memory
// after all attempts have ended and none waits; NULL is fine
void lb_attempts_free(struct lb_attempts *);

// Requests an attempt for an endpoint that neither waits nor is under way. True = it may start at
// once; false = it waits for conf.begin().
bool lb_attempts_want(struct lb_attempts *, uint32_t id);
// Cancels the endpoint's attempt if it waits.
void lb_attempts_leave(struct lb_attempts *, uint32_t id);
// The endpoint's attempt, started at this time, has ended. Others start at the next tick, so that
// none starts in vain while a whole configuration is being removed.
void lb_attempts_end(struct lb_attempts *, uint32_t id, uint64_t began_ns);
// A request needs the attempt: it goes before those that no request needs. The limits are a quarter
// higher for such attempts, so it may still have to wait. If requests need more than that, a fifth
// of the room stays for attempts that no request needs. True = it has started.
bool lb_attempts_expedite(struct lb_attempts *, uint32_t id);

// True if there is room for another attempt that a request needs.
bool lb_attempts_may_expedite(struct lb_attempts *);

// When the next young attempts stop being young.
uint64_t lb_attempts_aging_ns(struct lb_attempts *);
bool lb_attempts_is_young(struct lb_attempts *, uint64_t began_ns);
uint32_t lb_attempts_n_waiting(const struct lb_attempts *);
uint32_t lb_attempts_n_under_way(const struct lb_attempts *);
