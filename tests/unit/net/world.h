// SPDX-License-Identifier: Apache-2.0
// A network layer on fake devices in virtual time: frames go in as bytes, those that come out are
// kept, and so is what TCP would have heard. For the tests of net/.
// Thread: the test's.
#pragma once

#include "dataplane/net/net.h"
#include "lb/base/time.h"

#include <stdbool.h>
#include <stdint.h>

#define WORLD_FRAMES 256
#define WORLD_NEIGHBORS 4096
#define WORLD_FRAME_MAX 2048
#define WORLD_SEQ 0x01020304

struct world_frame {
	uint32_t port;
	size_t len;
	uint8_t bytes[WORLD_FRAME_MAX];
};

struct world_port {
	struct world *world;
	uint32_t index;
	bool starved; // reserve() fails
	bool open;
	size_t open_len;
	uint8_t open_bytes[WORLD_FRAME_MAX];
};

// port 0: 10.0.0.1/24, 10.0.0.9/32, gateway 10.0.0.254; port 1: 10.1.0.1/16, 10.1.2.1/24
struct world {
	struct twheel *wheel;
	struct net *net;
	struct tcp_io io;
	struct world_port ports[2];
	struct world_frame sent[WORLD_FRAMES];
	uint32_t n_sent;
	// What TCP heard.
	uint32_t n_segments, n_marked;
	uint32_t overhead; // of what is coming, as it was told
	uint32_t segment_overhead;
	bool knows_none; // it has no connection
	struct ip_addr segment_local, segment_remote;
	size_t segment_len;
	uint8_t segment[WORLD_FRAME_MAX];
	uint32_t n_unreachable;
	struct tcp_flow unreachable; // the last one
	uint32_t unreachable_seq;
	void (*on_unreachable)(struct world *); // a test may react
	uint32_t n_too_big;
	struct tcp_flow too_big; // the last one
	uint32_t too_big_seq, too_big_mtu;
};

int world_setup(void **state); // cmocka's
int world_setup_ports(void **state, struct net_port_conf ports[2]); // devices and MACs are ours
int world_teardown(void **state);
struct net_device world_device(struct world *, uint32_t port); // what its frames go out by

extern const uint8_t world_mac[2][6]; // of our ports
extern const uint8_t peer_mac[6]; // 02:00:00:00:00:aa
extern const uint8_t broadcast_mac[6];

#define IP(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (d))

void world_advance(struct world *, uint64_t ns);
uint64_t world_count(const struct world *, const char *counter); // fails the test when unknown
void world_forget(struct world *); // what was sent and heard

struct arp_text {
	uint16_t op; // 1 request, 2 reply
	const uint8_t *from_mac;
	uint32_t from, to;
	const uint8_t *to_mac; // NULL = the port's first one
};
void world_arp_in(struct world *, uint32_t port, const struct arp_text *);
// The peer at ip answers our request.
void world_resolve(struct world *, uint32_t port, uint32_t ip, const uint8_t mac[6]);
bool is_arp_request(const struct world_frame *, uint32_t for_ip);

// An Ethernet frame with an IPv4 packet around payload; returns its length. Tests bend it.
size_t make_ip(uint8_t *frame, uint32_t src, uint32_t dst, uint8_t protocol, const void *payload,
	size_t len);
void fix_ip_checksum(uint8_t *frame);
void world_in(struct world *, uint32_t port, const uint8_t *frame, size_t len);

// One TCP segment of ours from local port 1000 to remote port 2000, with the number WORLD_SEQ.
// False = no room was given, or the segment had no way and is lost.
bool world_send_flow(struct world *, const struct ip_addr *local, const struct ip_addr *remote,
	const char *payload);
bool world_send(struct world *, uint32_t local, uint32_t remote, const char *payload);
