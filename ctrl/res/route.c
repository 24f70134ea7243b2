// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/route.h"

#include "ctrl/res/common.h"
#include "ctrl/res/http_filter.h"
#include "ctrl/res/retry.h"
#include "ctrl/res/route_action.h"
#include "ctrl/res/route_decode.h"
#include "ctrl/res/route_match.h"
#include "lb/route/domains.h"

#include <xxhash.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Config__Route__V3__RouteConfiguration RouteConfig;
typedef Envoy__Config__Route__V3__VirtualHost VirtualHost;
typedef Envoy__Config__Route__V3__Route Route;
#define VIRTUAL_HOSTS 2 // the field's number

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

// Each occurrence of the field is one virtual host, in order.
static void hash_vhosts(struct res_vhost *vhosts, uint32_t n, const uint8_t *bytes, size_t len)
{
	const uint8_t *end = bytes + len;
	struct proto_field f;
	for (uint32_t i = 0; i < n && proto_field_next(&bytes, end, &f);) {
		if (f.number != VIRTUAL_HOSTS)
			continue;
		XXH128_hash_t h = XXH3_128bits(f.bytes, f.len);
		vhosts[i].hash[0] = h.low64;
		vhosts[i].hash[1] = h.high64;
		i++;
	}
}

static int read_config(struct res_reader *rd, const RouteConfig *in, struct res_plugins *plugins,
	struct res_route_config *c)
{
	struct res_vhost *vhosts = lb_arena_alloc(rd->arena, in->n_virtual_hosts, sizeof(*vhosts));
	int rc = vhosts ? res_plugins_read(plugins, rd, in->cluster_specifier_plugins,
				  in->n_cluster_specifier_plugins)
	                : -ENOMEM;
	for (size_t i = 0; !rc && i < in->n_virtual_hosts; i++) {
		rd->vhost = in->virtual_hosts[i]->name;
		rc = read_vhost(rd, in->virtual_hosts[i], plugins, &vhosts[i]);
		if (rc == -EINVAL)
			lb_err_within(rd->err, "virtual host \"%.128s\"", rd->vhost);
	}
	rd->vhost = NULL;
	if (EDITS_HEADERS(in))
		res_warn(rd, EDITS_IGNORED);
	if (in->n_request_mirror_policies)
		res_warn(rd, RES_MIRRORS_IGNORED);
	if (in->n_typed_per_filter_config) // FLT-09
		res_warn(rd, "typed_per_filter_config of the route configuration is ignored");
	if (!rc)
		hash_vhosts(vhosts, (uint32_t)in->n_virtual_hosts, c->base.bytes, c->base.len);
	c->vhosts = vhosts;
	c->n_vhosts = (uint32_t)in->n_virtual_hosts;
	c->ignore_port = in->ignore_port_in_host_matching;
	return rc ? rc : res_warnings_finish(rd, &c->warnings);
}

struct res_route_config *res_route_config_new(
	const RouteConfig *in, const uint8_t *bytes, size_t len, struct lb_err *err)
{
	struct xds_res *base = xds_res_new(
		&res_type_route_config, sizeof(struct res_route_config), in->name, bytes, len);
	if (!base)
		return NULL;
	struct res_route_config *c = res_route_config_from(base);
	struct res_reader rd = {.arena = &base->arena, .err = err};
	struct res_plugins plugins = {0};
	int rc = read_config(&rd, in, &plugins, c);
	res_plugins_fini(&plugins);
	if (rc) {
		xds_res_put(base);
		return NULL;
	}
	return c;
}

static void decode(const uint8_t *bytes, size_t len, struct xds_decoded *ret)
{
	RouteConfig *m = proto_unpack(
		&envoy__config__route__v3__route_configuration__descriptor, bytes, len, &ret->err);
	if (!m) {
		ret->name = res_name_in(bytes, len);
		return;
	}
	ret->name = strdup(m->name);
	struct res_route_config *c =
		ret->name ? res_route_config_new(m, bytes, len, &ret->err) : NULL;
	ret->res = c ? &c->base : NULL;
	proto_free(m);
}

const struct xds_type res_type_route_config = {
	.url = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
	.label = "route configuration",
	.origin = XDS_ORIGIN_TRUST,
	.decode = decode,
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
