// SPDX-License-Identifier: Apache-2.0
// What the files of net/ share: the state of one worker's network layer, and the calls between
// Ethernet, ARP, IP and ICMP. Private to this folder.
// Thread: the owning worker.
#pragma once

#include "dataplane/net/csum.h"
#include "dataplane/net/gateway_list.h"
#include "dataplane/net/neigh.h"
#include "dataplane/net/net.h"
#include "dataplane/net/ping.h"
#include "dataplane/net/tell.h"
#include "dataplane/net/vip_list.h"
#include "lb/base/container_of.h"
#include "lb/base/rand.h"
#include "lb/base/time.h"

#include <stdbool.h>

// Keeps rare cases in functions of their own, so that the common case needs fewer registers.
#define APART __attribute__((noinline))

#define ETH_HEADER 14
#define ETH_ADDRESS 6
#define IP4_HEADER 20
#define ETH_TYPE_IP4 0x0800
#define ETH_TYPE_ARP 0x0806
#define ETH_TYPE_IP6 0x86dd
#define ETH_TYPE_VLAN 0x8100 // 802.1Q
#define ETH_TYPE_VLANS 0x88a8 // 802.1ad
#define ETH_TAG 4
#define IP_PROTO_ICMP 1
#define IP_PROTO_TCP 6
#define IP_PROTO_UDP 17
#define MORE_OR_OFFSET 0x3fff // of a fragment of IPv4

// The list of counters, with the names that operators see. Some need explanation: eth_not_ours: for
// another station or a group. eth_ip6: on a port without an IPv6 address. arp_asked, arp_answered:
// requests and replies sent. arp_learned: neighbors that became or stayed reachable. arp_not_ours:
// neither for us nor a reply to us. arp_own: what we sent came back. arp_conflict: another host
// claims our address. arp_off_link: sender outside of the port's prefixes. gateways_silent: a gauge
// of those that left the last question without an answer. gateway_*: of the watch, by the worker
// that has it. hold_full, hold_dropped: frames that could not wait for a neighbor, or waited in
// vain. eth_vlan: of a VLAN, which the port has none of. ip_total_length: longer than the frame,
// which the device cut or whose length is wrong. ip_broadcast: unicast packet in a broadcast frame.
// icmp_forged: quotes a packet that we never sent. ip6_extension: too many extension headers, or
// cut ones. ip6_option: one that we don't know, and may not pass over. ip6_routing: a routing
// header that leads on. ip6_group: for a group, and no ICMPv6; or for one host in a group's frame.
// nd_*: as arp_*. mld_asked: queries that name us or all. tcp_absent: segments before
// net_set_tcp(). tunnel_packets: taken out of another one. tunnel_forged: from no configured
// source. tunnel_malformed: headers that tell of no packet within. tunnel_checksum: of UDP.
// tunnel_not_vip: what is within is for no address of vips. tunnel_nested: it is a tunnel's packet
// again. tunnel_congested: marked, and what is within can't be. tunnel_relayed: to the next hop.
// tunnel_hop_refused: one that is not configured, so that the packet was taken here.
// tunnel_hop_too_long: lost, as the way there is narrower. tunnel_hop_told: its sender was told so.
// tunnel_hop_mtu, tunnel_hop_unreachable: routers on that way said so.
#define NET_COUNTERS(X)                                                                            \
	X(rx_frames)                                                                               \
	X(tx_frames)                                                                               \
	X(tx_no_buffer)                                                                            \
	X(tx_no_route)                                                                             \
	X(eth_short)                                                                               \
	X(eth_not_ours)                                                                            \
	X(eth_bad_source)                                                                          \
	X(eth_vlan)                                                                                \
	X(eth_ip6)                                                                                 \
	X(eth_unknown_type)                                                                        \
	X(arp_asked)                                                                               \
	X(arp_answered)                                                                            \
	X(arp_learned)                                                                             \
	X(arp_malformed)                                                                           \
	X(arp_not_ours)                                                                            \
	X(arp_own)                                                                                 \
	X(arp_conflict)                                                                            \
	X(arp_off_link)                                                                            \
	X(neigh_full)                                                                              \
	X(neigh_evicted)                                                                           \
	X(neigh_failed)                                                                            \
	X(gateways_silent)                                                                         \
	X(gateway_asks)                                                                            \
	X(gateway_misses)                                                                          \
	X(gateway_downs)                                                                           \
	X(hold_full)                                                                               \
	X(hold_dropped)                                                                            \
	X(ip_short)                                                                                \
	X(ip_version)                                                                              \
	X(ip_header_length)                                                                        \
	X(ip_total_length)                                                                         \
	X(ip_checksum)                                                                             \
	X(ip_options)                                                                              \
	X(ip_fragment)                                                                             \
	X(ip_not_ours)                                                                             \
	X(ip_broadcast)                                                                            \
	X(ip_martian)                                                                              \
	X(ip_unknown_protocol)                                                                     \
	X(icmp_malformed)                                                                          \
	X(icmp_checksum)                                                                           \
	X(icmp_echo)                                                                               \
	X(icmp_echo_limited)                                                                       \
	X(icmp_unreachable)                                                                        \
	X(icmp_fragmentation_needed)                                                               \
	X(icmp_forged)                                                                             \
	X(icmp_ignored)                                                                            \
	X(ip6_short)                                                                               \
	X(ip6_version)                                                                             \
	X(ip6_length)                                                                              \
	X(ip6_extension)                                                                           \
	X(ip6_option)                                                                              \
	X(ip6_routing)                                                                             \
	X(ip6_fragment)                                                                            \
	X(ip6_not_ours)                                                                            \
	X(ip6_group)                                                                               \
	X(ip6_martian)                                                                             \
	X(ip6_unknown_protocol)                                                                    \
	X(icmp6_malformed)                                                                         \
	X(icmp6_checksum)                                                                          \
	X(icmp6_echo)                                                                              \
	X(icmp6_echo_limited)                                                                      \
	X(icmp6_unreachable)                                                                       \
	X(icmp6_too_big)                                                                           \
	X(icmp6_forged)                                                                            \
	X(icmp6_ignored)                                                                           \
	X(nd_asked)                                                                                \
	X(nd_answered)                                                                             \
	X(nd_learned)                                                                              \
	X(nd_malformed)                                                                            \
	X(nd_not_ours)                                                                             \
	X(nd_own)                                                                                  \
	X(nd_conflict)                                                                             \
	X(nd_off_link)                                                                             \
	X(mld_reported)                                                                            \
	X(mld_asked)                                                                               \
	X(mld_malformed)                                                                           \
	X(ra_asked)                                                                                \
	X(ra_heard)                                                                                \
	X(ra_full)                                                                                 \
	X(ra_malformed)                                                                            \
	X(tunnel_packets)                                                                          \
	X(tunnel_forged)                                                                           \
	X(tunnel_malformed)                                                                        \
	X(tunnel_checksum)                                                                         \
	X(tunnel_not_vip)                                                                          \
	X(tunnel_nested)                                                                           \
	X(tunnel_congested)                                                                        \
	X(tunnel_relayed)                                                                          \
	X(tunnel_hop_refused)                                                                      \
	X(tunnel_hop_too_long)                                                                     \
	X(tunnel_hop_told)                                                                         \
	X(tunnel_hop_mtu)                                                                          \
	X(tunnel_hop_unreachable)                                                                  \
	X(pings_sent)                                                                              \
	X(pings_answered)                                                                          \
	X(tcp_segments)                                                                            \
	X(tcp_absent)

