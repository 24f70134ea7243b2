// SPDX-License-Identifier: Apache-2.0
// One handshake on a thread, from its start to its stop, and what its worker is told of it.
// Thread: the handshake thread that has the seat.
#pragma once

#include "lb/base/list.h"
#include "lb/base/sketch.h"
#include "tlshs/handshake.h"
#include "tlshs/link.h"
#include "tlshs/promises.h"

#include <stdbool.h>
#include <stdint.h>

struct tlshs_owing;

// How many there are at a time; shared by all threads.
struct tlshs_census {
	uint32_t max, max_of_source; // 0 = any number
	uint32_t open; // w: threads (relaxed), r: any
	uint32_t with_clients; // of them; likewise
	struct sketch of_source; // w: threads
	struct tlshs_keylog *keys; // borrowed; NULL = none
};

struct tlshs_seat {
	bool taken; // between START and STOP
	bool told; // END is written
	bool is_last; // the peer sends nothing more
	uint64_t id;
	uint64_t deadline_ns;
	uint64_t n_got; // bytes of the peer
	uint64_t n_unanswered; // of them
	uint64_t since_ns; // it has something to do
	uint64_t asked_ns; // of a client: it was told something, or has begun
	enum tlshs_role role; // ours
	uint64_t source; // a hash
	enum tlshs_outcome refused; // with no handshake: why there is none
	struct tlshs_handshake *handshake; // NULL = none, or all is told
	struct tlshs_promises *promises; // borrowed: the thread's
	struct list_link open; // those with a handshake, in order of their deadlines
	struct list_link ready; // tlshs_queue's
	struct list_link owing; // tlshs_owing's
	struct tlshs_owing *debtors; // borrowed; NULL = with a backend, or over
	struct list_link waiting; // for room in the ring of answers
};

// Takes the seat and the order's reference.
void tlshs_seat_start(struct tlshs_seat *, const struct tlshs_order *, struct tlshs_census *,
	struct tlshs_promises *, uint64_t deadline_ns);
// Bytes of the peer. True = there is something to run for.
[[nodiscard]] bool tlshs_seat_feed(
	struct tlshs_seat *, struct tlshs_link *, const struct tlshs_order *);
// Goes on with what the peer has sent.
void tlshs_seat_run(struct tlshs_seat *);
// Writes what there is to answer, and ends the handshake once all is told. counts: by outcome.
// False = the ring is full.
[[nodiscard]] bool tlshs_seat_answer(
	struct tlshs_seat *, struct tlshs_link *, struct tlshs_census *, uint64_t *counts);
// Leaves the seat.
void tlshs_seat_stop(struct tlshs_seat *, struct tlshs_census *, uint64_t *counts);
