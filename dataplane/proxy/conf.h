// SPDX-License-Identifier: Apache-2.0
// How the proxy of one worker is set up.
// Thread: any; not changed while a proxy uses it, but for its own copy's terms.
#pragma once

#include "dataplane/proxy/handshakes.h"
#include "lb/base/ip.h"
#include "lb/live_frontend.h"
#include "lb/pick/terms.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_own_ranges;

struct proxy_conf {
	// At first, where snapshots say nothing else; same index as there. Borrowed, with what they
	// borrow: outlive the proxy.
	const struct lb_frontend_conf *frontends;
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
	// Tells what else is ours from now on. NULL = nobody wants to know.
	void (*own)(void *ctx, const struct lb_own_ranges *);
	void *source_ctx; // of them
};
