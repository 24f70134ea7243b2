// SPDX-License-Identifier: Apache-2.0
// What bodies hold, so that each byte can be checked: everything follows from the request's id, the
// first eight bytes of a body are the id itself (little-endian), and a gRPC body is one message
// with its prefix. Nothing is stored: both ends make and check bytes as they pass.
// Thread: the polling thread.
#pragma once

#include "dataplane/h2/h2.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BODY_ID_LEN 8 // smaller bodies don't carry the whole id
#define BODY_GRPC_PREFIX 5
#define BODY_SEQ_BITS 40

// An id is the tag of a run (24 bits) and a request's number in it.
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

// A body on its way out.
struct body_out {
	uint64_t id;
	uint64_t size, at; // of content: a gRPC prefix is not counted
	bool is_grpc;
	bool has_prefix; // sent
	bool ends; // the last byte ends the stream; else trailers do
};
// Queues as much as the stream should hold at one time; again from on_sent. False = out of memory.
[[nodiscard]] bool body_out_push(struct body_out *, struct h2_stream *);
static inline bool body_out_done(const struct body_out *b)
{
	return b->at == b->size && (b->has_prefix || !b->is_grpc);
}

// A body that arrives.
struct body_in {
	uint64_t id; // known before, or read from the content
	uint64_t at; // bytes of content so far
	uint64_t said; // by a gRPC prefix
	uint8_t n_prefix;
	bool is_grpc;
	bool id_known;
	bool is_wrong; // a byte is not what follows from the id
	uint8_t first[BODY_ID_LEN]; // of the content, as they arrived
};
void body_in_feed(struct body_in *, const uint8_t *, size_t len);
// The body has ended here: is it whole and right?
bool body_in_is(const struct body_in *, uint64_t size);
// The id that it says it has; false = too short to say one.
bool body_in_said_id(const struct body_in *, uint64_t *ret);
