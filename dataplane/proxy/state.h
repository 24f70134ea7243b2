// SPDX-License-Identifier: Apache-2.0
// The proxy of one worker as its own files see it. Nobody outside this folder includes this.
// Thread: the owning worker.
#pragma once

#include "dataplane/proxy/grpc_timeout.h"
#include "dataplane/proxy/notice.h"
#include "dataplane/proxy/pick.h"
#include "dataplane/proxy/proxy.h"
#include "dataplane/proxy/queue.h"
#include "lb/base/rand.h"
#include "lb/pick/leases.h"
#include "lb/pick/limits.h"

struct proxy_attempt_events;
struct proxy_backend;
struct proxy_client;
struct proxy_conn;

// Longer times are as good as this one, and their ends would be no instants of the wheel.
#define PROXY_LONGEST_NS (UINT64_C(1) << 62)

enum proxy_counter {
	PROXY_CLIENTS_REFUSED, // no room for another client connection
	PROXY_CLIENTS_SILENT, // no SETTINGS within the time for it
	PROXY_CLIENTS_IN_HEADER, // no end of a header block within the time for it
	PROXY_CLIENTS_DRAINED, // told to go, since their listener became another one
	PROXY_CLIENTS_STUCK, // took no byte of its output within the time for it
	PROXY_STREAMS_STUCK, // the client gave them no window within the time for it
	PROXY_REPLIES, // made here, for want of a backend's
	PROXY_TRANSPARENT_RETRIES, // the backend surely did nothing with the request
	PROXY_TRANSPARENT_EXHAUSTED, // likewise, and not made: it was the last attempt
	PROXY_IDEMPOTENT_RETRIES, // lost with its connection, and may be done twice
	PROXY_RETRIES, // the route's policy wanted them
	// Retries that the policy wanted and that were not made:
	PROXY_RETRIES_EXHAUSTED, // it was the last attempt
	PROXY_RETRIES_FORBIDDEN, // the backend said so
	PROXY_RETRIES_UNKEPT, // too much of the request's body was sent already
	PROXY_RETRIES_OVERFLOW, // as many requests wait as may
	// Deadlines that passed, by what the request did then:
	PROXY_DEADLINES_PAUSED, // waited for a delay or a backoff to end
	PROXY_DEADLINES_QUEUED, // waited for a backend
	PROXY_DEADLINES_SENT, // waited for the backend's answer
	PROXY_DEADLINES_ANSWERED, // was being answered
	PROXY_FAULT_DELAYS,
	PROXY_FAULT_ABORTS,
	PROXY_FAULTS_OVER_LIMIT, // drawn, and not made: enough requests are under one
	PROXY_SESSIONS_KEPT, // attempts that went where the client's cookie says
	PROXY_SESSIONS_SET, // attempts whose answer sets a cookie
	PROXY_QUEUED_PICK, // requests that waited for a picker to choose
	PROXY_QUEUED_ROOM, // requests that waited for a stream of a chosen backend
	PROXY_QUEUE_OVERFLOWS,
	PROXY_CONNECTS, // attempts to connect to backends
	PROXY_CONNECT_FAILURES,
	PROXY_UPSTREAM_GOAWAYS,
	PROXY_UPSTREAMS_IDLED, // spare connections closed
	PROXY_EVENTS_DELAYED, // the ring to the control thread was full
	PROXY_REPORTS_BAD, // of backends' load, that nobody can read
	PROXY_METRICS_LOST, // values for load reports: too many, or a name too long
	// Gauges, as of the end of the last turn.
	PROXY_LIVE_REQUESTS,
	PROXY_WAITING_REQUESTS, // for a backend
	PROXY_PAUSED_REQUESTS, // for a time
	PROXY_LIVE_CLIENTS,
	PROXY_LIVE_UPSTREAMS,
	PROXY_SPARE_PLACES, // of breakers, kept for requests to come (lb/pick/leases.h)
	PROXY_N_COUNTERS,
};

struct proxy_listener {
	struct proxy *proxy;
	uint32_t frontend;
};

enum proxy_drain_step {
	PROXY_DRAIN_NONE,
	PROXY_DRAIN_BEGUN, // clients hear GOAWAY 2^31-1
	PROXY_DRAIN_ENDING, // … and then the real last stream
	PROXY_DRAIN_DONE,
};

struct proxy_drain {
	enum proxy_drain_step step;
	bool answered;
	struct proxy_client *next; // to hear of this step; NULL = all have
	struct twheel_timer timer;
	uint64_t deadline_ns;
	// Of listeners that became others (FLT-11).
	uint64_t n_generations; // of the snapshot that they are of
	uint64_t generations[LB_MAX_FRONTENDS]; // of the snapshot's frontends
	struct proxy_client *look_at; // perhaps of an earlier one; NULL = no walk going on
};

struct proxy {
	const struct lb_snapshot *snapshot; // of this turn, else NULL
	struct lb_link *link;
	struct lb_shared *shared; // the link's
	struct h2_context *h2;
	struct tcp_stack *tcp;
	struct twheel *wheel;
	struct pool *chunks;
	uint64_t now_ns; // of this turn
	uint64_t version; // of the snapshot the queues were last picked with
	struct rand rand;

	struct pool requests, clients, upstreams;
	struct proxy_conn *dirty_head, *dirty_tail;
	struct proxy_client *client_list; // those with HTTP/2 going on
	struct proxy_conn *lingering; // of both kinds: have FIN to send or to get

	const struct proxy_attempt_events *attempts; // who makes them
	struct proxy_queues queues;
	uint32_t *positions; // [LB_MAX_SLOTS], lb_pick_ctx.positions
	struct proxy_notices notices;
	struct lb_leases leases; // of breakers
	struct proxy_backend *backends; // [LB_MAX_ENDPOINTS]
	uint64_t *ready; // [LB_MAX_ENDPOINTS / 64], lb/pick/picker.h
	struct proxy_backend *serve_head, *serve_tail; // waiting requests may find room
	struct proxy_backend *tell_head, *tell_tail; // the control thread must learn something
	struct twheel_timer retry_timer; // the first backend that may be tried again
	uint64_t retry_at_ns; // its time, while armed
	struct twheel_timer again; // makes a next turn happen when this one left something over

	uint8_t *scratch; // a stored request, laid out flat; contents last for one call
	size_t scratch_size; // of both
	char *pick_scratch; // lb_pick_ctx.scratch: what is joined there may lie in the other one
	struct field *fields; // [max_header_fields + PROXY_ADDED_FIELDS], likewise
	char timeout_text[PROXY_GRPC_TIMEOUT_MAX], attempts_text[4]; // likewise
	char refusal[PROXY_REFUSAL_MAX]; // proxy_pick.text
	uint32_t max_fields;
	struct lb_route_scratch *route_scratch;

	bool freeing; // nothing is begun any more
	struct proxy_drain drain;
	struct proxy_listener listeners[LB_MAX_FRONTENDS];
	struct proxy_conf conf;
	uint64_t counters[PROXY_N_COUNTERS];
};

static inline void proxy_count(struct proxy *p, enum proxy_counter which)
{
	counter_add(&p->counters[which], 1);
}
