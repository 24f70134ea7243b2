// SPDX-License-Identifier: Apache-2.0
// Sends the echo requests that an operator asks for (lb/pick/ping.h, OPS-197), of either family,
// and knows their answers again: by who sends them, a random identifier, and random bytes behind
// it. One question is open at a time.
// Thread: the owning worker.
#pragma once

#include "lb/base/ip.h"
#include "lb/base/twheel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lb_ping;
struct net;

#define NET_PING_COOKIE 8 // bytes behind the header

// What somebody says has become of a packet to dst. expired: its hops have run out; else dst is
// unreachable, for this reason.
struct net_ping_error {
	struct ip_addr from, dst;
	bool expired;
	uint8_t code;
};

// Called upwards by ICMP of either family while something is asked. True = it is about a request of
// ours. rest: identifier and number, of a reply and what is behind; of an error as it quotes them.
struct net_ping_events {
	bool (*on_reply)(struct net *, const struct ip_addr *from, const uint8_t *rest, size_t len);
	bool (*on_error)(
		struct net *, const struct net_ping_error *, const uint8_t *rest, size_t len);
};

struct net_ping {
	struct twheel_timer timer; // the next request; behind the last, the end
	const struct net_ping_events *events;
	struct net *net; // borrowed
	struct lb_ping *to; // borrowed; NULL = nothing is asked
	uint32_t n_sent;
	uint16_t id;
	uint8_t cookie[NET_PING_COOKIE];
};

// It is the worker's now. Nothing is asked yet.
void net_ping_begin(struct net *, struct lb_ping *);
void net_ping_fini(struct net *);
