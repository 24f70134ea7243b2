// SPDX-License-Identifier: Apache-2.0
// The Toeplitz hash of devices' RSS (Microsoft's "RSS hashing functions"), over an address
// pair of either family and two ports. Own code instead of DPDK's rte_thash, which walks the set
// bits of its input one by one: this runs for every segment if the device does not hash.
// Thread: constant after init.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TOEPLITZ_NIBBLES 72 // of two IPv6 addresses and two ports
#define TOEPLITZ_KEY_MIN 40 // bytes of a key that such an input meets

// The hash is linear: the precomputed contribution of each half byte of the input.
struct toeplitz {
	uint32_t adds[TOEPLITZ_NIBBLES][16];
};

// key: at least TOEPLITZ_KEY_MIN bytes.
void toeplitz_init(struct toeplitz *, const uint8_t *key);

// The part of a word in host order whose bits stand behind n_before others of the input.
static inline uint32_t toeplitz_part(const struct toeplitz *t, unsigned n_before, uint32_t word)
{
	uint32_t hash = 0;
	for (unsigned n = 0; n < 8; n++)
		hash ^= t->adds[n_before / 4 + n][word >> (28 - 4 * n) & 15];
	return hash;
}

// For a received packet: its source is the remote side. Host order.
static inline uint32_t toeplitz_hash(
	const struct toeplitz *t, uint32_t src, uint32_t dst, uint16_t src_port, uint16_t dst_port)
{
	return toeplitz_part(t, 0, src) ^ toeplitz_part(t, 32, dst) ^
	       toeplitz_part(t, 64, (uint32_t)src_port << 16 | dst_port);
}

// The same of IPv6 addresses of 16 bytes, in network order.
static inline uint32_t toeplitz_hash6(const struct toeplitz *t, const uint8_t *src,
	const uint8_t *dst, uint16_t src_port, uint16_t dst_port)
{
	uint32_t hash = toeplitz_part(t, 256, (uint32_t)src_port << 16 | dst_port);
	for (unsigned w = 0; w < 4; w++) {
		uint32_t from, to;
		memcpy(&from, src + (size_t)4 * w, sizeof(from));
		memcpy(&to, dst + (size_t)4 * w, sizeof(to));
		hash ^= toeplitz_part(t, 32 * w, __builtin_bswap32(from));
		hash ^= toeplitz_part(t, 128 + 32 * w, __builtin_bswap32(to));
	}
	return hash;
}
