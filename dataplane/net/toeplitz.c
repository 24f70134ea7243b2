// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/toeplitz.h"

// The 32 bits of the key that begin at this bit.
static uint32_t window(const uint8_t *key, unsigned bit)
{
	uint64_t five = 0;
	for (unsigned i = 0; i < 5; i++) {
		unsigned at = bit / 8 + i;
		five = five << 8 | (at < TOEPLITZ_KEY_MIN ? key[at] : 0);
	}
	return (uint32_t)(five >> (8 - bit % 8));
}

void toeplitz_init(struct toeplitz *t, const uint8_t *key)
{
	for (unsigned n = 0; n < TOEPLITZ_NIBBLES; n++)
		for (unsigned value = 0; value < 16; value++) {
			uint32_t sum = 0;
			for (unsigned bit = 0; bit < 4; bit++)
				if (value & 8u >> bit)
					sum ^= window(key, 4 * n + bit);
			t->adds[n][value] = sum;
		}
}
