// SPDX-License-Identifier: Apache-2.0
// Whether patterns are valid, for RE2 to say (RX-03, RX-04). Verdicts are remembered: a
// configuration comes again and again with nearly the same patterns, and RE2 takes tens of
// microseconds for each.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

// 0, or -EINVAL and why. "" is valid (RX-11).
int res_regex_check(const char *pattern, struct lb_err *reterr);
// The same for a search and replacement (HP-03); -ENOMEM, too. Not remembered.
int res_rewrite_check(const char *pattern, const char *substitution, struct lb_err *reterr);
