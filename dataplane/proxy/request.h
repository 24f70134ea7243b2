// SPDX-License-Identifier: Apache-2.0
// One request: a client's stream, at most one backend's stream at a time, and what ties them
// together from the first HEADERS to the one cause it ends with. This file holds its state, its
// waiting and its end. A fresh request goes one way down, from client.h to route.h (which
// cluster), plan.h (what route and filters want), attempt.h, pick.h (which endpoint), backend.h
// (which connection), upstream.h and forward.h (bytes and fields that pass through). This file
// calls none of these: calls upwards go through tables of functions, such as
// proxy_attempt_events.
//
//   state     upstream   means                                          leads to
//   PAUSED    none       waits for a time: a delay, a retry's backoff   PICKING ROOM SENT ENDING
//   PICKING   none       in its cluster's queue, or just begun          PAUSED ROOM SENT ENDING
//   ROOM      none       backend chosen, waits for a stream there       PICKING SENT ENDING
//   SENT      open       no final response yet; may be sent again       PAUSED PICKING ANSWERED
//                                                                       ENDING
//   ANSWERED  open       response headers went to the client            ENDING
//   ENDING    none       the client's stream has all it will get        freed
//
// The client's stream may close in any state, and the deadline may pass in any but ENDING. A cause
// is recorded exactly once, by proxy_request_end().
// Thread: the owning worker.
#pragma once

#include "dataplane/h2/h2.h"
#include "dataplane/proxy/access_log.h"
#include "dataplane/proxy/accounting.h"
#include "dataplane/proxy/fault.h"
#include "dataplane/proxy/grpc_frames.h"
#include "dataplane/proxy/latency.h"
#include "dataplane/proxy/local_reply.h"
#include "dataplane/proxy/progress.h"
#include "dataplane/proxy/replay.h"
#include "dataplane/proxy/retry.h"
#include "dataplane/proxy/session.h"
#include "dataplane/proxy/trace.h"
#include "dataplane/proxy/trail.h"
#include "lb/base/list.h"
#include "lb/base/twheel.h"
#include "lb/pick/cause.h"
#include "lb/pick/drop.h"
#include "lb/pick/limits.h"
#include "lb/pick/picker.h"
#include "lb/route/req.h"
#include "lb/route/retry.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_breaker;
struct proxy;
struct proxy_backend;
struct proxy_client;
struct proxy_upstream;

// Ordered: before SENT there is no backend stream, from ANSWERED on the client has an answer.
enum proxy_request_state {
	PROXY_REQUEST_PAUSED,
	PROXY_REQUEST_PICKING,
	PROXY_REQUEST_ROOM,
	PROXY_REQUEST_SENT,
	PROXY_REQUEST_ANSWERED,
	PROXY_REQUEST_ENDING,
};

#define PROXY_NO_CLUSTER LB_MAX_CLUSTERS // the id that none has
#define PROXY_NO_FIELD UINT16_MAX

// What the chosen route wants, copied: no pointer into a snapshot survives a turn.
struct proxy_plan {
	struct lb_retry retry; // no statuses = no retries
	struct lb_pick_hash hash;
	struct lb_hash_recipe recipe; // valid only in the turn of the request's HEADERS
	bool auto_host_rewrite; // AR-01
};

struct proxy_request {
	struct h2_stream *client; // NULL = closed
	struct h2_stream *upstream; // NULL = none
	struct proxy_client *owner; // outlives `client` by no more than a turn
	struct proxy *proxy;
	// In the list of its state: the cluster's queue, the backend's list of waiting requests,
	// or the client's list of answered requests whose body is still being received.
	struct list_link link;
	struct proxy_plan plan;
	struct proxy_fault fault;
	struct proxy_session session;
	struct proxy_accounting accounting; // of this attempt
	struct proxy_resend resend;
	struct lb_breaker *retrying_in; // counted there until its answer begins; NULL = in none
	struct lb_drop_once drawn;
	struct proxy_progress progress;
	struct proxy_access access; // for the log
	struct proxy_trail trail;
	struct twheel_timer pause; // PAUSED: fires at its end
	struct twheel_timer deadline; // armed only if there is a deadline
	uint64_t deadline_ns; // when the deadline passes; 0 = there was never one
	uint64_t half_ns; // when half of the request's time has passed
	union {
		struct {
			uint64_t began_ns;
			uint16_t cluster_id, vhost, frontend;
			uint8_t answer, cause;
		};
		struct proxy_latency_whose whose; // all of these, to be copied in one piece
	};
	struct lb_bodies bodies; // its own
	uint64_t backend_ns; // how long attempts that are over took
	uint64_t whole_ns; // ENDING: when that began
	struct proxy_frames frames; // message boundaries of gRPC's answer
	struct ip_addr client_ip; // whose request it is, as far as that is trusted (HX-51)
	uint32_t endpoint_id; // ROOM and later
	uint32_t sent_from; // offset of its HEADERS in its connection's output, modulo 2^32
	uint32_t credited; // body bytes returned to the client's window while replay is kept
	uint32_t ahead, earned; // counted in the client's buffer.ahead and buffer.earned
	uint32_t skip; // the part of credited that a new attempt has not sent again yet
	uint16_t n_running; // handlers of this request on the stack: it is not freed meanwhile
	uint16_t timeout_field; // index of a well-formed grpc-timeout
	uint16_t chain; // the client's
	uint8_t state; // enum proxy_request_state
	uint8_t n_failed; // attempts that ended with a status, transparent retries not counted
	uint8_t n_waits; // backoffs since the first one, or since the backend last gave a delay
	bool is_grpc : 1;
	bool is_head : 1;
	bool has_te : 1;
	bool paused : 1; // counted in n_paused
	bool request_done : 1; // the client's END_STREAM (or trailers) arrived
	bool was_hinted : 1; // an informational response came
	bool capped : 1; // the deadline is earlier than the client's own
	bool foreign_timeout : 1; // has grpc-timeout fields that the proxy does not use
	bool frames_cut : 1; // the answer cannot take trailers of ours
	bool ended : 1; // has its cause
	bool waits_for_ready : 1; // waits while its cluster fails
	bool wait_field : 1; // has x-shunt-wait-for-ready fields, which are not forwarded
	bool pick_failed : 1; // PICKING: the cluster failed at the last pick
	bool has_id : 1; // id is drawn
	bool failed_answer : 1; // its answer is kept as one of failure
	struct proxy_replay replay; // from the end of this on, nothing is set to zero
	uint64_t id[2]; // random: its x-request-id, where its client gave none and a log has none
	uint64_t failed_number; // failed_answer: of its entry there
	struct lb_failure_attempt tries[LB_FAILURE_ATTEMPTS]; // trail.n_tries, by turns
	struct proxy_trace trace; // only if access.is_traced
};

