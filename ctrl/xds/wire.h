// SPDX-License-Identifier: Apache-2.0
// The content of a response as plain views, and the message parts that both protocols share.
// Thread: ctrl.
#pragma once

#include "envoy/service/discovery/v3/discovery.pb-c.h"
#include "lb/base/arena.h"
#include "lb/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xds_constraints;
struct xds_node;
struct xds_sub;

// One resource of a response, without its wrapper (RS-01).
struct xds_response_entry {
	const char *name; // from the wrapper; NULL = the resource contains it
	struct xds_constraints *constraints; // of this variant (TP2-T06); counted; NULL = none
	bool has_bad_constraints; // err says why; it is unknown which clients it is for
	const char *version;
	const char *type_url;
	const uint8_t *bytes;
	size_t len;
	// No resource inside: it only renews the TTL of what was sent before (RS-03).
	bool heartbeat;
	bool has_ttl;
	uint64_t ttl_ns; // its time to live (RS-04)
	bool do_not_cache;
	struct lb_err err; // "", or why it cannot be decoded
};
// The server reports that it cannot provide a resource (TP3).
struct xds_response_error {
	const char *name; // NULL = the entry itself is malformed: NACK (DE-08)
	// the parameters concerned (TP2-T13); counted; NULL = all
	struct xds_constraints *constraints;
	int32_t code;
	const char *text;
};
// A deleted variant (DL-06, TP2-T07).
struct xds_response_removal {
	const char *name; // NULL = malformed
	struct xds_constraints *constraints; // counted; NULL = none
};
struct xds_response {
	const char *type_url, *nonce;
	const char *version; // of the response
	// The response lists everything: a resource that it omits was deleted, for types with
	// full_state (SW-11).
	bool full;
	struct xds_response_entry *entries;
	size_t n_entries;
	struct xds_response_removal *removed;
	size_t n_removed;
	struct xds_response_error *errors;
	size_t n_errors;

	// What the views point into.
	ProtobufCMessage *msg;
	Envoy__Service__Discovery__V3__Resource **wrappers; // that are not part of msg
	size_t n_wrappers;
	struct lb_arena arena;
};
void xds_response_free(struct xds_response *); // NULL is fine

// For the protocols. Both reserve room for n entries, which the caller then fills.

// Makes a response from an unpacked message, which it owns even if this fails. Returns NULL if out
// of memory.
struct xds_response *xds_response_new(ProtobufCMessage *, size_t n_entries,
	Envoy__Service__Discovery__V3__ResourceError *const *errors, size_t n_errors);
// Unwraps per RS-01 to RS-04. Returns 0 or -ENOMEM.
[[nodiscard]] int xds_wire_unwrap(
	struct xds_response_entry *, const Envoy__Service__Discovery__V3__Resource *wrapper);
// Returns 0, -EINVAL or -ENOMEM.
[[nodiscard]] int xds_wire_resource_name(const Envoy__Service__Discovery__V3__ResourceName *,
	const char **ret_name, struct xds_constraints **ret, struct lb_err *reterr);

// Replaces each byte that is not UTF-8 by '?', in place: error texts quote names from servers and
// callers, cut at any byte, and a peer may reject a whole message because of one invalid string.
void xds_wire_clean(char *text);
// The node (PC-03) and, for a NACK, the error (PC-10), as in requests of both protocols.
struct xds_wire_head {
	Envoy__Config__Core__V3__Node node;
	Google__Rpc__Status error; // its message is owned
};
// Either may be NULL and is then omitted. Returns 0, or -ENOMEM with nothing to undo.
[[nodiscard]] int xds_wire_head_init(
	struct xds_wire_head *, const struct xds_node *, const char *error);
void xds_wire_head_fini(struct xds_wire_head *); // call after packing the request
// Appends one of at most `room` locators, in the arena. Returns 0 or -ENOMEM.
[[nodiscard]] int xds_wire_add_locator(Envoy__Service__Discovery__V3__ResourceLocator ***list,
	size_t *n, size_t room, const struct xds_sub *, struct lb_arena *);
// protobuf-c's structs have no const; packing only reads them.
char *xds_wire_text(const char *);
