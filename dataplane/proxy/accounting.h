// SPDX-License-Identifier: Apache-2.0
// Under what one attempt is counted, from its being sent to its end: the member and its locality's
// load, its cluster's circuit breaker, the requests in flight that least_request compares. A pick
// takes it down, sending opens it, and however the attempt ends it is closed once: one that was
// sent counts as issued, and as ok, failed or not judged. The last are those that no backend can
// help, or that a client brings about as it likes: it must not get backends ejected. Load reports
// know no third, and have them as failed.
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

// All zero = of a picker that is no leaf's: nothing is counted.
struct proxy_accounting {
	uint32_t leaf; // id + 1 of the leaf that was asked; 0 = none
	uint32_t member; // id + 1; 0 = none
	uint32_t load; // open: index of lb_link.loads
	// Open: the attempt is in it; NULL = none. It outlives those that are in, whatever becomes
	// of the snapshot (lb/pick/breaker.h).
	struct lb_breaker *breaker;
	struct proxy_held held; // of the breaker's places
	bool counts_active; // lb_cell's
	bool wants_report; // lb_cell's
	bool wants_metrics; // lb_leaf_layer's
	bool is_open;
	uint8_t verdict; // enum proxy_verdict, if it ended now
	uint64_t whole_ns; // open: since when it has the request, as far as the client has sent it
};

// Its leaf's breaker, as it stands now. Not OK = the request must not be sent: the breaker is full
// (OVERFLOW), or its client has its share already (OVER_SHARE).
[[nodiscard]] enum lb_cause proxy_accounting_enter(
	struct proxy_request *, const struct lb_leaf_layer *);
// It was sent. It has entered.
void proxy_accounting_open(struct proxy_request *);
// Leaves, and counts what was opened. Nothing if there is nothing to end.
void proxy_accounting_close(struct proxy_request *);

// The client's part of it is complete.
void proxy_accounting_request_done(struct proxy_request *);

// What the answer says. Reads its report of the backend's load.
void proxy_accounting_answer(struct proxy_request *, const struct h2_message *head);
void proxy_accounting_answer_data_end(struct proxy_request *);
void proxy_accounting_answer_trailers(struct proxy_request *, const struct h2_message *);
// The backend's stream ended before that, or the deadline came. Close it then.
void proxy_accounting_cut(struct proxy_request *, const struct proxy_upstream_end *);
void proxy_accounting_expire(struct proxy_request *);