#define X(name) NET_##name,
enum net_counter { NET_COUNTERS(X) NET_N_COUNTERS };
#undef X

#define NET_MAX_OWN (NET_MAX_PORTS * NET_MAX_ADDRESSES)
#define NET_OWN_SLOTS 512 // power of two, 4 times NET_MAX_OWN
#define NET_MAX_ROUTES (NET_MAX_OWN + 8 * NET_MAX_PORTS)
#define NET_DST_SLOTS 1024 // power of two
#define NET_ICMP_INTERVAL_NS NS_PER_MS // 1000 echo replies a second, and as many errors,
#define NET_ICMP_BURST 100 // after a silence that many at once

// What is to be reported of a port's groups (mld.c).
struct net_mld {
	struct twheel_timer timer; // the next report
	struct net *net; // borrowed
	uint8_t n_left; // reports of a change that are still to come
	bool asked_v1; // by a router of MLD's first version
};

// What routers on a port's link advertise (ra.c). Places whose time is 0 are free.
#define NET_MAX_ROUTERS 4
#define NET_MAX_LINK_PREFIXES 4
struct net_ra {
	struct twheel_timer timer; // the next to end, the next question, or change of routes
	struct net *net; // borrowed
	bool accepts; // else all are ignored
	uint8_t n_asks; // questions left
	uint64_t ask_ns; // time of the next one
	bool changed; // and routes have not followed yet
	uint64_t follow_ns; // they do no earlier
	struct net_router {
		struct ip_addr ip;
		int8_t preference; // RFC 4191: -1, 0, 1
		uint64_t until_ns;
	} routers[NET_MAX_ROUTERS];
	struct net_link_prefix {
		struct ip_addr ip;
		uint32_t bits;
		uint64_t until_ns;
	} prefixes[NET_MAX_LINK_PREFIXES];
};

