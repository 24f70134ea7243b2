// SPDX-License-Identifier: Apache-2.0
#include "dataplane/tcp/opt.h"

#include "dataplane/tcp/wire.h"

enum { KIND_END, KIND_NOP, KIND_MSS, KIND_WSCALE, KIND_SACK_OK, KIND_SACK, KIND_TS = 8 };

#define MAX_WSCALE 14 // RFC 7323 2.3
#define USUAL_SYN_LEN 20

static inline uint8_t bounded_wscale(uint8_t shift)
{
	return shift < MAX_WSCALE ? shift : MAX_WSCALE;
}

static bool parse_one(uint8_t kind, const uint8_t *body, size_t len, struct tcp_opts *o)
{
	switch (kind) {
	case KIND_MSS:
		o->has_mss = true;
		o->mss = len == 2 ? get16(body) : 0;
		return len == 2;
	case KIND_WSCALE:
		o->has_wscale = true;
		if (len == 1)
			o->wscale = bounded_wscale(body[0]);
		return len == 1;
	case KIND_SACK_OK:
		o->sack_ok = true;
		return len == 0;
	case KIND_TS:
		if (len != 8)
			return false;
		o->has_ts = true;
		o->ts_val = get32(body);
		o->ts_ecr = get32(body + 4);
		return true;
	case KIND_SACK:
		if (len == 0 || len % 8 || len / 8 > TCP_MAX_SACK_BLOCKS)
			return false;
		o->n_sack = (uint8_t)(len / 8);
		for (size_t i = 0; i < o->n_sack; i++)
			o->sack[i] = (struct tcp_sack_block){
				get32(body + 8 * i), get32(body + 8 * i + 4)};
		return true;
	default:
		return true;
	}
}

// A SYN's options as Linux and tcp_opts_write() lay them out: MSS; SACK permitted and timestamps; a
// NOP and the window scale. False = they are others.
static bool parse_usual_syn(const uint8_t *p, struct tcp_opts *ret)
{
	uint32_t mss = get32(p), ts = get32(p + 4), wscale = get32(p + 16);
	if (mss >> 16 != (KIND_MSS << 8 | 4) ||
		ts != (KIND_SACK_OK << 24 | 2 << 16 | KIND_TS << 8 | 10) ||
		wscale >> 8 != (KIND_NOP << 16 | KIND_WSCALE << 8 | 3))
		return false;
	*ret = (struct tcp_opts){.has_mss = true,
		.has_wscale = true,
		.has_ts = true,
		.sack_ok = true,
		.wscale = bounded_wscale((uint8_t)wscale),
		.mss = (uint16_t)mss,
		.ts_val = get32(p + 8),
		.ts_ecr = get32(p + 12)};
	return true;
}

bool tcp_opts_parse(const uint8_t *p, size_t len, struct tcp_opts *ret)
{
	if (len == USUAL_SYN_LEN && parse_usual_syn(p, ret))
		return true;
	struct tcp_opts o = {0};
	while (len) {
		uint8_t kind = p[0];
		if (kind == KIND_END)
			break;
		if (kind == KIND_NOP) {
			p++;
			len--;
			continue;
		}
		if (len < 2 || p[1] < 2 || p[1] > len)
			return false;
		size_t n = p[1];
		if (!parse_one(kind, p + 2, n - 2, &o))
			return false;
		p += n;
		len -= n;
	}
	*ret = o;
	return true;
}

size_t tcp_opts_write(const struct tcp_opts *o, uint8_t *p)
{
	uint8_t *start = p;
	if (o->has_mss)
		p = put32(p, KIND_MSS << 24 | 4 << 16 | (uint32_t)o->mss);
	if (o->has_ts) {
		uint32_t before =
			o->sack_ok ? KIND_SACK_OK << 24 | 2 << 16 : KIND_NOP << 24 | KIND_NOP << 16;
		p = put32(p, before | KIND_TS << 8 | 10);
		p = put32(p, o->ts_val);
		p = put32(p, o->ts_ecr);
	} else if (o->sack_ok) {
		p = put32(p, KIND_NOP << 24 | KIND_NOP << 16 | KIND_SACK_OK << 8 | 2);
	}
	if (o->has_wscale)
		p = put32(p, KIND_NOP << 24 | KIND_WSCALE << 16 | 3 << 8 | (uint32_t)o->wscale);
	if (o->n_sack) {
		uint32_t len = 2 + 8 * (uint32_t)o->n_sack;
		p = put32(p, KIND_NOP << 24 | KIND_NOP << 16 | KIND_SACK << 8 | len);
		for (unsigned i = 0; i < o->n_sack; i++) {
			p = put32(p, o->sack[i].start);
			p = put32(p, o->sack[i].end);
		}
	}
	return (size_t)(p - start);
}
