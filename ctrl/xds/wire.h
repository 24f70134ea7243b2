// SPDX-License-Identifier: Apache-2.0
// What a response says, as plain views, and the parts of messages that both protocols share.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/arena.h"
#include "envoy/service/discovery/v3/discovery.pb-c.h"
#include "lb/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// One entry of a response, out of its wrapper if it had one (RS-01).
struct xds_response_entry {
	const char *name; // of the wrapper; NULL = the resource tells it
	const char *version;
	const char *type_url;
	const uint8_t *bytes;
	size_t len;
	// No resource inside: it only says that what was sent before still holds (RS-03).
	bool heartbeat;
	bool has_ttl;
	uint64_t ttl_ns; // how long it holds, if nothing more is heard (RS-04)
	struct lb_err err; // "" or why there is nothing to decode
};
// The server cannot give a resource (TP3).
struct xds_response_error {
	const char *name; // NULL = the entry itself is malformed: NACK (DE-08)
	int32_t code;
	const char *text;
};
struct xds_response {
	const char *type_url, *nonce;
	const char *version; // of the whole
	// It lists all there is: what is missing of a type with full_state was deleted (SW-11).
	bool full;
	struct xds_response_entry *entries;
	size_t n_entries;
	const char *const *removed; // names of what is no more (DL-06)
	size_t n_removed;
	struct xds_response_error *errors;
	size_t n_errors;

	// What the views point into.
	ProtobufCMessage *msg;
	Envoy__Service__Discovery__V3__Resource **wrappers; // that are not part of msg
	size_t n_wrappers;
	struct xds_arena arena;
};
void xds_response_free(struct xds_response *); // NULL is fine

// For the protocols. Both make room for n entries first and then fill them.

// A response around an unpacked message, which it owns from now on, also where this fails: NULL =
// no memory.
struct xds_response *xds_response_new(ProtobufCMessage *, size_t n_entries,
	Envoy__Service__Discovery__V3__ResourceError *const *errors, size_t n_errors);
// RS-01 to RS-04.
void xds_wire_unwrap(
	struct xds_response_entry *, const Envoy__Service__Discovery__V3__Resource *wrapper);

// The error_detail of a NACK (PC-10). The text is the status's: free it when it is packed. 0 or
// -ENOMEM.
[[nodiscard]] int xds_wire_error(Google__Rpc__Status *, const char *error);
// *ret is the caller's (free). 0 or -ENOMEM.
[[nodiscard]] int xds_wire_pack(const ProtobufCMessage *, uint8_t **ret, size_t *ret_len);
// protobuf-c's structs have no const; what is packed is only read.
char *xds_wire_text(const char *);
