// SPDX-License-Identifier: Apache-2.0
// One server's aggregated stream: versions, nonces, answers and reconnects (PC-*, FM-03). How
// requests and responses look is the protocol's, what a response means is the owner's.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/client.h"

struct xds_node;
struct xds_response;
struct xds_subs;

// The owner, called back.
struct xds_ads_owner {
	// A request has left: what it asked for is in flight (subs.h).
	void (*on_sent)(void *ctx, uint32_t type);
	// Applies a response. 0, and *ret is NULL for an ACK, or the text of the NACK, which the
	// caller frees; -ENOMEM: it is to be sent again.
	int (*on_response)(void *ctx, uint32_t type, const struct xds_response *, char **ret_nack);
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
	const struct xds_protocol *protocol;
	const struct xds_type *const *types;
	uint32_t n_types;
	struct xds_subs *subs; // [n_types], borrowed: what is to be asked for
	struct xds_transport_factory transport;
	const struct xds_node *node; // borrowed
	struct twheel *wheel;
	struct rand *rand;
	const struct xds_ads_owner *owner;
	void *ctx;
};

struct xds_ads;
struct xds_ads *xds_ads_new(const struct xds_ads_conf *); // NULL = out of memory
void xds_ads_free(struct xds_ads *); // NULL is fine

// Connects when something is subscribed to, and sends what is due: answers first, then requests of
// what is pending.
void xds_ads_flush(struct xds_ads *);
// The next request of the type says that no version is held. True = one was.
bool xds_ads_forget_version(struct xds_ads *, uint32_t type);
// Nothing is subscribed to of this type. What comes of it late is of no type that was asked for.
void xds_ads_reset_type(struct xds_ads *, uint32_t type);
void xds_ads_info(const struct xds_ads *, struct xds_server_info *ret);
