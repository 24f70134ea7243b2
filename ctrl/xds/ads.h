// SPDX-License-Identifier: Apache-2.0
// The ADS stream to one server: versions, nonces, ACKs and reconnects (PC-*, FM-03). The protocol
// (protocol.h) defines the messages; the owner handles resources.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/client.h"

struct xds_node;
struct xds_response;
struct xds_subs;

// Callbacks to the owner.
struct xds_ads_owner {
	// A request has been sent: what it asked for is in flight (subs.h).
	void (*on_sent)(void *ctx, uint32_t type);
	// Applies a response whose head was read, as far as the slice goes. Returns -EAGAIN if it
	// must be called for it again; 0 with *ret NULL for an ACK, or with the text of a NACK,
	// which the caller frees; -ENOMEM: the server must send it again.
	int (*on_response)(
		void *ctx, uint32_t type, struct xds_response *, struct slice *, char **ret_nack);
	// A response was refused unread, as beyond a limit; `why` is the text of the NACK.
	void (*on_refused)(void *ctx, uint32_t type, const char *version, const char *why);
	// The response that it was to be called for again is lost: nothing of it takes effect.
	void (*on_response_lost)(void *ctx);
	// The stream ended. had_response: it had received a response, so this is no failure yet
	// (FM-02).
	void (*on_lost)(void *ctx, const char *why, bool had_response);
	// The first response since the stream was opened.
	void (*on_recovered)(void *ctx);
	// Called around every event: the owner calls xds_ads_flush() when the outermost one ends.
	void (*begin)(void *ctx);
	void (*end)(void *ctx);
	void (*log)(void *ctx, const char *line);
};

struct xds_ads_conf {
	const struct xds_server_conf *server; // borrowed
	const struct xds_protocol *protocol;
	const struct xds_type *const *types;
	uint32_t n_types;
	struct xds_subs *subs; // [n_types], borrowed: the subscriptions
	struct xds_transport_factory transport;
	struct xds_limits limits;
	struct slice slice; // of a response
	const struct xds_node *node; // borrowed
	struct twheel *wheel;
	struct rand *rand;
	const struct xds_ads_owner *owner;
	void *ctx;
};

struct xds_ads;
struct xds_ads *xds_ads_new(const struct xds_ads_conf *); // NULL = out of memory
void xds_ads_free(struct xds_ads *); // NULL is fine

// Connects if there are subscriptions, and sends what is due: ACKs and NACKs first, then requests
// for pending subscriptions.
void xds_ads_flush(struct xds_ads *);
// The next request of the type omits the version. Returns true if there was one.
bool xds_ads_forget_version(struct xds_ads *, uint32_t type);
// The type has no subscriptions any more. A late response for it counts as not asked for.
void xds_ads_reset_type(struct xds_ads *, uint32_t type);
void xds_ads_info(const struct xds_ads *, struct xds_server_info *ret);
