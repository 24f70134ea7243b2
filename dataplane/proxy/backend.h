// SPDX-License-Identifier: Apache-2.0
// This worker's connections to one endpoint: made when the control thread or a pick asks for
// one, handed to requests, and reported to the control thread. Indexed by endpoint id; an id's
// slot is reused after RELEASED.
//
// Where connections begin with a PROXY header, the endpoint's own ones say that it can be reached,
// and serve nobody; a client that has requests for it has connections of its own, which are another
// proxy_backend (client_backend.h).
// Thread: the owning worker.
#pragma once

#include "dataplane/proxy/queue.h"
#include "lb/base/backoff.h"
#include "lb/base/ip.h"
#include "lb/pick/link.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct lb_cell;
struct lb_endpoint;
struct proxy;
struct proxy_client;
struct proxy_upstream;

// All zero = not in use.
struct proxy_backend {
	struct proxy *proxy; // NULL = not in use
	struct list_link conns; // all connections that are not over, the newest first
	struct list_link open; // ready connections, the oldest first; each may have room
	struct list_link waiting; // a room (line.h) of requests for a stream here
	STAILQ_ENTRY(proxy_backend) serve_next, tell_next;
	// ignore picks of snapshots up to this version: the endpoint was released since
	uint64_t barred;
	// the worker's own attempts wait until then; the control thread's do not wait
	uint64_t retry_at_ns;
	// of the worker's own attempts; the control thread has its own (BO-01)
	struct backoff backoff;
	struct ip_port addr;
	uint32_t id;
	const struct lb_endpoint *endpoint; // until it is released
	uint16_t n_conns, n_connecting, n_ready;
	uint8_t n_expect_long; // so many requests to come are expected to have long answers
	uint8_t n_kept; // ready connections of which none is closed for being idle
	uint8_t n_release_owed; // RELEASED events that are still to be sent
	bool releasing;
	// the last connection is being replaced; the control thread is not told yet
	bool replaces;
	bool was_short_lived; // the last lost connection was short-lived (LB_EVENT_SHORT_LIVED)
	// a connection that had promised answers ended, and none has answered since
	bool broke_promise;
	bool connect_owed; // CONNECT is still to be answered
	bool serve_queued, tell_queued; // in the proxy's queues
	bool told_up; // the last event told the control thread that the endpoint is up
	bool is_private; // each client has connections of its own, and these serve nobody
	// Of a client's: the endpoint's, and whose they are; NULL = it is gone.
	struct proxy_backend *of;
	const struct proxy_client *client;
	struct list_link clients; // all that clients have of it; of a client's: in that list
	// why the last attempt failed or the last connection was lost
	char why[LB_ENDPOINT_WHY_MAX];
};

// Returns the connections to this endpoint, for a pick of this turn's snapshot; NULL if the
// endpoint was released meanwhile: pick again with the next snapshot.
struct proxy_backend *proxy_backend_find(struct proxy *, const struct lb_cell *);
bool proxy_backend_is_ready(const struct proxy *, const struct lb_cell *);
// Starts a connection unless there is one or an attempt has failed recently (MC-04, MC-07).
void proxy_backend_want(struct proxy *, const struct lb_endpoint *);
// Returns a connection with room for this request's stream; NULL if there is none, or if other
// requests wait for one already. Prefers a connection other than the one that refused the
// request.
struct proxy_upstream *proxy_backend_room(struct proxy_backend *, const struct proxy_request *);
// Starts another connection if the limit allows it, even if there is room.
void proxy_backend_add(struct proxy_backend *);
void proxy_backend_wait(struct proxy_backend *, struct proxy_request *);
// A client's, of this endpoint: `b` is not in use yet.
void proxy_backend_begin_clients(
	struct proxy_backend *b, struct proxy_backend *of, const struct proxy_client *);
// It gets no more requests; its connections end with their last streams.
void proxy_backend_close(struct proxy_backend *);
// An attempt has failed lately, and no connection gives room or will soon: one that retires does
// not, however long its streams last.
bool proxy_backend_rests(const struct proxy_backend *);
// Marks this backend for proxy_backend_serve_all(): room, waiting requests or connections
// changed.
void proxy_backend_changed(struct proxy_backend *);
// Serves all marked backends. Returns true if a request moved.
bool proxy_backend_serve_all(struct proxy *);

// Carry out LB_COMMAND_CONNECT and LB_COMMAND_RELEASE.
void proxy_backend_connect(struct proxy *, const struct lb_endpoint *);
void proxy_backend_release(struct proxy *, const struct lb_endpoint *);

// Ends all connections, as the process does: GOAWAY, then FIN; RST where there is no HTTP/2 yet.
void proxy_backend_part(struct proxy_backend *);

// An answer is longer than PROXY_FIRST_WINDOW, and so the next ones may be, too: backends tend to
// serve much of a kind.
#define PROXY_EXPECT_LONG 4
static inline void proxy_backend_answers_long(struct proxy_backend *b)
{
	b->n_expect_long = PROXY_EXPECT_LONG;
}

// Called by this backend's connections.
void proxy_backend_attempt_failed(struct proxy_backend *, const char *why);
void proxy_backend_ready(struct proxy_backend *, struct proxy_upstream *);
// a full connection has room again
void proxy_backend_opened(struct proxy_backend *, struct proxy_upstream *);
void proxy_backend_not_ready(struct proxy_backend *, struct proxy_upstream *, const char *why);
// The last connection is leaving and was in use, or is one that never is, however much the endpoint
// is (is_private): makes another one at once. The control thread is told of the loss only if this
// fails or takes long.
void proxy_backend_replace(struct proxy_backend *);
void proxy_backend_is_late(struct proxy_backend *); // the new connection takes long
// the connection is over
void proxy_backend_remove(struct proxy_backend *, struct proxy_upstream *);
