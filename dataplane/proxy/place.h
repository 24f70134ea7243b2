// SPDX-License-Identifier: Apache-2.0
// Places of a full breaker that go from one request to another. Shares (share.h) keep one source
// from taking all, but not fifty sources. So a request that waits for its own client gives way to
// one whose source holds far fewer places. That is a request of plain HTTP that a backend has, and
// whose client owes the rest of its body, though Shunt has passed on all that came and would take
// more (TH-130), or lets its answer lie (TH-137). One that waits for its backend never gives way,
// nor does gRPC's, whose streams may be silent for hours. A worker takes back what its own requests
// hold; the rest goes by reclaim.h.
// Thread: the owning worker.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct lb_leaf_layer;
struct proxy_request;

// It holds a place of its breaker and waits for its own client alone: for the rest of its body, or
// for the client to take what there is of its answer.
bool proxy_place_owes(const struct proxy_request *);
bool proxy_place_is_left(const struct proxy_request *);
static inline bool proxy_place_waits(const struct proxy_request *r)
{
	return proxy_place_owes(r) || proxy_place_is_left(r);
}
// From now on it is judged by what moves.
void proxy_place_mark(struct proxy_request *);
// Its client's window for the stream lets no more of its answer go, and let next to nothing go.
bool proxy_place_is_shut(const struct proxy_request *);
// Of one that is being answered: it gave way for that answer, not for its body before.
bool proxy_place_gave_answer(const struct proxy_request *);
// Since its mark less moved than lets it keep its place at a full breaker.
bool proxy_place_is_slow(const struct proxy_request *);
// … fewer bytes a second of its body than `rate`.
bool proxy_place_is_slower(const struct proxy_request *, uint64_t rate);

// The request, not sent yet, would get a place now that another one gives up.
bool proxy_place_may_take_over(const struct proxy_request *, const struct lb_leaf_layer *);
// It gets it; the other one ends with this turn (proxy_reclaim_turn). False = nobody gives way.
[[nodiscard]] bool proxy_place_take_over(struct proxy_request *, const struct lb_leaf_layer *);
