// SPDX-License-Identifier: Apache-2.0
// Whose turn it is on a handshake thread (TH-128). Each seat with something to do is due when it
// got that, and what its bytes are likely to cost later; but not before its source owes nothing. A
// source owes eight times what it has cost, less the time that has passed, and a second at most: so
// one that takes less than an eighth of the thread waits like everybody else, and of the backlog of
// one that takes more a newcomer has one seat before it, since each that is served puts off the
// next.
// Thread: the handshake thread whose queue it is.
#pragma once

#include "lb/base/list.h"
#include "lb/base/sketch.h"
#include "tlshs/seat.h"

#include <stdint.h>

struct tlshs_queue {
	struct list_link ready; // seats
	// When a source owes nothing any more: the earliest of its places (lb/base/sketch.h).
	uint64_t free_at_ns[SKETCH_ROWS][SKETCH_WIDTH];
};

void tlshs_queue_init(struct tlshs_queue *);
// It has something to do. One that stands in the queue keeps its place.
void tlshs_queue_add(struct tlshs_queue *, struct tlshs_seat *, uint64_t now_ns);
// Removes the one that is due first; NULL = there is none.
struct tlshs_seat *tlshs_queue_take(struct tlshs_queue *);
// A source's handshakes, all waiting ones too, are not due before it has paid for that.
void tlshs_queue_charge(struct tlshs_queue *, uint64_t source, uint64_t spent_ns, uint64_t now_ns);
