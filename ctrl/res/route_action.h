// SPDX-License-Identifier: Apache-2.0
// The action of a route: destination and policies (A28-V*, A28-W*, A31-*, HP-*, AR-*). Not for
// users of the decoded resources.
// Thread: ctrl.
#pragma once

#include "ctrl/res/common.h"
#include "ctrl/res/route.h"
#include "envoy/config/route/v3/route_components.pb-c.h"

// The cluster specifier plugins that a route configuration declares: none is supported, but routes
// may refer to optional ones (A28-V06).
struct res_plugins {
	struct strmap names;
};
// Returns 0, -EINVAL or -ENOMEM; call fini() either way.
int res_plugins_read(struct res_plugins *, struct res_reader *,
	Envoy__Config__Route__V3__ClusterSpecifierPlugin *const *, size_t n);
void res_plugins_fini(struct res_plugins *);

#define RES_MIRRORS_IGNORED "request_mirror_policies are ignored" // on any level

// False = the route will be ignored or rejected.
bool res_action_has_clusters(const Envoy__Config__Route__V3__RouteAction *);
// vhost_retry: for a route without a retry policy. *ret_ignored: why the route is ignored, NULL =
// it is not. Returns 0, -EINVAL or -ENOMEM.
int res_action_read(struct res_reader *, const Envoy__Config__Route__V3__RouteAction *,
	const struct res_plugins *, const struct lb_retry *vhost_retry, struct res_route *,
	struct lb_route_policy *, const char **ret_ignored);
