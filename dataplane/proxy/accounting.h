// SPDX-License-Identifier: Apache-2.0
// Attempt accounting: under which counters one attempt stands, from its sending to its end: its
// member and the load of the member's locality, its cluster's circuit breaker, and the requests
// in flight that least_request compares. A pick fills it in, sending the request opens it, and
// it is closed once, however the attempt ends. An attempt that was sent counts as issued, and as
// ok, failed or not judged. Not judged are outcomes that no backend can help, or that a client
// can cause at will: a client must not be able to get backends ejected. Load reports have no
// third outcome and count these as failed.
// Thread: the owning worker.
#pragma once

#include "dataplane/proxy/share.h"
#include "lb/pick/cause.h"

#include <stdbool.h>
#include <stdint.h>

struct h2_message;
struct lb_breaker;
struct lb_leaf_layer;
struct proxy_request;
struct proxy_upstream_end;

enum proxy_verdict { PROXY_UNJUDGED, PROXY_GOOD, PROXY_BAD };

// All zero = the picker belongs to no leaf: nothing is counted.
struct proxy_accounting {
	uint32_t leaf; // id + 1 of the leaf whose policy chose; 0 = none
	uint32_t member; // id + 1; 0 = none
	uint32_t load; // open: index of lb_link.loads
	// Open: the breaker that the attempt has entered; NULL = none, or its place is another's
	// now (place.h). A breaker outlives the attempts in it, even if its snapshot is freed
	// (lb/pick/breaker.h).
	struct lb_breaker *breaker;
	struct proxy_held held; // what the attempt holds of the breaker's places
	bool counts_active; // copied from lb_cell
	bool wants_report; // copied from lb_cell
	bool wants_metrics; // copied from lb_leaf_layer
	bool is_open;
	uint8_t verdict; // enum proxy_verdict, as if the attempt ended now
	uint64_t whole_ns; // open: when the backend got all that the client has sent so far
	// Open: when the turn in which it was sent ended; while that lasts, when it began
	// (latency.h).
	uint64_t sent_ns;
};

// Enters the leaf's breaker. Anything but OK means that the request must not be sent: the breaker
// is full (OVERFLOW), or the client has its share of it already (OVER_SHARE).
[[nodiscard]] enum lb_cause proxy_accounting_enter(
	struct proxy_request *, const struct lb_leaf_layer *);
// Counts the attempt as sent. The caller has entered the breaker before.
void proxy_accounting_open(struct proxy_request *);
// Leaves the breaker and counts the outcome. Does nothing if the accounting is not open.
void proxy_accounting_close(struct proxy_request *);

// The client has sent its whole request.
void proxy_accounting_request_done(struct proxy_request *);

// Takes the verdict from the answer's fields, and reads the backend's load report in them.
void proxy_accounting_answer(struct proxy_request *, const struct h2_message *head);
void proxy_accounting_answer_data_end(struct proxy_request *);
void proxy_accounting_answer_trailers(struct proxy_request *, const struct h2_message *);
// The backend's stream ended early, or the deadline passed, or nothing moved for too long.
// proxy_accounting_close() must follow.
void proxy_accounting_cut(struct proxy_request *, const struct proxy_upstream_end *);
void proxy_accounting_expire(struct proxy_request *);
void proxy_accounting_idle(struct proxy_request *);
