// SPDX-License-Identifier: Apache-2.0
// Whether a request is sent again (gRFC A6, A44; RT-06..RT-13). As long as nothing of an
// answer went to the client and all of the request is stored, there are three reasons to:
//
//   - a backend surely did nothing with it, whatever the route says (RT-11). What never left this
//     host goes on until the deadline, all else up to max_attempts of proxy_conf, and gRPC after a
//     refused stream only once (A6: it is load on the wire).
//   - its connection broke, and it is a GET, HEAD or OPTIONS of plain HTTP: once (RFC 9110 9.2.2),
//     if proxy_conf says so. A backend that resets the stream with another code than REFUSED_STREAM
//     spoke of this very request: that is its answer.
//   - the route's policy lists the status. Plain HTTP has none (RT-13).
//
// Another endpoint is preferred, and where there is none another connection.
// Thread: the owning worker.
#pragma once

#include "dataplane/h2/h2.h"

#include <stdbool.h>
#include <stdint.h>

struct proxy_request;
struct proxy_upstream;
struct proxy_upstream_end;

// What a request remembers of attempts that no policy asked for.
struct proxy_resend {
	uint32_t refuser; // number of the connection that refused it last; 0 = none
	uint8_t n; // sent again so often after being on the wire
	bool was_refused : 1; // gRPC: once more is enough
	bool was_lost : 1; // with its connection
	bool elsewhere : 1; // the next pick: rather not the last one's endpoint
	bool has_rested : 1; // since it was refused
};

// The attempt's stream ended like this, before an answer. True = it is to be picked for again at
// once: a backend did nothing with it, or it may be done twice.
bool proxy_retry_transparent(struct proxy_request *, const struct proxy_upstream_end *);
// It was refused, and this is the connection that it would get now. True = *ret_delay_ns comes
// first: that is the same one again, or it was refused more than once.
bool proxy_retry_must_rest(
	struct proxy_request *, const struct proxy_upstream *, uint64_t *ret_delay_ns);
// The attempt ended with this status; answer is the backend's own, NULL = none. True = the policy
// wants another attempt after *ret_delay_ns, of which this call has taken note.
bool proxy_retry_status(struct proxy_request *, int grpc_status, const struct h2_message *answer,
	uint64_t *ret_delay_ns);
// The gRPC status of an answer that is HEADERS alone, as its client would read it; -1 = none.
int proxy_retry_status_of(const struct h2_message *answer);
// Body bytes of a request under way that are kept for another attempt.
bool proxy_retry_may_keep(const struct proxy_request *, size_t body_len);
