// SPDX-License-Identifier: Apache-2.0
// What a response says, as plain views, and the parts of messages that both protocols share.
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

// One entry of a response, out of its wrapper if it had one (RS-01).
struct xds_response_entry {
	const char *name; // of the wrapper; NULL = the resource tells it
	struct xds_constraints *constraints; // of this variant (TP2-T06); counted; NULL = none
	bool has_bad_constraints; // err says why: nobody knows whom it is for
	const char *version;
	const char *type_url;
	const uint8_t *bytes;
	size_t len;
	// No resource inside: it only says that what was sent before still holds (RS-03).
	bool heartbeat;
	bool has_ttl;
	uint64_t ttl_ns; // how long it holds, if nothing more is heard (RS-04)
	bool do_not_cache;
	struct lb_err err; // "" or why there is nothing to decode
};
// The server cannot give a resource (TP3).
struct xds_response_error {
	const char *name; // NULL = the entry itself is malformed: NACK (DE-08)
	struct xds_constraints *constraints; // whom it concerns (TP2-T13); counted; NULL = all
	int32_t code;
	const char *text;
};
// A variant that is no more (DL-06, TP2-T07).
struct xds_response_removal {
	const char *name; // NULL = malformed
	struct xds_constraints *constraints; // counted; NULL = none
};
struct xds_response {
	const char *type_url, *nonce;
	const char *version; // of the whole
	// It lists all there is: what is missing of a type with full_state was deleted (SW-11).
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

// For the protocols. Both make room for n entries first and then fill them.

// A response around an unpacked message, which it owns from now on, also where this fails: NULL =
// out of memory.
struct xds_response *xds_response_new(ProtobufCMessage *, size_t n_entries,
	Envoy__Service__Discovery__V3__ResourceError *const *errors, size_t n_errors);
// RS-01 to RS-04. 0 or -ENOMEM.
[[nodiscard]] int xds_wire_unwrap(
	struct xds_response_entry *, const Envoy__Service__Discovery__V3__Resource *wrapper);
// 0, -EINVAL or -ENOMEM.
[[nodiscard]] int xds_wire_resource_name(const Envoy__Service__Discovery__V3__ResourceName *,
	const char **ret_name, struct xds_constraints **ret, struct lb_err *reterr);

// Puts a '?' for each byte that is not UTF-8, in place: names come from servers and callers, and
// error texts quote them cut at any byte. A peer may take a message with any other string for
// unreadable as a whole.
void xds_wire_clean(char *text);
// What requests of both protocols tell of the node (PC-03) and, as a NACK, of the error (PC-10).
struct xds_wire_head {
	Envoy__Config__Core__V3__Node node;
	Google__Rpc__Status error; // its message is owned
};
// Either may be NULL, and its part says nothing. 0, or -ENOMEM: nothing is left to undo.
[[nodiscard]] int xds_wire_head_init(
	struct xds_wire_head *, const struct xds_node *, const char *error);
void xds_wire_head_fini(struct xds_wire_head *); // once the request is packed
// One more of at most `room` locators, in the arena. 0 or -ENOMEM.
[[nodiscard]] int xds_wire_add_locator(Envoy__Service__Discovery__V3__ResourceLocator ***list,
	size_t *n, size_t room, const struct xds_sub *, struct lb_arena *);
// protobuf-c's structs have no const; what is packed is only read.
char *xds_wire_text(const char *);
