// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/listener.h"

#include "ctrl/res/chain.h"
#include "ctrl/res/common.h"
#include "ctrl/res/forwarding.h"
#include "ctrl/res/http_filter.h"
#include "ctrl/res/route.h"
#include "ctrl/res/tls.h"
#include "ctrl/res/tracing.h"
#include "envoy/config/listener/v3/listener.pb-c.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb-c.h"
#include "proto/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Config__Listener__V3__Listener Listener;
typedef Envoy__Config__Listener__V3__FilterChain Chain;
#define HCM(x) envoy__extensions__filters__network__http_connection_manager__v3__##x
#define HCM_T(x) Envoy__Extensions__Filters__Network__HttpConnectionManager__V3__##x
#define HCM_E(x) ENVOY__EXTENSIONS__FILTERS__NETWORK__HTTP_CONNECTION_MANAGER__V3__##x
typedef HCM_T(HttpConnectionManager) Hcm;
typedef HCM_T(HttpFilter) Filter;
typedef HCM_T(Rds) Rds;
#define HCM_TYPE (&HCM(http_connection_manager__descriptor))
#define HCM_SPECIFIER(x) HCM_E(HTTP_CONNECTION_MANAGER__ROUTE_SPECIFIER_##x)
#define FILTER_TYPED_CONFIG HCM_E(HTTP_FILTER__CONFIG_TYPE_TYPED_CONFIG)
// Numbers of the fields.
#define RDS 3
#define ROUTE_CONFIG 4

// Routes inside may be as large as those of a RouteConfiguration, whose steps are ours then.
struct xds_decoding {
	const uint8_t *bytes; // of the resource
	size_t len;
	struct lb_err err; // of what is unpacked here
	Listener *m; // owned; NULL = malformed
	Hcm *hcm; // owned; without its routes; NULL = none, or malformed
	uint8_t *gathered; // owned: routes that were in several pieces
	struct xds_decoding *routes; // of res_type_route_config; NULL = none are inline
	// Owned: of the filter chains, then the default one, what is read of their only filter.
	struct xds_decoding *chains;
	size_t n_chains, at; // at: the one whose routes are read
	bool no_memory;
};

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
static int read_rds(const Hcm *hcm, struct res_listener *l, struct lb_err *err)
{
	if (hcm->route_specifier_case != HCM_SPECIFIER(RDS))
		return lb_err_set(err, "neither rds nor route_config");
	const Rds *rds = hcm->rds;
	if (!res_is_ads(rds->config_source))
		return lb_err_set(err, "rds: config_source is neither ads nor self");
	if (!*rds->route_config_name)
		return lb_err_set(err, "rds: no route_config_name");
	l->rds_name = lb_arena_strdup(&l->base.arena, rds->route_config_name);
	return l->rds_name ? 0 : -ENOMEM;
}

static int take_routes(struct xds_decoding *d, struct res_listener *l, struct lb_err *err)
{
	struct xds_decoded routes = {.err = {""}};
	res_type_route_config.end(d->routes, &routes);
	d->routes = NULL;
	free(routes.name);
	if (routes.res) {
		l->routes = res_route_config_from(routes.res);
		return 0;
	}
	*err = routes.err;
	return *err->text ? lb_err_within(err, "route_config") : -ENOMEM;
}

static int read_hcm(struct xds_decoding *d, bool is_api, struct res_listener *l, struct lb_err *err)
{
	const Hcm *hcm = d->hcm;
	struct res_reader rd = {.arena = &l->base.arena, .err = err};
	int rc = res_forwarding_read(&rd, hcm, is_api, &l->forwarding);
	if (!rc)
		rc = read_timeouts(hcm, l, err);
	if (!rc)
		rc = read_filters(&rd, hcm, l);
	if (!rc)
		rc = res_access_logs_read(&rd, hcm->access_log, hcm->n_access_log, &l->access_logs);
	res_tracing_read(&rd, hcm->tracing, &l->tracing);
	if (!rc)
		rc = res_warnings_finish(&rd, &l->warnings);
	if (rc)
		return rc;
	return d->routes ? take_routes(d, l, err) : read_rds(hcm, l, err);
}

static const Chain *chain_at(const Listener *m, size_t i)
{
	return i < m->n_filter_chains ? m->filter_chains[i] : m->default_filter_chain;
}

// The chain by itself: what is not equal in these bytes is another chain (A36-33).
static struct xds_res *chain_res_new(const Listener *m, const Chain *chain)
{
	uint8_t *bytes;
	size_t len;
	if (proto_pack(&chain->base, &bytes, &len))
		return NULL;
	struct xds_res *r =
		xds_res_new(&res_type_listener, sizeof(struct res_listener), m->name, bytes, len);
	free(bytes);
	return r;
}

static int read_manager(
	struct xds_decoding *d, bool is_api, struct res_listener *l, struct lb_err *err)
{
	if (*d->err.text) {
		*err = d->err;
		return -EINVAL;
	}
	if (d->no_memory)
		return -ENOMEM;
	l->is_api = true;
	return read_hcm(d, is_api, l, err);
}

