// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/route_match.h"

#include "ctrl/res/regex_check.h"

#include <errno.h>

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Config__Route__V3__RouteMatch Match;
typedef Envoy__Config__Route__V3__HeaderMatcher HeaderMatcher;
typedef Envoy__Type__Matcher__V3__StringMatcher StringMatcher;
typedef Envoy__Type__Matcher__V3__RegexMatcher RegexMatcher;
#define PATH_CASE(x) ENVOY__CONFIG__ROUTE__V3__ROUTE_MATCH__PATH_SPECIFIER_##x
#define HEADER_CASE(x) ENVOY__CONFIG__ROUTE__V3__HEADER_MATCHER__HEADER_MATCH_SPECIFIER_##x
#define STRING_CASE(x) ENVOY__TYPE__MATCHER__V3__STRING_MATCHER__MATCH_PATTERN_##x

// RE2 alone says what is valid (RX-03, RX-04); "" is (RX-11). engine_type and max_program_size do
// not count (RX-02).
static int read_regex(
	struct res_reader *rd, const RegexMatcher *m, const char *field, struct str *ret)
{
	if (res_regex_check(m->regex, rd->err))
		return lb_err_within(rd->err, "%s.regex", field);
	return res_copy(rd, m->regex, ret);
}

static int read_path(struct res_reader *rd, const Match *m, struct res_route *r)
{
	struct str path = {0};
	int rc;
	switch (m->path_specifier_case) {
	case PATH_CASE(PREFIX):
		r->path_kind = LB_PATH_PREFIX;
		rc = res_copy(rd, m->prefix, &path);
		break;
	case PATH_CASE(PATH):
		r->path_kind = LB_PATH_EXACT;
		rc = res_copy(rd, m->path, &path);
		break;
	case PATH_CASE(SAFE_REGEX):
		r->path_kind = LB_PATH_REGEX;
		rc = read_regex(rd, m->safe_regex, "safe_regex", &path);
		break;
	// A28-P08: to leave them out would send requests where they do not belong.
	case PATH_CASE(CONNECT_MATCHER):
		return lb_err_set(rd->err, "connect_matcher: not supported");
	case PATH_CASE(PATH_SEPARATED_PREFIX):
		return lb_err_set(rd->err, "path_separated_prefix: not supported");
	case PATH_CASE(PATH_MATCH_POLICY):
		return lb_err_set(rd->err, "path_match_policy: not supported");
	default: // A28-P03
		return lb_err_set(rd->err, "no path specifier");
	}
	r->path = path.p;
	r->path_len = path.len;
	r->case_sensitive = !m->case_sensitive || m->case_sensitive->value; // A28-P04
	return rc;
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
static int read_string_matcher(
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
		return read_regex(rd, m->safe_regex, "safe_regex", &h->text);
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
		return read_regex(rd, m->safe_regex_match, "safe_regex_match", &h->text);
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
		rc = read_string_matcher(rd, m->string_match, h);
		return rc == -EINVAL ? lb_err_within(rd->err, "string_match") : rc;
	default: // A28-H14
		return lb_err_set(rd->err, "no match specifier");
	}
}

static int read_header(
	struct res_reader *rd, const HeaderMatcher *m, struct lb_header_match_conf *h)
{
	if (!*m->name) // A28-H13
		return lb_err_set(rd->err, "name: empty");
	if (m->treat_missing_header_as_empty) // A28-H06
		res_warn(rd, "match.headers: treat_missing_header_as_empty is ignored");
	h->invert = m->invert_match;
	int rc = res_copy_folded(rd, m->name, &h->name);
	return rc ? rc : read_header_specifier(rd, m, h);
}

static int read_headers(struct res_reader *rd, const Match *m, struct res_route *r)
{
	struct lb_header_match_conf *list = NULL;
	if (m->n_headers)
		list = lb_arena_alloc(rd->arena, m->n_headers, sizeof(*list));
	if (m->n_headers && !list)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_headers; i++) {
		int rc = read_header(rd, m->headers[i], &list[i]);
		if (rc == -EINVAL)
			return lb_err_within(rd->err, "headers[%zu]", i);
		if (rc)
			return rc;
	}
	r->headers = list;
	r->n_headers = (uint32_t)m->n_headers;
	return 0;
}

// A28-O01, A28-O02, A28-O05: only default_value counts.
static int read_fraction(struct res_reader *rd, const Match *m, struct res_route *r)
{
	r->ppm = LB_PPM_ALWAYS;
	if (!m->runtime_fraction)
		return 0;
	const Envoy__Type__V3__FractionalPercent *p = m->runtime_fraction->default_value;
	uint32_t denominator;
	if (!p)
		return lb_err_set(rd->err, "runtime_fraction: no default_value");
	if (res_denominator(p, &denominator, rd->err))
		return lb_err_within(rd->err, "runtime_fraction.default_value");
	uint64_t ppm = (uint64_t)p->numerator * (LB_PPM_ALWAYS / denominator);
	r->ppm = ppm < LB_PPM_ALWAYS ? (uint32_t)ppm : LB_PPM_ALWAYS;
	return 0;
}

int res_match_read(struct res_reader *rd, const Match *m, struct res_route *r)
{
	int rc = read_path(rd, m, r);
	if (!rc)
		rc = read_headers(rd, m, r);
	if (!rc)
		rc = read_fraction(rd, m, r);
	if (rc)
		return rc == -EINVAL ? lb_err_within(rd->err, "match") : rc;
	r->grpc_only = m->grpc; // A28-O07
	if (m->tls_context) // A28-O08: what was meant for mTLS alone is open to everybody
		res_warn(rd, "match.tls_context is ignored");
	return 0;
}
