// SPDX-License-Identifier: Apache-2.0
// Header rules (RFC 9113 8.2, 8.3; HX-04..HX-10): decoded fields in, one h2_message or
// the reason why it is malformed out. Knows no connection, and of HPACK only what a field is.
// Thread: one owner.
#pragma once

#include "dataplane/h2/h2.h"
#include "dataplane/h2/hpack.h"

// Why a message is malformed; each is a counter.
enum h2_malformed {
	H2_WELL_FORMED,
	H2_BAD_NAME, // empty, upper case or a forbidden byte (HX-07)
	H2_BAD_VALUE, // forbidden byte, blank at an end but for gRPC (HX-07)
	H2_BAD_PSEUDO, // missing, repeated, unknown, late, in trailers (HX-06)
	H2_BAD_METHOD,
	H2_BAD_SCHEME,
	H2_BAD_AUTHORITY, // forbidden byte, userinfo, two of host (HX-09, VH-11)
	H2_BAD_STATUS, // HX-16
	H2_BAD_CONNECTION_FIELD, // connection, upgrade, … (HX-04)
	H2_BAD_TE, // HX-05
	H2_BAD_CONTENT_LENGTH, // HX-08
	H2_BAD_SEQUENCE, // trailers or 1xx that end wrongly, DATA before the response
	H2_TOO_LARGE, // a response's or trailers' list above the limits
	H2_N_MALFORMED,
};

// What is known of a block besides its fields.
struct h2_facts {
	enum h2_malformed malformed;
	bool too_large;
	bool is_grpc; // by its own content-type
	bool blank_seen; // at an end of a value
	bool regular_seen, authority_seen, method_seen, scheme_seen, path_seen, host_seen;
	bool method_connect, method_options, method_head;
};

struct h2_block {
	// Storage and limits, set once.
	struct field *fields;
	char *text; // copies, max_bytes of them
	uint32_t max_fields;
	size_t max_bytes;
	bool slow_path; // for tests: see header_text.h
	// The block at hand: all from here on.
	struct h2_message message;
	size_t n_fields; // of regular fields stored
	size_t text_used;
	size_t list_bytes; // RFC 9113 6.5.2: name + value + 32 each
	uint32_t list_fields;
	struct h2_facts facts;
	bool length_forbidden; // trailers of a message that had content-length
	bool connect_stream; // this response answers a CONNECT
	bool grpc_stream; // these trailers, or this response, belong to a gRPC request
	struct str host;
};

// 0 or -ENOMEM. Borrows nothing.
[[nodiscard]] int h2_block_init(struct h2_block *, uint32_t max_fields, size_t max_bytes);
void h2_block_fini(struct h2_block *);

// kind is RESPONSE for what may still prove INFORMATIONAL.
void h2_block_begin(struct h2_block *, enum h2_message_kind kind);
// The next field, whose text is borrowed until the message is no longer wanted. False = the list is
// beyond any honest size: stop. These two are an hpack_sink's, with the block as ctx.
bool h2_block_add(void *block, struct hpack_field *);
// Text borrowed so far from these bytes is copied.
void h2_block_moves(void *block, const char *text, size_t len);
// A block that is too large to be kept goes on after others, behind its begin() and without the
// fields that it had: facts is what was said of them.
void h2_block_resume(struct h2_block *, const struct h2_facts *facts);
// The whole block's verdict; message is complete when WELL_FORMED.
enum h2_malformed h2_block_end(struct h2_block *, bool end_stream);
