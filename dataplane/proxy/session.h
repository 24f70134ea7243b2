// SPDX-License-Identifier: Apache-2.0
// A request's session (gRFC A55, A60, A75; SA-*): what its cookie asks for, kept for all
// of its attempts, and the Set-Cookie that its answer must carry. The text is lb/route/session.h's.
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

// All zero = no session filter counts for the request.
struct proxy_session {
	struct buf kept; // addresses; texts: the cookie's name, its path, the list of addresses
	struct buf set_cookie; // the value of the field
	uint64_t ttl_s;
	uint32_t name_len, path_len, list_len;
	uint8_t n_addresses; // as many as are tried
	bool on;
	bool same_cluster; // the cookie names the one that is used
};

// Reads the request's cookie. *to gets its cluster if the route has that one (SA-10). False = out
// of chunks.
[[nodiscard]] bool proxy_session_begin(struct proxy_request *, const struct lb_session *,
	const struct lb_req *, struct lb_route_result *to);
// What its cluster has for the addresses of the session (A75-O05..A75-O09).
enum lb_affinity_kind proxy_session_pick(
	const struct proxy_request *, const struct lb_affinity_map *, struct lb_affinity_host *ret);
// The request went to this host of the cluster: its answer sets a cookie unless the client's says
// so already (SA-16). NULL = nobody knows its addresses.
void proxy_session_sent(
	struct proxy_request *, const struct lb_cluster *, const struct lb_affinity_host *);
void proxy_session_drop(struct proxy *, struct proxy_session *);
