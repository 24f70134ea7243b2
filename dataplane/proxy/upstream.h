// SPDX-License-Identifier: Apache-2.0
// One connection to a backend: TCP handshake, a proxy's consent if there is one, SETTINGS, ready,
// retiring (GOAWAY either way), over. backend.h chooses which connection a request gets.
//
// Servers close a connection on which too many streams are reset (CVE-2023-44487), and a connection
// serves many clients, of whom each may reset as many as it likes. So we count what we reset, and
// retire a connection before its backend ends it (TH-90). See docs/decisions/resets.md.
// Thread: the owning worker.
#pragma once

#include "dataplane/proxy/conf.h"
#include "dataplane/proxy/conn.h"
#include "dataplane/proxy/through.h"

#include <stdbool.h>
#include <stdint.h>

struct proxy_backend;
struct proxy_request;

enum proxy_upstream_state {
	PROXY_UPSTREAM_CONNECTING, // until the peer's first SETTINGS (BO-03)
	PROXY_UPSTREAM_READY,
	PROXY_UPSTREAM_RETIRING, // existing streams finish; new ones use other connections
};

struct proxy_upstream {
	struct proxy_conn conn; // first
	struct proxy_backend *backend; // NULL = over
	struct list_link link; // in the backend's list of all connections
	struct list_link open; // in the backend's list of connections with room
	uint32_t endpoint_id;
	uint32_t number; // counts this worker's connection attempts from 1; wraps
	uint32_t goaway_id; // the last stream id of the peer's newest GOAWAY
	uint32_t max_streams; // the peer's MAX_CONCURRENT_STREAMS
	uint32_t last_id; // of the newest stream
	struct lb_silence silence; // that is borne of it
	uint64_t connect_timeout_ns;
	uint64_t ready_ns; // when it became READY
	uint64_t opened_ns; // when the newest stream was opened
	enum proxy_upstream_state state;
	bool has_answered; // has answered a request
	bool spent; // retires by our doing: for its resets (is_spent()), or since it was killed
	bool promises; // retires before that, but has streams that it may still answer
	bool broke_protocol; // it ended because the backend broke the protocol
	bool cut; // over, and the bytes that TCP has not sent yet, or TLS not sealed, are dropped
	struct proxy_through through;
};

// Starts a connection. NULL = it failed at once; *ret_why says why.
struct proxy_upstream *proxy_upstream_connect(struct proxy_backend *, const char **ret_why);
// Calls proxy_backend_is_late() if the connection is not ready soon.
void proxy_upstream_expect(struct proxy_upstream *);
// True if it can take another stream now. Retires a connection whose stream ids are used up.
bool proxy_upstream_has_room(struct proxy_upstream *);
// Sends the request's HEADERS. False = pools exhausted.
[[nodiscard]] bool proxy_upstream_open(
	struct proxy_upstream *, struct proxy_request *, const struct h2_message *);
// Opens no new streams; closes the connection when the last stream is closed.
void proxy_upstream_retire(struct proxy_upstream *, const char *why);
// Sends RST at once.
void proxy_upstream_abort(struct proxy_upstream *);
void proxy_upstream_part(struct proxy_upstream *); // at the end of all: GOAWAY, then FIN
