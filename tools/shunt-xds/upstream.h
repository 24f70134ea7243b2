// SPDX-License-Identifier: Apache-2.0
// A catalog's source that is another xDS server, which makes shunt-xds a caching proxy (xRFC TP2).
// It subscribes at the server to exactly the (name, parameters) that clients subscribe to, each
// once (TP2-P04), and to a wildcard if a client does. It adds the server's resources to the catalog
// unchanged, and their constraints determine which subscriptions see a variant (TP2-P03); so the
// catalog answers later clients at once, even when the server is unreachable.
// A subscription whose last client left is kept for a while, then ended, and what only it kept is
// dropped. Deletions and errors of the server are forwarded.
// It never looks inside names and contents: it knows types only by URL, and names only by spelling.
// ctrl/xds/client.h handles the wire, reconnects and versions, ads_service.h the clients.
// Thread: one owner.
#pragma once

#include "ctrl/xds/transport.h"
#include "tools/shunt-xds/catalog.h"

struct rand;
struct twheel;
struct xds_bootstrap;
struct xds_keeper;
struct xds_protocol;
struct upstream;

struct upstream_conf {
	const struct xds_bootstrap *bootstrap; // borrowed; its first server is used
	const struct xds_protocol *protocol; // NULL = state of the world
	struct xds_transport_factory transport;
	struct twheel *wheel;
	struct rand *rand;
	const char *user_agent_version;
	uint64_t grace_ns; // how long a subscription without clients is kept
	// Limit of the bytes that the names of a type may take in a request; one client may use
	// half. A longer request would make the server end the stream for all clients.
	size_t names_max;
	struct xds_keeper *keeper; // keeps what the server sends; borrowed; NULL = nobody does
	void (*log)(void *ctx, const char *line); // may be NULL
	void *log_ctx;
};

// Makes the catalog's source. The catalog is borrowed, has the protocol's newest_wins and no
// clients yet, and outlives the upstream. Returns NULL if out of memory.
struct upstream *upstream_new(const struct upstream_conf *, struct catalog *);
// Call after the catalog's clients are gone. NULL is fine.
void upstream_free(struct upstream *);

// Changes of clients between these cause at most one request per type.
void upstream_begin(struct upstream *);
void upstream_end(struct upstream *);

// Applies what was received to the catalog, as one change. Returns true if clients may see a
// difference. Call at the end of the turn's events.
bool upstream_settle(struct upstream *);

struct upstream_counts {
	size_t n_subscriptions, n_idle; // at the server; those without a client
	size_t n_by_wildcard; // names received through a wildcard
	uint64_t n_evicted;
	uint64_t n_refused; // too long for a request
};
void upstream_counts(const struct upstream *, struct upstream_counts *ret);
