// SPDX-License-Identifier: Apache-2.0
// Decides whether a request is sent again (gRFC A6, A44; RT-06..RT-13). While nothing of an
// answer went to the client and the whole request is stored, there are three reasons to:
// - a backend certainly did nothing with it, whatever the route says (RT-11). A request that
//   never left this host is retried until the deadline, any other up to max_attempts of
//   proxy_conf, and gRPC after a refused stream only once (A6: it is load on the wire).
// - its connection was lost, and it is a GET, HEAD or OPTIONS of plain HTTP: once (RFC 9110
//   9.2.2), if proxy_conf allows it. A backend that resets the stream with a code other than
//   REFUSED_STREAM has answered this very request: that is final.
// - the route's policy lists the status. Plain HTTP has none (RT-13).
// A retry prefers another endpoint, or else another connection.
// Thread: the owning worker.
#pragma once

#include "dataplane/h2/h2.h"

#include <stdbool.h>
#include <stdint.h>

struct proxy_request;
struct proxy_upstream;
struct proxy_upstream_end;

// What a request remembers of attempts made without a policy.
struct proxy_resend {
	uint32_t refuser; // number of the connection that last refused it; 0 = none
	uint8_t n; // how often it was resent after being on the wire
	bool was_refused : 1; // gRPC: was refused once already; the next time is final
	bool was_lost : 1; // was lost with its connection once already
	bool elsewhere : 1; // the next pick prefers another endpoint than the last one
	bool has_rested : 1; // has waited since it was refused
};

// The attempt's stream ended with this before an answer. Returns true if the request is to be
// picked for again at once: the backend did nothing with it, or it may be repeated.
bool proxy_retry_transparent(struct proxy_request *, const struct proxy_upstream_end *);
// No connection of its client's own came about (PP-18). Returns true if it is to be picked for
// again after *ret_delay_ns: elsewhere, if there is another endpoint. may_wait: for as long as it
// takes. rest_ns: it was given the same endpoint once more, where the next attempt is due only
// then; 0 = one has failed, or rests, and another endpoint may do.
bool proxy_retry_unconnected(
	struct proxy_request *, bool may_wait, uint64_t rest_ns, uint64_t *ret_delay_ns);
// The request was refused, and is about to be sent on this connection. Returns true if it must
// wait *ret_delay_ns first: it is the same connection, or it was refused more than once.
bool proxy_retry_must_rest(
	struct proxy_request *, const struct proxy_upstream *, uint64_t *ret_delay_ns);
// The attempt ended with this status; answer is the backend's own, NULL = none. Returns true if
// the policy wants another attempt after *ret_delay_ns; the call has then counted it.
bool proxy_retry_status(struct proxy_request *, int grpc_status, const struct h2_message *answer,
	uint64_t *ret_delay_ns);
bool proxy_retry_has_status(const struct h2_message *answer); // a field says it
// Returns the gRPC status of an answer of HEADERS alone, as its client would read it; -1 = none.
int proxy_retry_status_of(const struct h2_message *answer);
// True if a body of body_len bytes may be kept for another attempt.
bool proxy_retry_may_keep(const struct proxy_request *, size_t body_len);
// Drops what is kept of a request that was sent.
void proxy_retry_give_up(struct proxy_request *);
