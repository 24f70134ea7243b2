// SPDX-License-Identifier: Apache-2.0
// Route tables and requests of the route bench: prefixes as gRPC services have, regexes as REST
// gateways have. The same numbers give the same workload.
// Thread: one.
#pragma once

#include "lb/base/str.h"

#include <stdint.h>

struct bench_route {
	struct str text; // prefix, or the pattern of a regex
	bool is_regex;
};

struct workload {
	struct bench_route *routes;
	uint32_t n_routes, n_regexes;
	struct str *paths; // of requests, each of which matches a route
	uint32_t n_paths; // a power of two
	size_t n_text; // bytes of all routes
};

// Each 100 / percent-th route is a regex. Exits when there is no memory.
void workload_init(struct workload *, uint32_t n_routes, uint32_t regex_percent);
void workload_fini(struct workload *);
