// SPDX-License-Identifier: Apache-2.0
// The Internet checksum (RFC 1071) over a TCP segment and its pseudo header.
// Thread: any.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct ip_addr;

// What all segments between two hosts have in common, in either direction: addresses and protocol.
uint16_t tcp_csum_flow(const struct ip_addr *, const struct ip_addr *);
// What belongs into the checksum field (network order, as stored), that field counted as zero.
// Over a segment whose field is filled: 0 = correct.
uint16_t tcp_csum_segment(uint16_t flow_sum, const void *segment, size_t len);
// The same for a segment whose header was written a moment ago: header_sum is the sum of its words
// of four bytes, as memory holds them, taken as they were written. Reading them now would wait for
// the stores to leave the store buffer. rest follows the header.
uint16_t tcp_csum_rest(
	uint16_t flow_sum, uint64_t header_sum, size_t header_len, const void *rest, size_t len);
