// SPDX-License-Identifier: Apache-2.0
// The structures behind h1.h and the calls between its files; only files of this folder include it.
// Thread: the worker that owns the context.
#pragma once

#include "dataplane/h1/counters.h"
#include "dataplane/h1/h1.h"

// Fields that a Connection field may name, and bytes of a chunk's extensions.
#define H1_MAX_NAMED 16
#define H1_MAX_EXTENSION 256

// The head or trailers being parsed: message, and what else it says.
struct h1_head {
	struct h1_message message;
	enum h1_malformed malformed; // the first reason
	size_t list_bytes, list_fields;
	size_t n_fields, text_used;
	struct str host;
	struct str named[H1_MAX_NAMED]; // by Connection
	size_t n_named;
	uint8_t minor; // HTTP/1.x
	bool host_seen, host_in_target, chunked, coding_seen;
	bool is_grpc;
	bool says_close, says_keep_alive, takes_trailers, upgrades;
};

struct h1_context {
	struct h1_conf conf;
	struct pool *chunks; // borrowed
	struct pool conns;
	struct h1_head head;
	struct field *fields; // of head
	char *text; // of head: names that had to be folded
	uint8_t *gathered; // a section that came in several pieces
	char *packed; // an answer's head that no chunk holds
	size_t max_packed;
	uint64_t counters[H1_N_COUNTERS];
};

enum h1_state {
	H1_AT_HEAD,
	H1_IN_BODY, // of content-length
	H1_CHUNK_SIZE,
	H1_CHUNK_BLANK, // between size and extension
	H1_CHUNK_EXTENSION,
	H1_CHUNK_LF, // CR was seen
	H1_CHUNK_DATA,
	H1_CHUNK_END, // its CR is due
	H1_CHUNK_END_LF,
	H1_AT_TRAILERS,
	H1_ENDED, // the request is complete
	H1_DROPPING, // nothing that comes is looked at
};

enum h1_framing { H1_NO_BODY, H1_BY_LENGTH, H1_CHUNKED, H1_UNTIL_CLOSE };

struct h1_conn {
	struct h1_context *ctx;
	const struct h1_events *events;
	struct buf *out; // borrowed
	void *user;
	struct str scheme;
	struct buf pending; // an incomplete section
	uint64_t left; // body bytes of the request, or of the chunk
	uint64_t answer_left; // H1_BY_LENGTH
	uint32_t window; // body bytes that the owner still takes
	uint32_t section_len, line_len,
		n_lines; // of the section so far; the last line is not whole
	uint16_t n_extension;
	uint8_t n_digits;
	uint8_t state, malformed, framing;
	uint8_t minor;
	char last; // byte of the section
	bool blank_seen; // before the request
	bool open; // a request's head was given to the owner
	bool is_head, takes_trailers;
	bool persists; // as far as the request goes
	bool drains, closes;
	bool answering, answered;
};

static inline void h1_count(struct h1_context *ctx, enum h1_counter counter)
{
	counter_add(&ctx->counters[counter], 1);
}

// head.c: parses a whole section, its last empty line included, into ctx->head. What of it is not
// malformed is there, too.
enum h1_malformed h1_head_parse(
	struct h1_context *, struct str scheme, const uint8_t *, size_t len);
// The same of a head that is not whole, for what can be told of it: fields whose lines are.
void h1_head_parse_part(struct h1_context *, struct str scheme, const uint8_t *, size_t len);
enum h1_malformed h1_head_parse_trailers(struct h1_context *, const uint8_t *, size_t len);

// target.c: of the request line, into the message (RFC 9112 3.2).
enum h1_malformed h1_target_parse(struct h1_head *, struct str target);

// fields.c
// One line without its CRLF.
void h1_fields_add(struct h1_context *, struct str line);
// Takes out what Connection named.
void h1_fields_end(struct h1_context *);

// body.c: consumes bytes in a state of the body. 0 = the window is used up.
size_t h1_body_feed(struct h1_conn *, const uint8_t *, size_t len);

// conn.c
void h1_conn_fail(struct h1_conn *, enum h1_malformed);
// The request is complete.
void h1_conn_request_ended(struct h1_conn *);
// Both are: the next request may come, or none.
void h1_conn_settle(struct h1_conn *);
