// SPDX-License-Identifier: Apache-2.0
// The assembler's own state, for the two files that it consists of: assemble.c (events, ticks) and
// assemble_view.c (what operators hear). Nobody else includes this.
// Thread: ctrl.
#pragma once

#include "ctrl/assemble/assemble.h"
#include "ctrl/assemble/assembled_frontend.h"
#include "ctrl/assemble/cluster_tree.h"
#include "ctrl/assemble/draft.h"
#include "lb/base/rand.h"

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
	struct draft draft;
	struct assembled_frontend_env frontend_env;
	bool unsettled; // some frontend may have something that does not serve yet
	uint64_t look_ns; // when it is next looked whether that is over
	uint64_t expedite_ns; // when it is next looked which clusters' requests wait
	uint32_t expedite_at; // the one that was looked at last
	uint8_t *flips; // [LB_MAX_ENDPOINTS] owned; enum flip: what the log said last
	struct assembled_frontend frontends[]; // as config has
};
