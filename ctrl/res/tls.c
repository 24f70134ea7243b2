// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/tls.h"

#include "ctrl/res/regex_check.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "envoy/config/core/v3/base.pb-c.h"
#include "envoy/extensions/transport_sockets/raw_buffer/v3/raw_buffer.pb-c.h"
#include "envoy/extensions/transport_sockets/tls/v3/tls.pb-c.h"
#include "lb/base/min.h"

#include <errno.h>
#include <string.h>

// Short names; protobuf-c's own are typedefs.
#define TLS_T(x) Envoy__Extensions__TransportSockets__Tls__V3__##x
#define TLS_E(x) ENVOY__EXTENSIONS__TRANSPORT_SOCKETS__TLS__V3__##x
typedef TLS_T(CommonTlsContext) Common;
typedef TLS_T(CertificateValidationContext) Validation;
typedef TLS_T(CommonTlsContext__CombinedCertificateValidationContext) Combined;
typedef TLS_T(SubjectAltNameMatcher) TypedSan;
typedef TLS_T(UpstreamTlsContext) Upstream;
typedef TLS_T(DownstreamTlsContext) Downstream;
typedef Envoy__Type__Matcher__V3__StringMatcher StringMatcher;
typedef Envoy__Config__Core__V3__TransportSocket Socket;
#define VALIDATION_CASE(x) TLS_E(COMMON_TLS_CONTEXT__VALIDATION_CONTEXT_TYPE_##x)
#define STRING_CASE(x) ENVOY__TYPE__MATCHER__V3__STRING_MATCHER__MATCH_PATTERN_##x
#define TRANSPORT(x) (&envoy__extensions__transport_sockets__##x##__descriptor)
#define UPSTREAM_TYPE TRANSPORT(tls__v3__upstream_tls_context)
#define DOWNSTREAM_TYPE TRANSPORT(tls__v3__downstream_tls_context)
#define PLAIN_TYPE TRANSPORT(raw_buffer__v3__raw_buffer)

// A field that would make a connection less safe than its sender meant if it were left out (A29).
struct refused {
	const char *field;
	bool is_set;
};

static int refuse(const struct refused *list, size_t n, struct lb_err *err)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].is_set)
			return lb_err_set(err, "%s: is not supported", list[i].field);
	return 0;
}
#define REFUSE(list, err) refuse(list, sizeof(list) / sizeof((list)[0]), err)

static int keep(struct res_reader *rd, const char *text, const char **ret)
{
	*ret = lb_arena_strdup(rd->arena, text);
	return *ret ? 0 : -ENOMEM;
}

// TLS-121.
static int read_provider(
	struct res_reader *rd, const char *field, const char *instance, const char **ret)
{
	if (!rd->bootstrap || !xds_bootstrap_find_provider(rd->bootstrap, instance))
		return lb_err_set(rd->err,
			"%s: instance_name: no certificate provider \"%.128s\" in the bootstrap",
			field, instance);
	return keep(rd, instance, ret);
}

// Names of certificates

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

// TLS-125: the typed ones count if there are some.
static int read_sans(struct res_reader *rd, const Validation *m, struct res_tls *t)
{
	bool typed = m->n_match_typed_subject_alt_names;
	size_t n = typed ? m->n_match_typed_subject_alt_names : m->n_match_subject_alt_names;
	struct lb_san_matcher_conf *list = lb_arena_alloc(rd->arena, n + 1, sizeof(*list));
	int rc = list ? 0 : -ENOMEM;
	for (size_t i = 0; !rc && i < n; i++) {
		list[i] = (struct lb_san_matcher_conf){.kinds = LB_SAN_ALL};
		rc = typed ? read_typed(rd, m->match_typed_subject_alt_names[i], &list[i])
		           : read_matcher(rd, m->match_subject_alt_names[i], &list[i]);
		if (rc == -EINVAL)
			lb_err_within(rd->err, "match_%ssubject_alt_names[%zu]",
				typed ? "typed_" : "", i);
	}
	t->sans = list;
	t->n_sans = (uint32_t)n;
	return rc;
}

// Contexts

