// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/route.h"

#include "ctrl/res/common.h"
#include "ctrl/res/http_filter.h"
#include "ctrl/res/retry.h"
#include "ctrl/res/route_action.h"
#include "ctrl/res/route_match.h"
#include "envoy/config/route/v3/route.pb-c.h"
#include "lb/pick/limits.h"
#include "lb/route/domains.h"

#include <xxhash.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Config__Route__V3__RouteConfiguration RouteConfig;
typedef Envoy__Config__Route__V3__VirtualHost VirtualHost;
typedef Envoy__Config__Route__V3__Route Route;
#define CONFIG_TYPE (&envoy__config__route__v3__route_configuration__descriptor)
#define VHOST_TYPE (&envoy__config__route__v3__virtual_host__descriptor)
#define VIRTUAL_HOSTS 2 // the field's number
// Of all virtual hosts: what they become takes some 200 bytes a field.
#define ALL_FIELDS_MAX (32 * RES_FIELDS_MAX)

// The fields that edit headers, which several messages have.
#define EDITS_HEADERS(m)                                                                           \
	((m)->n_request_headers_to_add || (m)->n_request_headers_to_remove ||                      \
		(m)->n_response_headers_to_add || (m)->n_response_headers_to_remove)
#define EDITS_IGNORED "request_headers_to_… and response_headers_to_… are ignored"

// VH-07.
static int check_domain(const char *d, struct lb_err *err)
{
	if (!d[0])
		return lb_err_set(err, "domains: an empty domain");
	if (!lb_domain_is_valid(str_from(d)))
		return lb_err_set(
			err, "domains: \"%.128s\": '*' may stand only at the start or the end", d);
	return 0;
}

struct vhost_reader {
	struct res_reader *rd;
	const struct res_plugins *plugins;
	struct lb_retry retry; // of the virtual host
	const struct lb_route_policy *policy; // of the last route; NULL = there was none
	struct res_route *routes;
	struct res_ignored_route *ignored;
	uint32_t n_routes, n_ignored;
};

static struct res_override_entry override_of_route(const void *message, size_t i)
{
	const Route *m = message;
	return (struct res_override_entry){
		m->typed_per_filter_config[i]->key, m->typed_per_filter_config[i]->value};
}

// Most routes have the policy of the one before.
static int keep_policy(
	struct vhost_reader *v, const struct lb_route_policy *policy, struct res_route *r)
{
	if (!v->policy || memcmp(v->policy, policy, sizeof(*policy)) != 0) {
		struct lb_route_policy *copy = lb_arena_alloc(v->rd->arena, 1, sizeof(*copy));
		if (!copy)
			return -ENOMEM;
		v->policy = memcpy(copy, policy, sizeof(*copy));
	}
	r->policy = v->policy;
	return 0;
}

static int read_route(
	struct vhost_reader *v, const Route *in, struct res_route *r, const char **ret_ignored)
{
	struct res_reader *rd = v->rd;
	if (!in->match) // A28-V01
		return lb_err_set(rd->err, "no match");
	if (in->match->n_query_parameters) { // A28-O06
		*ret_ignored = "match.query_parameters is not supported";
		return 0;
	}
	int rc = res_match_read(rd, in->match, r);
	if (rc)
		return rc;
	struct lb_route_policy policy;
	memset(&policy, 0, sizeof(policy)); // it is compared by its bytes
	policy.retry.max_attempts = 1;
	r->action = LB_ACTION_UNSUPPORTED; // A28-V04
	if (in->action_case == ENVOY__CONFIG__ROUTE__V3__ROUTE__ACTION_ROUTE) {
		r->action = LB_ACTION_CLUSTERS;
		rc = res_action_read(rd, in->route, v->plugins, &v->retry, r, &policy, ret_ignored);
	} else {
		res_warn(rd, "its action is not supported: requests that match it fail");
	}
	if (rc || *ret_ignored)
		return rc;
	if (EDITS_HEADERS(in))
		res_warn(rd, EDITS_IGNORED);
	const struct res_override_map overrides = {
		in, in->n_typed_per_filter_config, override_of_route};
	rc = res_overrides_read(rd, &overrides, &policy.overrides);
	return rc ? rc : keep_policy(v, &policy, r);
}

