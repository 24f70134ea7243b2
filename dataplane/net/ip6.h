// SPDX-License-Identifier: Apache-2.0
// IPv6 packets (RFC 8200) within net/: what was received, and the ways to send. Private to this
// folder.
// Thread: the owning worker.
#pragma once

#include "dataplane/net/ip6_header.h"

// A received packet whose headers are sound, borrowed.
struct ip6_packet {
	uint32_t port;
	const uint8_t *src_mac; // of its frame
	struct ip_addr src, dst;
	uint8_t hop_limit;
	uint8_t protocol;
	bool from_link; // by its hop limit (RFC 4861 7.1), and in no fragment (RFC 6980 5)
	const uint8_t *payload; // behind extension headers
	size_t len;
};

// What stands behind the extension headers.
struct ip6_payload {
	uint8_t protocol;
	bool atomic; // there was a fragment header, of an only fragment (RFC 6946)
	size_t at; // from the IP header on
};

// Where a packet came in.
struct ip6_origin {
	uint32_t port;
	bool in_group; // its frame was for an IPv6 group, else for this station
	const uint8_t *mac; // of who sent the frame, borrowed
};
void ip6_input(struct net *, const struct ip6_origin *, const uint8_t *packet, size_t len);
// Only learns neighbors from it: another worker answers.
void ip6_hear(struct net *, const struct ip6_origin *, const uint8_t *packet, size_t len);
// Finds what a packet carries. len: of the packet, at least IP6_HEADER. NET_N_COUNTERS = found;
// otherwise the cause to drop it for.
enum net_counter ip6_find_payload(const uint8_t *ip, size_t len, struct ip6_payload *ret);

// As their kin of ip4.c. len: of the payload. The neighbor of reserve() may be NULL.
uint8_t *ip6_reserve(struct net *, struct neigh *, size_t len);
void ip6_emit(struct net *, const struct ip6_fields *, size_t len);
struct neigh *ip6_next_hop(struct net *, const struct ip_addr *dst, const struct tcp_flow *);
uint16_t ip6_mtu(struct net *, const struct ip_addr *dst, const struct tcp_flow *);

// icmp6.c
void icmp6_input(struct net *, const struct ip6_packet *);
void icmp6_hear(struct net *, const struct ip6_packet *);

// icmp6_out.c
// Over the message and the pseudo-header; 0 = the field in it is right.
uint16_t icmp6_checksum(
	const struct ip_addr *src, const struct ip_addr *dst, const uint8_t *message, size_t len);
void icmp6_fill_checksum(const struct ip6_fields *, uint8_t *message, size_t len); // it is zero
// Sends one message, its checksum still zero, on a port's link: to a group, or to a station whose
// MAC address is known.
void icmp6_send_on_link(struct net *, uint32_t port, const uint8_t mac[ETH_ADDRESS],
	const struct ip6_fields *, const uint8_t *message, size_t len);

// nd.c: neighbor discovery (RFC 4861).
void nd_input(struct net *, const struct ip6_packet *);
void nd_hear(struct net *, const struct ip6_packet *);
// The group in which a neighbor is asked for (RFC 4291 2.7.1), and the address of a group's frames
// (RFC 2464 7).
struct ip_addr nd_group_of(const struct ip_addr *);
void nd_mac_of_group(const struct ip_addr *group, uint8_t ret[ETH_ADDRESS]);
// The address that a station makes of its MAC address (RFC 4291 2.5.6, appendix A).
struct ip_addr nd_link_local(const uint8_t mac[ETH_ADDRESS]);

// mld.c: multicast listener discovery (RFC 3810). Only for a port with IPv6.
void mld_init(struct net *, struct net_port *);
void mld_fini(struct net *);
// Reports the groups of the port's addresses, again after a second.
void mld_join(struct net_port *);
void mld_query(struct net *, const struct ip6_packet *);

// ra.c: router advertisements. Only for a port with IPv6.
void ra_init(struct net *, struct net_port *, bool accepts);
void ra_fini(struct net *);
void ra_forget(struct net_port *); // routers and prefixes: its link may be another one
void ra_ask(struct net_port *); // three times, until one answers that it is a router
void ra_input(struct net *, const struct ip6_packet *);
