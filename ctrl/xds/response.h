// SPDX-License-Identifier: Apache-2.0
// A response of an xDS server as it came, read where it lies and bit by bit: first its head, which
// stands anywhere among the rest, then its parts one after the other. What a part is called is
// found without decoding it, so that what nobody wants costs no memory.
// Not here: what a response means (respond.h).
// Thread: ctrl.
#pragma once

#include "lb/base/arena.h"
#include "lb/base/err.h"
#include "lb/base/str.h"
#include "proto/scan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slice;
struct xds_constraints;

// Numbers of its fields; 0 = it has no such field.
struct xds_response_layout {
	const char *message; // its name
	uint32_t version, type_url, nonce;
	uint32_t resources; // Any, in which a Resource may be
	uint32_t wrapped; // Resource
	uint32_t removed; // string
	uint32_t removed_names; // ResourceName
	uint32_t errors; // ResourceError
};

struct xds_response {
	const struct xds_response_layout *layout;
	struct str bytes; // borrowed
	struct proto_scan rest; // not read yet, of the head or of the parts
	struct str head[3]; // so far
	struct lb_arena arena; // owns the texts
	// Of the head, once it is read:
	const char *type_url, *version, *nonce;
	size_t n_parts;
	size_t n_resources; // taken from it, so far
};

void xds_response_init(struct xds_response *, const struct xds_response_layout *, struct str bytes);
void xds_response_fini(struct xds_response *); // zeroed is fine
// 0 = the head is known; -EAGAIN = the slice is over; -EINVAL, with the reason: it is no response;
// -ENOMEM.
[[nodiscard]] int xds_response_read_head(
	struct xds_response *, struct slice *, struct lb_err *reterr);

enum xds_part_kind {
	XDS_PART_RESOURCE,
	XDS_PART_REMOVAL, // of a variant that is no more (DL-06, TP2-T07)
	XDS_PART_ERROR, // the server cannot give a resource (TP3)
};
struct xds_part {
	enum xds_part_kind kind;
	uint32_t field; // its number
	uint32_t index; // among the resources
	struct str bytes; // borrowed
};
// Takes the next one; the head was read. False = there is none.
bool xds_response_next(struct xds_response *, struct xds_part *ret);

// What can be told of a part without decoding it.
struct xds_part_view {
	struct str name; // as it stands there; borrowed
	struct str type_url; // of a resource; likewise
	bool is_heartbeat; // a Resource without a resource inside
};
// False = that is not to be found, or is no text.
bool xds_part_look(const struct xds_response *, const struct xds_part *, struct xds_part_view *ret);

// A part, out of its wrapper if it had one (RS-01). Texts are in the arena, bytes the response's.
struct xds_open_part {
	const char *name; // NULL = it has none; a resource tells its own
	// Of this variant (TP2-T06), or whom the error concerns (TP2-T13); counted; NULL = none.
	struct xds_constraints *constraints;
	bool has_bad_constraints; // err says why: nobody knows whom it is for
	struct lb_err err; // "" or why there is nothing to decode
	// Of a resource:
	const char *version, *type_url;
	struct str bytes;
	// No resource inside: it only says that what was sent before still holds (RS-03).
	bool is_heartbeat;
	bool has_ttl;
	uint64_t ttl_ns; // how long it holds, if nothing more is heard (RS-04)
	bool do_not_cache;
	// Of an error; without a name it is malformed: NACK (DE-08).
	int32_t code;
	const char *text;
	struct lb_arena arena;
};
// 0 or -ENOMEM; then, too, fini() follows.
[[nodiscard]] int xds_part_open(
	const struct xds_response *, const struct xds_part *, struct xds_open_part *ret);
void xds_part_close(struct xds_open_part *);
