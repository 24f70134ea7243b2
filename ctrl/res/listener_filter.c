// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/listener_filter.h"

#include "ctrl/res/common.h"
#include "envoy/extensions/filters/listener/proxy_protocol/v3/proxy_protocol.pb-c.h"

#include <errno.h>

#define PROXY_TYPE                                                                                 \
	(&envoy__extensions__filters__listener__proxy_protocol__v3__proxy_protocol__descriptor)
#define VERSION(x) ENVOY__CONFIG__CORE__V3__PROXY_PROTOCOL_CONFIG__VERSION__##x
typedef Envoy__Extensions__Filters__Listener__ProxyProtocol__V3__ProxyProtocol Proxy;

static int read_versions(struct res_reader *rd, const Proxy *m, struct res_proxy_protocol *ret)
{
	ret->v1 = ret->v2 = !m->n_allowed_versions;
	for (size_t i = 0; i < m->n_allowed_versions; i++) {
		int version = (int)m->allowed_versions[i];
		if (version != (int)VERSION(V1) && version != (int)VERSION(V2))
			return lb_err_set(
				rd->err, "allowed_versions[%zu]: unknown value %d", i, version);
		ret->v1 |= version == (int)VERSION(V1);
		ret->v2 |= version == (int)VERSION(V2);
	}
	return 0;
}

static int read_proxy(struct res_reader *rd, const Proxy *m, struct res_proxy_protocol *ret)
{
	if (ret->on)
		return lb_err_set(rd->err, "a second proxy_protocol");
	// PROXY protocol 2: a receiver must not guess whether there is a header.
	if (m->allow_requests_without_proxy_protocol)
		return lb_err_set(rd->err,
			"allow_requests_without_proxy_protocol: is not supported, since clients "
			"could then name any address");
	if (m->n_rules || m->pass_through_tlvs)
		res_warn(rd, "proxy_protocol: rules and pass_through_tlvs are ignored");
	ret->on = true;
	return read_versions(rd, m, ret);
}

static int read_filter(
	struct res_reader *rd, const Google__Protobuf__Any *any, struct res_proxy_protocol *ret)
{
	if (!any || !res_any_stands_for(any, PROXY_TYPE))
		return 0;
	Proxy *m = res_any_unpack(any, PROXY_TYPE, "proxy_protocol", rd->err);
	if (!m)
		return *rd->err->text ? -EINVAL : -ENOMEM;
	int rc = read_proxy(rd, m, ret);
	proto_free(m);
	return rc;
}

int res_listener_filters_read(struct res_reader *rd, const Envoy__Config__Listener__V3__Listener *m,
	struct res_proxy_protocol *ret)
{
	*ret = (struct res_proxy_protocol){0};
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
