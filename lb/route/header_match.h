// SPDX-License-Identifier: Apache-2.0
// Header matchers of a route (A28-H*, SM-*) and the values they see. Names are numbered per
// virtual host; a request's values are looked up once, when the first matcher asks.
// Thread: built on ctrl; match on workers. Pure but for the scratch.
#pragma once

#include "lb/base/err.h"
#include "lb/regex/regex.h"
#include "lb/route/table_scratch.h"

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

struct lb_req;
struct lb_header_matchers;

// The matchers of a virtual host's routes, numbered from 0 in order of addition.
struct lb_header_matchers *lb_header_matchers_new(void); // NULL = out of memory
void lb_header_matchers_free(struct lb_header_matchers *); // NULL is fine
// 0, or -EINVAL with the reason: out of memory, a regex without its set.
int lb_header_matchers_add(
	struct lb_header_matchers *, const struct lb_header_match_conf *, struct lb_err *reterr);
uint32_t lb_header_matchers_count(const struct lb_header_matchers *);
size_t lb_header_matchers_size(const struct lb_header_matchers *); // bytes, without regex sets
// Adds what matching needs of a table scratch to *ret.
void lb_header_matchers_needs(const struct lb_header_matchers *, struct lb_table_scratch_size *ret);
// Iterates over the regex sets in use, from *at = 0 on; NULL = end.
struct lb_regex_set *lb_header_matchers_next_set(const struct lb_header_matchers *, uint32_t *at);

// One request as the matchers see it, for the time of one lookup.
struct lb_header_view {
	const struct lb_header_matchers *matchers;
	const struct lb_req *req;
	bool hides_transport; // lb/route/header_value.h
	bool gathered; // false at first; the first matcher gathers the values
	struct lb_table_scratch *table_scratch; // its generation is this lookup's
	struct str text; // buffer for joined values, which are cut to fit
	struct lb_regex_scratches *regex;
	uint32_t thread;
};
bool lb_header_view_match(struct lb_header_view *, uint32_t matcher);
