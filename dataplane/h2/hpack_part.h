// SPDX-License-Identifier: Apache-2.0
// A header block that nobody can gather: its fields in parts, so that the table keeps in step.
// What a part costs is bounded as for a block of its length; the state is a few bytes.
// Thread: one owner.
#pragma once

#include "dataplane/h2/hpack.h"

// No entry of a table has a text that is longer than this when it comes: the longest code is of 30
// bits (RFC 7541 Appendix B).
#define HPACK_PART_TEXT_MAX (HPACK_TABLE_SIZE * 30 / 8)
// Nor is any field longer of which a part ends in the midst: what to gather before another part is
// decoded has to be more.
#define HPACK_PART_LEFT_MAX (2 * HPACK_PART_TEXT_MAX + 32)

struct hpack_part {
	bool begun; // fields were decoded
	uint32_t skip; // bytes behind the part that are to be left out: of a value too large for us
};

// Decodes the fields that are whole. *ret_used: bytes of them; the others, up to
// HPACK_PART_LEFT_MAX, come again in the next part, with more behind them. Where a value is too
// long for the table and not all there, its field is taken as if it were: the sink does not hear
// of it, and the value's code is not looked at. The last part of a block is one for
// hpack_decode_last(). STOPPED: by the sink, or a name that is as long.
enum hpack_result hpack_decode_part(struct hpack_part *, struct hpack *, struct hpack_mem *,
	struct hpack_memo *, const uint8_t *, size_t len, char *room, const struct hpack_sink *,
	size_t *ret_used);
// As hpack_decode(), for what follows parts.
enum hpack_result hpack_decode_last(const struct hpack_part *, struct hpack *, struct hpack_mem *,
	struct hpack_memo *, const uint8_t *, size_t len, char *room, const struct hpack_sink *);
