// SPDX-License-Identifier: Apache-2.0
// Header matchers of a route (routing.md §4, §16) and the values they see. Names are numbered per
// virtual host; a request's values are looked up once, when the first matcher asks.
// Thread: built on ctrl; match on workers. Pure but for the scratch.
#pragma once

#include "lb/base/str.h"
#include "lb/regex.h"

#include <stdint.h>

enum lb_header_match_kind {
	LB_HEADER_EXACT,
	LB_HEADER_PREFIX,
	LB_HEADER_SUFFIX,
	LB_HEADER_CONTAINS,
	LB_HEADER_REGEX,
	LB_HEADER_RANGE, // [start, end) of the value as a base-10 int64 (A28-H04)
	LB_HEADER_PRESENT, // present as `present` says (A28-H05)
};

// The builder's input: borrowed for the call.
struct lb_header_match_conf {
	struct str name; // lower case (A28-H13)
	enum lb_header_match_kind kind;
	struct str text; // of the text kinds; the pattern of REGEX
	bool ignore_case; // text kinds but REGEX (SM-02)
	bool invert; // A28-H07
	bool present;
	int64_t start, end;
	struct lb_regex_ref regex; // REGEX; NULL until compiled
};
