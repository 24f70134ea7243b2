// SPDX-License-Identifier: Apache-2.0
// SipHash (Aumasson and Bernstein): keyed hash for table keys and sequence numbers that a
// remote host must not be able to choose or predict. Own code, since OpenSSL's EVP_MAC costs
// several allocations and about a microsecond a call, and this runs for every segment; tested
// against it.
// Thread: any.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are read in native order");

struct sip {
	uint64_t v0, v1, v2, v3;
};

static inline uint64_t sip_rotl(uint64_t x, int n)
{
	return x << n | x >> (64 - n);
}

static inline void sip_round(struct sip *s)
{
	s->v0 += s->v1;
	s->v1 = sip_rotl(s->v1, 13) ^ s->v0;
	s->v0 = sip_rotl(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = sip_rotl(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = sip_rotl(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = sip_rotl(s->v1, 17) ^ s->v2;
	s->v2 = sip_rotl(s->v2, 32);
}

static inline struct sip sip_init(const uint8_t key[16])
{
	uint64_t k[2];
	memcpy(k, key, sizeof(k));
	return (struct sip){k[0] ^ 0x736f6d6570736575, k[1] ^ 0x646f72616e646f6d,
		k[0] ^ 0x6c7967656e657261, k[1] ^ 0x7465646279746573};
}

// SipHash-c-d: c rounds per word, d at the end. The message: n whole words of eight bytes, as in
// memory, and in `last` up to seven more bytes with the total length (modulo 256) above them. s:
// sip_init() of the key.
static inline uint64_t siphash(
	struct sip s, int c, int d, const uint64_t *words, size_t n, uint64_t last)
{
	for (size_t i = 0; i <= n; i++) {
		uint64_t m = i < n ? words[i] : last;
		s.v3 ^= m;
		for (int k = 0; k < c; k++)
			sip_round(&s);
		s.v0 ^= m;
	}
	s.v2 ^= 0xff;
	for (int k = 0; k < d; k++)
		sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

// For values that the peer sees.
static inline uint64_t siphash24(struct sip s, const uint64_t *words, size_t n, uint64_t last)
{
	return siphash(s, 2, 4, words, n, last);
}

// For tables whose places nobody sees: fewer rounds, as in the tables of Linux, Rust and Python.
// Python.
static inline uint64_t siphash13(struct sip s, const uint64_t *words, size_t n, uint64_t last)
{
	return siphash(s, 1, 3, words, n, last);
}
