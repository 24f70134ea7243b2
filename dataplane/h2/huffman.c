// SPDX-License-Identifier: Apache-2.0
#include "dataplane/h2/huffman.h"

#include "dataplane/h2/hpack_tables.h"

#include <stdbool.h>
#include <string.h>

static inline uint64_t load_u64(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof(v));
	return __builtin_bswap64(v);
}

// The last n < 8 bytes of a text, and behind them the ones that padding is made of (RFC 7541 5.2).
static inline uint64_t load_last(const uint8_t *start, const uint8_t *end, size_t n)
{
	uint64_t v = 0;
	if (n == 0)
		return UINT64_MAX;
	if (end - start >= 8)
		v = load_u64(end - 8);
	else
		for (const uint8_t *p = end - n; p < end; p++)
			v = v << 8 | *p;
	return v << (64 - 8 * n) | UINT64_MAX >> (8 * n);
}

// The code of more than HPACK_LOOKUP_BITS that bits begin with. Returns its length.
static unsigned long_code(uint64_t bits, uint16_t *ret_symbol)
{
	uint32_t top = (uint32_t)(bits >> 32);
	unsigned n = HPACK_LOOKUP_BITS + 1;
	while (n < HPACK_LONGEST_CODE && top > hpack_code_last[n])
		n++;
	*ret_symbol = hpack_symbols[(int32_t)(top >> (32 - n)) + hpack_code_offset[n]];
	return n;
}

// Lookups for one load, which leaves 56 bits or all that there are.
#define STEPS 4
_Static_assert(STEPS *HPACK_LOOKUP_BITS <= 56, "no step runs out of bits");

ptrdiff_t huffman_decode(const uint8_t *text, size_t len, char *out)
{
	const uint8_t *p = text, *end = text + len;
	const char *start = out;
	uint64_t bits = 0; // those to come next at the top
	int have = 0; // that count; others, below, are as they will be loaded, or 0
	for (;;) {
		size_t left = (size_t)(end - p), more = (size_t)(63 - have) >> 3;
		bits |= (left >= 8 ? load_u64(p) : load_last(text, end, left)) >> have;
		more = more < left ? more : left;
		p += more;
		have += 8 * (int)more;
		// A code that is longer stops the steps, and so do the ones behind the end. What
		// seems to be a code with some of those is none: have falls below 0.
		uint32_t l = 0, taken = 0;
		for (int i = 0; i < STEPS; i++) {
			l = hpack_lookups[bits >> (64 - HPACK_LOOKUP_BITS)];
			memcpy(out, &l, 2);
			out += l >> HPACK_LOOKUP_N;
			bits <<= l >> HPACK_LOOKUP_TAKEN & 63;
			taken += l >> HPACK_LOOKUP_TAKEN;
		}
		have -= taken & 0xff;
		if (p == end && have < 8) {
			if (have < 0)
				return -1;
			if (~bits >> 1 >> (63 - have) == 0)
				return out - start;
		}
		if (l)
			continue;
		uint16_t symbol;
		int n = (int)long_code(bits, &symbol);
		if (n > have && p < end)
			continue; // more is to be loaded first
		if (n > have || symbol > UINT8_MAX)
			return -1;
		*out++ = (char)symbol;
		bits <<= n;
		have -= n;
	}
}

// Codes to be written next, from the top of `bits`.
struct codes {
	uint64_t bits;
	uint32_t len;
};
#define LONGEST_SUM 34 // of codes that another one may follow
_Static_assert(LONGEST_SUM + HPACK_LONGEST_CODE <= 64, "whichever it is");
#define AT_ONCE 8 // which most text has in 64 bits

static inline void add(struct codes *c, uint8_t symbol)
{
	c->bits |= hpack_codes[symbol] >> (c->len & 63);
	c->len += hpack_code_lens[symbol];
	// One after another in two registers, where the compiler would keep all sums in others.
	__asm__("" : "+r"(c->len), "+r"(c->bits));
}

static inline bool add_many(struct codes *c, const uint8_t *p)
{
	struct codes sum = *c;
	for (int i = 0; i < AT_ONCE; i++)
		add(&sum, p[i]);
	if (sum.len >= 64)
		return false;
	*c = sum;
	return true;
}

// Whole bytes.
static inline uint8_t *write(struct codes *c, uint8_t *out)
{
	uint64_t word = __builtin_bswap64(c->bits);
	memcpy(out, &word, sizeof(word));
	c->bits <<= c->len & 0x38;
	out += c->len >> 3;
	c->len &= 7;
	return out;
}

size_t huffman_encode(const char *text, size_t len, uint8_t *out)
{
	const uint8_t *p = (const uint8_t *)text, *end = p + len, *start = out, *most = out + len;
	struct codes c = {0};
	while (p < end) {
		if (end - p >= AT_ONCE && add_many(&c, p)) {
			p += AT_ONCE;
		} else {
			do
				add(&c, *p++);
			while (p < end && c.len < LONGEST_SUM);
		}
		out = write(&c, out);
		if (out >= most)
			return 0;
	}
	if (c.len) // padded with the beginning of EOS
		*out++ = (uint8_t)(c.bits >> 56 | 0xffu >> c.len);
	return out < most ? (size_t)(out - start) : 0;
}
