// SPDX-License-Identifier: Apache-2.0
// Requests of which nothing moves end after their limit (TH-98; Envoy's stream idle timeout): no
// message, and no byte of a body came from either side or left for it. A request notes when
// something moved; a timer of its client looks at all requests of that client, at most ten times a
// second, so that moving costs a store and an end is up to 100 ms late. A request without a limit
// costs no more.
// Thread: the owning worker.
#pragma once

#include <stdint.h>

struct proxy_request;

struct proxy_progress {
	uint64_t at_ns; // when something moved last
	uint64_t limit_ns; // 0 = none
};

// The request is new; its limit counts from now on, until its end. LB_NO_TIMEOUT = none.
void proxy_progress_begin(struct proxy_request *, uint64_t limit_ns);