// A36-03 to A36-10.
static int read_chain(struct res_reader *rd, const Listener *m, const Chain *chain,
	struct xds_decoding *d, struct res_chain *ret)
{
	struct xds_res *base = chain_res_new(m, chain);
	if (!base)
		return -ENOMEM;
	ret->http = res_listener_from(base);
	int rc = read_manager(d, false, ret->http, rd->err);
	if (rc == -EINVAL && chain->n_filters == 1)
		lb_err_within(rd->err, "filters[0]");
	if (!rc && chain->transport_socket)
		rc = res_tls_read_downstream(rd, chain->transport_socket, &ret->tls);
	return rc;
}

static int read_chains(struct res_reader *rd, struct xds_decoding *d, struct res_socket *s)
{
	const Listener *m = d->m;
	struct lb_chain_conf *matches = lb_arena_alloc(rd->arena, d->n_chains, sizeof(*matches));
	s->chains = lb_arena_alloc(rd->arena, d->n_chains, sizeof(*s->chains));
	if (!matches || !s->chains)
		return -ENOMEM;
	memset(s->chains, 0, d->n_chains * sizeof(*s->chains));
	s->has_default = m->default_filter_chain;
	s->n_chains = (uint32_t)m->n_filter_chains;
	int rc = 0;
	for (size_t i = 0; !rc && i < d->n_chains; i++) {
		rc = res_chain_match_read(rd, chain_at(m, i)->filter_chain_match,
			s->filters.tls_inspector.on, &matches[i]);
		if (!rc)
			rc = read_chain(rd, m, chain_at(m, i), &d->chains[i], &s->chains[i]);
		if (rc == -EINVAL && i < m->n_filter_chains)
			lb_err_within(rd->err, "filter_chains[%zu]", i);
		else if (rc == -EINVAL)
			lb_err_within(rd->err, "default_filter_chain");
	}
	if (rc)
		return rc;
	s->match = lb_chain_match_new(matches, s->n_chains, &s->filters.tls_inspector, rd->err);
	return s->match ? 0 : *rd->err->text ? -EINVAL : -ENOMEM;
}

