// SPDX-License-Identifier: Apache-2.0
// What a request leaves for the operator if it fails: the route it took, attempts that came to
// nothing, and the id under which its client may ask (OPS-50 to OPS-52). While it goes well, the
// route and the time of its attempt are noted, nothing else.
// Thread: the owning worker.
#pragma once

#include "lb/pick/cause.h"
#include "lb/pick/failures.h"
#include "lb/route/route.h"

#include <stdint.h>

struct h2_message;
struct proxy;
struct proxy_client;
struct proxy_reply;
struct proxy_request;

#define PROXY_ID_MAX LB_FAILURE_ID_MAX // bytes of an x-request-id that are kept

struct proxy_trail {
	struct lb_route_place routed;
	uint64_t sent_ns; // of the newest attempt
	uint32_t n_tries; // that ended in vain
};

// Its attempt ended in vain: cause OK = the backend answered with this status of gRPC.
void proxy_trail_try(struct proxy_request *, enum lb_cause, int grpc_status);
// It found nobody to be sent to, and counts as an attempt.
void proxy_trail_pick_failed(struct proxy_request *, int grpc_status);

// The client's x-request-id, else a new one: borrowed from the request or from room, which has
// PROXY_ID_MAX bytes.
struct str proxy_trail_id(struct proxy_request *, char *room);
// Sets the texts of where it came from and went, but not that of its failure; borrowed until the
// request, the proxy's scratch space or the snapshot changes. An id that its client did not give is
// empty. Returns the route's index, LB_NO_ROUTE = not known. Inside a turn.
uint32_t proxy_trail_texts(const struct proxy_request *, struct str texts[LB_FAILURE_N_TEXTS]);
// The proxy ends it, with this reply if there is none yet.
void proxy_trail_fail(struct proxy_request *, const struct proxy_reply *, struct str id);

// The backend answers it with a status of failure, in a head or in trailers (OPS-276). Returns the
// x-request-id that they are to have; empty = they have one.
struct str proxy_trail_answer(struct proxy_request *, const struct h2_message *, char *room);

// As proxy_trail_fail() for one that is refused before anything is kept of it; returns its id.
struct str proxy_trail_refuse(
	struct proxy_client *, const struct h2_message *, const struct proxy_reply *, char *room);
