// SPDX-License-Identifier: Apache-2.0
// The content of bodies, made so that each byte can be checked: it is derived from the request's
// id. The first eight bytes are the id itself (little-endian), and a gRPC body is one message with
// its prefix. Nothing is stored: both ends generate and check bytes as they pass.
// Thread: the polling thread.
#pragma once

#include "dataplane/h2/h2.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BODY_ID_LEN 8 // smaller bodies don't carry the whole id
#define BODY_GRPC_PREFIX 5
#define BODY_PIECE 4096 // of content, in one go
#define BODY_SEQ_BITS 40

// An id is the tag of a run (24 bits) and the request's number in the run.
static inline uint64_t body_id(uint32_t tag, uint64_t seq)
{
	return (uint64_t)tag << BODY_SEQ_BITS | (seq & ((UINT64_C(1) << BODY_SEQ_BITS) - 1));
}
static inline uint32_t body_id_tag(uint64_t id)
{
	return (uint32_t)(id >> BODY_SEQ_BITS);
}
static inline uint64_t body_id_seq(uint64_t id)
{
	return id & ((UINT64_C(1) << BODY_SEQ_BITS) - 1);
}

void body_fill(uint64_t id, uint64_t at, uint8_t *out, size_t len);

// A body being sent.
struct body_out {
	uint64_t id;
	uint64_t size, at; // of content, without the gRPC prefix
	bool is_grpc;
	bool has_prefix; // has been sent
	bool ends; // the last byte ends the stream; else trailers do
};
// Writes the next bytes, with the prefix before the first: of content up to `most`, and BODY_PIECE.
// Returns how many.
size_t body_out_next(struct body_out *, size_t most, uint8_t out[BODY_GRPC_PREFIX + BODY_PIECE]);
// Queues as much as the stream should hold at one time; call again from on_sent. False = out of
// memory.
[[nodiscard]] bool body_out_push(struct body_out *, struct h2_stream *);
static inline bool body_out_done(const struct body_out *b)
{
	return b->at == b->size && (b->has_prefix || !b->is_grpc);
}

// A body being received.
struct body_in {
	uint64_t id; // known before, or read from the content
	uint64_t at; // bytes of content so far
	uint64_t said; // the length in the gRPC prefix
	uint8_t n_prefix;
	bool is_grpc;
	bool id_known;
	bool is_wrong; // a byte differs from what the id requires
	uint8_t first[BODY_ID_LEN]; // of the content, as received
};
void body_in_feed(struct body_in *, const uint8_t *, size_t len);
// Called at the end of the body: returns true if it is complete and correct.
bool body_in_is(const struct body_in *, uint64_t size);
// Reads the id in the content; false = too short.
bool body_in_said_id(const struct body_in *, uint64_t *ret);
