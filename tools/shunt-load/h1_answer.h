// SPDX-License-Identifier: Apache-2.0
// An answer of HTTP/1.1 (RFC 9112), read from bytes as they come: its status, its body by
// content-length or in chunks, and whether the connection stays. What a lenient reader would guess
// at is malformed here, and so is a body that only the connection's end would end: it could not be
// told from one that is cut. It is no part of dataplane/h1, which reads requests: what the
// balancer writes is not checked by the balancer's own reader.
// Thread: one owner.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define H1_ANSWER_MAX_LINE 4096 // with its CRLF
#define H1_ANSWER_MAX_HEAD 65536 // with those of 1xx before it; of trailers likewise

enum h1_answer_state {
	H1_ANSWER_AT_STATUS,
	H1_ANSWER_AT_FIELD,
	H1_ANSWER_IN_BODY, // of content-length
	H1_ANSWER_AT_CHUNK_SIZE,
	H1_ANSWER_IN_CHUNK,
	H1_ANSWER_AT_CHUNK_END,
	H1_ANSWER_AT_TRAILER,
	H1_ANSWER_ENDED,
	H1_ANSWER_MALFORMED,
};

struct h1_answer_events {
	// The final status: 1xx are skipped, but for 101, for which nobody has asked.
	void (*on_head)(void *user, uint16_t status);
	// Bytes of the body, borrowed; len > 0.
	void (*on_data)(void *user, const uint8_t *, size_t len);
};

// Its fields are h1_answer.c's.
struct h1_answer {
	enum h1_answer_state state;
	const char *why; // it is malformed
	uint64_t left; // bytes of the body, or of the chunk
	size_t n_line; // bytes of a line that has not come whole
	size_t n_section; // of the head, or of the trailers
	uint16_t status;
	bool begun, has_length, is_chunked, closes;
	char line[H1_ANSWER_MAX_LINE];
};

// All of it but `line`, whose pages are touched only if it is needed.
void h1_answer_init(struct h1_answer *);
// Takes bytes. Returns how many: fewer than len only if the answer has ended, or is malformed.
size_t h1_answer_feed(struct h1_answer *, const uint8_t *, size_t len,
	const struct h1_answer_events *, void *user);
// A byte of it has come.
static inline bool h1_answer_has_begun(const struct h1_answer *a)
{
	return a->begun;
}
static inline bool h1_answer_has_ended(const struct h1_answer *a)
{
	return a->state == H1_ANSWER_ENDED;
}
// What is wrong with it, static; NULL = nothing so far.
static inline const char *h1_answer_malformed(const struct h1_answer *a)
{
	return a->why;
}
// It says that the connection closes behind it (RFC 9112 9.6). Of one that has ended.
static inline bool h1_answer_closes(const struct h1_answer *a)
{
	return a->closes;
}
