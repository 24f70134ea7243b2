// SPDX-License-Identifier: Apache-2.0
// What a matcher compares a value with (A28-H01, A28-H02, A28-H04; SM-02): all kinds but patterns,
// which others run, and presence.
// Thread: any. Pure.
#pragma once

#include "lb/base/arena.h"
#include "lb/route/header_match.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_value_match {
	enum lb_header_match_kind kind;
	bool ignore_case;
	struct str text; // folded already, if case is ignored
	const uint32_t *borders; // CONTAINS that ignores case: of each start of the text
	int64_t start, end;
};

// Copies what is compared with into the arena. False = out of memory.
bool lb_value_match_init(
	struct lb_value_match *, struct lb_arena *, const struct lb_header_match_conf *);
// Not inverted. False for REGEX and PRESENT.
bool lb_value_match(const struct lb_value_match *, struct str value);
