// SPDX-License-Identifier: Apache-2.0
// The assembler's own state, for the files that it consists of: assemble.c (clusters, publishing),
// frontend.c (configurations), frontend_clusters.c (their clusters), assemble_view.c (what
// operators hear). Nobody else includes this.
// Thread: ctrl.
#pragma once

#include "ctrl/assemble/assemble.h"
#include "ctrl/assemble/cluster_tree.h"
#include "lb/base/rand.h"

struct lb_cluster;
struct lb_snapshot;

struct assembled_frontend {
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

struct assembler {
	struct assembler_conf conf;
	struct rand rand;
	struct lb_connectivity *connectivity;
	struct lb_orca_table *orca;
	struct members *members;
	struct lb_breakers *breakers;
	struct ids leaf_ids;
	struct cluster_tree_env tree_env;
	uint32_t *positions; // [LB_MAX_SLOTS] owned; of picks for operators
	struct cluster_set *clusters;
	struct regex_cache *regexes;
	struct route_compiler *compiler;
	uint64_t sweep_ns; // when unused patterns are next forgotten
	bool patterns_came; // and nobody who waits for some was told
	uint64_t compiled_ns; // when those who wait are next told, if some are still missing
	struct lb_snapshot *next; // owned: what the next publish shows; NULL = nothing changed
	bool redraft; // memory ran out over `next`: it is to be made anew
	bool leaving; // some cluster may wait for its last request
	bool unsettled; // some frontend may have something that does not serve yet
	uint64_t look_ns; // when it is next looked whether that is over
	uint64_t hurry_ns; // when it is next looked which clusters' requests wait
	uint32_t hurry_at; // the one that was looked at last
	uint64_t n_published;
	uint64_t held_since_ns; // 0 = no change waits
	unsigned n_live;
	uint8_t *flips; // [LB_MAX_ENDPOINTS] owned; enum flip: what the log said last
	struct assembled_frontend frontends[]; // as config has
};

// assemble.c
// The snapshot in the making. NULL = no memory.
struct lb_snapshot *assembler_draft(struct assembler *);
void assembler_draft_cluster(struct assembler *, uint32_t id, struct lb_cluster *);

// frontend.c
bool frontend_init(struct assembled_frontend *); // false = no memory
void frontend_fini(struct assembled_frontend *);
void frontend_draft(struct assembler *, uint32_t index);
// Tries what was refused, and what waits for patterns, when it is time.
void frontend_retry(struct assembler *);

// frontend_clusters.c
// Holds the clusters whose numbers the configuration's routes need, of its entries from `from` on.
// Those that are new are made, and wait for their configuration. How many entries hold theirs now,
// counted from the first: all, or there is no memory for the next one, or no number (reterr).
[[nodiscard]] uint32_t frontend_hold_clusters(
	struct assembler *, const struct xds_config *, uint32_t from, struct lb_err *reterr);
// The reverse, of its first n entries. What nobody holds any more is leaving.
void frontend_release_clusters(struct assembler *, const struct xds_config *, uint32_t n);
// Configures those of `wanted`, which takes effect; all are held. One that cannot follow holds
// up no other (A74-T07). ret_refused: why the first of them cannot, and how many others.
void frontend_configure_clusters(struct assembler *, uint32_t index, struct lb_err *ret_refused);
// While a newer configuration cannot take effect, the clusters of the one that serves are told
// where their endpoints are now. Nothing else of the newer one is seen (DM-28).
void frontend_follow_endpoints(struct assembler *, uint32_t index);
