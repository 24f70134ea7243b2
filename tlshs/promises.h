// SPDX-License-Identifier: Apache-2.0
// Handshakes of clients that are over on a thread, while tickets of their servers may still come:
// so many of them, for so long, and each for so many tickets.
// Thread: the handshake thread that has them.
#pragma once

#include "lb/base/time.h"
#include "tlshs/link.h"

#include <stddef.h>
#include <stdint.h>

struct tlshs_order;
struct tlshs_promise;

#define TLSHS_MAX_PROMISES 1024 // the oldest gives way
#define TLSHS_PROMISE_NS (10 * NS_PER_SECOND)

struct tlshs_promised {
	struct tlshs_promise *promise; // owned; NULL = all its tickets have come
	uint64_t since_ns;
	uint32_t n_tickets;
	uint8_t *part; // owned: of a ticket that takes more than one order
	size_t part_len, part_room;
};

struct tlshs_promises {
	// A ring: number n is at n modulo its size. From `first` on they are there, or were.
	struct tlshs_promised *all; // owned
	uint64_t first, next; // numbers
	uint64_t now_ns;
};

// 0 or -ENOMEM.
[[nodiscard]] int tlshs_promises_init(struct tlshs_promises *);
void tlshs_promises_fini(struct tlshs_promises *);
// Takes it; returns its number, from 1. NULL = there is none, which is number 0.
uint64_t tlshs_promises_add(struct tlshs_promises *, struct tlshs_promise *);
// A ticket, or a part of one: what comes of it goes to the store.
void tlshs_promises_feed(struct tlshs_promises *, const struct tlshs_order *);
// Frees those whose time is over.
void tlshs_promises_expire(struct tlshs_promises *, uint64_t now_ns);
