// SPDX-License-Identifier: Apache-2.0
// xoshiro256** (Blackman and Vigna): one generator per owner, seeded by the caller. Not for
// secrets.
// Thread: the owner's.
#pragma once

#include <stdint.h>

struct rand {
	uint64_t s[4];
	// unused half of the last draw for rand_u32(), with a marker bit above; 0 = none
	uint64_t rest;
};

static inline void rand_init(struct rand *r, uint64_t seed)
{
	r->rest = 0;
	for (int i = 0; i < 4; i++) { // splitmix64 spreads the seed over the state
		seed += 0x9e3779b97f4a7c15;
		uint64_t z = seed;
		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
		z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
		r->s[i] = z ^ (z >> 31);
	}
}

static inline uint64_t rand_u64(struct rand *r)
{
	uint64_t *s = r->s;
	uint64_t x = s[1] * 5;
	uint64_t result = ((x << 7) | (x >> 57)) * 9;
	uint64_t t = s[1] << 17;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = (s[3] << 45) | (s[3] >> 19);
	return result;
}

// A draw for picks: every second call costs next to nothing.
static inline uint32_t rand_u32(struct rand *r)
{
	uint64_t x = r->rest;
	if (x) {
		r->rest = 0;
		return (uint32_t)x;
	}
	x = rand_u64(r);
	r->rest = x >> 32 | (uint64_t)1 << 32;
	return (uint32_t)x;
}

// Uniform in [0, n); 0 when n is 0. Unbiased (Lemire's multiply and reject).
static inline uint64_t rand_below(struct rand *r, uint64_t n)
{
	if (n == 0)
		return 0;
	unsigned __int128 m = (unsigned __int128)rand_u64(r) * n;
	if ((uint64_t)m < n) {
		uint64_t threshold = -n % n;
		while ((uint64_t)m < threshold)
			m = (unsigned __int128)rand_u64(r) * n;
	}
	return (uint64_t)(m >> 64);
}
