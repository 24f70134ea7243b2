// SPDX-License-Identifier: Apache-2.0
// Ethernet, ARP, neighbor discovery, IP and ICMP of one worker, between the devices and tcp/.
// Frames are bytes here; the device side is a vtable, so no test needs DPDK. Whatever is malformed
// or not for us is dropped and counted by cause.
// Thread: the owning worker.
#pragma once

#include "dataplane/tcp/tcp.h"
#include "lb/base/counter.h"
#include "lb/base/gateways.h"
#include "lb/base/ip.h"
#include "lb/base/pool.h"
#include "lb/base/twheel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct net;
struct net_tunnels;

#define NET_MAX_PORTS LB_MAX_PORTS
#define NET_MAX_ADDRESSES 16 // of one port
#define NET_MAX_VIPS 128 // those that go count until their clients have gone
#define NET_MAX_GATEWAYS LB_MAX_GATEWAYS // of one port

// A device as net/ sees it.
struct net_device {
	// Reserves one frame of len bytes. NULL = no buffer. At most one reservation is open at a
	// time.
	uint8_t *(*reserve)(void *ctx, size_t len);
	// Sends (or queues for the end of the turn) the frame last reserved.
	void (*send)(void *ctx, size_t len);
	// Cancels the open reservation.
	void (*cancel)(void *ctx);
	void *ctx;
};

// The layer above: tcp_stack_input(), tcp_stack_unreachable() and tcp_stack_too_big() of one stack,
// or a test.
struct net_tcp {
	// The flow's addresses are set; the stack sets its ports.
	void (*input)(void *ctx, struct tcp_flow *, const uint8_t *segment, size_t len);
	void (*unreachable)(void *ctx, const struct tcp_flow *, uint32_t seq);
	void (*too_big)(void *ctx, const struct tcp_flow *, uint32_t seq, uint32_t mtu);
	void *ctx;
	// As input(), of a packet that a router has marked (CE, RFC 3168 5). NULL = input().
	void (*input_marked)(void *ctx, struct tcp_flow *, const uint8_t *segment, size_t len);
	// The packets of what comes until the next call came within others, whose headers took so
	// many bytes; 0 = no longer. NULL = it is not told.
	void (*through)(void *ctx, uint32_t overhead);
	// True if a segment may be one for us: of a connection, or the beginning of one. As with
	// input(), its ports are the stack's to set. NULL = each may be.
	bool (*knows)(void *ctx, struct tcp_flow *, const uint8_t *segment, size_t len);
};

struct net_prefix {
	struct ip_addr ip;
	uint8_t len; // of the prefix, 0..32 of an IPv4 one, 0..128 of an IPv6 one
};

// How it is found out whether a gateway answers (gateway.h).
struct net_watch {
	uint64_t interval_ns; // between questions that are answered; 0 = it is not watched
	uint8_t n_missed; // that many questions without an answer: it is down; at least 1
	uint8_t n_answered; // that many with one: it is up again; at least 1
};

struct net_port_conf {
	struct net_device device;
	uint8_t mac[6];
	uint16_t mtu; // of IP packets
	struct net_prefix addresses[NET_MAX_ADDRESSES]; // ours; each also gives an on-link prefix
	uint32_t n_addresses;
	// For what is not on this link, of both families; those of IPv6 may be link-local. Flows
	// choose among those of one family that answer. :: = none at this place.
	struct ip_addr gateways[NET_MAX_GATEWAYS];
	bool first_gateway; // all take the first one that answers
	struct net_watch watch; // of these
	bool accept_ra; // of IPv6, what routers advertise: no gateway is of IPv6 then
	bool is_shared; // a kernel behind it has its addresses, too (foreign.h)
};

// A prefix that is ours beside the ports' addresses: frames to it are taken on every port.
struct net_vip {
	struct ip_prefix prefix;
	bool answers; // ARP and neighbor discovery tell of it
};

// Returns NULL if out of memory. wheel is borrowed and outlives it. Addresses are each of one
// port only; a port with an IPv6 one has a link-local one besides. max_neighbors: neighbors in use
// at one time, at least 1; their memory becomes resident as it is used.
struct net *net_new(const struct net_port_conf *, uint32_t n_ports, uint32_t max_neighbors,
	struct twheel *, uint64_t seed);
