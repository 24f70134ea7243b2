// SPDX-License-Identifier: Apache-2.0
// One request: a client's stream, at most one backend's stream at a time, and what ties them
// together from the first HEADERS to the one cause it ends with. Bytes and fields that pass through
// are forward.c's; choosing a backend, waiting and ending are request.c's.
//
//   state     upstream   means                                          leads to
//   PICKING   none       in its cluster's queue, or just begun          ROOM SENT ENDING
//   ROOM      none       backend chosen, waits for a stream there       PICKING SENT ENDING
//   SENT      open       no final response yet; may be sent again       PICKING ANSWERED ENDING
//   ANSWERED  open       response headers went to the client            ENDING
//   ENDING    none       the client's stream has all it will get        freed
//
// The client's stream may close in any state. A cause is recorded exactly once, by
// proxy_request_end().
// Thread: the owning worker.
#pragma once

#include "dataplane/h2/h2.h"
#include "dataplane/proxy/local_reply.h"
#include "dataplane/proxy/replay.h"
#include "lb/cause.h"

#include <stdbool.h>
#include <stdint.h>

struct proxy;
struct proxy_backend;
struct proxy_client;
struct proxy_upstream;

enum proxy_request_state {
	PROXY_REQUEST_PICKING,
	PROXY_REQUEST_ROOM,
	PROXY_REQUEST_SENT,
	PROXY_REQUEST_ANSWERED,
	PROXY_REQUEST_ENDING,
};

#define PROXY_NO_CLUSTER UINT32_MAX

struct proxy_request {
	struct h2_stream *client; // NULL = closed
	struct h2_stream *upstream; // NULL = none
	struct proxy_client *owner; // outlives `client` by no more than a turn
	struct proxy *proxy;
	// In the list of its state: cluster's queue, backend's list of waiting ones, or the
	// client's list of answered requests whose body still comes.
	struct proxy_request *next, *prev;
	struct proxy_replay replay;
	uint32_t cluster_id;
	uint32_t endpoint_id; // ROOM and later
	uint32_t credited; // body bytes given back to the client's window while replay is kept
	uint32_t skip; // of them, those that a new attempt has not sent again yet
	uint16_t n_running; // handlers of this request on the stack: it is not freed under them
	uint8_t state; // enum proxy_request_state
	uint8_t frontend;
	bool is_grpc : 1;
	bool is_head : 1;
	bool listed : 1; // next and prev are in use
	bool request_done : 1; // the client's END_STREAM (or trailers) arrived
	bool retried : 1;
	bool ended : 1; // has its cause
};

// A request arrived.
void proxy_request_begin(struct proxy_client *, struct h2_stream *, const struct h2_message *);
// Every handler of an event stands between these two. leave() frees what nothing holds any more.
void proxy_request_enter(struct proxy_request *);
void proxy_request_leave(struct proxy_request *);

// Its cluster's queue is walked: picks again. True = it left the queue.
bool proxy_request_pick_again(struct proxy_request *);
// It waited for room at its backend: here it is.
void proxy_request_send_stored(struct proxy_request *, struct proxy_upstream *);
// Its backend cannot serve it any more.
void proxy_request_back_to_queue(struct proxy_request *);

// Records the cause; later ones don't count.
void proxy_request_end(struct proxy_request *, enum lb_cause);
// Ends it from our side: a local reply while the client has no response yet, else RST_STREAM(code).
void proxy_request_fail(
	struct proxy_request *, const struct proxy_reply *, enum h2_error code_if_answered);
void proxy_request_fail_overload(struct proxy_request *); // our pools are exhausted
// The response is complete on its way to the client.
void proxy_request_answered_all(struct proxy_request *);
// RST_STREAM to the backend, which then is forgotten.
void proxy_request_drop_upstream(struct proxy_request *, enum h2_error);

// The streams' last events, and what they mean if the request has no cause yet.
void proxy_request_client_closed(struct proxy_request *, enum lb_cause);
void proxy_request_upstream_closed(
	struct proxy_request *, enum h2_error, bool unprocessed, enum lb_cause);
