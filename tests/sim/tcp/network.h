// SPDX-License-Identifier: Apache-2.0
// What is between the two stacks of a world: it keeps packets until they arrive, or does to them
// what the world says.
// Thread: the only one.
#pragma once

#include "tests/sim/tcp/world.h"

struct packet {
	uint64_t at_ns;
	uint64_t order; // equal times: first sent, first delivered
	unsigned to;
	size_t len;
	bool ect, marked; // routers may mark it in place of losing it; one did
	bool too_big; // comes back to its sender, from a router
	struct tcp_flow flow; // as the sender sees it
	uint8_t bytes[];
};

struct tcp_io network_io(struct port *, bool ecn);
// The next packet that has arrived, now the caller's to free; NULL = none has.
struct packet *network_take(struct world *);
// When one will have; UINT64_MAX = none is under way.
uint64_t network_next_ns(const struct world *);
void network_clear(struct world *); // loses them all
