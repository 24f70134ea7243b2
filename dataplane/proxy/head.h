// SPDX-License-Identifier: Apache-2.0
// The header blocks that leave the proxy: the one place in each direction where something is added
// to what came, or changed. All else passes as it is (HX-11).
// Thread: the owning worker.
#pragma once

#include "dataplane/h2/h2.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_affinity_host;
struct proxy_request;

// Whether the client asks that the request waits while its cluster fails.
void proxy_head_read_wait(struct proxy_request *, const struct h2_message *);
// Notes where the fields of a gRPC request are that count here. Returns the client's timeout,
// LB_NO_TIMEOUT = none.
uint64_t proxy_head_read(struct proxy_request *, const struct h2_message *);

// The request as the backend of this attempt must see it, in ret. to: what is known of it, NULL =
// nothing. left_ns: what is left of the request's time, LB_NO_TIMEOUT = it has no deadline. Fields
// may be in the proxy's scratch space: good until the next call here. False = too many.
[[nodiscard]] bool proxy_head_to_backend(struct proxy_request *, const struct h2_message *,
	const struct lb_affinity_host *to, uint64_t left_ns, struct h2_message *ret);
// The answer of a request whose session has a cookie to set (SA-18), likewise.
[[nodiscard]] bool proxy_head_to_client(
	struct proxy_request *, const struct h2_message *m, struct h2_message *ret);
