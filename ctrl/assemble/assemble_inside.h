// SPDX-License-Identifier: Apache-2.0
// The assembler's state, for its two files only: assemble.c (events, ticks) and assemble_view.c
// (display).
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
	uint32_t *positions; // [LB_MAX_SLOTS] owned; for picks made for display
	struct cluster_set *clusters;
	struct regex_cache *regexes;
	struct route_compiler *compiler;
	uint64_t sweep_ns; // when to forget unused patterns next
	bool patterns_came; // and the frontends that wait have not been told
	uint64_t compiled_ns; // when to tell waiting frontends next, if patterns are still missing
	struct draft draft;
	struct assembled_frontend_env frontend_env;
	bool unsettled; // some frontend may have a part that does not serve yet
	uint64_t look_ns; // when to check `unsettled` next
	uint64_t expedite_ns; // when to check next for clusters with waiting requests
	uint32_t expedite_at; // the cluster checked last
	uint8_t *transitions; // [LB_MAX_ENDPOINTS] owned; enum transition: last state logged
	struct assembled_frontend frontends[]; // [config->n_frontends]
};
