// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/matcher.h"

#include "ctrl/res/regex_check.h"

#include <errno.h>

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Config__Route__V3__HeaderMatcher HeaderMatcher;
typedef Envoy__Type__Matcher__V3__StringMatcher StringMatcher;
typedef Envoy__Type__Matcher__V3__RegexMatcher RegexMatcher;
#define HEADER_CASE(x) ENVOY__CONFIG__ROUTE__V3__HEADER_MATCHER__HEADER_MATCH_SPECIFIER_##x
#define STRING_CASE(x) ENVOY__TYPE__MATCHER__V3__STRING_MATCHER__MATCH_PATTERN_##x

// RE2 alone says what is valid (RX-03, RX-04); "" is (RX-11). engine_type and max_program_size do
// not count (RX-02).
int res_regex_read(struct res_reader *rd, const RegexMatcher *m, const char *field, struct str *ret)
{
	if (res_regex_check(m->regex, rd->err))
		return lb_err_within(rd->err, "%s.regex", field);
	return res_copy(rd, m->regex, ret);
}

// A text that is compared with a part of the value; an empty one would always hit (A28-H02).
static int read_part(struct res_reader *rd, const char *text, const char *field,
	enum lb_header_match_kind kind, struct lb_header_match_conf *h)
{
	if (!*text)
		return lb_err_set(rd->err, "%s: empty", field);
	h->kind = kind;
	return res_copy(rd, text, &h->text);
}

// SM-01 to SM-03.
int res_string_matcher_read(
	struct res_reader *rd, const StringMatcher *m, struct lb_header_match_conf *h)
{
	h->ignore_case = m->ignore_case;
	switch (m->match_pattern_case) {
	case STRING_CASE(EXACT):
		h->kind = LB_HEADER_EXACT;
		return res_copy(rd, m->exact, &h->text);
	case STRING_CASE(PREFIX):
		return read_part(rd, m->prefix, "prefix", LB_HEADER_PREFIX, h);
	case STRING_CASE(SUFFIX):
		return read_part(rd, m->suffix, "suffix", LB_HEADER_SUFFIX, h);
	case STRING_CASE(CONTAINS):
		return read_part(rd, m->contains, "contains", LB_HEADER_CONTAINS, h);
	case STRING_CASE(SAFE_REGEX):
		h->kind = LB_HEADER_REGEX;
		h->ignore_case = false;
		return res_regex_read(rd, m->safe_regex, "safe_regex", &h->text);
	case STRING_CASE(CUSTOM):
		return lb_err_set(rd->err, "custom: not supported");
	default:
		return lb_err_set(rd->err, "no pattern");
	}
}

static int read_range(
	struct res_reader *rd, const Envoy__Type__V3__Int64Range *m, struct lb_header_match_conf *h)
{
	if (m->start > m->end) // A28-H04
		return lb_err_set(rd->err, "range_match: start %lld is above end %lld",
			(long long)m->start, (long long)m->end);
	h->kind = LB_HEADER_RANGE;
	h->start = m->start;
	h->end = m->end;
	return 0;
}

static int read_header_specifier(
	struct res_reader *rd, const HeaderMatcher *m, struct lb_header_match_conf *h)
{
	int rc;
	switch (m->header_match_specifier_case) {
	case HEADER_CASE(EXACT_MATCH):
		h->kind = LB_HEADER_EXACT;
		return res_copy(rd, m->exact_match, &h->text);
	case HEADER_CASE(SAFE_REGEX_MATCH):
		h->kind = LB_HEADER_REGEX;
		return res_regex_read(rd, m->safe_regex_match, "safe_regex_match", &h->text);
	case HEADER_CASE(RANGE_MATCH):
		return read_range(rd, m->range_match, h);
	case HEADER_CASE(PRESENT_MATCH):
		h->kind = LB_HEADER_PRESENT;
		h->present = m->present_match;
		return 0;
	case HEADER_CASE(PREFIX_MATCH):
		return read_part(rd, m->prefix_match, "prefix_match", LB_HEADER_PREFIX, h);
	case HEADER_CASE(SUFFIX_MATCH):
		return read_part(rd, m->suffix_match, "suffix_match", LB_HEADER_SUFFIX, h);
	case HEADER_CASE(CONTAINS_MATCH):
		return read_part(rd, m->contains_match, "contains_match", LB_HEADER_CONTAINS, h);
	case HEADER_CASE(STRING_MATCH):
		rc = res_string_matcher_read(rd, m->string_match, h);
		return rc == -EINVAL ? lb_err_within(rd->err, "string_match") : rc;
	default: // A28-H14
		return lb_err_set(rd->err, "no match specifier");
	}
}

int res_header_matcher_read(
	struct res_reader *rd, const HeaderMatcher *m, struct lb_header_match_conf *h)
{
	if (!*m->name) // A28-H13
		return lb_err_set(rd->err, "name: empty");
	h->invert = m->invert_match;
	int rc = res_copy_folded(rd, m->name, &h->name);
	return rc ? rc : read_header_specifier(rd, m, h);
}