// The advertised router of the highest preference, borrowed; NULL = none.
static inline const struct ip_addr *ra_gateway(const struct net_ra *ra)
{
	const struct net_router *best = NULL;
	for (uint32_t i = 0; i < NET_MAX_ROUTERS; i++) {
		const struct net_router *r = &ra->routers[i];
		if (r->until_ns && (!best || r->preference > best->preference))
			best = r;
	}
	return best ? &best->ip : NULL;
}

// The two bits of a packet that tell of congestion (RFC 3168 5).
enum ip_ecn { IP_NOT_ECT = 0, IP_ECT0 = 2, IP_CE = 3 };

struct net_port {
	struct net_device device;
	uint8_t mac[ETH_ADDRESS];
	uint16_t mtu;
	struct net_address {
		struct ip_addr ip;
		uint32_t bits; // of its prefix; of an IPv4 one with IP_V4_BITS
	} addresses[NET_MAX_ADDRESSES];
	uint32_t n_addresses;
	bool is_unannounced; // they are to be announced, once that is ours
	struct net_gateway gateways[NET_MAX_GATEWAYS];
	uint32_t n_gateways;
	bool first_gateway;
	struct net_watch watch; // of these
	bool is_shared; // with a kernel
	uint64_t settled_ns; // until then silence of neighbors says nothing; 0 = it does
	struct net_mld mld;
	struct net_ra ra;
	struct ip_addr link_local; // ours; all zero = no IPv6 on this port
};

static inline bool net_port_has_ip6(const struct net_port *p)
{
	return !ip_is_none(&p->link_local);
}

struct net_own {
	struct ip_addr ip; // all zero = free slot
	uint32_t port;
};

struct net_route {
	struct ip_addr prefix;
	uint32_t bits; // of it, as those of an address
	struct ip_addr gateway; // the first; all zero = on link
	struct ip_addr source; // our address on that link
	uint32_t port;
	bool is_shared; // another port has one of that prefix: see way.h
};

// The path for one destination, cached from the last packet.
#define NET_BY_HOPS 0x80000000u
#define NET_BY_SOURCE 0xffffffffu
struct net_dst {
	uint32_t ip;
	uint32_t generation; // valid while equal to the net's
	// Index of the entry; from NET_BY_HOPS on, the hops of that number; NET_BY_SOURCE = it
	// depends on our address (way.h).
	uint32_t neigh;
	uint32_t own; // index of our address last used by its packets
};

struct net_dst6 { // the same
	struct ip_addr ip;
	struct ip_addr own;
	uint32_t generation;
	uint32_t neigh;
};

// The way from one of our addresses to a destination that several ports reach, cached as well.
struct net_way {
	struct ip_addr src, dst;
	uint32_t generation;
	uint32_t neigh; // as in struct net_dst, never NET_BY_SOURCE
};

struct tunnel_packet;

// The end of tunnels (decap.c).
struct net_decap {
	const struct net_tunnels *tunnels; // borrowed; NULL = none end here
	void (*input)(struct net *, const struct tunnel_packet *);
	bool within; // a packet that one has brought is being processed
	bool taken; // one was taken out since net_take_tunnelled()
};

// A host that segments go on to, and how long a packet to it may be (relay_hop.h).
#define NET_RELAY_HOPS 64
struct net_relay_hop {
	uint32_t ip; // 0 = free
	uint16_t mtu;
	uint64_t until_ns;
};

// How many may be sent (icmp_allowed()).
struct net_rate {
	uint64_t tokens_ns; // accumulated time
	uint64_t last_ns;
};

// Another host that claims an address of ours.
#define NET_MAX_RIVALS 16 // of whom operators are told: the last ones
struct net_rival {
	struct ip_addr ip;
	uint64_t at_ns; // when it was heard last; 0 = free
	uint8_t mac[ETH_ADDRESS];
	uint8_t port;
};

// A frame between reserve and emit.
struct net_open {
	struct neigh *neigh; // NULL = the frame is discarded
	uint8_t *frame; // NULL = no reservation is open
	struct neigh_held *held; // NULL = the frame is in a device buffer
};

