// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/tls.h"

#include "ctrl/res/fields.h"
#include "ctrl/res/tls_names.h"
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
typedef TLS_T(UpstreamTlsContext) Upstream;
typedef TLS_T(DownstreamTlsContext) Downstream;
typedef Envoy__Config__Core__V3__TransportSocket Socket;
#define VALIDATION_CASE(x) TLS_E(COMMON_TLS_CONTEXT__VALIDATION_CONTEXT_TYPE_##x)
#define TRANSPORT(x) (&envoy__extensions__transport_sockets__##x##__descriptor)
#define UPSTREAM_TYPE TRANSPORT(tls__v3__upstream_tls_context)
#define DOWNSTREAM_TYPE TRANSPORT(tls__v3__downstream_tls_context)
#define PLAIN_TYPE TRANSPORT(raw_buffer__v3__raw_buffer)

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

// The tables of fields. What a row says for people, how the field is read and when it is refused,
// stands in docs/xds.md, which is made of it (tests/lint/check-xds-docs).
#define READ(field, function, how, refused) .name = #field, .fate = RES_FIELD_READ, .read = function
#define INSIDE(field, fields, how, refused) .name = #field, .fate = RES_FIELD_READ, .inside = fields
#define IGNORED(field) .name = #field, .fate = RES_FIELD_IGNORED
// What would make a connection less safe than its sender meant if it were left out (TLS-123).
#define REFUSED(field, refused) .name = #field, .fate = RES_FIELD_REFUSED
#define REFUSED_UNLESS(field, holds, how, refused)                                                 \
	.name = #field, .fate = RES_FIELD_REFUSED, .unless = holds
#define N(rows) (sizeof(rows) / sizeof((rows)[0]))

static int read_ca(struct res_reader *rd, const void *message, void *ret)
{
	const Validation *m = message;
	struct res_tls *t = ret;
	return read_provider(rd, "ca_certificate_provider_instance",
		m->ca_certificate_provider_instance->instance_name, &t->ca);
}

// TLS-124
static int read_system_roots(struct res_reader *, const void *, void *ret)
{
	struct res_tls *t = ret;
	t->system_roots = !t->ca;
	return 0;
}

static const struct res_field certificate_validation_context[] = {
	{READ(ca_certificate_provider_instance, read_ca,
		"CAs, by a provider; of a listener: clients are asked for a certificate",
		"a name that the bootstrap does not have")},
	{READ(system_root_certs, read_system_roots,
		"the system's CAs, where no provider is named; a warning if any name is accepted",
		"of a listener, where no provider is named")},
	{READ(match_typed_subject_alt_names, res_tls_read_typed_names,
		"names of which a server's certificate has one",
		"of a listener: any; a type but DNS, URI, EMAIL and IP_ADDRESS; a bad matcher, as "
		"below")},
	{READ(match_subject_alt_names, res_tls_read_names, "the same, if there are no typed ones",
		"of a listener: any; no pattern; `custom`; an empty prefix, suffix or part; a bad "
		"pattern, or one with `ignore_case`")},
	{REFUSED(verify_certificate_spki, "always")},
	{REFUSED(verify_certificate_hash, "always")},
	{REFUSED(crl, "always")},
	{REFUSED(custom_validator_config, "always")},
	{REFUSED(require_signed_certificate_timestamp, "true")},
	{IGNORED(trusted_ca)},
	{IGNORED(watched_directory)},
	{IGNORED(allow_expired_certificate)},
	{IGNORED(trust_chain_verification)},
	{IGNORED(only_verify_leaf_cert_crl)},
	{IGNORED(max_verify_depth)},
};
static const struct res_fields validation = {TRANSPORT(tls__v3__certificate_validation_context),
	certificate_validation_context, N(certificate_validation_context)};

// TLS-126
static int read_older_ca(struct res_reader *rd, const void *message, void *ret)
{
	const Combined *m = message;
	struct res_tls *t = ret;
	if (t->ca)
		return 0;
	t->system_roots = false;
	return read_provider(rd, "validation_context_certificate_provider_instance",
		m->validation_context_certificate_provider_instance->instance_name, &t->ca);
}

static const struct res_field combined_certificate_validation_context[] = {
	{INSIDE(default_validation_context, &validation, "a CertificateValidationContext",
		"as that")},
	{READ(validation_context_certificate_provider_instance, read_older_ca,
		"CAs, by a provider, where the default context names none",
		"a name that the bootstrap does not have")},
	{IGNORED(validation_context_sds_secret_config)},
	{IGNORED(validation_context_certificate_provider)},
};
static const struct res_fields combined = {
	TRANSPORT(tls__v3__common_tls_context__combined_certificate_validation_context),
	combined_certificate_validation_context, N(combined_certificate_validation_context)};

static int read_identity(struct res_reader *rd, const void *message, void *ret)
{
	const Common *m = message;
	struct res_tls *t = ret;
	return read_provider(rd, "tls_certificate_provider_instance",
		m->tls_certificate_provider_instance->instance_name, &t->identity);
}

// TLS-126
static int read_older_identity(struct res_reader *rd, const void *message, void *ret)
{
	const Common *m = message;
	struct res_tls *t = ret;
	if (t->identity)
		return 0;
	return read_provider(rd, "tls_certificate_certificate_provider_instance",
		m->tls_certificate_certificate_provider_instance->instance_name, &t->identity);
}

static bool has_identity(const void *t)
{
	return ((const struct res_tls *)t)->identity;
}

