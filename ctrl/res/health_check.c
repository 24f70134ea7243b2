// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/health_check.h"

#include "ctrl/res/payload.h"
#include "envoy/config/core/v3/health_check.pb-c.h"
#include "grpc/health/v1/health.pb-c.h"
#include "lb/base/time.h"
#include "lb/pick/check.h"
#include "lb/route/domains.h"

#include <errno.h>
#include <string.h>

#define NO_TRAFFIC_NS (60 * NS_PER_SECOND)
#define LEAST_NS NS_PER_MS // as Envoy counts in milliseconds
#define MOST_NS (24 * 3600 * NS_PER_SECOND) // of a timeout
#define MAX_FIELDS 64 // that a check adds
#define MAX_VALUE 4096 // bytes of a field's value, or of what is sent
#define MAX_BLOCKS 64 // of what is received
#define MAX_RANGES 64 // of statuses; a worker looks through them for each answer
#define GRPC_PREFIX 5
#define USER_AGENT "Shunt/HC"

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Config__Cluster__V3__Cluster Cluster;
typedef Envoy__Config__Core__V3__HealthCheck HealthCheck;
typedef Envoy__Config__Core__V3__HealthCheck__HttpHealthCheck Http;
typedef Envoy__Config__Core__V3__HealthCheck__TcpHealthCheck Tcp;
typedef Envoy__Config__Core__V3__HealthCheck__GrpcHealthCheck Grpc;
typedef Envoy__Config__Core__V3__HealthCheck__Payload Payload;
typedef Envoy__Config__Core__V3__HeaderValueOption HeaderOption;
typedef Envoy__Type__V3__Int64Range Range;
typedef Google__Protobuf__Duration Duration;
#define CHECKER(x) ENVOY__CONFIG__CORE__V3__HEALTH_CHECK__HEALTH_CHECKER_##x
#define ACTION(x) ENVOY__CONFIG__CORE__V3__HEADER_VALUE_OPTION__HEADER_APPEND_ACTION__##x
#define METHOD(x) ENVOY__CONFIG__CORE__V3__REQUEST_METHOD__##x

// What is read, and where it goes: memory is the check's own, since workers outlive the resource.
struct reader {
	struct res_reader *rd;
	struct lb_check *check;
};

static int copy(struct reader *r, struct str text, struct str *ret)
{
	return lb_arena_copy(&r->check->arena, text, ret) ? 0 : -ENOMEM;
}

// Times.

// A time above 0; without one `otherwise`, or an error if that is 0.
static int read_time(
	struct reader *r, const Duration *d, const char *field, uint64_t otherwise, uint64_t *ret)
{
	int rc = res_check_duration(d, field, r->rd->err);
	if (rc)
		return rc;
	if (!d && !otherwise)
		return lb_err_set(r->rd->err, "%s: must be set", field);
	*ret = d ? res_duration_ns(d) : otherwise;
	if (!*ret)
		return lb_err_set(r->rd->err, "%s: must be above 0", field);
	if (*ret < LEAST_NS)
		*ret = LEAST_NS;
	return 0;
}

// Likewise, but 0 unless it is set.
static int read_jitter(struct reader *r, const Duration *d, const char *field, uint64_t *ret)
{
	int rc = res_check_duration(d, field, r->rd->err);
	*ret = !rc && d ? res_duration_ns(d) : 0;
	return rc;
}

