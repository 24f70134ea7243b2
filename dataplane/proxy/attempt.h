// SPDX-License-Identifier: Apache-2.0
// One attempt to have a backend answer a request: its cluster's picker chooses, the request waits
// if it must, and is sent. head is the request as it came, in the turn in which it came, or NULL:
// it is stored.
// Thread: the owning worker.
#pragma once

#include "dataplane/h2/h2.h"

#include <stdbool.h>
#include <stdint.h>

struct proxy_request;
struct proxy_upstream;

// Now. May fail the request.
void proxy_attempt_begin(struct proxy_request *, const struct h2_message *head);
// After this time. May fail the request.
void proxy_attempt_begin_later(
	struct proxy_request *, const struct h2_message *head, uint64_t delay_ns);

// Its cluster's queue is walked: picks again. True = it left the queue.
bool proxy_attempt_pick_again(struct proxy_request *);
// It waited for room at its backend: here it is.
void proxy_attempt_send_stored(struct proxy_request *, struct proxy_upstream *);
// Its backend cannot serve it any more.
void proxy_attempt_back_to_queue(struct proxy_request *);
