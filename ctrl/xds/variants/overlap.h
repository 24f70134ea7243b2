// SPDX-License-Identifier: Apache-2.0
// Decides whether two constraints overlap: whether a parameter set exists that both match. A server
// whose variants overlap is rejected, since it is undefined which variant such a client gets (xRFC
// TP2 "Variants With Overlapping Constraint Values", TP2-S06).
// The answer is exact. Parameter sets differ only in this: each key that is mentioned is absent,
// has one of the mentioned values, or has any other value. So this is satisfiability over small
// domains, in general exponential. The method: narrow each key to the choices that are not
// impossible by themselves, until nothing changes; then try both halves of one key that is still
// open. Variants that differ in a key of the outermost AND, as nearly all do, are decided by
// narrowing alone, in time (choices x size).
// Thread: one owner.
#pragma once

#include "lb/base/err.h"

struct xds_constraints;
struct xds_params;

// Limit of evaluated constraint parts: tens of milliseconds.
#define XDS_OVERLAP_STEPS_MAX (4u << 20)

// Returns 1 if they overlap, with such a set in *ret (the caller's; NULL is the empty set); 0 if
// not; -ENOMEM; -E2BIG with reterr above the limit.
[[nodiscard]] int xds_overlap_find(const struct xds_constraints *, const struct xds_constraints *,
	struct xds_params **ret, struct lb_err *reterr);
