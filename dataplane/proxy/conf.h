// SPDX-License-Identifier: Apache-2.0
// How the proxy of one worker is set up.
// Thread: any; not changed while a proxy uses it, but for its own copy's terms.
#pragma once

#include "dataplane/proxy/handshakes.h"
#include "lb/base/ip.h"
#include "lb/pick/terms.h"

#include <stdbool.h>
#include <stdint.h>

// Which requests wait while their cluster fails. All others fail at once.
enum proxy_wait_for_ready {
	PROXY_WAIT_NEVER,
	PROXY_WAIT_ALWAYS,
	PROXY_WAIT_HEADER, // requests with x-shunt-wait-for-ready: true, which is not forwarded
};

// PROXY headers (client_header.h).
struct proxy_header_conf {
	const struct ip_prefix *allow; // who may connect, and has to send one; borrowed
	uint32_t n_allow; // 0 = nobody sends one
	bool v1, v2; // versions that are taken
};

struct proxy_frontend {
	struct ip_addr address;
	uint16_t port;
	const char *
		authority; // pinned :authority for the choice of virtual host; NULL = the request's
	enum proxy_wait_for_ready wait_for_ready;
	struct proxy_header_conf header;
	bool reply_details; // local replies name clusters and addresses (TH-95)
	bool by_listeners; // it is where the snapshot's vips say, not at an address of its own
};

struct proxy_conf {
	// borrowed, outlive the proxy; same index as in the snapshot
	const struct proxy_frontend *frontends;
	uint32_t n_frontends;
	uint32_t n_workers; // of the program
	uint32_t max_clients; // client connections
	uint32_t max_requests; // live requests, queued ones included
	uint32_t max_queued; // requests waiting for a backend or a time
	uint32_t max_conns_per_endpoint; // per worker (MC-19)
	struct lb_terms terms; // at first: snapshots may bring others
	uint64_t connect_timeout_ns; // TCP and SETTINGS together, if no cluster says; 20 s (BO-02)
	uint32_t window_max; // bytes that HTTP/2's windows may grow to
	struct proxy_handshakes_conf handshakes;
	uint64_t seed;
	// Sets *ret to our source address towards a backend. Returns NULL, or why the attempt
	// fails.
	const char *(*source_for)(void *ctx, const struct ip_addr *dst, struct ip_addr *ret);
	// Tells that clients are taken at this address from now on, NULL = at none: places are
	// those of frontends, and behind them those of the snapshot's vips. NULL = nobody wants to
	// know.
	void (*serve)(void *ctx, uint32_t place, const struct ip_addr *);
	void *source_ctx; // of both
};
