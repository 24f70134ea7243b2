// SPDX-License-Identifier: Apache-2.0
// How long requests took: for their clients, at backends, and what the proxy itself added
// (docs/metrics.md, OPS-01 to OPS-04), and beside that how they were answered and how large their
// bodies were. A turn knows but one time, its beginning, and what it writes leaves at its end,
// which is the beginning of the next one. So what was sent and what ended is noted, and gets its
// time then.
// Thread: the owning worker.
#pragma once

#include "lb/pick/link.h"

#include <stdint.h>

struct proxy;
struct proxy_request;

// Of one turn. If there are more, those before have the time of the turn's beginning.
#define PROXY_LATENCY_NOTES 8192

// Whose times they are, as a request keeps it.
struct proxy_latency_whose {
	uint64_t began_ns; // when the turn of its HEADERS began
	uint16_t cluster_id; // PROXY_NO_CLUSTER = none
	uint16_t vhost; // number of its counters; 0 = none
	uint16_t frontend; // the client's
	uint8_t answer; // enum lb_answer
	uint8_t cause; // enum lb_cause, once it has one
};

// An attempt that was sent, or a request that is over.
struct proxy_latency_note {
	// Where the attempt's time is to be written; NULL = a request. An attempt may be over by
	// then, and its request's memory free or another's: that one was sent in the same turn as
	// well, or writes there when it is sent.
	uint64_t *sent_ns;
	uint64_t others_ns; // spent waiting for backends, and for the client to take the answer
	struct proxy_latency_whose whose;
	struct lb_bodies bodies; // of the request
};

struct proxy_latency {
	struct lb_cluster_times *clusters; // the link's
	struct lb_frontend_times *frontends; // the link's
	struct lb_vhost_counters *vhosts; // the link's
	struct proxy_latency_note *next, *end; // of notes
	struct proxy_latency_note notes[PROXY_LATENCY_NOTES];
};

void proxy_latency_init(struct proxy_latency *, const struct lb_link *);
// The proxy's new time is the end of the turn before.
void proxy_latency_begin_turn(struct proxy *);
// An attempt's HEADERS are queued for its backend.
void proxy_latency_sent(struct proxy_request *);
// That attempt is over, whatever its end.
void proxy_latency_attempt_over(struct proxy_request *);
// The request is over: its client has the answer, or none of them wants the other.
void proxy_latency_request_over(const struct proxy_request *);
