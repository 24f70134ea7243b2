// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/listener_filter.h"

#include "ctrl/res/common.h"
#include "ctrl/res/proxy_header.h"
#include "envoy/extensions/filters/listener/proxy_protocol/v3/proxy_protocol.pb-c.h"
#include "envoy/extensions/filters/listener/tls_inspector/v3/tls_inspector.pb-c.h"
#include "lb/base/min.h"

#include <errno.h>
#include <inttypes.h>

#define PROXY_TYPE                                                                                 \
	(&envoy__extensions__filters__listener__proxy_protocol__v3__proxy_protocol__descriptor)
#define INSPECTOR_TYPE                                                                             \
	(&envoy__extensions__filters__listener__tls_inspector__v3__tls_inspector__descriptor)
// Envoy's validation, and its own bounds.
#define MIN_HELLO 256
#define MAX_MAX_HELLO 16384
#define MAX_FIRST_READ 65536
typedef Envoy__Extensions__Filters__Listener__ProxyProtocol__V3__ProxyProtocol Proxy;
typedef Envoy__Extensions__Filters__Listener__TlsInspector__V3__TlsInspector Inspector;

static int read_proxy(struct res_reader *rd, const Proxy *m, struct res_listener_filters *ret)
{
	if (ret->proxy_protocol)
		return lb_err_set(rd->err, "a second proxy_protocol");
	// PROXY protocol 2: a receiver must not guess whether there is a header.
	if (m->allow_requests_without_proxy_protocol)
		return lb_err_set(rd->err,
			"allow_requests_without_proxy_protocol: is not supported, since clients "
			"could then name any address");
	if (m->n_rules)
		res_warn(rd, "proxy_protocol: rules are ignored");
	if (m->n_disallowed_versions)
		res_warn(rd, "proxy_protocol: disallowed_versions: the frontend's versions count");
	ret->proxy_protocol = true;
	int rc = res_passed_tlvs_read(rd, m->pass_through_tlvs, &ret->passed);
	return rc ? lb_err_within(rd->err, "pass_through_tlvs") : 0;
}

static int unpack_proxy(
	struct res_reader *rd, const Google__Protobuf__Any *any, struct res_listener_filters *ret)
{
	Proxy *m = res_any_unpack(any, PROXY_TYPE, rd->err);
	if (!m)
		return *rd->err->text ? lb_err_within(rd->err, "proxy_protocol") : -ENOMEM;
	int rc = read_proxy(rd, m, ret);
	proto_free(m);
	return rc;
}

// Absent = 0. Returns 0 or -EINVAL.
static int read_len(struct res_reader *rd, const char *field, uint32_t most,
	const Google__Protobuf__UInt32Value *len, uint32_t *ret)
{
	if (len && (len->value < MIN_HELLO || len->value > most))
		return lb_err_set(
			rd->err, "%s: must be in [%d, %" PRIu32 "]", field, MIN_HELLO, most);
	*ret = len ? len->value : 0;
	return 0;
}

// Of several each counts, as in Envoy.
static int read_inspector(struct res_reader *rd, const Inspector *m, struct lb_inspector *ret)
{
	uint32_t max = 0, how;
	ret->on = true;
	ret->closes |= m->close_connection_on_client_hello_parsing_errors;
	if (m->enable_ja3_fingerprinting)
		res_warn(rd, "tls_inspector: enable_ja3_fingerprinting is ignored");
	if (m->enable_ja4_fingerprinting)
		res_warn(rd, "tls_inspector: enable_ja4_fingerprinting is ignored");
	// The latter says how, and not what.
	if (read_len(rd, "max_client_hello_size", MAX_MAX_HELLO, m->max_client_hello_size, &max) ||
		read_len(rd, "initial_read_buffer_size", MAX_FIRST_READ,
			m->initial_read_buffer_size, &how))
		return -EINVAL;
	if (max)
		ret->max_hello = ret->max_hello ? min_u32(ret->max_hello, max) : max;
	return 0;
}

static int unpack_inspector(
	struct res_reader *rd, const Google__Protobuf__Any *any, struct lb_inspector *ret)
{
	Inspector *m = res_any_unpack(any, INSPECTOR_TYPE, rd->err);
	if (!m)
		return *rd->err->text ? lb_err_within(rd->err, "tls_inspector") : -ENOMEM;
	int rc = read_inspector(rd, m, ret);
	proto_free(m);
	return rc;
}

static int read_filter(
	struct res_reader *rd, const Google__Protobuf__Any *any, struct res_listener_filters *ret)
{
	if (any && res_any_stands_for(any, PROXY_TYPE))
		return unpack_proxy(rd, any, ret);
	if (any && res_any_stands_for(any, INSPECTOR_TYPE))
		return unpack_inspector(rd, any, &ret->tls_inspector);
	return 0;
}

int res_listener_filters_read(struct res_reader *rd, const Envoy__Config__Listener__V3__Listener *m,
	struct res_listener_filters *ret)
{
	*ret = (struct res_listener_filters){.proxy_protocol = false};
	for (size_t i = 0; i < m->n_listener_filters; i++) {
		const Envoy__Config__Listener__V3__ListenerFilter *f = m->listener_filters[i];
		bool typed = f->config_type_case ==
		             ENVOY__CONFIG__LISTENER__V3__LISTENER_FILTER__CONFIG_TYPE_TYPED_CONFIG;
		int rc = read_filter(rd, typed ? f->typed_config : NULL, ret);
		if (rc)
			return rc == -EINVAL ? lb_err_within(rd->err, "listener_filters[%zu]", i)
			                     : rc;
	}
	return 0;
}
