// SPDX-License-Identifier: Apache-2.0
// Internet addresses in one form: 16 bytes, IPv4 as v4-mapped IPv6 (RFC 4291 2.5.5.2).
// Thread: any.
#pragma once

#include "lb/base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "ip_from_v4() swaps by hand");

struct ip_addr {
	uint8_t b[16]; // network order
};

struct ip_port {
	struct ip_addr ip;
	uint16_t port; // host order
};

struct ip_prefix {
	struct ip_addr ip; // only its first bits count
	uint8_t bits; // of an IPv4 prefix IP_V4_BITS more than it has, so that families never match
};

#define IP_PORT_TEXT_MAX 64

// a.b.c.d as a host-order number.
static inline struct ip_addr ip_from_v4(uint32_t v4)
{
	struct ip_addr a = {{0}};
	// A single store for a value that is read as one word: a narrower store would stall the
	// load.
	uint64_t low = UINT64_C(0xffff0000) | (uint64_t)__builtin_bswap32(v4) << 32;
	memcpy(a.b + 8, &low, sizeof(low));
	return a;
}

static inline bool ip_is_v4(const struct ip_addr *a)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	return memcmp(a->b, mapped, sizeof(mapped)) == 0;
}

// In host order. ip_is_v4() must be true.
static inline uint32_t ip_to_v4(const struct ip_addr *a)
{
	return (uint32_t)a->b[12] << 24 | (uint32_t)a->b[13] << 16 | (uint32_t)a->b[14] << 8 |
	       a->b[15];
}

static inline bool ip_eq(const struct ip_addr *a, const struct ip_addr *b)
{
	return memcmp(a->b, b->b, sizeof(a->b)) == 0;
}

static inline bool ip_port_eq(const struct ip_port *a, const struct ip_port *b)
{
	return a->port == b->port && ip_eq(&a->ip, &b->ip);
}

// An order, to sort by: less than, equal to or greater than 0.
int ip_port_cmp(const struct ip_port *, const struct ip_port *);

// Of an IPv4 address: 96 bits more than its prefix has (RFC 4291 2.5.5.2).
#define IP_V4_BITS 96

// Have both the same first bits? Families never match: an IPv4 prefix has at least IP_V4_BITS, and
// an IPv6 one contains no IPv4 address.
static inline bool ip_in_prefix(
	const struct ip_addr *a, const struct ip_addr *prefix, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;
	if (ip_is_v4(a) != (ip_is_v4(prefix) && bits >= IP_V4_BITS) ||
		memcmp(a->b, prefix->b, whole) != 0)
		return false;
	return !rest || (a->b[whole] ^ prefix->b[whole]) >> (8 - rest) == 0;
}

static inline bool ip_is_none(const struct ip_addr *a) // ::, which is no host's address
{
	static const struct ip_addr none;
	return ip_eq(a, &none);
}

static inline bool ip_is_link_local(const struct ip_addr *a) // of IPv6 (RFC 4291 2.5.6)
{
	return a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80;
}

// Literal address only (no names). False = not an address.
[[nodiscard]] bool ip_parse(const char *text, struct ip_addr *ret);
[[nodiscard]] bool ip_parse_str(struct str text, struct ip_addr *ret);
// "10.0.0.7:8080" or "[fd00::7]:8080". False = anything else.
[[nodiscard]] bool ip_port_parse(struct str text, struct ip_port *ret);
// The same into text[IP_PORT_TEXT_MAX]; returns text.
const char *ip_port_print(const struct ip_port *, char *text);
// "10.0.0.7" or "fd00::7"; returns text.
const char *ip_print(const struct ip_addr *, char *text);
