// SPDX-License-Identifier: Apache-2.0
// A request's deadline, counted from its HEADERS: the least of the client's grpc-timeout and the
// limits of route and listener (gRFC A31; A31-T01..A31-T10). It covers delays, waiting and all
// attempts. Without a deadline the timer is not armed.
// Thread: the owning worker.
#pragma once

#include "lb/route/timeouts.h"

#include <stdbool.h>
#include <stdint.h>

struct proxy_request;

// Longer timeouts are cut to this one: the timing wheel cannot hold their ends.
#define PROXY_LONGEST_NS (UINT64_C(1) << 62)

// client_ns: the client's timeout; LB_NO_TIMEOUT = none. Returns false if the deadline has
// passed already and the request has failed.
bool proxy_deadline_begin(struct proxy_request *, const struct lb_timeouts *,
	uint64_t listener_max_ns, uint64_t client_ns);
// Returns LB_NO_TIMEOUT if there is no deadline.
uint64_t proxy_deadline_left_ns(const struct proxy_request *);
