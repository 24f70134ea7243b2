// SPDX-License-Identifier: Apache-2.0
#include "lb/base/siphash.h"

#include <string.h>

static inline uint64_t load64(const void *p)
{
	uint64_t x;
	memcpy(&x, p, 8);
	return x;
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "load64 reads native order");

uint64_t siphash24(const uint8_t key[16], const void *data, size_t len)
{
	const uint8_t *p = data;
	struct sip s = sip_init(key);
	uint64_t last = (uint64_t)len << 56;
	for (; len >= 8; p += 8, len -= 8) {
		uint64_t m = load64(p);
		s.v3 ^= m;
		sip_round(&s);
		sip_round(&s);
		s.v0 ^= m;
	}
	for (size_t i = 0; i < len; i++)
		last |= (uint64_t)p[i] << (8 * i);
	s.v3 ^= last;
	sip_round(&s);
	sip_round(&s);
	s.v0 ^= last;
	s.v2 ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
