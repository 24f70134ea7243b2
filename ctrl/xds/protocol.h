// SPDX-License-Identifier: Apache-2.0
// The two ways to speak ADS: state of the world (sotw.c) and incremental (delta.c). A protocol says
// what a request looks like and what a response says; all else, from reconnects to the cache, is
// the same for both (ads.h, client.h).
// Thread: ctrl.
#pragma once

#include "ctrl/xds/wire.h"

#include <stdbool.h>

struct xds_node;
struct xds_subs;
struct xds_type;

// One request of a type that is due: an answer, or something is pending in subs.
struct xds_ask {
	const struct xds_node *node; // NULL = left out (PC-03)
	const struct xds_type *type;
	struct xds_subs *subs;
	bool first; // of the type on this stream
	bool answer; // to the last response
	const char *error; // of an answer: NULL = ACK
	const char *version; // of the last accepted response, of any stream; "" = none
	const char *nonce; // of the last response on this stream; "" = none
};

struct xds_protocol {
	const char *name; // for operators
	const char *method; // gRPC's
	// A variant that is replaced is not named, unless responses list all there is (TP2-T12).
	bool newest_wins;
	// A name that was dropped and is wanted again before the server knew of either has to be
	// asked for: the server could not tell otherwise (DL-09).
	bool asks_again;
	// *ret is the caller's (free). 0 or -ENOMEM.
	int (*encode)(const struct xds_ask *, uint8_t **ret, size_t *ret_len);
	// NULL with the reason: not a response, or out of memory. xds_response_free().
	struct xds_response *(*decode)(const uint8_t *bytes, size_t len, struct lb_err *reterr);
};
