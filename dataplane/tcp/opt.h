// SPDX-License-Identifier: Apache-2.0
// TCP options in a segment (RFC 9293 3.2, RFC 7323, RFC 2018).
// Thread: any.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TCP_OPT_MAX 40 // the header's length field allows no more
#define TCP_MAX_SACK_BLOCKS 4

struct tcp_sack_block {
	uint32_t start, end;
};

struct tcp_opts {
	bool has_mss, has_wscale, has_ts, sack_ok;
	uint8_t wscale; // at most 14
	uint8_t n_sack;
	uint16_t mss;
	uint32_t ts_val, ts_ecr;
	struct tcp_sack_block sack[TCP_MAX_SACK_BLOCKS];
};

// Timestamps alone, after two NOPs, as nearly every segment has them (RFC 7323 appendix A).
#define TCP_OPT_TS_LEN 12
#define TCP_OPT_TS_HEAD UINT32_C(0x0101080a)

// Returns false if malformed: a length that is impossible or runs past the end. Skips unknown
// options.
[[nodiscard]] bool tcp_opts_parse(const uint8_t *p, size_t len, struct tcp_opts *ret);
// The length that tcp_opts_write() will return.
static inline size_t tcp_opts_len(const struct tcp_opts *o)
{
	size_t ts = o->has_ts    ? TCP_OPT_TS_LEN
	            : o->sack_ok ? 4
	                         : 0; // the latter fills the former's padding
	return ts + (o->has_mss ? 4 : 0) + (o->has_wscale ? 4 : 0) +
	       (o->n_sack ? 4 + 8 * (size_t)o->n_sack : 0);
}
// Writes the options that are set, padded to a multiple of four; returns the length. p has
// TCP_OPT_MAX bytes.
size_t tcp_opts_write(const struct tcp_opts *, uint8_t *p);
