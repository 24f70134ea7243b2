// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/route.h"

#include "ctrl/res/common.h"
#include "ctrl/res/route_decode.h"
#include "lb/domains.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Config__Route__V3__RouteConfiguration RouteConfig;
typedef Envoy__Config__Route__V3__VirtualHost VirtualHost;
typedef Envoy__Config__Route__V3__Route Route;
typedef Envoy__Config__Route__V3__RouteMatch Match;
typedef Envoy__Config__Route__V3__RouteAction Action;
typedef Envoy__Config__Route__V3__WeightedCluster Weighted;

// routing.md VH-07.
static int check_domain(const char *d, struct lb_err *err)
{
	if (!d[0])
		return lb_err_set(err, "domains: an empty domain");
	if (!lb_domain_is_valid(str_from(d)))
		return lb_err_set(
			err, "domains: \"%.128s\": '*' may stand only at the start or the end", d);
	return 0;
}

// Sets what a request must be like. 0, -EINVAL or -ENOMEM.
static int read_match(
	const Match *m, struct xds_arena *arena, struct res_route *r, struct lb_err *err)
{
	const char *path = NULL;
	switch (m->path_specifier_case) {
	case ENVOY__CONFIG__ROUTE__V3__ROUTE_MATCH__PATH_SPECIFIER_PREFIX:
		r->path_kind = LB_PATH_PREFIX;
		path = m->prefix;
		break;
	case ENVOY__CONFIG__ROUTE__V3__ROUTE_MATCH__PATH_SPECIFIER_PATH:
		r->path_kind = LB_PATH_EXACT;
		path = m->path;
		break;
	case ENVOY__CONFIG__ROUTE__V3__ROUTE_MATCH__PATH_SPECIFIER_SAFE_REGEX:
		return lb_err_set(err, "match.safe_regex: not supported yet");
	case ENVOY__CONFIG__ROUTE__V3__ROUTE_MATCH__PATH_SPECIFIER_CONNECT_MATCHER:
		return lb_err_set(err, "match.connect_matcher: not supported"); // A28-P08
	case ENVOY__CONFIG__ROUTE__V3__ROUTE_MATCH__PATH_SPECIFIER_PATH_SEPARATED_PREFIX:
		return lb_err_set(err, "match.path_separated_prefix: not supported");
	case ENVOY__CONFIG__ROUTE__V3__ROUTE_MATCH__PATH_SPECIFIER_PATH_MATCH_POLICY:
		return lb_err_set(err, "match.path_match_policy: not supported");
	default: // A28-P03
		return lb_err_set(err, "match: no path specifier");
	}
	// Valid, but to leave one out would send requests where they do not belong.
	if (m->n_headers)
		return lb_err_set(err, "match.headers: not supported yet");
	if (m->runtime_fraction)
		return lb_err_set(err, "match.runtime_fraction: not supported yet");
	r->case_sensitive = !m->case_sensitive || m->case_sensitive->value; // A28-P04
	r->grpc_only = m->grpc;
	r->ppm = LB_PPM_ALWAYS;
	r->path_len = strlen(path);
	r->path = xds_arena_strdup(arena, path);
	return r->path ? 0 : -ENOMEM;
}

// routing.md A28-W01 to W07.
static int read_weighted(
	const Weighted *w, struct xds_arena *arena, struct res_route *r, struct lb_err *err)
{
	if (w->n_clusters == 0)
		return lb_err_set(err, "weighted_clusters: no clusters");
	struct res_weighted_cluster *list = xds_arena_alloc(arena, w->n_clusters, sizeof(*list));
	if (!list)
		return -ENOMEM;
	uint64_t sum = 0;
	for (size_t i = 0; i < w->n_clusters; i++) {
		const Envoy__Config__Route__V3__WeightedCluster__ClusterWeight *in = w->clusters[i];
		if (!*in->name)
			return lb_err_set(err, "weighted_clusters[%zu]: no cluster name", i);
		if (!in->weight)
			return lb_err_set(err, "weighted_clusters[%zu]: no weight", i);
		list[i].name = xds_arena_strdup(arena, in->name);
		if (!list[i].name)
			return -ENOMEM;
		list[i].weight = in->weight->value;
		sum += in->weight->value;
	}
	if (sum == 0 || sum > UINT32_MAX)
		return lb_err_set(
			err, "weighted_clusters: weights add up to %llu", (unsigned long long)sum);
	if (w->total_weight && w->total_weight->value && w->total_weight->value != sum) // D6
		return lb_err_set(err,
			"weighted_clusters: weights add up to %llu, total_weight is %u",
			(unsigned long long)sum, w->total_weight->value);
	r->clusters = list;
	r->n_clusters = (uint32_t)w->n_clusters;
	return 0;
}

static int read_single(
	const char *name, struct xds_arena *arena, struct res_route *r, struct lb_err *err)
{
	if (!*name)
		return lb_err_set(err, "route.cluster: no name");
	struct res_weighted_cluster *one = xds_arena_alloc(arena, 1, sizeof(*one));
	if (!one)
		return -ENOMEM;
	one->name = xds_arena_strdup(arena, name);
	one->weight = 1;
	r->clusters = one;
	r->n_clusters = 1;
	return one->name ? 0 : -ENOMEM;
}

