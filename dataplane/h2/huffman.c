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

// The last bits, fewer than a lookup has: whole codes, then padding (RFC 7541 5.2). NULL = neither.
static char *decode_last(uint64_t bits, unsigned have, char *out)
{
	bits |= UINT64_MAX >> have;
	for (;;) {
		const struct hpack_lookup *l = &hpack_lookups[bits >> (64 - HPACK_LOOKUP_BITS)];
		if (l->n == 0 || l->first > have)
			return have < 8 && bits == UINT64_MAX ? out : NULL;
		*out++ = (char)l->symbols[0];
		bits = bits << l->first | ((UINT64_C(1) << l->first) - 1);
		have -= l->first;
	}
}

ptrdiff_t huffman_decode(const uint8_t *p, size_t len, char *out)
{
	const uint8_t *end = p + len;
	const char *start = out;
	uint64_t bits = 0; // those to come next at the top
	unsigned have = 0; // that count; others, below, are as they will be loaded, or 0
	for (;;) {
		if (end - p >= 8) {
			bits |= load_u64(p) >> have;
			p += (63 - have) >> 3;
			have |= 56;
		} else {
			bits &= have ? ~(UINT64_MAX >> 1 >> (have - 1)) : 0;
			for (; p < end && have <= 56; have += 8)
				bits |= (uint64_t)*p++ << (56 - have);
		}
		bool is_long = false;
		while (have >= HPACK_LOOKUP_BITS) {
			const struct hpack_lookup *l =
				&hpack_lookups[bits >> (64 - HPACK_LOOKUP_BITS)];
			is_long = l->n == 0;
			if (is_long)
				break;
			memcpy(out, l->symbols, 2);
			out += l->n;
			bits <<= l->bits;
			have -= l->bits;
		}
		if (is_long) {
			uint16_t symbol;
			unsigned n = long_code(bits, &symbol);
			if (n > have && p < end)
				continue; // more is to be loaded first
			if (n > have || symbol > UINT8_MAX)
				return -1;
			*out++ = (char)symbol;
			bits <<= n;
			have -= n;
		} else if (p == end) {
			break;
		}
	}
	char *last = decode_last(bits, have, out);
	return last ? last - start : -1;
}

size_t huffman_encode(const char *text, size_t len, uint8_t *out)
{
	const uint8_t *p = (const uint8_t *)text, *end = p + len, *most = out + len, *start = out;
	uint64_t bits = 0; // those to be written next, at the bottom
	unsigned have = 0;
	for (; p < end; p++) {
		uint64_t code = hpack_codes[*p];
		bits = bits << (code & 0xff) | code >> 8;
		have += code & 0xff;
		if (have < 32)
			continue;
		have -= 32;
		uint32_t word = __builtin_bswap32((uint32_t)(bits >> have));
		if (most - out < 5)
			return 0;
		memcpy(out, &word, sizeof(word));
		out += sizeof(word);
	}
	if ((size_t)(out - start) + (have + 7) / 8 >= len)
		return 0;
	for (; have >= 8; have -= 8)
		*out++ = (uint8_t)(bits >> (have - 8));
	if (have) // padded with the beginning of EOS
		*out++ = (uint8_t)(bits << (8 - have) | 0xffu >> have);
	return (size_t)(out - start);
}
