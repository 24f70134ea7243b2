// SPDX-License-Identifier: Apache-2.0
// Compiles validated RouteConfigurations into the tables that workers search: cluster names become
// ids, patterns become compiled sets. A virtual host with the same bytes and clusters as one in use
// is the same object, whichever table has that.
// Thread: ctrl.
#pragma once

#include "ctrl/base/slice.h"
#include "lb/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct cluster_set;
struct compiled_routes;
struct lb_route_table;
struct regex_cache;
struct res_route_config;
struct route_compiler;
struct route_job;
struct vhost_numbers;

struct route_compiler_conf { // all borrowed, outlive it
	const struct cluster_set *clusters;
	struct regex_cache *regexes;
	struct vhost_numbers *numbers; // NULL = virtual hosts are not counted apart
	uint32_t n_workers;
	struct slice slice; // how much of a large table is made, or freed, in a turn
};

struct route_compiler *route_compiler_new(
	const struct route_compiler_conf *); // NULL = out of memory
void route_compiler_free(struct route_compiler *); // after everything compiled is put; NULL is fine

enum route_compile_outcome {
	ROUTE_COMPILED,
	ROUTE_COMPILE_WAITS, // for patterns: ask again when some came
	ROUTE_COMPILE_GOES_ON, // the slice is over: ask again in the next turn
	ROUTE_COMPILE_REFUSED, // reterr: out of memory, or a cluster that is not in the set
};
struct route_compile_how {
	int32_t vhost; // compile only this one (a pinned authority); -1 = all
	bool grpc_sees_all; // lb/route/route.h
};
// Begins to make a table. Returns NULL if out of memory. The routes are borrowed; every cluster
// with a weight above 0 must be in the set, and stay there.
struct route_job *route_job_new(
	struct route_compiler *, const struct res_route_config *, struct route_compile_how);
void route_job_free(struct route_job *); // at any time; NULL is fine
// Goes on with it. COMPILED: the caller owns *ret, and must not run the job again.
enum route_compile_outcome route_job_run(
	struct route_job *, struct compiled_routes **ret, struct lb_err *reterr);

// Its virtual hosts can be shared as long as it exists. Freeing takes slices, too, and waits for
// the snapshots that have it (route_compiler_tidy()).
void compiled_routes_free(struct compiled_routes *); // NULL is fine
void route_compiler_tidy(struct route_compiler *); // every turn
struct lb_route_table *compiled_routes_table(const struct compiled_routes *); // borrowed
