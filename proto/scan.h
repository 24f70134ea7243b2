// SPDX-License-Identifier: Apache-2.0
// Fields of untrusted protobuf bytes one after the other, read where they lie: for a message that
// is too large to be unpacked into objects first. What may stand in a message and what it means is
// the caller's: a switch on the tag, in which unknown fields and known ones of another wire type
// fall to the default and are skipped (WF-01). Messages that are not read that often
// are proto/wire.h's.
// Thread: any. Pure.
#pragma once

#include "lb/base/str.h"
#include "proto/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum proto_wire_type { PROTO_VARINT = 0, PROTO_FIXED64 = 1, PROTO_BYTES = 2, PROTO_FIXED32 = 5 };

#define PROTO_TAG(number, type) ((uint32_t)(number) << 3 | (type))

// A message, or what is left of it.
struct proto_scan {
	const uint8_t *at, *end; // borrowed
	bool is_malformed; // what is at `at` is no field
};

struct proto_item {
	uint32_t tag; // as PROTO_TAG
	uint64_t value; // VARINT only
	struct str bytes; // BYTES only; borrowed
};

static inline struct proto_scan proto_scan_of(struct str bytes)
{
	const uint8_t *p = (const uint8_t *)bytes.p;
	return (struct proto_scan){p, p + bytes.len, false};
}

// proto_scan_next(), for fields of any form.
bool proto_scan_any(struct proto_scan *, struct proto_item *ret);

// Takes the next field. False = there is none, or is_malformed. Groups, which proto3 has not, are
// malformed.
static inline bool proto_scan_next(struct proto_scan *s, struct proto_item *ret)
{
	const uint8_t *at = s->at;
	size_t left = (size_t)(s->end - at);
	if (left == 0)
		return false;
	// Nearly every field is short: a tag and a length or value of one byte each.
	if (left >= 2 && at[0] >= 8 && ((at[0] | at[1]) & 0x80) == 0) {
		unsigned type = at[0] & 7;
		if (type == PROTO_BYTES && at[1] <= left - 2) {
			struct str bytes = {(const char *)at + 2, at[1]};
			*ret = (struct proto_item){.tag = at[0], .bytes = bytes};
			s->at = at + 2 + at[1];
			return true;
		}
		if (type == PROTO_VARINT) {
			*ret = (struct proto_item){.tag = at[0], .value = at[1]};
			s->at = at + 2;
			return true;
		}
	}
	// Copies, so that the caller's may stay in registers.
	struct proto_scan rest = *s;
	struct proto_item item = {0};
	bool is_there = proto_scan_any(&rest, &item);
	*s = rest;
	*ret = item;
	return is_there;
}

// Well-formed UTF-8 without NUL.
static inline bool proto_is_text(struct str s)
{
	const uint8_t *p = (const uint8_t *)s.p;
	const uint64_t ones = UINT64_C(0x0101010101010101);
	if (s.len >= 8 && s.len <= 16) { // an address
		uint64_t first, last;
		memcpy(&first, p, 8);
		memcpy(&last, p + s.len - 8, 8);
		if (((first | last | (first - ones) | (last - ones)) & ones << 7) == 0)
			return true;
	}
	for (size_t n; s.len; p += n, s.len -= n) {
		uint64_t eight = 0;
		n = s.len < 8 ? 1 : 8;
		if (n == 8)
			memcpy(&eight, p, 8);
		// Of ASCII's 0x01 to 0x7f one and all?
		if (n == 8 ? ((eight | (eight - ones)) & ones << 7) == 0 : (*p - 1u) < 0x7f)
			continue;
		n = proto_utf8_len(p, s.len);
		if (n == 0)
			return false;
	}
	return true;
}
