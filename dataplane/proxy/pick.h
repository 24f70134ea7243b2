// SPDX-License-Identifier: Apache-2.0
// Picks the endpoint for one attempt from the cluster of this turn's snapshot. A leaf is asked
// in gRPC's order (A27-I01): drops, circuit breaker, session, then its policy. attempt.h acts on
// the result.
// Thread: the owning worker.
#pragma once

#include "dataplane/h2/h2.h"
#include "lb/pick/cause.h"

#include <stddef.h>

struct lb_cell;
struct lb_cluster;
struct lb_leaf_layer;
struct proxy_request;

enum proxy_pick_kind {
	PROXY_PICK_ENDPOINT, // the request's accounting is filled in for cell
	PROXY_PICK_QUEUE,
	PROXY_PICK_FAIL, // fails requests that do not wait while their cluster fails
	PROXY_PICK_REFUSE, // fails every request, for good (A27-I03)
};
struct proxy_pick {
	enum proxy_pick_kind kind;
	const struct lb_cell *cell; // ENDPOINT: of the snapshot
	enum lb_cause cause; // FAIL, REFUSE
	const char *text; // likewise; of the snapshot, or valid until the next pick
};

// layer: of the cluster's picker; NULL = the picker belongs to no leaf. head: see attempt.h.
struct proxy_pick proxy_pick(struct proxy_request *, const struct lb_cluster *,
	const struct lb_leaf_layer *, const struct h2_message *head);
// The breaker's refusal, at the pick or when the request is about to be sent: the breaker is full
// (OVERFLOW), or the client has its share of it (OVER_SHARE).
struct proxy_pick proxy_pick_overflow(
	struct proxy_request *, const struct lb_leaf_layer *, enum lb_cause);
// Returns why the cluster's policy would fail the request now; NULL = it would not. Counts
// nothing.
const char *proxy_pick_error(struct proxy_request *);
