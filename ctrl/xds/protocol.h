// SPDX-License-Identifier: Apache-2.0
// The two variants of ADS: state of the world (sotw.c) and incremental (delta.c). A protocol
// encodes requests and decodes responses; everything else, from reconnects to the cache, is shared
// (ads.h, client.h).
// Thread: ctrl.
#pragma once

#include "ctrl/xds/response.h"
#include "ctrl/xds/wire.h"

#include <stdbool.h>

struct xds_node;
struct xds_subs;
struct xds_type;

// A request of one type that is due: an ACK or NACK, or changed subscriptions.
struct xds_ask {
	const struct xds_node *node; // NULL = omitted (PC-03)
	const struct xds_type *type;
	struct xds_subs *subs;
	bool first; // the type's first on this stream
	bool answer; // answers the last response
	const char *error; // if answer: NULL = ACK
	const char *version; // of the last accepted response on any stream; "" = none
	const char *nonce; // of the last response on this stream; "" = none
};

struct xds_protocol {
	const char *name; // for display
	const char *method; // gRPC's
	// Responses do not name a variant that was replaced, unless they list everything (TP2-T12).
	bool newest_wins;
	// A response of a type with full_state lists all resources there are (SW-11).
	bool lists_all;
	// A name that was dropped and is wanted again before the server knew must be requested
	// again: the server could not notice (DL-09).
	bool asks_again;
	// The caller frees *ret. Returns 0 or -ENOMEM.
	int (*encode)(const struct xds_ask *, uint8_t **ret, size_t *ret_len);
	struct xds_response_layout response;
};
