// SPDX-License-Identifier: Apache-2.0
// A request's session (gRFC A55, A60, A75; SA-*): what its cookie asks for, kept for all of its
// attempts, and the Set-Cookie that its answer must carry. lb/route/session.h handles the text.
// Thread: the owning worker.
#pragma once

#include "dataplane/buf/buf.h"
#include "lb/pick/affinity_map.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_cluster;
struct lb_req;
struct lb_route_result;
struct lb_session;
struct proxy;
struct proxy_request;

// All zero = no session filter applies to the request.
struct proxy_session {
	// addresses, then texts: the cookie's name, its path, the list of addresses
	struct buf kept;
	struct buf set_cookie; // the value of the field
	uint64_t ttl_s;
	uint32_t name_len, path_len, list_len;
	uint8_t n_addresses; // addresses that are tried
	bool on;
	bool same_cluster; // the cookie names the cluster that is used
};

// Reads the request's cookie. Sets the cluster in *to to the cookie's if the route has it
// (SA-10). Returns false if chunks are exhausted.
[[nodiscard]] bool proxy_session_begin(struct proxy_request *, const struct lb_session *,
	const struct lb_req *, struct lb_route_result *to);
// Looks up the session's addresses in its cluster (A75-O05..A75-O09).
enum lb_affinity_kind proxy_session_pick(
	const struct proxy_request *, const struct lb_affinity_map *, struct lb_affinity_host *ret);
// The request was sent to this host: its answer sets a cookie unless the client's cookie already
// names the host (SA-16). NULL = the host's addresses are unknown.
void proxy_session_sent(
	struct proxy_request *, const struct lb_cluster *, const struct lb_affinity_host *);
void proxy_session_drop(struct proxy *, struct proxy_session *);
