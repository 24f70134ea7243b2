// SPDX-License-Identifier: Apache-2.0
// This worker's connections to one endpoint: made when the control thread or a pick asks, handed to
// requests, reported to the control thread. Indexed by endpoint id; the slot of an id is used anew
// after RELEASED.
// Thread: the owning worker.
#pragma once

#include "dataplane/proxy/queue.h"
#include "lb/base/backoff.h"
#include "lb/base/ip.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_cell;
struct lb_endpoint;
struct proxy;
struct proxy_upstream;

// All zero = nothing known of it.
struct proxy_backend {
	struct proxy *proxy; // NULL = not in use
	struct proxy_upstream *conns; // all that are not over
	struct proxy_upstream *open_head, *open_tail; // ready, perhaps with room; by age
	struct proxy_list waiting; // requests for a stream here
	struct proxy_backend *serve_next, *tell_next;
	const char *why; // of the last failure or loss; static
	uint64_t barred; // picks of snapshots up to this version are not followed: released since
	uint64_t retry_at_ns; // own attempts wait until then; those of the control thread don't
	struct backoff backoff; // of our own attempts; the control thread's have another (BO-01)
	struct ip_port addr;
	uint32_t id;
	uint16_t n_conns, n_connecting, n_ready;
	uint8_t n_release_owed; // RELEASED answers
	bool releasing;
	bool replaces; // the last connection; the control thread need not hear of it yet
	bool was_short_lived; // the last connection that was lost (LB_EVENT_SHORT_LIVED)
	bool broke_promise; // one ended that promised answers, and none has answered since
	bool connect_owed; // an answer to CONNECT
	bool told_up; // the control thread believes so
	bool serve_listed, tell_listed;
};

// The connections to this endpoint, for a pick of this turn's snapshot. NULL = it was released
// meanwhile: pick again with the next one.
struct proxy_backend *proxy_backend_find(struct proxy *, const struct lb_cell *);
bool proxy_backend_is_ready(const struct proxy *, const struct lb_cell *);
// Starts a connection unless there is one, or one has failed lately (MC-04, MC-07).
void proxy_backend_want(struct proxy *, const struct lb_endpoint *);
// A connection for this request's stream, if no other waits for one already; rather not the one
// that refused it.
struct proxy_upstream *proxy_backend_room(struct proxy_backend *, const struct proxy_request *);
// Begins another connection if allowed, though there may be room.
void proxy_backend_add(struct proxy_backend *);
void proxy_backend_wait(struct proxy_backend *, struct proxy_request *);
// Room, waiting requests or connections have changed: looked at in this turn.
void proxy_backend_changed(struct proxy_backend *);
// Looks at them. True = some request moved.
bool proxy_backend_serve_all(struct proxy *);

// LB_COMMAND_CONNECT and RELEASE.
void proxy_backend_connect(struct proxy *, const struct lb_endpoint *);
void proxy_backend_release(struct proxy *, const struct lb_endpoint *);
// Reports what changed, as far as the ring takes it; the rest stays listed.
void proxy_backend_tell_all(struct proxy *);

// From its connections.
void proxy_backend_attempt_failed(struct proxy_backend *, const char *why);
void proxy_backend_ready(struct proxy_backend *, struct proxy_upstream *);
void proxy_backend_opened(struct proxy_backend *, struct proxy_upstream *); // has room again
void proxy_backend_not_ready(struct proxy_backend *, struct proxy_upstream *, const char *why);
// The last one is leaving, and was in use: another one is made at once. The control thread hears
// that the endpoint has lost its connection only if this fails, or takes long.
void proxy_backend_replace(struct proxy_backend *);
void proxy_backend_is_late(struct proxy_backend *); // it takes long
void proxy_backend_remove(struct proxy_backend *, struct proxy_upstream *); // over
