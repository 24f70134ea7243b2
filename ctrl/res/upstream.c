// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/upstream.h"

#include "ctrl/res/cluster.h"
#include "ctrl/res/common.h"
#include "envoy/extensions/upstreams/http/v3/http_protocol_options.pb-c.h"
#include "lb/base/time.h"

#include <errno.h>

#define DEFAULT_IDLE_TIMEOUT_NS (3600 * NS_PER_SECOND) // gRFC A75

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Config__Cluster__V3__Cluster Cluster;
typedef Envoy__Config__Core__V3__Http2ProtocolOptions Http2;
typedef Envoy__Config__Core__V3__KeepaliveSettings Keepalive;
typedef Envoy__Config__Core__V3__TcpKeepalive TcpKeepalive;
typedef Envoy__Extensions__Upstreams__Http__V3__HttpProtocolOptions HttpOptions;
typedef Google__Protobuf__Duration Duration;
#define HTTP_OPTIONS_TYPE                                                                          \
	(&envoy__extensions__upstreams__http__v3__http_protocol_options__descriptor)
#define PROTOCOL(x)                                                                                \
	ENVOY__EXTENSIONS__UPSTREAMS__HTTP__V3__HTTP_PROTOCOL_OPTIONS__UPSTREAM_PROTOCOL_OPTIONS_##x

static uint32_t at_most_u32(uint64_t x)
{
	return x < UINT32_MAX ? (uint32_t)x : UINT32_MAX;
}

// A time of a millisecond at least, as Envoy's validation has it; none leaves *ret alone.
static int read_ms(const Duration *d, const char *field, uint32_t *ret, struct lb_err *err)
{
	int rc = res_check_duration(d, field, err);
	if (rc || !d)
		return rc;
	uint64_t ms = res_duration_ns(d) / NS_PER_MS;
	if (!ms)
		return lb_err_set(err, "%s: must be 1 ms at least", field);
	*ret = at_most_u32(ms);
	return 0;
}

static int read_keepalive(struct res_reader *rd, const Keepalive *k, struct lb_timers *t)
{
	uint32_t idle_ms;
	int rc = read_ms(k->interval, "interval", &t->ping_interval_ms, rd->err);
	if (!rc && !k->timeout)
		rc = lb_err_set(rd->err, "timeout: must be set");
	if (!rc)
		rc = read_ms(k->timeout, "timeout", &t->ping_timeout_ms, rd->err);
	if (!rc)
		rc = read_ms(
			k->connection_idle_interval, "connection_idle_interval", &idle_ms, rd->err);
	if (rc)
		return lb_err_within(rd->err, "http2_protocol_options: connection_keepalive");
	if (k->connection_idle_interval)
		res_warn(rd, "connection_keepalive: connection_idle_interval is ignored");
	return 0;
}

static const Http2 *http2_of(const HttpOptions *m)
{
	switch (m->upstream_protocol_options_case) {
	case PROTOCOL(EXPLICIT_HTTP_CONFIG):
		return m->explicit_http_config->protocol_config_case ==
		                       ENVOY__EXTENSIONS__UPSTREAMS__HTTP__V3__HTTP_PROTOCOL_OPTIONS__EXPLICIT_HTTP_CONFIG__PROTOCOL_CONFIG_HTTP2_PROTOCOL_OPTIONS
		               ? m->explicit_http_config->http2_protocol_options
		               : NULL;
	case PROTOCOL(USE_DOWNSTREAM_PROTOCOL_CONFIG):
		return m->use_downstream_protocol_config->http2_protocol_options;
	case PROTOCOL(AUTO_CONFIG):
		return m->auto_config->http2_protocol_options;
	default:
		return NULL;
	}
}

static int read_options(struct res_reader *rd, const HttpOptions *m, struct res_cluster *ret)
{
	const Duration *idle = m->common_http_protocol_options
	                               ? m->common_http_protocol_options->idle_timeout
	                               : NULL;
	int rc = res_check_duration(idle, "common_http_protocol_options.idle_timeout", rd->err);
	if (rc)
		return rc;
	if (idle)
		ret->idle_timeout_ns = res_duration_ns(idle);
	const Http2 *h2 = http2_of(m);
	if (!h2 || !h2->connection_keepalive)
		return 0;
	return read_keepalive(rd, h2->connection_keepalive, &ret->timers);
}

static int read_any(struct res_reader *rd, const Google__Protobuf__Any *any, const char *field,
	struct res_cluster *ret)
{
	HttpOptions *m = res_any_unpack(any, HTTP_OPTIONS_TYPE, rd->err);
	if (!m)
		return lb_err_within(rd->err, "%s", field);
	int rc = read_options(rd, m, ret);
	proto_free(m);
	return rc ? lb_err_within(rd->err, "%s", field) : 0;
}

// CL-08.
static int read_http_options(struct res_reader *rd, const Cluster *m, struct res_cluster *ret)
{
	if (m->upstream_config) {
		const Google__Protobuf__Any *any = m->upstream_config->typed_config;
		if (!any || !proto_any_is(any->type_url, HTTP_OPTIONS_TYPE))
			return lb_err_set(
				rd->err, "upstream_config: is not an HttpProtocolOptions");
		return read_any(rd, any, "upstream_config", ret);
	}
	for (size_t i = 0; i < m->n_typed_extension_protocol_options; i++) {
		const Google__Protobuf__Any *any = m->typed_extension_protocol_options[i]->value;
		if (any && proto_any_is(any->type_url, HTTP_OPTIONS_TYPE))
			return read_any(rd, any, "typed_extension_protocol_options", ret);
	}
	return 0;
}

static void read_tcp_keepalive(
	struct res_reader *rd, const TcpKeepalive *k, struct lb_timers *timers)
{
	if (k->keepalive_time)
		timers->tcp_keepalive_ms = at_most_u32(k->keepalive_time->value * UINT64_C(1000));
	if (k->keepalive_probes || k->keepalive_interval)
		res_warn(rd, "tcp_keepalive: keepalive_probes and keepalive_interval are ignored");
}

int res_upstream_read(struct res_reader *rd, const Cluster *m, struct res_cluster *ret)
{
	ret->idle_timeout_ns = DEFAULT_IDLE_TIMEOUT_NS;
	int rc = read_ms(m->connect_timeout, "connect_timeout", &ret->timers.connect_ms, rd->err);
	if (rc)
		return rc;
	if (m->upstream_connection_options && m->upstream_connection_options->tcp_keepalive)
		read_tcp_keepalive(rd, m->upstream_connection_options->tcp_keepalive, &ret->timers);
	return read_http_options(rd, m, ret);
}