// TLS-122 to TLS-125.
static int read_validation(struct res_reader *rd, const Validation *m, struct res_tls *t)
{
	const struct refused list[] = {
		{"verify_certificate_spki", m->n_verify_certificate_spki},
		{"verify_certificate_hash", m->n_verify_certificate_hash},
		{"require_signed_certificate_timestamp",
			m->require_signed_certificate_timestamp &&
				m->require_signed_certificate_timestamp->value},
		{"crl", m->crl},
		{"custom_validator_config", m->custom_validator_config},
	};
	int rc = REFUSE(list, rd->err);
	if (!rc && m->ca_certificate_provider_instance)
		rc = read_provider(rd, "ca_certificate_provider_instance",
			m->ca_certificate_provider_instance->instance_name, &t->ca);
	t->system_roots = !m->ca_certificate_provider_instance && m->system_root_certs;
	return rc ? rc : read_sans(rd, m, t);
}

static int read_combined(struct res_reader *rd, const Combined *m, struct res_tls *t)
{
	static const char OLD[] = "validation_context_certificate_provider_instance";
	int rc = 0;
	if (m->default_validation_context)
		rc = read_validation(rd, m->default_validation_context, t);
	if (rc)
		return rc == -EINVAL ? lb_err_within(rd->err, "default_validation_context") : rc;
	if (t->ca || !m->validation_context_certificate_provider_instance)
		return 0;
	t->system_roots = false;
	return read_provider(rd, OLD,
		m->validation_context_certificate_provider_instance->instance_name, &t->ca);
}

static int read_trust(struct res_reader *rd, const Common *m, struct res_tls *t)
{
	int rc;
	switch (m->validation_context_type_case) {
	case VALIDATION_CASE(VALIDATION_CONTEXT):
		rc = read_validation(rd, m->validation_context, t);
		return rc == -EINVAL ? lb_err_within(rd->err, "validation_context") : rc;
	case VALIDATION_CASE(COMBINED_VALIDATION_CONTEXT):
		rc = read_combined(rd, m->combined_validation_context, t);
		return rc == -EINVAL ? lb_err_within(rd->err, "combined_validation_context") : rc;
	case VALIDATION_CASE(VALIDATION_CONTEXT_SDS_SECRET_CONFIG):
		return lb_err_set(
			rd->err, "validation_context_sds_secret_config: is not supported");
	default:
		return 0;
	}
}

// TLS-123: what gives a certificate by other ways counts only beside a provider's.
static int read_identity(struct res_reader *rd, const Common *m, struct res_tls *t)
{
	if (m->tls_certificate_provider_instance)
		return read_provider(rd, "tls_certificate_provider_instance",
			m->tls_certificate_provider_instance->instance_name, &t->identity);
	if (m->tls_certificate_certificate_provider_instance)
		return read_provider(rd, "tls_certificate_certificate_provider_instance",
			m->tls_certificate_certificate_provider_instance->instance_name,
			&t->identity);
	const struct refused list[] = {
		{"tls_certificates", m->n_tls_certificates},
		{"tls_certificate_sds_secret_configs", m->n_tls_certificate_sds_secret_configs},
	};
	return REFUSE(list, rd->err);
}

static int read_common(struct res_reader *rd, const Common *m, struct res_tls *t)
{
	const struct refused list[] = {
		{"tls_params", m->tls_params},
		{"custom_handshaker", m->custom_handshaker},
	};
	int rc = REFUSE(list, rd->err);
	if (!rc)
		rc = read_trust(rd, m, t);
	if (!rc)
		rc = read_identity(rd, m, t);
	return rc == -EINVAL ? lb_err_within(rd->err, "common_tls_context") : rc;
}

// A82: whoever has a certificate of any public authority would do.
static void warn_of_anybody(struct res_reader *rd, const struct res_tls *t)
{
	if (t->system_roots && !t->n_sans && !t->auto_sni_san_validation)
		res_warn(rd, "transport_socket: system_root_certs without names to match: any "
			     "certificate of a public authority is accepted");
}

