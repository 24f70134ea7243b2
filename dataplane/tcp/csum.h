// SPDX-License-Identifier: Apache-2.0
// The Internet checksum (RFC 1071) over a TCP segment and its pseudo header.
// Thread: any.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct ip_addr;

// The sum that all segments between two hosts share, in either direction: addresses and protocol.
uint16_t tcp_csum_flow(const struct ip_addr *, const struct ip_addr *);
// Returns the checksum field (network order, as stored), computed with that field zero. For a
// segment whose field is filled in, 0 = correct.
// Over a segment whose field is filled: 0 = correct.
uint16_t tcp_csum_segment(uint16_t flow_sum, const void *segment, size_t len);
// The same for a segment whose header was just written: header_sum is the sum of its 4-byte words,
// as in memory, taken while writing them. Reading them back now would wait for the store buffer.
// rest follows the header.
uint16_t tcp_csum_rest(
	uint16_t flow_sum, uint64_t header_sum, size_t header_len, const void *rest, size_t len);
