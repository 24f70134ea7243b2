// SPDX-License-Identifier: Apache-2.0
// The world of world.h with IPv6 addresses: port 0 has 2001:db8::1/64, fd00::1/64 and 10.0.0.1/24,
// gateway fe80::fe; port 1 2001:db8:1::1/64.
// Thread: the test's.
#pragma once

#include "tests/unit/net/world.h"

#define PEER6 "2001:db8::7"
#define OURS6 "2001:db8::1"

int world6_setup(void **state);

struct ip_addr ip6_of(const char *text);

// A frame from the peer to our port 0 around an IPv6 packet; returns its length. Tests bend it.
size_t make_ip6(uint8_t *frame, const char *src, const char *dst, uint8_t protocol,
	const void *payload, size_t len);
// The same of an ICMPv6 message, whose checksum is filled in, here and after it was bent.
size_t make_icmp6(
	uint8_t *frame, const char *src, const char *dst, const void *message, size_t len);
void fix_icmp6_checksum(uint8_t *frame);
// Puts a fragment header in front of its payload: it is its packet's only one. Returns the new
// length.
size_t put_fragment_header(uint8_t *frame, size_t len);

// Messages of neighbor discovery from the peer; mac in their option, NULL = none.
struct nd_text {
	const char *src, *dst, *target;
	const uint8_t *mac;
	uint8_t flags; // of an advertisement: 0x40 solicited, 0x20 override
};
size_t make_solicitation(uint8_t *frame, const struct nd_text *);
size_t make_advertisement(uint8_t *frame, const struct nd_text *);
void world6_solicit(struct world *, uint32_t port, const struct nd_text *);
void world6_advertise(struct world *, uint32_t port, const struct nd_text *);
// The peer at ip answers our solicitation.
void world6_resolve(struct world *, uint32_t port, const char *ip, const uint8_t mac[6]);
bool is_solicitation(const struct world_frame *, const char *for_ip);
bool is_advertisement(const struct world_frame *, const char *of_ip);

// As world_send().
bool world6_send(struct world *, const char *local, const char *remote, const char *payload);
