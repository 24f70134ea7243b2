// SPDX-License-Identifier: Apache-2.0
// Where a request comes in: it gets its object, the route that its frontend has for it, what route
// and filters want (plan.h), and then its first attempt (attempt.h).
// Thread: the owning worker.
#pragma once

#include "dataplane/h2/h2.h"

struct proxy_client;

// Its HEADERS arrived.
void proxy_route_request(struct proxy_client *, struct h2_stream *, const struct h2_message *);
