// SPDX-License-Identifier: Apache-2.0
// Virtual time and a wire that delays, reorders and loses segments between hosts with a TCP stack
// each. Everything follows from the seed.
// Thread: one.
#pragma once

#include "dataplane/tcp/tcp.h"
#include "lb/base/pool.h"
#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"

#include <stdbool.h>
#include <stdint.h>

#define MS NS_PER_MS
#define SECOND (1000 * MS)
#define MAX_HOSTS 8

struct wire;

struct host {
	struct wire *wire;
	struct twheel *wheel;
	struct pool chunks;
	struct tcp_stack *tcp;
	// Around the input of one turn; before the stack's flush.
	void (*begin_turn)(void *ctx);
	void (*end_turn)(void *ctx);
	// Before and after each part of what its worker does, but for sending; NULL = nothing.
	void (*watch)(bool begins);
	void *ctx;
	bool unplugged; // nothing arrives there, nor comes from there
	bool due; // something happened outside of a turn
	uint8_t segment[4096];
};

struct packet {
	uint64_t at_ns, serial;
	struct ip_addr from, to;
	uint16_t len;
	uint8_t data[1600];
};

struct wire {
	uint64_t now_ns;
	struct rand rand;
	uint64_t delay_ns, jitter_ns;
	double loss;
	uint16_t silent_mtu; // what is longer is dropped without a word; 0 = nothing is
	struct host hosts[MAX_HOSTS];
	uint32_t n_hosts;
	struct packet **heap;
	uint32_t n_packets, room;
	uint64_t serial;
	uint64_t n_lost, n_sent;
};

void wire_init(struct wire *, uint64_t seed);
void wire_fini(struct wire *);
// Host n has every address 10.0.n.x.
struct host *wire_add_host(
	struct wire *, uint32_t n_chunks, uint32_t max_conns, uint32_t send_limit);
#define WIRE_V6 0x100 // beside the number of a host: its address as fd00::10.0.n.x
struct ip_addr wire_address(uint32_t host, uint32_t last);
// One instant at which something happens, not after `until`. False = nothing does.
bool wire_step(struct wire *, uint64_t until_ns);

static inline void wire_watch(const struct host *h, bool begins)
{
	if (h->watch)
		h->watch(begins);
}
