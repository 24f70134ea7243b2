// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/tls_names.h"

#include "ctrl/res/common.h"
#include "ctrl/res/regex_check.h"
#include "envoy/extensions/transport_sockets/tls/v3/common.pb-c.h"
#include "lb/route/san_match.h"

#include <errno.h>

// Short names; protobuf-c's own are typedefs.
#define TLS_T(x) Envoy__Extensions__TransportSockets__Tls__V3__##x
#define TLS_E(x) ENVOY__EXTENSIONS__TRANSPORT_SOCKETS__TLS__V3__##x
typedef TLS_T(CertificateValidationContext) Validation;
typedef TLS_T(SubjectAltNameMatcher) TypedSan;
typedef Envoy__Type__Matcher__V3__StringMatcher StringMatcher;
#define STRING_CASE(x) ENVOY__TYPE__MATCHER__V3__STRING_MATCHER__MATCH_PATTERN_##x

// A text that is compared with a part of a name; an empty one would always hit.
static int read_part(
	struct res_reader *rd, const char *text, const char *field, struct lb_san_matcher_conf *ret)
{
	if (!*text)
		return lb_err_set(rd->err, "%s: empty", field);
	return res_copy(rd, text, &ret->text);
}

static int read_pattern(
	struct res_reader *rd, const StringMatcher *m, struct lb_san_matcher_conf *ret)
{
	if (m->ignore_case)
		return lb_err_set(rd->err, "ignore_case: not with safe_regex");
	int rc = res_regex_check(m->safe_regex->regex, rd->err);
	return rc ? lb_err_within(rd->err, "safe_regex")
	          : res_copy(rd, m->safe_regex->regex, &ret->text);
}

static int read_matcher(
	struct res_reader *rd, const StringMatcher *m, struct lb_san_matcher_conf *ret)
{
	ret->ignore_case = m->ignore_case;
	switch (m->match_pattern_case) {
	case STRING_CASE(EXACT):
		ret->match = LB_SAN_EXACT;
		return res_copy(rd, m->exact, &ret->text);
	case STRING_CASE(PREFIX):
		ret->match = LB_SAN_PREFIX;
		return read_part(rd, m->prefix, "prefix", ret);
	case STRING_CASE(SUFFIX):
		ret->match = LB_SAN_SUFFIX;
		return read_part(rd, m->suffix, "suffix", ret);
	case STRING_CASE(CONTAINS):
		ret->match = LB_SAN_CONTAINS;
		return read_part(rd, m->contains, "contains", ret);
	case STRING_CASE(SAFE_REGEX):
		ret->match = LB_SAN_REGEX;
		return read_pattern(rd, m, ret);
	case STRING_CASE(CUSTOM):
		return lb_err_set(rd->err, "custom: not supported");
	default:
		return lb_err_set(rd->err, "no pattern");
	}
}

static int read_typed(struct res_reader *rd, const TypedSan *m, struct lb_san_matcher_conf *ret)
{
	static const uint32_t KINDS[] = {
		[TLS_E(SUBJECT_ALT_NAME_MATCHER__SAN_TYPE__EMAIL)] = LB_SAN_EMAIL,
		[TLS_E(SUBJECT_ALT_NAME_MATCHER__SAN_TYPE__DNS)] = LB_SAN_DNS,
		[TLS_E(SUBJECT_ALT_NAME_MATCHER__SAN_TYPE__URI)] = LB_SAN_URI,
		[TLS_E(SUBJECT_ALT_NAME_MATCHER__SAN_TYPE__IP_ADDRESS)] = LB_SAN_IP,
	};
	size_t type = (size_t)m->san_type;
	if (type >= sizeof(KINDS) / sizeof(KINDS[0]) || !KINDS[type])
		return lb_err_set(rd->err, "san_type: %s is not supported",
			res_enum_name(
				&envoy__extensions__transport_sockets__tls__v3__subject_alt_name_matcher__san_type__descriptor,
				(int)m->san_type));
	ret->kinds = KINDS[type];
	if (!m->matcher)
		return lb_err_set(rd->err, "no matcher");
	return read_matcher(rd, m->matcher, ret);
}

static struct lb_san_matcher_conf *new_list(struct res_reader *rd, size_t n, struct res_tls *t)
{
	struct lb_san_matcher_conf *list = lb_arena_alloc(rd->arena, n, sizeof(*list));
	if (!list)
		return NULL;
	for (size_t i = 0; i < n; i++)
		list[i] = (struct lb_san_matcher_conf){.kinds = LB_SAN_ALL};
	t->sans = list;
	t->n_sans = (uint32_t)n;
	return list;
}

int res_tls_read_typed_names(struct res_reader *rd, const void *message, void *ret)
{
	const Validation *m = message;
	size_t n = m->n_match_typed_subject_alt_names;
	struct lb_san_matcher_conf *list = new_list(rd, n, ret);
	int rc = list ? 0 : -ENOMEM;
	for (size_t i = 0; !rc && i < n; i++) {
		rc = read_typed(rd, m->match_typed_subject_alt_names[i], &list[i]);
		if (rc == -EINVAL)
			lb_err_within(rd->err, "match_typed_subject_alt_names[%zu]", i);
	}
	return rc;
}

int res_tls_read_names(struct res_reader *rd, const void *message, void *ret)
{
	const Validation *m = message;
	if (m->n_match_typed_subject_alt_names)
		return 0;
	size_t n = m->n_match_subject_alt_names;
	struct lb_san_matcher_conf *list = new_list(rd, n, ret);
	int rc = list ? 0 : -ENOMEM;
	for (size_t i = 0; !rc && i < n; i++) {
		rc = read_matcher(rd, m->match_subject_alt_names[i], &list[i]);
		if (rc == -EINVAL)
			lb_err_within(rd->err, "match_subject_alt_names[%zu]", i);
	}
	return rc;
}
