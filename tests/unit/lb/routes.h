// SPDX-License-Identifier: Apache-2.0
// Route tables made by hand: one virtual host for any domain, a route a line.
// Thread: the test's own.
#pragma once

#include "lb/route/req.h"
#include "lb/route/route.h"

#define ROUTES_MAX 64
#define CLUSTER(id, n)                                                                             \
	{                                                                                          \
		.cluster_id = (id), .weight = (n)                                                  \
	}

struct routes { // {0} has none
	struct lb_route_conf list[ROUTES_MAX];
	struct lb_weighted_cluster clusters[ROUTES_MAX]; // route i's own one: 100 + i
	struct lb_header_match_conf headers[ROUTES_MAX];
	struct lb_regex_set *sets[ROUTES_MAX];
	uint32_t n, n_headers, n_sets;
	bool ignore_port, grpc_sees_all;
};

// What is returned may be changed until the table is compiled.
struct lb_route_conf *routes_add(struct routes *, enum lb_path_kind, const char *path);
// Of the route added last.
struct lb_header_match_conf *routes_add_header(
	struct routes *, const char *name, enum lb_header_match_kind, const char *text);
// All patterns of one call are compiled together; bit i is pattern i.
struct lb_regex_set *routes_add_set(struct routes *, const char *const *patterns, uint32_t n);
struct lb_vhost_conf routes_vhost(const struct routes *); // for "*"
struct lb_route_table *routes_compile(const struct routes *);
void routes_fini(struct routes *);

struct lb_route_table *vhosts_compile(
	const struct lb_vhost_conf *, uint32_t n, bool ignore_port, struct lb_err *reterr);
struct lb_route_result find_req(
	const struct lb_route_table *, const struct lb_req *, struct rand *);
// The number of the route that the table's compiled form finds, -1 = none; a single cluster is
// checked.
int routes_match(const struct routes *, const struct lb_req *);
int routes_match_path(const struct routes *, const char *path);