// The route takes the next place, unless it is ignored.
static int add_route(struct vhost_reader *v, const Route *in, uint32_t index)
{
	struct res_route *r = &v->routes[v->n_routes];
	const char *ignored = NULL;
	*r = (struct res_route){.index = index};
	r->name = lb_arena_strdup(v->rd->arena, in->name);
	int rc = r->name ? read_route(v, in, r, &ignored) : -ENOMEM;
	if (rc || !ignored) {
		v->n_routes += !rc;
		return rc;
	}
	res_warn(v->rd, "it is as if it were not there: %s", ignored);
	v->ignored[v->n_ignored++] = (struct res_ignored_route){index, r->name, ignored};
	return 0;
}

// Room for the ignored ones is counted first: most configurations have none.
static uint32_t most_ignored(const VirtualHost *in)
{
	uint32_t n = 0;
	for (size_t i = 0; i < in->n_routes; i++) {
		const Route *r = in->routes[i];
		n += (r->match && r->match->n_query_parameters) ||
		     (r->action_case == ENVOY__CONFIG__ROUTE__V3__ROUTE__ACTION_ROUTE &&
			     !res_action_has_clusters(r->route));
	}
	return n;
}

static int read_routes(struct vhost_reader *v, const VirtualHost *in)
{
	struct res_reader *rd = v->rd;
	v->routes = lb_arena_alloc(rd->arena, in->n_routes, sizeof(*v->routes));
	v->ignored = lb_arena_alloc(rd->arena, most_ignored(in), sizeof(*v->ignored));
	if (!v->routes || !v->ignored)
		return -ENOMEM;
	for (uint32_t i = 0; i < in->n_routes; i++) {
		rd->route = i;
		rd->in_route = true;
		int rc = add_route(v, in->routes[i], i);
		rd->in_route = false;
		if (rc == -EINVAL && *in->routes[i]->name)
			lb_err_within(rd->err, "route %u \"%.64s\"", i, in->routes[i]->name);
		else if (rc == -EINVAL)
			lb_err_within(rd->err, "route %u", i);
		if (rc)
			return rc;
	}
	return 0;
}

static int read_domains(struct res_reader *rd, const VirtualHost *in, struct res_vhost *v)
{
	if (in->n_domains == 0)
		return lb_err_set(rd->err, "no domains");
	const char **domains = lb_arena_alloc(rd->arena, in->n_domains, sizeof(char *));
	if (!domains)
		return -ENOMEM;
	for (size_t i = 0; i < in->n_domains; i++) {
		int rc = check_domain(in->domains[i], rd->err);
		if (rc)
			return rc;
		domains[i] = lb_arena_strdup(rd->arena, in->domains[i]);
		if (!domains[i])
			return -ENOMEM;
	}
	v->domains = domains;
	v->n_domains = (uint32_t)in->n_domains;
	return 0;
}

static struct res_override_entry override_of_vhost(const void *message, size_t i)
{
	const VirtualHost *m = message;
	return (struct res_override_entry){
		m->typed_per_filter_config[i]->key, m->typed_per_filter_config[i]->value};
}

static void warn_of_vhost(struct res_reader *rd, const VirtualHost *in)
{
	if (EDITS_HEADERS(in))
		res_warn(rd, EDITS_IGNORED);
	if (in->n_request_mirror_policies)
		res_warn(rd, RES_MIRRORS_IGNORED);
	if (in->require_tls != ENVOY__CONFIG__ROUTE__V3__VIRTUAL_HOST__TLS_REQUIREMENT_TYPE__NONE)
		res_warn(rd, "require_tls is ignored: requests in the clear are served");
}

