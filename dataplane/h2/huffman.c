// SPDX-License-Identifier: Apache-2.0
#include "dataplane/h2/huffman.h"

#include "dataplane/h2/hpack_tables.h"

#include <string.h>

_Static_assert(4 * HPACK_LOOKUP_BITS <= 56, "a filled accumulator serves four lookups");

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

// `have` bits are still to be decoded, at the top of `bits`; below them it has ones.
static char *decode_tail(uint64_t bits, unsigned have, char *out)
{
	while (have) {
		const struct hpack_lookup *l = &hpack_lookups[bits >> (64 - HPACK_LOOKUP_BITS)];
		uint16_t symbol = l->symbols[0];
		unsigned n = l->first;
		if (l->n == 0)
			n = long_code(bits, &symbol);
		if (n > have)
			return have < 8 && bits == UINT64_MAX ? out : NULL;
		if (symbol > UINT8_MAX)
			return NULL;
		*out++ = (char)symbol;
		bits = bits << n | ((UINT64_C(1) << n) - 1);
		have -= n;
	}
	return out;
}

ptrdiff_t huffman_decode(const uint8_t *p, size_t len, char *out)
{
	const uint8_t *end = p + len;
	const char *start = out;
	uint64_t bits = 0; // those to come next at the top
	unsigned have = 0; // that count; others, below, are the same as will be loaded
	while (end - p >= 8) {
		bits |= load_u64(p) >> have;
		p += (63 - have) >> 3;
		have |= 56;
		for (int i = 0; i < 4; i++) {
			const struct hpack_lookup *l =
				&hpack_lookups[bits >> (64 - HPACK_LOOKUP_BITS)];
			if (__builtin_expect(l->n == 0, 0)) {
				uint16_t symbol;
				unsigned n = long_code(bits, &symbol);
				if (n > have)
					break; // more is to be loaded first
				if (symbol > UINT8_MAX)
					return -1;
				*out++ = (char)symbol;
				bits <<= n;
				have -= n;
				break; // perhaps too few are left for the next
			}
			memcpy(out, l->symbols, 2);
			out += l->n;
			bits <<= l->bits;
			have -= l->bits;
		}
	}
	// At most 7 bytes and 63 bits are left: in two steps, since they may be more than 64 bits.
	bits &= have ? ~(UINT64_MAX >> have) : 0;
	while (p < end && have <= 56) {
		bits |= (uint64_t)*p++ << (56 - have);
		have += 8;
	}
	while (p < end) {
		const struct hpack_lookup *l = &hpack_lookups[bits >> (64 - HPACK_LOOKUP_BITS)];
		uint16_t symbol = l->symbols[0];
		unsigned n = l->first;
		if (l->n == 0)
			n = long_code(bits, &symbol);
		if (symbol > UINT8_MAX)
			return -1;
		*out++ = (char)symbol;
		bits <<= n;
		have -= n;
		while (p < end && have <= 56) {
			bits |= (uint64_t)*p++ << (56 - have);
			have += 8;
		}
	}
	if (have < 64)
		bits |= UINT64_MAX >> have;
	char *last = decode_tail(bits, have, out);
	return last ? last - start : -1;
}

size_t huffman_length(const char *text, size_t len)
{
	const uint8_t *p = (const uint8_t *)text;
	size_t a = 0, b = 0, i = 0;
	for (; i + 2 <= len; i += 2) {
		a += hpack_code_bits[p[i]];
		b += hpack_code_bits[p[i + 1]];
	}
	if (i < len)
		a += hpack_code_bits[p[i]];
	return (a + b + 7) / 8;
}

void huffman_encode(const char *text, size_t len, uint8_t *out)
{
	const uint8_t *p = (const uint8_t *)text, *end = p + len;
	uint64_t bits = 0; // those to be written next, at the bottom
	unsigned have = 0;
	for (; p < end; p++) {
		bits = bits << hpack_code_bits[*p] | hpack_codes[*p];
		have += hpack_code_bits[*p];
		if (have < 32)
			continue;
		have -= 32;
		uint32_t word = __builtin_bswap32((uint32_t)(bits >> have));
		memcpy(out, &word, sizeof(word));
		out += sizeof(word);
	}
	for (; have >= 8; have -= 8)
		*out++ = (uint8_t)(bits >> (have - 8));
	if (have) // padded with the beginning of EOS
		*out = (uint8_t)(bits << (8 - have) | 0xffu >> have);
}
