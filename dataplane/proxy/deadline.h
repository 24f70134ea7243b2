// SPDX-License-Identifier: Apache-2.0
// The time a request may take, from its HEADERS on: the client's grpc-timeout and the limits of
// route and listener (gRFC A31; A31-T01..A31-T10). It covers delays, waiting and all
// attempts. The timer is not armed when there is none.
// Thread: the owning worker.
#pragma once

#include "lb/route/timeouts.h"

#include <stdbool.h>
#include <stdint.h>

struct proxy_request;

// Longer times are as good as this one, and their ends would be no instants of the wheel.
#define PROXY_LONGEST_NS (UINT64_C(1) << 62)

// client_ns: the client's, LB_NO_TIMEOUT = none. False = it is over already, and the request has
// failed.
bool proxy_deadline_begin(struct proxy_request *, const struct lb_timeouts *,
	uint64_t listener_max_ns, uint64_t client_ns);
// LB_NO_TIMEOUT = there is none.
uint64_t proxy_deadline_left_ns(const struct proxy_request *);