static int read_vhost(struct res_reader *rd, const VirtualHost *in,
	const struct res_plugins *plugins, struct res_vhost *v)
{
	struct vhost_reader routes = {.rd = rd, .plugins = plugins};
	const struct res_override_map overrides = {
		in, in->n_typed_per_filter_config, override_of_vhost};
	v->name = lb_arena_strdup(rd->arena, in->name);
	int rc = v->name ? read_domains(rd, in, v) : -ENOMEM;
	if (!rc)
		rc = res_retry_read(rd, in->retry_policy, &routes.retry);
	if (!rc)
		rc = res_overrides_read(rd, &overrides, &v->overrides);
	if (!rc)
		rc = read_routes(&routes, in);
	warn_of_vhost(rd, in);
	v->routes = routes.routes;
	v->n_routes = routes.n_routes;
	v->ignored = routes.ignored;
	v->n_ignored = routes.n_ignored;
	return rc;
}

// Virtual hosts are unpacked and read one by one, each a step: all of them at once would take many
// times the memory of the bytes, and hold up the loop.
struct xds_decoding {
	struct res_route_config *config; // NULL = it failed
	char *name; // owned; NULL = it has none
	struct lb_err err;
	struct res_reader rd;
	RouteConfig *rest; // owned; without them
	struct res_plugins plugins; // of that
	struct res_vhost *vhosts; // in the arena
	uint32_t n, n_read;
	size_t fields_left; // for those not read yet
	const uint8_t *at, *end; // of the resource's bytes
};

// 0 or -EINVAL. It ends where there are too many.
static int count_vhosts(const uint8_t *bytes, size_t len, uint32_t *ret, struct lb_err *err)
{
	const uint8_t *end = bytes + len;
	struct proto_field f;
	size_t n_others = 0;
	*ret = 0;
	while (proto_field_next(&bytes, end, &f)) {
		bool is_vhost = f.number == VIRTUAL_HOSTS && f.type == 2;
		*ret += is_vhost;
		n_others += !is_vhost;
		if (*ret > LB_MAX_VHOSTS)
			return lb_err_set(err, "virtual_hosts: more than %d", LB_MAX_VHOSTS);
		if (n_others > RES_FIELDS_MAX)
			return lb_err_set(
				err, "RouteConfiguration: more than %d fields", RES_FIELDS_MAX);
	}
	return bytes == end ? 0 : lb_err_set(err, "RouteConfiguration: malformed protobuf");
}

static int begin_vhosts(struct xds_decoding *d)
{
	struct res_route_config *c = d->config;
	d->vhosts = lb_arena_alloc(d->rd.arena, d->n, sizeof(*d->vhosts));
	if (!d->vhosts)
		return -ENOMEM;
	c->vhosts = d->vhosts;
	c->n_vhosts = d->n;
	c->ignore_port = d->rest->ignore_port_in_host_matching;
	return res_plugins_read(&d->plugins, &d->rd, d->rest->cluster_specifier_plugins,
		d->rest->n_cluster_specifier_plugins);
}

static int finish(struct xds_decoding *d)
{
	if (EDITS_HEADERS(d->rest))
		res_warn(&d->rd, EDITS_IGNORED);
	if (d->rest->n_request_mirror_policies)
		res_warn(&d->rd, RES_MIRRORS_IGNORED);
	if (d->rest->n_typed_per_filter_config) // FLT-09
		res_warn(&d->rd, "typed_per_filter_config of the route configuration is ignored");
	return res_warnings_finish(&d->rd, &d->config->warnings);
}

static void fail(struct xds_decoding *d)
{
	if (d->config)
		xds_res_put(&d->config->base);
	d->config = NULL;
}

static void open_config(struct xds_decoding *d, const uint8_t *bytes, size_t len)
{
	size_t left = RES_FIELDS_MAX;
	if (!count_vhosts(bytes, len, &d->n, &d->err))
		d->rest = proto_unpack_but(CONFIG_TYPE, bytes, len, VIRTUAL_HOSTS, &left, &d->err);
	d->name = d->rest ? strdup(d->rest->name) : res_name_in(bytes, len);
	if (!d->rest || !d->name)
		return;
	struct xds_res *base =
		xds_res_new(&res_type_route_config, sizeof(*d->config), d->rest->name, bytes, len);
	if (!base)
		return;
	d->config = res_route_config_from(base);
	d->rd = (struct res_reader){.arena = &base->arena, .err = &d->err};
	d->at = base->bytes;
	d->end = d->at + len;
	d->fields_left = ALL_FIELDS_MAX;
	if (begin_vhosts(d))
		fail(d);
}

