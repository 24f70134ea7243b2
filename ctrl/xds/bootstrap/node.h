// SPDX-License-Identifier: Apache-2.0
// Our node, as the Node message of a stream's first request (BT-07, BT-08, PC-03).
// Thread: ctrl.
#pragma once

#include "envoy/config/core/v3/base.pb-c.h"
#include "lb/base/arena.h"

struct xds_bootstrap;

struct xds_node {
	Envoy__Config__Core__V3__Node msg; // points into the arena and the bootstrap
	struct lb_arena arena;
};

// The bootstrap outlives the node. Returns 0 or -ENOMEM.
[[nodiscard]] int xds_node_init(
	struct xds_node *, const struct xds_bootstrap *, const char *user_agent_version);
void xds_node_fini(struct xds_node *);
