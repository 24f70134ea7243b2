// SPDX-License-Identifier: Apache-2.0
// The Toeplitz hash of devices' RSS (Microsoft's "RSS hashing functions"), over an IPv4 address
// pair and two ports. Own code instead of DPDK's rte_thash, which walks the set bits of its input
// one by one: this runs for every segment if the device does not hash.
// Thread: constant after init.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TOEPLITZ_NIBBLES 24 // of two addresses and two ports
#define TOEPLITZ_KEY_MIN 16 // bytes of a key that such an input meets

// The hash is linear: the precomputed contribution of each half byte of the input.
struct toeplitz {
	uint32_t adds[TOEPLITZ_NIBBLES][16];
};

// key: at least TOEPLITZ_KEY_MIN bytes.
void toeplitz_init(struct toeplitz *, const uint8_t *key);

// For a received packet: its source is the remote side. Host order.
static inline uint32_t toeplitz_hash(
	const struct toeplitz *t, uint32_t src, uint32_t dst, uint16_t src_port, uint16_t dst_port)
{
	uint32_t words[3] = {src, dst, (uint32_t)src_port << 16 | dst_port};
	uint32_t hash = 0;
	for (unsigned w = 0; w < 3; w++)
		for (unsigned n = 0; n < 8; n++)
			hash ^= t->adds[8 * w + n][words[w] >> (28 - 4 * n) & 15];
	return hash;
}
