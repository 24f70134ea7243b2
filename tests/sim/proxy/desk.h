// SPDX-License-Identifier: Apache-2.0
// A handshake thread without a thread: what tlshs/threads.c does with one worker's link, in turns.
// Thread: one.
#pragma once

#include "tlshs/seat.h"

#define DESK_SEATS 64

struct desk {
	struct tlshs_link link;
	struct tlshs_link *links[1];
	struct tlshs_seat seats[DESK_SEATS];
	struct tlshs_census census;
	struct tlshs_promises promises;
	struct list_link waiting;
	uint64_t counts[TLSHS_N_OUTCOMES];
	bool asleep; // reads no orders
};

void desk_init(struct desk *, uint32_t n_slots);
void desk_fini(struct desk *); // nothing may be open
// True = there are answers for the worker.
bool desk_turn(struct desk *);
void desk_give_way(struct desk *); // all handshakes that are open
