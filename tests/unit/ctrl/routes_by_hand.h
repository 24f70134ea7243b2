// SPDX-License-Identifier: Apache-2.0
// Route configurations made of literals, as their decoder would make them.
// Thread: the test's.
#pragma once

#include "ctrl/res/route.h"

static const struct lb_route_policy no_policy __attribute__((unused));

#define CLUSTERS(...)                                                                              \
	.clusters = (const struct res_weighted_cluster[]){__VA_ARGS__},                            \
	.n_clusters = sizeof((const struct res_weighted_cluster[]){__VA_ARGS__}) /                 \
	              sizeof(struct res_weighted_cluster)
#define WITH_POLICY(of, called, kind, text, n_ppm)                                                 \
	.policy = (of), .name = (called), .path_kind = (kind), .path = (text),                     \
	.path_len = sizeof(text) - 1, .case_sensitive = true, .ppm = (n_ppm)
#define PATH_OF(kind, text, called) WITH_POLICY(&no_policy, called, kind, text, LB_PPM_ALWAYS)
#define NAMED(called, text) PATH_OF(LB_PATH_PREFIX, text, called)
#define PREFIX(text) PATH_OF(LB_PATH_PREFIX, text, "")
#define EXACT(text) PATH_OF(LB_PATH_EXACT, text, "")
#define REGEX(text) PATH_OF(LB_PATH_REGEX, text, "")
// Of a fraction of the requests.
#define SOME(called, text, n_ppm) WITH_POLICY(&no_policy, called, LB_PATH_PREFIX, text, n_ppm)
#define ROUTES(...)                                                                                \
	.routes = (const struct res_route[]){__VA_ARGS__},                                         \
	.n_routes = sizeof((const struct res_route[]){__VA_ARGS__}) / sizeof(struct res_route)
#define DOMAINS(...)                                                                               \
	.domains = (const char *const[]){__VA_ARGS__},                                             \
	.n_domains = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)

// Borrows the virtual hosts. Count 1.
static inline struct res_route_config *routes_of(const struct res_vhost *vhosts, uint32_t n)
{
	struct res_route_config *r = (struct res_route_config *)xds_res_new(
		&res_type_route_config, sizeof(*r), "routes", NULL, 0);
	r->vhosts = vhosts;
	r->n_vhosts = n;
	return r;
}
