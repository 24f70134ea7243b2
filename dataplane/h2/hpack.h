// SPDX-License-Identifier: Apache-2.0
// HPACK (RFC 7541) of one connection: header blocks from bytes to fields and back. Both tables stay
// within 4096 bytes and allocate memory only as they fill. It knows no rules of HTTP.
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
	struct hpack_table *received; // NULL until the peer adds an entry
	struct hpack_encoder *sent; // NULL until an entry may be added
	uint16_t received_limit;
	uint16_t sent_limit, sent_least; // sent_least: lowest limit since the last block
	bool sent_changed; // sent_limit changed, and the peer has not been told yet
	bool huffman; // Huffman-code text that we send where that is shorter
};

void hpack_init(struct hpack *, bool huffman);
// Frees the memory; the state is then as after hpack_init().
void hpack_fini(struct hpack *, struct hpack_mem *);
// The peer's SETTINGS_HEADER_TABLE_SIZE; more than 4096 is not used.
void hpack_set_table_size(struct hpack *, uint32_t size);

// Encodes fields to `out`, which has hpack_bound() bytes. Returns the length. Several calls in a
// row may encode one block. Out of memory only makes the encoding longer.
size_t hpack_encode(
	struct hpack *, struct hpack_mem *, const struct field *, size_t n, uint8_t *out);
size_t hpack_bound(const struct field *, size_t n);

// One field of a block. Its text lies in the block's bytes, in the buffer for decoded text, in the
// memo, in a constant or in the connection's table.
struct hpack_field {
	struct str name, value;
	enum hpack_name id; // HPACK_NO_NAME: any name without a number
	bool never_index; // RFC 7541 6.2.3
	// What the sink stored about this text when the same table entry or literal came before;
	// the sink may change it now. 0 = a new field; HPACK_MARK_STATIC = an entry of the static
	// table that has a value.
	uint8_t mark;
};
#define HPACK_MARK_STATIC 1

struct hpack_sink {
	// Called for each field. Its text is valid until the block's bytes, the buffer or the table
	// change, or another block is decoded with the memo. Returning false stops the decoding.
	bool (*emit)(void *ctx, struct hpack_field *);
	// The table's text is about to be moved or freed: the sink must copy what it still needs.
	// Rare; called inside hpack_decode().
	void (*moves)(void *ctx, const char *text, size_t len);
	void *ctx;
};

enum hpack_result {
	HPACK_OK,
	HPACK_STOPPED, // by emit
	HPACK_BAD, // COMPRESSION_ERROR
	HPACK_NO_MEMORY,
};
// Buffer size for the decoded text of a block of len bytes.
#define HPACK_ROOM(len) ((len)*8 / 5 + 16)
// Decodes a whole header block. Every block must be decoded here, even if its stream is gone, to
// keep the table in step with the peer's. After any result but OK the tables differ: the connection
// must be closed.
enum hpack_result hpack_decode(struct hpack *, struct hpack_mem *,
	struct hpack_memo *, // hpack_memo.h; connections may share it; NULL = none
	const uint8_t *, size_t len, char *room, const struct hpack_sink *);
// The same for blocks off the request path: hpack_decode() has one caller, into which it is
// inlined.
enum hpack_result hpack_decode_rare(struct hpack *, struct hpack_mem *, struct hpack_memo *,
	const uint8_t *, size_t len, char *room, const struct hpack_sink *);
