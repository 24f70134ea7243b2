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

// One to seven bytes, as the lower ones of a word.
static inline uint64_t load_end(const uint8_t *p, size_t len)
{
	uint64_t x = 0;
	if (len & 1)
		x = p[len - 1];
	if (len & 2) {
		uint16_t two;
		memcpy(&two, p + (len & 4), 2);
		x = x << 16 | two;
	}
	if (len & 4) {
		uint32_t four;
		memcpy(&four, p, 4);
		x = x << 32 | four;
	}
	return x;
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

// A function of its own: among others, gcc keeps the sums in memory between any two additions.
static __attribute__((noinline)) uint64_t sum_bytes(const uint8_t *p, size_t len)
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
	return len ? add(a, load_end(p, len)) : a;
}

// Halves are added by turning the sum: the upper half gets the lower one and its carry.
static inline uint32_t fold32(uint64_t sum)
{
	return (uint32_t)((sum + (sum >> 32 | sum << 32)) >> 32);
}

static inline uint16_t fold(uint64_t sum)
{
	uint32_t x = fold32(sum);
	return (uint16_t)((x + (x >> 16 | x << 16)) >> 16);
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "lengths are swapped by hand");

// Pseudo headers of both families end in length and protocol, as 16-bit words (RFC 9293 3.1, RFC
// 8200 8.1).
uint16_t tcp_csum_flow(const struct ip_addr *a, const struct ip_addr *b)
{
	uint64_t sum = PROTO_TCP << 8;
	if (ip_is_v4(a) && ip_is_v4(b))
		return fold(sum + (load64(a->b + 8) >> 32) + (load64(b->b + 8) >> 32));
	for (unsigned i = 0; i < 16; i += 8)
		sum = add(sum, add(load64(a->b + i), load64(b->b + i)));
	return fold(sum);
}

static inline uint64_t sum_pseudo(uint16_t flow_sum, size_t len)
{
	return (uint64_t)flow_sum + __builtin_bswap16((uint16_t)len);
}

uint16_t tcp_csum_segment(uint16_t flow_sum, const void *segment, size_t len)
{
	return (uint16_t)~fold(add(sum_pseudo(flow_sum, len), sum_bytes(segment, len)));
}

uint16_t tcp_csum_rest(
	uint16_t flow_sum, uint64_t header_sum, size_t header_len, const void *rest, size_t len)
{
	uint64_t sum = header_sum + sum_pseudo(flow_sum, header_len + len);
	return (uint16_t)~fold(len ? add(sum, sum_bytes(rest, len)) : sum);
}
