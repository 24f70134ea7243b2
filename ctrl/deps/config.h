// SPDX-License-Identifier: Apache-2.0
// The complete configuration of one frontend's target (gRFC A74): listener, routes, clusters and
// their endpoints. Mutable while it is built, immutable once it is delivered.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct res_cluster;
struct res_endpoints;
struct res_listener;
struct res_route_config;
struct lb_arena;

struct xds_cluster_config {
	const char *name;
	struct res_cluster *cluster; // counted; NULL = in error
	const char *error; // why; "" while there is a cluster
	// Counted; NULL = none, resolution_note says why. A LOGICAL_DNS cluster has one endpoint
	// with all addresses of its name (A61-D02).
	struct res_endpoints *endpoints;
	// AGGREGATE: its leaves, flat and in order (A75-G01); each is an entry of the configuration
	// with a cluster that is not an aggregate. NULL = not an aggregate, or no leaf is left (an
	// error).
	const char *const *leaves;
	uint32_t n_leaves;
	// A route names it; other clusters are only members of aggregates, or in use (DM-14).
	bool is_root;
	bool has_trouble; // the note describes a problem, not only the node
	// For failure messages: problems of this entry's resources, else the node id (DM-27). Never
	// NULL.
	const char *resolution_note;
};

// Immutable. The next one shares parts that did not change (compare pointers).
struct xds_config {
	uint32_t n_refs;
	struct res_listener *listener; // counted; never NULL
	struct res_route_config *routes; // counted; never NULL, also when inline
	int32_t vhost; // index of the pinned authority's virtual host in routes; -1 = not pinned
	struct xds_cluster_config *clusters; // by name (strcmp order)
	uint32_t n_clusters;
};
struct xds_config *xds_config_get(struct xds_config *);
void xds_config_put(struct xds_config *); // NULL is fine
// Returns NULL if the configuration has no such cluster.
const struct xds_cluster_config *xds_config_find_cluster(
	const struct xds_config *, const char *name);
// True if parts and texts are equal.
bool xds_config_eq(const struct xds_config *, const struct xds_config *);

// Builds one, for the dependency manager.
struct config_builder {
	struct xds_config *config; // count 1; clusters has room for n_clusters, zeroed
	struct lb_arena *arena; // of the config
};

// Takes references of both. 0 or -ENOMEM.
[[nodiscard]] int config_builder_init(struct config_builder *, struct res_listener *,
	struct res_route_config *, int32_t vhost, uint32_t n_clusters);
// Sorts clusters by name, if they were filled in another order.
void config_builder_sort(struct config_builder *);
// Copies a text into the configuration; NULL = out of memory.
const char *config_builder_text(struct config_builder *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
