// SPDX-License-Identifier: Apache-2.0
// The tables of RFC 7541 and those that hpack-tables computes from them at build time: the static
// table, a perfect hash of the names in hpack_names.h, the tables of Huffman coding both ways.
// Thread: any; all of it is constant.
#pragma once

#include "dataplane/h2/hpack_names.h"
#include "lb/base/str.h"

#include <stdint.h>

// Appendix A, by index; entry 0 is unused.
struct hpack_static {
	const char *name, *value;
	uint8_t name_len, value_len;
	uint8_t id; // enum hpack_name
};
extern const struct hpack_static hpack_static[HPACK_N_STATIC + 1];

// Names by number (hpack_names.h).
struct hpack_known {
	const char *name;
	uint8_t len;
	uint8_t first, n_values; // entries of the static table with this name and a value
};
extern const struct hpack_known hpack_known[HPACK_N_NAMES];
extern const uint8_t hpack_name_places[256]; // by the hash of hpack_name_of()

// Names outside the static table as they are sent: RFC 7541 5.2, Huffman-coded where that is
// shorter.
#define HPACK_SENT_NAME_MAX 24
struct hpack_sent_name {
	uint8_t text[HPACK_SENT_NAME_MAX];
	uint8_t len;
};
extern const struct hpack_sent_name hpack_sent_names[HPACK_N_NAMES - HPACK_N_STATIC - 1];
#define HPACK_HASH_FIRST 5
#define HPACK_HASH_MIDDLE 139
#define HPACK_HASH_LAST 253

// Returns the name's number; HPACK_NO_NAME if it has none.
static inline enum hpack_name hpack_name_of(struct str name)
{
	if (!name.len)
		return HPACK_NO_NAME;
	const uint8_t *p = (const uint8_t *)name.p;
	size_t h = name.len + p[0] * HPACK_HASH_FIRST + p[name.len / 2] * HPACK_HASH_MIDDLE +
	           p[name.len - 1] * HPACK_HASH_LAST;
	enum hpack_name id = hpack_name_places[h % 256];
	const struct hpack_known *k = &hpack_known[id];
	return k->len == name.len && memcmp(k->name, p, name.len) == 0 ? id : HPACK_NO_NAME;
}

#define HPACK_LONGEST_CODE 30 // bits
#define HPACK_LOOKUP_BITS 12

// Appendix B: for each symbol its code, left-aligned, and the code's length in bits.
extern const uint64_t hpack_codes[256];
extern const uint32_t hpack_code_lens[256];
// For the next HPACK_LOOKUP_BITS bits, up to two whole codes: from the low byte on their symbols,
// the bits that they take, their number. 0 = the code is longer.
#define HPACK_LOOKUP_TAKEN 16
#define HPACK_LOOKUP_N 24
extern const uint32_t hpack_lookups[1 << HPACK_LOOKUP_BITS];
// Codes of n bits, left-aligned in 32: none is above last[n]. The code's value plus offset[n] is an
// index into the symbols; 256 is EOS.
extern const uint32_t hpack_code_last[HPACK_LONGEST_CODE + 1];
extern const int32_t hpack_code_offset[HPACK_LONGEST_CODE + 1];
extern const uint16_t hpack_symbols[257];
