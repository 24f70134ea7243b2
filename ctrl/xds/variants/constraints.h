// SPDX-License-Identifier: Apache-2.0
// Dynamic parameter constraints (xRFC TP2): for which parameters a variant of a resource is meant.
// They belong to the identity of a resource, beside its type and name (TP2-T01).
//
// Immutable and counted. No constraints, whether the field or what is in it was unset, are NULL and
// nothing else is: they match every parameter set (TP2-C06), and every function takes them.
//
// What is kept is the decoded structure, without what this version does not know (WF-01), and its
// encoding. Equal structure is equal encoding, so identity, order and hash are those of the
// encoding, whatever the bytes on the wire were (TP2-T02). The order of operands counts.
// Thread: one owner.
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xds_constraints;
struct xds_params;
struct Envoy__Service__Discovery__V3__DynamicParameterConstraints;

// Constraints within constraints, the outermost counted (TP2-C10). A bound on everything here that
// calls itself.
#define XDS_CONSTRAINTS_DEPTH_MAX 32

// From a message that was unpacked; NULL = the field is unset. Copies. 0, -ENOMEM or -EINVAL with
// the path (`and_constraints[1]: constraint on "env": neither value nor exists is set`).
[[nodiscard]] int xds_constraints_read(
	const struct Envoy__Service__Discovery__V3__DynamicParameterConstraints *,
	struct xds_constraints **ret, struct lb_err *reterr);
// From untrusted bytes: the same, and -EINVAL for what is no such message.
[[nodiscard]] int xds_constraints_decode(
	const uint8_t *bytes, size_t len, struct xds_constraints **ret, struct lb_err *reterr);
struct xds_constraints *xds_constraints_get(struct xds_constraints *);
void xds_constraints_put(struct xds_constraints *);

// For a ResourceName that is to be packed, or to be shown as JSON (proto/json.h); borrowed, and not
// to be changed: protobuf-c knows no const. NULL = leave the field out.
struct Envoy__Service__Discovery__V3__DynamicParameterConstraints *xds_constraints_message(
	const struct xds_constraints *);
// The encoding, borrowed.
const uint8_t *xds_constraints_bytes(const struct xds_constraints *, size_t *ret_len);

// Is a variant with these constraints meant for these parameters? Proportional to their size.
bool xds_constraints_match(const struct xds_constraints *, const struct xds_params *);

bool xds_constraints_eq(const struct xds_constraints *, const struct xds_constraints *);
// By encoding, the shorter first: below, above or equal to 0. No constraints come before any.
int xds_constraints_cmp(const struct xds_constraints *, const struct xds_constraints *);
uint64_t xds_constraints_hash(const struct xds_constraints *);

// A key that one of them speaks of and the other does not; NULL = both speak of the same keys, as
// the best practice has it for all variants of a resource (TP2-S06). Borrowed.
const char *xds_constraints_odd_key(const struct xds_constraints *, const struct xds_constraints *);

// "env=prod AND NOT exists(version)"; "any" where nothing is asked, "none" where nothing can match.
// Cut to the room (4 or more).
void xds_constraints_print(const struct xds_constraints *, char *out, size_t room);