struct net {
	struct twheel *wheel; // borrowed
	struct net_tcp tcp; // input NULL = not set yet
	void (*on_neighbor)(void *ctx, const struct ip_addr *); // may be NULL
	void *on_neighbor_ctx;
	struct net_port ports[NET_MAX_PORTS];
	uint32_t n_ports;
	uint32_t n_routes;
	struct net_route routes[NET_MAX_ROUTES]; // longest prefix first
	struct net_own own[NET_OWN_SLOTS];
	struct rand rand;
	// From the seed: remote hosts must not choose collisions.
	uint64_t hash_key; // odd
	uint64_t hash_keys[6];
	uint32_t generation; // of dst; never 0
	struct net_dst dst[NET_DST_SLOTS];
	struct net_dst6 dst6[NET_DST_SLOTS];
	struct net_way ways[NET_DST_SLOTS];
	struct net_open open;
	uint8_t *lost; // owned; buffer for frames that are discarded
	size_t max_frame;
	struct neigh_table neigh;
	struct net_rate echoes, errors; // of ICMP: a flood of one must not silence the other
	struct net_vips vips;
	struct net_hops hops[NET_MAX_HOPS];
	struct lb_gateways *board; // borrowed, or own_board
	uint32_t n_gateway_changes; // of it, that were followed
	struct lb_gateways own_board;
	struct net_decap decap;
	struct net_relay_hop relay_hops[NET_RELAY_HOPS];
	struct net_rival rivals[NET_MAX_RIVALS];
	struct net_tell tell;
	struct net_ping ping;
	uint64_t defended_ns; // when an address was last defended; 0 = never
	uint64_t counters[NET_N_COUNTERS];
	bool silent; // see net_set_silent()
	uint8_t *dropped; // enum net_counter: why the last frame was; 0 = see net_take_drop()
	uint8_t own_dropped; // see net_set_drop_mark()
};
_Static_assert(NET_rx_frames == 0 && NET_N_COUNTERS <= UINT8_MAX, "dropped");

static inline void net_count(struct net *net, enum net_counter which)
{
	counter_add(&net->counters[which], 1);
}

// The frame that is looked at goes no further.
static inline void net_drop(struct net *net, enum net_counter why)
{
	net_count(net, why);
	*net->dropped = (uint8_t)why;
}

// Upper bits of a product with a secret odd number: few collisions, none predictable.
static inline uint32_t net_hash_ip4(const struct net *net, uint32_t ip, uint32_t n_slots)
{
	return (uint32_t)((unsigned __int128)((ip + 1) * net->hash_key) * n_slots >> 64);
}

// The same of four words of an address, and of a port: a multilinear hash (Thorup, "High Speed
// Hashing for Integers and Strings", 3.2).
static inline uint32_t net_hash(
	const struct net *net, const struct ip_addr *ip, uint32_t port, uint32_t n_slots)
{
	uint32_t words[4];
	memcpy(words, ip->b, sizeof(words));
	uint64_t sum = net->hash_keys[4] * port + net->hash_keys[5];
	for (unsigned i = 0; i < 4; i++)
		sum += net->hash_keys[i] * words[i];
	return (uint32_t)((sum >> 32) * n_slots >> 32);
}

// The layer above gets a segment; ecn: the packet's enum ip_ecn.
static inline void net_tcp_input(
	struct net *net, struct tcp_flow *flow, uint32_t ecn, const uint8_t *segment, size_t len)
{
	if (ecn == IP_CE && net->tcp.input_marked)
		net->tcp.input_marked(net->tcp.ctx, flow, segment, len);
	else
		net->tcp.input(net->tcp.ctx, flow, segment, len);
}

// route.c
void net_build_routes(struct net *);
// The same when something has changed: paths that are known are looked up anew.
void net_rebuild_routes(struct net *);
// The next packet to each destination finds its neighbor anew.
void net_forget_paths(struct net *);
// NULL = there is none. Linear in the number of configured prefixes; the dst cache makes it rare.
const struct net_route *net_route_find(const struct net *, const struct ip_addr *dst);
// The same, but of several with one prefix that of the port which has the address src; NULL = any.
const struct net_route *net_route_from(
	const struct net *, const struct ip_addr *src, const struct ip_addr *dst);
