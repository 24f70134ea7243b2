// SPDX-License-Identifier: Apache-2.0
// The TCP header on the wire (RFC 9293 3.1), and numbers in network order.
// Thread: any.
#pragma once

#include <stdint.h>
#include <string.h>

#define TCP_HEADER_LEN 20

enum {
	TCP_FIN = 0x01,
	TCP_SYN = 0x02,
	TCP_RST = 0x04,
	TCP_PSH = 0x08,
	TCP_ACK = 0x10,
	TCP_ECE = 0x40, // RFC 3168 6.1
	TCP_CWR = 0x80,
};

struct tcp_header {
	uint8_t src_port[2], dst_port[2];
	uint8_t seq[4], ack[4];
	uint8_t offset; // high four bits: header length in words
	uint8_t flags;
	uint8_t window[2];
	uint8_t checksum[2]; // from tcp_csum_segment()
	uint8_t urgent[2];
};

_Static_assert(sizeof(struct tcp_header) == TCP_HEADER_LEN, "no padding");

static inline uint16_t get16(const uint8_t *p)
{
	uint16_t x;
	memcpy(&x, p, 2);
	return __builtin_bswap16(x);
}

static inline uint32_t get32(const uint8_t *p)
{
	uint32_t x;
	memcpy(&x, p, 4);
	return __builtin_bswap32(x);
}

static inline uint8_t *put16(uint8_t *p, uint16_t x)
{
	x = __builtin_bswap16(x);
	memcpy(p, &x, 2);
	return p + 2;
}

static inline uint8_t *put32(uint8_t *p, uint32_t x)
{
	x = __builtin_bswap32(x);
	memcpy(p, &x, 4);
	return p + 4;
}