static int read_upstream(struct res_reader *rd, const void *message, struct res_tls *t)
{
	const Upstream *m = message;
	int rc = m->common_tls_context ? read_common(rd, m->common_tls_context, t) : 0;
	if (rc)
		return rc;
	if (!t->ca && !t->system_roots)
		return lb_err_set(rd->err, "common_tls_context: no CA certificates configured");
	if (strlen(m->sni) > RES_TLS_MAX_SNI)
		return lb_err_set(rd->err, "sni: is longer than %d bytes", RES_TLS_MAX_SNI);
	t->auto_host_sni = m->auto_host_sni;
	t->auto_sni_san_validation = m->auto_sni_san_validation;
	t->max_sessions =
		min_u32(m->max_session_keys ? m->max_session_keys->value : RES_TLS_SESSIONS,
			RES_TLS_MAX_SESSIONS);
	warn_of_anybody(rd, t);
	return keep(rd, m->sni, &t->sni);
}

// A29: whether a context says how clients are validated.
static bool validates(const Common *m)
{
	if (!m)
		return false;
	if (m->validation_context_type_case == VALIDATION_CASE(VALIDATION_CONTEXT))
		return true;
	return m->validation_context_type_case == VALIDATION_CASE(COMBINED_VALIDATION_CONTEXT) &&
	       m->combined_validation_context->default_validation_context;
}

static int read_downstream(struct res_reader *rd, const void *message, struct res_tls *t)
{
	const Downstream *m = message;
	int rc = m->common_tls_context ? read_common(rd, m->common_tls_context, t) : 0;
	if (rc)
		return rc;
	if (t->system_roots)
		return lb_err_set(
			rd->err, "common_tls_context: system_root_certs: not for servers");
	if (t->n_sans)
		return lb_err_set(
			rd->err, "common_tls_context: match_subject_alt_names: not for servers");
	if (!t->ca && validates(m->common_tls_context))
		return lb_err_set(rd->err, "common_tls_context: validation context: no "
					   "ca_certificate_provider_instance");
	if (!t->identity)
		return lb_err_set(
			rd->err, "common_tls_context: no tls_certificate_provider_instance");
	const struct refused list[] = {
		{"require_sni", m->require_sni && m->require_sni->value},
		{"ocsp_staple_policy", m->ocsp_staple_policy != 0}, // LENIENT_STAPLING
	};
	rc = REFUSE(list, rd->err);
	t->sni = "";
	t->require_client_certificate =
		m->require_client_certificate && m->require_client_certificate->value;
	if (!rc && t->require_client_certificate && !t->ca)
		rc = lb_err_set(rd->err, "require_client_certificate: no certificate provider for "
					 "validation");
	return rc;
}

static int read_any(struct res_reader *rd, const struct res_any *any,
	const ProtobufCMessageDescriptor *type,
	int (*read)(struct res_reader *, const void *, struct res_tls *),
	const struct res_tls **ret)
{
	void *m = res_any_decode(any, type, rd->err);
	if (!m)
		return *rd->err->text ? -EINVAL : -ENOMEM;
	struct res_tls *t = lb_arena_alloc(rd->arena, 1, sizeof(*t));
	int rc = -ENOMEM;
	if (t) {
		*t = (struct res_tls){NULL};
		rc = read(rd, m, t);
	}
	if (!rc)
		*ret = t;
	proto_free(m);
	return rc;
}

static int read_socket(struct res_reader *rd, const Socket *s,
	const ProtobufCMessageDescriptor *type,
	int (*read)(struct res_reader *, const void *, struct res_tls *),
	const struct res_tls **ret)
{
	struct res_any any;
	if (!s->typed_config)
		return lb_err_set(rd->err, "transport_socket: no typed_config");
	int rc = res_any_open(s->typed_config, &any, rd->err);
	if (rc)
		return lb_err_within(rd->err, "transport_socket");
	if (proto_any_is(any.type_url, type))
		rc = read_any(rd, &any, type, read, ret);
	else if (!proto_any_is(any.type_url, PLAIN_TYPE))
		rc = lb_err_set(rd->err, "\"%.128s\" is not supported", any.type_url);
	res_any_close(&any);
	return rc == -EINVAL ? lb_err_within(rd->err, "transport_socket") : rc;
}

int res_tls_read_upstream(struct res_reader *rd, const Socket *s, const struct res_tls **ret)
{
	*ret = NULL;
	return read_socket(rd, s, UPSTREAM_TYPE, read_upstream, ret);
}

int res_tls_read_downstream(struct res_reader *rd, const Socket *s, const struct res_tls **ret)
{
	*ret = NULL;
	return read_socket(rd, s, DOWNSTREAM_TYPE, read_downstream, ret);
}
