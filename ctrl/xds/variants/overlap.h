// SPDX-License-Identifier: Apache-2.0
// Do two constraints overlap: is there a parameter set that both match? A server whose variants do
// is refused, since nobody could say which variant such a client gets (xRFC TP2 "Variants With
// Overlapping Constraint Values", TP2-S06).
//
// The answer is exact. What can tell two parameter sets apart is, for each key that is mentioned:
// absent, one of the values that are mentioned, or any other value. So it is satisfiability over
// small domains, which in general costs exponential time. Here: narrow each key to the choices
// that alone do not make it impossible, until that changes nothing; then try both ways of one key
// that is still open. Variants that differ in some key at the outermost AND, as nearly all do, are
// told apart by narrowing alone, in time (choices x size).
// Thread: one owner.
#pragma once

#include "lb/base/err.h"

struct xds_constraints;
struct xds_params;

// How many parts of constraints are evaluated before it gives up: tens of milliseconds.
#define XDS_OVERLAP_STEPS_MAX (4u << 20)

// 1 = yes, and *ret is such a set (the caller's; the empty one is NULL); 0 = no; -ENOMEM; -E2BIG =
// more than the limit, and reterr says so.
[[nodiscard]] int xds_overlap_find(const struct xds_constraints *, const struct xds_constraints *,
	struct xds_params **ret, struct lb_err *reterr);