// Who takes what goes to dst: its gateway, or dst itself.
static inline const struct ip_addr *net_route_hop(
	const struct net_route *route, const struct ip_addr *dst)
{
	return ip_is_none(&route->gateway) ? dst : &route->gateway;
}
// Of a port with several gateways, the one that a flow takes to dst; without a flow, the one of all
// that is sent to dst.
static inline struct neigh *net_hops_choose(const struct net *net, uint32_t hops,
	const struct ip_addr *dst, const struct tcp_flow *flow)
{
	uint32_t ports = flow ? (uint32_t)flow->local_port << 16 | flow->remote_port : 0;
	return net->hops[hops].slots[net_hash(net, dst, ports, NET_HOP_SLOTS)];
}
// The same of a route. NULL = no choice: see net_route_hop().
static inline struct neigh *net_route_choose(const struct net *net, const struct net_route *route,
	const struct ip_addr *dst, const struct tcp_flow *flow)
{
	uint32_t hops = net_hops_of(route->port, ip_is_v4(dst));
	bool several = !ip_is_none(&route->gateway) && net->hops[hops].slots[0];
	return several ? net_hops_choose(net, hops, dst, flow) : NULL;
}
// The port by which the path leads that is no NET_BY_SOURCE.
static inline uint32_t net_way_port(const struct net *net, uint32_t way)
{
	return way < NET_BY_HOPS ? net->neigh.entries[way].port : (way - NET_BY_HOPS) / 2;
}
// Our address for what begins here and takes that route (RFC 6724 5, rules 2, 6 and 8).
struct ip_addr net_route_source(
	const struct net *, const struct net_route *, const struct ip_addr *dst);
// An address of a port, or of a VIP prefix.
bool net_is_own(const struct net *, const struct ip_addr *);
// One that ARP and neighbor discovery answer for on that port's link.
bool net_is_own_of_port(const struct net *, const struct ip_addr *, uint32_t port);
// Our address from which a neighbor on that port's link is asked.
struct ip_addr net_source_on(const struct net *, uint32_t port, const struct ip_addr *neighbor);
// True if the address is in one of the port's prefixes, or is its gateway.
bool net_is_on_link(const struct net *, const struct ip_addr *, uint32_t port);
// True if no host on our links may send from this address (RFC 1122 3.2.1.3, RFC 4291 2.5, 2.7).
bool net_is_martian(const struct net *, const struct ip_addr *);

// True if the frame has a tag without a VLAN, a priority alone, which says nothing to us (IEEE
// 802.1Q 6.9.1). len >= ETH_HEADER.
static inline bool eth_is_priority_tagged(const uint8_t *frame, size_t len)
{
	return load16(frame + 12) == ETH_TYPE_VLAN && len >= ETH_HEADER + ETH_TAG &&
	       !(load16(frame + 14) & 0xfff);
}

// rival.c: another host claims an address of ours on this port's link.
void net_note_rival(struct net *, uint32_t port, const struct ip_addr *, const uint8_t mac[6]);

// eth.c
void eth_fill(const struct net_port *, uint8_t *frame, const uint8_t dst[6], uint16_t type);
void eth_send(struct net *, uint32_t port, size_t len);

// arp.c
void arp_input(struct net *, uint32_t port, const uint8_t *arp, size_t len);
// Only learns from the packet: another worker answers it.
void arp_hear(struct net *, uint32_t port, const uint8_t *arp, size_t len);
// Requests a neighbor's address: by broadcast, or from the last known MAC only.
void arp_ask(struct net *, const struct neigh *, bool broadcast);
void arp_announce(struct net *, uint32_t port, const struct ip_addr *);

// nd.c, of IPv6 what arp.c is of IPv4
void nd_ask(struct net *, const struct neigh *, bool multicast);
void nd_announce(struct net *, uint32_t port, const struct ip_addr *);

// ip4.c
void ip4_input(struct net *, const uint8_t *packet, size_t len, bool broadcast);
// Only learns from it: another worker has counted it.
void ip4_hear(struct net *, const uint8_t *packet, size_t len);
// Reserves a payload of len bytes to dst, behind the headers. NULL = no device buffer, counted.
// Without a path to dst (no route, no neighbor entry, no room to wait) the packet is counted and
// discarded, since there may be buffers for other destinations. ip4_emit() must follow before any
// other send. The flow chooses among several gateways; NULL = all that goes to dst takes one.
uint8_t *ip4_reserve(struct net *, uint32_t dst, const struct tcp_flow *, size_t len);
void ip4_emit(struct net *, uint32_t src, uint32_t dst, uint8_t protocol, enum ip_ecn, size_t len);
// Returns the neighbor towards dst, cached after the first call. NULL is counted.
struct neigh *ip4_next_hop(struct net *, uint32_t dst, const struct tcp_flow *);
// The MTU of the link towards dst, by which the flow leaves; NULL = as with ip4_reserve().
uint16_t ip4_mtu(struct net *, uint32_t dst, const struct tcp_flow *);

// icmp.c
// Takes one of what may be sent now, of either family.
bool icmp_allowed(const struct net *, struct net_rate *);
void icmp_input(struct net *, uint32_t local, uint32_t remote, const uint8_t *message, size_t len);
// Of a message that another worker has answered.
void icmp_hear(struct net *, uint32_t local, const uint8_t *message, size_t len);
