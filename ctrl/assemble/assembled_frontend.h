// SPDX-License-Identifier: Apache-2.0
// The configurations of one frontend: the one that serves, the next one, and why that does not
// serve yet. frontend_clusters.h applies them to the clusters, which all frontends share.
// Thread: ctrl.
#pragma once

#include "ctrl/base/slice.h"

#include <stdbool.h>
#include <stdint.h>

struct access_log;
struct actions_job;
struct assembler_routes;
struct cluster_set;
struct cluster_tree_env;
struct config;
struct draft;
struct frontend_refused;
struct lb_access_set;
struct lb_chain_set;
struct lb_live_frontend;
struct route_compiler;
struct route_job;
struct twheel;
struct workers;
struct xds_config;

// What the frontends of one assembler share; borrowed, outlives them.
struct assembled_frontend_env {
	const struct config *config; // names them
	const struct workers *workers;
	struct twheel *wheel;
	struct draft *draft; // gets their changes
	struct route_compiler *compiler;
	struct access_log *access_log; // NULL = listeners have none
	struct slice slice; // how much of a large table's actions is listed in a turn
	struct cluster_set *clusters;
	struct cluster_tree_env *trees; // told when requests may have sessions
	struct assembled_frontend *all; // [config_n_places()]
	// Set by frontends: the least one of the clusters that are leaving; 0 = none is.
	uint64_t left_by;
};

struct assembled_frontend {
	struct assembled_frontend_env *env;
	uint32_t index; // in env->all
	uint32_t owner; // of a chain: shunt.yaml's frontend, else the index
	// Which bit of each cluster's `refused` tells of these configurations: two for each index,
	// since it and its next one hold clusters as two do. It changes places with them.
	uint32_t refused_bit;
	struct lb_chain_set *chains; // counted; of a frontend with a socket Listener, else NULL
	bool serves_chains; // it is up
	// Counted: what workers know of it beside; NULL = what they were started with.
	struct lb_live_frontend *live;
	struct assembled_frontend *next; // frontend_next.h's; owned; NULL = it is not to change
	bool is_next; // it is somebody's: workers hear nothing of it
	struct xds_config *applied; // counted; the one that serves; NULL = none
	struct compiled_routes *routes; // owned; compiled from applied's routes
	struct actions *actions; // owned; of applied's routes
	bool has_all_headers; // of gRPC requests, in these routes
	struct lb_filter_chain *filters; // counted; of applied's listener
	struct lb_access_set *access; // counted; likewise; NULL = none
	// Owned: what was told of logs that are not in `access`; NULL = nothing. frontend_logs.h's.
	struct frontend_refused *refused_logs;
	bool lacks_logs; // some found no room
	uint64_t logs_retry_ns; // when to ask for them again
	// Of the last configuration that served, even after it was removed: different filters later
	// mean a new generation (FLT-11). Counted; NULL = none.
	struct res_listener *listener;
	uint64_t generation;
	// The next configuration: refused so far, waiting for patterns, or equal to `applied`, some
	// of whose clusters are refused so far. Counted; NULL = none.
	struct xds_config *wanted;
	// Number of its entries, from the first on, that hold their clusters; all entries of
	// `applied` and `newest` do.
	uint32_t n_held;
	bool lacks_clusters; // some of `applied` are refused so far
	bool waits; // `wanted` waits only for compiled patterns or routes
	// What the routes of `wanted` become, one after the other. Owned; NULL = not yet, or done.
	struct route_job *job;
	struct compiled_routes *made_routes;
	struct actions_job *actions_job;
	bool goes_on; // in the next turn: it does not wait for patterns
	uint64_t waits_since_ns;
	bool holds_endpoints; // the serving clusters do not get newer endpoints yet
	struct xds_config *newest; // counted; arrived while `wanted` waits; NULL = none
	uint64_t retry_ns; // when to try `wanted` again
	char *error; // owned; why there are no routes; never ""
	char *refusal; // owned; why `wanted`, or a part of it, is not applied; "" = no reason
};

// Returns false if out of memory; call fini() anyway.
[[nodiscard]] bool assembled_frontend_init(
	struct assembled_frontend *, struct assembled_frontend_env *, uint32_t index);
void assembled_frontend_fini(struct assembled_frontend *);

// Implement assembler_update() and assembler_fail().
void assembled_frontend_update(struct assembled_frontend *, struct xds_config *);
void assembled_frontend_fail(struct assembled_frontend *, const char *text);
// Retries a refused configuration when it is time, and a waiting one if patterns arrived. True =
// some part is not applied yet.
bool assembled_frontend_retry(struct assembled_frontend *, bool patterns_came);
// Puts what serves into the draft; nothing of what is somebody's next.
void assembled_frontend_draft(const struct assembled_frontend *);

// Implement assembler_set_chains(), assembler_send_away().
void assembled_frontend_set_chains(
	struct assembled_frontend *, struct lb_chain_set *, const char *error);
void assembled_frontend_send_away(struct assembled_frontend *);
// Implements assembler_set_live().
void assembled_frontend_set_live(
	struct assembled_frontend *, struct lb_live_frontend *, bool sends_away);

// For display: implement assembler_frontend_…().
bool assembled_frontend_routes(const struct assembled_frontend *, struct assembler_routes *ret);
const char *assembled_frontend_waiting(const struct assembled_frontend *);
const char *assembled_frontend_error(const struct assembled_frontend *);
const char *assembled_frontend_refusal(const struct assembled_frontend *);