// AHC-03.
static int read_times(struct reader *r, const HealthCheck *m)
{
	struct lb_check *c = r->check;
	int rc = read_time(r, m->timeout, "timeout", 0, &c->timeout_ns);
	if (c->timeout_ns > MOST_NS)
		c->timeout_ns = MOST_NS;
	if (!rc)
		rc = read_time(r, m->interval, "interval", 0, &c->interval_ns);
	if (!rc)
		rc = read_time(r, m->unhealthy_interval, "unhealthy_interval", c->interval_ns,
			&c->unhealthy_interval_ns);
	if (!rc)
		rc = read_time(r, m->unhealthy_edge_interval, "unhealthy_edge_interval",
			c->unhealthy_interval_ns, &c->unhealthy_edge_ns);
	if (!rc)
		rc = read_time(r, m->healthy_edge_interval, "healthy_edge_interval", c->interval_ns,
			&c->healthy_edge_ns);
	if (!rc)
		rc = read_time(r, m->no_traffic_interval, "no_traffic_interval", NO_TRAFFIC_NS,
			&c->no_traffic_ns);
	if (!rc)
		rc = read_time(r, m->no_traffic_healthy_interval, "no_traffic_healthy_interval",
			c->no_traffic_ns, &c->no_traffic_healthy_ns);
	if (!rc)
		rc = read_jitter(r, m->initial_jitter, "initial_jitter", &c->initial_jitter_ns);
	if (!rc)
		rc = read_jitter(r, m->interval_jitter, "interval_jitter", &c->jitter_ns);
	c->jitter_percent = m->interval_jitter_percent;
	return rc;
}

static int read_threshold(
	struct reader *r, const Google__Protobuf__UInt32Value *n, const char *field, uint32_t *ret)
{
	if (!n)
		return lb_err_set(r->rd->err, "%s: must be set", field);
	*ret = n->value ? n->value : 1;
	return 0;
}

// Fields.

