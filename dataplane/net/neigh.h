// SPDX-License-Identifier: Apache-2.0
// Neighbors: which MAC address has an IPv4 address on a port's link. A table, bounded at start,
// that asks (arp.c), remembers, ages and refreshes by the wheel; frames for a neighbor that is
// still being asked for are held, within bounds. Who is in use never loses its place to a newcomer:
// when the table is full, first those go that were only heard of, then those that nobody has sent
// to for a minute, then those that do not answer.
// Thread: the owning worker.
#pragma once

#include "lb/base/pool.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct net;

#define NEIGH_MAX_HELD 16 // frames of one neighbor
#define NEIGH_MAX_HELD_ALL 1024 // of either size
#define NEIGH_SMALL_FRAME 96 // nearly all that wait are SYNs, at most 94 bytes
#define NEIGH_ASK_INTERVAL_NS NS_PER_SECOND // RFC 1122 2.3.2.1: at most one a second
// Newcomers are asked for by broadcasts: that many at once, then one in this time. A thousand new
// endpoints must not flood the link, nor fill the device's queue, where others' frames wait.
#define NEIGH_TURN_BURST 100
#define NEIGH_TURN_NS 100000ull
#define NEIGH_N_ASKS 3 // broadcast; as many unicast before them when a MAC is known
#define NEIGH_REACHABLE_NS (60 * NS_PER_SECOND)
#define NEIGH_STALE_NS (600 * NS_PER_SECOND)
#define NEIGH_IN_USE_NS (60 * NS_PER_SECOND) // a STALE one that was confirmed is spared so long

enum neigh_state {
	NEIGH_FREE,
	NEIGH_INCOMPLETE, // no MAC yet, being asked for or waiting for its turn, frames are held
	NEIGH_STALE, // its MAC is old or was never asked for: used, but then asked for
	NEIGH_PROBE, // the same, being asked for
	NEIGH_REACHABLE, // answered us in the last minute
};

struct neigh_held {
	struct neigh_held *next;
	size_t len;
	uint8_t frame[]; // Ethernet header with both addresses still to be filled in
};

// Who may have to go, oldest first.
struct neigh_list {
	struct neigh *first, *last;
};

struct neigh {
	struct twheel_timer timer; // must stay first
	struct net *net; // borrowed
	uint32_t ip;
	uint8_t port;
	uint8_t state; // enum neigh_state
	uint8_t n_asks; // in this round
	uint8_t n_held;
	uint8_t eth[16]; // header of IPv4 frames to it, its MAC first; 14 bytes and two spare ones
	bool confirmed; // answered us once
	bool doubted; // STALE: it may have another MAC by now
	uint64_t changed_ns; // when the MAC was last believed
	uint64_t listed_ns; // since when it stands in its list
	struct neigh_list *list; // NULL = must not go now
	struct neigh *older, *newer; // there
	struct neigh *next; // in the bucket, or in the free list
	struct neigh_held *head, *tail; // owned
};

struct neigh_table {
	struct neigh *entries; // owned; pages become resident as they are used
	uint32_t max;
	uint32_t n_fresh; // entries never used yet: the last ones
	struct neigh *free;
	struct neigh **buckets; // owned; max of them
	struct neigh_list heard; // STALE, never confirmed
	struct neigh_list stale; // STALE, once confirmed
	struct neigh_list unanswered; // INCOMPLETE, asked for at least once
	uint64_t turn_ns; // when the next newcomer is asked for, but for the burst
	struct pool held, held_small; // longer than NEIGH_SMALL_FRAME, and the rest
};

// max: neighbors, at least 1. max_frame: longest frame that may have to be held. 0 or -ENOMEM.
[[nodiscard]] int neigh_init(struct net *, uint32_t max, size_t max_frame);
void neigh_fini(struct net *);

// The port has another device: frames to its neighbors leave with its MAC, and the next one asks
// the whole link for whom it is sent to.
void neigh_renew(struct net *, uint32_t port);

struct neigh *neigh_find(struct net *, uint32_t port, uint32_t ip);
// Finds or makes it (INCOMPLETE, not asked for yet). NULL = the table is full of neighbors that
// are in use or just being asked for, counted.
struct neigh *neigh_get(struct net *, uint32_t port, uint32_t ip);
// Something will be sent there soon: asks, unless it is known or asked for already.
void neigh_want(struct neigh *);

static inline bool neigh_has_mac(const struct neigh *n)
{
	return n->state >= NEIGH_STALE;
}

// Room for one frame to wait in; neigh_hold() must follow. NULL = too many wait, counted.
struct neigh_held *neigh_reserve(struct neigh *, size_t len);
// Queues the frame and asks, if nobody asked yet.
void neigh_hold(struct neigh *, struct neigh_held *);
// A frame went to a STALE neighbor: asks whether it is still there.
void neigh_probe(struct neigh *);

// What an ARP packet says. `asked`: it is a reply to us; otherwise a request for us (RFC 826) or a
// claim to everybody. Only what was asked for replaces a MAC that is in use; another claim makes us
// ask again, so that a takeover is noticed at once and a lie is not believed.
void neigh_hear(struct neigh *, const uint8_t mac[6], bool asked);
