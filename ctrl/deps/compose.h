// SPDX-License-Identifier: Apache-2.0
// Makes the configuration of what a complete pass of the dependency manager found. Part of the
// manager.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct node;
struct nodes;
struct res_route_config;
struct xds_config;

struct composition {
	struct nodes *nodes;
	const struct node *listener;
	const struct node *route_node; // NULL = inline
	const char *node_id;
	const struct xds_config *last; // equal parts are taken from it; NULL = none
	// compose() alone:
	uint32_t n_clusters; // that are taken, as nodes_take() says
	struct res_route_config *routes;
	int32_t vhost; // -1 = not pinned
};

// NULL = out of memory.
struct xds_config *compose(const struct composition *);

// While the next configuration waits: the last one with the newer endpoints of those of its
// clusters that are what they were. Nothing else is newer in it, so that nothing is mixed that does
// not go together (A74), and what waits does not hold up who has nothing to do with it. 0,
// and *ret is NULL if there is nothing newer, or -ENOMEM.
[[nodiscard]] int compose_meanwhile(const struct composition *, struct xds_config **ret);
