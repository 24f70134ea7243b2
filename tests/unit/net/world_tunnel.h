// SPDX-License-Identifier: Apache-2.0
// The world of world.h at the end of tunnels of both kinds, from 10.0.5.0/24 and fd05::/64, with
// the VIPs 10.9.0.0/24 and 2001:db8:9::/64, and hosts to go on to: 10.0.0.32/27, and 10.1.0.40
// beyond a narrower link. Port 0 has 10.0.0.1/24, 2001:db8::1/64 and a gateway of either family;
// port 1 10.1.0.1/16 and an MTU of 1400.
// Thread: the test's.
#pragma once

#include "dataplane/net/tunnel_list.h"
#include "tests/unit/net/world.h"
#include "tests/unit/net/world6.h"

#define TIER "10.0.5.7"
#define TIER6 "fd05::7"
#define OURS "10.0.0.1"
#define VIP "10.9.0.7"
#define VIP6 "2001:db8:9::7"
#define CLIENT "192.0.2.1"
#define CLIENT6 "2001:db8:77::1"
#define HOP IP(10, 0, 0, 40)
#define HOP_OF_NARROW_LINK IP(10, 1, 0, 40)
#define GATEWAY "10.0.0.254"
#define GATEWAY6 "fe80::fe"
#define GUE_PORT 6080
#define ACK 0x10
#define SYN 0x02

extern struct net_tunnels world_tunnels; // as they are now; setup makes them anew

int world_tunnel_setup(void **state); // cmocka's

// A packet, without a frame around it.
struct packet {
	uint8_t bytes[1500];
	size_t len;
};

struct packet make_packet(
	const char *src, const char *dst, uint8_t protocol, const void *payload, size_t len);
struct packet make_segment(const char *src, const char *dst, uint8_t flags);
void fix_packet(struct packet *); // the checksum of its IPv4 header, after it was bent
// A tunnel's packet from there to us.
struct packet in_ip(const char *src, const struct packet *inner);
// gue: the header and its optional part, n bytes; none for variant 1.
struct packet in_gue(const char *src, const uint8_t *gue, size_t n, const struct packet *inner);

void world_packet_in(struct world *, const struct packet *); // to our port 0
// Of a packet that is taken: the segment that TCP hears is that of the packet within.
void assert_taken(struct world *, const struct packet *, const char *src, const char *dst);
void assert_dropped(struct world *, const struct packet *, const char *counter);
