// SPDX-License-Identifier: Apache-2.0
// One attempt to have a backend answer a request: its cluster's picker chooses, the request waits
// if it must, and is sent. Whatever ends an attempt comes back here, and another one follows or the
// request's end.
// Thread: the owning worker.
#pragma once

#include "dataplane/h2/h2.h"

#include <stdbool.h>

struct proxy_attempt_events;
struct proxy_request;

// After the faults that its route wants for it. head: the request as it came, in this turn. May
// fail the request.
void proxy_attempt_first(struct proxy_request *, const struct h2_message *head);
// Its cluster's queue is walked: picks again. True = it left the queue.
bool proxy_attempt_pick_again(struct proxy_request *);
// What comes back from backend.h, upstream.h and forward.h (request.h).
extern const struct proxy_attempt_events proxy_attempt_events;
