// SPDX-License-Identifier: Apache-2.0
// Neighbours: which MAC address has an IPv4 address on a port's link. A table of fixed size that
// asks (arp.c), remembers, ages and refreshes by the wheel; frames for a neighbour that is still
// being asked for are held, within bounds.
// Thread: the owning worker.
#pragma once

#include "lb/base/pool.h"
#include "lb/base/twheel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct net;

#define NEIGH_MAX 4096
#define NEIGH_BUCKETS 4096 // power of two
#define NEIGH_MAX_HELD 16 // frames of one neighbour
#define NEIGH_MAX_HELD_ALL 1024
#define NEIGH_ASK_INTERVAL_NS 1000000000ull // RFC 1122 2.3.2.1: at most one a second
#define NEIGH_N_ASKS 3 // broadcast; as many unicast before them when a MAC is known
#define NEIGH_REACHABLE_NS (60 * 1000000000ull)
#define NEIGH_STALE_NS (600 * 1000000000ull)

enum neigh_state {
	NEIGH_FREE,
	NEIGH_INCOMPLETE, // no MAC yet, being asked for, frames are held
	NEIGH_STALE, // its MAC is old or was never asked for: used, but then asked for
	NEIGH_PROBE, // the same, being asked for
	NEIGH_REACHABLE, // answered us in the last minute
};

struct neigh_held {
	struct neigh_held *next;
	size_t len;
	uint8_t frame[]; // Ethernet header with the destination still to be filled in
};

struct neigh {
	struct twheel_timer timer; // must stay first
	struct net *net; // borrowed
	uint32_t ip;
	uint8_t port;
	uint8_t state; // enum neigh_state
	uint8_t n_asks; // in this round
	uint8_t n_held;
	uint8_t mac[6];
	uint64_t changed_ns; // when the MAC was last believed
	struct neigh *next; // in the bucket, or in the free list
	struct neigh_held *head, *tail; // owned
};

struct neigh_table {
	struct neigh *entries; // owned
	struct neigh *free;
	uint32_t n_fresh; // entries never used yet: the last ones
	uint32_t hand; // of the clock that looks for something to evict
	struct neigh *buckets[NEIGH_BUCKETS];
	struct pool held;
};

// max_frame: longest frame that may have to be held. 0 or -ENOMEM.
[[nodiscard]] int neigh_init(struct net *, size_t max_frame);
void neigh_fini(struct net *);

struct neigh *neigh_find(struct net *, uint32_t port, uint32_t ip);
// Finds or makes it (INCOMPLETE, not asked for yet). NULL = the table is full, counted. Forgets a
// neighbour nobody hears of when it must.
struct neigh *neigh_get(struct net *, uint32_t port, uint32_t ip);

static inline bool neigh_has_mac(const struct neigh *n)
{
	return n->state >= NEIGH_STALE;
}

// Room for one frame to wait in; neigh_hold() must follow. NULL = too many wait, counted.
struct neigh_held *neigh_reserve(struct neigh *, size_t len);
// Queues the frame and asks, if nobody asked yet.
void neigh_hold(struct neigh *, struct neigh_held *);
// A frame went to a STALE neighbour: asks whether it is still there.
void neigh_probe(struct neigh *);

// What an ARP packet says. `asked`: it is a reply to us; otherwise a request for us (RFC 826) or a
// claim to everybody. Only what was asked for replaces a MAC that is in use; another claim makes us
// ask again, so that a takeover is noticed at once and a lie is not believed.
void neigh_hear(struct neigh *, const uint8_t mac[6], bool asked);
