// SPDX-License-Identifier: Apache-2.0
// One pattern, compiled at once and matched without a scratch: as a chain where it is one, else by
// RE2. For patterns that are few; those of routes are in sets (regex.h).
// Thread: built and freed on ctrl; matched anywhere. Where RE2 has to match it takes locks and may
// allocate.
#pragma once

#include "lb/base/err.h"
#include "lb/base/str.h"

struct lb_regex_one;

// NULL with the reason: out of memory, or an invalid pattern.
struct lb_regex_one *lb_regex_one_new(struct str pattern, struct lb_err *reterr);
void lb_regex_one_free(struct lb_regex_one *); // NULL is fine
// True if the pattern matches the whole subject (RX-01).
bool lb_regex_one_match(const struct lb_regex_one *, struct str subject);
