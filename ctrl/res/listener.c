// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/listener.h"

#include "ctrl/res/common.h"
#include "ctrl/res/http_filter.h"
#include "ctrl/res/route_decode.h"
#include "envoy/config/listener/v3/listener.pb-c.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb-c.h"
#include "proto/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Config__Listener__V3__Listener Listener;
#define HCM(x) envoy__extensions__filters__network__http_connection_manager__v3__##x
#define HCM_T(x) Envoy__Extensions__Filters__Network__HttpConnectionManager__V3__##x
#define HCM_E(x) ENVOY__EXTENSIONS__FILTERS__NETWORK__HTTP_CONNECTION_MANAGER__V3__##x
typedef HCM_T(HttpConnectionManager) Hcm;
typedef HCM_T(HttpFilter) Filter;
typedef HCM_T(Rds) Rds;
#define HCM_TYPE (&HCM(http_connection_manager__descriptor))
#define HCM_SPECIFIER(x) HCM_E(HTTP_CONNECTION_MANAGER__ROUTE_SPECIFIER_##x)
#define FILTER_TYPED_CONFIG HCM_E(HTTP_FILTER__CONFIG_TYPE_TYPED_CONFIG)

static int read_filters(struct res_reader *rd, const Hcm *hcm, struct res_listener *l)
{
	struct res_http_filter *list = calloc(hcm->n_http_filters + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < hcm->n_http_filters; i++) {
		const Filter *f = hcm->http_filters[i];
		list[i] = (struct res_http_filter){
			.name = f->name,
			.config =
				f->config_type_case == FILTER_TYPED_CONFIG ? f->typed_config : NULL,
			.is_optional = f->is_optional,
			.disabled = f->disabled,
		};
	}
	int rc = res_filters_read(rd, list, hcm->n_http_filters, &l->filters, &l->n_filters);
	free(list);
	return rc;
}

// A31-T01, A31-T02, TH-98.
static int read_timeouts(const Hcm *hcm, struct res_listener *l, struct lb_err *err)
{
	const Google__Protobuf__Duration *d =
		hcm->common_http_protocol_options
			? hcm->common_http_protocol_options->max_stream_duration
			: NULL;
	l->max_stream_duration_ns = LB_NO_TIMEOUT;
	if (res_check_duration(d, "common_http_protocol_options.max_stream_duration", err))
		return -EINVAL;
	if (d && res_duration_ns(d) > 0)
		l->max_stream_duration_ns = res_duration_ns(d);
	if (res_check_duration(hcm->stream_idle_timeout, "stream_idle_timeout", err))
		return -EINVAL;
	l->stream_idle_ns = res_idle_ns(hcm->stream_idle_timeout);
	return 0;
}

// CL-02.
static int read_routes(const Hcm *hcm, struct res_listener *l, struct lb_err *err)
{
	if (hcm->route_specifier_case == HCM_SPECIFIER(RDS)) {
		const Rds *rds = hcm->rds;
		if (!res_is_ads(rds->config_source))
			return lb_err_set(err, "rds: config_source is neither ads nor self");
		if (!*rds->route_config_name)
			return lb_err_set(err, "rds: no route_config_name");
		l->rds_name = lb_arena_strdup(&l->base.arena, rds->route_config_name);
		return l->rds_name ? 0 : -ENOMEM;
	}
	if (hcm->route_specifier_case != HCM_SPECIFIER(ROUTE_CONFIG))
		return lb_err_set(err, "neither rds nor route_config");

	size_t len;
	uint8_t *bytes;
	if (proto_pack(&hcm->route_config->base, &bytes, &len))
		return -ENOMEM;
	l->routes = res_route_config_new(bytes, len, err);
	free(bytes);
	if (l->routes)
		return 0;
	return *err->text ? lb_err_within(err, "route_config") : -ENOMEM;
}

static int read_hcm(const Hcm *hcm, struct res_listener *l, struct lb_err *err)
{
	if (hcm->xff_num_trusted_hops) // FLT-10
		return lb_err_set(err, "xff_num_trusted_hops: must be 0");
	if (hcm->n_original_ip_detection_extensions)
		return lb_err_set(err, "original_ip_detection_extensions: must be empty");
	struct res_reader rd = {.arena = &l->base.arena, .err = err};
	int rc = read_timeouts(hcm, l, err);
	if (!rc)
		rc = read_filters(&rd, hcm, l);
	if (!rc)
		rc = res_warnings_finish(&rd, &l->warnings);
	return rc ? rc : read_routes(hcm, l, err);
}

static int read_listener(const Listener *m, struct res_listener *l, struct lb_err *err)
{
	if (!m->api_listener) {
		if (m->address)
			return 0; // a socket listener
		return lb_err_set(err, "neither api_listener nor address");
	}
	const Google__Protobuf__Any *any = m->api_listener->api_listener;
	if (!any)
		return lb_err_set(err, "api_listener: empty");
	if (!proto_any_is(any->type_url, HCM_TYPE))
		return lb_err_set(err, "api_listener: \"%.128s\" is not an HttpConnectionManager",
			any->type_url);
	Hcm *hcm = res_any_unpack(any, HCM_TYPE, "api_listener", err);
	if (!hcm)
		return -EINVAL;
	l->is_api = true;
	int rc = read_hcm(hcm, l, err);
	proto_free(hcm);
	return rc == -EINVAL ? lb_err_within(err, "api_listener") : rc;
}

static void decode(const uint8_t *bytes, size_t len, struct xds_decoded *ret)
{
	Listener *m = proto_unpack(
		&envoy__config__listener__v3__listener__descriptor, bytes, len, &ret->err);
	if (!m) {
		ret->name = res_name_in(bytes, len);
		return;
	}
	ret->name = strdup(m->name);
	struct xds_res *base = !ret->name
	                               ? NULL
	                               : xds_res_new(&res_type_listener,
						 sizeof(struct res_listener), m->name, bytes, len);
	if (base && read_listener(m, res_listener_from(base), &ret->err)) {
		xds_res_put(base);
		base = NULL;
	}
	ret->res = base;
	proto_free(m);
}

static void release(struct xds_res *base)
{
	struct res_listener *l = res_listener_from(base);
	if (l->routes)
		xds_res_put(&l->routes->base);
}

static void set_server(struct xds_res *base, const struct xds_server_conf *server)
{
	const struct res_listener *l = res_listener_from(base);
	if (l->routes)
		xds_res_set_server(&l->routes->base, server);
}

const struct xds_type res_type_listener = {
	.url = "type.googleapis.com/envoy.config.listener.v3.Listener",
	.label = "listener",
	.full_state = true,
	.origin = XDS_ORIGIN_TRUST,
	.decode = decode,
	.set_server = set_server,
	.release = release,
};