static bool is_name(struct str s)
{
	static const char others[] = "!#$%&'*+-.^_`|~";
	for (size_t i = 0; i < s.len; i++) {
		char c = s.p[i];
		bool is_plain =
			(c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
		if (!is_plain && !strchr(others, c))
			return false;
	}
	return s.len;
}

// RFC 9110 5.5, and none of the substitutions that Envoy knows.
static bool is_value(struct str s)
{
	if (s.len > MAX_VALUE || str_trim(s).len != s.len)
		return false;
	for (size_t i = 0; i < s.len; i++)
		if (((uint8_t)s.p[i] < ' ' && s.p[i] != '\t') || s.p[i] == 0x7f || s.p[i] == '%')
			return false;
	return true;
}

// Those are of the connection, or are said elsewhere.
static bool is_reserved(struct str name)
{
	static const char *const names[] = {"host", "connection", "content-length",
		"transfer-encoding", "upgrade", "keep-alive", "proxy-connection", "te"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_eq_fold(name, str_from(names[i])))
			return true;
	return false;
}

static bool is_among(const struct field *list, uint32_t n, struct str name)
{
	for (uint32_t i = 0; i < n; i++)
		if (str_eq_fold(list[i].name, name))
			return true;
	return false;
}

static void remove_field(struct lb_check *c, struct str name)
{
	struct field *list = (struct field *)(uintptr_t)c->fields; // of its own arena
	uint32_t n = 0;
	for (uint32_t i = 0; i < c->n_fields; i++)
		if (!str_eq_fold(list[i].name, name))
			list[n++] = list[i];
	c->n_fields = n;
}

// In lower case, as HTTP/2 wants it.
static int copy_name(struct reader *r, struct str name, struct str *ret)
{
	int rc = copy(r, name, ret);
	char *p = rc ? NULL : (char *)(uintptr_t)ret->p; // of our own arena
	for (size_t i = 0; p && i < ret->len; i++)
		p[i] = str_fold(p[i]);
	return rc;
}

// As append_action says; but what is there by default can be there only once, so it is replaced by
// what were to stand beside it.
static bool has_place(struct lb_check *c, const HeaderOption *o, struct str name, bool is_default)
{
	bool exists = is_among(c->fields, c->n_fields, name);
	bool appends = o->append_action == ACTION(APPEND_IF_EXISTS_OR_ADD) &&
	               (!o->append || o->append->value);
	if (exists ? o->append_action == ACTION(ADD_IF_ABSENT)
		   : o->append_action == ACTION(OVERWRITE_IF_EXISTS))
		return false;
	if (is_default || !appends)
		remove_field(c, name);
	return true;
}

static int add_field(struct reader *r, const HeaderOption *o, struct field *list,
	const struct field *defaults, uint32_t n_defaults)
{
	const Envoy__Config__Core__V3__HeaderValue *h = o->header;
	struct str name = str_from(h ? h->key : ""), value = str_from(h ? h->value : "");
	if (h && !value.len && h->raw_value.len)
		value = (struct str){(const char *)h->raw_value.data, h->raw_value.len};
	if (!is_name(name) || is_reserved(name))
		return lb_err_set(r->rd->err, "header: \"%.64s\" cannot be sent", h ? h->key : "");
	if (!is_value(value))
		return lb_err_set(r->rd->err, "header: the value of %.64s cannot be sent", h->key);
	if (!value.len && !o->keep_empty_value)
		return 0;
	if (!has_place(r->check, o, name, is_among(defaults, n_defaults, name)))
		return 0;
	struct field *to = &list[r->check->n_fields++];
	int rc = copy_name(r, name, &to->name);
	return rc ? rc : copy(r, value, &to->value);
}

static int read_fields(struct reader *r, HeaderOption *const *options, size_t n,
	const struct field *defaults, uint32_t n_defaults)
{
	if (n > MAX_FIELDS)
		return lb_err_set(r->rd->err, "has more than %d entries", MAX_FIELDS);
	struct field *list = lb_arena_alloc(&r->check->arena, n + n_defaults, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < n_defaults; i++)
		list[i] = defaults[i];
	r->check->n_fields = n_defaults;
	r->check->fields = list;
	for (size_t i = 0; i < n; i++) {
		int rc = add_field(r, options[i], list, defaults, n_defaults);
		if (rc == -EINVAL)
			return lb_err_within(r->rd->err, "[%zu]", i);
		if (rc)
			return rc;
	}
	return 0;
}

// Without one it is the cluster's name, as with Envoy, if that can be one.
static int read_authority(
	struct reader *r, const char *given, const char *field, const char *cluster)
{
	struct str authority = str_from(*given ? given : cluster);
	if (*given && !lb_authority_is_valid(authority))
		return lb_err_set(r->rd->err, "%s: \"%.64s\" is not an authority", field, given);
	if (!lb_authority_is_valid(authority))
		authority = STR("shunt");
	return copy(r, authority, &r->check->authority);
}

// Payloads.

static int read_send(struct reader *r, const Payload *m)
{
	int rc = m ? res_payload_read(m, &r->check->arena, MAX_VALUE, &r->check->body, r->rd->err)
	           : 0;
	return rc == -EINVAL ? lb_err_within(r->rd->err, "send") : rc;
}

static int read_receive(struct reader *r, Payload *const *blocks, size_t n)
{
	size_t left = LB_CHECK_MAX_RECEIVE;
	struct str *list = lb_arena_alloc(&r->check->arena, n, sizeof(*list));
	if (!list)
		return -ENOMEM;
	if (n > MAX_BLOCKS)
		return lb_err_set(r->rd->err, "receive: has more than %d entries", MAX_BLOCKS);
	for (size_t i = 0; i < n; i++) {
		int rc = res_payload_read(blocks[i], &r->check->arena, left, &list[i], r->rd->err);
		if (rc == -EINVAL)
			lb_err_within(r->rd->err, "receive[%zu]", i);
		if (rc)
			return rc;
		left -= list[i].len;
	}
	r->check->receive = list;
	r->check->n_receive = (uint32_t)n;
	return 0;
}

// Kinds.

static int read_ranges(struct reader *r, Range *const *ranges, size_t n, const char *field,
	struct lb_status_ranges *ret)
{
	if (n > MAX_RANGES)
		return lb_err_set(r->rd->err, "%s: has more than %d entries", field, MAX_RANGES);
	struct lb_status_range *list = lb_arena_alloc(&r->check->arena, n, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (ranges[i]->start < 100 || ranges[i]->end > 600 ||
			ranges[i]->start >= ranges[i]->end)
			return lb_err_set(r->rd->err, "%s[%zu]: must be in [100, 600)", field, i);
		list[i].from = (uint16_t)ranges[i]->start;
		list[i].to = (uint16_t)ranges[i]->end;
	}
	*ret = (struct lb_status_ranges){list, (uint32_t)n};
	return 0;
}

static int read_method(struct reader *r, int method)
{
	const char *name =
		res_enum_name(&envoy__config__core__v3__request_method__descriptor, method);
	if (method == METHOD(CONNECT) || strcmp(name, "unknown") == 0)
		return lb_err_set(r->rd->err, "method: %s is not supported", name);
	r->check->method = method == METHOD(METHOD_UNSPECIFIED) ? STR("GET") : STR("");
	return r->check->method.len ? 0 : copy(r, str_from(name), &r->check->method);
}

// Visible ASCII, so that it is one whatever the server makes of it.
static int read_path(struct reader *r, const char *path)
{
	bool ok = *path == '/';
	for (const char *p = path; *p; p++)
		ok = ok && *p > ' ' && *p < 0x7f && *p != '#';
	if (!ok)
		return lb_err_set(r->rd->err, "path: \"%.64s\" is not a path", path);
	return copy(r, str_from(path), &r->check->path);
}

static void warn_of_http(struct reader *r, const Http *m)
{
	if (m->service_name_matcher)
		res_warn(r->rd, "health_checks: service_name_matcher is ignored");
}

static int read_http(struct reader *r, const Http *m, const char *cluster)
{
	static const struct lb_status_range ok[] = {{200, 201}};
	static const struct field defaults[] = {
		{.name = {"user-agent", 10}, .value = {USER_AGENT, 8}}};
	struct lb_check *c = r->check;
	c->kind = LB_CHECK_HTTP;
	int rc = m->codec_client_type == ENVOY__TYPE__V3__CODEC_CLIENT_TYPE__HTTP3
	                 ? lb_err_set(r->rd->err, "codec_client_type: HTTP3 is not supported")
	                 : 0;
	if (!rc)
		rc = read_authority(r, m->host, "host", cluster);
	if (!rc)
		rc = read_path(r, m->path);
	if (!rc)
		rc = read_method(r, (int)m->method);
	if (!rc)
		rc = read_ranges(r, m->expected_statuses, m->n_expected_statuses,
			"expected_statuses", &c->expected);
	if (!rc && !c->expected.n)
		c->expected = (struct lb_status_ranges){ok, 1};
	if (!rc)
		rc = read_ranges(r, m->retriable_statuses, m->n_retriable_statuses,
			"retriable_statuses", &c->retriable);
	if (!rc)
		rc = read_send(r, m->send);
	if (!rc)
		rc = read_receive(r, m->receive, m->n_receive);
	if (!rc) {
		rc = read_fields(
			r, m->request_headers_to_add, m->n_request_headers_to_add, defaults, 1);
		if (rc == -EINVAL)
			lb_err_within(r->rd->err, "request_headers_to_add");
	}
	for (size_t i = 0; !rc && i < m->n_request_headers_to_remove; i++)
		remove_field(c, str_from(m->request_headers_to_remove[i]));
	warn_of_http(r, m);
	return rc == -EINVAL ? lb_err_within(r->rd->err, "http_health_check") : rc;
}

// The message behind its prefix.
static int pack_request(struct reader *r, const char *service)
{
	Grpc__Health__V1__HealthCheckRequest m;
	grpc__health__v1__health_check_request__init(&m);
	m.service = (char *)(uintptr_t)service; // only read
	size_t len = protobuf_c_message_get_packed_size(&m.base);
	if (len > MAX_VALUE)
		return lb_err_set(r->rd->err, "service_name: is too long");
	uint8_t *to = lb_arena_alloc(&r->check->arena, GRPC_PREFIX + len, 1);
	if (!to)
		return -ENOMEM;
	to[3] = (uint8_t)(len >> 8);
	to[4] = (uint8_t)len;
	protobuf_c_message_pack(&m.base, to + GRPC_PREFIX);
	r->check->body = (struct str){(const char *)to, GRPC_PREFIX + len};
	return 0;
}

static int read_grpc(struct reader *r, const Grpc *m, const char *cluster)
{
	static const struct field defaults[] = {
		{.name = {"te", 2}, .value = {"trailers", 8}},
		{.name = {"content-type", 12}, .value = {"application/grpc", 16}},
		{.name = {"user-agent", 10}, .value = {USER_AGENT, 8}},
	};
	struct lb_check *c = r->check;
	c->kind = LB_CHECK_GRPC;
	c->method = STR("POST");
	c->path = STR("/grpc.health.v1.Health/Check");
	int rc = read_authority(r, m->authority, "authority", cluster);
	if (!rc)
		rc = pack_request(r, m->service_name);
	if (!rc) {
		rc = read_fields(r, m->initial_metadata, m->n_initial_metadata, defaults, 3);
		if (rc == -EINVAL)
			lb_err_within(r->rd->err, "initial_metadata");
	}
	return rc == -EINVAL ? lb_err_within(r->rd->err, "grpc_health_check") : rc;
}

static int read_tcp(struct reader *r, const Tcp *m, bool has_tls)
{
	r->check->kind = LB_CHECK_TCP;
	int rc = 0;
	if (has_tls && (m->send || m->n_receive))
		rc = lb_err_set(r->rd->err, "send and receive are not supported beside TLS");
	if (!rc)
		rc = read_send(r, m->send);
	if (!rc)
		rc = read_receive(r, m->receive, m->n_receive);
	return rc == -EINVAL ? lb_err_within(r->rd->err, "tcp_health_check") : rc;
}

static int read_kind(struct reader *r, const HealthCheck *m, const char *cluster, bool has_tls)
{
	switch (m->health_checker_case) {
	case CHECKER(HTTP_HEALTH_CHECK):
		return read_http(r, m->http_health_check, cluster);
	case CHECKER(TCP_HEALTH_CHECK):
		return read_tcp(r, m->tcp_health_check, has_tls);
	case CHECKER(GRPC_HEALTH_CHECK):
		return read_grpc(r, m->grpc_health_check, cluster);
	default:
		return lb_err_set(r->rd->err, "health_checker: must be set");
	}
}

static int read_check(struct reader *r, const HealthCheck *m, const char *cluster, bool has_tls)
{
	struct lb_check *c = r->check;
	int rc = read_times(r, m);
	if (!rc)
		rc = read_threshold(
			r, m->unhealthy_threshold, "unhealthy_threshold", &c->unhealthy_threshold);
	if (!rc)
		rc = read_threshold(
			r, m->healthy_threshold, "healthy_threshold", &c->healthy_threshold);
	if (!rc)
		rc = read_kind(r, m, cluster, has_tls);
	c->keeps_connection =
		c->kind != LB_CHECK_TCP && (!m->reuse_connection || m->reuse_connection->value);
	if (m->tls_options)
		res_warn(r->rd, "health_checks: tls_options is ignored");
	if (m->transport_socket_match_criteria)
		res_warn(r->rd, "health_checks: transport_socket_match_criteria is ignored");
	return rc;
}

static bool is_custom(const Cluster *m)
{
	return m->health_checks[0]->health_checker_case == CHECKER(CUSTOM_HEALTH_CHECK);
}

// AHC-09.
int res_health_check_read(
	struct res_reader *rd, const Cluster *m, bool has_tls, struct lb_check **ret)
{
	*ret = NULL;
	if (!m->n_health_checks)
		return 0;
	if (m->n_health_checks > 1)
		return lb_err_set(
			rd->err, "health_checks: must be one, not %zu", m->n_health_checks);
	if (is_custom(m)) {
		res_warn(rd, "health_checks: custom_health_check is ignored");
		return 0;
	}
	struct reader r = {rd, lb_check_new()};
	if (!r.check)
		return -ENOMEM;
	int rc = read_check(&r, m->health_checks[0], m->name, has_tls);
	if (rc) {
		lb_check_put(r.check);
		return rc == -EINVAL ? lb_err_within(rd->err, "health_checks[0]") : rc;
	}
	*ret = r.check;
	return 0;
}
