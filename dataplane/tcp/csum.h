// SPDX-License-Identifier: Apache-2.0
// The Internet checksum (RFC 1071) over a TCP segment and its pseudo header.
// Thread: any.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct ip_addr;

// What belongs into the checksum field (network order, as stored), that field counted as zero.
// Over a segment whose field is filled: 0 = correct.
uint16_t tcp_csum(
	const struct ip_addr *src, const struct ip_addr *dst, const void *segment, size_t len);
// The same for a segment whose header was written a moment ago, in words of four bytes: reading it
// in larger ones would wait until the stores have left the store buffer.
uint16_t tcp_csum_built(const struct ip_addr *src, const struct ip_addr *dst, const void *segment,
	size_t header_len, size_t len);
