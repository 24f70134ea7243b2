// SPDX-License-Identifier: Apache-2.0
// Faults that the configuration wants for a request: a delay before anything else happens to it,
// and an abort after the delay (gRFC A33; FI-01..FI-08). Drawn once, when the route is
// chosen; the request's retries have had theirs.
// Thread: the owning worker, but for the gauge that all share.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct lb_fault;
struct lb_req;
struct proxy_reply;
struct proxy_request;

// All zero = none.
struct proxy_fault {
	uint64_t delay_ns; // before the first attempt
	uint32_t status; // of the abort
	uint8_t abort; // enum lb_fault_abort, when the delay is over
	bool counted; // in the gauge
};

// One filter's draw, added to those of earlier filters. True = it ends the request, so that no
// filter behind it sees it.
bool proxy_fault_draw(struct proxy_request *, const struct lb_fault *, const struct lb_req *);
// The delay is over, or there was none. True = the request is to be aborted, with *ret.
[[nodiscard]] bool proxy_fault_strike(struct proxy_request *, struct proxy_reply *ret);
// The request has its cause.
void proxy_fault_end(struct proxy_request *);
