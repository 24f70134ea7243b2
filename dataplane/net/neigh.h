// SPDX-License-Identifier: Apache-2.0
// The neighbor table: which MAC address has an IP address on a port's link. Bounded at start; it
// sends requests (arp.c), and ages and refreshes entries by the wheel; a bounded number of frames
// wait while their neighbor is being resolved. A new neighbor never displaces one in use: a full
// table first evicts entries that were only heard of, then entries unused for a minute, then
// entries that do not answer.
// Thread: the owning worker.
#pragma once

#include "lb/base/ip.h"
#include "lb/base/pool.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct net;

#define NEIGH_MAX_HELD 16 // frames of one neighbor
#define NEIGH_MAX_HELD_ALL 1024 // of either size
#define NEIGH_SMALL_FRAME 114 // nearly all that wait are SYNs, which are no longer
#define NEIGH_ASK_INTERVAL_NS NS_PER_SECOND // RFC 1122 2.3.2.1: at most one a second
// Rate limit of broadcast requests for new neighbors: a burst of that many, then one per interval.
// A thousand new endpoints must not flood the link, nor fill the device's queue, in which other
// frames wait.
#define NEIGH_TURN_BURST 100
#define NEIGH_TURN_NS (100 * NS_PER_US)
#define NEIGH_DEFEND_NS (10 * NS_PER_SECOND) // RFC 5227 2.4 (b)
#define NEIGH_N_ASKS 3 // broadcast; as many unicast before them when a MAC is known
// A switch forwards to a link that came up once LACP and its spanning tree have settled.
#define NEIGH_SETTLE_NS (10 * NS_PER_SECOND)
#define NEIGH_REACHABLE_NS (60 * NS_PER_SECOND)
#define NEIGH_STALE_NS (600 * NS_PER_SECOND)
#define NEIGH_IN_USE_NS (60 * NS_PER_SECOND) // a STALE one that was confirmed is spared so long

enum neigh_state {
	NEIGH_FREE,
	NEIGH_INCOMPLETE, // no MAC yet: requested or waiting to be; frames are held
	NEIGH_STALE, // MAC outdated or unconfirmed: used once, which triggers a request
	NEIGH_PROBE, // the same, with a request under way
	NEIGH_REACHABLE, // answered us in the last minute
};

struct neigh_held {
	struct neigh_held *next;
	size_t len;
	uint8_t frame[]; // Ethernet header with both addresses still to be filled in
};

// Entries that may be evicted, oldest first.
struct neigh_list {
	struct neigh *first, *last;
};

struct neigh {
	struct twheel_timer timer; // must stay first
	struct net *net; // borrowed
	struct ip_addr ip;
	uint8_t port;
	uint8_t state; // enum neigh_state
	uint8_t n_asks; // requests sent in this round
	uint8_t n_held;
	uint8_t eth[16]; // header of IP frames to it, its MAC first; 14 bytes and two spare ones
	bool confirmed; // has answered us once
	bool doubted; // STALE: its MAC may have changed
	bool kept; // a gateway's: never evicted nor forgotten
	uint16_t n_heard; // a kept one's answers to us; wraps
	uint64_t changed_ns; // when the MAC was last confirmed or questioned
	uint64_t heard_ns; // when a kept one answered last
	uint64_t listed_ns; // when it was added to its list
	struct neigh_list *list; // NULL = must not be evicted now
	struct neigh *older, *newer; // neighbors in that list
	struct neigh *next; // in the bucket, or in the free list
	struct neigh_held *head, *tail; // owned
};

struct neigh_table {
	struct neigh *entries; // owned; pages become resident as they are used
	uint32_t max;
	uint32_t n_fresh; // entries never used yet: the last ones
	struct neigh *free;
	struct neigh **buckets; // owned; max of them
	struct neigh_list heard; // STALE, never confirmed: only heard of
	struct neigh_list stale; // STALE, confirmed once
	struct neigh_list unanswered; // INCOMPLETE, requested at least once
	uint64_t turn_ns; // when the next new neighbor may be requested, besides the burst
	struct pool held, held_small; // longer than NEIGH_SMALL_FRAME, and the rest
};

// max: neighbors, at least 1. max_frame: longest frame that may be held. Returns 0 or -ENOMEM.
[[nodiscard]] int neigh_init(struct net *, uint32_t max, size_t max_frame);
void neigh_fini(struct net *);

// The port has a new device: frames to its neighbors leave with its MAC, and the next frame to each
// triggers a broadcast request.
void neigh_renew(struct net *, uint32_t port);

struct neigh *neigh_find(struct net *, uint32_t port, const struct ip_addr *);
// Finds or makes an entry (INCOMPLETE, not requested yet). Returns NULL, counted, if the table is
// full of neighbors in use or being requested.
struct neigh *neigh_get(struct net *, uint32_t port, const struct ip_addr *);
// A packet will be sent there soon: requests the neighbor unless it is known or requested.
void neigh_want(struct neigh *);

static inline bool neigh_has_mac(const struct neigh *n)
{
	return n->state >= NEIGH_STALE;
}

// Reserves room for one waiting frame; neigh_hold() must follow. NULL = too many wait, counted.
struct neigh_held *neigh_reserve(struct neigh *, size_t len);
// Queues the frame, and requests the neighbor if it was not requested yet.
void neigh_hold(struct neigh *, struct neigh_held *);
// Asks a kept neighbor whether it is there, which its n_heard tells; broadcast: the whole link. One
// without a MAC is requested in any case, at its own pace.
void neigh_check(struct neigh *, bool broadcast);
// A frame was sent to a STALE neighbor: checks that it is still there.
void neigh_probe(struct neigh *);

// A host says on a link that it has this address: tells the owner of net (net_set_on_neighbor())
// unless that is known. announced: it said so unasked, as after a restart.
void neigh_tell(
	struct net *, uint32_t port, const struct ip_addr *, const uint8_t mac[6], bool announced);
// An address of ours is claimed: true if it is time to say again that it is ours.
bool neigh_may_defend(struct net *);
// Handles the content of an ARP packet or of neighbor discovery. `asked`: a reply to us; otherwise
// a request for us (RFC 826) or an announcement. Only a reply replaces a MAC in use; any other
// claim causes a new request, so that a takeover is noticed at once and a false claim has no
// effect.
void neigh_hear(struct neigh *, const uint8_t mac[6], bool asked);
