// SPDX-License-Identifier: Apache-2.0
// RFC 1071 2(B): the sum may be formed in native byte order and in wider words, folded at the end.
#include "dataplane/tcp/csum.h"

#include "lb/base/ip.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif
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

// Four words, each with the carry of the one before. Written as additions alone, compilers move
// each carry into a register of its own.
static inline uint64_t add_four(uint64_t sum, const uint8_t *p)
{
#ifdef __x86_64__
	unsigned long long a = sum;
	unsigned char carry = _addcarry_u64(0, a, load64(p), &a);
	carry = _addcarry_u64(carry, a, load64(p + 8), &a);
	carry = _addcarry_u64(carry, a, load64(p + 16), &a);
	carry = _addcarry_u64(carry, a, load64(p + 24), &a);
	return a + carry;
#else
	return add(add(sum, add(load64(p), load64(p + 8))), add(load64(p + 16), load64(p + 24)));
#endif
}

static inline uint64_t sum_bytes(const uint8_t *p, size_t len)
{
	uint64_t a = 0, b = 0; // two chains, so that carries of one do not wait for the other's
	for (; len >= 64; p += 64, len -= 64) {
		a = add_four(a, p);
		b = add_four(b, p + 32);
	}
	a = add(a, b);
	if (len >= 32) {
		a = add_four(a, p);
		p += 32;
		len -= 32;
	}
	for (; len >= 8; p += 8, len -= 8)
		a = add(a, load64(p));
	if (len) {
		uint64_t last = 0;
		memcpy(&last, p, len);
		a = add(a, last);
	}
	return a;
}

static inline uint16_t fold(uint64_t sum)
{
	sum = (sum & UINT32_MAX) + (sum >> 32);
	sum = (sum & UINT16_MAX) + (sum >> 16 & UINT16_MAX) + (sum >> 32);
	sum = (sum & UINT16_MAX) + (sum >> 16);
	sum = (sum & UINT16_MAX) + (sum >> 16);
	return (uint16_t)~sum;
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "lengths are swapped by hand");

// Both pseudo headers end in length and protocol, as 16-bit words: RFC 9293 3.1, 8200 8.1.
static inline uint64_t sum_pseudo(const struct ip_addr *src, const struct ip_addr *dst, size_t len)
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

uint16_t tcp_csum_rest(const struct ip_addr *src, const struct ip_addr *dst, uint64_t header_sum,
	size_t header_len, const void *rest, size_t len)
{
	uint64_t sum = add(header_sum, sum_pseudo(src, dst, header_len + len));
	return fold(len ? add(sum, sum_bytes(rest, len)) : sum);
}