void net_free(struct net *);
// Copies the prefixes, which overlap nowhere; once, before any frame. n_places: of net_serve().
// Returns 0 or -ENOMEM.
[[nodiscard]] int net_set_vips(struct net *, const struct net_vip *, uint32_t n, uint32_t n_places);
// Others take their place, in which what is served stays. Of an address in two the first counts.
void net_change_vips(struct net *, const struct net_vip *, uint32_t n);
// Tunnels end here, of which at least one is listed; once, before any frame. They are borrowed and
// outlive it. What they bring is for addresses of those prefixes alone.
void net_set_tunnels(struct net *, const struct net_tunnels *);
// Whether a packet was taken out of one since the last call.
bool net_take_tunnelled(struct net *);
// At this place that address is served from now on, NULL = none: one in a prefix that answers is
// announced, if this worker announces, and reported to routers that ask for groups. Places beyond
// the last one and addresses of no prefix are ignored.
void net_serve(struct net *, uint32_t place, const struct ip_addr *);
// The stack is made with net_tcp_io() and then set here; before that TCP segments are dropped.
void net_set_tcp(struct net *, const struct net_tcp *);
// Sets a callback for addresses that ARP (RFC 826) or neighbor discovery (RFC 4861) reports on a
// link with a new MAC, or that announce themselves (RFC 5227 2.3). Any host on the link can trigger
// it at any rate.
void net_set_on_neighbor(
	struct net *, void (*on_neighbor)(void *ctx, const struct ip_addr *), void *ctx);
// The io for tcp_stack_new(): routes by destination (on-link prefixes, then the gateway), resolves
// the neighbor (holding a few frames meanwhile), fills in IP and Ethernet headers. Its reserve()
// returns NULL only if the device has no buffer; what cannot be sent to this one destination is
// discarded.
struct tcp_io net_tcp_io(struct net *);

// Where the worker that announces (net_announce()) says which gateways answer, and all follow it.
// Borrowed; once, before any frame. Without it the net layer has one of its own.
void net_share_gateways(struct net *, struct lb_gateways *);
// Once a turn: flows leave gateways that no longer answer, and come back to those that do.
void net_follow_gateways(struct net *);

// Processes one received frame, borrowed for the call.
void net_input(struct net *, uint32_t port, const uint8_t *frame, size_t len);
// Processes a frame that another worker received and answered: only learns neighbors from it, and
// what routers say of ways to hosts that a tunnel's segments go on to.
void net_hear(struct net *, uint32_t port, const uint8_t *frame, size_t len);

// Why the last frame that was dropped since the last call was: the number of one of net_counters();
// -1 = none was. What TCP drops is told by tcp_stack_take_drop().
int net_take_drop(struct net *);
// From now on this byte is not 0 while there is one to tell of; the caller may set it to 0, so that
// there is none. Borrowed; until then it is a byte of net's own.
void net_set_drop_mark(struct net *, uint8_t *);

// True = another process at the same ports answers for our addresses: frames are heard, and nobody
// who asks for an address or for an echo gets an answer. What is to be announced meanwhile is when
// this ends: it may be another host's by then, of which the other process knows.
void net_set_silent(struct net *, bool silent);

// The port has a new device, perhaps on another link: frames are sent from and accepted for its
// address from now on, neighbors are requested again, and what routers advertised is forgotten. For
// ten seconds nobody counts as unreachable (NET-44).
void net_renew_port(struct net *, uint32_t port, const uint8_t mac[6]);
// Sends gratuitous ARP or an unsolicited neighbor advertisement for every address of a port,
// reports the groups of IPv6 ones, and asks for routers where these are accepted: at start, and
// after a link came up.
// That of any port makes this the worker that announces what net_serve() names, and that watches
// the port's gateways: they are asked at once.
void net_announce(struct net *, uint32_t port);
// Our address on the port that leads to dst (the source of upstream connections). False = no route.
[[nodiscard]] bool net_source_for(
	const struct net *, const struct ip_addr *dst, struct ip_addr *ret);

// Call before connecting to dst, which has a route: reserves a neighbor entry and requests it.
// Returns false if there is no room for another neighbor.
[[nodiscard]] bool net_prepare(struct net *, const struct ip_addr *dst);

// Frames in and out, and drops by cause.
struct counter_set net_counters(const struct net *);
void net_list_pools(struct net *, struct pool_list *);
