// SPDX-License-Identifier: Apache-2.0
// Numbers of header blocks (RFC 7541 5.1).
// Thread: any.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Of numbers below 2^32; *p is below end. The prefix is what the first byte holds of it. False =
// cut short, and *p is the end, or too large.
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
