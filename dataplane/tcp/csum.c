// SPDX-License-Identifier: Apache-2.0
// RFC 1071 2(B): the sum may be formed in native byte order and in wider words, folded at the end.
#include "dataplane/tcp/csum.h"

#include "lb/base/ip.h"

#include <string.h>

#define PROTO_TCP 6

static inline uint64_t load64(const uint8_t *p)
{
	uint64_t x;
	memcpy(&x, p, 8);
	return x;
}

// Ones' complement addition: the carry comes back in.
static inline uint64_t add(uint64_t a, uint64_t b)
{
	a += b;
	return a + (a < b);
}

static uint64_t sum_bytes(const uint8_t *p, size_t len)
{
	uint64_t a = 0, b = 0, c = 0, d = 0; // four chains, so that carries do not wait for others
	for (; len >= 32; p += 32, len -= 32) {
		a = add(a, load64(p));
		b = add(b, load64(p + 8));
		c = add(c, load64(p + 16));
		d = add(d, load64(p + 24));
	}
	a = add(add(a, b), add(c, d));
	for (; len >= 8; p += 8, len -= 8)
		a = add(a, load64(p));
	if (len) {
		uint64_t last = 0;
		memcpy(&last, p, len);
		a = add(a, last);
	}
	return a;
}

static uint16_t fold(uint64_t sum)
{
	sum = (sum & UINT32_MAX) + (sum >> 32);
	sum = (sum & UINT16_MAX) + (sum >> 16 & UINT16_MAX) + (sum >> 32);
	sum = (sum & UINT16_MAX) + (sum >> 16);
	sum = (sum & UINT16_MAX) + (sum >> 16);
	return (uint16_t)~sum;
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "lengths are swapped by hand");

// Both pseudo headers end in length and protocol, as 16-bit words: RFC 9293 3.1, 8200 8.1.
static uint64_t sum_pseudo(const struct ip_addr *src, const struct ip_addr *dst, size_t len)
{
	uint64_t sum = (uint64_t)__builtin_bswap16((uint16_t)len) + (uint64_t)(PROTO_TCP << 8);
	if (ip_is_v4(src) && ip_is_v4(dst)) {
		uint32_t s, d;
		memcpy(&s, src->b + 12, 4);
		memcpy(&d, dst->b + 12, 4);
		return sum + s + d;
	}
	return add(sum, add(sum_bytes(src->b, 16), sum_bytes(dst->b, 16)));
}

uint16_t tcp_csum(
	const struct ip_addr *src, const struct ip_addr *dst, const void *segment, size_t len)
{
	return fold(add(sum_pseudo(src, dst, len), sum_bytes(segment, len)));
}

uint16_t tcp_csum_built(const struct ip_addr *src, const struct ip_addr *dst, const void *segment,
	size_t header_len, size_t len)
{
	const uint8_t *p = segment;
	uint64_t sum = 0;
	for (size_t i = 0; i < header_len; i += 4) {
		uint32_t word;
		memcpy(&word, p + i, 4);
		sum += word;
	}
	sum = add(sum, sum_pseudo(src, dst, len));
	return fold(add(sum, sum_bytes(p + header_len, len - header_len)));
}
