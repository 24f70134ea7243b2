// SPDX-License-Identifier: Apache-2.0
// Faults that the configuration injects into a request: a delay before anything else happens to
// it, and an abort after the delay (gRFC A33; FI-01..FI-08). Drawn once, when the route is
// chosen; retries draw no new faults.
// Thread: the owning worker, but for the gauge that all workers share.
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
	uint32_t status; // HTTP or gRPC status of the abort
	uint8_t abort; // enum lb_fault_abort; takes effect after the delay
	bool counted; // counted in the gauge of active faults
};

// Draws the faults of one filter and adds them to those of earlier filters. Returns true if they
// end the request, so that later filters do not see it.
bool proxy_fault_draw(struct proxy_request *, const struct lb_fault *, const struct lb_req *);
// Called after the delay, or at once without one. Returns true if the request must be aborted
// with *ret.
[[nodiscard]] bool proxy_fault_strike(struct proxy_request *, struct proxy_reply *ret);
// Called when the request has its cause.
void proxy_fault_end(struct proxy_request *);
