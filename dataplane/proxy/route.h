// SPDX-License-Identifier: Apache-2.0
// The entry of a request: allocates its object, finds the route in its frontend, notes the plan
// (plan.h), and starts the first attempt (attempt.h).
// Thread: the owning worker.
#pragma once

#include "dataplane/h2/h2.h"

struct proxy_client;

// Called when its HEADERS arrived.
void proxy_route_request(struct proxy_client *, struct h2_stream *, const struct h2_message *);
// The same of one that has no stream: counted, kept and told of as one that was refused at once, by
// h2_message.bad, or 0 = with a reset. why is for the operator.
void proxy_route_refused(struct proxy_client *, const struct h2_message *, struct str why);
