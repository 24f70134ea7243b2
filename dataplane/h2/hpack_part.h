// SPDX-License-Identifier: Apache-2.0
// Decodes a header block that is too large to be gathered, in parts, so that the table stays in
// step. The cost of a part is bounded like that of a block of its length; the state is a few bytes.
// Thread: one owner.
#pragma once

#include "dataplane/h2/hpack.h"

// Longest encoding of a text that fits the table: the longest code has 30 bits (RFC 7541 Appendix
// B).
#define HPACK_PART_TEXT_MAX (HPACK_TABLE_SIZE * 30 / 8)
// Longest rest of a part that may stay undecoded: the caller must gather more than this before it
// decodes another part.
#define HPACK_PART_LEFT_MAX (2 * HPACK_PART_TEXT_MAX + 32)

struct hpack_part {
	bool begun; // fields have been decoded
	uint32_t skip; // bytes after the part to be skipped: of a value too large for the table
};

// Decodes the complete fields of a part. *ret_used: bytes of them; the caller passes the rest, up
// to HPACK_PART_LEFT_MAX, again at the beginning of the next part. A field whose value is
// incomplete and too long for the table is skipped: the sink does not get it, and its coding is not
// checked. Pass the last part of a block to hpack_decode_last(). STOPPED: by the sink, or for a
// name of that length.
enum hpack_result hpack_decode_part(struct hpack_part *, struct hpack *, struct hpack_mem *,
	struct hpack_memo *, const uint8_t *, size_t len, char *room, const struct hpack_sink *,
	size_t *ret_used);
// As hpack_decode(), for the last part of a block.
enum hpack_result hpack_decode_last(const struct hpack_part *, struct hpack *, struct hpack_mem *,
	struct hpack_memo *, const uint8_t *, size_t len, char *room, const struct hpack_sink *);
