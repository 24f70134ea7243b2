// SPDX-License-Identifier: Apache-2.0
// The Internet checksum (RFC 1071) and loads and stores of network order at any alignment.
// Thread: any.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t load16(const uint8_t *p)
{
	uint16_t x;
	memcpy(&x, p, sizeof(x));
	return __builtin_bswap16(x);
}

static inline uint32_t load32(const uint8_t *p)
{
	uint32_t x;
	memcpy(&x, p, sizeof(x));
	return __builtin_bswap32(x);
}

static inline void store16(uint8_t *p, uint16_t x)
{
	x = __builtin_bswap16(x);
	memcpy(p, &x, sizeof(x));
}

static inline void store32(uint8_t *p, uint32_t x)
{
	x = __builtin_bswap32(x);
	memcpy(p, &x, sizeof(x));
}

// Folds a sum of words of any width into a checksum field.
static inline uint16_t csum_fold(uint64_t sum)
{
	uint32_t x;
	bool carry = __builtin_add_overflow((uint32_t)sum, (uint32_t)(sum >> 32), &x);
	x += carry;
	// Adds both halves in the upper one, with the carry of the lower.
	x += x << 16 | x >> 16;
	return (uint16_t)(~x >> 16);
}

// The sum with that of more bytes, an even number of which came before. In memory order, to which
// the sum is indifferent (RFC 1071 2 (B)).
static inline uint64_t csum_add(uint64_t sum, const void *data, size_t len)
{
	const uint8_t *p = data;
	for (; len >= 8; p += 8, len -= 8) {
		uint64_t x;
		memcpy(&x, p, sizeof(x));
		sum += x;
		sum += sum < x; // end-around carry
	}
	uint64_t last = 0;
	memcpy(&last, p, len);
	sum += last;
	sum += sum < last;
	return sum;
}

// The value to write with memcpy into a checksum field that is zero now; 0 when the bytes already
// contain a correct checksum.
static inline uint16_t csum(const void *data, size_t len)
{
	return csum_fold(csum_add(0, data, len));
}
