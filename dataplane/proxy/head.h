// SPDX-License-Identifier: Apache-2.0
// The header blocks that leave the proxy: the only place in each direction that adds or changes
// fields. All others pass unchanged (HX-11).
// Thread: the owning worker.
#pragma once

#include "dataplane/h2/h2.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_affinity_host;
struct proxy_request;

// Notes whether the client asks to wait while its cluster fails.
void proxy_head_read_wait(struct proxy_request *, const struct h2_message *);
// Notes the positions of the gRPC fields that the proxy uses. Returns the client's timeout;
// LB_NO_TIMEOUT = none.
uint64_t proxy_head_read(struct proxy_request *, const struct h2_message *);

// Builds in *ret the request as the backend of this attempt gets it. to: the session's host;
// NULL = none. left_ns: time left; LB_NO_TIMEOUT = no deadline. Fields may point into the
// proxy's scratch space until the next call here. Returns false if there are too many fields.
[[nodiscard]] bool proxy_head_to_backend(struct proxy_request *, const struct h2_message *,
	const struct lb_affinity_host *to, uint64_t left_ns, struct h2_message *ret);
// Builds the answer or trailers with the cookie that the request's session sets (SA-18), and this
// x-request-id (empty = none; left out if there are too many fields); likewise.
[[nodiscard]] bool proxy_head_to_client(struct proxy_request *, const struct h2_message *m,
	struct str request_id, struct h2_message *ret);
