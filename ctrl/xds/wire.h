// SPDX-License-Identifier: Apache-2.0
// The message parts that requests of both protocols share.
// Thread: ctrl.
#pragma once

#include "envoy/service/discovery/v3/discovery.pb-c.h"
#include "lb/base/arena.h"

#include <stddef.h>
#include <stdint.h>

struct xds_node;
struct xds_params;
struct xds_sub;

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
// A locator's bytes; the caller frees *ret. Returns 0 or -ENOMEM.
[[nodiscard]] int xds_wire_locator(
	const struct xds_params *, const char *name, uint8_t **ret, size_t *ret_len);
// protobuf-c's structs have no const; packing only reads them.
char *xds_wire_text(const char *);
