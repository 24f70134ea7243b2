// SPDX-License-Identifier: Apache-2.0
// What the chosen route and the listener's filters want of a request, taken down in the turn of its
// HEADERS: none of them is looked at again (A28-R07).
// Thread: the owning worker.
#pragma once

#include "dataplane/h2/h2.h"

#include <stdbool.h>

struct lb_req;
struct lb_route_policy;
struct lb_route_result;
struct proxy_request;

// Runs the frontend's filters in listed order (FLT-05). A session may have another cluster of the
// route put in *to. False = out of chunks.
[[nodiscard]] bool proxy_plan_filter(
	struct proxy_request *, const struct lb_req *, struct lb_route_result *to);
// The rest. False = the request has failed.
bool proxy_plan_make(struct proxy_request *, const struct h2_message *, const struct lb_req *,
	const struct lb_route_policy *);
// The request has begun its way. If it waits, a policy that picks by hash may come before its turn
// does: it gets its hash now. One that was sent has the hash that its picker asked for, and else a
// random one, should a later picker ask on a retry.
void proxy_plan_end_turn(struct proxy_request *, const struct lb_req *);
