// SPDX-License-Identifier: Apache-2.0
// The two messages of state-of-the-world ADS, between bytes and plain views.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

#include <stddef.h>
#include <stdint.h>

struct xds_node;

struct xds_request {
	const struct xds_node *node; // NULL = left out (PC-03)
	const char *type_url;
	const char *version, *nonce; // "" = none
	const char *const *names;
	size_t n_names;
	const char *error; // NULL = no error_detail; sent as INVALID_ARGUMENT (PC-10)
};
// *ret is the caller's (free). 0 or -ENOMEM.
[[nodiscard]] int xds_request_encode(const struct xds_request *, uint8_t **ret, size_t *ret_len);

// One entry of a response, out of its wrapper if it had one (RS-01).
struct xds_response_entry {
	const char *name; // of the wrapper; NULL = the resource tells it
	const char *type_url;
	const uint8_t *bytes;
	size_t len;
	struct lb_err err; // "" or why there is nothing to decode
};
// The server cannot give a resource (TP3).
struct xds_response_error {
	const char *name; // NULL = the entry itself is malformed: NACK (DE-08)
	int32_t code;
	const char *text;
};
struct xds_response {
	const char *type_url, *version, *nonce;
	const struct xds_response_entry *entries;
	size_t n_entries;
	const struct xds_response_error *errors;
	size_t n_errors;
};
// Views into memory that xds_response_free() frees. NULL with the reason: not a DiscoveryResponse,
// or no memory.
struct xds_response *xds_response_decode(const uint8_t *bytes, size_t len, struct lb_err *reterr);
void xds_response_free(struct xds_response *); // NULL is fine
