// SPDX-License-Identifier: Apache-2.0
// Builds the configuration from a complete pass of the dependency manager. Part of the manager.
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
	const struct xds_config *last; // equal parts are reused from it; NULL = none
	// for compose() only:
	uint32_t n_clusters; // clusters to include, from nodes_take()
	struct res_route_config *routes;
	int32_t vhost; // -1 = not pinned
};

// Returns NULL if out of memory.
struct xds_config *compose(const struct composition *);

// While the next configuration waits: returns the last one with newer endpoints for its unchanged
// clusters. Everything else in it stays, so that no inconsistent mix arises (A74), and clusters
// that are not concerned get their endpoints. Returns 0, with *ret NULL if there is nothing newer,
// or -ENOMEM.
[[nodiscard]] int compose_meanwhile(const struct composition *, struct xds_config **ret);
