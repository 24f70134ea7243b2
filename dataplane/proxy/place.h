// SPDX-License-Identifier: Apache-2.0
// Places of a full breaker that go from one request to another. Shares (share.h) keep one source
// from taking all, but not fifty sources. So a request that waits for its own client gives way to
// one whose source holds far fewer places (TH-130). That is a request of plain HTTP that a backend
// has, whose body its client owes, though Shunt has passed on all that came and would take more.
// One that its client has sent whole never gives way, nor does gRPC's, whose streams may be silent
// for hours, nor one whose backend has begun to answer: what these wait for may be the backend. A
// worker takes back what its own requests hold; the rest goes by reclaim.h.
// Thread: the owning worker.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct lb_leaf_layer;
struct proxy_request;

// Bytes a second, a tenth of a slow mobile client's upload. Who sends less gives way.
#define PROXY_PLACE_RATE 1000

// What came of it, and went out.
uint64_t proxy_place_moved(const struct proxy_request *);
// It holds a place of its breaker and waits for its own client alone.
bool proxy_place_waits(const struct proxy_request *);
// Fewer bytes a second than `rate` moved since its mark.
bool proxy_place_is_slower(const struct proxy_request *, uint64_t rate);

// The request, not sent yet, would get a place now that another one gives up.
bool proxy_place_may_take_over(const struct proxy_request *, const struct lb_leaf_layer *);
// It gets it; the other one ends with this turn (proxy_reclaim_turn). False = nobody gives way.
[[nodiscard]] bool proxy_place_take_over(struct proxy_request *, const struct lb_leaf_layer *);
