// SPDX-License-Identifier: Apache-2.0
// One client's leaving: GOAWAY in two steps, then a deadline for its streams. It leaves for reasons
// of its own, which stay (its listener was replaced (FLT-11) or lost its address (A36-72), it was
// idle, its keys are used up, it has reached its age (OPS-150)), or because its frontend is left
// (OPS-73), which may be taken back (OPS-74). The earlier deadline counts.
// Thread: the owning worker.
#pragma once

#include "lb/base/time.h"
#include "lb/base/twheel.h"

#include <stdbool.h>
#include <stdint.h>

struct proxy_client;

// Time for requests that were on their way when the client had not heard of it yet.
#define PROXY_LEAVE_GRACE_NS NS_PER_SECOND

struct proxy_leave { // zero = it stays
	struct twheel_timer timer; // the first GOAWAY, the last one, then the end
	uint64_t old_at_ns; // when it has reached its age; 0 = never
	uint64_t own_by_ns; // the deadline of its own reasons; 0 = there is none
	uint64_t frontend_by_ns; // likewise, of its frontend
	bool told; // the first GOAWAY is sent, which can't be taken back
	bool silent; // it had said nothing when its grace began
};

// It has just come, and will leave at its age, if there is one (gRPC A9; lb_terms.max_age_ns).
void proxy_leave_at_age(struct proxy_client *);
// From now on, with as long as the clients of a replaced listener have. False = it is leaving for a
// reason of its own already.
bool proxy_leave_now(struct proxy_client *);
// Its listener has been replaced, or lost its address: it is told somewhen in the first part of the
// time that it has.
void proxy_leave_listener(struct proxy_client *);
// Its frontend is left, by then, or by another time than before; 0 = it is not, or no more: who has
// not been told stays, and who has been may take his time.
void proxy_leave_frontend(struct proxy_client *, uint64_t by_ns);
// The process is about to go, and this one is to be told well before then (FL-41). What ends its
// streams is the drain.
void proxy_leave_farewell(struct proxy_client *, uint64_t before_ns);
// Its time is over: its requests end with the cause `drained`, which clients are told, then it is
// closed by GOAWAY and FIN (FL-176).
void proxy_leave_cut(struct proxy_client *);
void proxy_leave_forget(struct proxy_client *); // it is over
// GOAWAY: the first, and PROXY_LEAVE_GRACE_NS later the last. Who has said nothing at all by then,
// and would be hung up on without a word, has as long again, until it is late (TH-16) or the
// deadline is over (FL-98).
void proxy_leave_say_first(struct proxy_client *);
void proxy_leave_say_last(struct proxy_client *);

static inline bool proxy_leave_begun(const struct proxy_leave *l)
{
	return l->own_by_ns || l->frontend_by_ns || l->told;
}
