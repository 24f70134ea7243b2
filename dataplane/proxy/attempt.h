// SPDX-License-Identifier: Apache-2.0
// Attempts to have a backend answer a request: the cluster's picker chooses an endpoint, the
// request waits if it must, and is sent. Every end of an attempt comes back here, and either
// another attempt follows or the request ends.
// Thread: the owning worker.
#pragma once

#include "dataplane/h2/h2.h"

#include <stdbool.h>

struct proxy_attempt_events;
struct proxy_request;

// Starts the first attempt, after the route's faults. head: the request as received in this
// turn. May fail the request.
void proxy_attempt_first(struct proxy_request *, const struct h2_message *head);
// Picks again for a request in its cluster's queue. Returns true if it left the queue.
bool proxy_attempt_pick_again(struct proxy_request *);
// The callbacks that backend.h, upstream.h and forward.h use (request.h).
extern const struct proxy_attempt_events proxy_attempt_events;