static const struct res_field common_tls_context[] = {
	{READ(tls_certificate_provider_instance, read_identity,
		"our certificate, by a [provider](docs/certificates.md) of the bootstrap",
		"a name that the bootstrap does not have; of a listener: none")},
	{READ(tls_certificate_certificate_provider_instance, read_older_identity,
		"the same, where the newer field is not set",
		"a name that the bootstrap does not have")},
	{REFUSED_UNLESS(tls_certificates, has_identity, "ignored beside a provider's",
		"without a provider's")},
	{REFUSED_UNLESS(tls_certificate_sds_secret_configs, has_identity,
		"ignored beside a provider's", "without a provider's")},
	{INSIDE(validation_context, &validation,
		"what peers must have: a CertificateValidationContext",
		"of a cluster: none, or one without CAs by a provider or of the system; of a "
		"listener: one without CAs by a provider")},
	{INSIDE(combined_validation_context, &combined,
		"the same: a CombinedCertificateValidationContext", "as that")},
	{REFUSED(validation_context_sds_secret_config, "always")},
	{REFUSED(tls_params, "always")},
	{REFUSED(custom_handshaker, "always")},
	{IGNORED(alpn_protocols)},
	{IGNORED(tls_certificate_certificate_provider)},
	{IGNORED(validation_context_certificate_provider)},
	{IGNORED(validation_context_certificate_provider_instance)},
	{IGNORED(custom_tls_certificate_selector)},
	{IGNORED(key_log)},
};
static const struct res_fields common = {
	TRANSPORT(tls__v3__common_tls_context), common_tls_context, N(common_tls_context)};

// TLS-129
static int read_sni(struct res_reader *rd, const void *message, void *ret)
{
	const Upstream *m = message;
	struct res_tls *t = ret;
	if (strlen(m->sni) > RES_TLS_MAX_SNI)
		return lb_err_set(rd->err, "sni: is longer than %d bytes", RES_TLS_MAX_SNI);
	return keep(rd, m->sni, &t->sni);
}

static int read_auto_host_sni(struct res_reader *, const void *, void *ret)
{
	((struct res_tls *)ret)->auto_host_sni = true;
	return 0;
}

static int read_auto_validation(struct res_reader *, const void *, void *ret)
{
	((struct res_tls *)ret)->auto_sni_san_validation = true;
	return 0;
}

// TLS-235
static int read_max_sessions(struct res_reader *, const void *message, void *ret)
{
	const Upstream *m = message;
	struct res_tls *t = ret;
	t->max_sessions = min_u32(m->max_session_keys->value, RES_TLS_MAX_SESSIONS);
	return 0;
}

static int read_require_certificate(struct res_reader *, const void *, void *ret)
{
	((struct res_tls *)ret)->require_client_certificate = true;
	return 0;
}

static const struct res_field downstream_tls_context[] = {
	{INSIDE(common_tls_context, &common, "a CommonTlsContext", "as that; none")},
	{READ(require_client_certificate, read_require_certificate,
		"clients must have a certificate", "without CAs by a provider")},
	{REFUSED(require_sni, "true")},
	{REFUSED(ocsp_staple_policy, "any but LENIENT_STAPLING")},
	{IGNORED(session_ticket_keys)},
	{IGNORED(session_ticket_keys_sds_secret_config)},
	{IGNORED(disable_stateless_session_resumption)},
	{IGNORED(disable_stateful_session_resumption)},
	{IGNORED(session_timeout)},
	{IGNORED(full_scan_certs_on_sni_mismatch)},
	{IGNORED(prefer_client_ciphers)},
};
static const struct res_fields downstream = {TRANSPORT(tls__v3__downstream_tls_context),
	downstream_tls_context, N(downstream_tls_context)};

static const struct res_field upstream_tls_context[] = {
	{INSIDE(common_tls_context, &common, "a CommonTlsContext", "as that; none")},
	{READ(sni, read_sni, "the name that is asked for (gRFC A101)", "longer than 255 bytes")},
	{READ(auto_host_sni, read_auto_host_sni,
		"the endpoint's hostname is asked for, if it has one that is no address", "")},
	{READ(auto_sni_san_validation, read_auto_validation,
		"the certificate must have the name that was asked for", "")},
	{READ(max_session_keys, read_max_sessions,
		"how many [sessions](docs/tls.md#sessions-with-backends) are kept of each "
		"endpoint: up to 256, 16 without it, with 0 none",
		"")},
	{IGNORED(allow_renegotiation)},
	{IGNORED(enforce_rsa_key_usage)},
};
static const struct res_fields upstream = {
	TRANSPORT(tls__v3__upstream_tls_context), upstream_tls_context, N(upstream_tls_context)};

// A82: whoever has a certificate of any public authority would do.
static void warn_of_anybody(struct res_reader *rd, const struct res_tls *t)
{
	if (t->system_roots && !t->n_sans && !t->auto_sni_san_validation)
		res_warn(rd, "transport_socket: system_root_certs without names to match: any "
			     "certificate of a public authority is accepted");
}

static int read_upstream(struct res_reader *rd, const void *message, struct res_tls *t)
{
	t->max_sessions = RES_TLS_SESSIONS;
	int rc = res_fields_read(rd, &upstream, message, t);
	if (rc)
		return rc;
	if (!t->ca && !t->system_roots)
		return lb_err_set(rd->err, "common_tls_context: no CA certificates configured");
	warn_of_anybody(rd, t);
	return 0;
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
	int rc = res_fields_read(rd, &downstream, m, t);
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
	if (t->require_client_certificate && !t->ca)
		return lb_err_set(rd->err, "require_client_certificate: no certificate provider "
					   "for validation");
	return 0;
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
		*t = (struct res_tls){.sni = ""};
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
