// SPDX-License-Identifier: Apache-2.0
// One route configuration, compiled: virtual hosts (exact > suffix > prefix > any domain,
// routing.md VH-01..VH-10), each with ordered routes, first match wins (A28-R01). Immutable after
// build; shared by snapshots through a count that only the control thread touches.
// Thread: build/get/put on ctrl; find on workers. Pure.
#pragma once

#include "lb/base/err.h"
#include "lb/base/rand.h"
#include "lb/base/str.h"
#include "lb/filter.h"
#include "lb/hash_policy.h"
#include "lb/header_match.h"
#include "lb/retry.h"
#include "lb/timeouts.h"

#include <stdint.h>

struct lb_req;
struct lb_route_table;

// What a route asks for beside the choice of a cluster.
struct lb_route_policy {
	struct lb_timeouts timeouts;
	struct lb_retry retry; // the virtual host's where the route has none (RT-02)
	const struct lb_hash_policy *hash;
	uint32_t n_hash;
	bool auto_host_rewrite; // A81; only where the server is trusted (AR-01)
	struct lb_filter_overrides overrides; // of the route
};
#define LB_PPM_ALWAYS 1000000 // a fraction of the requests, in parts per million: all

// The builder's input: borrowed for the call.
enum lb_path_kind { LB_PATH_PREFIX, LB_PATH_EXACT, LB_PATH_REGEX };
struct lb_weighted_cluster {
	uint32_t cluster_id; // dense id (lb/cluster.h)
	uint32_t weight;
};
enum lb_action_kind {
	LB_ACTION_CLUSTERS, // draw one by weight (A31)
	LB_ACTION_UNSUPPORTED, // matches, and the request fails 14/503 (routing.md A28-V04)
};
struct lb_route_conf {
	enum lb_path_kind path_kind;
	struct str path;
	bool case_sensitive;
	enum lb_action_kind action;
	const struct lb_weighted_cluster *clusters; // sum of weights in 1..2^32-1
	uint32_t n_clusters;
};
struct lb_vhost_conf {
	struct str name;
	const struct str *domains;
	uint32_t n_domains;
	const struct lb_route_conf *routes;
	uint32_t n_routes;
};

// Returns a table with a count of 1. NULL = no memory, or a bad conf with the reason in reterr
// (empty domain, `*` in the middle, zero weights: callers validate first, this is the last guard).
struct lb_route_table *lb_route_table_new(
	const struct lb_vhost_conf *, uint32_t n_vhosts, struct lb_err *reterr);
struct lb_route_table *lb_route_table_get(struct lb_route_table *);
void lb_route_table_put(struct lb_route_table *); // NULL is fine

enum lb_route_kind {
	LB_ROUTE_CLUSTER, // cluster_id is set
	LB_ROUTE_UNSUPPORTED,
	LB_ROUTE_NO_VHOST,
	LB_ROUTE_NONE, // the virtual host has no matching route (VH-09: `*` is not tried)
};
struct lb_route_result {
	enum lb_route_kind kind;
	uint32_t cluster_id;
	uint32_t vhost_index, route_index; // in the conf's order, for explain and logs
};
struct lb_route_result lb_route_find(
	const struct lb_route_table *, const struct lb_req *, struct rand *);

// Which virtual host an authority would use, on plain data, before anything is compiled
// (VH-02..VH-08): the dependency manager watches the clusters of the chosen one alone (A74). Its
// index, -1 = none.
int lb_vhost_choose(const struct lb_vhost_conf *, uint32_t n_vhosts, struct str authority);
