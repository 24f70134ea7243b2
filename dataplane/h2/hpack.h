// SPDX-License-Identifier: Apache-2.0
// HPACK (RFC 7541) of one connection: header blocks from bytes to fields and back. Both tables stay
// within 4096 bytes, and take memory only as they fill. The rules of HTTP are not known here.
// Thread: one owner.
#pragma once

#include "dataplane/h2/hpack_mem.h"
#include "dataplane/h2/hpack_names.h"
#include "lb/base/field.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HPACK_TABLE_SIZE 4096 // SETTINGS_HEADER_TABLE_SIZE, RFC 9113 6.5.2

struct hpack_table;
struct hpack_encoder;
struct hpack_memo;

struct hpack {
	struct hpack_table *received; // NULL until the peer adds to it
	struct hpack_encoder *sent; // NULL until something may be added
	uint16_t received_limit;
	uint16_t sent_limit, sent_least; // sent_least: lowest since the last block
	bool sent_changed; // limit, and the peer was not told yet
	bool huffman; // text we send is coded where that makes it shorter
};

void hpack_init(struct hpack *, bool huffman);
// Gives back the memory. Afterwards it is as after hpack_init().
void hpack_fini(struct hpack *, struct hpack_mem *);
// The peer's SETTINGS_HEADER_TABLE_SIZE, used up to 4096.
void hpack_set_table_size(struct hpack *, uint32_t size);

// Encodes fields to `out`, which has hpack_bound() of them. Returns the length. A block may be
// encoded by several calls in a row. Where memory is short fields only take more bytes.
size_t hpack_encode(
	struct hpack *, struct hpack_mem *, const struct field *, size_t n, uint8_t *out);
size_t hpack_bound(const struct field *, size_t n);

// One field of a block. Its text lies in the block's bytes, in the room for decoded text, in the
// memo, in a constant or in the connection's table.
struct hpack_field {
	struct str name, value;
	enum hpack_name id; // HPACK_NO_NAME: any name without a number
	bool never_index; // RFC 7541 6.2.3
	// What the sink noted when the same entry of the table or the same literal came before, and
	// may note now, of the text alone: 0 for a field that is new, HPACK_MARK_STATIC for one of
	// the static table that has a value.
	uint8_t mark;
};
#define HPACK_MARK_STATIC 1

struct hpack_sink {
	// The next field. Its text is valid until the block's bytes, the room or the table change,
	// or another block is decoded with the memo.
	// False = stop.
	bool (*emit)(void *ctx, struct hpack_field *);
	// The table's text is about to move or go: whatever of it is still wanted is to be copied
	// now. Rare; called inside hpack_decode().
	void (*moves)(void *ctx, const char *text, size_t len);
	void *ctx;
};

enum hpack_result {
	HPACK_OK,
	HPACK_STOPPED, // by emit
	HPACK_BAD, // COMPRESSION_ERROR
	HPACK_NO_MEMORY,
};
// Room for the decoded text of a block of so many bytes.
#define HPACK_ROOM(len) ((len)*8 / 5 + 16)
// A whole header block. Every block must be run through here, whatever becomes of its stream, or
// the tables part; after any result but OK they have: the connection is lost.
enum hpack_result hpack_decode(struct hpack *, struct hpack_mem *,
	struct hpack_memo *, // hpack_memo.h; connections may share it. NULL = none
	const uint8_t *, size_t len, char *room, const struct hpack_sink *);
// The same for what is no request's way: the other one has one caller, whom it becomes a part of.
enum hpack_result hpack_decode_rare(struct hpack *, struct hpack_mem *, struct hpack_memo *,
	const uint8_t *, size_t len, char *room, const struct hpack_sink *);
