// SPDX-License-Identifier: Apache-2.0
// One frontend's configurations: what serves, what is wanted instead, and why it does not yet. What
// they mean for the clusters, which all frontends share: frontend_clusters.h.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct assembler_routes;
struct cluster_set;
struct cluster_tree_env;
struct config;
struct draft;
struct route_compiler;
struct twheel;
struct workers;
struct xds_config;

// What the frontends of one assembler have in common; borrowed, outlives them.
struct assembled_frontend_env {
	const struct config *config; // names them
	const struct workers *workers;
	struct twheel *wheel;
	struct draft *draft; // told of what changes
	struct route_compiler *compiler;
	struct cluster_set *clusters;
	struct cluster_tree_env *trees; // hears when requests may have sessions
	struct assembled_frontend *all; // [config->n_frontends]
	bool is_leaving; // set by them: some cluster may wait for its last request
};

struct assembled_frontend {
	struct assembled_frontend_env *env;
	uint32_t index; // in env->all
	struct xds_config *applied; // counted; serves; NULL = none
	struct compiled_routes *routes; // owned; compiled from applied's routes
	struct actions *actions; // owned; of applied's routes
	struct lb_filter_chain *filters; // counted; of applied's listener
	// Of the last configuration that served, also when there is none any more: another one
	// after it means a new generation (FLT-11). Counted; NULL = there was none.
	struct res_listener *listener;
	uint64_t generation;
	// Counted; refused so far, waits for patterns, or is `applied`, of which some clusters are
	// refused so far. NULL = none.
	struct xds_config *wanted;
	// So many of its entries, from the first on, hold their clusters; of `applied` and `newest`
	// all do.
	uint32_t n_held;
	bool waits; // `wanted` lacks nothing but compiled patterns
	uint64_t waits_since_ns;
	bool holds_endpoints; // what serves meanwhile is not yet told of newer endpoints
	struct xds_config *newest; // counted; came while `wanted` waits; NULL = none did
	uint64_t retry_ns; // when `wanted` is tried again
	char *error; // owned; why there are no routes; never ""
	char *refusal; // owned; why `wanted` is not applied, or not in whole; "" = nothing is
};

// False = out of memory; fini() is due nevertheless.
[[nodiscard]] bool assembled_frontend_init(
	struct assembled_frontend *, struct assembled_frontend_env *, uint32_t index);
void assembled_frontend_fini(struct assembled_frontend *);

// As assembler_update() and assembler_fail().
void assembled_frontend_update(struct assembled_frontend *, struct xds_config *);
void assembled_frontend_fail(struct assembled_frontend *, const char *text);
// Tries what was refused when it is time, and what waits for patterns if some came. True = there is
// something that does not serve yet.
bool assembled_frontend_retry(struct assembled_frontend *, bool patterns_came);
// Drafts what serves.
void assembled_frontend_draft(const struct assembled_frontend *);

// For operators: as assembler_frontend_…().
bool assembled_frontend_routes(const struct assembled_frontend *, struct assembler_routes *ret);
const char *assembled_frontend_waiting(const struct assembled_frontend *);
const char *assembled_frontend_error(const struct assembled_frontend *);
const char *assembled_frontend_refusal(const struct assembled_frontend *);
