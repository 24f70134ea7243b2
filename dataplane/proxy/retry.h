// SPDX-License-Identifier: Apache-2.0
// Whether a request is sent again (gRFC A6, A44; routing.md RT-06..RT-13). As long as nothing of an
// answer went to the client and all of the request is stored, there are two reasons to: a backend
// that surely did nothing with it, whatever the route says (RT-11), or a status that the route's
// policy lists. Plain HTTP has no such statuses and so only the first one (RT-13).
// Thread: the owning worker.
#pragma once

#include "dataplane/h2/h2.h"

#include <stdbool.h>
#include <stdint.h>

struct proxy_request;
struct proxy_upstream_end;

// The attempt's stream ended like this, before an answer. True = the backend did not see the
// request, which is to be sent again at once.
bool proxy_retry_unseen(struct proxy_request *, const struct proxy_upstream_end *);
// The attempt ended with this status; answer is the backend's own, NULL = none. True = the policy
// wants another attempt after *ret_delay_ns, of which this call has taken note.
bool proxy_retry_status(struct proxy_request *, int grpc_status, const struct h2_message *answer,
	uint64_t *ret_delay_ns);
// The gRPC status of an answer that is HEADERS alone, as its client would read it; -1 = none.
int proxy_retry_status_of(const struct h2_message *answer);
// Body bytes of a request under way that are kept for another attempt.
bool proxy_retry_may_keep(const struct proxy_request *, size_t body_len);