// *ret_ignored: the route acts as if it were not there (A28-V02, V06).
static int read_action(const Action *a, struct xds_arena *arena, struct res_route *r,
	bool *ret_ignored, struct lb_err *err)
{
	if (a->max_stream_duration) {
		int rc = res_check_duration(
			a->max_stream_duration->max_stream_duration, "max_stream_duration", err);
		if (!rc)
			rc = res_check_duration(a->max_stream_duration->grpc_timeout_header_max,
				"grpc_timeout_header_max", err);
		if (rc)
			return rc;
	}
	r->action = LB_ACTION_CLUSTERS;
	switch (a->cluster_specifier_case) {
	case ENVOY__CONFIG__ROUTE__V3__ROUTE_ACTION__CLUSTER_SPECIFIER_CLUSTER:
		return read_single(a->cluster, arena, r, err);
	case ENVOY__CONFIG__ROUTE__V3__ROUTE_ACTION__CLUSTER_SPECIFIER_WEIGHTED_CLUSTERS:
		return read_weighted(a->weighted_clusters, arena, r, err);
	default:
		*ret_ignored = true;
		return 0;
	}
}

static int read_route(const Route *in, struct xds_arena *arena, struct res_route *r,
	bool *ret_ignored, struct lb_err *err)
{
	if (!in->match) // A28-V01
		return lb_err_set(err, "no match");
	if (in->match->n_query_parameters) { // A28-O06
		*ret_ignored = true;
		return 0;
	}
	r->name = xds_arena_strdup(arena, in->name);
	int rc = r->name ? read_match(in->match, arena, r, err) : -ENOMEM;
	if (rc)
		return rc;
	if (in->action_case == ENVOY__CONFIG__ROUTE__V3__ROUTE__ACTION_ROUTE)
		return read_action(in->route, arena, r, ret_ignored, err);
	r->action = LB_ACTION_UNSUPPORTED; // A28-V04
	return 0;
}

static int read_routes(
	const VirtualHost *in, struct xds_arena *arena, struct res_vhost *v, struct lb_err *err)
{
	struct res_route *routes = xds_arena_alloc(arena, in->n_routes, sizeof(*routes));
	if (!routes)
		return -ENOMEM;
	for (size_t i = 0; i < in->n_routes; i++) {
		struct res_route *r = &routes[v->n_routes];
		bool ignored = false;
		*r = (struct res_route){0};
		int rc = read_route(in->routes[i], arena, r, &ignored, err);
		if (rc == -EINVAL)
			return lb_err_within(err, "route %zu", i);
		if (rc)
			return rc;
		v->n_routes += !ignored;
	}
	v->routes = routes;
	return 0;
}

static int read_vhost(
	const VirtualHost *in, struct xds_arena *arena, struct res_vhost *v, struct lb_err *err)
{
	if (in->n_domains == 0)
		return lb_err_set(err, "no domains");
	const char **domains = xds_arena_alloc(arena, in->n_domains, sizeof(char *));
	v->name = xds_arena_strdup(arena, in->name);
	if (!domains || !v->name)
		return -ENOMEM;
	for (size_t i = 0; i < in->n_domains; i++) {
		int rc = check_domain(in->domains[i], err);
		if (rc)
			return rc;
		domains[i] = xds_arena_strdup(arena, in->domains[i]);
		if (!domains[i])
			return -ENOMEM;
	}
	v->domains = domains;
	v->n_domains = (uint32_t)in->n_domains;
	return read_routes(in, arena, v, err);
}

struct res_route_config *res_route_config_new(
	const RouteConfig *in, const uint8_t *bytes, size_t len, struct lb_err *err)
{
	struct xds_res *base = xds_res_new(
		&res_type_route_config, sizeof(struct res_route_config), in->name, bytes, len);
	if (!base)
		return NULL;
	struct res_route_config *c = res_route_config_from(base);
	struct res_vhost *vhosts =
		xds_arena_alloc(&base->arena, in->n_virtual_hosts, sizeof(*vhosts));
	int rc = vhosts ? 0 : -ENOMEM;
	for (size_t i = 0; !rc && i < in->n_virtual_hosts; i++) {
		rc = read_vhost(in->virtual_hosts[i], &base->arena, &vhosts[i], err);
		if (rc == -EINVAL)
			lb_err_within(err, "virtual host \"%.128s\"", in->virtual_hosts[i]->name);
	}
	if (rc) {
		xds_res_put(base);
		return NULL;
	}
	c->vhosts = vhosts;
	c->n_vhosts = (uint32_t)in->n_virtual_hosts;
	return c;
}

static void decode(const uint8_t *bytes, size_t len, struct xds_decoded *ret)
{
	RouteConfig *m = proto_unpack(
		&envoy__config__route__v3__route_configuration__descriptor, bytes, len, &ret->err);
	if (!m)
		return;
	ret->name = strdup(m->name);
	struct res_route_config *c =
		ret->name ? res_route_config_new(m, bytes, len, &ret->err) : NULL;
	ret->res = c ? &c->base : NULL;
	proto_free(m);
}

const struct xds_type res_type_route_config = {
	.url = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
	.label = "route configuration",
	.decode = decode,
};

int res_route_config_choose(const struct res_route_config *c, const char *authority)
{
	struct xds_arena arena = {0};
	struct lb_vhost_conf *confs = xds_arena_alloc(&arena, c->n_vhosts, sizeof(*confs));
	int chosen = confs ? 0 : -ENOMEM;
	for (uint32_t i = 0; !chosen && i < c->n_vhosts; i++) {
		const struct res_vhost *v = &c->vhosts[i];
		struct str *domains = xds_arena_alloc(&arena, v->n_domains, sizeof(*domains));
		if (!domains)
			chosen = -ENOMEM;
		for (uint32_t d = 0; domains && d < v->n_domains; d++)
			domains[d] = str_from(v->domains[d]);
		confs[i].domains = domains;
		confs[i].n_domains = v->n_domains;
	}
	if (!chosen)
		chosen = lb_vhost_choose(confs, c->n_vhosts, str_from(authority));
	xds_arena_fini(&arena);
	return chosen;
}
