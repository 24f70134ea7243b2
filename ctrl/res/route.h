// SPDX-License-Identifier: Apache-2.0
// envoy.config.route.v3.RouteConfiguration as plain data (routing.md §1, 2, 5 to 8). Routes that
// gRPC ignores are not in it; what is in it can be evaluated exactly.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/type.h"
#include "lb/route.h"

#include <stdbool.h>
#include <stdint.h>

struct res_weighted_cluster {
	const char *name;
	uint32_t weight; // 0 = never picked
};

struct res_route {
	const char *name; // "" = none
	enum lb_path_kind path_kind;
	const char *path;
	bool case_sensitive;
	enum lb_action_kind action; // UNSUPPORTED: matches, and the request fails (V04)
	const struct res_weighted_cluster *clusters; // one with weight 1 for a plain `cluster`
	uint32_t n_clusters;
};

struct res_vhost {
	const char *name;
	const char *const *domains;
	uint32_t n_domains;
	const struct res_route *routes;
	uint32_t n_routes;
};

struct res_route_config {
	struct xds_res base;
	const struct res_vhost *vhosts;
	uint32_t n_vhosts;
};

extern const struct xds_type res_type_route_config;

static inline struct res_route_config *res_route_config_from(struct xds_res *r)
{
	return (struct res_route_config *)r; // base is the first member
}
// Which virtual host serves the authority (VH-01 to VH-08): its index, -1 = none, -ENOMEM.
int res_route_config_choose(const struct res_route_config *, const char *authority);
