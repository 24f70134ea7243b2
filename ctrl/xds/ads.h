// SPDX-License-Identifier: Apache-2.0
// One server's aggregated stream, state of the world: versions, nonces, requests, answers and
// reconnects (xds-client.md §1, 2, FM-03). What is subscribed to and what a response means is the
// owner's.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/client.h"

struct xds_node;
struct xds_response;
struct xds_server_conf;

// The owner, called back.
struct xds_ads_owner {
	// The names of a type that are subscribed to now, in order.
	uint32_t (*n_names)(void *ctx, uint32_t type);
	void (*names)(void *ctx, uint32_t type, const char **ret);
	// A request with just these names has been handed to the transport, and has left.
	void (*on_sending)(void *ctx, uint32_t type);
	void (*on_sent)(void *ctx, uint32_t type);
	// Applies a response. NULL = ACK, else the text of the NACK, which the callee frees.
	char *(*on_response)(void *ctx, uint32_t type, const struct xds_response *);
	// The stream ended. had_response: it had worked, so that nothing is wrong yet (FM-02).
	void (*on_lost)(void *ctx, const char *why, bool had_response);
	// The first response since.
	void (*on_recovered)(void *ctx);
	// Around every event: the owner calls xds_ads_flush() at the outermost end.
	void (*begin)(void *ctx);
	void (*end)(void *ctx);
	void (*log)(void *ctx, const char *line);
};

struct xds_ads_conf {
	const struct xds_server_conf *server; // borrowed
	const struct xds_type *const *types;
	uint32_t n_types;
	struct xds_transport_factory transport;
	const struct xds_node *node; // borrowed
	struct twheel *wheel;
	struct rand *rand;
	const struct xds_ads_owner *owner;
	void *ctx;
};

struct xds_ads;
struct xds_ads *xds_ads_new(const struct xds_ads_conf *); // NULL = no memory
void xds_ads_free(struct xds_ads *); // NULL is fine

// Connects when something is subscribed to, and sends what is due: answers first, then requests
// whose names differ from those last sent (WA-01, WA-04: as a set).
void xds_ads_flush(struct xds_ads *);
void xds_ads_changed(struct xds_ads *, uint32_t type); // its names may differ now
bool xds_ads_streaming(const struct xds_ads *); // a stream is open
void xds_ads_info(const struct xds_ads *, struct xds_server_info *ret);
