// SPDX-License-Identifier: Apache-2.0
// How the proxy of one worker is set up.
// Thread: any; it is not changed while a proxy has it.
#pragma once

#include "lb/base/ip.h"

#include <stdbool.h>
#include <stdint.h>

// Which requests wait while their cluster fails. Others fail with it.
enum proxy_wait_for_ready {
	PROXY_WAIT_NEVER,
	PROXY_WAIT_ALWAYS,
	PROXY_WAIT_HEADER, // those with x-shunt-wait-for-ready: true, which no backend sees
};

struct proxy_frontend {
	struct ip_addr address;
	uint16_t port;
	const char *
		authority; // pinned :authority for the choice of virtual host; NULL = the request's
	enum proxy_wait_for_ready wait_for_ready;
};

struct proxy_conf {
	const struct proxy_frontend *frontends; // borrowed, outlive the proxy; index = snapshot's
	uint32_t n_frontends;
	uint32_t n_workers; // of the program
	uint32_t max_clients; // client connections
	uint32_t max_requests; // live requests, queued ones included
	uint32_t max_queued; // requests waiting for a backend or a time
	uint32_t max_conns_per_endpoint; // of this worker (MC-19)
	uint32_t
		max_attempts; // of a request on the wire, those of a route's policy aside (retry.h)
	bool retry_idempotent; // what is lost with its connection, if it may be done twice
	uint64_t connect_timeout_ns; // TCP and SETTINGS together; at least 20 s (BO-02)
	uint64_t listener_drain_ns; // what clients of a changed listener get (FLT-11)
	uint64_t seed;
	// Our source address towards a backend. NULL = fine, or why the attempt fails.
	const char *(*source_for)(void *ctx, const struct ip_addr *dst, struct ip_addr *ret);
	void *source_ctx;
};
