// SPDX-License-Identifier: Apache-2.0
// A request stored for sending or resending: header fields, body bytes so far and trailers, in the
// request itself as long as they are few, then in pooled chunks. Kept while the request waits, and
// until the backend answers for a transparent retry (RT-11).
// Thread: the owning worker.
#pragma once

#include "dataplane/buf/buf.h"
#include "dataplane/h2/h2.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct proxy;

// Bytes of body kept while an attempt is under way; a request with a longer body is not sent
// again.
#define PROXY_REPLAY_BODY_MAX (8u << 10)
// So many are kept wherever the head is.
#define PROXY_REPLAY_BODY_LEAST (1u << 10)
// The same for routes with retries, while the worker has chunks to spare (retry.h).
#define PROXY_RETRY_BODY_MAX (64u << 10)

// Most requests fit: a thousand that wait hold no chunk each.
#define PROXY_REPLAY_SMALL 312

// Head, body, trailers. Nothing is stored if all but `sum` is zero, whatever is in small[].
struct proxy_replay {
	struct buf bytes; // what comes behind small[]
	uint64_t *sum; // bytes that this and others have in chunks; borrowed
	uint32_t head_len;
	uint32_t trailers_len;
	uint32_t n_small; // bytes in small[]
	uint32_t note_len; // of a head in small[] that can be read although it is not stored
	uint8_t small[PROXY_REPLAY_SMALL];
};

static inline bool proxy_replay_stored(const struct proxy_replay *r)
{
	return r->head_len != 0;
}

// It takes no chunk.
static inline bool proxy_replay_is_small(const struct proxy_replay *r)
{
	return proxy_replay_stored(r) && !r->bytes.head;
}

static inline size_t proxy_replay_len(const struct proxy_replay *r)
{
	return r->n_small + r->bytes.len;
}

static inline size_t proxy_replay_body_len(const struct proxy_replay *r)
{
	return proxy_replay_len(r) - r->head_len - r->trailers_len;
}

// Returns false if chunks are exhausted; what was stored before stays.
[[nodiscard]] bool proxy_replay_put_head(
	struct proxy *, struct proxy_replay *, const struct h2_message *);
// Keeps where it goes and its x-request-id, of one that is not to be stored.
void proxy_replay_note(struct proxy_replay *, const struct h2_message *);
[[nodiscard]] bool proxy_replay_put_body(
	struct proxy *, struct proxy_replay *, const uint8_t *, size_t len);
[[nodiscard]] bool proxy_replay_put_trailers(
	struct proxy *, struct proxy_replay *, const struct h2_message *);

// The first x-request-id of a head that is not empty; "" = it has none.
struct str proxy_replay_request_id(const struct h2_message *);
// What is known of the head, stored or not any more (then perhaps only where it went and its
// x-request-id), as a view into the proxy's scratch space. False = nothing.
bool proxy_replay_known(struct proxy *, const struct proxy_replay *, struct h2_message *ret);
// Return views into the proxy's scratch space, valid until the next call here. The caller sets
// is_grpc, end_stream and content_length.
void proxy_replay_head(struct proxy *, const struct proxy_replay *, struct h2_message *ret);
void proxy_replay_trailers(struct proxy *, const struct proxy_replay *, struct h2_message *ret);
// Sends the stored body. With keep it stays stored; otherwise only trailers stay. Returns false
// if pools are exhausted.
[[nodiscard]] bool proxy_replay_send_body(
	struct proxy *, struct proxy_replay *, struct h2_stream *, bool end_stream, bool keep);
void proxy_replay_drop_bytes(struct proxy *, struct proxy_replay *);
static inline void proxy_replay_drop(struct proxy *p, struct proxy_replay *r)
{
	if (r->n_small || r->bytes.head)
		proxy_replay_drop_bytes(p, r);
}
