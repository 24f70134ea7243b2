// SPDX-License-Identifier: Apache-2.0
// A request as it must be sent, or sent again: header fields, body bytes so far and trailers, in
// pooled chunks. Kept while the request waits, and until the backend answers for a transparent
// retry (RT-11).
// Thread: the owning worker.
#pragma once

#include "dataplane/buf/buf.h"
#include "dataplane/h2/h2.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct proxy;

// Body bytes of a request that is under way are kept up to this many; one with more is not sent
// again.
#define PROXY_REPLAY_BODY_MAX (8u << 10)
// The same if its route asks for retries, while the worker has chunks to spare (retry.h).
#define PROXY_RETRY_BODY_MAX (64u << 10)

// All zero = nothing stored.
struct proxy_replay {
	struct buf bytes; // head, body, trailers
	uint32_t head_len;
	uint32_t trailers_len;
};

static inline bool proxy_replay_stored(const struct proxy_replay *r)
{
	return r->head_len != 0;
}

static inline size_t proxy_replay_body_len(const struct proxy_replay *r)
{
	return r->bytes.len - r->head_len - r->trailers_len;
}

// False = chunks exhausted; what was stored before stays.
[[nodiscard]] bool proxy_replay_put_head(
	struct proxy *, struct proxy_replay *, const struct h2_message *);
[[nodiscard]] bool proxy_replay_put_body(
	struct proxy *, struct proxy_replay *, const uint8_t *, size_t len);
[[nodiscard]] bool proxy_replay_put_trailers(
	struct proxy *, struct proxy_replay *, const struct h2_message *);

// Views into the proxy's scratch space: good until the next call here. is_grpc, end_stream and
// content_length are left to the caller.
void proxy_replay_head(struct proxy *, const struct proxy_replay *, struct h2_message *ret);
void proxy_replay_trailers(struct proxy *, const struct proxy_replay *, struct h2_message *ret);
// Sends the stored body. keep: it stays stored; otherwise the replay is empty afterwards, but for
// trailers. False = pools exhausted.
[[nodiscard]] bool proxy_replay_send_body(
	struct proxy *, struct proxy_replay *, struct h2_stream *, bool end_stream, bool keep);
void proxy_replay_drop(struct proxy *, struct proxy_replay *);
