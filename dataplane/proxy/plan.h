// SPDX-License-Identifier: Apache-2.0
// What the chosen route and the listener's filters want of a request, noted in the turn of its
// HEADERS; the route is not read again later (A28-R07).
// Thread: the owning worker.
#pragma once

#include "dataplane/h2/h2.h"
#include "dataplane/proxy/rbac.h"

#include <stdbool.h>

struct lb_req;
struct lb_route_policy;
struct lb_route_result;
struct proxy_request;

enum proxy_plan_outcome {
	PROXY_PLAN_GOES_ON,
	PROXY_PLAN_NO_MEMORY, // chunks are exhausted
	PROXY_PLAN_DENIED, // by access control
};
// Runs the frontend's filters in order (FLT-05). A session may change the cluster in *to to
// another one of the route. why: of a denial.
[[nodiscard]] enum proxy_plan_outcome proxy_plan_filter(struct proxy_request *,
	const struct lb_req *, struct lb_route_result *to, char why[PROXY_RBAC_TEXT_MAX]);
// Notes everything else. Returns false if the request has failed.
bool proxy_plan_make(struct proxy_request *, const struct h2_message *, const struct lb_req *,
	const struct lb_route_policy *);
// Called at the end of the turn of HEADERS. A request that waits gets its hash now, since a
// policy that picks by hash may arrive before its pick. A request that was sent has the hash
// that its picker asked for, or else gets a random one in case a later picker asks on a retry.
void proxy_plan_end_turn(struct proxy_request *, const struct lb_req *);
