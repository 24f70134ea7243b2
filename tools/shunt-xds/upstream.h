// SPDX-License-Identifier: Apache-2.0
// A catalog's source that is another xDS server: what makes of a server a caching proxy (xRFC TP2).
// The server is asked for exactly the (name, parameters) that clients subscribe to, each once
// (TP2-P04), and for a wildcard where a client has one. What it sends is put into the catalog as it
// came, and which of the subscriptions a variant is for, its constraints say (TP2-P03); so the
// catalog answers a late client at once, and goes on doing so when the server is gone.
//
// A subscription whose last client has gone is kept for a while, and then ended, and what only it
// kept is dropped. What the server takes back is taken back, what it has trouble with is said.
//
// Names and contents are never looked into: types are known by their URL alone, and names by their
// spelling.
// Not here: the wire, reconnects and versions (ctrl/xds/client.h), clients (ads_service.h).
// Thread: one owner.
#pragma once

#include "ctrl/xds/transport.h"
#include "tools/shunt-xds/catalog.h"

struct rand;
struct twheel;
struct xds_bootstrap;
struct xds_protocol;
struct upstream;

struct upstream_conf {
	const struct xds_bootstrap *bootstrap; // borrowed; its first server is the one
	const struct xds_protocol *protocol; // NULL = state of the world
	struct xds_transport_factory transport;
	struct twheel *wheel;
	struct rand *rand;
	const char *user_agent_version;
	uint64_t grace_ns; // how long a subscription is kept that nobody has any more
	// Bytes that the names of a type may have in a request; one client has half at most.
	// What a server does not receive because of its length ends the stream for all clients.
	size_t names_max;
	void (*log)(void *ctx, const char *line); // NULL = silent
	void *log_ctx;
};

// The source of the catalog, which is borrowed, was made for the protocol's newest_wins, has no
// clients yet, and outlives the upstream. NULL = out of memory.
struct upstream *upstream_new(const struct upstream_conf *, struct catalog *);
// The catalog's clients have gone. NULL is fine.
void upstream_free(struct upstream *);

// What clients change between these costs one request a type at most.
void upstream_begin(struct upstream *);
void upstream_end(struct upstream *);

// Puts what was heard into the catalog, as one change. True = clients may see something else. To be
// called when the turn's events are over.
bool upstream_settle(struct upstream *);

struct upstream_counts {
	size_t n_subscriptions, n_idle; // at the server; of those, without a client
	size_t n_by_wildcard; // names that have come by one
	uint64_t n_evicted;
	uint64_t n_refused; // too long for a request
};
void upstream_counts(const struct upstream *, struct upstream_counts *ret);
