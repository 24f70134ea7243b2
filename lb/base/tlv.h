// SPDX-License-Identifier: Apache-2.0
// What a PROXY header has behind its addresses: entries of a type, a length of two bytes and a
// value, one behind the other (haproxy/haproxy doc/proxy-protocol.txt 2.2).
// Thread: any. Pure.
#pragma once

#include "lb/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TLV_FIXED 3 // bytes of an entry before its value
#define TLV_CRC32C 3 // the type of a checksum, of the header that it stands in

struct tlv_types { // all zero = none
	uint64_t bits[4];
};

static inline void tlv_types_add(struct tlv_types *t, uint8_t type)
{
	t->bits[type / 64] |= UINT64_C(1) << type % 64;
}

static inline void tlv_types_remove(struct tlv_types *t, uint8_t type)
{
	t->bits[type / 64] &= ~(UINT64_C(1) << type % 64);
}

static inline bool tlv_types_have(const struct tlv_types *t, uint8_t type)
{
	return t->bits[type / 64] >> type % 64 & 1;
}

static inline bool tlv_types_are_any(const struct tlv_types *t)
{
	return t->bits[0] | t->bits[1] | t->bits[2] | t->bits[3];
}

bool tlv_types_eq(const struct tlv_types *, const struct tlv_types *);

// Nothing but whole entries; none is fine.
bool tlv_are_whole(struct str);
// Of whole entries: which types they have.
struct tlv_types tlv_types_of(struct str);
// Of whole entries: copies those of types in `wanted` that are not in `but`, in their order.
// Returns how many bytes they have. `to` has room for all; it may be where they lie.
size_t tlv_copy(
	uint8_t *to, struct str, const struct tlv_types *wanted, const struct tlv_types *but);
