// SPDX-License-Identifier: Apache-2.0
// Whom one attempt goes to, as its cluster says in this turn's snapshot. A leaf is asked in gRPC's
// order (A27-I01): drops, circuit breaker, session, and then its policy. What becomes of
// the answer is attempt.h's.
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
	PROXY_PICK_ENDPOINT, // the request's accounting is for cell
	PROXY_PICK_QUEUE,
	PROXY_PICK_FAIL, // for those that don't wait until their cluster serves
	PROXY_PICK_REFUSE, // for all, and once and for all (A27-I03)
};
struct proxy_pick {
	enum proxy_pick_kind kind;
	const struct lb_cell *cell; // ENDPOINT; of the snapshot
	enum lb_cause cause; // FAIL, REFUSE
	const char *text; // likewise; of the snapshot, or good until the next pick
};

// layer: of the cluster's picker; NULL = that is no leaf's. head: as attempt.h's.
struct proxy_pick proxy_pick(struct proxy_request *, const struct lb_cluster *,
	const struct lb_leaf_layer *, const struct h2_message *head);
// The breaker's refusal (OVERFLOW), whether at the pick or when it would be sent, or that of more
// than the client's share of it (OVER_SHARE).
struct proxy_pick proxy_pick_overflow(
	struct proxy_request *, const struct lb_leaf_layer *, enum lb_cause);
// What the cluster's policy says against the request now; NULL = nothing. Nothing is counted.
const char *proxy_pick_error(struct proxy_request *);
