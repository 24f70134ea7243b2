// SPDX-License-Identifier: Apache-2.0
// Whose turn it is on a handshake thread. Each seat with something to do is due when it got that,
// and later by what its source has spent lately and by what its bytes are likely to cost: whoever
// costs waits, and for a bounded time. A source has an eighth of a thread to itself: it owes eight
// times what it cost, less the time that has passed.
// Thread: the handshake thread whose queue it is.
#pragma once

#include "lb/base/list.h"
#include "tlshs/seat.h"

#include <stdint.h>

struct tlshs_queue {
	struct list_link ready; // seats
	uint64_t free_at_ns[TLSHS_SOURCES]; // by source: when it owes nothing any more
};

void tlshs_queue_init(struct tlshs_queue *);
// It has something to do. One that stands in the queue keeps its place.
void tlshs_queue_add(struct tlshs_queue *, struct tlshs_seat *, uint64_t now_ns);
// Removes the one that is due first; NULL = there is none.
struct tlshs_seat *tlshs_queue_take(struct tlshs_queue *, uint64_t now_ns);
// A source's handshakes, all waiting ones too, are due that much later.
void tlshs_queue_charge(struct tlshs_queue *, uint32_t source, uint64_t spent_ns, uint64_t now_ns);
