// SPDX-License-Identifier: Apache-2.0
// Validates patterns with RE2 (RX-03, RX-04). Results are cached: configurations repeat nearly the
// same patterns, and RE2 takes tens of microseconds for each.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

// Returns 0, or -EINVAL with the reason. "" is valid (RX-11).
int res_regex_check(const char *pattern, struct lb_err *reterr);
// The same for a search and replacement (HP-03); also -ENOMEM. Not cached.
int res_rewrite_check(const char *pattern, const char *substitution, struct lb_err *reterr);
