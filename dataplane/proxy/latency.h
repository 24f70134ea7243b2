// SPDX-License-Identifier: Apache-2.0
// How long requests took: for their clients, at backends, and what the proxy itself added
// (docs/metrics.md, OPS-01 to OPS-04). A turn knows but one time, its beginning, and what it writes
// leaves at its end, which is the beginning of the next one. So what was sent and what ended is
// noted, and gets its time then.
// Thread: the owning worker.
#pragma once

#include "lb/pick/answer.h"

#include <stdint.h>

struct proxy;
struct proxy_request;

// Of one turn. What goes beyond has the time of the turn's beginning.
#define PROXY_LATENCY_NOTES 4096

// A request that is over.
struct proxy_latency_end {
	uint64_t began_ns;
	uint32_t cluster; // id; PROXY_NO_CLUSTER = none
	uint16_t frontend;
	uint16_t answer; // enum lb_answer
	uint64_t others_ns; // spent waiting for backends, and for the client to take the answer
};

struct proxy_latency {
	uint64_t **next_sent;
	struct proxy_latency_end *next_end;
	// Places for the time. An attempt may be over by then, and its request's memory free or
	// another's: that one was sent in the same turn as well, or writes there when it is sent.
	uint64_t *sent[PROXY_LATENCY_NOTES];
	struct proxy_latency_end ended[PROXY_LATENCY_NOTES];
};

void proxy_latency_init(struct proxy_latency *);
// The proxy's new time is the end of the turn before.
void proxy_latency_begin_turn(struct proxy *);
// An attempt's HEADERS are queued for its backend.
void proxy_latency_sent(struct proxy_request *);
// That attempt is over, whatever its end.
void proxy_latency_attempt_over(struct proxy_request *);
// The request is over: its client has the answer, or none of them wants the other.
void proxy_latency_request_over(const struct proxy_request *);