static struct xds_decoding *begin(const uint8_t *bytes, size_t len)
{
	struct xds_decoding *d = calloc(1, sizeof(*d));
	if (d)
		open_config(d, bytes, len);
	return d;
}

// NULL = reterr says why.
static VirtualHost *unpack_vhost(struct xds_decoding *d, const struct proto_field *f)
{
	size_t left = RES_FIELDS_MAX;
	VirtualHost *m = proto_unpack_within(VHOST_TYPE, f->bytes, f->len, &left, &d->err);
	if (!m)
		return NULL;
	if (d->fields_left < RES_FIELDS_MAX - left) {
		lb_err_set(&d->err, "more than %d fields in all of them", ALL_FIELDS_MAX);
		proto_free(m);
		return NULL;
	}
	d->fields_left -= RES_FIELDS_MAX - left;
	return m;
}

static int read_next_vhost(struct xds_decoding *d, const struct proto_field *f)
{
	struct res_vhost *v = &d->vhosts[d->n_read];
	VirtualHost *m = unpack_vhost(d, f);
	if (!m)
		return lb_err_within(&d->err, "virtual_hosts[%u]", d->n_read);
	d->rd.vhost = m->name;
	int rc = read_vhost(&d->rd, m, &d->plugins, v);
	if (rc == -EINVAL)
		lb_err_within(&d->err, "virtual host \"%.128s\"", m->name);
	d->rd.vhost = NULL;
	proto_free(m);
	XXH128_hash_t h = XXH3_128bits(f->bytes, f->len);
	v->hash[0] = h.low64;
	v->hash[1] = h.high64;
	d->n_read++;
	return rc;
}

static bool step(struct xds_decoding *d)
{
	struct proto_field f = {.number = 0};
	if (!d->config || d->n_read == d->n)
		return false;
	while (f.number != VIRTUAL_HOSTS || f.type != 2)
		if (!proto_field_next(&d->at, d->end, &f))
			return false;
	if (read_next_vhost(d, &f)) {
		fail(d);
		return false;
	}
	return true;
}

static void end(struct xds_decoding *d, struct xds_decoded *ret)
{
	if (d->config && (!ret || finish(d)))
		fail(d);
	res_plugins_fini(&d->plugins);
	proto_free(d->rest);
	if (ret) {
		ret->res = d->config ? &d->config->base : NULL;
		ret->name = d->name;
		ret->err = d->err;
	} else {
		free(d->name);
	}
	free(d);
}

static void decode(const uint8_t *bytes, size_t len, struct xds_decoded *ret)
{
	xds_decode_steps(&res_type_route_config, bytes, len, ret);
}

const struct xds_type res_type_route_config = {
	.url = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
	.label = "route configuration",
	.origin = XDS_ORIGIN_TRUST,
	.decode = decode,
	.begin = begin,
	.step = step,
	.end = end,
};

int res_route_config_choose(const struct res_route_config *c, const char *authority)
{
	struct lb_arena arena = {0};
	struct lb_vhost_conf *confs = lb_arena_alloc(&arena, c->n_vhosts, sizeof(*confs));
	int chosen = confs ? 0 : -ENOMEM;
	for (uint32_t i = 0; !chosen && i < c->n_vhosts; i++) {
		const struct res_vhost *v = &c->vhosts[i];
		struct str *domains = lb_arena_alloc(&arena, v->n_domains, sizeof(*domains));
		if (!domains)
			chosen = -ENOMEM;
		for (uint32_t d = 0; domains && d < v->n_domains; d++)
			domains[d] = str_from(v->domains[d]);
		confs[i].domains = domains;
		confs[i].n_domains = v->n_domains;
	}
	struct str name = str_from(authority);
	if (c->ignore_port) // VH-06
		name = lb_authority_without_port(name);
	if (!chosen)
		chosen = lb_vhost_choose(confs, c->n_vhosts, name);
	lb_arena_fini(&arena);
	return chosen;
}
