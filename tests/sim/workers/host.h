// SPDX-License-Identifier: Apache-2.0
// One network layer and TCP stack on a fake device, with a thread's own clock and memory: a worker
// of the simulation, or everybody outside of it.
// Thread: init and fini on any while the owner doesn't run; the rest on its owner.
#pragma once

#include "dataplane/net/net.h"
#include "lb/base/spsc.h"

#include <stdbool.h>
#include <stdint.h>

#define FRAME_MAX 1600

struct frame { // from malloc
	uint32_t len;
	uint8_t bytes[FRAME_MAX];
};

struct host {
	struct twheel *wheel;
	struct pool chunks;
	struct net *net;
	struct tcp_stack *tcp;
	struct spsc *out; // borrowed; of frames; may be NULL while nothing is sent
	struct frame *open; // reserved, not sent yet
	uint64_t n_lost; // frames for which there was no room
};

struct host_conf {
	uint32_t ip; // in 10.0.0.0/24
	uint8_t mac; // its last byte
	struct spsc *out;
	uint64_t seed;
	bool (*is_ours)(void *ctx, const struct tcp_flow *);
	void *is_ours_ctx;
};

bool host_init(struct host *, const struct host_conf *);
void host_fini(struct host *);
void host_turn_begins(struct host *); // time moves on
void host_turn_ends(struct host *); // what is to be sent goes out
uint64_t host_count(const struct host *, const char *counter); // of TCP's; aborts when unknown
