// SPDX-License-Identifier: Apache-2.0
// The entry of a request: allocates its object, finds the route in its frontend, notes the plan
// (plan.h), and starts the first attempt (attempt.h).
// Thread: the owning worker.
#pragma once

#include "dataplane/h2/h2.h"

struct proxy_client;

// Called when its HEADERS arrived.
void proxy_route_request(struct proxy_client *, struct h2_stream *, const struct h2_message *);
