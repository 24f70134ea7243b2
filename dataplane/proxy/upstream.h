// SPDX-License-Identifier: Apache-2.0
// One connection to a backend: TCP handshake, SETTINGS, ready, retiring (GOAWAY either way), over.
// Which connection a request gets is backend.h's.
// Thread: the owning worker.
#pragma once

#include "dataplane/proxy/conn.h"

#include <stdbool.h>
#include <stdint.h>

struct proxy_backend;
struct proxy_request;

enum proxy_upstream_state {
	PROXY_UPSTREAM_CONNECTING, // until the peer's first SETTINGS (BO-03)
	PROXY_UPSTREAM_READY,
	PROXY_UPSTREAM_RETIRING, // its streams finish, new ones go elsewhere
};

struct proxy_upstream {
	struct proxy_conn conn; // first
	struct proxy_backend *backend; // NULL = over
	struct proxy_upstream *next, *prev; // in the backend's list of all
	struct proxy_upstream *open_next, *open_prev; // in its list of those with room
	uint32_t endpoint_id;
	uint32_t number; // of all attempts of this worker, from 1; it wraps
	uint32_t goaway_id; // the last id of the peer's newest GOAWAY
	uint32_t max_streams; // the peer's MAX_CONCURRENT_STREAMS
	uint32_t last_id; // of the newest stream
	uint64_t ready_ns; // since when it is READY
	uint64_t opened_ns; // the newest stream
	enum proxy_upstream_state state;
	bool open; // in the list of those with room
	bool has_answered; // a request
	bool promises; // it left before that, but keeps streams that it may yet answer
	bool broke_protocol; // why it is over
	bool cut; // it is over, and what TCP had not sent yet never will be
};

// A new attempt. NULL = it failed at once; *ret_why says why.
struct proxy_upstream *proxy_upstream_connect(struct proxy_backend *, const char **ret_why);
// The backend hears if it is not ready soon (proxy_backend_is_late).
void proxy_upstream_expect(struct proxy_upstream *);
// It can take another stream now. Retires a connection that has used up its stream ids.
bool proxy_upstream_has_room(struct proxy_upstream *);
// Sends the request's HEADERS. False = pools exhausted.
[[nodiscard]] bool proxy_upstream_open(
	struct proxy_upstream *, struct proxy_request *, const struct h2_message *);
// No new streams; closed when the last one is.
void proxy_upstream_retire(struct proxy_upstream *, const char *why);
// RST at once.
void proxy_upstream_abort(struct proxy_upstream *);
