// SPDX-License-Identifier: Apache-2.0
// Integers of header blocks (RFC 7541 5.1).
// Thread: any.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Reads an integer below 2^32; *p is below end. prefix_max is the largest value of the first byte's
// prefix. Returns false if the integer is cut short (*p is then end) or too large.
static inline bool hpack_number_read(
	const uint8_t **p, const uint8_t *end, uint8_t prefix_max, uint32_t *ret)
{
	const uint8_t *at = *p;
	uint32_t n = *at++ & prefix_max;
	if (n == prefix_max) {
		for (unsigned shift = 0;; shift += 7) {
			*p = at;
			if (at == end || shift > 28)
				return false;
			uint32_t digit = *at & 0x7f;
			if (shift == 28 && digit > 0xf)
				return false;
			if (__builtin_add_overflow(n, digit << shift, &n))
				return false;
			if (!(*at++ & 0x80))
				break;
		}
	}
	*p = at;
	*ret = n;
	return true;
}
