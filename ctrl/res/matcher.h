// SPDX-License-Identifier: Apache-2.0
// Matchers of headers and of other texts as configured (A28-H*, RX-*, SM-*). Not for users of the
// decoded resources.
// Thread: ctrl. All return 0, -EINVAL or -ENOMEM.
#pragma once

#include "ctrl/res/common.h"
#include "envoy/config/route/v3/route_components.pb-c.h"
#include "envoy/type/matcher/v3/regex.pb-c.h"
#include "envoy/type/matcher/v3/string.pb-c.h"
#include "lb/route/header_match.h"

// The pattern, once RE2 has accepted it; `field` begins the error text.
int res_regex_read(struct res_reader *, const Envoy__Type__Matcher__V3__RegexMatcher *,
	const char *field, struct str *ret);
// Of *ret the kind, the text and whether case counts.
int res_string_matcher_read(struct res_reader *, const Envoy__Type__Matcher__V3__StringMatcher *,
	struct lb_header_match_conf *ret);
// Warns of nothing: treat_missing_header_as_empty is the caller's to tell of.
int res_header_matcher_read(struct res_reader *, const Envoy__Config__Route__V3__HeaderMatcher *,
	struct lb_header_match_conf *ret);
