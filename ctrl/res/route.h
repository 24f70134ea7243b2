// SPDX-License-Identifier: Apache-2.0
// envoy.config.route.v3.RouteConfiguration as a plain struct (A28-R*, A28-P*, RX-*, A28-H*, A28-O*,
// A28-V*, A28-W*, VH-*, A31-*, HP-*, RT-*). Routes that gRPC ignores are not among the routes, but
// listed separately; all others can be evaluated exactly.
// Thread: ctrl.
#pragma once

#include "ctrl/res/warnings.h"
#include "ctrl/xds/type.h"
#include "lb/base/container_of.h"
#include "lb/route/route.h"

#include <stdbool.h>
#include <stdint.h>

struct res_weighted_cluster {
	const char *name;
	uint32_t weight; // 0 = never picked
	struct lb_filter_overrides overrides; // of this entry (A28-W07)
};

struct res_route {
	const char *name; // "" = none
	const char *path; // the pattern of REGEX, a valid one (RX-03)
	size_t path_len;
	enum lb_path_kind path_kind;
	bool case_sensitive; // no effect on REGEX
	bool grpc_only;
	const struct lb_header_match_conf *headers; // regex.set is NULL: set by the compiler
	uint32_t n_headers;
	uint32_t ppm; // LB_PPM_ALWAYS = no fraction
	const struct res_weighted_cluster *clusters; // one with weight 1 for a plain `cluster`
	enum lb_action_kind action; // UNSUPPORTED: matches, and the request fails (A28-V04)
	uint32_t n_clusters;
	uint32_t index; // in the resource's list, including ignored routes
	// With the effective retry policy (RT-02). hash[].rewrite is NULL: set by the compiler.
	// auto_host_rewrite is the resource's, whether or not the server is trusted (AR-02).
	const struct lb_route_policy *policy; // may be shared by routes
};

// An ignored route.
struct res_ignored_route {
	uint32_t index; // in the resource's list
	const char *name; // "" = none
	const char *reason; // "match.query_parameters is set"
};

struct res_vhost {
	const char *name;
	const char *const *domains;
	uint32_t n_domains;
	const struct res_route *routes;
	uint32_t n_routes;
	struct lb_filter_overrides overrides;
	const struct res_ignored_route *ignored;
	uint32_t n_ignored;
	uint64_t hash[2]; // of the bytes as received: equal = the same virtual host
};

struct res_route_config {
	struct xds_res base;
	const struct res_vhost *vhosts;
	uint32_t n_vhosts;
	bool ignore_port; // in the authority (VH-06)
	struct res_warnings warnings;
};

extern const struct xds_type res_type_route_config;

static inline struct res_route_config *res_route_config_from(struct xds_res *r)
{
	return CONTAINER_OF(r, struct res_route_config, base); // base is the first member
}
// Returns the index of the virtual host for the authority (VH-01 to VH-08); -1 = none, -ENOMEM.
int res_route_config_choose(const struct res_route_config *, const char *authority);
