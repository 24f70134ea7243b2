// SPDX-License-Identifier: Apache-2.0
// Literal fields that came lately on any connection of a worker, found by the bytes they came as. A
// connection's first block is made of literals, and clients of one kind send the same: whoever
// finds one here need neither decode its text nor ask what it is.
//
// A field is kept when it comes for the second time, so that values which never come again push
// nothing out. Secrets leave no trace, as the time that a block takes shows what is here: what is
// never to be indexed (RFC 7541 7.1.3), credentials, and what has a name that we know nothing of.
// Of any other field, who guesses all of it may learn whether it came lately.
// Thread: one owner.
#pragma once

#include "dataplane/h2/hpack.h"

// Lengths of fields as they come that are looked for here. Shorter ones are decoded as fast.
#define HPACK_MEMO_MIN 8
#define HPACK_MEMO_MAX 48

struct hpack_memo_field {
	uint32_t block; // the last one that it came in
	uint32_t missed; // hash of what came last and was not here
	uint8_t n_bytes; // 0 = nothing is kept here
	uint8_t name_len, value_len;
	uint8_t id, mark; // as in struct hpack_field
	_Alignas(16) uint8_t bytes[HPACK_MEMO_MAX];
	char text[128]; // the name, the value
};

// NULL = out of memory.
struct hpack_memo *hpack_memo_new(void);
void hpack_memo_free(struct hpack_memo *); // NULL is fine

// Another header block begins. The text of fields that came in the last one may now go.
void hpack_memo_begin(struct hpack_memo *);
// The field that came as these bytes; its text stays until the next begin(). NULL = it is not here,
// and *ret_place is where keep() may put it.
struct hpack_memo_field *hpack_memo_find(
	struct hpack_memo *, const uint8_t *bytes, size_t len, struct hpack_memo_field **ret_place);
// Behind a find() in vain: f is what the bytes turned out to be. NULL = it is not kept now.
struct hpack_memo_field *hpack_memo_keep(struct hpack_memo *, struct hpack_memo_field *place,
	const uint8_t *bytes, size_t len, const struct hpack_field *f);