// The request as routing and pickers see it; borrows from the message.
struct lb_req proxy_request_view(const struct proxy_request *, const struct h2_message *);
// Every event handler runs between these two. leave() frees the request if nothing refers to it.
void proxy_request_enter(struct proxy_request *);
void proxy_request_leave(struct proxy_request *);

// Enters a state in which the request waits for others; the caller adds it to that state's list.
void proxy_request_set_waiting(struct proxy_request *, enum proxy_request_state);
// Enters PAUSED; the caller arms the timer.
void proxy_request_set_paused(struct proxy_request *);
// Stops the waiting of its present state.
void proxy_request_unlist(struct proxy_request *);
static inline void proxy_request_stop_waiting(struct proxy_request *r)
{
	if (list_linked(&r->link) || r->paused)
		proxy_request_unlist(r);
}
static inline bool proxy_request_waits(const struct proxy_request *r)
{
	return r->state < PROXY_REQUEST_SENT;
}
// The backend of its endpoint_id is its own: when it is ending, that may be another one by now.
static inline bool proxy_request_has_backend(const struct proxy_request *r)
{
	return r->state >= PROXY_REQUEST_ROOM && r->state < PROXY_REQUEST_ENDING;
}

// Records the cause; only the first call counts.
void proxy_request_end(struct proxy_request *, enum lb_cause);
// Ends it from our side: a local reply if the client has no response yet, else RST_STREAM(code).
void proxy_request_fail(
	struct proxy_request *, const struct proxy_reply *, enum h2_error code_if_answered);
// RST_STREAM(code) in any case: nothing of it stays, whatever its client takes. The reply says why.
void proxy_request_reset(struct proxy_request *, const struct proxy_reply *, enum h2_error code);
void proxy_request_fail_with(struct proxy_request *, enum lb_cause, struct str text);
void proxy_request_fail_overload(struct proxy_request *); // our pools are exhausted
// h2_message.bad; why is for the operator.
void proxy_request_answer_bad(struct proxy_request *, uint16_t status, struct str why);
// The whole response is queued for the client.
void proxy_request_answered_all(struct proxy_request *);
// As proxy_request_fail(), but a gRPC answer under way ends with the reply's status in trailers
// if they cut no message.
void proxy_request_cut_short(
	struct proxy_request *, const struct proxy_reply *, enum h2_error code_if_cut);
// The same for all of a connection. Streams without a request have all they will get.
void proxy_request_cut_all(struct h2_conn *, const struct proxy_reply *, enum h2_error code_if_cut);
// Resets the backend's stream and forgets it.
void proxy_request_drop_upstream(struct proxy_request *, enum h2_error);
// The backend has answered in full: forgets its stream, and resets it if the rest of the request
// will not come (HX-15).
void proxy_request_leave_upstream(struct proxy_request *);

// The client's stream is closed; cause is recorded if the request has none yet.
void proxy_request_client_closed(struct proxy_request *, enum lb_cause);

// How far an attempt certainly got.
enum proxy_reach {
	PROXY_REACH_UNKNOWN, // the backend may have begun to process it
	PROXY_REACH_REFUSED, // the backend refused the stream
	PROXY_REACH_UNREAD, // above the last id of the backend's GOAWAY
	PROXY_REACH_NONE, // not a byte of it left this host
};
struct proxy_upstream_end {
	enum h2_error code;
	enum lb_cause cause;
	enum proxy_reach reach;
	bool conn_lost; // all streams of its connection ended with it
	uint32_t conn_number; // of its connection
};

// Callbacks from backends and their streams to attempt.c.
struct proxy_attempt_events {
	// The request waited for room at its backend and gets this connection.
	void (*on_room)(struct proxy_request *, struct proxy_upstream *);
	// The request waited there, and the backend cannot serve it any more.
	void (*on_no_room)(struct proxy_request *);
	// The request waited at what its client has of a backend, and no connection came about.
	void (*on_unconnected)(struct proxy_request *, struct proxy_backend *);
	// What a client has of a backend makes no attempt before its retry_at_ns.
	void (*on_rest)(struct proxy_backend *);
	// Nothing is left of what a client had of a backend.
	void (*on_over)(struct proxy_backend *);
	// The backend's stream ended before the answer was complete.
	void (*on_upstream_end)(struct proxy_request *, const struct proxy_upstream_end *);
	// The answer was a status that the route's policy retries after delay_ns. The backend's
	// stream is already forgotten.
	void (*on_retry)(struct proxy_request *, uint64_t delay_ns);
};
