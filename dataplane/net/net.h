// SPDX-License-Identifier: Apache-2.0
// Ethernet, ARP, IPv4 and ICMP of one worker, between the devices and tcp/. Frames are bytes here;
// the device side is a vtable, so no test needs DPDK. Whatever is malformed or not for us is
// dropped and counted by cause.
// Thread: the owning worker.
#pragma once

#include "dataplane/tcp/tcp.h"
#include "lb/base/counter.h"
#include "lb/base/ip.h"
#include "lb/base/pool.h"
#include "lb/base/twheel.h"

#include <stddef.h>
#include <stdint.h>

struct net;

#define NET_MAX_PORTS 8
#define NET_MAX_ADDRESSES 16 // of one port

// A device as net/ sees it.
struct net_device {
	// Room for one frame of len bytes. NULL = no buffer. At most one reservation is open at a
	// time.
	uint8_t *(*reserve)(void *ctx, size_t len);
	// Sends (or queues for the end of the turn) the frame last reserved.
	void (*send)(void *ctx, size_t len);
	// Gives the open reservation back unsent.
	void (*cancel)(void *ctx);
	void *ctx;
};

// The way up: tcp_stack_input() and tcp_stack_unreachable() of one stack, or a test's ears.
struct net_tcp {
	// The flow's addresses are set, its ports are the stack's to set.
	void (*input)(void *ctx, struct tcp_flow *, const uint8_t *segment, size_t len);
	void (*unreachable)(void *ctx, const struct tcp_flow *);
	void *ctx;
};

struct net_prefix {
	struct ip_addr ip;
	uint8_t len; // of the IPv4 prefix, 0..32
};

struct net_port_conf {
	struct net_device device;
	uint8_t mac[6];
	uint16_t mtu; // of IP packets
	struct net_prefix addresses[NET_MAX_ADDRESSES]; // ours; each also gives an on-link prefix
	uint32_t n_addresses;
	struct ip_addr gateway; // all zero = none
};

// NULL = out of memory. wheel is borrowed and outlives it. Addresses are IPv4, each of one port
// only. max_neighbors: hosts on our links that are sent to at one time, at least 1; their memory
// becomes resident as it is used.
struct net *net_new(const struct net_port_conf *, uint32_t n_ports, uint32_t max_neighbors,
	struct twheel *, uint64_t seed);
void net_free(struct net *);
// The stack is made with net_tcp_io(), then introduced here; before that TCP segments are dropped.
void net_set_tcp(struct net *, const struct net_tcp *);
// Tells of an address on a link that ARP has just brought (RFC 826), and that was not known to have
// this MAC, or announces itself (RFC 5227 2.3). Anybody on the link can make it do so, at any rate.
void net_set_on_neighbor(
	struct net *, void (*on_neighbor)(void *ctx, const struct ip_addr *), void *ctx);
// io for tcp_stack_new(): routes by destination (on-link prefixes, then the gateway), resolves the
// neighbor (holding a few frames meanwhile), fills IP and Ethernet headers. Its reserve() says
// NULL for want of a device's buffer only; what cannot be sent to this one destination is lost.
struct tcp_io net_tcp_io(struct net *);

// One received frame, borrowed for the call.
void net_input(struct net *, uint32_t port, const uint8_t *frame, size_t len);
// One that another worker received and answered if need was: this one learns of neighbors from it,
// and does nothing else.
void net_hear(struct net *, uint32_t port, const uint8_t *frame, size_t len);

// The port has another device: frames leave with that address from now on, and those to it are
// ours; and the link may be another, too: who is sent to is asked for anew.
void net_renew_port(struct net *, uint32_t port, const uint8_t mac[6]);
// Gratuitous ARP for every address: at start, after a link came up.
void net_announce(struct net *);
// Our address on the port that leads to dst (the source of upstream connections). False = no route.
[[nodiscard]] bool net_source_for(
	const struct net *, const struct ip_addr *dst, struct ip_addr *ret);

// Before a connection to dst, which has a route: gives its neighbor a place and asks for it. False
// = no room for another neighbor.
[[nodiscard]] bool net_prepare(struct net *, const struct ip_addr *dst);

// Frames in and out, and drops by cause.
struct counter_set net_counters(const struct net *);
void net_list_pools(const struct net *, struct pool_list *);
