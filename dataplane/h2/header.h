// SPDX-License-Identifier: Apache-2.0
// Header rules (RFC 9113 8.2, 8.3; HX-04..HX-10): takes decoded fields, returns one h2_message or
// the reason why it is malformed. It knows no connection, and of HPACK only what a field is.
// Thread: one owner.
#pragma once

#include "dataplane/h2/h2.h"
#include "dataplane/h2/hpack.h"

// Why a message is malformed; each is a counter.
enum h2_malformed {
	H2_WELL_FORMED,
	H2_BAD_NAME, // empty, upper case or a forbidden byte (HX-07)
	H2_BAD_VALUE, // forbidden byte, or a leading or trailing blank outside gRPC (HX-07)
	H2_BAD_PSEUDO, // missing, repeated, unknown, late, in trailers (HX-06)
	H2_BAD_METHOD,
	H2_BAD_SCHEME,
	H2_BAD_AUTHORITY, // forbidden byte, userinfo, two host fields (HX-09, VH-11)
	H2_BAD_STATUS, // HX-16
	H2_BAD_CONNECTION_FIELD, // connection, upgrade, … (HX-04)
	H2_BAD_TE, // HX-05
	H2_BAD_CONTENT_LENGTH, // HX-08
	H2_BAD_SEQUENCE, // trailers or 1xx with the wrong END_STREAM, DATA before the response
	H2_TOO_LARGE, // a response or trailers above the limits
	H2_N_MALFORMED,
};

// For operators (static).
struct str h2_malformed_text(enum h2_malformed);

// What a block contains besides its fields.
struct h2_facts {
	enum h2_malformed malformed;
	bool too_large;
	bool is_grpc; // from its own content-type
	bool blank_seen; // a value has a leading or trailing blank
	bool regular_seen, authority_seen, method_seen, scheme_seen, path_seen, host_seen;
	bool method_connect, method_options, method_head;
};

struct h2_block {
	// Storage and limits, set once.
	struct field *fields;
	char *text; // copied texts, max_bytes of them
	uint32_t max_fields;
	size_t max_bytes;
	bool slow_path; // for tests: see header_text.h
	// The current block: all fields below.
	struct h2_message message;
	size_t n_fields; // regular fields stored
	size_t text_used;
	size_t list_bytes; // RFC 9113 6.5.2: name + value + 32 each
	uint32_t list_fields;
	struct h2_facts facts;
	bool length_forbidden; // trailers of a message that had content-length
	bool connect_stream; // this response answers a CONNECT
	bool grpc_stream; // these trailers, or this response, belong to a gRPC request
	struct str host;
};

// Returns 0 or -ENOMEM. Borrows nothing.
[[nodiscard]] int h2_block_init(struct h2_block *, uint32_t max_fields, size_t max_bytes);
void h2_block_fini(struct h2_block *);

// kind is RESPONSE even for what may turn out to be INFORMATIONAL.
void h2_block_begin(struct h2_block *, enum h2_message_kind kind);
// Adds a field, whose text is borrowed as long as the message is used. Returns false if the list is
// far above any limit: stop decoding. These two are an hpack_sink's functions, with the block as
// ctx.
bool h2_block_add(void *block, struct hpack_field *);
// Copies the texts that were borrowed from these bytes.
void h2_block_moves(void *block, const char *text, size_t len);
// Continues a block that is too large to be kept, after begin() and without the fields seen so far:
// facts says what they contained.
void h2_block_resume(struct h2_block *, const struct h2_facts *facts);
// Checks the whole block; message is complete if WELL_FORMED.
enum h2_malformed h2_block_end(struct h2_block *, bool end_stream);