static int read_socket(struct res_reader *rd, struct xds_decoding *d, struct res_listener *l)
{
	struct res_socket *s = lb_arena_alloc(rd->arena, 1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	*s = (struct res_socket){NULL};
	l->socket = s;
	int rc = res_socket_read(rd, d->m, s);
	if (!rc)
		rc = res_listener_filters_read(rd, d->m, &s->filters);
	if (!rc)
		rc = read_chains(rd, d, s);
	return rc ? rc : res_warnings_finish(rd, &l->warnings);
}

static int read_listener(struct xds_decoding *d, struct res_listener *l, struct xds_decoded *ret)
{
	const Listener *m = d->m;
	struct lb_err *err = &ret->err;
	if (!m->api_listener) {
		struct res_reader rd = {
			.arena = &l->base.arena, .err = err, .bootstrap = ret->bootstrap};
		if (m->address)
			return read_socket(&rd, d, l);
		return lb_err_set(err, "neither api_listener nor address");
	}
	int rc = read_manager(d, true, l, err);
	return rc == -EINVAL ? lb_err_within(err, "api_listener") : rc;
}

// Where the routes of an HttpConnectionManager are, if they are what counts: of a oneof the last
// member does, and pieces of one message are merged, which for bytes is to stand in a row.
static bool find_routes(
	struct xds_decoding *d, const ProtobufCBinaryData *hcm, struct proto_field *ret)
{
	const uint8_t *at = hcm->data, *end = at + hcm->len;
	struct proto_field f;
	*ret = (struct proto_field){0};
	while (proto_field_next(&at, end, &f)) {
		if (f.type != 2 || (f.number != RDS && f.number != ROUTE_CONFIG))
			continue;
		if (f.number == RDS || !ret->bytes) {
			*ret = f.number == RDS ? (struct proto_field){0} : f;
			continue;
		}
		uint8_t *more = malloc(ret->len + f.len + 1);
		if (!more) {
			d->no_memory = true;
			return false;
		}
		memcpy(more, ret->bytes, ret->len);
		memcpy(more + ret->len, f.bytes, f.len);
		free(d->gathered);
		d->gathered = more;
		*ret = (struct proto_field){f.number, f.type, more, ret->len + f.len};
	}
	return ret->bytes != NULL;
}

// Of *all_left so many fields are taken, of which all chains have a part.
static void open_hcm(struct xds_decoding *d, const Google__Protobuf__Any *any, size_t *all_left)
{
	struct proto_field routes;
	if (!any) {
		lb_err_set(&d->err, "empty");
		return;
	}
	if (!proto_any_is(any->type_url, HCM_TYPE)) {
		lb_err_set(&d->err, "\"%.128s\" is not an HttpConnectionManager", any->type_url);
		return;
	}
	size_t left = RES_FIELDS_MAX;
	d->hcm = proto_unpack_but(
		HCM_TYPE, any->value.data, any->value.len, ROUTE_CONFIG, &left, &d->err);
	if (!d->hcm) {
		d->no_memory = !*d->err.text;
		return;
	}
	if (RES_FIELDS_MAX - left > *all_left) {
		lb_err_set(&d->err, "more than %d fields in all HttpConnectionManagers",
			RES_FIELDS_MAX);
		return;
	}
	*all_left -= RES_FIELDS_MAX - left;
	if (find_routes(d, &any->value, &routes)) {
		d->routes = res_type_route_config.begin(routes.bytes, routes.len);
		d->no_memory = !d->routes;
	}
}

static void open_chain(struct xds_decoding *d, const Chain *chain, size_t *all_left)
{
	if (chain->n_filters != 1)
		lb_err_set(&d->err, "filters: there is not exactly one, an HttpConnectionManager");
	else if (chain->filters[0]->config_type_case !=
		 ENVOY__CONFIG__LISTENER__V3__FILTER__CONFIG_TYPE_TYPED_CONFIG)
		lb_err_set(&d->err, "no typed_config");
	else
		open_hcm(d, chain->filters[0]->typed_config, all_left);
}

static void open_chains(struct xds_decoding *d)
{
	size_t n = d->m->n_filter_chains + (d->m->default_filter_chain != NULL);
	size_t all_left = RES_FIELDS_MAX;
	d->chains = calloc(n + 1, sizeof(*d->chains));
	d->no_memory = !d->chains;
	for (; d->chains && d->n_chains < n; d->n_chains++)
		open_chain(&d->chains[d->n_chains], chain_at(d->m, d->n_chains), &all_left);
}

static struct xds_decoding *begin(const uint8_t *bytes, size_t len)
{
	struct xds_decoding *d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->bytes = bytes;
	d->len = len;
	size_t left = RES_FIELDS_MAX;
	d->m = proto_unpack_shell(
		&envoy__config__listener__v3__listener__descriptor, bytes, len, &left, &d->err);
	left = RES_FIELDS_MAX;
	if (d->m && d->m->api_listener)
		open_hcm(d, d->m->api_listener->api_listener, &left);
	else if (d->m)
		open_chains(d);
	return d;
}

static bool step_routes(struct xds_decoding *d)
{
	return d->routes && res_type_route_config.step(d->routes);
}

static bool step(struct xds_decoding *d)
{
	while (d->at < d->n_chains) {
		if (step_routes(&d->chains[d->at]))
			return true;
		d->at++;
	}
	return step_routes(d);
}

static void finish(struct xds_decoding *d, struct xds_decoded *ret)
{
	if (!d->m) {
		ret->err = d->err;
		ret->name = res_name_in(d->bytes, d->len);
		return;
	}
	ret->name = strdup(d->m->name);
	if (!ret->name || d->no_memory)
		return;
	struct xds_res *base = xds_res_new(
		&res_type_listener, sizeof(struct res_listener), d->m->name, d->bytes, d->len);
	if (base && read_listener(d, res_listener_from(base), ret)) {
		xds_res_put(base);
		base = NULL;
	}
	ret->res = base;
}

// What an HttpConnectionManager was read into.
static void fini(struct xds_decoding *d)
{
	if (d->routes)
		res_type_route_config.end(d->routes, NULL);
	proto_free(d->hcm);
	free(d->gathered);
}

static void end(struct xds_decoding *d, struct xds_decoded *ret)
{
	if (ret)
		finish(d, ret);
	for (size_t i = 0; i < d->n_chains; i++)
		fini(&d->chains[i]);
	fini(d);
	free(d->chains);
	proto_free(d->m);
	free(d);
}

static void decode(const uint8_t *bytes, size_t len, struct xds_decoded *ret)
{
	xds_decode_steps(&res_type_listener, bytes, len, ret);
}

static uint32_t n_all_chains(const struct res_socket *s)
{
	return s && s->chains ? s->n_chains + s->has_default : 0;
}

static void release(struct xds_res *base)
{
	struct res_listener *l = res_listener_from(base);
	if (l->routes)
		xds_res_put(&l->routes->base);
	for (uint32_t i = 0; i < n_all_chains(l->socket); i++)
		if (l->socket->chains[i].http)
			xds_res_put(&l->socket->chains[i].http->base);
	if (l->socket)
		lb_chain_match_put(l->socket->match);
}

static void set_server(struct xds_res *base, const struct xds_server_conf *server)
{
	const struct res_listener *l = res_listener_from(base);
	if (l->routes)
		xds_res_set_server(&l->routes->base, server);
	for (uint32_t i = 0; i < n_all_chains(l->socket); i++)
		xds_res_set_server(&l->socket->chains[i].http->base, server);
}

const struct xds_type res_type_listener = {
	.url = "type.googleapis.com/envoy.config.listener.v3.Listener",
	.label = "listener",
	.full_state = true,
	.origin = XDS_ORIGIN_TRUST,
	.decode = decode,
	.begin = begin,
	.step = step,
	.end = end,
	.set_server = set_server,
	.release = release,
};
