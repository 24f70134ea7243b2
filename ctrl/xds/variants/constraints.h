// SPDX-License-Identifier: Apache-2.0
// Dynamic parameter constraints (xRFC TP2): the parameters that a variant of a resource is meant
// for. They are part of a resource's identity, besides its type and name (TP2-T01).
// Immutable and counted. NULL, and only NULL, means no constraints, whether the field or its
// content was unset: it matches every parameter set (TP2-C06), and every function accepts it.
// It keeps the decoded structure, without unknown fields (WF-01), and its encoding. Equal
// structures have equal encodings, so identity, order and hash are those of the encoding, whatever
// the bytes on the wire were (TP2-T02). The order of operands counts.
// Thread: one owner.
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xds_constraints;
struct xds_params;
struct Envoy__Service__Discovery__V3__DynamicParameterConstraints;

// Limit of nesting, the outermost included (TP2-C10). Bounds all recursion here.
#define XDS_CONSTRAINTS_DEPTH_MAX 32

// Copies an unpacked message; NULL = the field is unset. Returns 0, -ENOMEM or -EINVAL with the
// path (`and_constraints[1]: constraint on "env": neither value nor exists is set`).
[[nodiscard]] int xds_constraints_read(
	const struct Envoy__Service__Discovery__V3__DynamicParameterConstraints *,
	struct xds_constraints **ret, struct lb_err *reterr);
// The same from untrusted bytes; also -EINVAL for bytes that are no such message.
[[nodiscard]] int xds_constraints_decode(
	const uint8_t *bytes, size_t len, struct xds_constraints **ret, struct lb_err *reterr);
struct xds_constraints *xds_constraints_get(struct xds_constraints *);
void xds_constraints_put(struct xds_constraints *);

// For a ResourceName to be packed, or for JSON (proto/json.h); borrowed, and not to be changed:
// protobuf-c has no const. NULL = omit the field.
struct Envoy__Service__Discovery__V3__DynamicParameterConstraints *xds_constraints_message(
	const struct xds_constraints *);
// The encoding, borrowed.
const uint8_t *xds_constraints_bytes(const struct xds_constraints *, size_t *ret_len);

// True if a variant with these constraints is meant for these parameters. Time proportional to
// their size.
bool xds_constraints_match(const struct xds_constraints *, const struct xds_params *);

bool xds_constraints_eq(const struct xds_constraints *, const struct xds_constraints *);
// Orders by encoding, shorter ones first: below, above or equal to 0. No constraints come first.
int xds_constraints_cmp(const struct xds_constraints *, const struct xds_constraints *);
uint64_t xds_constraints_hash(const struct xds_constraints *);

// Returns a key that only one of them mentions; NULL = both mention the same keys, as is the best
// practice for all variants of a resource (TP2-S06). Borrowed.
const char *xds_constraints_odd_key(const struct xds_constraints *, const struct xds_constraints *);

// Writes "env=prod AND NOT exists(version)"; "any" if nothing is required, "none" if nothing can
// match. Cut to the room (4 or more).
void xds_constraints_print(const struct xds_constraints *, char *out, size_t room);
