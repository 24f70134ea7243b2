// SPDX-License-Identifier: Apache-2.0
// Literal fields that recently came on any connection of a worker, found by their encoded bytes. A
// connection's first block consists of literals, and similar clients send the same ones: a field
// found here need neither be decoded nor checked.
// A field is kept when it comes for the second time, so that values that never repeat evict
// nothing. Because decoding time reveals what is stored here, secrets are not stored: fields never
// to be indexed (RFC 7541 7.1.3), credentials, and fields whose name is unknown. For any other
// field, an attacker who guesses it whole may learn whether it came recently.
// Thread: one owner.
#pragma once

#include "dataplane/h2/hpack.h"

// Encoded lengths that are looked up here. Shorter fields decode just as fast.
#define HPACK_MEMO_MIN 8
#define HPACK_MEMO_MAX 48

struct hpack_memo_field {
	uint32_t block; // the last block that it came in
	uint32_t missed; // hash of the last field that was not found here
	uint8_t n_bytes; // 0 = the place is empty
	uint8_t name_len, value_len;
	uint8_t id, mark; // as in struct hpack_field
	_Alignas(16) uint8_t bytes[HPACK_MEMO_MAX];
	char text[128]; // the name, then the value
};

// Returns NULL if out of memory.
struct hpack_memo *hpack_memo_new(void);
void hpack_memo_free(struct hpack_memo *); // NULL is fine

// Begins another header block. Fields of the previous block may be evicted from now on.
void hpack_memo_begin(struct hpack_memo *);
// Returns the field with these bytes; its text is valid until the next begin(). NULL = not found,
// and keep() may use *ret_place.
struct hpack_memo_field *hpack_memo_find(
	struct hpack_memo *, const uint8_t *bytes, size_t len, struct hpack_memo_field **ret_place);
// After a find() that returned NULL: f is the decoded field. NULL = it is not kept this time.
struct hpack_memo_field *hpack_memo_keep(struct hpack_memo *, struct hpack_memo_field *place,
	const uint8_t *bytes, size_t len, const struct hpack_field *f);
